"""Calibrated probabilities from one fit, against an SVM calibrated by cross-validation; and the price of ten classes.

The first part needs the tables `magic` and `covtype` in the folder that BAYESVM_DATA names. Run with `make bench`.
"""

import time

import numpy as np
from experiments.runs.spent import added_up
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bayesvm import BayesianSVC
from bayesvm.datasets import load_table, waveform
from bayesvm.inference import fitting
from bayesvm.inference.kernel_model import KernelModel
from bayesvm.kernels import RBF


def timed(work, repeat=1):
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return result, best


def against_svc():
    print(f"{'8,000 rows of':>14}  {'M':>4}  {'log loss':>8}  {'SVC + sigmoid':>13}  {'times faster':>12}")
    for name in ("magic", "covtype"):
        X, y = load_table(name)
        Xa, Xb, ya, yb = train_test_split(X, y, train_size=8000, test_size=8000, random_state=1, stratify=y)
        d = X.shape[1]
        svc = make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(C=2, gamma=1 / (2 * d)), ensemble=False))
        peer, peer_seconds = timed(lambda svc=svc, Xa=Xa, ya=ya: svc.fit(Xa, ya))
        theirs = log_loss(yb, peer.predict_proba(Xb))
        for m in (200, 400):
            ours = BayesianSVC(RBF(np.sqrt(d), 8.0), n_inducing=m, tune=None, scale="standard", random_state=0)
            model, seconds = timed(lambda ours=ours, Xa=Xa, ya=ya: ours.fit(Xa, ya), 2)
            mine = log_loss(yb, model.predict_proba(Xb))
            print(f"{name:>14}  {m:4d}  {mine:8.4f}  {theirs:13.4f}  {peer_seconds / seconds:12.1f}")


def price_of_leave_one_out():
    data = waveform(200_000, random_state=0)
    how = {"n_inducing": 200, "tune": None, "inference": "batch", "tol": 0, "random_state": 0}
    passes = {n: timed(lambda n=n: BayesianSVC(**how, max_iter=n).fit(data.X, data.y), 2)[1] for n in (2, 6)}
    one = (passes[6] - passes[2]) / 4
    spent = []
    with added_up(KernelModel, "leave_out", spent), added_up(fitting, "calibrated", spent):
        BayesianSVC(**how, max_iter=2).fit(data.X, data.y)
    share = sum(spent) / one
    print(f"\nleave-one-out and calibration cost {share:.2f} of a training pass (200,000 rows, M = 200)")


def price_of_ten_classes():
    print(f"\n{'ten classes over two':>22}  {'rows':>7}  {'M':>4}  {'ratio':>6}")
    for rows, m in ((20_000, 100), (100_000, 64)):
        X, y = make_blobs(rows, centers=10, n_features=20, cluster_std=6.0, random_state=0)
        how = {"n_inducing": m, "random_state": 0}
        _, two = timed(lambda how=how, X=X, y=y: BayesianSVC(**how).fit(X, y % 2), 2)
        _, ten = timed(lambda how=how, X=X, y=y: BayesianSVC(**how).fit(X, y), 2)
        print(f"{'':>22}  {rows:7,d}  {m:4d}  {ten / two:6.1f}")


if __name__ == "__main__":
    try:
        against_svc()
    except FileNotFoundError as error:
        print(f"skipped: {error}")
    price_of_leave_one_out()
    price_of_ten_classes()
