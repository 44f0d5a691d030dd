"""Competitors: a grid search on a sample of the rows, for methods that have no way of their own to tune."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split


class SampleSearch(ClassifierMixin, BaseEstimator):
    """Chooses parameters by the cross-validated log loss on at most ``max_rows`` rows, then fits all of them.

    Within a sample so small that Nystroem's number of components exceeds a fold's rows, scikit-learn takes fewer.
    """

    def __init__(self, classifier, grid, max_rows=500, n_folds=5, random_state=None):
        self.classifier = classifier
        self.grid = grid
        self.max_rows = max_rows
        self.n_folds = n_folds
        self.random_state = random_state

    def fit(self, X, y):
        sample = np.arange(len(y))
        if len(y) > self.max_rows:
            sample, _ = train_test_split(sample, train_size=self.max_rows, random_state=self.random_state, stratify=y)
        folds = StratifiedKFold(self.n_folds, shuffle=True, random_state=self.random_state)
        search = GridSearchCV(self.classifier, self.grid, scoring="neg_log_loss", cv=folds, refit=False)
        self.best_params_ = search.fit(X[sample], y[sample]).best_params_
        self.classifier_ = clone(self.classifier).set_params(**self.best_params_).fit(X, y)
        self.classes_ = self.classifier_.classes_
        return self

    def predict_proba(self, X):
        return self.classifier_.predict_proba(X)

    def predict(self, X):
        return self.classifier_.predict(X)
