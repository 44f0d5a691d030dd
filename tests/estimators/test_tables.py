"""Fits from files: the same bits as from memory, whatever the order of the rows; predictions go back to files."""

import errno
import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import log_loss

from bayesvm import BayesianLinearSVC, BayesianSVC, load, open_table
from bayesvm.data import blocks
from bayesvm.data.streams import StreamSource
from bayesvm.data.tables.rows import FileRows
from bayesvm.datasets import waveform
from bayesvm.inference import training

DATA = waveform(6000, random_state=0)
X, Y = DATA.X.astype(np.float32), DATA.y
THREE = np.array(["low", "middle", "up"])[np.digitize(X[:, 7], [1.0, 3.0])]
NAMES = [f"x{j}" for j in range(X.shape[1])]


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch):
    """A table of 6,000 rows is streamed, with 1,500 of them at hand."""
    monkeypatch.setattr(blocks, "HELD_ENTRIES", 1_500 * X.shape[1])
    monkeypatch.setattr(blocks, "FEWEST_HELD", 1_500)
    monkeypatch.setattr(training, "SMALLEST_SUBSET", 200)


def arrow(rows=X, y=Y, **more):
    return pa.table(dict(zip(NAMES, rows.T, strict=True)) | {"y": y} | more)


def fits(make, table, *arrays):
    """From files and from memory."""
    return make().fit(table), make().fit(*arrays)


def require_equal(streamed, held):
    assert streamed.predict_proba(X[:300]).tobytes() == held.predict_proba(X[:300]).tobytes()
    assert streamed.elbo_trace_.tolist() == held.elbo_trace_.tolist()
    assert streamed.loo_log_loss_ == held.loo_log_loss_
    np.testing.assert_array_equal(streamed.loo_indices_, held.loo_indices_)
    np.testing.assert_array_equal(streamed.classes_, held.classes_)


def require_near(found, expected):
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_array_equal(found, expected)


pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")

MODELS = {
    "growing subsets": lambda: BayesianSVC(n_inducing=20, tune=None, random_state=0),
    "double": lambda: BayesianSVC(n_inducing=20, tune=None, precision="double", n_jobs=2, random_state=1),
    "tuned": lambda: BayesianSVC(n_inducing=30, random_state=0),
    "quantile": lambda: BayesianSVC(n_inducing=20, tune=None, scale="quantile", random_state=0),
    "stochastic": lambda: BayesianSVC(
        n_inducing=10, tune=None, inference="stochastic", batch_size=300, max_iter=12, tol=1e-3, random_state=0
    ),
    "linear": lambda: BayesianLinearSVC(random_state=0),
    "mean field": lambda: BayesianLinearSVC(covariance="diagonal", max_iter=8, tol=0, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_streamed_fit_is_bit_identical_to_one_in_memory(name, tmp_path):
    parquet.write_table(arrow(), tmp_path / "all.parquet", row_group_size=1700)
    require_equal(*fits(MODELS[name], open_table(tmp_path / "all.parquet", "y"), X, Y))


@pytest.mark.parametrize("suffix", ["feather", "csv.gz", "libsvm"])
def test_every_format_fits(suffix, tmp_path):
    path = tmp_path / f"all.{suffix}"
    rows = X.astype(np.float64)
    if suffix == "feather":
        feather.write_feather(arrow(rows), str(path), chunksize=1000)
    elif suffix == "libsvm":
        dump_svmlight_file(rows, Y, str(path), zero_based=False)
    else:
        with pa.output_stream(str(path), compression="gzip") as file:
            csv.write_csv(arrow(rows), file)
    make = MODELS["growing subsets"]
    with open_table(path, None if suffix == "libsvm" else "y") as table:
        streamed, held = fits(make, table, rows, Y)
        if suffix == "libsvm":  # whose writer and parser round
            np.testing.assert_allclose(streamed.predict_proba(rows), held.predict_proba(rows), atol=1e-5)
        else:
            require_equal(streamed, held)


@pytest.mark.parametrize("order", ["label", "feature"])
def test_the_order_of_the_rows_in_files_does_no_harm(order, tmp_path):
    """With everything from random rows: scaling, points, subsets, leave-one-out."""
    by = np.argsort(Y if order == "label" else X[:, 4], kind="stable")
    for part, rows in enumerate(np.array_split(by, 5)):
        parquet.write_table(arrow(X[rows], Y[rows]), tmp_path / f"{part}.parquet", row_group_size=400)
    streamed = BayesianSVC(n_inducing=40, tune=None, random_state=0).fit(open_table(tmp_path, "y"))
    held = BayesianSVC(n_inducing=40, tune=None, random_state=0).fit(X, Y)
    fresh = waveform(2000, random_state=9)
    losses = [log_loss(fresh.y, model.predict_proba(fresh.X)) for model in (streamed, held)]
    assert losses[0] == pytest.approx(losses[1], abs=0.01)
    assert streamed.loo_log_loss_ == pytest.approx(losses[0], abs=0.03)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_minibatches_of_a_sorted_file_are_random(tmp_path):
    """The first column is the position in the table; batches should have rows from everywhere, and all classes."""
    by = np.argsort(Y, kind="stable")
    numbered = X[by].copy()
    numbered[:, 0] = np.arange(len(by))
    parquet.write_table(arrow(numbered, Y[by]), tmp_path / "sorted.parquet", row_group_size=500)
    model = BayesianSVC(n_inducing=5, tune=None, random_state=0)
    seen = []

    class Watched(StreamSource):
        def minibatches(self, size, rng):
            for batch in super().minibatches(size, rng):
                block = batch.gathered()
                seen.append((self.scaler.inverse(block.X)[:, 0], block.y))
                yield batch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bayesvm.estimators.tables.StreamSource", Watched)
        model.set_params(inference="stochastic", batch_size=250, max_iter=4).fit(
            open_table(tmp_path / "sorted.parquet", "y")
        )
    epochs = [np.concatenate([places for places, _ in seen[start : start + 6]]) for start in range(0, len(seen) - 5, 6)]
    assert len(epochs) >= 2
    for places in epochs:
        assert len(np.unique(np.rint(places))) == 1500  # each row once
    assert len(np.intersect1d(np.rint(epochs[0]), np.rint(epochs[1]))) < 700  # a fresh choice in each epoch
    share = (Y > 0).mean()
    for places, classes in seen:
        assert abs(places.mean() / 6000 - 0.5) < 5 * 0.29 / np.sqrt(250)
        assert abs(classes.mean() - share) < 5 * 0.5 / np.sqrt(250)


def test_text_labels_weights_and_class_weights(tmp_path):
    weight = np.random.default_rng(0).random(len(X)) + 0.1
    parquet.write_table(arrow(y=THREE, w=weight), tmp_path / "t.parquet", row_group_size=1100)
    table = open_table(tmp_path / "t.parquet", "y", weight="w")
    for class_weight in (None, "balanced", {"low": 2.0}):
        make = lambda class_weight=class_weight: BayesianSVC(
            n_inducing=15, tune=None, class_weight=class_weight, random_state=0
        )
        streamed, held = fits(make, table, X, THREE, weight)
        assert streamed.predict(X[:50]).tolist() == held.predict(X[:50]).tolist()
        np.testing.assert_allclose(streamed.predict_proba(X[:300]), held.predict_proba(X[:300]), rtol=1e-9)


def test_a_killed_fit_from_files_resumes(tmp_path):
    parquet.write_table(arrow(), tmp_path / "all.parquet", row_group_size=900)
    table = open_table(tmp_path / "all.parquet", "y")
    whole = MODELS["growing subsets"]().fit(table)
    for at in (2, 5):
        heard = []

        def dies(progress, heard=heard, at=at):
            heard.append(progress)
            if len(heard) == at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            MODELS["growing subsets"]().fit(table, callback=dies, checkpoint=tmp_path / "c", checkpoint_every=0)
    require_equal(MODELS["growing subsets"]().fit(table, checkpoint=tmp_path / "c"), whole)


def test_predictions_of_a_table_are_those_of_its_rows(tmp_path):
    shuffled = arrow().select(["y", *NAMES[::-1]])
    parquet.write_table(shuffled, tmp_path / "new.parquet", row_group_size=1234)
    table = open_table(tmp_path / "new.parquet")  # the columns in another order, and one too many
    for y in (Y, THREE):
        parquet.write_table(arrow(y=y), tmp_path / "train.parquet")
        model = MODELS["growing subsets"]().fit(open_table(tmp_path / "train.parquet", "y"))
        for method in ("predict", "predict_proba", "decision_function", "predict_log_proba"):
            require_near(getattr(model, method)(table), getattr(model, method)(X))
        for name, values in model.predict_uncertainty(X).items():
            require_near(model.predict_uncertainty(table)[name], values)


@pytest.mark.parametrize("suffix", ["parquet", "feather", "csv"])
@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
def test_predictions_written_to_a_file(suffix, labels, tmp_path):
    model = MODELS["growing subsets"]().fit(X, labels)
    out = tmp_path / f"out.{suffix}"
    model.predict_to(X, out)
    read = {"parquet": parquet.read_table, "feather": feather.read_table, "csv": csv.read_csv}[suffix](str(out))
    classes = [f"probability_{label}" for label in model.classes_]
    extra = ["lower", "upper"] if len(classes) == 2 else []
    assert read.column_names == ["prediction", *classes, "total", "aleatoric", "epistemic", *extra]
    assert read["prediction"].to_pylist() == model.predict(X).tolist()
    np.testing.assert_allclose(np.column_stack([read[name] for name in classes]), model.predict_proba(X), rtol=1e-12)
    np.testing.assert_allclose(read["epistemic"], model.predict_uncertainty(X)["epistemic"], atol=1e-12)
    model.predict_to(X[:10], out, uncertainty=False)
    assert [file.name for file in tmp_path.iterdir()] == [out.name]


def test_a_disk_that_fills_leaves_the_old_predictions(tmp_path, monkeypatch):
    model = MODELS["growing subsets"]().fit(X, Y)
    out = tmp_path / "out.parquet"
    model.predict_to(X[:10], out)
    before = out.read_bytes()

    def full(self, batch):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(parquet.ParquetWriter, "write_batch", full)
    with pytest.raises(OSError, match="out.parquet could not be written .No space left.*previous file is unchanged"):
        model.predict_to(X, out)
    assert out.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["out.parquet"]


def test_a_bad_row_found_while_predicting_leaves_nothing_half_written(tmp_path):
    bad = X.copy()
    bad[5555, 3] = np.inf
    parquet.write_table(arrow(bad), tmp_path / "new.parquet")
    model = MODELS["growing subsets"]().fit(X, Y)
    table = open_table(tmp_path / "new.parquet", columns=NAMES)
    with pytest.raises(ValueError, match=r"new.parquet, row 5555.*column 'x3'.*infinity"):
        model.predict_to(table, tmp_path / "out.parquet")
    with pytest.raises(ValueError, match="is a file of the table itself"):
        model.predict_to(table, tmp_path / "new.parquet")
    with pytest.raises(ValueError, match="must end in one of"):
        model.predict_to(X, tmp_path / "out.xlsx")
    with pytest.raises(FileNotFoundError, match="folder .* does not exist"):
        model.predict_to(X, tmp_path / "nowhere" / "out.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["new.parquet"]


def test_bad_tables(tmp_path):
    spoiled = X.copy()
    spoiled[4321, 2] = np.inf
    for name, table in {"good": arrow(), "bad": arrow(spoiled), "one": arrow(y=np.ones(len(X)))}.items():
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    good = open_table(tmp_path / "good.parquet", "y")
    make = MODELS["growing subsets"]
    with pytest.raises(ValueError, match=r"bad.parquet, row 4321.*'x2'.*infin"):
        make().fit(open_table(tmp_path / "bad.parquet", "y"))
    with pytest.raises(ValueError, match="all 6000 rows have one class: .*1.0"):
        make().fit(open_table(tmp_path / "one.parquet", "y"))
    with pytest.raises(ValueError, match=r"good.parquet, row 0: the target 'x0' is .* Labels must be classes.*bin"):
        make().fit(open_table(tmp_path / "good.parquet", "x0"))
    with pytest.raises(ValueError, match="has no labels; name their column"):
        make().fit(open_table(tmp_path / "good.parquet"))
    with pytest.raises(ValueError, match="contains its labels and weights"):
        make().fit(good, Y)
    with pytest.raises(TypeError, match="partial_fit takes rows in memory"):
        make().partial_fit(good, None, classes=[-1, 1])
    model = make().fit(good)
    with pytest.raises(ValueError, match="has no column 'x7' and lacks 1 more of the 21 features"):
        model.predict(open_table(tmp_path / "good.parquet", columns=[n for n in NAMES if n not in {"x7", "x9"}]))
    with pytest.raises(ValueError, match="has 22 features, but BayesianSVC was fitted to 21"):
        make().fit(X, Y).predict(open_table(tmp_path / "good.parquet"))


def test_some_rows_of_a_table_are_a_table_of_their_own(tmp_path):
    for part in range(2):
        parquet.write_table(arrow().slice(part * 700, 700), tmp_path / f"{part}.parquet", row_group_size=100)
    whole = open_table(tmp_path, "y")
    numbers = np.flatnonzero(np.arange(whole.n_rows) % 3 == 1)
    numbers = numbers[(numbers < 300) | (numbers > 620)]
    some = whole.subset(numbers)
    assert len(some) == len(numbers)
    for batch, rows in zip(some.batches(97), np.split(numbers, np.arange(97, len(numbers), 97)), strict=True):
        np.testing.assert_array_equal(batch.X, X[rows])
        np.testing.assert_array_equal(batch.y, Y[rows])
    np.testing.assert_array_equal(some.rows(np.array([5, 1, 200])).X, X[numbers[[5, 1, 200]]])
    np.testing.assert_array_equal(some.subset(np.array([2, 9])).rows(np.arange(2)).X, X[numbers[[2, 9]]])
    row = int(np.argmax(numbers > 700))
    assert some.where(row).endswith(f"1.parquet, row {numbers[row] - 700}")
    assert some.fingerprint() != whole.subset(numbers + 1).fingerprint()
    make = MODELS["growing subsets"]
    held = make().fit(X[numbers], Y[numbers])
    np.testing.assert_array_equal(make().fit(some).predict_proba(X[:50]), held.predict_proba(X[:50]))


def test_a_table_that_can_be_held_is_read_once(tmp_path, monkeypatch):
    monkeypatch.undo()
    parquet.write_table(arrow(), tmp_path / "small.parquet")
    table = open_table(tmp_path / "small.parquet", "y")
    reads = []
    chunks = FileRows.chunks
    monkeypatch.setattr(FileRows, "chunks", lambda self, *a: reads.append(a) or chunks(self, *a))
    model = BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(table)
    assert len(reads) == 3  # labels, a sample that shows what is missing, and all else
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(table), model.predict(X))


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "memory map"])
def test_tables_in_memory(kind, tmp_path):
    if kind == "pandas":
        rows = pytest.importorskip("pandas").DataFrame(X, columns=NAMES)
    elif kind == "polars":
        rows = pytest.importorskip("polars").DataFrame(X, schema=NAMES)
    elif kind == "arrow":
        rows = arrow().select(NAMES)
    else:
        np.save(tmp_path / "x.npy", X)
        rows = np.load(tmp_path / "x.npy", mmap_mode="r")
    held, other = (MODELS["growing subsets"]().fit(given, Y) for given in (X, rows))
    np.testing.assert_allclose(other.predict_proba(rows), held.predict_proba(X), atol=1e-6)
    if kind != "memory map":
        assert other.feature_names_in_.tolist() == NAMES


def test_rows_of_weight_zero_are_as_if_left_out(tmp_path):
    weight = np.random.default_rng(0).random(len(X))
    weight[::3] = 0
    parquet.write_table(arrow(w=weight), tmp_path / "t.parquet", row_group_size=1100)
    table = open_table(tmp_path / "t.parquet", "y", weight="w")
    for name in ("growing subsets", "linear", "mean field"):
        require_equal(*fits(MODELS[name], table, X, Y, weight))


def test_a_column_that_is_no_label_is_refused_soon(tmp_path):
    parquet.write_table(arrow(id=np.arange(len(X))), tmp_path / "t.parquet", row_group_size=1500)
    model = MODELS["growing subsets"]()
    with pytest.raises(ValueError, match="'id' has 1,500 distinct numeric values in 1,500 rows"):
        model.fit(open_table(tmp_path / "t.parquet", "id", columns=NAMES))
    with pytest.raises(ValueError, match="t.parquet, row 0: the target 'x0' is .*Labels must be classes"):
        model.fit(open_table(tmp_path / "t.parquet", "x0", columns=NAMES[1:]))


def test_a_fit_that_fails_leaves_the_model_as_it_was(tmp_path):
    spoiled = X.copy()
    spoiled[-1, 3] = np.inf
    parquet.write_table(arrow(spoiled, THREE), tmp_path / "bad.parquet")
    model = MODELS["growing subsets"]().fit(X, Y)
    before = model.predict_proba(X[:50])

    def raises(progress):
        raise RuntimeError

    with pytest.raises(ValueError, match="row 5999"):
        model.fit(open_table(tmp_path / "bad.parquet", "y"))
    with pytest.raises(RuntimeError):
        model.fit(1000 * X + 5, THREE, callback=raises)
    np.testing.assert_array_equal(model.predict_proba(X[:50]), before)
    fresh = MODELS["growing subsets"]()
    with pytest.raises(RuntimeError):
        fresh.fit(X, Y, callback=raises)
    assert [name for name in vars(fresh) if name.endswith("_")] == []


def test_the_score_of_a_table(tmp_path):
    weight = np.random.default_rng(0).random(len(X))
    parquet.write_table(arrow(w=weight), tmp_path / "t.parquet", row_group_size=1000)
    table = open_table(tmp_path / "t.parquet", "y", weight="w")
    model = MODELS["growing subsets"]().fit(table)
    assert model.score(table) == pytest.approx(model.score(X, Y, weight))


def test_paths_and_tables_in_the_wrong_place(tmp_path):
    parquet.write_table(arrow(), tmp_path / "t.parquet")
    model = MODELS["growing subsets"]().fit(X, Y)
    for call in (lambda path: model.fit(path, Y), model.predict):
        with pytest.raises(TypeError, match="open the file with bayesvm.open_table"):
            call(str(tmp_path / "t.parquet"))
    for draw in (model.sample_latent, model.sample_proba):
        with pytest.raises(TypeError, match="needs rows in memory"):
            draw(open_table(tmp_path / "t.parquet", columns=NAMES))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*exact copies")
@pytest.mark.parametrize("name", ["growing subsets", "tuned", "linear"])
def test_copies_are_left_out_together_wherever_they_are(name, tmp_path):
    """Every row twice: what is held has few pairs, so that the weight of a pair must come from the whole table."""
    order = np.random.default_rng(0).permutation(2 * len(X))
    rows, labels = np.repeat(X, 2, 0)[order], np.repeat(Y, 2)[order]
    parquet.write_table(arrow(rows, labels), tmp_path / "twice.parquet", row_group_size=1700)
    streamed, held = fits(MODELS[name], open_table(tmp_path / "twice.parquet", "y"), rows, labels)
    require_equal(streamed, held)
    once = MODELS[name]().fit(X, Y)
    assert streamed.loo_log_loss_ == pytest.approx(once.loo_log_loss_, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("held", [1_500, 10_000])
def test_weights_in_files_are_bit_identical_to_those_in_memory(held, tmp_path, monkeypatch):
    """Sums of weights depend on the order of their terms; what is made of them must not."""
    monkeypatch.setattr(blocks, "HELD_ENTRIES", held * X.shape[1])
    weight = np.exp(np.random.default_rng(0).normal(size=len(X)))
    parquet.write_table(arrow(w=weight), tmp_path / "t.parquet", row_group_size=700)
    require_equal(*fits(MODELS["tuned"], open_table(tmp_path / "t.parquet", "y", weight="w"), X, Y, weight))
