"""Inference: the last step of a fit: fit links and member weights to the left-out rows, and build the fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesvm.core.cavities import Cavities
from bayesvm.core.heads import Head
from bayesvm.core.leaves import Leaves
from bayesvm.core.linalg import OUT_OF_RANGE, Array, NotFiniteError
from bayesvm.core.members import Member
from bayesvm.data.blocks import RowNumbers
from bayesvm.data.scaling import ColumnScaler, equal_scalers
from bayesvm.inference.committees import LEAST_SHARE, MOST_MEMBERS, sharpened, stacked
from bayesvm.inference.fitted import Fitted, Training
from bayesvm.inference.problem import Problem
from bayesvm.inference.session import Prepared, Session
from bayesvm.inference.training import Trained
from bayesvm.inference.tuning_report import Report


@dataclass(frozen=True)
class Candidate:
    """A trained problem with leave-one-out marginals of some of its rows."""

    prepared: Prepared
    problem: Problem
    trained: Trained
    left_out: Cavities
    left_out_rows: RowNumbers
    seconds: float
    leaves: Leaves | None = None
    whole: bool = True  # whether it was trained on all rows


def calibrated(
    candidates: Sequence[Candidate],
    left_out: Sequence[Cavities],
    left_out_rows: RowNumbers | None,
    prepared: Prepared,
    session: Session,
    n_samples: int | None,
) -> Fitted:
    """Fit links to leave-one-out marginals, weight the members, and return the fitted model.

    The member with the largest weight comes first; the model takes its scaling and training record from it.
    """
    links = [fitted_link(session.head, session.settings.link, left) for left in left_out]
    weights = _weights(candidates, left_out, links)
    order = [i for i in np.argsort(-weights, kind="stable") if weights[i] > 0]
    first = candidates[order[0]]
    shared = all(equal_scalers(candidates[i].prepared.scaler, first.prepared.scaler) for i in order)
    alone = len(order) == 1
    final = [links[i] for i in order]
    if not alone and session.settings.link == "calibrated":
        final = sharpened(final, [left_out[i] for i in order], weights[order] / weights[order].sum())
    members = [
        Member(
            candidates[i].problem.features,
            tuple(replace(function, prior=None) for function in candidates[i].trained.functions),
            1.0 if alone else float(weights[i]),
            link=None if alone else link,
            scaler=None if shared else candidates[i].prepared.scaler,
            leaves=candidates[i].leaves,
        )
        for i, link in zip(order, final, strict=True)
    ]
    trained, report = first.trained, prepared.report
    if report is not None and first.prepared.chosen is not None:
        report = _with_fits(
            report,
            [candidates[i] for i in order],
            [left_out[i] for i in order],
            weights[order],
            final,
        )
        for trial in report.trials[report.kept :]:
            session.display.trial(trial)
    # A stream has no groups; those of an earlier fit are unknown for its rows.
    groups = None if left_out_rows is None or session.groups is None else session.groups[candidates[0].left_out_rows]
    fitted = Fitted(
        head=session.head,
        likelihood=first.problem.likelihood,
        scale=first.prepared.scale,
        scaler=first.prepared.scaler if shared else ColumnScaler(),
        members=tuple(members),
        link=final[0],
        training=Training(
            trained.elbo,
            trained.trace,
            trained.passes,
            all(candidates[i].trained.converged for i in order),
            interrupted=session.clock.stop.made,
        ),
        left_out=tuple(left_out[i] for i in order),
        left_out_rows=left_out_rows,
        n_samples=n_samples,
        report=report,
        left_out_groups=groups,
    )
    _ = fitted.views  # a posterior that cannot predict must fail in the fit
    return fitted


def _weights(candidates: Sequence[Candidate], left_out: Sequence[Cavities], links: Sequence[Any]) -> Array:
    """The weights of an earlier fit, or those that fit the left-out rows best (D28)."""
    given = [candidate.prepared.weight for candidate in candidates]
    if all(weight is not None for weight in given):
        return np.array(given, np.float64)
    each = [link.row_losses(left.mean, left.variance, left.y) for link, left in zip(links, left_out, strict=True)]
    return stacked(np.column_stack(each), left_out[0].effective_weight, LEAST_SHARE, MOST_MEMBERS)


def _with_fits(
    report: Report, candidates: Sequence[Candidate], left_out: Sequence[Cavities], weights: Array, links: Sequence[Any]
) -> Report:
    """One line of the report per member, and a sentence if there are several."""
    trials = list(report.trials)
    kept = len(trials)
    for candidate, left, weight, link in zip(candidates, left_out, weights, links, strict=True):
        chosen = candidate.prepared.chosen
        if chosen is not None:
            points = len(getattr(candidate.problem.features, "inducing_points", ()))
            loss, what = mean_loss(link, left), "fit" if len(candidates) == 1 else f"fit, {weight:.0%}"
            trials.append(
                replace(chosen, what=what, n_rows=len(left.y), n_inducing=points, loo=loss, seconds=candidate.seconds)
            )
    several = f"{len(candidates)} models are averaged, with the weights that fit the left-out rows best."
    said = (*report.chosen, several) if len(candidates) > 1 else report.chosen
    return replace(report, trials=tuple(trials), chosen=said, kept=kept)


def fitted_link(head: Head, name: str, left_out: Cavities) -> Any:
    """The link of this name; ``calibrated`` is fitted to the leave-one-out marginals."""
    if not (np.isfinite(left_out.mean).all() and np.isfinite(left_out.variance).all()):
        raise NotFiniteError(f"leave-one-out predictions are not finite: {OUT_OF_RANGE}")
    if name == "calibrated":
        return head.refine_link(head.fit_link(left_out), left_out)
    return head.named_link(name)


def mean_loss(link: Any, rows: Cavities) -> float:
    """The weighted mean of ``-log p(y)`` under a link."""
    return float(np.average(link.row_losses(rows.mean, rows.variance, rows.y), weights=rows.weight))
