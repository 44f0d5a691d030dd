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
from bayesvm.datasets import waveform
from bayesvm.inference.fitting import fit, update
from bayesvm.inference.kernel_model import KernelModel
from bayesvm.inference.learning_rates import AdaptiveRate
from bayesvm.inference.linear_model import LinearModel
from bayesvm.inference.session import Listeners
from bayesvm.inference.settings import Settings
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

    def given(self, numbers):
        return numbers


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
    assert value.scale in {"standard", "robust", "quantile"}
    assert len(value.members) == 1
    assert (value.member.weight, value.member.region, value.member.parent) == (1.0, None, None)
    assert [function.target for function in value.member.functions] == list(range(head.n_functions))
    np.testing.assert_array_equal(value.left_out_rows, np.arange(N))
    np.testing.assert_array_equal(value.left_out_y, rows.y)
    np.testing.assert_array_equal(value.left_out_weight, np.ones(N) if rows.weight is None else rows.weight)
    assert len(value.training.trace) > 1
    assert not value.training.interrupted


@every_case
def test_the_left_out_loss_is_that_of_its_probabilities(given):
    value = fitted(given)
    p = value.head.probabilities(value.left_out_moments)[np.arange(N), value.left_out_y]
    assert value.left_out_loss == pytest.approx(np.average(-np.log(p), weights=value.left_out_weight))
    # Something was learned: it is below the loss of the base rates.
    rates = np.bincount(value.left_out_y, value.left_out_weight)
    assert value.left_out_loss < -np.sum(rates * np.log(rates / rates.sum())) / rates.sum()


def test_only_tuning_has_a_report_and_says_which_trial_was_kept():
    assert fitted(CASES["kernel"]).report is None
    value = fitted(CASES["tuned"])
    kept = value.report.trials[value.report.kept]
    assert (kept.what, kept.scale, kept.n_inducing) == ("fit", value.scale, value.member.features.n_weights)
    assert kept.loo == pytest.approx(value.left_out_loss)


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
