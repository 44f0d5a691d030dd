"""Estimators: the kernel regressor."""

from __future__ import annotations

from typing import Any

from bayesvm.estimators._kernel import KERNEL, KernelEstimator
from bayesvm.estimators.regression import BaseBayesianSVR


class BayesianSVR(KernelEstimator, BaseBayesianSVR):
    """Bayesian support vector regression with a kernel and inducing points.

    The loss is that of an SVR: nothing inside a tube of half width ε, and growing in proportion beyond it, so outliers
    have little influence. Its width, its slope and the kernel are learned by leave-one-out; with nothing set there is
    nothing to tune. Predictions come with standard deviations, intervals and quantiles, calibrated on the rows left
    out. As in ``BayesianSVC``, several models may be averaged, and local models added.

    Parameters
    ----------
    kernel : "auto", a name or a kernel object
        "auto" averages RBF and Laplacian. The names are "rbf", "laplacian", "matern12", "matern32", "matern52",
        "rational_quadratic" and "linear". A name stands for that kernel with variance 4 and length-scale √D (D for
        "laplacian") on the scaled inputs, where tuning starts; ``tune="auto"`` and "loo" add a broad RBF, which is
        nearly constant among the rows. A kernel of ``bayesvm.kernels``, or your own, is tuned in the parameters whose
        bounds are not "fixed", and has one length-scale or one for every feature, as given.
    n_inducing : int, "auto" or None
        Number of inducing points of each member. "auto" without tuning: 300. With tuning: a fifth of the rows up to
        300, then a twelfth of them up to 500, and at least 100. On its last sample, tuning also tries twice its own
        number of points; if that lowers the leave-one-out log loss by .004 and there are no local models, the fit has
        up to 700 points, and by .012 up to 2,000. There are at least five rows for each point beyond 100, and
        rows × points², shared by the members, is at most 2·10¹⁰ beyond 300 points. There are never more points than
        distinct rows.
        None: every distinct row, the full batch model of the paper.
    max_inducing : int
        The most that "auto" may take; 2000 by default.
    inducing : "kmeans", "random", "greedy", "gmm" or array of shape (n_inducing, n_features)
        How inducing points are chosen: k-means from AFK-MC² seeds, at random, by
        greatest conditional variance, by a Gaussian mixture, with distances measured in the kernel's length-scales; an
        array gives them, in the units of X.
    learn_inducing : bool
        Whether the points are moved by the gradient of the leave-one-out loss; they over-fit easily.
    local : "auto", True or False
        Whether local models are added to the mean of the model: a tree divides the rows into leaves of about 400, and
        each leaf has up to 150 inducing points of its own. "auto": with ``tune="auto"`` and from 4,000 rows on, where
        leave-one-out on some leaves says that they pay. True needs ``tune="auto"`` or "loo".
    inference : "auto", "batch" or "stochastic"
        "batch": updates over all rows. "stochastic": minibatches (the paper's algorithm 1), then at least
        one pass over all rows. "auto": batch, after growing random subsets if there are many rows.
    tune : "auto", "loo", "elbo" or None
        "auto": the whole recipe. "loo": the kernel's learned parameters by the gradient of the leave-one-out log
        density. "elbo": the paper's way, ``tune_interval`` variational updates and one gradient step of the ELBO in
        turn. None leaves the kernel fixed. The noise (ε and the scale of the loss) is always learned.
    tune_interval : int
        Variational updates between two steps of ``tune="elbo"``.
    scale : "auto", "standard", "common", "quantile" or None
        "standard": each column to mean 0 and standard deviation 1. "common": one divisor for all columns, for pixels
        and spectra. "quantile": ranks to normal scores, for heavy tails; beyond the extremes it goes on linearly.
        "auto": the best of them by leave-one-out with ``tune="auto"``, or an average over those that are about as good;
        else "standard".
    batch_size : int or "auto"
        Rows of a minibatch; "auto" is 4096.
    learning_rate : "adaptive", "robbins_monro" or a number in (0, 1]
        Step size of stochastic inference.
    max_iter : int
        Budget in passes over the data, rejected steps included.
    tol : float
        Stop when the ELBO that further updates could gain is estimated below this, in nats per row;
        of a tuned model with the default also if it is below .01 in all. 0 uses the whole budget.
    time_limit : float or None
        Budget in seconds; the update under way is finished.
    warm_start : bool
        Whether a further ``fit`` keeps scaling, kernel and inducing points and starts from the posterior so far.
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
    epsilon_ : float
        Half the width of the tube inside which an error costs nothing, in the units of y, at an average row; of the
        heaviest member.
    noise_std_ : float
        Standard deviation of y around the latent function at an average row, in the units of y; of the heaviest member.
    loo_predictions_ : tuple of two arrays
        Means and standard deviations of the rows ``loo_indices_``, each predicted without itself, from this one fit.
    loo_rmse_, loo_log_density_ : float
        Leave-one-out estimates of the root of the mean squared error and of the mean log density of y, in its units.
    loo_indices_ : array
        Rows of X that were left out: all of them up to 20,000, a random choice beyond.
    calibration_factor_ : float
        By which the variance of the latent function is multiplied, fitted to the rows left out.
    kernel_, scale_, inducing_points_, effects_, relevance_, tuning_report_ : as of ``BayesianSVC``
    elbo_, elbo_trace_, n_iter_, n_passes_, converged_, interrupted_, n_samples_ : as of ``BayesianSVC``
    n_features_in_, feature_names_in_ : int, array of str
        Of the columns of X; the names if it was a frame or a table.

    See Also
    --------
    BayesianSVC : The same for classes.
    bayesvm.load : Read a model that ``save`` wrote.

    Notes
    -----
    y is centred at its median and divided by a robust measure of its spread; all results are in its own units.
    Of a committee, the density of y is the weighted mean of the members' densities; intervals and quantiles are those
    of that mean, and the spread between the members' means is epistemic.

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
