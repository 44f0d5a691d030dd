"""Reproduction: both bounds against the posterior itself, which the Gibbs sampler draws from."""

import numpy as np

from experiments.registry.method import study
from experiments.registry.paper_methods import LENGTH, THETA
from experiments.registry.paper_sets import NAMES, raetsch
from experiments.registry.sets import DataSet, Split
from experiments.reproduction.truth import measure_truth
from experiments.runs.sweep import Run
from experiments.text import markdown

NAME = "posterior"
TITLE = "Beyond the paper: how far the bounds are from the posterior"
KEY = ("set", "bound")  # of a line
SIZES = {"heart": 200, "diabetes": 200, "german": 200}


def runs(quick=False):
    sizes, draws = ({"heart": 60}, 2000) if quick else (SIZES, 20_000)

    def against_sampler(split, seed):
        how = {"length_scale": LENGTH, "n_draws": draws, "random_state": seed}
        return {"bounds": measure_truth(split.X_train, split.y_train, **how)}

    method = study(against_sampler, "gibbs", "dense", recipe=f"{LENGTH} {draws}")
    return [
        Run("bounds against the sampler", method, f"{name}, {n_rows} rows", _some_rows(name, n_rows), 0)
        for name, n_rows in sizes.items()
    ]


def _some_rows(name, n_rows):
    def split(seed):
        X, y = raetsch(name)()
        chosen = np.random.default_rng(seed).permutation(len(y))[:n_rows]
        return Split(X[chosen], y[chosen], X[chosen], y[chosen])

    return DataSet(split)


def rows(records):
    """One line for every set and bound."""
    return [
        {"set": record["set"].partition(",")[0]} | bound
        for record in sorted(records, key=lambda record: list(SIZES).index(record["set"].partition(",")[0]))
        if not record["failure"]
        for bound in record["bounds"]
    ]


def section(lines):
    table = [
        [
            NAMES[line["set"]],
            line["bound"],
            f"{line['mean_rmse']:.3f}",
            f"{line['deviation_ratio']:.3f}",
            f"{line['loo_probability_rmse']:.4f}",
            f"{line['loo_log_loss']:.4f}",
            f"{line['sampler_loo_log_loss']:.4f}",
            f"{line['sampler_effective_median']:.0f}",
            f"{line['sampler_seconds'] / line['seconds']:.0f}",
        ]
        for line in lines
    ]
    header = ["set", "bound", "means of f, RMSE", "deviations, ratio", "leave-one-out probabilities, RMSE"]
    header += ["leave-one-out log loss", "the sampler's", "effective draws (median)", "sampler's time over ours"]
    return (
        f"{lines[0]['n_rows']} random rows of each set, every one an inducing point, θ = {THETA:g}, σ² = 4, plain "
        f"probit link. {lines[0]['sampler_draws']:,} draws of the Gibbs sampler of Polson and Scott are the "
        "reference; their error in the means of f is about "
        f"{max(line['monte_carlo_error'] for line in lines):.3f}. The exact bound "
        "is the default of this library, the augmented one is the paper's.\n\n" + markdown(header, table)
    )
