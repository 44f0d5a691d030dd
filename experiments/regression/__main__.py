"""Regression: measure and print a table in Markdown.

python -m experiments.regression                                     all sets, 1,000 training rows, two divisions
python -m experiments.regression --sets california --rows 4000 --methods BayesianSVR CatBoost
"""

import argparse
import warnings

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from experiments.regression.methods import METHODS
from experiments.regression.sets import SETS

MOST_TEST_ROWS = 3_000


def measured(name, method, n_rows, n_divisions):
    """Error and width in deviations of y, share of the numbers in their intervals, and log density."""
    X, y = SETS[name]()
    rows = []
    for seed in range(n_divisions):
        train, test, y_train, y_test = train_test_split(
            X, y, train_size=min(n_rows, int(0.7 * len(y))), random_state=seed
        )
        test, y_test = test[:MOST_TEST_ROWS], y_test[:MOST_TEST_ROWS]
        said, size = METHODS[method](train, y_train, test, y_test), y_train.std()
        error = np.sqrt(np.mean((said.mean - y_test) ** 2)) / size
        inside = width = density = np.nan
        if said.low is not None:
            inside = np.mean((said.low <= y_test) & (y_test <= said.high))
            width = np.mean(said.high - said.low) / size
        if said.log_density is not None:
            density = np.mean(said.log_density) + np.log(size)
        rows.append((error, inside, width, density))
    return np.mean(rows, axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--divisions", type=int, default=2)
    given = parser.parse_args()
    print("| set | method | RMSE / deviation | in the 90 % interval | width / deviation | log density |")
    print("|---|---|---|---|---|---|")
    for name in given.sets:
        for method in given.methods:
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                error, inside, width, density = measured(name, method, given.rows, given.divisions)
            cells = [f"{error:.3f}", *("–" if np.isnan(x) else f"{x:.3f}" for x in (inside, width, density))]
            print(f"| {name} | {method} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
