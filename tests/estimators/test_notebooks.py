"""The notebook representation of an estimator: a headline, then scikit-learn's tables."""

import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import config_context
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianOneClassSVM, BayesianSVC, BayesianSVR
from bayesvm.datasets import waveform
from bayesvm.kernels import RBF, Linear

DATA = waveform(300, random_state=0)
X, Y = DATA.X[:, 4:9], DATA.y


@pytest.fixture(scope="module")
def model():
    return BayesianSVC(n_inducing=12, random_state=0).fit(X, Y)


class Text(HTMLParser):
    """The text of the element of our headline, and a check that every element is closed."""

    def __init__(self):
        super().__init__()
        self.inside, self.text = False, ""

    def handle_starttag(self, tag, attrs):
        self.inside |= dict(attrs).get("class") == "bayesvm-headline"

    def handle_endtag(self, tag):
        self.inside &= tag != "p"

    def handle_data(self, data):
        self.text += data if self.inside else ""


def headline(html):
    parser = Text()
    parser.feed(html)
    return parser.text


def test_the_headline_has_the_numbers_of_the_fit(model):
    text = headline(model._repr_html_())
    assert "300 rows, 5 columns, 2 classes" in text
    loss = log_loss(Y[model.loo_indices_], model.loo_proba_)
    error = np.mean(model.classes_[model.loo_proba_.argmax(axis=1)] != Y[model.loo_indices_])
    assert f"log loss {loss:.4f}, error {error:.2%}" in text
    assert f"members {len(model.fitted_.members)}" in text
    assert "RBF" in text
    assert "converged" not in text


def test_scikit_learns_own_representation_follows(model):
    html = model._repr_html_()
    assert html.startswith('<p class="bayesvm-headline">')
    assert "sk-container" in html
    assert "max_inducing" in html
    assert model._repr_mimebundle_()["text/html"].startswith('<p class="bayesvm-headline">')


def test_before_a_fit_and_as_text_there_is_no_headline(model):
    assert "bayesvm-headline" not in BayesianSVC()._repr_html_()
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
    assert "bayesvm-headline" not in repr(model)


def test_linear_models_and_several_classes():
    three = np.where(DATA.X[:, 12] > 2.0, "<c>", np.where(Y > 0, "b", "a"))
    text = headline(BayesianLinearSVC().fit(X, three)._repr_html_())
    assert "3 classes" in text
    assert "kernel linear" in text


def test_a_sum_of_kernels_names_its_parts():
    model = BayesianSVC(kernel=RBF() + Linear(), n_inducing=12, tune=None, random_state=0).fit(X, Y)
    assert "kernel RBF, Linear" in headline(model._repr_html_())


def test_a_regressor_has_its_own_metrics():
    y = X[:, 0] + np.random.default_rng(0).normal(size=300)
    model = BayesianSVR(n_inducing=12, tune=None, random_state=0).fit(X, y)
    text = headline(model._repr_html_())
    assert "300 rows, 5 columns · " in text
    mean, std = model.loo_predictions_
    rmse = np.sqrt(np.mean((mean - y[model.loo_indices_]) ** 2))
    assert f"leave-one-out RMSE {rmse:.4g}, log density {model.loo_log_density_:.4f}" in text
    assert model.loo_log_density_ == pytest.approx(norm(mean, std).logpdf(y[model.loo_indices_]).mean(), abs=0.1)
    assert headline(model._repr_mimebundle_()["text/html"]) == text


def test_one_class_has_its_rate_and_its_threshold():
    model = BayesianOneClassSVM(contamination=0.1, n_inducing=12, random_state=0).fit(X)
    text = headline(model._repr_html_())
    assert "300 rows, 5 columns · " in text
    assert f"contamination 0.1 · threshold score {model.offset_:.4g}; " in text
    assert f"{(model.loo_scores_ < model.offset_).mean():.1%} of the training rows are below it" in text
    assert "log loss" not in text  # that of telling the rows from the background, of which users know nothing
    assert headline(model._repr_mimebundle_()["text/html"]) == text


def test_one_class_with_few_rows_has_no_threshold():
    with pytest.warns(UserWarning, match="predict will not flag any outliers"):
        model = BayesianOneClassSVM(random_state=0).fit(X[:12])
    assert "threshold none, because there are too few rows" in headline(model._repr_html_())


def test_a_fit_that_did_not_converge_says_so():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianSVC(n_inducing=12, tune=None, max_iter=1, random_state=0).fit(X, Y)
    assert "not converged stopped by the budget" in headline(model._repr_html_())


def test_local_models_are_counted():
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 4, (900, 2))
    fields = np.floor(rows).astype(int).sum(axis=1) % 2
    how = {"kernel": "rbf", "n_inducing": 10, "tune": "loo", "scale": "standard", "random_state": 0}
    model = BayesianSVC(local=True, **how).fit(rows, fields)
    n_leaves = sum(member.leaves.tree.n_leaves for member in model.fitted_.members)
    assert n_leaves > 1
    assert f"local models {n_leaves}" in headline(model._repr_html_())


def test_a_loaded_model_and_one_in_a_pipeline(model, tmp_path):
    model.save(tmp_path / "m.bayesvm")
    assert headline(bayesvm.load(tmp_path / "m.bayesvm")._repr_html_()) == headline(model._repr_html_())
    pipeline = make_pipeline(StandardScaler(), BayesianLinearSVC()).fit(X, Y)
    assert re.search(r"BayesianLinearSVC", pipeline._repr_html_())
