"""Core: rows that belong together, left out together (D24), and the derivative of their loss (D31).

Groups are removed side by side: those of similar size make a *batch*, padded with rows that say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayesvm.core.cavities import SMALLEST_SHARE, Cavities, RowMarginals
from bayesvm.core.features import FeatureGradient, RecordedFeatures
from bayesvm.core.gradients import Response
from bayesvm.core.heads.contract import FittedLink
from bayesvm.core.latent import LatentFunction, full
from bayesvm.core.linalg import Array

MOST_ENTRIES = 4_000_000  # of the features of a batch

Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Grouping:
    """Which of N rows belong together. ``batches`` has the places of groups' rows, N standing for no row."""

    n_rows: int
    batches: tuple[Places, ...]
    labels: Places  # the number of every row's group

    @classmethod
    def of(cls, labels: npt.NDArray[Any], n_weights: int = 500) -> Grouping:
        """Groups of the same power of two in size share a batch, as far as memory allows."""
        _, numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        order, ends = np.argsort(numbers, kind="stable"), np.cumsum(sizes)
        padded = 2 ** np.ceil(np.log2(sizes)).astype(int)
        batches = list[Places]()
        for size in np.unique(padded):
            members = np.flatnonzero(padded == size)
            places = np.full((len(members), size), len(labels), np.intp)
            for row, group in enumerate(members):
                places[row, : sizes[group]] = order[ends[group] - sizes[group] : ends[group]]
            most = max(1, MOST_ENTRIES // (size * n_weights))
            batches += [places[first : first + most] for first in range(0, len(places), most)]
        return cls(len(labels), tuple(batches), numbers)

    @property
    def n_groups(self) -> int:
        """How many there are."""
        return int(self.labels.max()) + 1

    def weights(self, weight: Array) -> Array:
        """The weight of each row's group."""
        return np.asarray(np.bincount(self.labels, weight)[self.labels])


class Removed(NamedTuple):
    """Groups of a batch, removed from one function: arrays of groups × rows, or groups × rows × rows."""

    places: Places
    mean: Array  # m₋ - c
    explained: Array  # t₋
    factor: Array  # (I - TW)^-1


def removed(places: Places, spread: Array, centred: Array, w: Array, gamma: Array) -> Removed:
    """``m₋ - c = F (m - c - Tγ)`` and ``t₋ = diag(F T)``, ``F = (I - TW)^-1 = I + T W^½ (I - W^½TW^½)^-1 W^½`` (D24).

    The arrays have a row of zeros at their end, for places without a row. Eigenvalues of ``I - W^½TW^½`` have a floor.
    """
    B, u, weight, linear = (part[places].astype(np.float64) for part in (spread, centred, w, gamma))
    T = B @ np.swapaxes(B, 1, 2)
    root = np.sqrt(weight)
    values, vectors = np.linalg.eigh(root[:, :, None] * T * root[:, None, :])
    shares = 1 - np.minimum(values, 1 - SMALLEST_SHARE)
    inner = (vectors / shares[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    factor = np.eye(places.shape[1]) + (T * root[:, None, :]) @ (inner * root[:, None, :])
    alone = u - np.einsum("nij,nj->ni", T, linear)
    mean, explained = np.einsum("nij,nj->ni", factor, alone), np.einsum("nij,nji->ni", factor, T)
    return Removed(places, mean, np.maximum(explained, 0.0), factor)


def groups_left_out(rows: RowMarginals, spreads: Sequence[Array], grouping: Grouping) -> list[list[Removed]]:
    """Every group removed from every function; ``spreads`` are ``B = Phi root`` of all rows."""
    columns = zip(spreads, (rows.mean - rows.prior_mean).T, rows.precision.T, rows.linear.T, strict=True)
    return [[removed(places, *map(_with_nothing, function)) for places in grouping.batches] for function in columns]


def group_cavities(
    rows: RowMarginals, without: Sequence[Sequence[Removed]], y: npt.NDArray[Any], weight: Array, grouping: Grouping
) -> Cavities:
    """Every row left out together with all rows of its group, each with all its weight (D24)."""
    mean, variance = rows.prior_mean.copy(), rows.residual.copy()
    for number, batches in enumerate(without):
        for batch in batches:
            there = batch.places < len(y)
            mean[batch.places[there], number] += batch.mean[there]
            variance[batch.places[there], number] += batch.explained[there]
    return Cavities(mean, variance, y, weight, grouping.weights(weight))


def group_loss_gradient(
    records: Sequence[RecordedFeatures],
    rows: RowMarginals,
    without: Sequence[Sequence[Removed]],
    cavities: Cavities,
    functions: Sequence[LatentFunction],
    link: FittedLink,
) -> Iterator[FeatureGradient]:
    """The derivative of the loss of groups left out by the features, block by block (D31).

    As in D17 the link and the sites are held, and q follows the features.
    """
    _, by_mean, by_variance = link.loss(cavities.mean, cavities.variance, cavities.y, cavities.weight)
    phi = np.concatenate([record.phi for record in records]).astype(np.float64)
    phi_bar = np.zeros_like(phi)
    for number, (batches, function) in enumerate(zip(without, functions, strict=True)):
        given = by_mean[:, number], by_variance[:, number], rows.precision[:, number], rows.linear[:, number]
        centred = rows.mean[:, number] - rows.prior_mean[:, number]
        response = Response(np.zeros(phi.shape[1]), np.zeros((phi.shape[1],) * 2))
        for batch in batches:
            found = _pulled(batch, phi, function, centred, *given)
            there = batch.places < len(phi)
            phi_bar[batch.places[there]] += found[0][there]
            response = Response(response.linear + found[1].linear, response.precision + found[1].precision)
        phi_bar += 2 * rows.precision[:, [number]] * (phi @ response.precision)
        phi_bar += np.outer(rows.linear[:, number], response.linear)
    variance_bar = by_variance.sum(axis=1)
    first = 0
    for record in records:
        some = slice(first, first + len(record.phi))
        if record.prior_variance is not None:
            phi_bar[some] -= 2 * variance_bar[some, None] * phi[some]
        yield record.pull(phi_bar[some].astype(record.phi.dtype), variance_bar[some])
        first = some.stop


def _pulled(
    batch: Removed, phi: Array, function: LatentFunction, centred: Array, *given: Array
) -> tuple[Array, Response]:
    """``phī`` of the rows of a batch, and how its loss changes with h and P of the whole function (D31)."""
    q, places = full(function), batch.places
    Phi = _with_nothing(phi)[places]
    u, m_bar, t_bar, w, gamma = (_with_nothing(part)[places] for part in (centred, *given))
    V = batch.factor @ (Phi @ q.covariance)  # Phi S₋
    mean = q.mean + np.einsum("nij,ni->nj", V, w * u - gamma)  # mu₋
    linear = np.einsum("nij,ni->nj", V, m_bar)  # h̄
    scaled = t_bar[:, :, None] * V
    halves = np.einsum("nij,nj->ni", Phi, linear), np.einsum("nij,nj->ni", Phi, mean)
    with_precision = -(Phi @ np.swapaxes(V, 1, 2)) @ scaled - 0.5 * (
        halves[0][:, :, None] * mean[:, None, :] + halves[1][:, :, None] * linear[:, None, :]
    )
    phi_bar = m_bar[:, :, None] * mean[:, None, :] + 2 * scaled
    phi_bar -= 2 * w[:, :, None] * with_precision + gamma[:, :, None] * linear[:, None, :]
    flat = V.reshape(-1, V.shape[2])
    outer = linear.T @ mean
    precision = -flat.T @ scaled.reshape(flat.shape) - 0.5 * (outer + outer.T)
    return phi_bar, Response(linear.sum(axis=0), precision)


def _with_nothing(values: Array) -> Array:
    """The same with a row of zeros at the end."""
    return np.concatenate([values, np.zeros((1, *values.shape[1:]), values.dtype)])
