"""Local models against one model for all rows and against LightGBM; how large their jumps are, and what lowers them.

Run with `make bench-local`, with the tables covtype and flights_nyc13 in the folder that BAYESVM_DATA names. Log loss,
error and leave-one-out of every fit; times are ratios to LightGBM with 255 leaves in the same run.
"""

import sys
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from bayesvm import BayesianSVC
from bayesvm.core.latent import View
from bayesvm.core.workspace import Workspace
from bayesvm.data.memory import MemoryBuckets, MemorySource
from bayesvm.datasets import load_table, waveform
from bayesvm.inference import fitting

TEST_ROWS = 50_000
NEAREST = 0.02  # of the rows, by their distance from a border
OVERLAP = 0.05  # of the rows of a leaf, from the other side of its borders
USUAL = ("LightGBM, 255 leaves", "LightGBM, 31 leaves", "`local=False`", '`local="auto"`')


def problems():
    X, y = load_table("covtype")
    trees = ("one tree", "two trees")
    yield "covtype, 10,000", split(X, y, 10_000), (*USUAL[:3], *trees, "one tree, overlap", "two trees, overlap")
    yield "covtype, 100,000", split(X, y, 100_000), (*USUAL[:3], *trees, "one tree, overlap")
    yield "covtype, 500,000", split(X, y, 500_000), (*USUAL[:2], *trees)
    X, y = load_table("flights_nyc13")
    yield "flights, 150,000, random rows", split(X, y, 150_000), USUAL
    late = X[:, 0] >= 10
    early, new = np.flatnonzero(~late), np.flatnonzero(late)
    rng = np.random.default_rng(0)
    early, new = rng.permutation(early)[:150_000], rng.permutation(new)[:TEST_ROWS]
    yield "flights, 150,000, later months", (X[early], X[new], y[early], y[new]), USUAL
    train, test = waveform(200_000, random_state=0), waveform(TEST_ROWS, random_state=1)
    yield "waveform, 200,000", (train.X, test.X, train.y, test.y), USUAL


def split(X, y, n_rows):
    return train_test_split(X, y, train_size=n_rows, test_size=TEST_ROWS, random_state=0, stratify=y)


def fitted(method, X, y):
    """A model of one of the methods, and the seconds of its fit."""
    trees = {"one": 0, "two": 10**9}.get(method[:3], fitting.AVERAGED_UP_TO)
    overlap = OVERLAP if "overlap" in method else 0.0
    with patch.object(fitting, "AVERAGED_UP_TO", trees), overlapping(overlap):
        began = time.perf_counter()
        model = made(method).fit(X, y)
        return model, time.perf_counter() - began


def made(method):
    if "LightGBM" in method:
        leaves = int(method.split()[1])
        return LGBMClassifier(n_estimators=500, num_leaves=leaves, verbose=-1, n_jobs=2, random_state=0)
    return BayesianSVC(local=False if "False" in method else "auto", random_state=0)


def measured(wanted):
    for name, (X, X_test, y, y_test), methods in problems():
        if wanted and not any(each in name for each in wanted):
            continue
        unit = None
        for method in methods:
            model, seconds = fitted(method, X, y)
            unit = unit or seconds
            p = model.predict_proba(X_test)[:, 1]
            error = float(np.mean((p > 0.5) != (y_test == model.classes_[1])))
            row = [name, method, f"{log_loss(y_test, p):.4f}", f"{error:.4f}"]
            loo = f"{model.loo_log_loss_:.4f}" if isinstance(model, BayesianSVC) else ""
            row += [loo, f"{seconds:.1f}", f"{seconds / unit:.1f}"]
            jumps = ["", "", ""]
            leaves = model.fitted_.member.leaves if isinstance(model, BayesianSVC) else None
            if leaves is not None:
                one, both = jumps_of(model, X_test)
                jumps = [f"{leaves.tree.n_leaves:,}", f"{one:.3f}", f"{both:.3f}"]
            print(*row, *jumps, sep=" | ", flush=True)
            yield row + jumps


# ---- jumps at borders ----


def jumps_of(model, X):
    """Mean change of the probability where a row crosses the border next to it: of one member alone, and of the model.

    Of the rows that lie nearest to a border.
    """
    found, alone, together = model.fitted_, [], []
    some = X[np.random.default_rng(0).permutation(len(X))[:5_000]]
    for member, share, link in zip(found.members, found.views.shares, found.links, strict=True):
        rows = member.rows(found.scaler(some))
        mine, other, distance = sides(member.leaves.tree, rows)
        near = np.argsort(distance)[: int(NEAREST * len(rows))]
        said = [link.probabilities(*local(member, rows[near], leaf[near]))[:, 1] for leaf in (mine, other)]
        jump = float(np.abs(said[0] - said[1]).mean())
        alone.append(jump)
        together.append(share * jump)
    return np.mean(alone), np.mean(together)


def sides(tree, rows):
    """The leaf of every row, the leaf beyond the nearest border on its way down, and the distance to that border."""
    margin = (rows @ tree.directions.T - tree.thresholds) / np.linalg.norm(tree.directions, axis=1)
    every = np.arange(len(rows))
    nearest, distance = np.zeros(len(rows), np.intp), np.full(len(rows), np.inf)

    def down(at, flipped):
        while (inside := np.flatnonzero(at >= 0)).size:
            split = at[inside]
            apart = np.abs(margin[inside, split])
            if flipped is None:
                closer = apart < distance[inside]
                nearest[inside[closer]], distance[inside[closer]] = split[closer], apart[closer]
            below = margin[inside, split] <= 0
            below ^= False if flipped is None else split == flipped[inside]
            at[inside] = np.where(below, tree.below[split], tree.beyond[split])
        return ~at

    mine = down(np.zeros_like(every), None)
    return mine, down(np.zeros_like(every), nearest), distance


def local(member, rows, leaf):
    """Mean and variance of f as these leaves see the rows."""
    view, _ = View.of(member.features, member.functions, len(rows), np.float64)
    (below,) = view.marginals(rows, Workspace())
    mean, variance = below.mean.copy(), below.explained.copy()
    for number in np.unique(leaf):
        which = leaf == number
        (at,) = member.leaves.leaves[number].marginals(rows[which])
        mean[which] += at.mean
        variance[which] += at.variance
    return mean[:, None], variance[:, None]


# ---- leaves that overlap ----


@dataclass(frozen=True)
class OverlappingBuckets:
    """Leaves that also learn from the nearest rows beyond their borders, which are not left out there."""

    source: MemorySource
    own: list
    more: list

    def map(self, function, groups):
        def marked(parts):
            return function([part._replace(numbers=self._numbers(part)) for part in parts])

        rows = [np.concatenate(both) for both in zip(self.own, self.more, strict=True)]
        return MemoryBuckets(self.source, rows).map(marked, groups)

    def _numbers(self, part):
        return np.where(np.arange(len(part.numbers)) < len(self.own[part.bucket]), part.numbers, -1)


@contextmanager
def overlapping(share):
    """Fits in memory with leaves that overlap."""
    bucketed = MemorySource.bucketed

    def overlapped(source, bucket_of, n_buckets):
        buckets, tree = bucketed(source, bucket_of, n_buckets), bucket_of.__self__
        _, other, distance = sides(tree, source.gathered().X)
        more = []
        for leaf, own in enumerate(buckets.rows):
            beyond = np.flatnonzero(other == leaf)
            more.append(beyond[np.argsort(distance[beyond])[: round(share * len(own))]])
        return OverlappingBuckets(source, list(buckets.rows), more)

    with patch.object(MemorySource, "bucketed", overlapped if share else bucketed):
        yield


HEADER = [
    "table, rows", "method", "log loss", "error", "leave-one-out", "seconds", "ratio", "leaves", "jump of one", "jump",
]  # fmt: skip


def main():
    warnings.simplefilter("ignore")
    rows = [HEADER, ["---", "---", *["--:"] * (len(HEADER) - 2)], *measured(sys.argv[1:])]
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))


if __name__ == "__main__":
    main()
