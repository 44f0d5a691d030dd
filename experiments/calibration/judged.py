"""Calibration: from kept answers to metrics. All methods are judged by the same rows of a set."""

from dataclasses import dataclass, field

import numpy as np

from bayesvm.evaluation import Predictions, RiskCoverage, metrics, reliability, risk_coverage
from experiments.calibration import link_shapes, store
from experiments.calibration.methods import ANSWERS, METHODS, OURS
from experiments.calibration.sets import BEYOND, DISTANCES, SAME, SETS

RESAMPLES = 200
SURE = 0.95  # confidence that would be trusted
LEAST = np.finfo(np.float64).eps  # what a probability of zero counts as in the log loss


@dataclass(frozen=True)
class Judged:
    """A method on a part of a set."""

    metrics: dict  # by name: value and the ends of its interval
    behind: tuple  # log loss minus ours on the same rows, and the ends of its 95 % interval
    confidence: float  # mean probability of the more probable class
    reliability: object
    coverage: RiskCoverage
    area: tuple  # under the curve of risk and coverage, and the ends of its interval


@dataclass
class SetJudged:
    """All that the page tells of a set; ``parts`` has ``{part: {method: Judged}}``."""

    n_columns: int
    n_train: int
    share: float  # of the second class among the training rows
    n_rows: dict  # that a method was trained with
    n_test: dict  # by part
    parts: dict
    epistemic: dict = field(default_factory=dict)  # its mean, by part
    moved: dict = field(default_factory=dict)  # {method: [(mean confidence, share that is sure), …]} by distance
    links: dict = field(default_factory=dict)  # metrics of links that are fitted to the same marginals, by name

    @property
    def moved_epistemic(self):
        return [self.epistemic[f"moved {distance}"] for distance in DISTANCES] if self.moved and self.epistemic else []


def judge(folder, set_names=tuple(SETS), n_bootstrap=RESAMPLES):
    """Sets of which something is kept, by name."""
    found = {name: judged_set(folder, name, n_bootstrap) for name in set_names}
    return {name: each for name, each in found.items() if each is not None}


def judged_set(folder, set_name, n_bootstrap=RESAMPLES):
    rows = store.read(folder, set_name, "rows")
    kept = {name: store.read(folder, set_name, name) for name in ANSWERS}
    kept = {name: both for name, both in kept.items() if both is not None}
    if rows is None or not kept:
        return None
    labels = {name.removeprefix("label "): values for name, values in rows[0].items()}
    ends = np.cumsum([0, *(len(values) for values in labels.values())])
    places = {part: slice(ends[i], ends[i + 1]) for i, part in enumerate(labels)}
    said, about = {}, {}
    for arrays, told in kept.values():
        for method in (name.removeprefix("said ") for name in arrays if name.startswith("said ")):
            said[method], about[method] = arrays[f"said {method}"], told
    ours = kept["ours"][0] if "ours" in kept else {}
    tests = [part for part in ("test", SAME, BEYOND) if part in places]
    return SetJudged(
        **rows[1],
        n_rows={method: told["n_rows"] for method, told in about.items()},
        n_test={part: len(labels[part]) for part in tests},
        parts={part: judged_methods(said, places[part], labels[part], n_bootstrap) for part in tests},
        epistemic={part: float(ours["epistemic"][where].mean()) for part, where in places.items()} if ours else {},
        moved=moved(said, places) if "moved 0" in places else {},
        links=link_shapes.judged(ours, places["test"], labels["test"], n_bootstrap)
        if ours and "test" in places
        else {},
    )


def judged_methods(said, where, label, n_bootstrap):
    ours = losses(said[OURS][where], label) if OURS in said else None
    known = [method for method in METHODS if method in said]
    return {method: judged_part(said[method][where], label, ours, n_bootstrap) for method in known}


def moved(said, places):
    """Mean confidence, and the share of rows that are sure, at every distance."""
    found = {}
    for method, p in said.items():
        sure = [np.maximum(p, 1 - p)[places[f"moved {distance}"]] for distance in DISTANCES]
        found[method] = [(float(each.mean()), float(np.mean(each > SURE))) for each in sure]
    return found


def losses(p, label):
    """-log of the probability of what happened, row by row."""
    return -np.log(np.maximum(np.where(label, p, 1 - p), LEAST))


def judged_part(p, label, ours, n_bootstrap):
    said = Predictions.of([False, True], label, np.column_stack([1 - p, p]))
    behind = (np.nan, np.nan, np.nan)
    if ours is not None:
        more = losses(p, label) - ours
        half = 1.96 * more.std() / np.sqrt(len(more))
        behind = (float(more.mean()), float(more.mean() - half), float(more.mean() + half))
    curve = risk_coverage(said)
    found = metrics(said, n_bootstrap=n_bootstrap)
    confidence = float(np.maximum(p, 1 - p).mean())
    return Judged(
        found, behind, confidence, reliability(said, 10), curve, (curve.area, *area_interval(said, n_bootstrap))
    )


def area_interval(said, n_bootstrap):
    """Of the area under risk and coverage, from resamples of the rows; rows of equal doubt stay together."""
    rng = np.random.default_rng(0)
    order = np.argsort(said.doubt)
    wrong = (~said.correct[order]).astype(float)
    ends = np.flatnonzero(np.diff(said.doubt[order], append=2.0))
    areas = []
    for _ in range(n_bootstrap):
        times = np.bincount(rng.integers(0, len(wrong), len(wrong)), minlength=len(wrong))
        kept = np.cumsum(times)[ends]
        risk = np.cumsum(times * wrong)[ends] / np.maximum(kept, 1)
        areas.append(float(risk @ np.diff(kept, prepend=0)) / len(wrong))
    return tuple(np.quantile(areas, [0.025, 0.975])) if areas else (np.nan, np.nan)
