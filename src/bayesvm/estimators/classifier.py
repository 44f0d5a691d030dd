"""Estimators: the kernel model."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from sklearn.utils import check_array

from bayesvm.core.features import Features
from bayesvm.core.kernels import NAMED, Kernel
from bayesvm.data.blocks import BlockSource
from bayesvm.estimators._parameters import COMMON, one_of, whole
from bayesvm.estimators._tuning import TuningMixin
from bayesvm.inference import inducing as inducing_points

MOST_INDUCING = 20_000  # k(Z,Z) and a few matrices of its size must fit into memory


class BayesianSVC(TuningMixin):
    """Bayesian support vector machine with a kernel and inducing points, for two classes or more.

    With nothing set it tunes itself: leave-one-out on samples of the rows decides about scaling, kernel, one
    length-scale or one for every feature, and the number of inducing points.

    Parameters
    ----------
    kernel : "auto", "rbf", "matern12", "matern32", "matern52", "rational_quadratic", "linear" or a kernel object
        "auto" chooses between Matern 3/2 and RBF. A name stands for that kernel with length-scale √D and variance 4 on
        the scaled inputs, from where tuning goes on. A kernel of ``bayesvm.kernels``, or your own, is tuned in the
        parameters whose bounds are not "fixed", and has one length-scale or one for every feature, as given.
    n_inducing : int, "auto" or None
        Number of inducing points. "auto": 300, or every distinct row if there are fewer; then 1000 (at most half the
        rows) if N·M² is at most 2·10¹⁰ and leave-one-out gains .002 by it.
        None: every distinct row, the full batch model of the paper.
    max_inducing : int
        The most that "auto" may take.
    inducing : "kmeans", "random", "greedy", "gmm" or array of shape (n_inducing, n_features)
        How inducing points are chosen: k-means from AFK-MC² seeds (within each class if rows are many), at random, by
        greatest conditional variance, by a Gaussian mixture, with distances measured in the kernel's length-scales; an
        array gives them, in the units of X.
    learn_inducing : bool
        Whether the points are moved by the gradient of the leave-one-out loss; they over-fit easily.
    bound : "exact" or "augmented"
        "exact" uses the expected hinge loss itself, "augmented" the paper's looser bound.
    inference : "auto", "batch" or "stochastic"
        "batch": updates over all rows. "stochastic": minibatches (the paper's algorithm 1), then at least
        one pass over all rows. "auto": batch, after growing random subsets if there are many rows.
    tune : "auto", "loo", "elbo" or None
        "auto": the whole recipe. "loo": the kernel's learned parameters by the gradient of the leave-one-out loss.
        "elbo": the paper's way, ``tune_interval`` variational updates and one gradient step of the ELBO in turn (on
        minibatches with ``inference="stochastic"``). All of them also set the prior mean of f, so that far from the
        data the probability is the base rate. None leaves everything fixed, at prior mean zero.
    tune_interval : int
        Variational updates between two steps of ``tune="elbo"``.
    scale : "auto", "standard", "common", "quantile" or None
        "standard": each column to mean 0 and standard deviation 1. "common": one divisor for all columns, for pixels
        and spectra. "quantile": ranks to normal scores, for heavy tails; beyond the extremes it goes on linearly.
        "auto": the best of them by leave-one-out with ``tune="auto"``, else "standard".
    link : "calibrated", "probit", "hinge" or "paper"
        From f to a probability. "calibrated": a mean of two probits, fitted to leave-one-out marginals (more
        classes: a softmax with one scale and a bias each). "probit": P(f + unit noise > 0). "hinge": the
        normalised pseudo-likelihood. "paper": the printed formula, for reproducing it. All but "calibrated" divide by
        the sum when there are more than two classes.
    noise : "auto" or a number from 0
        Variance of the noise that every row adds to its f before the hinge loss sees it. With 0, the hinge of the
        paper, many rows draw f to ±1, which tells sides apart but not probabilities (D22). "auto": 1 with
        ``tune="auto"`` or "loo", else 0.
    batch_size : int or "auto"
        Rows of a minibatch; "auto" is 4096.
    learning_rate : "adaptive", "robbins_monro" or a number in (0, 1]
        Step size of stochastic inference.
    max_iter : int
        Budget in passes over the data, rejected steps included.
    tol : float
        Stop when the ELBO that further updates could gain is estimated below this, in nats per row;
        0 uses the whole budget.
    time_limit : float or None
        Budget in seconds; the update under way is finished.
    warm_start : bool
        Whether a further ``fit`` keeps scaling and inducing points and starts from the posterior so far.
    class_weight : dict, "balanced" or None
        Weights of classes, multiplied into the rows' weights; probabilities are then those of the
        reweighted population.
    precision : "auto", "single" or "double"
        Of the arithmetic inside blocks when fitting; sums are always double, and so are predictions. "auto": single
        when rows times inducing points reach one million.
    n_jobs : int or None
        Threads; None means all cores. The result does not depend on it, to the last bit.
    random_state : int, RandomState or None
        Controls the randomness. An int makes results bit-identical on one machine with one set of library versions.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted; of two, the second is the positive class.
    loo_proba_, loo_log_loss_, loo_error_, loo_indices_ : array, float, float, array
        Leave-one-out probabilities and figures from this one fit; of the rows ``loo_indices_`` of X, all of them up to
        20,000, a random choice beyond.
    calibration_scale_, calibration_bias_, calibration_share_ : arrays
        Parameters of the calibrated link: for two classes a scale and a bias of either probit and the share of the
        second, for more one scale and a bias of every class.
    inducing_points_ : array of shape (n_inducing, n_features)
        In the units of X.
    noise_ : float
        The variance used.
    kernel_ : kernel
        The one used, on scaled inputs.
    tuning_report_ : report
        What was tried, its leave-one-out log loss, what was chosen and why; prints as a table.
    relevance_ : array of shape (n_features,)
        Share of every feature in the squared distances, adding up to one, in the order of the columns.
    elbo_, elbo_trace_ : float, array
        Evidence lower bound, last and after each update.
    n_iter_ : int
        Number of updates.
    n_passes_ : float
        Rows read over rows given.
    converged_, interrupted_ : bool
        Whether ``tol`` was met; whether Ctrl-C ended the fit.
    n_features_in_, feature_names_in_ : int, array of str
        Of the columns of X; the names if it was a frame or a table.

    Examples
    --------
    >>> from bayesvm import BayesianSVC
    >>> from bayesvm.datasets import waveform
    >>> train, test = waveform(2000, random_state=0), waveform(1000, random_state=1)
    >>> model = BayesianSVC(n_inducing=50, random_state=0).fit(train.X, train.y)
    >>> bool(model.score(test.X, test.y) > 0.88)
    True
    """

    _parameter_checks = COMMON | {
        "n_inducing": whole(1, "auto", None),
        "max_inducing": whole(1),
        "scale": one_of("auto", "standard", "common", "quantile", None),
        "tune": one_of("auto", "loo", "elbo", None),
        "tune_interval": whole(1),
        "learn_inducing": one_of(True, False),
    }

    def __init__(
        self,
        kernel: Any = "auto",
        n_inducing: Any = "auto",
        max_inducing: int = 1000,
        inducing: Any = "kmeans",
        learn_inducing: bool = False,
        bound: str = "exact",
        inference: str = "auto",
        tune: str | None = "auto",
        tune_interval: int = 10,
        scale: str | None = "auto",
        link: str = "calibrated",
        noise: Any = "auto",
        batch_size: Any = "auto",
        learning_rate: Any = "adaptive",
        max_iter: int = 100,
        tol: float = 5e-5,
        time_limit: float | None = None,
        warm_start: bool = False,
        class_weight: Any = None,
        precision: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_inducing = n_inducing
        self.max_inducing = max_inducing
        self.inducing = inducing
        self.learn_inducing = learn_inducing
        self.bound = bound
        self.inference = inference
        self.tune = tune
        self.tune_interval = tune_interval
        self.scale = scale
        self.link = link
        self.noise = noise
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _expected_weights(self, n_rows: int, n_features: int) -> int:
        return max(self._sizes(n_rows))

    def _wide_vectors(self, n_rows: int) -> int:
        return 14 * min(self._sizes(n_rows)[0], n_rows)

    def _build_features(self, source: BlockSource, dtype: Any, rng: np.random.Generator) -> Features:
        self.kernel_ = self._kernel(self.kernel, source.n_features)
        size = self._sizes(source.n_rows)[0]
        return self._features_at(source, self._place_inducing_points(source, rng, size))

    def _kernel(self, wanted: Any, n_features: int) -> Kernel:
        if isinstance(wanted, Kernel):
            return copy.deepcopy(wanted)
        if not isinstance(wanted, str) or wanted not in NAMED:
            raise ValueError(
                f"kernel must be one of {', '.join(map(repr, NAMED))} or a kernel of bayesvm.kernels; got {wanted!r}"
            )
        return NAMED[wanted](n_features)

    def _place_inducing_points(self, source: BlockSource, rng: np.random.Generator, size: int) -> np.ndarray:
        self._check_inducing(size, source.n_features)
        if not isinstance(self.inducing, str):
            return source.scaler(self._given_points(source.n_features))
        if self.n_inducing is None:
            return inducing_points.every_row(source)
        points = inducing_points.select(source, self.inducing, size, rng, self.kernel_)
        if self.n_inducing != "auto" and len(points) < self.n_inducing:
            warnings.warn(
                f"n_inducing={self.n_inducing}, but there are only {len(points)} distinct rows or clusters; "
                f"{len(points)} inducing points are used.",
                UserWarning,
                stacklevel=5,
            )
        return points

    def _check_inducing(self, size: int, n_features: int) -> None:
        if not isinstance(self.inducing, str):
            self._given_points(n_features)
        if isinstance(self.inducing, str) and self.inducing not in inducing_points.HOW:
            choices = ", ".join(map(repr, inducing_points.HOW))
            raise ValueError(f"inducing must be {choices} or an array of points; got {self.inducing!r}")
        if size > MOST_INDUCING:
            raise ValueError(
                f"{size} inducing points need {size}×{size} matrices; at most {MOST_INDUCING} are supported. "
                "Give n_inducing, for example 1000."
            )

    def _given_points(self, n_features: int) -> np.ndarray:
        points = check_array(self.inducing, dtype=np.float64, input_name="inducing")
        if points.shape[1] != n_features:
            raise ValueError(f"inducing has {points.shape[1]} columns, but X has {n_features}")
        _, first = np.unique(points, axis=0, return_index=True)
        return points[np.sort(first)]  # a point given twice adds nothing but a singular matrix
