"""Models with several members, put together from small fitted ones as committees and local models will be."""

from copy import copy
from dataclasses import replace

import numpy as np

from bayesvm.core.links import Normalised, Probit, TwoProbits
from bayesvm.core.members import Region


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
