"""Whether a member gets local models, which kernel they have, and what whole fits with them say of new rows (D30)."""

import dataclasses
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
from sklearn.metrics import log_loss

from bayesvm import BayesianSVC
from bayesvm.core.heads import Binary, OneVsRest
from bayesvm.core.latent import Block
from bayesvm.core.leaves import Tree
from bayesvm.core.likelihoods import noisy
from bayesvm.core.members import Member, MemberViews
from bayesvm.core.workspace import Workspace
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.datasets import waveform
from bayesvm.inference import fitting, leaves, leaving_out, local
from bayesvm.inference.kernel_model import KernelModel
from bayesvm.inference.learning_rates import AdaptiveRate
from bayesvm.inference.leaves import SCALES, VARIANCES, Found, Probe, find_leaves, with_leaves
from bayesvm.inference.linear_model import LinearModel
from bayesvm.inference.local import LeafRows, LeafSetup
from bayesvm.inference.session import Listeners, NoCheckpoint
from bayesvm.inference.settings import Settings
from bayesvm.kernels import RBF

SETTINGS = Settings(
    likelihood=noisy("exact", 1.0),
    inference="auto",
    tune=None,
    tune_interval=10,
    scale="standard",
    link="calibrated",
    batch_size=128,
    learning_rate=AdaptiveRate(),
    max_iter=100,
    tol=1e-4,
    time_limit=None,
    precision="auto",
    n_jobs=1,
    seed=7,
)
MODEL = KernelModel({"rbf": RBF(0.8, 3.0)}, 60, 1_000, "kmeans", learn_inducing=False, learn_relevance=True)
HEADS = {"two classes": Binary((0.5,)), "three classes": OneVsRest((0.3, 0.3, 0.4))}

every_head = pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)


@dataclasses.dataclass(frozen=True)
class Rows:
    """Checked rows in memory."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None = None

    @property
    def n_rows(self):
        return len(self.y)

    @property
    def n_features(self):
        return self.X.shape[1]

    def source(self, workers, rows_per_block, rng):
        return MemorySource(self.X, self.y, self.weight, ColumnScaler(), workers, rows_per_block)

    groups = None

    def given(self, numbers):
        return numbers

    def changes(self, numbers, moments):
        return None


def a_board(n_rows, n_classes=2, seed=0, squares=10):
    """Squares of different classes, of which one row in twenty has another one."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(0, squares, (n_rows, 2))
    y = np.floor(X).sum(axis=1).astype(int) % n_classes
    noise = generator.random(n_rows) < 0.05
    return X, np.where(noise, generator.integers(0, n_classes, n_rows), y)


def smooth(n_rows, n_classes=2, seed=0):
    """Classes by a straight line and noise."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, (n_rows, 2))
    f = X[:, 0] + 0.5 * generator.standard_normal(n_rows)
    return X, np.searchsorted(np.quantile(f, np.arange(1, n_classes) / n_classes), f)


@contextmanager
def a_base(rows, head, model=MODEL, **changes):
    """A member without local models, its rows as it sees them, and the session it is trained in."""
    settings = dataclasses.replace(SETTINGS, **changes)
    with fitting._opened(settings, model, head, rows, Listeners(), NoCheckpoint()) as (raw, session):
        prepared = model.prepare(raw, session)
        source = raw.scaled(prepared.scaler)
        yield fitting.trained_base(model, source, prepared, session, 0), source, session


def losses_on(rows, candidate, source, link):
    """The log loss of a candidate at every one of some rows in the units of the table."""
    problem = candidate.problem
    member = Member(problem.features, tuple(candidate.trained.functions), leaves=candidate.leaves)
    block = Block(source.scaler(rows.X), rows.y, None)
    (said,) = MemberViews.of([member], link, len(rows.y), np.float64).moments([block], Workspace())
    return link.row_losses(said.mean, said.variance, rows.y)


# ---- whether there are to be some ----


@every_head
@pytest.mark.parametrize("base_rows", [10_000, 1_000], ids=["member of all rows", "member of few rows"])
def test_what_local_models_gain_is_what_they_gain_on_new_rows(monkeypatch, head, base_rows):
    monkeypatch.setattr(leaves, "BASE_ROWS", base_rows)
    with a_base(Rows(*a_board(2_500, head.n_classes)), head) as (base, source, session):
        assert base.whole == (base_rows > 2_500)
        found = find_leaves(base, source, session, 0)
        local = with_leaves(base, found, source, session, 0)
    new, loss = Rows(*a_board(4_000, head.n_classes, seed=1)), []
    for candidate in (base, local):
        link = head.fit_link(candidate.left_out)
        loss.append(losses_on(new, candidate, source, link))
        left = candidate.left_out
        expected = link.row_losses(left.mean, left.variance, left.y).mean()
        assert expected == pytest.approx(loss[-1].mean(), abs=0.035)
    assert found.worth_having
    gained = (loss[0] - loss[1]).mean()
    assert gained > 0.05
    assert found.gained == pytest.approx(gained, abs=0.05)
    assert 0 < found.error < 0.03


@every_head
def test_local_models_of_a_smooth_function_are_not_worth_having(head):
    with a_base(Rows(*smooth(2_500, head.n_classes)), head) as (base, source, session):
        found = find_leaves(base, source, session, 0)
    assert not found.worth_having
    assert found.gained < 0.003


@pytest.mark.parametrize(
    ("gained", "error", "worth"),
    [(0.0031, 0.001, True), (0.0029, 0.0, False), (0.02, 0.011, False), (0.02, 0.009, True)],
)
def test_a_gain_must_be_real_and_large_enough(gained, error, worth):
    nothing = np.zeros(0, np.intp)
    tree = Tree(np.zeros((0, 2)), np.zeros(0), nothing, nothing)
    assert Found(tree, RBF(), gained=gained, error=error).worth_having == worth


def test_a_model_without_length_scales_has_none():
    head = HEADS["two classes"]
    with a_base(Rows(*smooth(300)), head, LinearModel(np.array(0.5), True, True)) as (base, source, session):
        assert find_leaves(base, source, session, 0) is None


# ---- tree and kernel ----


def test_the_tree_has_leaves_of_about_the_same_size_and_all_rows_are_sorted_into_them():
    with a_base(Rows(*a_board(2_500)), HEADS["two classes"]) as (base, source, session):
        found = find_leaves(base, source, session, 0)
        assert found.tree.n_leaves == round(2_500 / leaves.LEAF_ROWS)
        numbers = [rows.numbers for rows in next(found.buckets.map(lambda rows: rows, [range(found.tree.n_leaves)]))]
    sizes = [len(mine) for mine in numbers]
    assert sorted(np.concatenate(numbers)) == list(range(2_500))
    assert max(sizes) <= 2 * min(sizes) + 2


def test_a_table_that_cannot_be_held_gets_as_many_leaves_as_its_rows_need(monkeypatch):
    """The sample has smaller leaves' worth of rows, but leaves of the same size, for the trial."""
    monkeypatch.setattr(leaves, "most_held", lambda n_features: 1_200)
    monkeypatch.setattr(leaves, "at_most", lambda source, n_rows, rng: source.subset(min(n_rows, 1_200), rng))
    with a_base(Rows(*a_board(4_000)), HEADS["two classes"]) as (base, source, session):
        found = find_leaves(base, source, session, 0)
        assert found.buckets is None
        assert found.tree.n_leaves == 10
        local = with_leaves(base, found, source, session, 0)
        sizes = np.bincount(found.tree.leaf_of(source.gathered().X), minlength=10)
    assert len(local.leaves.leaves) == 10
    assert sizes.max() <= 2.5 * sizes.min()


@pytest.fixture
def a_probe():
    head = HEADS["two classes"]
    with a_base(Rows(*a_board(1_200)), head) as (base, source, session):
        found = find_leaves(base, source, session, 0)
        kernel = base.problem.features.kernel
        setup = leaves.leaf_setup(base, kernel, session, 0)
        assert isinstance(setup, LeafSetup)
        groups = found.buckets.map(lambda rows: [LeafRows.of(mine, setup) for mine in rows], [[0], [1, 2]])
        yield Probe(list(groups), kernel, session.workers, session.clock)


def test_kernels_are_those_of_the_member_with_other_length_scales_and_variances(a_probe):
    X = np.random.default_rng(0).standard_normal((5, 2))
    for scale, variance in product((0, 2, 4), (0, 3)):
        kernel = a_probe.kernel((scale, variance))
        expected = VARIANCES[variance] * RBF(1.0, 1.0)(X / (SCALES[scale] * a_probe.base.length_scales))
        np.testing.assert_allclose(kernel(X), expected, rtol=1e-6)


def test_no_step_from_the_kernel_that_is_chosen_lowers_the_loss(a_probe):
    """Wherever the search begins; most of the time it ends at the best of all."""
    loss = {
        place: a_probe._loss(a_probe.trained(place)) for place in product(range(len(SCALES)), range(len(VARIANCES)))
    }
    ends = []
    for first in ((0, 0), (1, 3), (4, 5)):
        (scale, variance), trained = a_probe.best(first)
        nearby = [(scale + 1, variance), (scale - 1, variance), (scale, variance + 1), (scale, variance - 1)]
        assert loss[scale, variance] == min(loss[place] for place in [(scale, variance), *nearby] if place in loss)
        assert loss[scale, variance] <= loss[first]
        again = a_probe.trained((scale, variance))
        np.testing.assert_array_equal(trained[0].final[0].mean, again[0].final[0].mean)
        ends.append(loss[scale, variance])
    assert ends.count(min(loss.values())) >= 2


def test_more_leaves_decide_only_where_the_first_ones_leave_doubt(monkeypatch, a_probe):
    monkeypatch.setattr(leaves, "PROBED_FIRST", leaves.PROBED_TOGETHER)  # one of the two groups
    alone = dataclasses.replace(a_probe, rows=a_probe.rows[:1])
    for certain, deciding in ((0.0, alone), (np.inf, a_probe)):
        monkeypatch.setattr(leaves, "CERTAIN", certain)
        place, _, gained, error = a_probe.decision((1, 3))
        assert place == deciding.best(alone.best((1, 3))[0])[0]
        assert (gained, error) == deciding.gain(deciding.trained(place))


def test_kernels_that_cannot_be_factored_are_passed_over(monkeypatch, a_probe):
    trained = Probe.trained

    def fragile(self, place):
        if place[1] > largest:
            raise leaves.NotPositiveDefiniteError("not")
        return trained(self, place)

    monkeypatch.setattr(Probe, "trained", fragile)
    largest = 2
    (_, variance), _ = a_probe.best((1, 3))
    assert variance <= 2
    largest = -1
    with pytest.raises(leaves.NotPositiveDefiniteError, match="no kernel of local models"):
        a_probe.best((1, 3))


# ---- the member with its leaves ----


@every_head
def test_rows_left_out_are_in_the_order_of_the_member(monkeypatch, head):
    """Some of the rows only, in an order that is not that of the table."""
    monkeypatch.setattr(leaving_out, "LOO_ROWS", 500)
    rows = Rows(*a_board(1_300, head.n_classes), np.random.default_rng(0).uniform(0.5, 2, 1_300))
    with a_base(rows, head) as (base, source, session):
        found = find_leaves(base, source, session, 0)
        local = with_leaves(base, found, source, session, 0)
        moments = MemberViews.of(
            [Member(base.problem.features, tuple(base.trained.functions), leaves=local.leaves)],
            head.fit_link(local.left_out), 1_300, np.float64,
        ).moments([source.gathered()], Workspace())[0]  # fmt: skip
    assert (np.diff(base.left_out_rows) < 0).any()
    np.testing.assert_array_equal(local.left_out_rows, base.left_out_rows)
    np.testing.assert_array_equal(local.left_out.y, rows.y[base.left_out_rows])
    np.testing.assert_array_equal(local.left_out.weight, rows.weight[base.left_out_rows])
    # What is said of a row without it is closer to what is said of it with it than to that of other rows.
    there = moments.mean[base.left_out_rows]
    for k in range(head.n_functions):
        assert np.corrcoef(local.left_out.mean[:, k], there[:, k])[0, 1] > 0.7
        assert abs(np.corrcoef(local.left_out.mean[:, k], moments.mean[np.sort(base.left_out_rows), k])[0, 1]) < 0.3


def test_leaves_that_were_cut_short_are_not_called_converged(monkeypatch):
    with a_base(Rows(*a_board(1_300)), HEADS["two classes"]) as (base, source, session):
        found = find_leaves(base, source, session, 0)
        assert with_leaves(base, found, source, session, 0).trained.converged
        monkeypatch.setattr(local, "UPDATES", 1)
        assert not with_leaves(base, found, source, session, 0).trained.converged


def test_the_same_bits_whatever_the_number_of_threads():
    seen = []
    for n_jobs in (1, 2):
        with a_base(Rows(*a_board(1_700)), HEADS["two classes"], n_jobs=n_jobs) as (base, source, session):
            found = find_leaves(base, source, session, 0)
            local = with_leaves(base, found, source, session, 0)
        posteriors = [leaf.functions[0].posterior for leaf in local.leaves.leaves]
        seen.append(
            [found.gained, found.error, local.left_out.mean, *(part for q in posteriors for part in vars(q).values())]
        )
    for one, other in zip(*seen, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_mean_below_is_that_of_a_random_choice_of_rows_where_there_are_many(monkeypatch):
    monkeypatch.setattr(leaves, "BASE_ROWS", 400)
    with a_base(Rows(*a_board(900)), HEADS["two classes"]) as (base, source, session):
        part = leaves.base_rows(source, session)
        assert part.n_rows == 400
        assert len(np.unique(part.numbers)) == 400
        assert base.problem.total_weight == 400
        assert not base.whole
        np.testing.assert_array_equal(np.sort(base.left_out_rows), np.arange(900))
        monkeypatch.setattr(leaves, "BASE_ROWS", 900)
        assert leaves.base_rows(source, session) is source


# ---- whole fits ----


def fitted(X, y, **changes):
    return BayesianSVC(random_state=0, **changes).fit(X, y)


@pytest.mark.slow
def test_fine_detail_gets_local_models_that_predict_better():
    X, y = a_board(5_000, squares=12)
    new, truth = a_board(5_000, seed=1, squares=12)
    with_them, without = fitted(X, y), fitted(X, y, local=False)
    assert all(member.leaves is not None for member in with_them.fitted_.members)
    assert all(member.leaves is None for member in without.fitted_.members)
    loss = log_loss(truth, with_them.predict_proba(new))
    assert loss < log_loss(truth, without.predict_proba(new)) - 0.005
    assert with_them.loo_log_loss_ == pytest.approx(loss, abs=0.045)  # a twentieth of the rows less matters here
    assert "Local models in" in str(with_them.tuning_report_)


@pytest.mark.slow
def test_a_smooth_function_stays_global():
    table, new = waveform(4_500, random_state=0), waveform(20_000, random_state=1)
    with_them, without = (fitted(table.X, table.y, local=local) for local in ("auto", False))
    assert all(member.leaves is None for member in with_them.fitted_.members)
    assert "Local models would gain" in str(with_them.tuning_report_)
    loss = [log_loss(new.y, model.predict_proba(new.X)) for model in (with_them, without)]
    assert loss[0] == pytest.approx(loss[1], abs=0.005)
    assert with_them.loo_log_loss_ == pytest.approx(loss[0], abs=0.02)


@pytest.mark.slow
def test_a_whole_fit_has_the_same_bits_whatever_the_number_of_threads():
    X, y = a_board(4_200, squares=12)
    one, other = (fitted(X, y, local=True, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.fitted_.member.leaves is not None
    np.testing.assert_array_equal(one.predict_proba(X[:500]), other.predict_proba(X[:500]))
    assert one.loo_log_loss_ == other.loo_log_loss_


@pytest.mark.slow
def test_few_rows_get_local_models_only_if_they_are_asked_for():
    X, y = a_board(1_500, squares=6)
    assert all(member.leaves is None for member in fitted(X, y).fitted_.members)
    asked = fitted(X, y, local=True)
    assert all(member.leaves is not None for member in asked.fitted_.members)
    new, truth = a_board(3_000, seed=1, squares=6)
    assert asked.loo_log_loss_ == pytest.approx(log_loss(truth, asked.predict_proba(new)), abs=0.05)


@pytest.mark.parametrize("tune", [None, "elbo"])
def test_local_models_need_a_kernel_that_was_tuned(tune):
    X, y = smooth(200)
    with pytest.raises(ValueError, match=r"local=True needs tune='auto' or 'loo'"):
        fitted(X, y, local=True, tune=tune)
    assert all(member.leaves is None for member in fitted(X, y, tune=None).fitted_.members)
