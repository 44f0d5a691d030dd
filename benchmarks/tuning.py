"""The price of self-tuning, as ratios in one run. Run with `make bench`.

With the tables `magic`, `adult` and `covtype` of the folder that BAYESVM_DATA names, or else with generated rows:

- at 10,000 rows: against one SVM with fixed parameters, calibrated by cross-validation (aim: at most 1);
- at 500 rows: against three times the fit with a fixed kernel plus half a second (aim: at most 1);
- at a million rows: what tuning adds, in passes over the data (aim: less than 2).
"""

import os
import time

from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from bayesvm import BayesianSVC
from bayesvm.datasets import load_table, waveform
from bayesvm.evaluation.peers import PEERS


def seconds_of(work):
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def ten_thousand():
    generated = waveform(20_000, random_state=0)
    tables = {"waveform": lambda: (generated.X, generated.y)}
    if os.environ.get("BAYESVM_DATA"):
        tables = {name: lambda name=name: load_table(name) for name in ("magic", "adult", "covtype")}
    for name, table in tables.items():
        X, y = table()
        Xa, Xb, ya, yb = train_test_split(X, y, train_size=10_000, test_size=9_000, random_state=0, stratify=y)
        svc = PEERS["SVC + Platt"].factory(X.shape[1], 0, 0)
        peer, theirs = seconds_of(lambda svc=svc, X=Xa, y=ya: svc.fit(X, y))
        model, ours = seconds_of(lambda X=Xa, y=ya: BayesianSVC(random_state=0).fit(X, y))
        mine, other = (log_loss(yb, m.predict_proba(Xb)) for m in (model, peer))
        print(f"10,000 rows of {name}: {ours / theirs:.2f} of SVC + sigmoid ({theirs:.1f} s); ", end="")
        print(f"log loss {mine:.4f} v {other:.4f}")


def five_hundred():
    data = waveform(500, random_state=0)
    fixed = min(seconds_of(lambda: BayesianSVC(tune=None, random_state=0).fit(data.X, data.y))[1] for _ in range(3))
    tuned = min(seconds_of(lambda: BayesianSVC(random_state=0).fit(data.X, data.y))[1] for _ in range(3))
    print(f"500 rows: self-tuned {tuned / (3 * fixed + 0.5):.2f} of (3 × fixed kernel + half a second)")


def a_million():
    data = waveform(1_000_000, random_state=0)
    model, tuned = seconds_of(lambda: BayesianSVC(random_state=0).fit(data.X, data.y))
    spent = sum(trial.seconds for trial in model.tuning_report_.trials)
    how = {"kernel": model.kernel_, "n_inducing": len(model.inducing_points_), "tune": None, "inference": "batch"}
    one, two = (
        seconds_of(lambda n=n: BayesianSVC(**how, tol=0, max_iter=n, random_state=0).fit(data.X, data.y))[1]
        for n in (1, 3)
    )
    one_pass = (two - one) / 2
    print(f"1,000,000 rows: tuning took {spent / one_pass:.2f} passes, the whole fit {tuned / one_pass:.2f}")


if __name__ == "__main__":
    five_hundred()
    ten_thousand()
    a_million()
