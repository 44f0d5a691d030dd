"""Inference: learn the noise of regression targets in alternation with the posterior, until both agree (D32)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bayesvm.core.cavities import Cavities
from bayesvm.data.blocks import BlockSource, RowNumbers
from bayesvm.inference.calibrating import mean_loss
from bayesvm.inference.problem import Problem
from bayesvm.inference.session import Prepared, Session
from bayesvm.inference.training import Trained

ROUNDS = 3  # maximum number, after the first
WORSE = 0.01  # nats per row; a round that raises the leave-one-out loss by more is undone
LeftOut = tuple[Cavities, RowNumbers]


def with_learned_noise(
    once: Callable[[Problem, Prepared, str], tuple[Trained, LeftOut]],
    source: BlockSource,
    prepared: Prepared,
    session: Session,
    name: str,
) -> tuple[Problem, Trained, LeftOut]:
    """Train once; if the head learns the noise, train again with the noise estimated from left-out rows.

    In a stream the noise is fixed, because earlier parts were learned with it. Where there are as many weights as rows,
    the variance of f may explain all residuals; the noise then vanishes, the rows are interpolated, and the share that
    the others contribute to a row is at its floor (D10). The higher loss shows that, and the noise before is kept.
    """
    problem = session.problem(prepared.features, source, prepared.likelihood)
    trained, left_out = once(problem, prepared, name)
    priors = [function.prior for function in prepared.functions]
    in_stream = any(q is not None and q.natural.linear.any() for q in priors)
    for number in range(ROUNDS if session.head.learns_noise and not in_stream else 0):
        link = session.head.fit_link(left_out[0])
        before, loss = (problem, trained, left_out), mean_loss(link, left_out[0])
        likelihood = session.head.likelihood_after(problem.likelihood, link, left_out[0])
        if likelihood == problem.likelihood or session.clock.over():
            break
        problem = replace(problem, likelihood=likelihood)
        start = replace(prepared, functions=trained.functions)
        trained, left_out = once(problem, start, f"{name}, noise {number + 1}")
        if mean_loss(session.head.fit_link(left_out[0]), left_out[0]) > loss + WORSE:
            return before
    return problem, trained, left_out
