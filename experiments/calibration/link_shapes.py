"""Calibration: other shapes of the calibrated link, fitted to the same leave-one-out marginals.

The hinge loss has kinks at f = ±1. With little noise before it (D22), rows of very different probability come to lie
there, so that the probability as a function of f may rise steeply at -1 and at 1, and slowly in between. One or two
probits near each other cannot follow.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import erfcx, log_ndtr, log_softmax, ndtr, softmax

from bayesvm.core.links import fit_probit, fit_two_probits
from bayesvm.evaluation import Predictions, metrics

STEEPER = 1.5  # log of how much steeper than the best single probit those at the kinks are expected to be
# Deviations of the normal priors: log a and centre of the middle probit, of those at the kinks, log odds of the shares.
MIDDLE, KINKS, ODDS = (0.5, 0.5), (1.0, 0.2), 1.0


def mixture(parameters, m, v):
    """P(second class) of three probits, by log a, centre, and log odds over the first."""
    shares = softmax([0.0, *parameters[6:]])
    each = zip(np.exp(parameters[:3]), parameters[3:6], shares, strict=True)
    return sum(share * ndtr(a * (m - centre) / np.sqrt(1 + a * a * v)) for a, centre, share in each)


def fit_three(m, v, sign, around):
    """Maximum likelihood with normal priors: one probit near the best single one, one at either kink of the hinge."""
    log_a, centre = np.log(around.scale), -around.bias / around.scale
    prior = np.array([log_a, log_a + STEEPER, log_a + STEEPER, centre, -1.0, 1.0, 0.0, 0.0])
    deviation = np.array([MIDDLE[0], KINKS[0], KINKS[0], MIDDLE[1], KINKS[1], KINKS[1], ODDS, ODDS])

    def loss(parameters):
        log_share = log_softmax([0.0, *parameters[6:]])
        parts, by_log_a, by_centre = [], [], []
        for k in range(3):
            a = np.exp(parameters[k])
            root = np.sqrt(1 + a * a * v)
            away = sign * a * (m - parameters[3 + k]) / root
            parts.append(log_share[k] + log_ndtr(away))
            hazard = np.sqrt(2 / np.pi) / erfcx(-away / np.sqrt(2))
            by_log_a.append(hazard * away / root**2)
            by_centre.append(-hazard * sign * a / root)
        log_p = np.logaddexp(np.logaddexp(parts[0], parts[1]), parts[2])
        owned = [np.exp(part - log_p) for part in parts]
        slopes = [*(own @ slope for own, slope in zip(owned * 2, by_log_a + by_centre, strict=True))]
        slopes += [owned[k].sum() - len(m) * np.exp(log_share[k]) for k in (1, 2)]
        scaled = (parameters - prior) / deviation
        return -log_p.sum() + 0.5 * scaled @ scaled, scaled / deviation - np.array(slopes)

    return minimize(loss, prior, jac=True, method="L-BFGS-B", options={"ftol": 1e-7}).x


def judged(ours, where, label, n_bootstrap):
    """Metrics of every link: on test rows, fitted to leave-one-out; and ours on the left-out rows themselves."""
    m, v, left = ours["left out mean"], ours["left out variance"], ours["left out label"]
    sign, weight = np.where(left, 1.0, -1.0), np.ones(len(left))
    one = fit_probit(m, v, sign, weight)
    two = fit_two_probits(m, v, sign, weight, one)
    three = fit_three(m, v, sign, one)
    new = ours["f mean"][where], ours["f variance"][where]
    said = {
        "one probit": (ndtr(one.score(*new)), label),
        "two probits": (ndtr(two.score(*new)), label),
        "three probits": (mixture(three, *new), label),
        "two probits, left-out rows": (ndtr(two.score(m, v)), left),
    }
    found = {
        name: metrics(Predictions.of([False, True], y, np.column_stack([1 - p, p])), n_bootstrap=n_bootstrap)
        for name, (p, y) in said.items()
    }
    return found | {"centres": three[3:6].tolist(), "scales": np.exp(three[:3]).tolist()}
