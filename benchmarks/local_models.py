"""Local models against one model for all rows and against LightGBM; how large their jumps are.

Run with `make bench-local`, with the tables covtype and flights_nyc13 in the folder that BAYESVM_DATA names. Log loss,
error and leave-one-out of every fit; times are ratios to LightGBM with 255 leaves in the same run.
"""

import time
import warnings

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from bayesvm import BayesianSVC
from bayesvm.core.latent import View
from bayesvm.core.workspace import Workspace
from bayesvm.datasets import load_table, waveform

TEST_ROWS = 50_000
NEAREST = 0.02  # of the rows, by their distance from a border


def problems():
    X, y = load_table("covtype")
    for n_rows in (10_000, 100_000, 500_000):
        yield f"covtype, {n_rows:,}", split(X, y, n_rows)
    X, y = load_table("flights_nyc13")
    yield "flights, 150,000", split(X, y, 150_000)
    late = X[:, 0] >= 10
    early, new = np.flatnonzero(~late), np.flatnonzero(late)
    rng = np.random.default_rng(0)
    early, new = rng.permutation(early)[:150_000], rng.permutation(new)[:TEST_ROWS]
    yield "flights, 150,000, later months", (X[early], X[new], y[early], y[new])
    train, test = waveform(200_000, random_state=0), waveform(TEST_ROWS, random_state=1)
    yield "waveform, 200,000", (train.X, test.X, train.y, test.y)


def split(X, y, n_rows):
    return train_test_split(X, y, train_size=n_rows, test_size=TEST_ROWS, random_state=0, stratify=y)


def methods():
    yield "LightGBM, 255 leaves", lambda: boosting(255)
    yield "LightGBM, 31 leaves", lambda: boosting(31)
    yield "`local=False`", lambda: BayesianSVC(local=False, random_state=0)
    yield '`local="auto"`', lambda: BayesianSVC(random_state=0)


def boosting(leaves):
    return LGBMClassifier(n_estimators=500, num_leaves=leaves, verbose=-1, n_jobs=2, random_state=0)


def measured():
    for name, (X, X_test, y, y_test) in problems():
        unit = None
        for method, make in methods():
            began = time.perf_counter()
            model = make().fit(X, y)
            seconds = time.perf_counter() - began
            unit = unit or seconds
            p = model.predict_proba(X_test)[:, 1]
            error = float(np.mean((p > 0.5) != (y_test == model.classes_[1])))
            row = [name, method, f"{log_loss(y_test, p):.4f}", f"{error:.4f}"]
            loo = f"{model.loo_log_loss_:.4f}" if isinstance(model, BayesianSVC) else ""
            row += [loo, f"{seconds:.1f}", f"{seconds / unit:.1f}"]
            jumps = ["", "", ""]
            leaves = getattr(model.fitted_.member, "leaves", None) if isinstance(model, BayesianSVC) else None
            if leaves is not None:
                one, both = jumps_of(model, X_test)
                jumps = [f"{leaves.tree.n_leaves:,}", f"{one:.3f}", f"{both:.3f}"]
            print(*row, *jumps, sep=" | ", flush=True)
            yield row + jumps


def jumps_of(model, X):
    """Mean change of the probability where a row crosses the border next to it: of one member alone, and of the model.

    Of the rows that lie nearest to a border.
    """
    fitted, alone, together = model.fitted_, [], []
    some = X[np.random.default_rng(0).permutation(len(X))[:5_000]]
    for member, share, link in zip(fitted.members, fitted.views.shares, fitted.links, strict=True):
        rows = member.rows(fitted.scaler(some))
        mine, other, distance = sides(member.leaves.tree, rows)
        near = np.argsort(distance)[: int(NEAREST * len(rows))]
        said = [link.probabilities(*local(member, rows[near], leaf[near]))[:, 1] for leaf in (mine, other)]
        jump = float(np.abs(said[0] - said[1]).mean())
        alone.append(jump)
        together.append(share * jump)
    return np.mean(alone), np.mean(together)


def sides(tree, rows):
    """The leaf of every row, that beyond the nearest border on its way down, and the distance to that border."""
    mine = tree.leaf_of(rows)
    other, distance = np.empty_like(mine), np.empty(len(rows))
    length = np.linalg.norm(tree.directions, axis=1)
    for i, row in enumerate(rows):
        margin = (tree.directions @ row - tree.thresholds) / length
        way, at = [], 0
        while at >= 0:
            way.append(at)
            at = int(tree.below[at] if margin[at] <= 0 else tree.beyond[at])
        nearest = min(way, key=lambda split: abs(margin[split]))
        distance[i] = abs(margin[nearest])
        at = int(tree.beyond[nearest] if margin[nearest] <= 0 else tree.below[nearest])
        while at >= 0:
            at = int(tree.below[at] if margin[at] <= 0 else tree.beyond[at])
        other[i] = ~at
    return mine, other, distance


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


HEADER = [
    "table, rows",
    "method",
    "log loss",
    "error",
    "leave-one-out",
    "seconds",
    "ratio",
    "leaves",
    "jump of one",
    "jump",
]


def main():
    warnings.simplefilter("ignore")
    rows = [HEADER, ["---", "---", *["--:"] * (len(HEADER) - 2)], *measured()]
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))


if __name__ == "__main__":
    main()
