"""Competitors: what those share that work on the kernel matrix of all rows: ECM (D20) and the sampler (D21)."""

import numpy as np
from scipy import linalg
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesvm.core.links import PLAIN_LINKS
from bayesvm.kernels import RBF


class DenseClassifier(ClassifierMixin, BaseEstimator):
    """Two classes, the kernel matrix of all rows, and probabilities through one of the library's plain links."""

    def _begin(self, X, y):
        """The kernel matrix and the labels as signs, from whatever ``fit`` was given."""
        if self.link not in PLAIN_LINKS:
            raise ValueError(f"link must be one of {', '.join(map(repr, PLAIN_LINKS))}; got {self.link!r}")
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}; "
                f"y has {len(self.classes_)} class(es)"
            )
        self._X = X
        return self._kernel()(X, X), 2.0 * codes - 1

    def _kernel(self):
        return RBF(self.length_scale, self.variance)

    def _new(self, X):
        """``k(x, x)`` of new rows, and ``k(training rows, x)``."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._kernel().diagonal(X), self._kernel()(self._X, X)

    def _probability(self, mean, variance):
        return ndtr(PLAIN_LINKS[self.link].score(mean, variance))

    def predict(self, X):
        second = self.predict_proba(X)[:, 1] > 0.5
        return self.classes_[second.astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def factor(K, scales):
    """The lower Cholesky factor of ``K + Λ``."""
    A = K.copy()
    A.flat[:: len(A) + 1] += scales
    return linalg.cholesky(A.T, lower=True, overwrite_a=True, check_finite=False)  # A.T: LAPACK works in place


def solve(L, b):
    """``(L Lᵀ)⁻¹ b``."""
    return linalg.cho_solve((L, True), b, check_finite=False)


def conditional(L, beta, k_new, k_diagonal):
    """Mean and variance of f at new rows given λ, where ``beta = (K+Λ)⁻¹ y(1+λ)`` (D20)."""
    half = linalg.solve_triangular(L, k_new, lower=True, check_finite=False)
    return k_new.T @ beta, np.maximum(k_diagonal - np.einsum("ij,ij->j", half, half), 0.0)
