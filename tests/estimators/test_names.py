"""Parameter names that cannot be set: the error says what to set instead."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.kernels import RBF, Matern

DATA = waveform(120, random_state=0)
X, Y = DATA.X[:, 4:9], DATA.y


@pytest.mark.parametrize(
    ("kernel", "instead"),
    [("auto", r"RBF\(\)"), ("matern32", r"Matern\(nu=1.5\)"), ("laplacian", r"Laplacian\(\)"), (None, r"RBF\(\)")],
)
def test_a_parameter_of_a_kernel_by_name(kernel, instead):
    message = (
        rf"kernel__length_scale cannot be set, because kernel is {kernel!r}, .* "
        rf"Set kernel={instead} of bayesvm.kernels, then kernel__length_scale"
    )
    with pytest.raises(ValueError, match=message):
        BayesianSVC(kernel=kernel).set_params(kernel__length_scale=2.0)


def test_what_the_message_says_works():
    model = BayesianSVC(kernel="matern32").set_params(kernel=Matern(nu=1.5), kernel__length_scale=2.0)
    assert model.kernel == Matern(2.0, nu=1.5)
    assert BayesianSVC(kernel=RBF()).set_params(kernel__length_scale=3.0).kernel.length_scale == 3.0


def test_in_a_grid_search():
    search = GridSearchCV(BayesianSVC(tune=None), {"kernel__length_scale": [1.0, 2.0]}, cv=2)
    with pytest.raises(ValueError, match="kernel='auto' or another name and tune='auto'"):
        search.fit(X, Y)


@pytest.mark.parametrize(
    ("estimator", "name", "hint"),
    [
        (BayesianSVC(), "n_inducng", "did you mean 'n_inducing'"),
        (BayesianSVC(), "Kernel", "did you mean 'kernel'"),
        (BayesianSVC(), "gamma", r"length_scale of the kernel instead, 1 / sqrt\(2 \* gamma\)"),
        (BayesianSVC(), "length_scale", "kernel__length_scale"),
        (BayesianLinearSVC(), "prior_varience", "did you mean 'prior_variance'"),
        (BayesianSVC(), "zzz", "there are 'batch_size', 'bound'"),
    ],
)
def test_an_unknown_name(estimator, name, hint):
    with pytest.raises(ValueError, match=f"{type(estimator).__name__} has no parameter {name!r}; .*{hint}"):
        estimator.set_params(**{name: 1.0})


def test_an_unknown_name_of_a_kernel():
    with pytest.raises(ValueError, match="RBF has no parameter 'lenght_scale'; did you mean 'length_scale'"):
        BayesianSVC(kernel=RBF()).set_params(kernel__lenght_scale=1.0)
    with pytest.raises(ValueError, match="has no parameter 'k2__length_scale'; did you mean 'k[01]__length_scale'"):
        BayesianSVC(kernel=RBF() + RBF()).set_params(kernel__k2__length_scale=1.0)


def test_other_parameters_have_none_of_their_own():
    with pytest.raises(ValueError, match="noise__x cannot be set, because noise is 'auto', .* Set noise itself"):
        BayesianSVC().set_params(noise__x=1.0)


def test_nothing_is_set_when_one_name_is_wrong():
    model = BayesianSVC()
    with pytest.raises(ValueError, match="nois"):
        model.set_params(tol=1.0, nois=1.0)
    assert model.tol == BayesianSVC().tol


def test_many_whole_numbers_may_be_a_quantity():
    y = np.repeat(np.arange(88), 6)
    rows = np.random.default_rng(0).normal(size=(len(y), 2))
    model = BayesianLinearSVC(tune=None, max_iter=1, tol=0)
    with pytest.warns(UserWarning, match="88 classes: .* If y is a regression target, use BayesianSVR"):
        model.fit(rows, y)
    with pytest.warns(UserWarning, match="88 classes") as given:
        model.fit(rows, y.astype(str))
    assert not any("quantity" in str(each.message) for each in given)
