"""Files of plain state: the same bits come back, or the reader says what is wrong."""

import json
import os
import struct
import tracemalloc
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from bayesvm import persistence

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
NAN_WITH_PAYLOAD = struct.unpack("<d", bytes.fromhex("efcdab000000f8ff"))[0]
MATRIX = np.random.default_rng(0).normal(size=(5, 7))


def of_every_dtype(shape):
    """Random bytes, so that floats have NaNs with payloads, subnormals and negative zeros among them."""
    rng = np.random.default_rng(1)
    return {
        dtype: rng.random(shape) < 0.5
        if dtype == "?"
        else np.frombuffer(rng.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape)
        for dtype in DTYPES
    }


STATE = {
    "text": 'σ ≤ ½ \x00 \n " \\ \U0001f600',
    "lone surrogate": "\ud800",
    "numbers": [0, -1, 2**127 + 1, 0.1, -0.0, 5e-324, 1.7976931348623157e308],
    "beyond JSON": [float("inf"), -float("inf"), float("nan"), NAN_WITH_PAYLOAD],
    "others": (True, False, None, 1, 1.0, ""),
    "empty": [{}, [], (), ((),), [[]]],
    "kernel": {"parts": [{"Z": MATRIX}, ({"Z": -MATRIX}, [MATRIX[0]])], "kernel.parts": 1},
    # Paths that would be one without quotes, and a name that safetensors keeps for itself.
    "a": {"b": np.array(1), "b.c": np.array(2), "[0]": np.array(3), "0": np.array(4)},
    "a.b": np.array(5),
    "__metadata__": np.array(6),
    "dict": {"dict": {"array": "state.a"}, "tuple": [1]},
    "cubes": of_every_dtype((2, 3, 4)),
    "points": of_every_dtype(()),
    "voids": of_every_dtype((3, 0, 2)),
    "scalars": [array[()] for array in of_every_dtype(()).values()],
    "np.str_": (np.str_("né"), np.str_("")),
    "orders": {
        "fortran": np.asfortranarray(MATRIX),
        "strided": MATRIX[::2, ::-3],
        "broadcast": np.broadcast_to(np.arange(3), (2, 3)),
        "transposed": MATRIX.astype(np.float32).T,
    },
    "words": {
        "U": np.array([["a", "élan", ""], ["\U0001f600", "e", "f"]]).T,
        "U wide": np.array(["a"], dtype="U9"),
        "U point": np.array("point"),
        "U void": np.empty((0, 2), dtype="U5"),
        "O": np.array([["no", "yes"], ["\ud800", "x\x00"]], dtype=object),
        "O one": np.array(["single"], dtype=object),
        "O point": np.array("point", dtype=object),
        "O void": np.empty((2, 0), dtype=object),
    },
}


def assert_same(ours, theirs):
    assert type(ours) is type(theirs)
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for key in ours:
            assert_same(ours[key], theirs[key])
    elif isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other)
    elif isinstance(ours, (np.ndarray, np.generic)) and ours.dtype != object:
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert ours.tobytes() == theirs.tobytes()
    elif isinstance(ours, np.ndarray):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        assert_same(ours.tolist(), theirs.tolist())
    elif isinstance(ours, float):
        assert struct.pack("<d", ours) == struct.pack("<d", theirs)
    else:
        assert ours == theirs


@pytest.fixture
def path(tmp_path):
    """A small model, of which every part matters."""
    path = tmp_path / "model.bayesvm"
    persistence.write(path, "small", {"Z": MATRIX, "names": np.array(["a", "b"]), "rate": 0.5, "seeds": (1, 2)})
    return path


def metadata_of(path):
    with safe_open(path, framework="np") as file:
        return file.metadata()


def forge_state(path, state):
    """Another state in the header, with a digest that fits."""
    forge_header(path, lambda header: header | {"state": state})


def forge_header(path, change):
    """Another header, with a digest that fits."""
    tensors, header = load_file(path), json.loads(metadata_of(path)[persistence.FORMAT])
    del header["sha256"]
    header = change(header)
    header["sha256"] = persistence._digest(header, tensors)
    save_file(tensors, path, metadata={persistence.FORMAT: json.dumps(header)})


def change_tensors(path, change):
    """Other tensors under the old header."""
    tensors, metadata = load_file(path), metadata_of(path)
    change(tensors)
    save_file(tensors, path, metadata=metadata)


def test_all_values_are_restored_bit_identically(tmp_path):
    persistence.write(tmp_path / "model", "Kind of σ", STATE)
    kind, version, state = persistence.read(tmp_path / "model")
    assert (kind, version) == ("Kind of σ", persistence.VERSION)
    assert_same(STATE, state)


def test_a_state_without_arrays_comes_back(tmp_path):
    for state in ({}, {"a": 1}):
        persistence.write(str(tmp_path / "model"), "k", state)
        assert persistence.read(str(tmp_path / "model")) == ("k", persistence.VERSION, state)


def test_big_endian_and_memory_mapped_arrays_come_back_as_plain_native_ones(tmp_path):
    mapped = np.memmap(tmp_path / "rows", MATRIX.dtype, "w+", shape=MATRIX.shape)
    mapped[:] = MATRIX
    persistence.write(
        tmp_path / "model", "k", {"big": MATRIX.astype(">f8"), "U": np.array(["é"], ">U3"), "map": mapped}
    )
    *_, state = persistence.read(tmp_path / "model")
    assert_same({"big": MATRIX, "U": np.array(["é"], "U3"), "map": MATRIX}, state)


def test_arrays_read_are_the_readers_own(path):
    before = path.read_bytes()
    *_, state = persistence.read(path)
    state["Z"][:] = 0
    assert path.read_bytes() == before


def test_equal_states_give_equal_files(tmp_path):
    files = set()
    for i in range(5):
        persistence.write(tmp_path / str(i), "k", STATE)
        files.add((tmp_path / str(i)).read_bytes())
    assert len(files) == 1


class Strange:
    pass


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"kernel": {"parts": [1, {"f": len}]}}, r"kernel\.parts\[1\]\.f: .* builtin_function_or_method"),
        ({"kernel": (0, Strange())}, r"kernel\[1\]: .* Strange"),
        ({"my key": {1, 2}}, r"\['my key'\]: .* set"),
        ({"b": b"bytes"}, r"b: .* bytes"),
        ({"z": 1j}, r"z: .* complex"),
        ({"o": OrderedDict(a=1)}, r"o: .* OrderedDict"),
        ({"n": namedtuple("Pair", "a b")(1, 2)}, r"n: .* Pair"),  # noqa: PYI024
        ({"m": np.ma.masked_array([1.0])}, r"m: .* MaskedArray"),
        ({"a": {"c": np.zeros(2, complex)}}, r"a\.c: .* complex128"),
        ({"t": np.datetime64("2020-01-01")}, r"t: .* datetime64"),
        ({"s": np.array([b"x"])}, r"s: .* \|S1"),
        ({"r": np.zeros(1, [("x", "f8")])}, r"r: .*'x'"),
        ({"o": np.array(["a", 1, None], dtype=object)}, r"o: .* object that holds NoneType"),
        ({"d": {"e": {3: 1}}}, r"d\.e: .* key 3 of type int"),
        ({3: 1}, r"state: .* key 3 of type int"),
    ],
)
def test_what_cannot_be_saved_is_named_and_nothing_is_written(tmp_path, state, message):
    with pytest.raises(TypeError, match=message):
        persistence.write(tmp_path / "model", "k", state)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(np.dtype("g").itemsize == 8, reason="long double is double here")
def test_long_doubles_are_refused_because_other_machines_read_other_numbers(tmp_path):
    with pytest.raises(TypeError, match=r"x: .* float128|x: .* float96"):
        persistence.write(tmp_path / "model", "k", {"x": np.zeros(2, np.longdouble)})


def refused(path, message):
    with pytest.raises(ValueError, match=message) as caught:
        persistence.read(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"x", b"hello", b"date,price\n2020-01-01,3\n" * 99, bytes(4096), b"\x80\x04N."]
)
def test_foreign_files_are_refused(tmp_path, content):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    refused(path, "not a bayesvm file")


@pytest.mark.parametrize("metadata", [None, {}, {"format": "pt"}])
def test_safetensors_of_others_are_refused(tmp_path, metadata):
    save_file({"Z": MATRIX}, tmp_path / "foreign", metadata=metadata)
    refused(tmp_path / "foreign", "safetensors file, but not a bayesvm file")


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "{}", '{"version": "1"}', '{"version": 1}', '{"version": 1, "tensors": 3}']
)
def test_damaged_headers_are_refused(tmp_path, text):
    save_file({"Z": MATRIX}, tmp_path / "model", metadata={persistence.FORMAT: text})
    refused(tmp_path / "model", "damaged")


@pytest.mark.slow
def test_files_cut_short_are_refused_at_every_length(path):
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        refused(path, "truncated")


def test_files_with_a_tail_are_refused(path):
    path.write_bytes(path.read_bytes() + b"\0")
    refused(path, "damaged")


def test_no_flipped_byte_goes_unseen(path):
    content = path.read_bytes()
    *_, state = persistence.read(path)
    rng = np.random.default_rng(2)
    places = [*range(len(content)), *rng.integers(len(content), size=500)]
    silent = 0
    for place in places:
        altered = bytearray(content)
        altered[place] ^= int(rng.integers(1, 256))
        path.write_bytes(altered)
        try:
            kind, _, found = persistence.read(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            silent += 1
            assert kind == "small"
            assert_same(state, found)
    # Only white space between JSON's words can change without meaning.
    assert silent < len(places) / 50


def test_an_altered_number_is_seen(path):
    content = bytearray(path.read_bytes())
    content[content.index(MATRIX.tobytes()) + 3] ^= 1
    path.write_bytes(content)
    refused(path, "altered after it was written .*SHA-256")


def test_a_missing_tensor_is_named(path):
    change_tensors(path, lambda tensors: tensors.pop("state.Z"))
    refused(path, "tensor state.Z is missing")


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.update(more=np.zeros(1)),
        lambda t: t.update({"state.Z": t["state.Z"].reshape(7, 5)}),
        lambda t: t.update({"state.Z": t["state.Z"].view(np.int64)}),
    ],
    ids=["another tensor", "another shape", "another dtype"],
)
def test_other_tensors_with_the_same_bytes_are_seen(path, change):
    change_tensors(path, change)
    refused(path, "altered")


@pytest.mark.parametrize(
    "state",
    [
        {"pickle": "gASV"},
        {"array": "state.nowhere"},
        {"float": "zz"},
        {"float": "00"},
        {"dict": 3},
        {"tuple": 3},
        {"a": 1, "b": 2},
        {"array": ["state.Z", "U1", [2]]},
        {"array": ["state.names", "U1", [3]]},
        {"array": ["state.names", "U0", [2]]},
        {"scalar": "state.Z"},
    ],
)
def test_a_forged_state_is_refused(path, state):
    forge_state(path, state)
    refused(path, "has an unknown structure")


@pytest.mark.parametrize("version", [0, -1, 0.5, 1e300, "1", None, True, [1]])
def test_a_version_that_there_is_not_is_refused(path, version):
    forge_header(path, lambda header: header | {"version": version})
    refused(path, "its version is")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000 + "]" * 200_000,
        '{"version": 1, "state": ' + '{"dict": {"a": ' * 50_000 + "1" + "}}" * 50_000 + "}",
        '{"version": ' + "9" * 5000 + "}",
        '{"version": NaN}',
    ],
    ids=["nested lists", "nested dictionaries", "many digits", "NaN"],
)
def test_headers_that_are_hard_to_read_are_refused(tmp_path, text):
    save_file({"Z": MATRIX}, tmp_path / "model", metadata={persistence.FORMAT: text})
    refused(tmp_path / "model", "damaged")


def test_a_state_nested_beyond_what_can_be_read_is_refused(path):
    state = 1
    for _ in range(250):
        state = {"dict": {"a": [state]}}
    forge_state(path, state)
    refused(path, "nested too deeply")


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("U1000000000", [2]), ("U100000000", [2]), ("S1", [2]), ("U1", [2**60]), ("U1", [-2]), ("O8", [2]), ("U0", [2])],
)
def test_strings_get_no_more_memory_than_the_file_is_worth(path, dtype, shape):
    size = path.stat().st_size
    forge_state(path, {"dict": {"names": {"array": ["state.names", dtype, shape]}}})
    tracemalloc.start()
    refused(path, "has an unknown structure")
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < persistence.ROOM_FOR_STRINGS + 100 * size


def test_strings_that_could_not_be_read_again_are_not_written(tmp_path):
    state = {"a": {"labels": np.array(["a", "b"], dtype="U9000000")}}
    with pytest.raises(ValueError, match=r"state.a.labels: 2 strings of type U9000000 take more memory"):
        persistence.write(tmp_path / "model", "k", state)
    assert list(tmp_path.iterdir()) == []
    state["a"]["labels"] = state["a"]["labels"].astype(object)
    persistence.write(tmp_path / "model", "k", state)
    assert_same(state, persistence.read(tmp_path / "model")[2])


def test_newer_versions_are_refused_with_the_remedy(path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(persistence, "VERSION", 3)
        persistence.write(path, "k", {"Z": MATRIX})
    refused(path, "version 3 .* up to version 2; upgrade bayesvm")


def test_the_version_of_an_older_file_is_reported(path, monkeypatch):
    """What its state means is known to those who build something of it."""
    *_, state = persistence.read(path)
    with monkeypatch.context() as patch:
        patch.setattr(persistence, "VERSION", 1)
        persistence.write(path, "small", state)
    kind, version, found = persistence.read(path)
    assert (kind, version) == ("small", 1)
    assert_same(state, found)
    assert persistence.version_of(path) == 1


def test_a_missing_file_or_a_folder_is_no_value_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        persistence.read(tmp_path / "nowhere")
    with pytest.raises(OSError, match=str(tmp_path)):
        persistence.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        persistence.write(tmp_path / "nowhere" / "model", "k", {})


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_failed_write_leaves_the_old_file_and_no_other(path, monkeypatch, function, error):
    before = path.read_bytes()

    def fail(*args, **kwargs):
        assert len(list(path.parent.iterdir())) == 2, "written beside the old file"
        raise error

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(type(error)):
        persistence.write(path, "k", {"Z": np.zeros(1000)})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_an_unsupported_state_leaves_the_old_file(path):
    before = path.read_bytes()
    with pytest.raises(TypeError):
        persistence.write(path, "k", {"Z": MATRIX, "f": len})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_header_too_large_for_safetensors_is_a_value_error(path, monkeypatch):
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise SafetensorError("header too large")  # what 100 MB of text give

    monkeypatch.setattr(persistence, "save", fail)
    with pytest.raises(ValueError, match="safetensors cannot hold"):
        persistence.write(path, "k", {"long": "x"})
    assert path.read_bytes() == before


def test_a_written_file_replaces_the_old_one_and_keeps_links(path):
    link = path.with_name("link")
    link.symlink_to(path)
    persistence.write(link, "new", {})
    assert link.is_symlink()
    assert persistence.read(path) == ("new", persistence.VERSION, {})
    assert sorted(path.parent.iterdir()) == [link, path]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_file_has_the_permissions_of_any_new_file(path):
    other = path.with_name("other")
    other.touch()
    assert path.stat().st_mode == other.stat().st_mode
