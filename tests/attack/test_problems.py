"""The attack itself: it finds nothing in a few problems, and it finds what is planted."""

import numpy as np
import pytest

from bayesvm import BayesianSVC
from tests.attack.problems import Problem, ProblemFailedError, attack, outcome, problem

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 2))
Y = (X[:, 0] > 0).astype(int)


def test_a_few_problems():
    counts, failures = attack(25)
    assert failures == []
    assert counts["fitted"] + counts["rejected"] == 25
    assert counts["fitted"] > 15


def test_a_seed_is_a_problem():
    first, again = problem(7), problem(7)
    assert repr(first.estimator) == repr(again.estimator)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.new, again.new)


class Planted(BayesianSVC):
    """Goes wrong in one method."""

    def __init__(self, method, wrong):
        super().__init__(tune=None, random_state=0)
        self.method, self.wrong = method, wrong

    def __getattribute__(self, name):
        usual = super().__getattribute__(name)
        if name != object.__getattribute__(self, "__dict__").get("method"):  # a copy has none at first
            return usual
        return lambda *given: self.wrong(usual(*given))


def fails(error):
    def wrong(_):
        raise error

    return wrong


@pytest.mark.parametrize(
    ("method", "wrong", "message"),
    [
        ("predict_proba", lambda p: p * np.nan, "not finite"),
        ("predict_proba", lambda p: p * 0.9, "add up to one"),
        ("predict_proba", lambda p: p[:, ::-1], "most probable"),
        ("predict_uncertainty", lambda u: u | {"upper": u["lower"]}, "excludes the probability"),
        ("predict_uncertainty", lambda u: u | {"total": u["total"] + 1}, "not the total"),
        ("fit", fails(FloatingPointError("overflow")), "FloatingPointError: overflow"),
        ("fit", fails(RuntimeWarning("overflow")), "RuntimeWarning: overflow"),
        ("fit", fails(ValueError("")), "says only"),
    ],
)
def test_what_is_planted_is_found(method, wrong, message):
    with pytest.raises(ProblemFailedError, match=f"seed 3: .*{message}"):
        outcome(Problem(3, Planted(method, wrong), X, Y, None, X))


def test_a_clear_error_is_a_refusal():
    assert outcome(Problem(3, BayesianSVC(tune=None), X * np.inf, Y, None, X)) == "rejected"
    assert outcome(Problem(3, BayesianSVC(tune=None), X, Y, None, X)) == "fitted"
