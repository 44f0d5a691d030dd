"""Models with several members, put together from small fitted ones as committees and local models will be."""

from copy import copy
from dataclasses import replace
from unittest.mock import patch

import numpy as np

from bayesvm import BayesianSVC
from bayesvm.core.features import Effect, InducingFeatures
from bayesvm.core.links import Normalised, Probit, TwoProbits
from bayesvm.core.members import Region
from bayesvm.inference.kernel_model import KernelModel
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
    """The first estimator is a parent of weight zero, the others share the space between them, and all of it again."""
    parent, left, right = (model.fitted_ for model in models)
    direction = np.zeros((1, models[0].n_features_in_))
    direction[0, 0] = 1.0
    border, nowhere = np.array([0.2]), np.array([np.inf])
    members = (
        replace(parent.member, weight=0.0),
        replace(left.member, parent=0, region=Region(direction, -nowhere, border)),
        replace(right.member, parent=0, region=Region(direction, border, nowhere), link=left.link),
        replace(left.member, weight=0.5),
    )
    left_out = left.left_out + right.left_out + left.left_out
    return with_fitted(models[0], replace(parent, members=members, left_out=left_out))


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
    """A context in which a BayesianSVC becomes such a committee; a tuned one may too, but nobody knows when."""

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
