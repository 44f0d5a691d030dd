"""Calibration: the sentences of docs/calibration.md that do not depend on metrics."""

from experiments.calibration.methods import FEW, OURS

INTRODUCTION = """# Are the probabilities right?

Written by `make calibration`; do not edit by hand. All metrics are computed from predictions that its run stores in
`out/calibration`; [calibration/metrics.csv](calibration/metrics.csv) has them as a table.

Probabilities are **calibrated** if 70% of all rows with a probability of 70% belong to that class. You can then use
them to weigh costs, add up expected counts, or abstain on doubtful rows. Calibration alone is not enough: always
predicting the base rate is calibrated and useless. So every table has, in addition to the calibration error, the
error of the decisions and two proper scores, which reward both calibration and accuracy: the Brier score and the log
loss. [Evaluation](evaluation.md) explains the metrics. Lower is better for all of them. Intervals are 95% intervals
from 200 bootstrap resamples of the test rows.
"""
HOW = """## How it was measured

{n_sets} real sets, {n_imbalanced} of them imbalanced, and two shifts. Each is split once, with a fixed seed and
stratified by class. All methods learn from the same rows, or a random sample of them, and are evaluated on the same
test rows. The rows of protein form blocks of one protein each, which the split does not keep together.
"""
LIMITS = """Limitations: each set was split once, and intervals reflect other test rows, not other splits or training
rows. SVC
and boosting have default settings, while bayesvm tunes itself; tuned competitors were not measured. The largest real
set here has 20,000 training rows. For a synthetic one with 200,000 rows and known probabilities, `make demo` prints
the metrics, and [tuning](tuning.md#noise) shows the distance from the true probabilities on others."""
METHODS_TOLD = (  # name, what it is, rows that it learns from
    (OURS, '`BayesianSVC()`, which tunes itself; link `"calibrated"`', "all"),
    (f"{OURS}, probit, hinge, paper", "the same fit with the other links", "all"),
    (f"{OURS}, few rows", "`BayesianSVC()`, trained on the rows of the Gaussian process", f"at most {FEW:,}"),
    ("SVC + sigmoid", "`SVC()` on standardised columns, in `CalibratedClassifierCV`, 5 folds", "at most 10,000"),
    (
        "Gaussian process",
        "`GaussianProcessClassifier`, RBF kernel, standardised columns; tuned by its evidence on half of the rows",
        f"at most {FEW:,}",
    ),
    ("boosting", "`HistGradientBoostingClassifier()`; above 10,000 rows up to 1,000 trees, stopped early", "all"),
    ("CatBoost", "`CatBoostClassifier()`", "all"),
    ("boosting + sigmoid, + isotonic", "the same in `CalibratedClassifierCV`, 5 folds, no ensemble", "all"),
)
NOBODY = """The other links use a fit that was tuned for the calibrated one; with `link="probit"`, tuning would choose
a kernel
for that link. All methods but bayesvm and CatBoost are from scikit-learn. No settings were chosen by hand: bayesvm
and the Gaussian process tune themselves; SVC, CatBoost and boosting have their defaults. Isotonic regression may
predict 0 or 1; if that is wrong, the log loss clips it to 2.2e-16. For sets with at most {few:,} training rows, "few
rows" is the same fit again."""
RELIABILITY = """## Reliability

Test rows in ten bins by their predicted probability, and the frequency of the second class in each bin. On the
diagonal, both agree; bars are 95% intervals. A steeper curve means underconfidence, a flatter one overconfidence.
Axes end below 1 if the second class is rare.

![Reliability diagrams of six methods on all sets](calibration/reliability.svg)

The four links on the marginals of the same fit:

![Reliability diagrams of our four links on all sets](calibration/links.svg)
"""
EVERY_SET = """## Every set

"Log loss minus ours" is the difference on the same rows: above zero, bayesvm is better.
"""
FAR_TOLD = """## Far from the data

{moved:,} test rows are moved away, each in its own random direction, such that a column moves by 0 to 20 standard
deviations (root mean square; for covtype only the ten columns that are not binary). The class is unknown there.
Confidence is the probability of the more probable class. The grey line is the share of the larger class, the
confidence of a prediction without any information.

![Mean confidence and our epistemic part against the distance from the data](calibration/far.svg)
"""
SHIFT = """## A shift within the data

Here the new rows are real, but from a region without training rows. "Same" are test rows from the region of the
training rows, "beyond" those of the other region. No method can know how the relation continues there; a good method
becomes less confident. Methods extrapolate differently: far from the training rows, f of bayesvm returns to its prior
mean, and so the probability to the base rate; trees continue with their last value. Which is better depends on the
data.
"""
COVERAGE = """## Abstaining on the doubtful rows

Rows are answered in the order of their doubt, the least doubtful first. The curve is the error of the answered rows;
the area under it is small if there are few errors and if these have the largest doubts.

![Risk and coverage of five methods on all sets](calibration/coverage.svg)

Areas, times 1,000, with 95% intervals; since all methods share the test rows, differences are more precise than the
intervals suggest:
"""
LINKS_TOLD = """## The shape of our link

Would a link of another shape be better? The table compares links of one, two and three probits, fitted to the same
leave-one-out marginals. `link="calibrated"` uses two from 2,000 rows on; smaller sets are not shown. Two of the three
probits are at the kinks of the hinge loss, f = -1 and f = 1, where rows of different probability would accumulate
without noise (D22). `people` is a synthetic table of {people:,} training rows, more than any other here. The last
column evaluates two probits on the leave-one-out predictions that they were fitted to. The priors of the three are
the best of the few that were tried on test rows of most of these sets, so the table is optimistic about them.
"""
