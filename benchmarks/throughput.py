"""What share of the machine's own matrix product a training pass reaches, and default fits against batch, in one run.

Run with `make bench`.
"""

import time

import numpy as np
from benchmarks.scaling.machine import gemm_rate, pass_flops, seconds
from sklearn.metrics import log_loss

from bayesvm import BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.kernels import RBF

N, D = 1_000_000, 18


def pass_shares():
    rates = {"single": gemm_rate(np.float32), "double": gemm_rate(np.float64)}
    print("matrix product: " + ", ".join(f"{name} {rate / 1e9:.0f} GFLOP/s" for name, rate in rates.items()))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D), dtype=np.float32)
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.standard_normal(N) > 0, 1, -1)
    print(f"{'M':>6}  {'rows':>9}  {'precision':>9}  {'share of GEMM':>13}  {'s a million rows':>16}")
    for m in (64, 256, 512, 1024):
        rows = N if m == 64 else N // 4 if m < 1024 else N // 10
        for precision, rate in rates.items():
            how = {
                "kernel": RBF(4.0, 4.0),
                "inducing": X[:m].astype(float),
                "inference": "batch",
                "scale": None,
                "tol": 0,
            }
            times = []
            for passes in (2, 6):
                model = BayesianSVC(**how, max_iter=passes, precision=precision, random_state=0)
                times.append(seconds(lambda model=model, rows=rows: model.fit(X[:rows], y[:rows]), 2))
            one = (times[1] - times[0]) / 4
            share = rows * pass_flops(m, D) / one / rate
            print(f"{m:6d}  {rows:9,d}  {precision:>9}  {share:13.2f}  {one / rows * 1e6:16.3f}")


def roads_to_the_optimum():
    train, test = waveform(N, random_state=0), waveform(100_000, random_state=1)
    print(f"\nwaveform, {N:,} rows, M = 64; Bayes limit of the log loss {log_loss(test.y, test.probability):.4f}")
    print(f"{'inference':>12}  {'passes':>6}  {'log loss':>8}  {'time over batch':>15}")
    times = {}
    for inference in ("batch", "auto", "stochastic"):
        start = time.perf_counter()
        model = BayesianSVC(n_inducing=64, inference=inference, random_state=0).fit(train.X, train.y)
        times[inference] = time.perf_counter() - start
        loss = log_loss(test.y, model.predict_proba(test.X))
        print(f"{inference:>12}  {model.n_passes_:6.2f}  {loss:8.4f}  {times[inference] / times['batch']:15.2f}")


if __name__ == "__main__":
    pass_shares()
    roads_to_the_optimum()
