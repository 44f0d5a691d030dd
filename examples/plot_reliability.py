"""Reliability compared with an SVM and a sigmoid
==============================================

Of the rows with a predicted probability of 70%, do 70% belong to the class? ``BayesianSVC`` needs one fit. ``SVC``
needs a sigmoid, fitted by cross-validation, as ``SVC(probability=True)`` did.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bayesvm import BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.evaluation import Predictions, metrics
from bayesvm.inspection import ReliabilityDisplay

train, test = waveform(3_000, random_state=0), waveform(10_000, random_state=1)
models = {
    "BayesianSVC": BayesianSVC(n_inducing=80, random_state=0),
    "SVC, sigmoid": make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), ensemble=False)),
}
figure, ax = plt.subplots(layout="constrained")
for name, model in models.items():
    model.fit(train.X, train.y)
    ReliabilityDisplay.from_estimator(model, test.X, test.y, ax=ax, name=name, strip=name == "BayesianSVC")

# %%
# The same as metrics with 95% intervals. The last line has the true probabilities of the synthetic data; in
# expectation, no model is better.
predicted = {name: model.predict_proba(test.X)[:, 1] for name, model in models.items()} | {"true": test.probability}
for name, p in predicted.items():
    found = metrics(Predictions.of([-1, 1], test.y, [[1 - q, q] for q in p]), n_bootstrap=50)
    loss, error = found["log_loss"], found["calibration_error"]
    print(
        f"{name}: log loss {loss.value:.3f} ({loss.low:.3f} to {loss.high:.3f}), "
        f"calibration error {error.value:.3f} ({error.low:.3f} to {error.high:.3f})"
    )
