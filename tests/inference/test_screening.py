"""Which effects residuals ask for (D27): planted ones are found, chance finds none, scores are Bayes factors."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from bayesvm.inference import screening
from bayesvm.inference.screening import Residuals, factors_of, screened

N = 1500


def table(rng, n_rows=N):
    """Continuous columns, one of small integers, one that is mostly zero, and a category in one-hot form."""
    category = np.eye(4)[rng.integers(0, 4, n_rows)]
    mostly_zero = np.where(rng.random(n_rows) < 0.8, 0.0, rng.exponential(size=n_rows))
    return np.column_stack([rng.standard_normal((n_rows, 3)), rng.integers(0, 12, n_rows), mostly_zero, category])


def smooth(X):
    """Log odds that the predictions know of."""
    return 0.8 * X[:, 0] - 0.5 * np.sin(X[:, 1])


def residuals(y, p):
    return Residuals((y - p)[:, None], (p * (1 - p))[:, None])


def drawn(rng, X, extra=0.0):
    """Residuals of predictions that know the smooth part alone."""
    y = rng.random(len(X)) < expit(smooth(X) + extra)
    return residuals(y, expit(smooth(X)))


JUMP = lambda X: 2.0 * ((X[:, 2] > 0.3) & (X[:, 2] < 0.9)) - 0.4
PAIR = lambda X: 1.5 * np.sign(X[:, 0]) * np.sign(X[:, 2])
OF_INTEGERS = lambda X: np.where(X[:, 3] % 2 == 0, 1.2, -1.2)
OF_CATEGORY = lambda X: X[:, 5:] @ np.array([1.0, -1.0, 0.5, -0.5])
CATEGORY_AND_NUMBER = lambda X: 1.5 * np.sign(X[:, 1]) * (X[:, 5:] @ np.array([1.0, -1.0, 1.0, -1.0]))
PLANTED = {
    "a jump": (JUMP, (2,), 1),
    "even integers": (OF_INTEGERS, (3,), 1),
    "categories": (OF_CATEGORY, (5, 6, 7, 8), 1),
    "a pair": (PAIR, (0, 2), 2),
    "a category and a number": (CATEGORY_AND_NUMBER, (1, 5, 6, 7, 8), 2),
}


# ---- what is found ----


@pytest.mark.parametrize(("effect", "columns", "n_factors"), PLANTED.values(), ids=PLANTED)
def test_a_planted_effect_is_admitted_by_its_columns(effect, columns, n_factors):
    rng = np.random.default_rng(0)
    X = table(rng)
    first = screened(X, drawn(rng, X, effect(X)))[0]
    assert (tuple(sorted(first.columns)), first.factors) == (columns, n_factors)
    assert first.gain > screening.MARGIN


def test_two_planted_effects_are_both_admitted_the_more_useful_first():
    rng = np.random.default_rng(1)
    X = table(rng, 3000)
    found = screened(X, drawn(rng, X, 1.5 * OF_INTEGERS(X) + PAIR(X)))
    assert {tuple(sorted(one.columns)) for one in found[:2]} == {(3,), (0, 2)}
    assert found[0].gain > found[1].gain


def test_chance_alone_has_hardly_any_admissions():
    """Residuals drawn from the probabilities themselves."""
    admitted = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = table(rng, 800)
        admitted += bool(screened(X, drawn(rng, X)))
    assert admitted <= 2


def test_an_effect_is_not_admitted_again_by_a_copy_of_its_column():
    rng = np.random.default_rng(0)
    X = table(rng)
    X[:, 1] = 3.0 * X[:, 2] + 1.0
    found = screened(X, drawn(rng, X, JUMP(X)))
    assert len(found) == 1
    assert found[0].columns in {(1,), (2,)}


def test_a_pair_must_gain_more_than_its_columns_do_alone():
    """Two effects that add up are no pair."""
    rng = np.random.default_rng(0)
    X = table(rng, 3000)
    found = screened(X, drawn(rng, X, OF_INTEGERS(X) + JUMP(X)))
    assert [one.columns for one in found] == [(3,), (2,)]


def test_what_does_not_hold_on_the_other_half_of_the_rows_is_refused():
    """Even rows say up, odd rows say down: together nothing; one half says so very clearly."""
    rng = np.random.default_rng(0)
    X = table(rng)
    y = np.where((X[:, 2] > 0) & (np.arange(N) % 2 == 0), 1.0, rng.random(N) < 0.5)
    flipped = np.where((X[:, 2] > 0) & (np.arange(N) % 2 == 1), 0.3, y)
    assert not screened(X, residuals(flipped, np.full(N, 0.5)))


def test_one_class_of_several_may_ask_for_an_effect():
    rng = np.random.default_rng(0)
    X = table(rng)
    asked, quiet = drawn(rng, X, JUMP(X)), drawn(rng, X)
    both = Residuals(*(np.hstack(parts) for parts in zip(quiet, asked, strict=True)))
    assert screened(X, both)[0].columns == (2,)


def test_columns_that_are_all_constant_ask_for_nothing():
    assert screened(np.ones((50, 3)), residuals(np.ones(50), np.full(50, 0.2))) == []


def test_there_is_a_limit_to_effects_and_points(monkeypatch):
    rng = np.random.default_rng(0)
    X = table(rng, 3000)
    given = X, drawn(rng, X, 2 * OF_INTEGERS(X) + 2 * JUMP(X) + OF_CATEGORY(X))
    assert len(screened(*given)) >= 3
    monkeypatch.setattr(screening, "MOST_EFFECTS", 2)
    assert len(screened(*given)) == 2
    monkeypatch.setattr(screening, "MOST_POINTS", 5)
    assert len(screened(*given)) == 1


# ---- scores ----


@pytest.mark.parametrize(("R", "W"), [(0.0, 3.0), (4.0, 2.5), (-9.0, 20.0), (0.5, 0.0)])
def test_the_score_of_one_cell_is_the_log_bayes_factor_by_quadrature(R, W):
    """``log ∫ exp(R b - W b²/2) N(b; 0, a) db``, the best of the prior variances."""
    cells = np.zeros(4, np.intp)
    given = Residuals(np.full((4, 1), R / 4), np.full((4, 1), W / 4))

    def log_factor(a):
        integrand = lambda b: np.exp(R * b - 0.5 * W * b**2) * stats.norm(0, np.sqrt(a)).pdf(b)
        top, width = R / (W + 1 / a), 12 / np.sqrt(W + 1 / a)
        return np.log(integrate.quad(integrand, top - width, top + width)[0])

    factors = [log_factor(a) for a in screening.PRIOR_VARIANCES]
    found, prior_variance = screening._score(cells, given)
    assert found == pytest.approx(max(factors), abs=1e-8)
    assert prior_variance == screening.PRIOR_VARIANCES[int(np.argmax(factors))]


def test_cells_and_functions_are_independent_so_their_scores_add_up(monkeypatch):
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 3, 60)
    given = Residuals(rng.normal(0, 0.4, (60, 2)), rng.uniform(0.05, 0.25, (60, 2)))
    monkeypatch.setattr(screening, "PRIOR_VARIANCES", (0.7,))
    total = 0.0
    for cell in range(3):
        for number in range(2):
            rows = cells == cell
            part = Residuals(*(each[rows, number : number + 1] for each in given))
            total += screening._score(np.zeros(rows.sum(), np.intp), part)[0]
    assert screening._score(cells, given)[0] == pytest.approx(total)


def test_the_score_approximates_how_much_a_real_fit_of_the_effect_gains():
    """The log evidence of labels with a Gaussian effect of a cell on the log odds, by quadrature, no approximation."""
    rng = np.random.default_rng(0)
    p, a = rng.uniform(0.2, 0.8, 120), 0.3
    odds = np.log(p / (1 - p))
    y = rng.random(120) < expit(odds + 0.6)

    def likelihood(b):
        return np.exp(np.sum(np.where(y, np.log(expit(odds + b) / p), np.log(expit(-odds - b) / (1 - p)))))

    evidence = integrate.quad(lambda b: likelihood(b) * stats.norm(0, np.sqrt(a)).pdf(b), -4, 4)[0]
    found = screening._score(np.zeros(120, np.intp), residuals(y, p))[0]
    best = max(found, 0.0)
    assert best == pytest.approx(np.log(evidence), abs=0.7)
    assert best > 1


# ---- factors ----


def test_one_hot_columns_are_one_factor_and_others_stand_alone():
    rng = np.random.default_rng(0)
    X = table(rng)
    assert [factor.columns for factor in factors_of(X)] == [(0,), (1,), (2,), (3,), (4,), (5, 6, 7, 8)]
    category = factors_of(X)[-1]
    assert category.cells.max() == 3
    np.testing.assert_array_equal(category.cells, X[:, 5:].argmax(axis=1))
    np.testing.assert_array_equal(category.cells, category.coarse)


def test_a_category_without_its_first_column_has_a_cell_for_rows_without_a_one():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 4, 200)
    (factor,) = factors_of(np.eye(4)[code][:, 1:])
    assert factor.columns == (0, 1, 2)
    np.testing.assert_array_equal(factor.cells, code)


def test_binary_columns_that_overlap_are_not_one_category():
    rng = np.random.default_rng(0)
    flags = rng.integers(0, 2, (200, 3)).astype(float)
    assert [factor.columns for factor in factors_of(flags)] == [(0,), (1,), (2,)]
    two = np.hstack([np.eye(3)[rng.integers(0, 3, 200)], np.eye(2)[rng.integers(0, 2, 200)]])
    assert [factor.columns for factor in factors_of(two)] == [(0, 1, 2), (3, 4)]


def test_constant_columns_are_no_factors():
    X = np.column_stack([np.full(50, 7.0), np.arange(50), np.zeros(50)])
    assert [factor.columns for factor in factors_of(X)] == [(1,)]


def test_few_values_have_a_cell_each_and_many_share_cells_in_their_order():
    rng = np.random.default_rng(0)
    X = table(rng)
    integers, many = factors_of(X)[3], factors_of(X)[2]
    np.testing.assert_array_equal(integers.cells, X[:, 3])
    for cells in (many.cells, many.coarse):
        in_order = cells[np.argsort(X[:, 2])]
        assert (np.diff(in_order) >= 0).all()
        assert set(in_order) == set(range(cells.max() + 1))
        count = np.bincount(cells)
        assert count.max() <= count.min() + 1
    assert many.coarse.max() < many.cells.max() < screening.CELLS


def test_a_value_that_most_rows_have_does_not_swallow_the_others():
    X = table(np.random.default_rng(0))
    mostly_zero = factors_of(X)[4]
    assert len(np.unique(mostly_zero.cells[X[:, 4] > 0])) > 40
    assert len(np.unique(mostly_zero.cells[X[:, 4] == 0])) == 1


def test_united_findings_are_listed_once_and_have_few_enough_points():
    def pair(first, second, n_cells):
        return screening.Found((first, second), 2, np.arange(n_cells), 10.0, 1.0)

    large, other, again, small = pair(0, 1, 250), pair(2, 3, 200), pair(0, 1, 240), pair(4, 5, 60)
    assert screening.united([large, other], [again, small]) == [large, small]


# ---- from a finding to an effect ----
