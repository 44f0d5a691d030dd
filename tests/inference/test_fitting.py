"""``fit`` and ``update``: from settings and rows to a value, and nothing else that anybody could notice."""

import dataclasses
import pickle
from copy import deepcopy

import numpy as np
import pytest

from bayesvm.core.heads import Binary, OneVsRest
from bayesvm.core.latent import Block
from bayesvm.core.likelihoods import noisy
from bayesvm.core.workspace import Workspace
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.datasets import waveform
from bayesvm.inference import leaving_out
from bayesvm.inference.calibrating import fitted_link, mean_loss
from bayesvm.inference.committees import MOST_MEMBERS, sharpened, stacked
from bayesvm.inference.fitting import fit, update
from bayesvm.inference.kernel_model import KernelModel
from bayesvm.inference.learning_rates import AdaptiveRate
from bayesvm.inference.linear_model import LinearModel
from bayesvm.inference.problem import Problem
from bayesvm.inference.scalings import SCALES
from bayesvm.inference.session import Listeners
from bayesvm.inference.settings import Settings
from bayesvm.inference.training import Plan, train
from bayesvm.inference.tuning_report import Trial
from bayesvm.kernels import RBF

N, D = 400, 5
WAVES = waveform(N, random_state=0)
X, TWO = WAVES.X[:, :D] * np.array([1.0, 10.0, 0.1, 1.0, 5.0]) + 3.0, (WAVES.y == 1).astype(np.int32)
THREE = np.digitize(WAVES.X[:, 0] + WAVES.X[:, 3], [1.0, 3.0]).astype(np.int32)
NEW = Block(X[::3] + 0.1, np.zeros(len(X[::3])), None)


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
    tol=1e-5,
    time_limit=None,
    precision="auto",
    n_jobs=1,
    seed=7,
)
KERNEL = KernelModel({"rbf": RBF(2.0, 3.0)}, 30, 1_000, "kmeans", learn_inducing=False, learn_relevance=True)
WEIGHT = np.random.default_rng(0).uniform(0.2, 2, N)
CASES = {
    "kernel": (SETTINGS, KERNEL, Binary((0.4,)), Rows(X, TWO)),
    "three classes, weights": (SETTINGS, KERNEL, OneVsRest((0.3, 0.3, 0.4)), Rows(X, THREE, WEIGHT)),
    "tuned": (dataclasses.replace(SETTINGS, tune="auto", scale="auto"), KERNEL, Binary((0.4,)), Rows(X, TWO)),
    "minibatches": (dataclasses.replace(SETTINGS, inference="stochastic"), KERNEL, Binary((0.4,)), Rows(X, TWO)),
    "linear": (SETTINGS, LinearModel(np.array(0.5), True, True), Binary((0.4,)), Rows(X, TWO)),
    "mean field": (SETTINGS, LinearModel(np.array(0.5), True, False), OneVsRest((0.3, 0.3, 0.4)), Rows(X, THREE)),
}
every_case = pytest.mark.parametrize("given", CASES.values(), ids=CASES)


def fitted(given, **changes):
    settings, model, head, rows = given
    return fit(settings, model, head, rows, Listeners(), **changes)


def predicted(value):
    return value.head.probabilities(value.views.moments([NEW], Workspace()))


def predicted_in_units(value):
    """The same for rows in the units of the table."""
    return value.head.probabilities(value.views.moments([NEW._replace(X=value.scaler(NEW.X))], Workspace()))


def assert_equal(one, other, where="fitted"):
    """Field by field, to the last bit; of a trial, not the seconds that it took."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, err_msg=where)
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_equal(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for i, pair in enumerate(zip(one, other, strict=True)):
            assert_equal(*pair, f"{where}[{i}]")
    elif dataclasses.is_dataclass(one):
        for name in (entry.name for entry in dataclasses.fields(one)):
            if not (isinstance(one, Trial) and name == "seconds"):
                assert_equal(getattr(one, name), getattr(other, name), f"{where}.{name}")
    elif hasattr(one, "__dict__") and not callable(one):
        assert_equal(vars(one), vars(other), where)
    else:
        assert one == other or one is other, where


# ---- purity ----


@every_case
def test_the_same_settings_and_rows_give_an_equal_value(given):
    assert_equal(fitted(given), fitted(given))


def test_what_finds_equal_values_finds_unequal_ones():
    one, other = fitted(CASES["kernel"]), fitted(CASES["minibatches"])
    with pytest.raises(AssertionError, match="fitted"):
        assert_equal(one, other)


@every_case
def test_nothing_is_written_to_what_is_given(given):
    before = deepcopy(given)
    fitted(given)
    assert_equal(before, given, "given")


@every_case
def test_a_fitted_value_is_frozen(given):
    value = fitted(given)
    for part in (value, value.member, value.member.functions[0], value.training, value.head):
        for entry in dataclasses.fields(part):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(part, entry.name, None)


@every_case
def test_the_state_of_numpys_own_generator_does_not_matter(given):
    np.random.seed(0)  # noqa: NPY002
    one = fitted(given)
    np.random.seed(1)  # noqa: NPY002
    assert_equal(one, fitted(given))


@every_case
def test_a_value_survives_pickling(given):
    value = fitted(given)
    again = pickle.loads(pickle.dumps(value))  # noqa: S301
    assert_equal(value, again)
    np.testing.assert_array_equal(predicted(again), predicted(value))
    assert again.left_out_loss == value.left_out_loss


@every_case
def test_predictions_change_nothing(given):
    value = fitted(given)
    first = predicted(value)
    np.testing.assert_array_equal(predicted(value), first)
    assert_equal(value, fitted(given))


# ---- what is in it ----


@every_case
def test_a_value_states_what_was_given_and_what_was_learned(given):
    settings, _, head, rows = given
    value = fitted(given)
    assert value.head is head
    assert value.likelihood is settings.likelihood
    assert value.n_samples == N
    assert value.scale in SCALES
    assert len(value.members) == 1 or settings.tune == "auto"
    assert len(value.members) <= MOST_MEMBERS
    assert sum(member.weight for member in value.members) == pytest.approx(1)
    for member in value.members:
        assert member.weight > 0
        assert member.leaves is None
        assert [function.target for function in member.functions] == list(range(head.n_functions))
    np.testing.assert_array_equal(value.left_out_rows, np.arange(N))
    np.testing.assert_array_equal(value.left_out_y, rows.y)
    np.testing.assert_array_equal(value.left_out_weight, np.ones(N) if rows.weight is None else rows.weight)
    assert value.training.trace
    assert np.isfinite(value.training.trace).all()
    assert not value.training.interrupted


@every_case
def test_the_left_out_loss_is_that_of_its_probabilities(given):
    value = fitted(given)
    p = value.head.probabilities(value.left_out_moments)[np.arange(N), value.left_out_y]
    assert value.left_out_loss == pytest.approx(np.average(-np.log(p), weights=value.left_out_weight))
    # Something was learned: it is below the loss of the base rates.
    rates = np.bincount(value.left_out_y, value.left_out_weight)
    assert value.left_out_loss < -np.sum(rates * np.log(rates / rates.sum())) / rates.sum()


def test_only_tuning_has_a_report_and_says_which_trials_were_kept():
    assert fitted(CASES["kernel"]).report is None
    value = fitted(CASES["tuned"])
    kept = value.report.trials[value.report.kept :]
    assert len(kept) == len(value.members)
    assert kept[0].scale == value.scale
    for trial, member, left in zip(kept, value.members, value.left_out, strict=True):
        assert trial.what.startswith("fit")
        assert trial.n_inducing == len(member.features.inducing_points)
        assert trial.loo == pytest.approx(mean_loss(member.link or value.link, left))


# ---- committees ----


def test_of_a_committee_every_member_has_its_own_link_and_the_heaviest_comes_first():
    value = fitted(CASES["tuned"])
    assert len(value.members) > 1
    weights = [member.weight for member in value.members]
    assert weights == sorted(weights, reverse=True)
    links = [fitted_link(value.head, "calibrated", left) for left in value.left_out]
    assert_equal([member.link for member in value.members], sharpened(links, value.left_out, np.array(weights)))
    assert_equal(value.link, value.member.link)
    pairs = zip(links, value.left_out, strict=True)
    losses = np.column_stack([link.row_losses(left.mean, left.variance, left.y) for link, left in pairs])
    np.testing.assert_allclose(weights, stacked(losses, np.ones(N), 0.0, len(weights)), atol=1e-6)


def test_members_are_fits_of_their_own_features():
    """Each is what training from the prior makes of its features; together they say the mean."""
    settings, _, head, _ = CASES["tuned"]
    value, total = fitted(CASES["tuned"]), 0.0
    for member in value.members:
        scaler = member.scaler or value.scaler
        source = MemorySource(scaler(X), TWO, None, ColumnScaler(), Workers(1), 128)
        problem = Problem(member.features, head, settings.likelihood, np.float64, float(N))
        start = problem.start([function.offset for function in member.functions])
        plan = Plan("batch", 300, 1e-9, 128, AdaptiveRate())
        alone = train(problem, source, plan, start, np.random.default_rng(0)).functions
        moments = problem.view(alone, 0)[0].moments([NEW._replace(X=scaler(NEW.X))], Workspace())
        total = total + member.weight * member.link.probabilities(moments.mean, moments.variance)
    np.testing.assert_allclose(predicted_in_units(value), total, atol=0.01)


class TwoScalings:
    """A model of two members, one for each scaling."""

    def __init__(self, model, scales):
        self.model, self.scales = model, scales

    def __getattr__(self, name):
        return getattr(self.model, name)

    def prepare(self, raw, session):
        each = [dataclasses.replace(session.settings, scale=scale) for scale in self.scales]
        first, second = (self.model.prepare(raw, dataclasses.replace(session, settings=one)) for one in each)
        return dataclasses.replace(first, others=(second,))


def test_members_may_differ_in_scaling():
    """Then the model leaves the columns as they are, and every member scales its own."""
    settings, model, head, rows = CASES["kernel"]
    model = dataclasses.replace(model, inducing=X[:30])  # the same points, without a random choice
    value = fit(settings, TwoScalings(model, ("standard", "common")), head, rows, Listeners())
    assert len(value.members) == 2
    np.testing.assert_array_equal(value.scaler(X), X)
    total = 0.0
    for scale in ("standard", "common"):
        alone = fitted((dataclasses.replace(settings, scale=scale), model, head, rows))
        pairs = zip(value.members, value.left_out, strict=True)
        ((member, left),) = (pair for pair in pairs if np.allclose(pair[0].scaler.scale, alone.scaler.scale))
        assert mean_loss(alone.link, left) == pytest.approx(alone.left_out_loss)
        total = total + member.weight * predicted_in_units(dataclasses.replace(alone, link=member.link))
    np.testing.assert_allclose(predicted_in_units(value), total, atol=1e-9)


def test_members_of_one_scaling_share_it():
    settings, model, head, rows = CASES["kernel"]
    value = fit(settings, TwoScalings(model, ("standard", "standard")), head, rows, Listeners())
    assert len(value.members) == 2
    assert all(member.scaler is None for member in value.members)
    assert_equal(value.scaler, fitted(CASES["kernel"]).scaler)


class Interrupted(TwoScalings):
    """Somebody asks to stop while the second member is trained."""

    def train(self, problem, source, plan, prepared, session, name):
        if name == "training of member 1":
            session.clock.stop.make()
        return self.model.train(problem, source, plan, prepared, session, name)


def test_members_that_are_interrupted_are_judged_on_the_rows_of_all(monkeypatch):
    """The first one was left out on all rows, the second on a few."""
    monkeypatch.setattr(leaving_out, "FEW_LOO_ROWS", 60)
    settings, model, head, rows = CASES["kernel"]
    model = Interrupted(dataclasses.replace(model, inducing=X[:30]), ("standard", "common"))
    value = fit(settings, model, head, rows, Listeners())
    assert value.training.interrupted
    assert len(value.left_out) == len(value.members)
    for left in value.left_out:
        np.testing.assert_array_equal(left.y, TWO[value.left_out_rows])
        assert len(left.y) == 60
    whole = fitted((settings, model.model, head, rows))
    (left,) = (
        left
        for left, member in zip(value.left_out, value.members, strict=True)
        if member.scaler is None or np.allclose(member.scaler.scale, whole.scaler.scale)
    )
    np.testing.assert_allclose(left.mean, whole.left_out[0].mean[value.left_out_rows])


def test_no_further_member_is_begun_when_time_is_over():
    settings, model, head, rows = CASES["kernel"]
    settings = dataclasses.replace(settings, time_limit=1e-9)
    value = fit(settings, TwoScalings(model, ("standard", "common")), head, rows, Listeners())
    assert len(value.members) == 1
    assert (value.member.weight, value.member.link, value.member.scaler) == (1.0, None, None)
    earlier = fitted(CASES["tuned"])  # whose weights are given, so that all members are needed
    again = fitted((dataclasses.replace(CASES["tuned"][0], time_limit=1e-9), *CASES["tuned"][1:]), start=earlier)
    assert len(again.members) == len(earlier.members) > 1


def test_a_committee_continues_with_all_its_members_and_their_weights():
    settings, model, head, _ = CASES["tuned"]
    value = fitted(CASES["tuned"])
    more = update(settings, model, head, Rows(X[:100] + 0.01, TWO[:100]), Listeners(), value)
    again = fitted(CASES["tuned"], start=value)
    for other in (more, again):
        assert [member.weight for member in other.members] == [member.weight for member in value.members]
        for one, two in zip(value.members, other.members, strict=True):
            assert_equal(one.features, two.features)
    assert len(more.left_out) == len(value.members)
    assert [len(left.y) for left in more.left_out] == [N + 100] * len(value.members)
    np.testing.assert_allclose(predicted_in_units(again), predicted_in_units(value), atol=0.01)


def test_a_committee_of_fits_has_the_mean_of_their_leave_one_out_probabilities():
    one, other = fitted(CASES["kernel"]), fitted((dataclasses.replace(SETTINGS, seed=8), *CASES["kernel"][1:]))
    light, heavy = one.member, dataclasses.replace(other.member, weight=3.0, link=other.link)
    both = dataclasses.replace(one, members=(light, heavy), left_out=(*one.left_out, *other.left_out))
    parts = [value.head.probabilities(value.left_out_moments) for value in (one, other)]
    np.testing.assert_allclose(both.head.probabilities(both.left_out_moments), 0.25 * parts[0] + 0.75 * parts[1])
    losses = -np.log((0.25 * parts[0] + 0.75 * parts[1])[np.arange(N), TWO])
    assert both.left_out_loss == pytest.approx(losses.mean())
    np.testing.assert_allclose(predicted(both), 0.25 * predicted(one) + 0.75 * predicted(other))


# ---- from an earlier value ----


def test_a_warm_start_keeps_scaling_and_features_and_ends_where_it_was():
    given = CASES["kernel"]
    value = fitted(given)
    before = deepcopy(value)
    again = fitted(given, start=value)
    assert_equal(before, value)
    assert_equal(value.member.features, again.member.features)
    assert_equal(value.scaler, again.scaler)
    np.testing.assert_allclose(predicted(again), predicted(value), atol=2e-3)
    assert len(again.training.trace) < len(value.training.trace)


def test_updates_add_rows_and_leave_the_earlier_value_as_it_was():
    settings, model, head, _ = CASES["kernel"]
    parts = [Rows(X[part], TWO[part]) for part in (slice(0, 200), slice(200, N))]
    first = update(settings, model, head, parts[0], Listeners(), None)
    before = deepcopy(first)
    second = update(settings, model, head, parts[1], Listeners(), first)
    assert_equal(before, first)
    assert (first.n_samples, second.n_samples) == (200, N)
    assert second.left_out_rows is None
    np.testing.assert_array_equal(second.left_out_y, TWO)
    assert_equal(first.member.features, second.member.features)
    assert second.left_out_loss < first.left_out_loss + 0.05
    gained = np.linalg.eigvalsh(
        second.member.functions[0].posterior.natural.precision - first.member.functions[0].posterior.natural.precision
    )
    assert gained.min() > -1e-6  # more rows, and never less precision


def test_a_fit_that_fails_says_which_column_is_the_likeliest_cause():
    bad = X.copy()
    bad[:, 2] *= 1e200
    settings, _, head, _ = CASES["kernel"]
    settings = dataclasses.replace(settings, scale=None, column_names=("a", "b", "c", "d", "e"))
    with pytest.raises(ValueError, match="column 'c'"):
        fitted((settings, LinearModel(np.array(1.0), True, True), head, Rows(bad, TWO)))
