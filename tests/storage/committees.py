"""Models with several members, put together from small fitted ones, and local models with posteriors made up."""

from copy import copy
from dataclasses import replace
from unittest.mock import patch

import numpy as np

from bayesvm import BayesianSVC
from bayesvm.core.features import Effect, InducingFeatures
from bayesvm.core.latent import LatentFunction
from bayesvm.core.leaves import Leaf, Leaves, Tree
from bayesvm.core.links import Normalised, Probit, TwoProbits
from bayesvm.core.posterior import CompactGaussian
from bayesvm.inference.kernel_model import KernelModel
from bayesvm.inference.local import local_features
from bayesvm.inference.scalings import fitted_scalers
from bayesvm.inference.session import Prepared
from bayesvm.kernels import RBF, Matern


def committee(models, weights=(1.0, 3.0)):
    """Fitted estimators whose predictions are averaged; the second one has a link of its own."""
    first, second = (model.fitted_ for model in models)
    own = TwoProbits((0.5, 2.0), (0.1, -0.2), 0.3) if len(models[0].classes_) == 2 else Normalised(Probit(0.7, 0.1))
    members = (replace(first.member, weight=weights[0]), replace(second.member, weight=weights[1], link=own))
    return with_fitted(models[0], replace(first, members=members, left_out=first.left_out + second.left_out))


def local_models(models):
    """A committee of two estimators, of which the first has local models."""
    model = committee(models[:2])
    first, second = model.fitted_.members
    leaves = some_leaves(model.n_features_in_, len(first.functions))
    return with_fitted(model, replace(model.fitted_, members=(replace(first, leaves=leaves), second)))


def some_leaves(n_features, n_functions, seed=0):
    """Three leaves with one, three and four points, and arbitrary posteriors."""
    rng = np.random.default_rng(seed)
    tree = Tree(np.eye(2, n_features), np.array([0.2, -0.1]), np.array([~0, ~1]), np.array([1, ~2]))
    kernel = Matern(1.5, 0.7)

    def leaf(n_points):
        features = local_features(kernel, rng.standard_normal((n_points, n_features)).astype(np.float32))
        posteriors = (
            CompactGaussian(
                rng.standard_normal(n_points), np.triu(rng.uniform(0.1, 0.5, 2 * [n_points])).astype(np.float32)
            )
            for _ in range(n_functions)
        )
        return Leaf(features, tuple(LatentFunction(k, 0.0, q) for k, q in enumerate(posteriors)))

    return Leaves(tree, kernel, tuple(map(leaf, (1, 3, 4))))


def with_fitted(model, fitted):
    """The same estimator with another fitted value."""
    other = copy(model)
    other.fitted_ = fitted
    return other


class TwoScalings(KernelModel):
    """Two members with scalings and kernels of their own; the first has effects of one column and of two."""

    def prepare(self, raw, session):
        first = self.member(raw, session, "quantile", Matern(1.5, 2.0))
        second = self.member(raw, session, "standard", RBF(2.0, 3.0))
        column = InducingFeatures.build(Matern(0.3, 2.0), np.linspace(-2, 2, 5)[:, None])
        grid = np.stack(np.meshgrid([-1.0, 0.0, 1.0], [-1.0, 1.0]), axis=-1).reshape(-1, 2)
        effects = (Effect((1,), column), Effect((2, 0), InducingFeatures.build(RBF(1.0, 0.5), grid)))
        features = replace(first.features, effects=effects)
        source = raw.scaled(first.scaler)
        first = replace(first, features=features, functions=tuple(session.problem(features, source).start()))
        return replace(first, others=(second,))

    def member(self, raw, session, scale, kernel):
        scaler = fitted_scalers([scale], raw)[scale]
        source = raw.scaled(scaler)
        features = InducingFeatures.build(kernel, self._points(source, kernel, self.n_inducing, session), session.dtype)
        return Prepared(scale, scaler, features, tuple(session.problem(features, source).start()))


def two_scalings():
    """A context in which BayesianSVC becomes such a committee; whether tuning gives one is not predictable."""

    def model(self, n_features):
        return TwoScalings({}, self.n_inducing, 2000, "kmeans", learn_inducing=False, learn_relevance=False)

    return patch.object(BayesianSVC, "_model", model)


def alone(model, number):
    """One member of a committee as a model."""
    fitted = model.fitted_
    member = fitted.members[number]
    return with_fitted(
        model,
        replace(
            fitted,
            members=(replace(member, weight=1.0, link=None, scaler=None),),
            scaler=member.scaler or fitted.scaler,
            link=member.link or fitted.link,
            left_out=fitted.left_out[number : number + 1],
        ),
    )
