"""Export: the mean and the standard deviation of a regressor (D25, D32), all in double precision."""

from __future__ import annotations

from typing import Any

from bayesvm.core.heads import Regression
from bayesvm.core.tube import MOST_DEVIATIONS, SMALLEST_VARIANCE, AnyTube, VaryingTube, noise_variance
from bayesvm.export.features import MemberNodes
from bayesvm.export.graph import Value, clip, exp, log, maximum, sqrt
from bayesvm.export.mixtures import Parts


def mean_and_deviation(parts: Parts, head: Regression) -> tuple[Value, Value]:
    """Mean and standard deviation in the units of y."""
    mean = parts.mixed(lambda member, _: member.mean)

    def square(member: MemberNodes, link: AnyTube) -> Value:
        epistemic = maximum(member.variance * link.factor, SMALLEST_VARIANCE)
        own: Value = epistemic + _noise(link, member.mean, member.variance)
        return own if parts.alone else own + (member.mean - mean) * (member.mean - mean)

    return mean * head.spread + head.centre, sqrt(parts.mixed(square)) * head.spread


def _noise(link: AnyTube, m: Value, v: Value) -> Any:
    """The variance of the noise; ε is proportional to s, so the variance grows with its square."""
    usual: Any = noise_variance(link.epsilon, link.scale)
    if not isinstance(link, VaryingTube):
        return usual
    by_mean, by_square, by_variance = link.growth
    z = (clip(m, *link.ends) - link.means[0]) / link.means[1]
    u = (log(maximum(v, SMALLEST_VARIANCE)) - link.log_variances[0]) / link.log_variances[1]
    size = z * by_mean + z * z * by_square + clip(u, -MOST_DEVIATIONS, MOST_DEVIATIONS) * by_variance
    return exp(size * 2.0) * float(usual)
