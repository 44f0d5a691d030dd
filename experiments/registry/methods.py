"""Registry: methods, each a name for a classifier made anew for every run. One line each.

The competitors of the paper with the paper's settings are in ``paper_methods``; here are those for tables in general.
"""

from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bayesvm import BayesianLinearSVC
from experiments.registry.method import optional_peer, ours, peer
from experiments.registry.paper_methods import PAPER_METHODS


def _nystroem(n_rows, seed):
    features = Nystroem(n_components=min(500, n_rows), random_state=seed)
    return make_pipeline(StandardScaler(), features, LogisticRegression())


METHODS = {
    "catboost": optional_peer(
        "catboost", "CatBoostClassifier", verbose=0, random_seed=0, allow_writing_files=False, thread_count=2
    ),
    "lightgbm": optional_peer("lightgbm", "LGBMClassifier", verbose=-1, random_state=0, n_jobs=2),
    "hgb": peer(lambda _n, _seed: HistGradientBoostingClassifier(random_state=0)),
    "svc": peer(lambda _n, _seed: make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), ensemble=False))),
    "nystroem": peer(_nystroem),
    "logistic": peer(lambda _n, _seed: make_pipeline(StandardScaler(), LogisticRegression())),
    "default": ours(),
    "fixed": ours(tune=None),
    "no_noise": ours(noise=0.0),
    "noise_3": ours(noise=3.0),
    "one_length": ours(tune="loo"),
    "elbo": ours(tune="elbo", max_inducing=300),
    "rbf": ours(kernel="rbf"),
    "standard": ours(scale="standard"),
    "points_300": ours(max_inducing=300),
    "linear": ours(BayesianLinearSVC),
} | PAPER_METHODS

PEERS = ("catboost", "lightgbm", "hgb", "svc", "nystroem", "logistic")
