"""Contract of every head (D11, D25). A head that is added to core/heads needs an entry in ``ENTRIES``."""

import importlib
import inspect
import pickle
import pkgutil
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.special import entr, softmax
from scipy.stats import norm

from bayesvm.core import heads
from bayesvm.core.cavities import Cavities
from bayesvm.core.heads import Binary, ClassHead, OneVsRest, Regression
from bayesvm.core.heads.classes import RARE_ROWS
from bayesvm.core.links import PLAIN_LINKS, Probit, TwoProbits
from bayesvm.core.members import MemberMoments
from tests.oracles import numerical_gradient

N = 600


@dataclass(frozen=True)
class Entry:
    """A head, and rows whose y depend on marginals of f in a way that no plain link describes."""

    head: object
    draw: object  # y of marginals (m, v), at random
    links: tuple = field(default=())  # by name, for ``named_link``

    def rows(self, n_rows=N, seed=0):
        generator = np.random.default_rng(seed)
        m = 2 * generator.standard_normal((n_rows, self.head.n_functions))
        v = generator.uniform(0.1, 2, m.shape)
        return Cavities(m, v, self.draw(m, v, generator), generator.uniform(0.2, 2, n_rows))


def binary_draw(m, v, generator):
    p = norm.cdf((0.4 * m[:, 0] - 0.5) / np.sqrt(1 + 0.16 * v[:, 0]))
    return (generator.random(len(m)) < p).astype(int)


def classes_draw(m, v, generator):
    p = softmax(0.7 * m / np.sqrt(1 + v) + np.array([0.8, 0.0, -0.8]), axis=1)
    return (generator.random((len(m), 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(max=2)


def numbers_draw(m, v, generator):
    return m[:, 0] + np.sqrt(v[:, 0]) * generator.standard_normal(len(m)) + generator.laplace(0, 0.7, len(m))


ENTRIES = {
    Binary: Entry(Binary((0.07,)), binary_draw, tuple(PLAIN_LINKS)),
    OneVsRest: Entry(OneVsRest((0.1, 0.6, 0.3)), classes_draw, tuple(PLAIN_LINKS)),
    Regression: Entry(Regression(3.0, 2.0), numbers_draw),
}
CLASSES = [entry for entry in ENTRIES.values() if isinstance(entry.head, ClassHead)]
every_head = pytest.mark.parametrize("entry", ENTRIES.values(), ids=lambda entry: type(entry.head).__name__)
every_class_head = pytest.mark.parametrize("entry", CLASSES, ids=lambda entry: type(entry.head).__name__)


def heads_in(modules):
    """What can be a head: classes with targets and links that somebody could make."""
    found = {c for module in modules for _, c in inspect.getmembers(module, inspect.isclass)}
    return {
        c
        for c in found
        if hasattr(c, "target")
        and hasattr(c, "fit_link")
        and not inspect.isabstract(c)
        and not getattr(c, "_is_protocol", False)
    }


def modules_of(package):
    names = [info.name for info in pkgutil.iter_modules(package.__path__)]
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def test_every_head_in_the_package_is_under_contract():
    assert heads_in(modules_of(heads)) == set(ENTRIES)


def test_a_head_without_an_entry_would_be_seen():
    class Module:
        class Ordinal:
            target = fit_link = None

    assert heads_in([*modules_of(heads), Module]) - set(ENTRIES) == {Module.Ordinal}


# ---- targets ----


@every_head
def test_targets_are_one_number_for_every_row_and_function(entry):
    y = entry.rows().y
    columns = [entry.head.target(y, number) for number in range(entry.head.n_functions)]
    assert all(column.shape == y.shape and column.dtype == np.float64 for column in columns)
    # They say all that y says: rows with other targets have another y, and the other way round.
    targets = np.column_stack(columns)
    for value in np.unique(y):
        assert len(np.unique(targets[y == value], axis=0)) == 1
    assert len(np.unique(targets, axis=0)) == len(np.unique(y))


def test_targets_of_classes_are_plus_one_for_the_class():
    np.testing.assert_array_equal(Binary((0.5,)).target(np.array([0, 1, 1]), 0), [-1, 1, 1])
    three = OneVsRest((0.2, 0.3, 0.5))
    np.testing.assert_array_equal(three.target(np.array([0, 1, 2]), 2), [-1, -1, 1])


# ---- links ----


@every_head
def test_a_fitted_link_lowers_the_loss_and_a_refined_one_does_not_raise_it(entry):
    rows, fresh = entry.rows(5_000), entry.rows(5_000, seed=1)
    link = entry.head.fit_link(rows)
    refined = entry.head.refine_link(link, rows)

    def loss(link, rows):
        return np.average(link.row_losses(rows.mean, rows.variance, rows.y), weights=rows.weight)

    for plain in map(entry.head.named_link, entry.links):
        assert loss(link, rows) < loss(plain, rows) - 0.01
        assert loss(link, fresh) < loss(plain, fresh) - 0.01
    assert loss(refined, rows) <= loss(link, rows) + 1e-4
    assert loss(refined, fresh) <= loss(link, fresh) + 0.002


@every_head
def test_a_fitted_link_does_not_depend_on_the_unit_of_weights_nor_on_rows_of_no_weight(entry):
    rows = entry.rows()
    link = entry.head.fit_link(rows)
    heavy = entry.head.fit_link(rows._replace(weight=100 * rows.weight))
    lied = rows.take(np.arange(N))
    more = Cavities.joined([rows, lied._replace(y=np.roll(lied.y, 1), weight=np.zeros(N))])
    for other in (heavy, entry.head.fit_link(more)):
        found, expected = (each.row_losses(rows.mean, rows.variance, rows.y) for each in (other, link))
        np.testing.assert_allclose(np.exp(-found), np.exp(-expected), atol=1e-4)


@every_head
def test_the_loss_is_the_sum_over_rows_and_has_the_derivatives_that_it_says(entry):
    rows = entry.rows(40)
    m, v, y, weight = rows.mean, rows.variance, rows.y, rows.weight
    link = entry.head.fit_link(entry.rows())
    loss, by_mean, by_variance = link.loss(m, v, y, weight)
    assert loss == pytest.approx(weight @ link.row_losses(m, v, y))
    if isinstance(entry.head, ClassHead):
        assert loss == pytest.approx(-weight @ np.log(link.probabilities(m, v)[np.arange(40), y]))
    np.testing.assert_allclose(
        by_mean, numerical_gradient(lambda m: link.loss(m, v, y, weight)[0], m), rtol=1e-5, atol=1e-7
    )
    np.testing.assert_allclose(
        by_variance, numerical_gradient(lambda v: link.loss(m, v, y, weight)[0], v), rtol=1e-5, atol=1e-7
    )


@every_class_head
def test_probabilities_add_up_to_one_and_decisions_have_their_order(entry):
    rows, head = entry.rows(), entry.head
    for link in (head.fit_link(rows), *map(head.named_link, entry.links)):
        part = [MemberMoments(rows.mean, rows.variance, link)]
        p, scores = head.probabilities(part), head.decision(part)
        assert p.shape == (N, head.n_classes)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        most = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        clear = np.sort(p, axis=1)[:, -1] > np.sort(p, axis=1)[:, -2] + 1e-9
        np.testing.assert_array_equal(most[clear], p.argmax(axis=1)[clear])
        losses = link.row_losses(rows.mean, rows.variance, rows.y)
        np.testing.assert_allclose(losses, -np.log(p[np.arange(N), rows.y]), atol=1e-12)


@every_class_head
def test_only_links_with_fitted_parameters_are_calibrated(entry):
    rows = entry.rows()
    link = entry.head.fit_link(rows)
    assert entry.head.is_calibrated(link)
    assert entry.head.is_calibrated(entry.head.refine_link(link, rows))
    assert not any(entry.head.is_calibrated(entry.head.named_link(name)) for name in entry.links)


def test_few_rows_have_one_probit_and_many_have_two():
    entry = ENTRIES[Binary]
    for n_rows, same in ((500, True), (4_000, False)):
        rows = entry.rows(n_rows)._replace(weight=np.ones(n_rows))
        link = entry.head.fit_link(rows)
        refined = entry.head.refine_link(link, rows)
        assert isinstance(refined, TwoProbits)
        assert (refined.scale == (link.scale, link.scale)) == same


# ---- what rows say ----


@pytest.mark.parametrize("n_classes", [2, 3, 10, 100])
def test_balanced_classes_are_even(n_classes):
    head = Binary((0.5,)) if n_classes == 2 else OneVsRest((1 / n_classes,) * n_classes)
    assert head.evenness == pytest.approx(1)


@pytest.mark.parametrize("share", [0.2, 0.01, 0.001])
def test_of_two_classes_evenness_is_four_times_the_share_of_a_rare_one(share):
    assert Binary((share,)).evenness == pytest.approx(Binary((1 - share,)).evenness)
    assert Binary((share,)).evenness == pytest.approx(4 * share, rel=1.01 * share)
    assert Binary((share,)).evenness < 1


def test_evenness_is_how_often_two_rows_differ_relative_to_balanced_classes():
    """By drawing pairs of rows."""
    rates = np.array([0.02, 0.08, 0.3, 0.6])
    first, second = np.random.default_rng(0).choice(4, (2, 200_000), p=rates)
    assert OneVsRest(tuple(rates)).evenness == pytest.approx(np.mean(first != second) / 0.75, rel=0.01)


@every_class_head
def test_residuals_are_labels_minus_probabilities_with_their_variance(entry):
    rows, head = entry.rows(200), entry.head
    link = head.fit_link(rows)
    difference, weight = head.residuals(link, rows)
    p = link.probabilities(rows.mean, rows.variance)
    n_effective = rows.weight.sum() ** 2 / np.sum(rows.weight**2)
    for number in range(head.n_functions):
        label = 1 if head.n_functions == 1 else number
        for i in (0, 7, 199):
            share = rows.weight[i] / rows.weight.sum() * n_effective
            assert difference[i, number] == pytest.approx(share * ((rows.y[i] == label) - p[i, label]))
            assert weight[i, number] == pytest.approx(share * p[i, label] * (1 - p[i, label]))
    assert difference.shape == weight.shape == (200, head.n_functions)


@every_class_head
def test_under_the_right_link_residuals_have_the_variance_that_they_state(entry):
    """Labels drawn from the probabilities; without weights."""
    rows = entry.rows(20_000)._replace(weight=np.ones(20_000))
    link = entry.head.fit_link(rows)
    p = link.probabilities(rows.mean, rows.variance)
    drawn = (np.random.default_rng(0).random((20_000, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(max=p.shape[1] - 1)
    difference, weight = entry.head.residuals(link, rows._replace(y=drawn))
    np.testing.assert_allclose(np.sum(difference**2, axis=0), np.sum(weight, axis=0), rtol=0.05)
    assert (np.abs(difference.sum(axis=0)) < 4 * np.sqrt(weight.sum(axis=0))).all()


# ---- far from all data ----


@every_class_head
@pytest.mark.parametrize("variance", [0.3, 4.0, 100.0])
def test_far_from_all_data_predictions_are_the_base_rates(entry, variance):
    head = entry.head
    rates = np.array(head.rates) if head.n_functions > 1 else np.array([1 - head.rates[0], head.rates[0]])
    fitted = head.fit_link(entry.rows())
    for link in (None, fitted):
        c = np.array([head.prior_means(variance, link)])
        known = link or head.named_link("probit")
        p = known.probabilities(c, np.full(c.shape, variance))[0]
        if link is None and head.n_functions > 1:
            # One against the rest: every class alone has its rate, before they are divided by their sum.
            p = norm.cdf(c[0] / np.sqrt(1 + variance))
        np.testing.assert_allclose(p, rates, rtol=1e-6)


# ---- samples ----


@every_class_head
def test_strata_are_those_of_y(entry):
    y = entry.rows().y
    strata = entry.head.strata(y)
    assert strata.dtype == np.intp
    np.testing.assert_array_equal(np.unique(strata, return_inverse=True)[1], np.unique(y, return_inverse=True)[1])


@every_class_head
def test_a_sample_of_the_rows_needed_has_some_of_the_rarest_class(entry):
    head = entry.head
    y = np.zeros(100_000, int)
    y[: 1_000 * (head.n_classes - 1)] = 1 + np.arange(1_000 * (head.n_classes - 1)) % (head.n_classes - 1)
    needed = head.rows_needed(y, 100)
    assert needed == pytest.approx(RARE_ROWS / 0.01, rel=1e-6)
    drawn = np.random.default_rng(0).choice(y, needed, replace=False)
    assert np.bincount(drawn, minlength=head.n_classes).min() > RARE_ROWS / 2
    assert head.rows_needed(np.arange(100) % head.n_classes, 5_000) == 5_000


# ---- files ----


@every_head
def test_a_head_is_what_its_parameters_make(entry):
    assert type(entry.head)(**vars(entry.head)) == entry.head
    assert pickle.loads(pickle.dumps(entry.head)) == entry.head  # noqa: S301


# ---- uncertainty ----


def mixture(entry, n_rows=200):
    """Three members."""
    rows = [entry.rows(n_rows, seed) for seed in range(3)]
    link = entry.head.fit_link(rows[0])
    pairs = zip(rows, (0.5, 0.3, 0.2), strict=True)
    return link, [MemberMoments(each.mean, each.variance, link, share) for each, share in pairs]


@every_class_head
def test_uncertainty_of_a_mixture_is_divided_into_its_parts(entry):
    link, parts = mixture(entry)
    found = entry.head.uncertainty_of([link])(parts)
    p = entry.head.probabilities(parts)
    np.testing.assert_allclose(found["total"], entr(p).sum(axis=1))
    np.testing.assert_allclose(found["total"], found["aleatoric"] + found["epistemic"])
    assert (found["aleatoric"] >= 0).all()
    assert (found["epistemic"] >= -1e-12).all()
    # The aleatoric part is the members' own, so what they disagree about is epistemic.
    alone = [entry.head.uncertainty_of([link])([MemberMoments(each.mean, each.variance, link)]) for each in parts]
    own = sum(part.share * each["aleatoric"] for part, each in zip(parts, alone, strict=True))
    np.testing.assert_allclose(found["aleatoric"], np.minimum(own, found["total"]))


@every_class_head
def test_disagreement_between_members_is_epistemic(entry):
    """Two members that know f, each as sure as the other, of which one moves away from the other."""
    head, n = entry.head, entry.head.n_functions
    link, known = head.fit_link(entry.rows()), np.full((1, n), 1e-12)
    first = np.zeros((1, n))
    first[0, 0] = 3.0
    gaps = []
    for other in (first, 0.5 * first, -first):
        parts = [MemberMoments(m, known, link, 0.5) for m in (first, other)]
        found = head.uncertainty_of([link])(parts)
        entropies = [entr(link.probabilities(m, known)).sum() for m in (first, other)]
        assert found["aleatoric"].item() == pytest.approx(np.mean(entropies), abs=1e-5)
        gaps.append(found["epistemic"].item())
    assert gaps[0] == pytest.approx(0, abs=1e-5)
    assert gaps[0] < gaps[1] < gaps[2]


@every_class_head
def test_more_is_epistemic_where_f_is_less_known(entry):
    head, link = entry.head, entry.head.fit_link(entry.rows())
    m = entry.rows(50).mean
    share = []
    for v in (1e-10, 0.5, 5.0):
        found = head.uncertainty_of([link])([MemberMoments(m, np.full(m.shape, v), link)])
        np.testing.assert_allclose(found["total"], found["aleatoric"] + found["epistemic"])
        share.append(np.mean(found["epistemic"] / found["total"]))
    assert share[0] == pytest.approx(0, abs=1e-4)
    assert share[0] < share[1] < share[2]


@pytest.mark.parametrize(
    "link", [*PLAIN_LINKS.values(), Probit(0.4, -1.0), TwoProbits((2.0, 0.3), (0.1, -0.4), 0.3)], ids=repr
)
def test_the_interval_contains_the_probability(link):
    head, rows = Binary((0.5,)), ENTRIES[Binary].rows(200)
    _, parts = mixture(ENTRIES[Binary])
    for given in ([MemberMoments(rows.mean, rows.variance, link)], [part._replace(link=link) for part in parts]):
        found, p = head.uncertainty_of([link])(given), head.probabilities(given)[:, 1]
        assert (found["lower"] <= p).all()
        assert (p <= found["upper"]).all()
        assert (found["lower"] < found["upper"]).all()


def test_the_interval_has_95_per_cent_of_f():
    """Of one member, and of several that agree."""
    head, link = Binary((0.5,)), Probit(1.0, 0.0)
    m, v = np.array([[0.3], [-1.0]]), np.array([[0.5], [2.0]])
    draws = m + np.sqrt(v) * np.random.default_rng(0).standard_normal((2, 200_000))
    low, high = np.quantile(norm.cdf(draws), [0.025, 0.975], axis=1)
    one = [MemberMoments(m, v, link)]
    two = [MemberMoments(m, v, link, share) for share in (0.3, 0.7)]
    for parts in (one, two):
        found = head.uncertainty_of([link])(parts)
        np.testing.assert_allclose(found["lower"], low, atol=0.005)
        np.testing.assert_allclose(found["upper"], high, atol=0.005)


def test_the_interval_of_members_that_disagree_covers_what_they_say():
    """Against the quantiles of draws from the mixture, on scales of f that differ by a factor of ten."""
    head, rng = Binary((0.5,)), np.random.default_rng(0)
    links = [Probit(1.0, 0.0), Probit(0.1, 0.0)]
    for means, widest in (((-4.0, -40.0), 0.05), ((1.0, 10.0), 0.6), ((-1.0, 10.0), 1.0)):
        parts = [
            MemberMoments(np.array([[m]]), np.array([[(0.3 / link.scale) ** 2]]), link, 0.5)
            for m, link in zip(means, links, strict=True)
        ]
        found = head.uncertainty_of(links)(parts)
        draws = [
            norm.cdf(link.scale * rng.normal(m, 0.3 / link.scale, 50_000)) for m, link in zip(means, links, strict=True)
        ]
        low, high = np.quantile(np.concatenate(draws), [0.025, 0.975])
        assert found["lower"][0] <= low + 0.02
        assert found["upper"][0] >= high - 0.02
        assert found["upper"][0] - found["lower"][0] <= widest


@pytest.mark.parametrize("head", [Binary((0.5,)), OneVsRest((0.3, 0.3, 0.4))], ids=["two classes", "three"])
def test_probabilities_of_a_committee_are_at_most_one(head):
    """Shares that do not add up to one to the last digit would otherwise make probabilities that metrics refuse."""
    rows, sure = np.arange(50), np.zeros((50, head.n_functions))
    sure[:, 0] = 40.0
    link = head.fit_link(Cavities(sure + np.arange(head.n_functions), sure + 1, rows % 2, np.ones(50)))
    shares = np.array([0.1] * 7 + [0.3])
    parts = [MemberMoments(sure, sure * 0, link.sharpened(50.0), share) for share in shares]
    stated = head.probabilities(parts)
    assert stated.max() <= 1
    assert stated.min() >= 0
