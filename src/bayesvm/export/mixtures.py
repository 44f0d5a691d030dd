"""Export: predictions of a committee (D25), or of a single member."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayesvm.core.heads.binary import REACH
from bayesvm.core.members import MemberViews
from bayesvm.export.features import MemberNodes, members_of
from bayesvm.export.graph import Value, exp, log, maximum, minimum, sqrt
from bayesvm.export.links import BINARY, LEAST, log_probabilities
from bayesvm.export.uncertainty import entropy, uncertainty_of
from bayesvm.inference.fitted import Fitted


class Parts(NamedTuple):
    """The members with their shares and links."""

    members: Sequence[MemberNodes]
    shares: Sequence[float]
    links: Sequence[Any]

    @classmethod
    def of(cls, fitted: Fitted, views: MemberViews, rows: Value, dtype: npt.DTypeLike) -> Parts:
        """The parts of a model at scaled rows."""
        return cls(members_of(fitted, views, rows, dtype), views.shares, views.links)

    def mixed(self, of: Callable[[MemberNodes, Any], Value]) -> Value:
        """The weighted average of a value over the members."""
        each = [of(member, link) for member, link in zip(self.members, self.links, strict=True)]
        if self.alone:
            return each[0]
        terms = [value * share for value, share in zip(each, self.shares, strict=True)]
        return sum(terms[1:], terms[0])

    @property
    def alone(self) -> bool:
        """Whether there is one member."""
        return len(self.members) == 1


def mixed_logs(parts: Parts) -> Value:
    """Logarithms of the probabilities of all classes."""
    if parts.alone:
        return log_probabilities(parts.links[0], parts.members[0].mean, parts.members[0].variance)
    mean = parts.mixed(lambda member, link: exp(log_probabilities(link, member.mean, member.variance)))
    return log(maximum(mean, LEAST))


def mixed_moments(parts: Parts) -> tuple[Value, Value]:
    """Mean and variance of f, including the spread of the members."""
    mean = parts.mixed(lambda member, _: member.mean)
    if parts.alone:
        return mean, parts.members[0].variance
    return mean, parts.mixed(lambda member, _: member.variance + (member.mean - mean) * (member.mean - mean))


def mixed_uncertainty(parts: Parts, logs: Value, n_classes: int) -> dict[str, Value]:
    """The columns of ``predict_uncertainty``; ``logs`` are the logarithms of the predicted probabilities."""
    first = parts.members[0]
    if parts.alone:
        return uncertainty_of(parts.links[0], first.mean, first.variance, logs, n_classes)

    def aleatoric_of(member: MemberNodes, link: Any) -> Value:
        own = log_probabilities(link, member.mean, member.variance)
        return uncertainty_of(link, member.mean, member.variance, own, n_classes)["aleatoric"].flat().expanded(1)

    total = entropy(logs, 1)
    aleatoric = minimum(parts.mixed(aleatoric_of), total)
    split = {"total": total, "aleatoric": aleatoric, "epistemic": total - aleatoric}
    if n_classes > 2:
        return split
    stated = exp(logs).columns([1])
    no_variance = stated.graph.constant(0.0, np.float64)

    def end(side: float) -> Value:
        farthest = [stated * side]

        def squares(member: MemberNodes, link: Any) -> Value:
            at, own = BINARY[type(link)], exp(log_probabilities(link, member.mean, member.variance)).columns([1])
            out = exp(at(link, member.mean + sqrt(member.variance) * (side * REACH), no_variance)[1])
            reach, apart = maximum((out - own) * side, 0.0), (own - stated) * REACH
            farthest.append(own * side + reach)
            return reach * reach + apart * apart

        found = stated + sqrt(parts.mixed(squares)) * side
        limit = farthest[0]
        for other in farthest[1:]:
            limit = maximum(limit, other)
        return minimum(found * side, limit) * side

    return split | {"lower": end(-1.0), "upper": end(1.0)}
