"""Random small problems: every fit ends in finite, consistent predictions or in a ValueError that says why.

A problem depends on its seed alone, so that one that failed can be built again: ``outcome(problem(seed))``.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.kernels import RBF, Constant, Linear, Matern

LARGEST = 1e100  # values beyond are refused by their place
SHORTEST_MESSAGE = 30


class ProblemFailedError(AssertionError):
    """A fit that ended neither in predictions that make sense nor in a clear error."""


@dataclass(frozen=True)
class Problem:
    """An estimator that is not fitted, rows to fit it to, and rows to predict."""

    seed: int
    estimator: Any
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    new: np.ndarray


def problem(seed: int) -> Problem:
    """The problem of that seed."""
    rng = np.random.default_rng(seed)
    n_rows, n_features = int(rng.integers(2, 70)), int(rng.integers(1, 7))
    clean = _columns(rng, n_rows, n_features)
    y = _labels(rng, clean)
    X = _scaled(rng, clean)
    if rng.random() < 0.2:  # copies of rows
        X = X[rng.integers(0, max(1, n_rows // 3), n_rows)]
    weight = rng.lognormal(0, rng.choice([0.1, 3.0]), n_rows) if rng.random() < 0.2 else None
    return Problem(seed, _estimator(rng, X), X, y, weight, _new_rows(rng, X))


def outcome(given: Problem) -> str:
    """``"fitted"`` or ``"rejected"``; anything else raises ``ProblemFailedError``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # documented, each with its remedy
        warnings.simplefilter("error", RuntimeWarning)  # NumPy's, which tell users nothing
        try:
            model = given.estimator.fit(given.X, given.y, given.weight)
            for rows in (given.X, given.new):
                _require_sense(model, rows)
        except ProblemFailedError as error:
            raise ProblemFailedError(f"seed {given.seed}: {error} ({given.estimator!r})") from error
        except ValueError as error:
            if len(str(error)) < SHORTEST_MESSAGE:
                raise ProblemFailedError(f"seed {given.seed}: says only {error} ({given.estimator!r})") from error
            return "rejected"
        except Exception as error:
            raise ProblemFailedError(
                f"seed {given.seed}: {type(error).__name__}: {error} ({given.estimator!r})"
            ) from error
    return "fitted"


def attack(n_problems: int, first_seed: int = 0) -> tuple[Counter[str], list[str]]:
    """How many problems were fitted, refused and failed, and a line for each that failed."""
    counts: Counter[str] = Counter(fitted=0, rejected=0, failed=0)
    failures = []
    for seed in range(first_seed, first_seed + n_problems):
        try:
            counts[outcome(problem(seed))] += 1
        except ProblemFailedError as error:
            counts["failed"] += 1
            failures.append(str(error))
    return counts, failures


def _columns(rng: np.random.Generator, n_rows: int, n_features: int) -> np.ndarray:
    """Columns of many kinds, all of unit size."""
    kinds = {
        "normal": lambda: rng.standard_normal(n_rows),
        "heavy": lambda: np.clip(rng.standard_cauchy(n_rows) ** 3, -1e30, 1e30),
        "constant": lambda: np.full(n_rows, rng.choice([0.0, 1.0, -3.7])),
        "nearly constant": lambda: 1 + 10.0 ** rng.uniform(-17, -8) * rng.standard_normal(n_rows),
        "binary": lambda: rng.integers(0, 2, n_rows).astype(float),
        "one outlier": lambda: np.where(
            np.arange(n_rows) == 0, 10.0 ** rng.uniform(1, 20), rng.standard_normal(n_rows)
        ),
    }
    likely = [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]
    clean = np.column_stack([kinds[kind]() for kind in rng.choice(list(kinds), n_features, p=likely)])
    if n_features > 1 and rng.random() < 0.1:
        clean[:, 1] = clean[:, 0]
    return clean


def _labels(rng: np.random.Generator, clean: np.ndarray) -> np.ndarray:
    n_classes = int(rng.choice([2, 2, 2, 3, 5]))
    slope = clean[:, 0] / (1 + np.abs(clean).max()) + rng.choice([0.0, 0.3, 10.0]) * rng.standard_normal(len(clean))
    y = np.argsort(np.argsort(slope)) * n_classes // len(clean)
    if rng.random() < 0.2:  # a rare class
        y = np.where(np.arange(len(y)) == len(y) - 1, 1, 0)
    return np.array(["red", "blue", "green", "grey", "white"])[y] if rng.random() < 0.3 else y


def _scaled(rng: np.random.Generator, clean: np.ndarray) -> np.ndarray:
    """In units from 1e-300 to 1e100, or tame ones, or all alike."""
    low, high = [(0, 0), (-3, 3), (-300, 100), (-320, -290), (80, 100), (-12, 12), (50, 50), (-160, -150)][
        rng.choice(8, p=[0.25, 0.25, 0.1, 0.08, 0.08, 0.08, 0.08, 0.08])
    ]
    unit = 10.0 ** rng.uniform(low, high, clean.shape[1])
    shift = unit * rng.choice([0.0, 1.0, 1e6], clean.shape[1])
    return np.clip(clean * unit + shift, -LARGEST, LARGEST)


def _new_rows(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Some beside those of the fit, some far away, up to the largest value that is accepted."""
    some = X[rng.integers(0, len(X), 8)]
    beside = some + 0.1 * (some - X.mean(axis=0))
    far = some * np.minimum(10.0 ** rng.uniform(0, 300, (8, 1)), LARGEST / np.maximum(np.abs(some), 1e-200))
    ends = rng.choice([-LARGEST, 0.0, LARGEST], (4, X.shape[1]))
    return np.clip(np.vstack([beside, far, ends, np.zeros((1, X.shape[1]))]), -LARGEST, LARGEST)


def _estimator(rng: np.random.Generator, X: np.ndarray) -> Any:
    def one_of(*choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    common = {
        "bound": one_of("exact", "augmented"),
        "inference": one_of("auto", "batch", "stochastic"),
        "scale": one_of("auto", "standard", "common", None, None),
        "link": one_of("calibrated", "calibrated", "probit", "hinge", "paper"),
        "noise": one_of("auto", 0, 1.0, 1e6),
        "batch_size": one_of("auto", 5, 20),
        "learning_rate": one_of("adaptive", "robbins_monro", 0.3, 1.0),
        "max_iter": one_of(1, 5, 40),
        "tol": one_of(5e-5, 0.0, 1.0) if rng.random() < 0.3 else 5e-5,
        "class_weight": one_of(None, None, "balanced"),
        "precision": one_of("auto", "single", "double"),
        "random_state": int(rng.integers(100)),
        "n_jobs": 1,
    }
    tune = rng.choice(["none", "loo", "elbo", "auto"], p=[0.8, 0.08, 0.06, 0.06])
    common["tune"] = None if tune == "none" else str(tune)
    if rng.random() < 0.35:
        covariance = one_of("full", "diagonal")
        return BayesianLinearSVC(
            prior_variance=one_of(1.0, 1e-6, 1e6, np.full(X.shape[1], 2.0)),
            fit_intercept=one_of(True, False),
            covariance=covariance,
            **common | ({"inference": "auto"} if covariance == "diagonal" else {}),
        )
    kernel = one_of(
        "auto", "rbf", "matern32", "matern52", "linear", "linear",
        RBF(10.0 ** rng.uniform(-3, 3), 4.0), RBF(np.full(X.shape[1], 2.0)),
        0.5 * Linear() + Constant(2.0) + Matern(1.0, nu=2.5),
    )  # fmt: skip
    return BayesianSVC(
        kernel,
        n_inducing=one_of("auto", None, 1, 10),
        inducing=one_of("kmeans", "random", "greedy", "gmm"),
        learn_inducing=bool(rng.random() < 0.1),
        **common | ({"scale": "quantile"} if rng.random() < 0.2 else {}),
    )


def _require_sense(model: Any, rows: np.ndarray) -> None:
    """Finite probabilities that add up to one, labels that agree with them, intervals that contain them."""

    def require(condition: Any, what: str) -> None:
        if not np.all(condition):
            raise ProblemFailedError(what)

    p, labels = model.predict_proba(rows), model.predict(rows)
    require(np.isfinite(p), "predict_proba is not finite")
    require((p >= 0) & (p <= 1), "a probability is not between 0 and 1")
    require(np.abs(p.sum(axis=1) - 1) < 1e-9, "probabilities do not add up to one")
    said = p[np.arange(len(p)), np.searchsorted(model.classes_, labels)]
    require(said >= p.max(axis=1) - 1e-12, "predict is not the most probable class")
    for name in ("loo_proba_", "elbo_trace_", "inducing_points_", "coef_", "intercept_", "coef_covariance_"):
        require(np.isfinite(getattr(model, name, 0.0)), f"{name} is not finite")
    require(np.isfinite([model.loo_log_loss_, model.elbo_]), "loo_log_loss_ or elbo_ is not finite")
    m, v = model.latent_mean_and_variance(rows)
    require(np.isfinite(m) & np.isfinite(v) & (v >= 0), "a latent mean or variance is not finite")
    require(np.isfinite(model.decision_function(rows)), "decision_function is not finite")
    require(model.predict_log_proba(rows) <= 1e-12, "predict_log_proba is NaN or above zero")
    unsure = model.predict_uncertainty(rows)
    for name, values in unsure.items():
        require(np.isfinite(values) & (values >= 0), f"{name} is not finite or negative")
    require(np.abs(unsure["total"] - unsure["aleatoric"] - unsure["epistemic"]) < 1e-9, "the parts are not the total")
    if "lower" in unsure:
        require((unsure["lower"] <= p[:, 1]) & (p[:, 1] <= unsure["upper"]), "an interval excludes the probability")
