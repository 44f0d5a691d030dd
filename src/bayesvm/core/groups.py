"""Core: leave-group-out cavities (D24) and the derivative of their loss (D34).

Groups of similar size are removed in one *batch*, padded with rows that carry no information.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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

MOST_ENTRIES = 4_000_000  # in the features of a batch

Positions = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Grouping:
    """The groups of N rows. ``batches`` has the positions of each group's rows; N is padding."""

    n_rows: int
    batches: tuple[Positions, ...]
    numbers: Positions  # the group number of every row

    @classmethod
    def of(cls, numbers: npt.NDArray[Any], n_weights: int = 500) -> Grouping:
        """Put groups whose sizes round to the same power of two into one batch, as far as memory allows."""
        _, group, sizes = np.unique(numbers, return_inverse=True, return_counts=True)
        order, ends = np.argsort(group, kind="stable"), np.cumsum(sizes)
        padded = 2 ** np.ceil(np.log2(sizes)).astype(int)
        batches = list[Positions]()
        for size in np.unique(padded):
            members = np.flatnonzero(padded == size)
            positions = np.full((len(members), size), len(numbers), np.intp)
            for row, each in enumerate(members):
                positions[row, : sizes[each]] = order[ends[each] - sizes[each] : ends[each]]
            most = max(1, MOST_ENTRIES // (size * n_weights))
            batches += [positions[first : first + most] for first in range(0, len(positions), most)]
        return cls(len(numbers), tuple(batches), group)

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return int(self.numbers.max()) + 1


class Removed(NamedTuple):
    """The groups of a batch, removed from one function: arrays of groups × rows, or groups × rows × M."""

    positions: Positions
    mean: Array  # m₋ - c
    explained: Array  # t₋
    spread: Array  # B₋, with Phi S₋ = B₋ rootᵀ


def removed(positions: Positions, B: Array, centred: Array, w: Array, gamma: Array) -> Removed:
    """``B₋ = (I - TW)^-1 B``, ``t₋ = diag(B₋ Bᵀ)``, ``m₋ - c = (I + B₋ Bᵀ W) (m - c - Tγ)`` (D24).

    ``T = B Bᵀ``. Arrays have an axis for groups and one for their rows. The side of
    ``(I - TW)^-1 B = B (I - BᵀWB)^-1`` with the smaller matrix is computed.
    """
    root = np.sqrt(w)[:, :, None]
    scaled = root * B  # W^½ B
    transposed = np.swapaxes(scaled, 1, 2)
    if B.shape[1] > B.shape[2]:
        spread = B @ _inverse_of_rest(transposed @ scaled)
    else:
        # I + T W^½ (I - W^½TW^½)^-1 W^½, times B
        spread = B + (B @ transposed) @ (_inverse_of_rest(scaled @ transposed) @ scaled)
    alone = centred - _times(B, gamma)
    return Removed(
        positions, alone + _times(spread, w * alone, B), np.maximum(np.einsum("nij,nij->ni", spread, B), 0.0), spread
    )


def _times(left: Array, values: Array, right: Array | None = None) -> Array:
    """``left rightᵀ values`` for each group; ``right`` defaults to ``left``."""
    return np.asarray(np.einsum("nij,nj->ni", left, np.einsum("nij,ni->nj", left if right is None else right, values)))


def _inverse_of_rest(taken: Array) -> Array:
    """``(I - A)^-1``, with the eigenvalues of ``I - A`` clipped to a floor (D24)."""
    rest = np.eye(taken.shape[-1]) - taken
    try:
        np.linalg.cholesky(rest - SMALLEST_SHARE * np.eye(taken.shape[-1]))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(rest)
        values = np.maximum(values, SMALLEST_SHARE)
        return np.asarray((vectors / values[:, None, :]) @ np.swapaxes(vectors, 1, 2))
    return np.linalg.inv(rest)


def groups_left_out(
    rows: RowMarginals, spreads: Callable[[Positions], Sequence[Array]], grouping: Grouping
) -> list[list[Removed]]:
    """Remove every group from every function; ``spreads`` returns ``B = Phi root`` of given rows for each function."""
    found: list[list[Removed]] = [[] for _ in rows.mean.T]
    columns = [*zip((rows.mean - rows.prior_mean).T, rows.precision.T, rows.linear.T, strict=True)]
    for positions in grouping.batches:
        there = positions < grouping.n_rows
        for number, spread in enumerate(spreads(positions[there])):
            B = np.zeros((*positions.shape, spread.shape[1]))
            B[there] = spread
            given = (_with_nothing(column)[positions] for column in columns[number])
            found[number].append(removed(positions, B, *given))
    return found


def group_cavities(
    rows: RowMarginals, without: Sequence[Sequence[Removed]], y: npt.NDArray[Any], weight: Array
) -> Cavities:
    """Leave out every row together with all rows of its group, each with its full weight (D24)."""
    mean, variance = rows.prior_mean.copy(), rows.residual.copy()
    for number, batches in enumerate(without):
        for batch in batches:
            there = batch.positions < len(y)
            mean[batch.positions[there], number] += batch.mean[there]
            variance[batch.positions[there], number] += batch.explained[there]
    return Cavities(mean, variance, y, weight)


def group_loss_gradient(
    records: Sequence[RecordedFeatures],
    rows: RowMarginals,
    without: Sequence[Sequence[Removed]],
    cavities: Cavities,
    functions: Sequence[LatentFunction],
    link: FittedLink,
) -> Iterator[FeatureGradient]:
    """The derivative of the leave-group-out loss with respect to the features, block by block (D34).

    As in D17, the link and the sites are fixed, and q depends on the features.
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
            there = batch.positions < len(phi)
            phi_bar[batch.positions[there]] += found[0][there]
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
    """``phī`` of the rows of a batch, and the derivatives of its loss with respect to h and P of the function (D34)."""
    q, positions = full(function), batch.positions
    Phi = _with_nothing(phi)[positions]
    u, m_bar, t_bar, w, gamma = (_with_nothing(part)[positions] for part in (centred, *given))
    V = batch.spread @ q.root.T  # Phi S₋
    mean = q.mean + np.einsum("nij,ni->nj", V, w * u - gamma)  # mu₋
    linear = np.einsum("nij,ni->nj", V, m_bar)  # h̄
    scaled = t_bar[:, :, None] * V
    phi_bar = m_bar[:, :, None] * mean[:, None, :] + 2 * scaled
    if V.shape[1] > V.shape[2]:
        halves = -0.5 * linear[:, :, None] * mean[:, None, :]
        precision = halves + np.swapaxes(halves, 1, 2) - np.swapaxes(V, 1, 2) @ scaled  # P̄ of every group
        with_precision, total = Phi @ precision, precision.sum(axis=0)
    else:
        along = np.einsum("nij,nj->ni", Phi, linear), np.einsum("nij,nj->ni", Phi, mean)
        with_precision = -(Phi @ np.swapaxes(V, 1, 2)) @ scaled - 0.5 * (
            along[0][:, :, None] * mean[:, None, :] + along[1][:, :, None] * linear[:, None, :]
        )
        outer = linear.T @ mean
        total = -V.reshape(-1, V.shape[2]).T @ scaled.reshape(-1, V.shape[2]) - 0.5 * (outer + outer.T)
    phi_bar -= 2 * w[:, :, None] * with_precision + gamma[:, :, None] * linear[:, None, :]
    return phi_bar, Response(linear.sum(axis=0), total)


def _with_nothing(values: Array) -> Array:
    """Append a row of zeros."""
    return np.concatenate([values, np.zeros((1, *values.shape[1:]), values.dtype)])
