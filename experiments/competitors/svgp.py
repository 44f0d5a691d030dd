"""Competitors: S-GPC, the scalable variational Gaussian process classifier of Hensman, Matthews and Ghahramani (2015).

GPyTorch does the work: whitened inducing points, probit likelihood, minibatches. It stands in an environment of its
own, so torch is imported only where it is used, and this module can be named where there is none.
"""

from contextlib import contextmanager
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_info

PREDICTION_ROWS = 1000  # predicted at once


class SVGPClassifier(ClassifierMixin, BaseEstimator):
    """Gaussian process classifier for two classes, in minibatches.

    Parameters
    ----------
    length_scale, variance : the kernel is σ² exp(-|x-x'|²/2ℓ²), as everywhere in this project.
    n_inducing : number of inducing points, or the share of the training rows if it is a float; k-means places them.
    batch_size, epochs : rows of a step, passes over all rows.
    optimizer : "natural" takes natural gradient steps in q and Adam steps in whatever else is learned;
        "adam" takes Adam steps in everything.
    learn_kernel : θ, σ² and a constant mean; without it they stay, and the mean is zero.
    learn_inducing : the inducing points, too.
    natural_rate, adam_rate : constant step sizes. A natural step replaces that share of q by what the batch alone says,
        so q remembers about 2 batch_size / natural_rate rows, and is noise if these are fewer than there are.
        None remembers four times all rows, and forgets its start at a rate of 1/2 an epoch.
    """

    def __init__(
        self,
        length_scale=5.0,
        variance=1.0,
        n_inducing=100,
        batch_size=10,
        epochs=20,
        optimizer="natural",
        learn_kernel=False,
        learn_inducing=False,
        natural_rate=None,
        adam_rate=0.03,
        random_state=None,
    ):
        self.length_scale = length_scale
        self.variance = variance
        self.n_inducing = n_inducing
        self.batch_size = batch_size
        self.epochs = epochs
        self.optimizer = optimizer
        self.learn_kernel = learn_kernel
        self.learn_inducing = learn_inducing
        self.natural_rate = natural_rate
        self.adam_rate = adam_rate
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X, y):
        """Raises RuntimeError where training diverges."""
        if self.optimizer not in {"natural", "adam"}:
            raise ValueError(f'optimizer must be "natural" or "adam", not {self.optimizer!r}')
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(f"Only binary classification is supported: y has {len(self.classes_)} classes, not 2")
        torch, gpytorch = _libraries()
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        with _threads_of_blas(torch), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model_ = _gaussian_process(self, self._inducing_points(X, seed))
            self.likelihood_ = gpytorch.likelihoods.BernoulliLikelihood()
            self._train(torch.tensor(X), torch.tensor(codes.astype(np.float64)))
        self.length_scale_ = self.model_.kernel.base_kernel.lengthscale.item()
        self.variance_ = self.model_.kernel.outputscale.item()
        return self

    def _inducing_points(self, X, seed):
        n_points = self.n_inducing if isinstance(self.n_inducing, Integral) else round(self.n_inducing * len(X))
        n_points = min(max(1, n_points), len(np.unique(X, axis=0)))
        return KMeans(n_points, n_init=1, random_state=seed).fit(X).cluster_centers_

    def _train(self, X, y):
        torch, gpytorch = _libraries()
        elbo = gpytorch.mlls.VariationalELBO(self.likelihood_, self.model_, num_data=len(y))
        optimizers = self._optimizers(len(y))
        self.model_.train()
        for epoch in range(self.epochs):
            # Batches of nearly one size: a last one of a few rows would speak for all N as loudly as the others.
            for batch in torch.randperm(len(y)).tensor_split(-(-len(y) // self.batch_size)):
                for optimizer in optimizers:
                    optimizer.zero_grad()
                loss = -elbo(self.model_(X[batch]), y[batch])
                if not torch.isfinite(loss):
                    raise RuntimeError(f"S-GPC diverged in epoch {epoch + 1}: lower natural_rate or adam_rate")
                loss.backward()
                for optimizer in optimizers:
                    optimizer.step()
        self.model_.eval()

    def _optimizers(self, n_rows):
        torch, gpytorch = _libraries()
        of_q = list(self.model_.variational_parameters())
        others = [parameter for parameter in self.model_.hyperparameters() if parameter.requires_grad]
        if self.optimizer == "adam":
            return [torch.optim.Adam(of_q + others, lr=self.adam_rate)]
        rate = min(0.5, self.batch_size / (2 * n_rows)) if self.natural_rate is None else self.natural_rate
        natural = gpytorch.optim.NGD(of_q, num_data=n_rows, lr=rate)
        return [natural, torch.optim.Adam(others, lr=self.adam_rate)] if others else [natural]

    def predict_proba(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        torch, _ = _libraries()
        with _threads_of_blas(torch), torch.no_grad():
            blocks = [torch.tensor(X[rows]) for rows in gen_batches(len(X), PREDICTION_ROWS)]
            p = np.concatenate([self.likelihood_(self.model_(block)).probs.numpy() for block in blocks])
        return np.column_stack([1 - p, p])

    def predict(self, X):
        P = self.predict_proba(X)
        return self.classes_[P.argmax(axis=1)]


def _libraries():
    try:
        import gpytorch  # noqa: PLC0415  (optional)
        import torch  # noqa: PLC0415
    except ImportError as error:
        remedy = "`make reproduce` makes one in .venv-gpytorch, with torch 2.13.0 and gpytorch 1.15.2"
        raise ImportError(f"S-GPC needs an environment with GPyTorch: {remedy}") from error
    return torch, gpytorch


def _gaussian_process(settings, inducing_points):
    torch, gpytorch = _libraries()
    kinds = {
        "natural": gpytorch.variational.NaturalVariationalDistribution,
        "adam": gpytorch.variational.CholeskyVariationalDistribution,
    }

    class GaussianProcess(gpytorch.models.ApproximateGP):
        def __init__(self):
            strategy = gpytorch.variational.VariationalStrategy(
                self,
                torch.tensor(inducing_points),
                kinds[settings.optimizer](len(inducing_points)),
                learn_inducing_locations=settings.learn_inducing,
            )
            super().__init__(strategy)
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, X):
            return gpytorch.distributions.MultivariateNormal(self.mean(X), self.kernel(X))

    model = GaussianProcess().double()
    model.kernel.outputscale = settings.variance
    model.kernel.base_kernel.lengthscale = settings.length_scale
    for part in (model.mean, model.kernel):
        part.requires_grad_(settings.learn_kernel)
    return model


@contextmanager
def _threads_of_blas(torch):
    """torch with as many threads as NumPy's BLAS, which torch's own settings do not follow."""
    before = torch.get_num_threads()
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    torch.set_num_threads(max(pools, default=before))
    try:
        yield
    finally:
        torch.set_num_threads(before)
