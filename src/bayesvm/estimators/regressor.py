"""Estimators: the kernel regressor."""

from __future__ import annotations

from typing import Any

from bayesvm.estimators._kernel import KERNEL, KernelEstimator
from bayesvm.estimators.regression import BaseBayesianSVR


class BayesianSVR(KernelEstimator, BaseBayesianSVR):
    """Bayesian support vector regression with a kernel and inducing points.

    The loss is that of an SVR: zero inside a tube of half-width ε and linear outside, so outliers have little
    influence. With the default parameters, the model tunes itself: the width of the tube, the slope of the loss and the
    kernel are learned from leave-one-out estimates. Predictions come with standard deviations, intervals and quantiles,
    calibrated on the rows left out. As in ``BayesianSVC``, a committee of models may be averaged, and local models may
    be added.

    Parameters
    ----------
    kernel : str or kernel object, default="auto"
        "auto" averages models with an RBF and with a Laplacian kernel. The names are "rbf", "laplacian", "matern12",
        "matern32", "matern52", "rational_quadratic" and "linear". A name stands for that kernel with variance 4 and
        length-scale √D (D for "laplacian") on the scaled inputs, where tuning starts; ``tune="auto"`` and "loo" add a
        broad RBF, which is nearly constant over the data. A kernel object, from ``bayesvm.kernels`` or your own, has
        one length-scale or one per feature, as given; tuning learns the parameters whose bounds are not "fixed".
    n_inducing : int, "auto" or None, default="auto"
        Number of inducing points of each member. None uses every distinct row: the full batch model of the paper.
        "auto" without tuning is 300. "auto" with tuning is a fifth of the rows up to 300, then a twelfth of the rows up
        to 500, and at least 100. On its last sample, tuning also tries twice as many points; if that lowers the
        leave-one-out log loss by 0.004 and there are no local models, the fit uses up to 700 points, and by 0.012 up to
        2,000. Beyond 100 points, there are at least five rows per point. Beyond 300 points, rows × points² is at most
        2·10¹⁰, a budget that the members share. There are never more points than distinct rows.
    max_inducing : int, default=2000
        Upper limit of ``n_inducing="auto"``.
    inducing : str or array of shape (n_inducing, n_features), default="kmeans"
        How to choose the inducing points. "kmeans": k-means from AFK-MC² seeds.
        "random": rows at random. "greedy": greatest conditional variance. "gmm": a Gaussian mixture. Distances are
        measured in length-scales of the kernel. An array contains the points themselves, in the units of X.
    learn_inducing : bool, default=False
        Whether to move the points along the gradient of the leave-one-out loss. This overfits easily.
    local : "auto" or bool, default="auto"
        Whether to add local models to the mean of the model: a tree divides the rows into leaves of about 400, and each
        leaf has up to 150 inducing points of its own. "auto" adds them with ``tune="auto"`` from 4,000 rows on, if
        leave-one-out estimates on some leaves improve. True needs ``tune="auto"`` or "loo".
    inference : {"auto", "batch", "stochastic"}, default="auto"
        "batch": updates over all rows. "stochastic": minibatches (algorithm 1 of the paper), then at least one pass
        over all rows. "auto": batch; with many rows, growing random subsets first.
    tune : {"auto", "loo", "elbo"} or None, default="auto"
        "auto": the full procedure. "loo": learn the parameters of the kernel by the gradient of the leave-one-out log
        density. "elbo": the method of the paper, which alternates ``tune_interval`` variational updates with one
        gradient step of the ELBO. None keeps the kernel fixed. The noise (ε and the scale of the loss) is always
        learned.
    tune_interval : int, default=10
        Number of variational updates between two steps of ``tune="elbo"``.
    scale : {"auto", "standard", "common", "quantile"} or None, default="auto"
        "standard" scales each column to mean 0 and standard deviation 1. "common" divides all columns by the same
        number, for pixels and spectra. "quantile" maps ranks to normal scores, for heavy tails, and extrapolates
        linearly beyond the extremes. "auto" with ``tune="auto"`` selects the best of them by leave-one-out, or averages
        those that are about equally good; otherwise it is "standard".
    batch_size : int or "auto", default="auto"
        Number of rows of a minibatch; "auto" is 4096.
    learning_rate : {"adaptive", "robbins_monro"} or float, default="adaptive"
        Step size of stochastic inference; a number in (0, 1] is a constant step size.
    max_iter : int, default=100
        Budget in passes over the data, including rejected steps.
    tol : float, default=5e-5
        Stop when the estimated gain in ELBO of further updates is below this many nats per row; with the default, a
        tuned model also stops when it is below 0.01 nats in total. 0 uses the whole budget.
    time_limit : float or None, default=None
        Budget in seconds. The current update is completed.
    warm_start : bool, default=False
        Whether another call of ``fit`` keeps scaling, kernel and inducing points and starts from the current posterior.
    precision : {"auto", "single", "double"}, default="auto"
        Precision of the arithmetic inside blocks during ``fit``. Sums and predictions always use double precision.
        "auto" is single when rows × inducing points reaches one million.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. Results are bit-identical for any number.
    random_state : int, RandomState or None, default=None
        Controls the randomness. With an int, results are bit-identical on one machine with one set of library versions.
    verbose : int, default=0
        1 shows the progress.

    Attributes
    ----------
    epsilon_ : float
        Half-width of the tube inside which an error has no loss, in the units of y, at an average row; of the heaviest
        member.
    noise_std_ : float
        Standard deviation of y around the latent function at an average row, in the units of y; of the heaviest member.
    loo_predictions_ : tuple of two arrays
        Leave-one-out means and standard deviations of the rows ``loo_indices_``, from this one fit.
    loo_rmse_ : float
        Leave-one-out estimate of the root mean squared error, in the units of y.
    loo_log_density_ : float
        Leave-one-out estimate of the mean log density of y, in the units of y.
    loo_indices_ : array of shape (n_left_out,)
        Indices of the rows of X behind the leave-one-out estimates: all rows up to 20,000, a random choice beyond.
    calibration_factor_ : float
        Factor of the variance of the latent function, fitted to the rows left out.
    kernel_ : kernel
        The kernel that was used, on scaled inputs. A tuned kernel that was given by name is a sum of the kernel of that
        name, whose length-scales are ``kernel_.length_scales``, and a broad RBF of fixed length-scale.
    inducing_points_ : array of shape (n_inducing, n_features)
        The inducing points, in the units of X.
    scale_ : str or None
        The scaling that was used.
    tuning_report_ : report
        The trials of tuning, their leave-one-out log density, what was selected and why; prints as a table. The last
        lines list the members with their weights.
    effects_ : tuple of ColumnEffect
        Functions of one column or of a pair of columns, added to f because the leave-one-out residuals call for them;
        those with the largest shares first, and empty if there are none.
    relevance_ : array of shape (n_columns,)
        Share of each column of X in the variation of f; the shares add up to one. The share of the main kernel is
        divided among the columns by their parts in the squared distances, in length-scales, and the share of an effect
        equally among its columns (a one-hot encoded categorical column counts as one). Members of a committee are
        averaged by weight. The broad component counts for no column, although it may represent a linear trend: for the
        importance of columns use ``bayesvm inspect`` or :func:`sklearn.inspection.permutation_importance`.
    n_samples_ : int
        Number of rows with non-zero weight that the model was fitted to; in a stream, of all parts. Missing for models
        loaded from files of version 1.
    elbo_ : float
        Evidence lower bound after the last update, in nats.
    elbo_trace_ : array of shape (n_updates,)
        Evidence lower bound after each update.
    n_iter_ : int
        Number of updates.
    n_passes_ : float
        Number of passes over the data: rows read divided by rows given.
    converged_ : bool
        Whether all members reached ``tol``.
    interrupted_ : bool
        Whether Ctrl-C ended the fit early.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X; only if X was a data frame or a table.
    recipe_ : Recipe or None
        How the columns of X (text, categories, dates, missing values) become numeric features; None if X has only
        numbers, and no missing value says something about y.
    completion_ : Completion or None
        Completes missing values of X from the other values of their row, with a Gaussian copula learned from the
        training rows (D33). None for sparse X, and for more than 2,000 columns without a missing value.

    See Also
    --------
    BayesianSVC : The same for classes.
    load : Read a model that ``save`` wrote.

    Notes
    -----
    y is centred at its median and divided by a robust measure of its spread; all results are in the units of y. The
    density of a committee is the weighted mean of the members' densities; intervals and quantiles are those of this
    mean, and the spread of the members' means is epistemic.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm import BayesianSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(300)
    >>> model = BayesianSVR(random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.0]], return_std=True)
    >>> bool(abs(mean[0]) < 0.1 and 0.08 < std[0] < 0.15)
    True
    """

    _kind = "BayesianSVR"
    _parameter_checks = KERNEL

    def __init__(
        self,
        kernel: Any = "auto",
        n_inducing: Any = "auto",
        max_inducing: int = 2000,
        inducing: Any = "kmeans",
        learn_inducing: bool = False,
        local: Any = "auto",
        inference: str = "auto",
        tune: str | None = "auto",
        tune_interval: int = 10,
        scale: str | None = "auto",
        batch_size: Any = "auto",
        learning_rate: Any = "adaptive",
        max_iter: int = 100,
        tol: float = 5e-5,
        time_limit: float | None = None,
        warm_start: bool = False,
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
        self.local = local
        self.inference = inference
        self.tune = tune
        self.tune_interval = tune_interval
        self.scale = scale
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
