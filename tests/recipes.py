"""Estimators that were fitted to features, with the recipe that makes these features."""

from bayesvm.estimators.columns import use_recipe


def with_recipe(estimator, recipe):
    use_recipe(estimator, recipe)
    return estimator
