"""Inference: choose the inducing points. The only module below the estimators that uses scikit-learn's clustering."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from bayesvm.core.heads import Head
from bayesvm.core.kernels import Kernel
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace
from bayesvm.data.blas import one_blas_thread
from bayesvm.data.blocks import BlockSource, HeldRows, at_most
from bayesvm.data.repetition import equal_rows

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

HOW = ("kmeans", "random", "greedy", "gmm")

SAMPLE_ROWS = 4_000  # points are chosen from at most this many rows, or
SAMPLE_ROWS_PER_POINT = 8  # this many per inducing point, whichever is more

# Ratio of table rows to sample rows above which k-means clusters each stratum separately. Points chosen with y are
# better (covtype, 40,000 rows: log loss 0.465 -> 0.454), but leave-one-out ignores the influence of a row on them: if
# the sample is the whole table, the estimate is up to 0.05 too optimistic; here at most 0.0015 on three tables.
ROWS_PER_SAMPLE_FOR_STRATA = 5

# For AFK-MC²: seeds are within 1% of exact k-means++; 10 steps can be 16% worse, 200 are no better.
CHAIN_STEPS = 50
ROUNDS = 8  # of drawing the points of a small model
LLOYD_STEPS = 5  # few, because points need to cover the data, not to be an optimal clustering
EM_STEPS = 5
LEAST_SPREAD = 1e-3  # of a component of the mixture, relative to the extent of the rows
LEAST_VARIANCE = 1e-10  # relative to the largest k(x,x); points that explain less only make k(Z,Z) singular


def select(
    source: BlockSource,
    how: str,
    n_points: int,
    rng: np.random.Generator,
    kernel: Kernel | None = None,
    head: Head | None = None,
) -> Array:
    """``n_points`` inducing points from a bounded random sample; fewer if the sample has fewer distinct rows.

    - ``"kmeans"``: cluster centres, from AFK-MC² seeds; within the strata of the head if there are many rows.
    - ``"random"``: rows drawn regardless of their weights.
    - ``"greedy"``: successively the row with the largest remaining variance; fewer if no variance remains.
    - ``"gmm"``: means of a Gaussian mixture.

    k-means and the mixture measure distances in the length-scales of the kernel, if it has any. Repeated rows are
    merged first and counted by weight, so a weight of two and a repeated row give the same points.
    """
    if how not in HOW:
        raise ValueError(f"the method for inducing points must be one of {', '.join(map(repr, HOW))}; got {how!r}")
    if how == "greedy" and kernel is None:
        raise ValueError("'greedy' chooses inducing points by the variances of the kernel; pass kernel to select")
    limit = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_POINT * n_points)
    rows, weight, stratum = _distinct(at_most(source, limit, rng), head)
    if n_points >= len(rows):
        return rows
    if how == "random":
        return rows[rng.choice(len(rows), n_points, replace=False)]
    # One thread: otherwise sums, and thus the points, would depend on the number of threads and their timing.
    with one_blas_thread(), threadpool_limits(limits=1, user_api="openmp"):
        if kernel is not None and how == "greedy":
            return rows[greedy_rows(rows, n_points, kernel)]
        origin, unit = rows.mean(axis=0), _unit(rows, kernel)
        given = (rows - origin) / unit, weight
        if how == "gmm":
            points = mixture_means(*given, n_points, rng)
        elif head is not None and source.n_rows >= ROWS_PER_SAMPLE_FOR_STRATA * limit:
            points = stratified_centres(*given, stratum, n_points, rng)
        else:
            points = clusters(*given, n_points, rng).cluster_centers_
        return np.unique(points * unit + origin, axis=0)


def seeds(rows: Array, weight: Array, n_points: int, rng: np.random.Generator, kernel: Kernel) -> Array:
    """Distinct rows far from each other in the kernel's length-scales, drawn as by k-means|| (Bahmani et al., 2012).

    For models that do not need better points, and for which k-means would take as long as the fit. Every round draws
    several rows at once, with ``p(x) ∝ ω d(x, chosen)²``.
    """
    first, which = equal_rows(rows)
    distinct = rows[first]
    if n_points >= len(distinct):
        return distinct
    scaled = (distinct - distinct.mean(axis=0)) / _unit(distinct, kernel)
    summed = np.bincount(which, weight)
    chosen, squares = list[int](), np.einsum("ij,ij->i", scaled, scaled)
    norms = squares.copy()
    while len(chosen) < n_points:
        odds = summed * squares
        odds[chosen] = 0.0
        drawable = np.count_nonzero(odds)
        if not drawable:  # up to rounding, all other rows coincide with chosen ones
            odds = np.ones(len(distinct))
            odds[chosen] = 0.0
            drawable = np.count_nonzero(odds)
        size = min(max(1, len(chosen)), n_points - len(chosen), int(drawable), max(1, n_points // ROUNDS))
        drawn = rng.choice(len(distinct), size, replace=False, p=odds / odds.sum())
        found = norms[:, None] - 2 * scaled @ scaled[drawn].T + norms[drawn]
        nearest = np.maximum(found.min(axis=1), 0.0)
        squares = np.minimum(squares, nearest) if chosen else nearest
        chosen += drawn.tolist()
    return np.asarray(distinct[chosen])


def every_row(source: BlockSource) -> Array:
    """All distinct rows, for the paper's model without inducing points."""
    return _distinct(source.held(), None)[0]


def afk_mc2_seeds(rows: Array, weight: Array, n_seeds: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """The rows to start k-means from, by AFK-MC² (Bachem, Lucic, Hassani and Krause, 2016).

    k-means++ draws each seed with ``p(x) ∝ ω d(x, seeds)²``. Here it is the last state of a Markov chain with this
    limit and with proposals from ``q(x) = ½ ω d(x, c₁)² / Σ ω d(x, c₁)² + ½ ω / Σ ω``, c₁ the first seed. The chain
    moves to a proposal if ``d²/(q/ω)`` there exceeds a uniform random number times its current value.
    """
    first = rng.choice(len(rows), p=weight / weight.sum())
    shifted = rows - rows[first]
    norms = np.einsum("ij,ij->i", shifted, shifted)  # d(x, c₁)²
    odds = (norms / (weight @ norms) + 1 / weight.sum()) / 2  # q/ω
    chains = rng.choice(len(rows), (n_seeds - 1, CHAIN_STEPS), p=weight * odds)
    bars = rng.random(chains.shape)

    # d² = |x|² + (-2x, 1)·(c, |c|²), so that a chain needs one matrix product; the first seed is the origin.
    lifted_rows = np.column_stack([-2 * shifted, np.ones(len(rows))])
    lifted_seeds = np.zeros((n_seeds, lifted_rows.shape[1]))
    seeds = [first]
    free = np.arange(len(rows)) != first
    for chain, bar in zip(chains, bars.tolist(), strict=True):
        squares = norms[chain] + np.min(lifted_seeds[: len(seeds)] @ lifted_rows[chain].T, axis=0)
        merit = (squares * free[chain] / odds[chain]).tolist()  # rounding may make the square of a seed positive
        here = 0
        for there in range(1, CHAIN_STEPS):
            if merit[there] > bar[there] * merit[here]:
                here = there
        if merit[here] > 0:  # zero if the chain visited only seeds
            seed = chain[here]
            lifted_seeds[len(seeds)] = *shifted[seed], norms[seed]
            seeds.append(seed)
            free[seed] = False
    others = rng.choice(np.flatnonzero(free), n_seeds - len(seeds), replace=False)
    return np.array([*seeds, *others], np.intp)


def clusters(rows: Array, weight: Array, n_clusters: int, rng: np.random.Generator) -> KMeans:
    """Weighted k-means: a few Lloyd steps from AFK-MC² seeds. A centre that loses all rows moves to a distant row."""
    from sklearn.cluster import KMeans  # noqa: PLC0415  (a fifth of what it takes to import the estimators)

    seeds = rows[afk_mc2_seeds(rows, weight, n_clusters, rng)]
    kmeans = KMeans(n_clusters, init=seeds, n_init=1, max_iter=LLOYD_STEPS, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rows that are equal up to rounding may share a centre
        return kmeans.fit(rows, sample_weight=weight)


def stratified_centres(
    rows: Array, weight: Array, stratum: npt.NDArray[np.intp], n_points: int, rng: np.random.Generator
) -> Array:
    """Cluster centres within each stratum, whose number of points is proportional to the root of its weight.

    So neighbouring rows of two strata have points on either side of the boundary between them.
    """
    strata, which = np.unique(stratum, return_inverse=True)
    most, merit = np.bincount(which), np.sqrt(np.bincount(which, weight))
    sizes = np.zeros(len(strata), np.intp)
    for _ in range(n_points):  # Sainte-Laguë method for allocating integers
        sizes[np.argmax(np.where(sizes < most, merit / (2 * sizes + 1), 0.0))] += 1
    centres = []
    for i, size in enumerate(sizes.tolist()):
        mine = which == i
        if size == most[i]:
            centres.append(rows[mine])
        elif size:
            centres.append(clusters(rows[mine], weight[mine], size, rng).cluster_centers_)
    return np.concatenate(centres)


def mixture_means(rows: Array, weight: Array, n_points: int, rng: np.random.Generator) -> Array:
    """Means of a Gaussian mixture with diagonal covariances: a few EM steps from the k-means centres.

    scikit-learn's mixture does not support weights. It is fitted to the same number of rows, selected at even steps of
    the cumulative weight; with equal weights, every row is selected once.
    """
    from sklearn.mixture import GaussianMixture  # noqa: PLC0415  (as slow to import)

    kmeans = clusters(rows, weight, n_points, rng)
    centres = kmeans.cluster_centers_
    variance = LEAST_SPREAD**2 + kmeans.inertia_ / (weight.sum() * rows.shape[1])
    summed = np.cumsum(weight)
    taken = np.searchsorted(summed, (np.arange(len(rows)) + 0.5) * (summed[-1] / len(rows)))
    mixture = GaussianMixture(
        n_points,
        covariance_type="diag",
        reg_covar=LEAST_SPREAD**2,
        max_iter=EM_STEPS,
        random_state=0,
        weights_init=np.full(n_points, 1 / n_points),
        means_init=centres,
        precisions_init=np.full(centres.shape, 1 / variance),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few steps are intended
        mixture.fit(rows[taken])
    # A component whose rows have too little weight to be selected has no mean.
    return np.where(mixture.weights_[:, None] > 1e-9, mixture.means_, centres)


def greedy_rows(rows: Array, n_points: int, kernel: Kernel) -> list[int]:
    """Successive rows of largest conditional variance ``k(x,x) - |φ(x)|²`` (Burt et al., 2020).

    This is the pivoted Cholesky factorisation of ``k(rows, rows)``; φ are the current rows of the factor. Weights are
    ignored; ties go to the first row.
    """
    against_rows = kernel.against(rows)
    variance = kernel.diagonal(rows)
    least = LEAST_VARIANCE * variance.max()
    factor = np.empty((n_points, len(rows)))
    chosen: list[int] = []
    for i in range(n_points):
        pivot = int(variance.argmax())
        if variance[pivot] <= least:
            break
        covariance = against_rows(rows[[pivot]], Workspace())[0] - factor[:i, pivot] @ factor[:i]
        factor[i] = covariance / np.sqrt(variance[pivot])
        variance -= factor[i] ** 2
        variance[pivot] = 0  # exactly zero, despite rounding
        chosen.append(pivot)
    return chosen


def _distinct(source: HeldRows, head: Head | None) -> tuple[Array, Array, npt.NDArray[np.intp]]:
    """Distinct rows in the order of their numbers, their weights, and the stratum with most of each row's weight."""
    block = source.gathered()
    rows, which = np.unique(np.asarray(block.X, np.float64), axis=0, return_inverse=True)
    stratum = np.zeros(len(block.y), np.intp) if head is None else head.strata(block.y)
    strata, own = np.unique(stratum, return_inverse=True)
    cell, shape = which.ravel() * len(strata) + own, (len(rows), len(strata))
    each = np.bincount(cell, block.weight, minlength=shape[0] * shape[1]).astype(np.float64).reshape(shape)
    weight = each.sum(axis=1)
    given = weight > 0
    return rows[given], weight[given], each.argmax(axis=1)[given]


def _unit(rows: Array, kernel: Kernel | None) -> Array:
    """The kernel's length-scales times the extent of the rows in them, so that squares neither over- nor underflow."""
    if kernel is not None:
        kernel.against(rows[:1])  # raises unless there are as many length-scales as columns
    scale = np.asarray(1.0 if kernel is None or kernel.length_scales is None else kernel.length_scales, np.float64)
    return scale * np.ptp(rows / scale, axis=0).max()
