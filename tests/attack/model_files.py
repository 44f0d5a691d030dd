"""Damaged and forged model files: each is refused with a ValueError that names it, or loads with the same values.

Damage is accidental: flipped bytes, cuts, tails. A forgery is made by somebody who knows the format and computes the
checksum anew. A forger who writes another valid model cannot be found out; so forgeries here break a type, a shape, a
name or a size, and never replace a number by another number.
"""

from __future__ import annotations

import json
import re
import tempfile
import tracemalloc
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC, persistence
from bayesvm.datasets import waveform
from bayesvm.estimators.columns import n_features
from bayesvm.kernels import RBF, Constant, Matern
from bayesvm.storage.states import fitted_state
from bayesvm.workflow import fit_table
from tests.storage.committees import committee, local_models, two_scalings

REFUSED, SAME = "rejected", "loaded, same values"
MEMORY = 2**26  # bytes that loading a small file may take at its peak
DEEP = 200_000
NAN, INFINITY = {"float": "000000000000f87f"}, {"float": "000000000000f07f"}
JUNK = [
    *(None, True, -1, 0.5, 10**30, 10**400, "text", "\x1b[31m", [], [[]], {}, NAN, INFINITY),
    *({"dict": {}}, {"tuple": []}, {"str_": "a"}, {"float": "00"}, {"array": "state.nowhere"}, {"scalar": "junk"}),
    *({"array": "junk"}, {"pickle": "gASV"}, {"array": ["junk", "U1000000", [2]]}, {"dict": {"__class__": "int"}}),
]
NAMES = ["views", "prior", "lenses", "__class__", "__dict__", "predict", "save", "kernel_", "tuning_report_", "x", ""]
VERSIONS = [0, 0.5, -1, 1, 3, 10**6, 1e308, "2", None, [], True, {"version": 2}]
STRING_TYPES = ["U1000000", "U999999999", "U0", "U1", "S5", "V8", "M8[s]", "O8", "object", "<U5", "f8", "", "U" * 99]
SHAPES = [[2**60], [-1], [0], [1, 1, 1], [0.5], ["2"], [2**31, 2**33], 3, None, []]
# Parts that may be missing, and those of any length: another one is another valid model.
FREE = re.compile(
    r"feature_names|fitted\.(scale$|n_samples|report|training\.trace|left_out_rows)"
    r"|fitted\.members\.\d+\.(leaves|link|scaler)$|.*_bounds"
)
TAGS = {"dict", "tuple", "array", "scalar", "float", "str_"}


@dataclass(frozen=True)
class Original:
    """A file and its parts; for a model also the model and its predictions."""

    content: bytes
    header: dict
    tensors: dict
    model: object = None
    said: dict = field(default_factory=dict)


def small():
    return BayesianSVC(n_inducing=5, tune=None, random_state=0, n_jobs=1)


def with_scalings_and_effects(X, y):
    with two_scalings():
        return small().fit(X, y)


def originals(folder):
    """Small models of every kind, in files."""
    data = waveform(80, random_state=0)
    X, y = data.X, data.y
    X, three = X[:, :4], np.where(X[:, 4] > 1.0, "c", np.where(y > 0, "b", "a"))
    rows = [f"{X[i, 0]},{X[i, 1]},{'rgb'[i % 3]},{y[i]}" for i in range(len(y))]
    (folder / "table.csv").write_text("\n".join(["u,v,colour,y", *rows]))
    kernel = 0.5 * RBF(np.full(4, 2.0)) + Matern(2.0, nu=2.5) + Constant()
    models = [
        BayesianSVC(n_inducing=6, random_state=0, n_jobs=1).fit(X, y),
        BayesianSVC(kernel, n_inducing=5, tune=None, scale="quantile", link="hinge", random_state=0, n_jobs=1).fit(
            X, three
        ),
        small().set_params(class_weight={"a": 2.0}).fit(X, three),
        BayesianLinearSVC(random_state=0, n_jobs=1).fit(X, three),
        BayesianLinearSVC(covariance="diagonal", scale=None, max_iter=500, random_state=0, n_jobs=1).fit(X, y),
        local_models([small().set_params(random_state=seed).fit(X, y) for seed in range(2)]),
        committee([BayesianLinearSVC(noise=noise, n_jobs=1, random_state=0).fit(X, three) for noise in (0.5, 2.0)]),
        fit_table(folder / "table.csv", "y", estimator=small()),
        *(with_scalings_and_effects(X, labels) for labels in (y, three)),
    ]
    for number, model in enumerate(models):
        path = folder / f"original{number}.bayesvm"
        model.save(path)
        yield replace(opened(path), model=model, said=said_by(model))


def opened(path):
    """A file of bayesvm taken apart."""
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()[persistence.FORMAT])
    return Original(path.read_bytes(), header, load_file(path))


def estimator_of(model):
    return getattr(model, "estimator", model)


def said_by(model):
    """Predictions for some rows, and all that was learned, by name."""
    estimator = estimator_of(model)
    X = np.random.default_rng(1).normal(size=(7, n_features(estimator)))
    with warnings.catch_warnings(action="ignore"):  # rows without names
        said = {"probabilities": estimator.predict_proba(X)} | estimator.predict_uncertainty(X)
        said["samples"] = estimator.sample_latent(X, 3, random_state=0)
    columns = getattr(estimator, "feature_names_in_", None)
    learned = {"classes": estimator.classes_, "names": columns, "fitted": fitted_state(estimator.fitted_)}
    return said | dict(leaves(learned))


def leaves(value, path=""):
    """The single values and arrays of a state, by their places."""
    if isinstance(value, dict | list | tuple):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(member, f"{path}.{key}")
    else:
        yield path, value


def packed(header, tensors, text=None):
    """A file with a checksum that fits; ``text`` stands for the header as it is."""
    header = {name: value for name, value in header.items() if name != "sha256"}
    tensors = {name: np.ascontiguousarray(value) if value.ndim else value for name, value in tensors.items()}
    try:
        header["sha256"] = persistence._digest(header, tensors)
    except (RecursionError, ValueError):
        header["sha256"] = ""
    return save(tensors, metadata={persistence.FORMAT: text(header) if text else json.dumps(header)})


def damaged(original, rng, free=FREE):
    """Bytes changed, lost or added."""
    content = bytearray(original.content)
    place, length = int(rng.integers(len(content))), int(rng.integers(1, 64))
    match rng.integers(7):
        case 0:
            content[place] ^= int(rng.integers(1, 256))
        case 1:
            content[place] ^= 1 << int(rng.integers(8))
        case 2:
            del content[place:]
        case 3:
            del content[place : place + length]
        case 4:
            content[place : place + length] = bytes(length)
        case 5:
            content[place:place] = rng.bytes(length)
        case _:
            content[:8] = int(rng.integers(2**62)).to_bytes(8, "little")
    return bytes(content)


def nodes(value, path=""):
    """All places in the JSON of a state, as (container, key, path such as "fitted.members.0.weight")."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in pairs:
        here = path if key in TAGS else f"{path}.{key}".lstrip(".")
        yield value, key, here
        yield from nodes(member, here)


def place_of(tensor):
    """The path of a tensor, as ``nodes`` has it."""
    return re.sub(r"\[(\d+)\]", r".\1", tensor.removeprefix("state."))


def kind_of(value):
    """Whether two values are of one kind for a schema; a number must not become another number."""
    if isinstance(value, dict):
        return "float" if "float" in value else next(iter(value), "nothing")
    return "float" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def forged_state(original, rng, free=FREE):
    """A member of the state that is missing, has another name, or is something else."""
    header, tensors = json.loads(json.dumps(original.header)), dict(original.tensors)
    tensors["junk"] = rng.normal(size=(3, 1, 2))
    header["tensors"] = sorted(tensors)
    places = list(nodes(header["state"]))
    container, key, path = places[rng.integers(len(places))]
    old, junk, is_free = container[key], JUNK[rng.integers(len(JUNK))], free.match(path)
    match rng.integers(4):
        case 0 if not is_free:
            del container[key]
        case 1 if isinstance(container, dict):
            container[NAMES[rng.integers(len(NAMES))]] = container.pop(key)
        case 2 if isinstance(container, dict):
            container[NAMES[rng.integers(len(NAMES))]] = junk
        case _:
            same_kind = kind_of(junk) == kind_of(old) and not (kind_of(junk) == "float" and junk in (NAN, 10**400))
            container[key] = {"dict": {"x": 1}} if same_kind or is_free else junk
    if "junk" not in json.dumps(header["state"]):
        del tensors["junk"]
        header["tensors"] = sorted(tensors)
    return packed(header, tensors)


def forged_tensor(original, rng, free=FREE):
    """A tensor that is missing, has another shape or type, or holds NaN."""
    header, tensors = dict(original.header), dict(original.tensors)
    names = [name for name in sorted(tensors) if not free.match(place_of(name))]
    name = names[rng.integers(len(names))]
    array = tensors[name]
    match rng.integers(8):
        case 0:
            del tensors[name]
        case 1:
            tensors[name] = array.reshape(*array.shape, 1)
        case 2:
            tensors[name] = array.reshape(-1)[:-1]
        case 3:
            tensors[name] = np.concatenate([array.reshape(-1), array.reshape(-1)[:1]])
        case 4:
            tensors[name] = array[..., None] == array.reshape(-1)[:1]
        case 5:
            tensors[name] = np.zeros((0, *array.shape[1:]), array.dtype)
        case 6:
            tensors[f"{name}x"] = tensors.pop(name)
        case _ if array.dtype.kind == "f":
            tensors[name] = array.copy()
            tensors[name].reshape(-1)[rng.integers(max(array.size, 1)) : :] = np.nan
        case _:
            tensors[name] = array.astype(np.float16).reshape(-1, 1)
    header["tensors"] = sorted(tensors)
    return packed(header, tensors)


def forged_header(original, rng, free=FREE):
    """A version, a kind or a list of tensors that cannot be, or a header that is hard to read."""
    header, tensors = json.loads(json.dumps(original.header)), original.tensors
    names = list(header)
    nested = "[" * DEEP + "]" * DEEP
    match rng.integers(9):
        case 0:
            header["version"] = VERSIONS[rng.integers(len(VERSIONS))]
        case 1:
            header["kind"] = ["checkpoint", "Pipeline", None, [], "BayesianSVC ", 3][rng.integers(6)]
        case 2:
            del header[names[rng.integers(len(names))]]
        case 3:
            header["tensors"] = [header["tensors"] * 2, header["tensors"][:-1], 3, None, "x", [[]], [None]][
                rng.integers(7)
            ]
        case 4:
            return packed(header, tensors, lambda h: json.dumps(h)[:-1] + f', "state": {nested}}}')
        case 5:
            deep = '{"dict": {"a": ' * 300 + "1" + "}}" * 300
            return packed(header | {"state": json.loads(deep)}, tensors)
        case 6:
            return packed(header, tensors, lambda h: json.dumps(h)[:-1] + ', "state": ' + "9" * 5000 + "}")
        case 7:
            return packed(header, tensors, lambda h: json.dumps(h)[:-1] + ', "version": NaN}')
        case _:
            return packed(header, tensors, lambda h: ["", "[]", "null", nested, "{", '"x"'][rng.integers(6)])
    return packed(header, tensors)


def forged_strings(original, rng, free=FREE):
    """An array of strings that declares more than it has, or holds something else."""
    header, tensors = json.loads(json.dumps(original.header)), dict(original.tensors)
    lists = [
        (container, key)
        for container, key, _ in nodes(header["state"])
        if key == "array" and isinstance(container[key], list)
    ]
    if not lists:
        return forged_header(original, rng)
    container, key = lists[rng.integers(len(lists))]
    name, dtype, shape = container[key]
    match rng.integers(3):
        case 0:
            dtype = STRING_TYPES[rng.integers(len(STRING_TYPES))]
        case 1:
            shape = SHAPES[rng.integers(len(SHAPES))]
        case _:
            texts = ["3", "[1]", "{}", "[" * DEEP, '["a"', "[null]", '["a", ["b"]]', "", '["a", 1, "c"]'][
                rng.integers(9)
            ]
            tensors[name] = np.frombuffer(texts.encode(), np.uint8)
    container[key] = [name, dtype, shape]
    return packed(header, tensors)


WAYS = {
    "damaged": damaged,
    "forged state": forged_state,
    "forged tensor": forged_tensor,
    "forged header": forged_header,
    "forged strings": forged_strings,
}


def assert_same(original, model):
    """The same predictions to the last bit, and nothing learned that is different."""
    said = said_by(model)
    assert said.keys() == original.said.keys()
    for name, value in said.items():
        np.testing.assert_array_equal(value, original.said[name], err_msg=name)


def outcome(original, content, path):
    """The outcome of loading a file; an AssertionError if it is neither rejected nor unchanged."""
    path.write_bytes(content)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        model = bayesvm.load(path)
    except ValueError as error:
        assert str(path) in str(error), f"the error does not name the file: {error}"  # noqa: PT017
        found = REFUSED
    else:
        assert_same(original, model)
        found = SAME
    taken = tracemalloc.get_traced_memory()[1] - before
    assert taken < MEMORY, f"{taken:,} bytes of memory for a file of {len(content):,}"
    return found


def attack(n_files, seed=0):
    """Attack so many model files, always the same ones for a seed; the number of each outcome.

    Raises ``AssertionError`` with the number and the kind of the first file that does anything else.
    """
    rng, counts = np.random.default_rng(seed), Counter({REFUSED: 0, SAME: 0})
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        targets = list(originals(Path(folder)))
        warnings.simplefilter("error")
        tracemalloc.start()
        try:
            for number in range(n_files):
                way = list(WAYS)[number % len(WAYS)]
                target = targets[rng.integers(len(targets))]
                try:
                    counts[outcome(target, WAYS[way](target, rng), Path(folder) / "attacked.bayesvm")] += 1
                except Exception as error:
                    raise AssertionError(f"file {number} of seed {seed} ({way}): {error!r:.500}") from error
        finally:
            tracemalloc.stop()
    return dict(counts)
