"""Calibration: the methods. Each learns from a problem's rows and answers for all that is asked."""

import time
import warnings
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from bayesvm import BayesianSVC
from bayesvm.core.links import PLAIN_LINKS
from bayesvm.core.members import mixed_moments
from bayesvm.evaluation.peers import ENOUGH_TO_STOP_EARLY, N_FOLDS, PEERS, Peer, chosen_rows, evaluate_peer
from experiments.calibration.sets import SEED

FEW = 1_500  # rows that GaussianProcessClassifier is given: its time grows with their cube
PREDICTED_AT_ONCE = 4_096


class Answer(NamedTuple):
    """P(second class) of all rows asked about, by method; and what else we say of them, by name."""

    said: dict[str, np.ndarray]
    n_rows: int
    seconds: float
    more: dict[str, np.ndarray] = {}  # noqa: RUF012  (nobody writes into it)


def ours(problem):
    """One fit; the links are read off its marginals of f. Those of leave-one-out are kept, to try links on."""
    X, _ = problem.asked
    model, seconds = fitted(problem.X, problem.y)
    m, v = model.latent_mean_and_variance(X)
    said = {"BayesianSVC": model.predict_proba(X)[:, 1]}
    said |= {f"BayesianSVC, {name}": ndtr(link.score(m, v)) for name, link in PLAIN_LINKS.items()}
    left_out = mixed_moments(model.fitted_.left_out_moments)
    more = {
        "epistemic": model.predict_uncertainty(X)["epistemic"],
        "f mean": m,
        "f variance": v,
        "left out mean": left_out.mean[:, 0],
        "left out variance": left_out.variance[:, 0],
        "left out label": model.fitted_.left_out_y == 1,
    }
    return Answer(said, len(problem.y), seconds, more)


def ours_from_few(problem):
    """From the very rows that GaussianProcessClassifier is given."""
    rows = chosen_rows((problem.y == problem.y.max()).astype(int), FEW, SEED)
    model, seconds = fitted(problem.X[rows], problem.y[rows])
    return Answer({"BayesianSVC, few rows": model.predict_proba(problem.asked[0])[:, 1]}, len(rows), seconds)


def fitted(X, y):
    start = time.perf_counter()
    model = BayesianSVC(n_jobs=1, random_state=SEED).fit(X, y)
    return model, time.perf_counter() - start


def peer(which, name):
    """A method of ``bayesvm.evaluation.peers``, by what the page calls it."""

    def answer(problem):
        how = {"n_points": 1, "seed": SEED}  # points are for Nystroem, which is not here
        outcome = evaluate_peer(which, problem.X, problem.y, *problem.asked, **how)
        return Answer({name: outcome.predictions.positive}, outcome.n_rows, outcome.seconds)

    return answer


class Tuned(GaussianProcessClassifier):
    """Its kernel is tuned on half of the rows, an eighth of the time, and then it learns from all of them.

    It predicts some rows at a time: all at once take rows times training rows of memory.
    """

    def fit(self, X, y):
        half = np.random.default_rng(SEED).permutation(len(y))[: max(len(y) // 2, 200)]
        with warnings.catch_warnings():  # that a parameter is at its bound
            warnings.simplefilter("ignore")
            self.kernel = GaussianProcessClassifier(self.kernel).fit(X[half], y[half]).kernel_
        self.optimizer = None
        return super().fit(X, y)

    def predict_proba(self, X):
        parts = [X[start : start + PREDICTED_AT_ONCE] for start in range(0, len(X), PREDICTED_AT_ONCE)]
        return np.concatenate([super(Tuned, self).predict_proba(part) for part in parts])


def gaussian_process(n_features, n_points, seed, n_rows=None):  # noqa: ARG001  (the contract of a peer)
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(np.sqrt(n_features), (1e-2, 1e4))
    return Pipeline([("scale", StandardScaler()), ("classifier", Tuned(kernel, random_state=seed))])


def calibrated_boosting(method):
    """As the raw one of the peers, with early stopping where that has it."""

    def factory(n_features, n_points, seed, n_rows=None):  # noqa: ARG001  (the contract of a peer)
        if n_rows is None or n_rows > ENOUGH_TO_STOP_EARLY:
            boosting = HistGradientBoostingClassifier(max_iter=1000, early_stopping=True, random_state=seed)
        else:
            boosting = HistGradientBoostingClassifier(early_stopping=False, random_state=seed)
        calibrated = CalibratedClassifierCV(boosting, method=method, cv=N_FOLDS, ensemble=False)
        return Pipeline([("classifier", calibrated)])

    return factory


def catboost(n_features, n_points, seed, n_rows=None):  # noqa: ARG001  (the contract of a peer)
    from catboost import CatBoostClassifier  # noqa: PLC0415  (tests do without)

    classifier = CatBoostClassifier(verbose=0, random_seed=seed, thread_count=1, allow_writing_files=False)
    return Pipeline([("classifier", classifier)])


# By the name under which answers are stored; one answer may hold several methods.
ANSWERS = {
    "ours": ours,
    "few": ours_from_few,
    "svc": peer(PEERS["SVC + Platt"], "SVC + sigmoid"),
    "gpc": peer(Peer("GPC", gaussian_process, most_rows=FEW), "Gaussian process"),
    "boosting": peer(PEERS["gradient boosting"], "boosting"),
    "sigmoid": peer(Peer("boosting + sigmoid", calibrated_boosting("sigmoid")), "boosting + sigmoid"),
    "catboost": peer(Peer("CatBoost", catboost), "CatBoost"),
    "isotonic": peer(Peer("boosting + isotonic", calibrated_boosting("isotonic")), "boosting + isotonic"),
}

OURS = "BayesianSVC"
LINKS = (OURS, *(f"{OURS}, {name}" for name in PLAIN_LINKS))
OTHERS = ("SVC + sigmoid", "Gaussian process", "CatBoost", "boosting", "boosting + sigmoid", "boosting + isotonic")
METHODS = (*LINKS, f"{OURS}, few rows", *OTHERS)
