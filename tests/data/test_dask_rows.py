"""Rows on a cluster, in any partitions, are the rows of the table; errors name the place of invalid values."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from bayesvm.core.linalg import Array
from bayesvm.data import dask_rows
from bayesvm.data.dask_rows import DaskSource, DaskTable, EncodedDaskTable, is_dask
from bayesvm.data.memory import MemorySource
from bayesvm.data.partitions import added
from bayesvm.data.scaling import ColumnMoments, ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.estimators._classes import count_labels
from bayesvm.estimators.labels import ClassEncoder

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

N, D = 60, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
Y = RNG.choice(["no", "yes"], N)
WEIGHT = RNG.integers(0, 3, N).astype(float)
FRAME = pd.DataFrame(X, columns=list("abc")).assign(y=Y, weight=WEIGHT)


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


def frame(npartitions=5, table=FRAME):
    return dd.from_pandas(table, npartitions=npartitions, sort=False)


def unknown(array):
    """The same array, but Dask does not know how many rows a choice of rows leaves in each chunk."""
    return array[da.ones(N, chunks=13) > 0]


def with_empty(array):
    return da.concatenate([array[:0], array[:20], array[20:20], array[20:]]).rechunk({0: (0, 20, 0, 40)})


NUMBERED = frame(table=FRAME.assign(row=range(N)))
LATE = NUMBERED[NUMBERED["row"] >= 24]
A, B, C = da.from_array(X, chunks=(13, D)), da.from_array(Y, chunks=13), da.from_array(WEIGHT, chunks=13)
FORMS = {
    "arrays": lambda: (A, B, C),
    "columns in chunks": lambda: (A.rechunk((13, 2)), B, C),
    "labels cut otherwise": lambda: (A, B.rechunk(7), C.rechunk(60)),
    "labels in memory": lambda: (A, Y, pd.Series(WEIGHT)),
    "labels in a column": lambda: (A, B[:, None], WEIGHT[:, None]),
    "empty partitions": lambda: tuple(map(with_empty, (A, B, C))),
    "unknown lengths": lambda: tuple(map(unknown, (A, B, C))),
    "sparse": lambda: (A.map_blocks(sparse.csr_matrix, meta=sparse.csr_matrix((0, D))), B, C),
    "frame": lambda: (frame()[["a", "b", "c"]], frame()["y"], frame()["weight"]),
    "frame of one column": lambda: (frame()[["a", "b", "c"]], frame()[["y"]], frame()[["weight"]]),
    "frame and arrays": lambda: (frame()[["a", "b", "c"]], B.rechunk(12), frame()["weight"].to_dask_array()),
    "categories": lambda: (
        frame()[["a", "b", "c"]],
        frame()["y"].astype("category"),
        frame()["weight"].astype("Int64"),
    ),
    "frame with empty partitions": lambda: (LATE[["a", "b", "c"]], LATE["y"], LATE["weight"]),
}


def source_of(X, y, weight=None, encoder=None):
    table = DaskTable.of(X, y, weight)
    rows, counts = table.survey(count_labels)
    encoded = EncodedDaskTable(table, rows, encoder or ClassEncoder(counts.labels))
    fetched = encoded.fetch(np.arange(encoded.n_rows))
    sample = MemorySource(*fetched, ColumnScaler(), Workers(1), 8)
    return DaskSource(encoded.n_rows, float(counts.weights.sum()), sample, encoded)


@pytest.mark.parametrize("form", FORMS)
def test_sums_and_chosen_rows_are_those_of_the_table(form):
    source = source_of(*FORMS[form]())
    there = np.arange(24, N) if form == "frame with empty partitions" else np.arange(N)
    kept = there[WEIGHT[there] > 0]
    moments = source.reduce(ColumnMoments.of)
    np.testing.assert_allclose(moments.mean, np.average(X[kept], axis=0, weights=WEIGHT[kept]), rtol=1e-12)
    assert (moments.weight, source.total_weight) == pytest.approx((WEIGHT[kept].sum(),) * 2)
    numbers = np.random.default_rng(1).permutation(len(kept))[:20]
    rows = source.fetch(numbers)
    np.testing.assert_array_equal(rows.X.toarray() if form == "sparse" else rows.X, X[kept[numbers]])
    np.testing.assert_array_equal(source.table.encoder.classes[rows.y], Y[kept[numbers]])
    np.testing.assert_array_equal(rows.weight, WEIGHT[kept[numbers]])
    np.testing.assert_array_equal(source.table.given(numbers), kept[numbers] - there[0])


def test_the_survey_counts_labels_and_rows():
    table = DaskTable.of(*FORMS["empty partitions"]())
    rows, counts = table.survey(count_labels)
    assert rows.given == (0, 20, 0, 40)
    assert rows.kept == (0, np.count_nonzero(WEIGHT[:20]), 0, np.count_nonzero(WEIGHT[20:]))
    assert counts.labels.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(counts.counts, [(Y == "no").sum(), (Y == "yes").sum()])
    np.testing.assert_allclose(counts.weights, [WEIGHT[Y == "no"].sum(), WEIGHT[Y == "yes"].sum()])


@pytest.mark.parametrize(
    ("types", "kept"),
    [
        (["f4", "f4"], "f4"),
        (["f4", "i2"], "f4"),
        (["f4", "i4"], "f8"),
        (["f2", "f2"], "f8"),
        (["bool", "u1"], "f8"),
        (["Float32", "Int8"], "f4"),
        (["Int64", "boolean"], "f8"),
    ],
)
def test_single_precision_is_kept_where_scikit_learn_would_keep_it(types, kept):
    table = pd.DataFrame({"a": [0, 1], "b": [1, 0]}).astype(dict(zip("ab", types, strict=True)))
    source = source_of(dd.from_pandas(table, npartitions=2), da.from_array(np.array([0, 1]), chunks=1))
    assert source.sample.X.dtype == kept


def test_sums_are_bit_identical_on_threads_and_leave_the_data_alone():
    table = da.from_array(X.copy(), chunks=(7, D)).persist()
    before = table.compute()
    source = source_of(table, B.rechunk(7)).scaled(ColumnScaler(X.mean(axis=0), X.std(axis=0)))
    first = source.reduce(ColumnMoments.of)
    with dask.config.set(scheduler="threads", num_workers=3):
        again = source.reduce(ColumnMoments.of)
    assert first.root.tobytes() == again.root.tobytes()
    np.testing.assert_array_equal(table.compute(), before)


def test_adding_up_leaves_the_parts_alone():
    parts = [ColumnMoments(1.0, np.full(2, i), np.zeros(2)) for i in range(3)]
    total = added(*parts)
    assert total.weight == 3
    assert [part.weight for part in parts] == [1, 1, 1]
    assert not any(np.shares_memory(total.root, part.root) for part in parts)


class Heavy:
    """A function with a large matrix in it."""

    def __init__(self):
        self.matrix: Array = np.zeros((100, 100))

    def __call__(self, blocks, workspace):
        return sum(len(block.y) for block in blocks)


def test_the_function_is_one_node_of_the_graph(monkeypatch):
    graphs = []
    computed = dask_rows._computed
    source = source_of(A.rechunk((3, D)), B)
    monkeypatch.setattr(dask_rows, "_computed", lambda values: [graphs.extend(values), *computed(values)][1:])
    assert source.reduce(Heavy()) == N
    (graph,) = graphs
    sizes = [len(pickle.dumps(node)) for node in dict(graph.dask).values()]
    assert sum(size > 80_000 for size in sizes) == 1
    assert len(sizes) > 20 + 3 + 1  # partitions, their sums by eight, all


def test_what_is_dask():
    assert all(map(is_dask, (A, frame(), frame()["a"])))
    assert not any(map(is_dask, (X, FRAME, [[1.0]], None, sparse.csr_matrix(X))))


def changed(values, row, value, column=None):
    values = values.copy()
    values[(row,) if column is None else (row, column)] = value
    return da.from_array(values, chunks=(13, *values.shape[1:]))


def gap(**what):
    table = FRAME.astype({"y": object}).copy()
    for name, value in what.items():
        table.loc[30, name] = value
    table = frame(table=table)
    return table[["a", "b", "c"]], table["y"], table["weight"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            lambda: (changed(X, 30, -np.inf, 1), B),
            r"partition 2, row 4 \(row 30 of the table\), column 1: infinity.*Replace",
        ),
        (lambda: (changed(X, 30, 1e101, 1), B), "row 30 of the table.*too large.*Rescale"),
        (lambda: gap(b=np.inf), r"partition 2, row 6 \(row 30 of the table\), column 'b': infinity"),
        (lambda: gap(y=None), "partition 2, row 6 .*target is missing"),
        (lambda: gap(weight=np.nan), "row 30 of the table.*weight nan"),
        (lambda: (A, changed(Y.astype(object), 30, None)), "row 30 of the table.*target is missing"),
        (lambda: (A, changed(X[:, 0] // 1, 30, np.nan)), "row 30 of the table.*target is missing"),
        (lambda: (A, changed(np.zeros(N), 30, 0.5)), "row 30 of the table.*y is 0.5.*must be classes"),
        (lambda: (A, B, changed(WEIGHT, 30, -1.0)), "row 30 of the table.*weight -1.*not negative"),
        (lambda: (A, B[:40]), "X has 60 rows, but y has 40"),
        (lambda: (A, Y[:40]), "X has 60 rows, but y has 40"),
        (
            lambda: (unknown(A), B.rechunk(12)),
            "partition 0: different numbers of rows: X has 13, y has 12.*compute_chunk",
        ),
        (lambda: (unknown(A), B.rechunk(60)), "X has 5 partitions, but y has 1.*compute_chunk_sizes"),
        (lambda: (unknown(A), Y), "y is in memory.*compute_chunk_sizes"),
        (lambda: (frame()[["a", "y"]], frame()["y"]), "column 'y' of X is not numeric.*OneHotEncoder"),
        (lambda: (B[:, None], B), "X must be numeric.*astype"),
        (lambda: (B, B), "known number of columns"),
        (lambda: (A, A), "y must have one column, got 3"),
        (lambda: (A[:0], B[:0]), "all its partitions are empty"),
    ],
)
def test_what_cannot_be_used_is_reported_with_its_place_and_a_remedy(given, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        DaskTable.of(*given()).survey(count_labels)


def test_text_is_reported_before_anything_is_computed():
    def never(part):
        pytest.fail("computed")

    table = frame().map_partitions(never, meta=FRAME.iloc[:0])
    with pytest.raises(ValueError, match="column 'y'"):
        DaskTable.of(table[["a", "y"]], table["y"])


def test_other_collections_are_refused():
    with pytest.raises(TypeError, match="X is a Dask Delayed.*from_delayed"):
        DaskTable.of(dask.delayed(X), B)
    with pytest.raises(TypeError, match="y is a Dask Delayed.*from_delayed"):
        DaskTable.of(A, dask.delayed(Y))


def test_labels_that_change_between_passes_are_noticed():
    with pytest.raises(ValueError, match="was not in the data when the labels were first read"):
        source_of(A, B, encoder=ClassEncoder(np.array(["no", "perhaps"])))


class Largest:
    """A summary that another task may need to scale its targets."""

    def __init__(self, y, weight, locate):
        self.value = np.abs(y).max(initial=0.0)
        if self.value > 100:
            raise ValueError(f"{locate(int(np.abs(y).argmax()))}: too large")

    def __iadd__(self, other):
        self.value = max(self.value, other.value)
        return self


class Halved:
    """An encoder of real targets."""

    def __call__(self, y, weight):
        return y / 2, weight


def test_the_caller_says_what_targets_mean():
    table = DaskTable.of(A, da.from_array(X[:, 0], chunks=13))
    rows, largest = table.survey(Largest)
    assert largest.value == np.abs(X[:, 0]).max()
    encoded = EncodedDaskTable(table, rows, Halved())
    np.testing.assert_array_equal(encoded.fetch(np.array([50, 3])).y, X[[50, 3], 0] / 2)
    with pytest.raises(ValueError, match=r"partition 2, row 4 \(row 30 of the table\): too large"):
        DaskTable.of(A, changed(X[:, 0], 30, -101.0)).survey(Largest)
