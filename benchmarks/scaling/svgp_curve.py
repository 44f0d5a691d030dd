"""Scaling: GPyTorch's SVGP on covtype: its log loss over time. Runs in the environment that has torch.

Adam in everything: the posterior, one length-scale, the variance, a constant mean and the inducing points, from the
centres of k-means on some rows. It prints one line of JSON.
"""

import json
import sys
import time

import numpy as np
import torch
from benchmarks.scaling.covtype_fit import D, split
from benchmarks.scaling.machine import CORES
from experiments.competitors.svgp import SVGPClassifier, _gaussian_process
from gpytorch.likelihoods import BernoulliLikelihood
from gpytorch.mlls import VariationalELBO
from sklearn.cluster import KMeans
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

BATCH, RATE, GROWTH = 1024, 0.01, 1.25
SEEDED_FROM = 20_000  # rows that k-means sees
PREDICTED_AT_ONCE = 2000


def probabilities(model, likelihood, X):
    model.eval()
    with torch.no_grad():
        found = torch.cat([likelihood(model(block)).probs for block in X.split(PREDICTED_AT_ONCE)]).numpy()
    model.train()
    return found


def main(given):
    torch.manual_seed(0)
    torch.set_num_threads(CORES)
    X, X_test, y, y_test = split(given["n_train"])
    start = time.perf_counter()
    scaler = StandardScaler().fit(X)
    X, X_test = (torch.tensor(scaler.transform(rows)) for rows in (X, X_test))
    labels = torch.tensor((y > 0).astype(np.float32))
    points = KMeans(given["m"], n_init=1, random_state=0).fit(X[:SEEDED_FROM].numpy()).cluster_centers_
    settings = SVGPClassifier(
        float(np.sqrt(D)), 4.0, given["m"], optimizer="adam", learn_kernel=True, learn_inducing=True
    )
    model, likelihood = _gaussian_process(settings, points).float(), BernoulliLikelihood()
    elbo = VariationalELBO(likelihood, model, num_data=len(y))
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    model.train()
    spent, asked, steps, curve, batches = time.perf_counter() - start, 5.0, 0, [], iter(())
    reached = None
    while spent < given["limit"] and reached is None:
        start = time.perf_counter()
        asked = min(max(asked, spent), given["limit"])
        while spent + time.perf_counter() - start < asked or not steps:
            batch = next(batches, None)
            if batch is None:
                batches = iter(torch.randperm(len(y)).split(BATCH))
                continue
            adam.zero_grad()
            (-elbo(model(X[batch]), labels[batch])).backward()
            adam.step()
            steps += 1
        spent += time.perf_counter() - start
        asked = spent * GROWTH
        p = probabilities(model, likelihood, X_test)
        curve.append([spent, float(log_loss(y_test, p)), float(np.mean((p > 0.5) != (y_test > 0)))])
        reached = spent if curve[-1][1] <= given["goal"] else None
    told = {"seconds": spent, "log_loss": curve[-1][1], "error": curve[-1][2], "n_rows": len(y)}
    print(json.dumps(told | {"reached": reached is not None, "epochs": steps * BATCH / len(y), "curve": curve}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
