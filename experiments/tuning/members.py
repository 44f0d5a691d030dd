"""From how many rows on a single member predicts as well as the committee (D28).

Run with ``python -m experiments.tuning.members``, with BAYESVM_DATA set; the table is in docs/tuning.md. Some minutes.
"""

import copy
from dataclasses import replace

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from bayesvm import BayesianSVC
from experiments.registry.sets import SETS

SIZES = (250, 500, 1_000, 2_000, 4_000, 8_000)
TABLES = (
    "adult",
    "covtype",
    "crashes",
    "flights_nyc13",
    "gen_categories_6000",
    "gen_imbalanced_6000",
    "magic",
    "ringnorm",
)
SEEDS = (0, 1, 2)


def best_alone(model):
    """The model with only the member whose leave-one-out loss is lowest, and a link of its own."""
    fitted = model.fitted_

    def alone(member, left_out):
        link = fitted.head.refine_link(fitted.head.fit_link(left_out), left_out)
        only = replace(member, weight=1.0, link=None, scaler=None)
        scaler = member.scaler or fitted.scaler
        return replace(fitted, members=(only,), link=link, scaler=scaler, left_out=(left_out,))

    singles = [alone(*pair) for pair in zip(fitted.members, fitted.left_out, strict=True)]
    found = copy.copy(model)
    found.fitted_ = min(singles, key=lambda single: single.left_out_loss)
    return found


def compared(name, n_rows, seed):
    """Held-out log loss of the committee and of its best member, and the number of members."""
    split = SETS[name].split(seed)
    X, _, y, _ = train_test_split(
        split.X_train, split.y_train, train_size=n_rows, random_state=seed, stratify=split.y_train
    )
    model = BayesianSVC(random_state=seed).fit(X, y)
    losses = [
        log_loss(split.y_test, each.predict_proba(split.X_test), labels=model.classes_)
        for each in (model, best_alone(model))
    ]
    return *losses, len(model.fitted_.members)


def main():
    print("| rows | sets | members | committee | best member alone | difference |")
    print("|--:|--:|--:|--:|--:|--:|")
    for n_rows in SIZES:
        names = [name for name in TABLES if n_rows < 0.99 * len(SETS[name].split(0).y_train)]
        found = np.array([[compared(name, n_rows, seed) for seed in SEEDS] for name in names])
        committee, alone, members = found.mean(axis=(0, 1))
        each = (found[:, :, 1] / found[:, :, 0] - 1).mean(axis=1)
        error = each.std(ddof=1) / np.sqrt(len(each))
        print(
            f"| {n_rows:,} | {len(names)} | {members:.1f} | {committee:.4f} | {alone:.4f} "
            f"| {each.mean():+.1%} ± {error:.1%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
