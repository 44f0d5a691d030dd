"""Calibration: the sentences of docs/calibration.md that do not depend on metrics."""

from experiments.calibration.methods import FEW, OURS

INTRODUCTION = """# Are the probabilities right?

Written by `make calibration`; do not edit by hand. All metrics are computed from the answers that its run keeps
in `out/calibration`; as a table they are in [calibration/metrics.csv](calibration/metrics.csv).

**Calibrated** means: of all rows that were given 70 %, 70 % are of that class. One can then reckon with the numbers:
weigh costs, add up expected counts, or leave to a human what is too doubtful. To be calibrated is not enough, for who
always states the base rate is calibrated and says nothing. So every table has, beside the calibration error, the error
of the decisions and two scores that reward both honesty and knowledge: the Brier score and the log loss.
[evaluation.md](evaluation.md) explains the metrics. All of them are better the smaller they are. Intervals are 95 %,
from 200 resamples of the test rows.
"""
HOW = """## How it was measured

{n_sets} real sets, {n_imbalanced} of them imbalanced, and two shifts. Each is split once, with a fixed seed and equal
shares of the classes; all methods learn from the same rows, or a random choice of them, and are judged by the same test
rows. Rows of protein come in blocks of one protein each, which the split does not keep together.
"""
LIMITS = """What this does not tell: each set was split once, and intervals are of other test rows, not of other splits
or training rows. SVC and boosting have their defaults while we tune ourselves; tuned ones were not measured. The
largest real set here has 20,000 training rows; of a synthetic one with 200,000 rows, whose probabilities are known,
`make demo` prints the metrics, and [tuning](tuning.md#noise) tells how far others are off."""
METHODS_TOLD = (  # name, what it is, rows that it learns from
    (OURS, '`BayesianSVC()`: it tunes itself; link `"calibrated"`', "all"),
    (f"{OURS}, probit, hinge, paper", "the same fit, f turned into probabilities by the other links", "all"),
    (f"{OURS}, few rows", "`BayesianSVC()`, from the very rows that the Gaussian process gets", f"at most {FEW:,}"),
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
NOBODY = """The other links are read off a fit that was tuned for the calibrated one; with `link="probit"` the tuning
would have looked for a kernel that suits it. All but ours and CatBoost are scikit-learn's. Nobody's settings were
chosen by hand; we tune ourselves and the Gaussian process does, the SVC, CatBoost and boosting have their defaults.
Isotonic regression may state 0 or 1; where that is wrong, the log loss counts it as 2.2e-16. Of sets with at most
{few:,} training rows, "few rows" is the same fit again."""
RELIABILITY = """## Reliability

Test rows in ten groups by their stated probability, and the share of each group that is of the second class. On the
line, things happen as often as is stated; bars are 95 % intervals. Steeper than the line means too cautious, flatter
too sure. Axes end below 1 where the second class is rare.

![Reliability diagrams of six methods on all sets](calibration/reliability.svg)

And the four links on the marginals of the same fit:

![Reliability diagrams of our four links on all sets](calibration/links.svg)
"""
EVERY_SET = """## Every set

"Log loss minus ours" is of the same rows: above zero, we are better.
"""
FAR_TOLD = """## Far from the data

{moved:,} test rows are moved away, each in its own random direction, such that a column moves by 0 to 20 standard
deviations (root mean square; of covtype only the ten columns that are no yes-or-no). Nobody can know the class there.
What do the methods say? Confidence is the probability of the more probable class. The grey line is the share of the
larger class, the confidence of somebody who knows nothing else.

![Mean confidence and our epistemic part against the distance from the data](calibration/far.svg)
"""
SHIFT = """## A shift within the data

Here the new rows are real, but from a region that was not learned from. "Same" are test rows from the region of the
training rows, "beyond" are those of the other region. No method can know how the relation goes on there; one can only
hope that it becomes less sure. They guess differently: far from what it knows our f returns to its prior mean, and so
the probability to the base rate of the training rows; trees go on with the last value they saw. Which of the two is
better depends on the truth.
"""
COVERAGE = """## Leaving the doubtful rows to somebody else

Rows are answered in the order of their doubt, the least doubtful first. The curve is the error among the answered ones,
and the area under it is small if few errors are made and if those few have the largest doubts.

![Risk and coverage of five methods on all sets](calibration/coverage.svg)

Areas, times 1,000, with 95 % intervals; as all share the test rows, differences are known better than they suggest:
"""
LINKS_TOLD = """## The shape of our link

Would a link of another shape do better? The table fits links of one, two and three probits to the same leave-one-out
marginals. Two are what `link="calibrated"` uses from 2,000 rows on; smaller sets are not here. Of the three, one is at
either kink of the hinge loss, f = -1 and f = 1, where rows of different probability would gather if there were no noise
(D22). `people` is a synthetic table of {people:,} training rows, more than any other here. The last column judges two
probits by the left-out rows that they were fitted to. The priors of the three are the best of the few that were tried,
and test rows of most of these sets were looked at for that, so the table flatters them.
"""
