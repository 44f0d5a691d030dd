"""Estimators: the kernel classifier."""

from __future__ import annotations

from typing import Any

from bayesvm.estimators._kernel import KERNEL, KernelEstimator
from bayesvm.estimators.classification import BaseBayesianSVC
from bayesvm.estimators.parameters import CLASSIFIER


class BayesianSVC(KernelEstimator, BaseBayesianSVC):
    """Bayesian support vector machine with a kernel and inducing points, for two classes or more.

    With nothing set it tunes itself: leave-one-out on samples of the rows decides about scaling, kernel, one
    length-scale or one for every feature, effects of single columns and pairs, and the number of inducing points. Where
    the rows cannot tell which of several models is best, up to six of them are averaged: a committee. Where a large
    table has more detail than inducing points can follow, local models are added.

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
        How inducing points are chosen: k-means from AFK-MC² seeds (within each class if rows are many), at random, by
        greatest conditional variance, by a Gaussian mixture, with distances measured in the kernel's length-scales; an
        array gives them, in the units of X.
    learn_inducing : bool
        Whether the points are moved by the gradient of the leave-one-out loss; they over-fit easily.
    local : "auto", True or False
        Whether local models are added to the mean of the model: a tree divides the rows into leaves of about 400, and
        each leaf has up to 150 inducing points of its own. "auto": with ``tune="auto"`` and from 4,000 rows on, where
        leave-one-out on some leaves says that they pay. True needs ``tune="auto"`` or "loo".
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
        "auto": the best of them by leave-one-out with ``tune="auto"``, or an average over those that are about as good;
        else "standard".
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
        of a tuned model with the default also if it is below .01 in all. 0 uses the whole budget.
    time_limit : float or None
        Budget in seconds; the update under way is finished.
    warm_start : bool
        Whether a further ``fit`` keeps scaling, kernel and inducing points and starts from the posterior so far.
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
        Leave-one-out probabilities and metrics from this one fit; of the rows ``loo_indices_`` of X, all of them up to
        20,000, a random choice beyond.
    calibration_scale_, calibration_bias_, calibration_share_ : arrays
        Parameters of the calibrated link: for two classes a scale and a bias of either probit and the share of the
        second, for more one scale and a bias of every class. Of a committee, those of the heaviest member.
    inducing_points_ : array of shape (n_inducing, n_features)
        In the units of X.
    noise_ : float
        The variance used.
    scale_ : str or None
        The scaling used.
    n_samples_ : int
        Rows that it was fitted to, those of weight zero left out; in a stream, of all parts. Models in files of version
        1 do not have it.
    kernel_ : kernel
        The one used, on scaled inputs. A kernel by name that was tuned is a sum: the kernel of that name, whose
        ``kernel_.length_scales`` they are, and a broad RBF of fixed length-scale.
    tuning_report_ : report
        What was tried, its leave-one-out log loss, what was chosen and why; prints as a table. Its last lines are the
        members, each with its weight.
    effects_ : tuple of ColumnEffect
        Functions of one column or of a pair that are added to f because leave-one-out residuals ask for them, the
        largest share first; empty if there are none.
    relevance_ : array of shape (n_features,)
        Share of every column in the variation of f, adding up to one. The share of the main kernel is divided among all
        columns by their parts in the squared distances, in length-scales, and that of an effect equally among its own
        columns (a categorical column in one-hot form counts as one); members of a committee are averaged by weight.
    elbo_, elbo_trace_ : float, array
        Evidence lower bound, last and after each update.
    n_iter_ : int
        Number of updates.
    n_passes_ : float
        Rows read over rows given.
    converged_, interrupted_ : bool
        Whether ``tol`` was met, by all members; whether Ctrl-C ended the fit.
    n_features_in_, feature_names_in_ : int, array of str
        Of the columns of X; the names if it was a frame or a table.

    Notes
    -----
    A tuned model may be a committee of up to six members. Each has its own scaling, kernel, inducing points,
    posterior and link, and a weight; the weights are those whose average predicts the rows left out best.

    - ``kernel_``, ``scale_``, ``inducing_points_``, ``elbo_``, ``elbo_trace_``, ``n_iter_`` and ``n_passes_`` are those
      of the heaviest member, which comes first. ``tuning_report_`` has a line for each member, with its weight.
    - ``predict_proba`` and ``loo_proba_`` are the weighted mean of what the members say.
    - ``predict_uncertainty``: the aleatoric part is the weighted mean of the members' own; their disagreement is
      epistemic.
    - ``latent_mean_and_variance`` has the moments of the mixture, so the variance includes how far the members' means
      are apart. Each draw of ``sample_latent`` and ``sample_proba`` takes one member, for all rows.
    - ``partial_fit`` and ``warm_start``: every member learns, and the weights stay.
    - ``to_onnx`` writes one graph with all members.

    With local models (``local``), ``kernel_``, ``inducing_points_``, ``relevance_``, ``effects_`` and ``elbo_`` are
    those of the model below them, and ``loo_proba_`` comes from models that were fitted without the rows.
    ``partial_fit`` updates the local models only; ``to_onnx`` does not write them.

    Examples
    --------
    >>> from bayesvm import BayesianSVC
    >>> from bayesvm.datasets import waveform
    >>> train, test = waveform(2000, random_state=0), waveform(1000, random_state=1)
    >>> model = BayesianSVC(n_inducing=50, random_state=0).fit(train.X, train.y)
    >>> bool(model.score(test.X, test.y) > 0.88)
    True
    """

    _kind = "BayesianSVC"
    _parameter_checks = KERNEL | CLASSIFIER

    def __init__(
        self,
        kernel: Any = "auto",
        n_inducing: Any = "auto",
        max_inducing: int = 2000,
        inducing: Any = "kmeans",
        learn_inducing: bool = False,
        local: Any = "auto",
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
        self.local = local
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
