"""From SVC and a grid search to one fit
=====================================

An ``SVC`` needs a scaler, a grid of ``C`` and ``gamma``, cross-validation and a sigmoid. ``BayesianSVC`` needs one
call.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bayesvm import BayesianSVC
from bayesvm.evaluation import Predictions, metrics
from bayesvm.inspection import ProbabilityHistogramDisplay

SHOWN = ("error", "log_loss", "calibration_error")
data = load_breast_cancer()
X, y = data.data, data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

# %%
# Before:
grid = {"svc__C": np.logspace(-1, 2, 4), "svc__gamma": np.logspace(-3, -1, 3)}
search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid).fit(X_train, y_train)
before = CalibratedClassifierCV(search.best_estimator_, ensemble=False).fit(X_train, y_train)

# %%
# After:
after = BayesianSVC(random_state=0).fit(X_train, y_train)

# %%
# The intervals overlap: 285 rows do not show which model is better. BayesianSVC also reports its uncertainty.
for name, model in {"SVC": before, "BayesianSVC": after}.items():
    found = metrics(Predictions.of(model.classes_, y_test, model.predict_proba(X_test)))
    told = (f"{what} {found[what].value:.3f} ({found[what].low:.3f} to {found[what].high:.3f})" for what in SHOWN)
    print(f"{name}:", ", ".join(told))
parts = after.predict_uncertainty(X_test)
wrong = after.predict(X_test) != y_test
right, not_right = parts["total"][~wrong].mean(), parts["total"][wrong].mean()
print(f"mean uncertainty of correct predictions {right:.2f} nats, of wrong ones {not_right:.2f}")

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, {"SVC, sigmoid": before, "BayesianSVC": after}.items(), strict=True):
    ProbabilityHistogramDisplay.from_estimator(model, X_test, y_test, ax=ax)
    ax.set_title(name, loc="right", fontsize="medium")
