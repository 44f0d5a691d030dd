"""An exported model predicts the same in onnxruntime."""

import sys
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from scipy.special import log_ndtr
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC, to_onnx
from bayesvm.core.heads import Regression
from bayesvm.core.links import Normalised, TwoProbits
from bayesvm.export import links, scalers
from bayesvm.export.graph import UFUNCS, Graph, concatenated
from bayesvm.kernels import RBF, Constant, Kernel, Laplacian, Linear, Matern, RationalQuadratic, Sum
from bayesvm.storage import kernels, states
from tests.own_kernels import Bessel, Branching, Cauchy, PowerExponential, kernel_classes

rng = np.random.default_rng(0)
X = rng.standard_normal((240, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 500.0, 0.0, -1.0]
X[:, 3] = np.round(X[:, 3])  # ties, of which a quantile scaler makes few knots
slope = (X - X.mean(axis=0)) / X.std(axis=0) @ [1.0, -1.0, 0.5, 0.3] + rng.standard_normal(240) * 0.5
# How exact uncertainty is: of two classes predict_uncertainty reads it off a table; of more, it is divided in the ratio
# of two entropies, which may both be tiny.
SPLIT = {2: 2e-6, 3: 1e-7}
LABELS = {2: (slope > 0).astype(int), 3: np.digitize(slope, [-0.7, 0.7])}
# Rows it learned from, rows beyond all quantiles, and rows beyond all rows.
ROWS = np.vstack([X, X[:20] * 3, X[:5] * 1e6])


def said(graph, rows=ROWS):
    onnx.checker.check_model(graph)
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    kind = {"tensor(double)": np.float64, "tensor(float)": np.float32}[session.get_inputs()[0].type]
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": rows.astype(kind)}), strict=True))


def require_the_same(model, rows=ROWS, atol=1e-9):
    found, stated = said(to_onnx(model), rows), model.predict_proba(rows)
    np.testing.assert_allclose(found["probabilities"], stated, atol=atol)
    sure = np.sort(stated, axis=1)[:, -1] - np.sort(stated, axis=1)[:, -2] > 1e-6
    assert sure.sum() > len(rows) // 2
    np.testing.assert_array_equal(found["label"][sure], model.predict(rows)[sure])


KERNELS = [
    RBF(2.0, 3.0),
    RBF([1.0, 2.0, 3.0, 4.0]),
    Matern(2.0, 3.0, nu=0.5),
    RationalQuadratic([1.0, 2.0, 3.0, 4.0], 2.0, 0.4),
    RationalQuadratic(2.0, alpha=1e6),
    Cauchy(2.0, 3.0),
    PowerExponential(2.0, 3.0, 1.3),
    RBF(200.0, 50.0),  # so flat that single precision would treat it apart
    Matern(2.0, 3.0, nu=1.5),
    Matern([1.0, 2.0, 3.0, 4.0], nu=2.5),
    Laplacian(4.0, 3.0),
    Laplacian([1.0, 2.0, 3.0, 4.0]) + 0.5 * RBF(9.0),
    Linear(0.5),
    2.5 * Matern(1.5),
    1.5 * RBF(2.0) + 0.5 * Linear(0.3) + Constant(0.7) + Matern(1.0, nu=2.5),
]


@pytest.mark.parametrize("n_classes", LABELS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels(kernel, n_classes):
    model = BayesianSVC(kernel, n_inducing=15, tune=None, random_state=0, precision="double")
    require_the_same(model.fit(X, LABELS[n_classes]))


@pytest.mark.parametrize("n_classes", LABELS)
@pytest.mark.parametrize("scale", ["standard", "common", "quantile", None])
@pytest.mark.parametrize("link", ["calibrated", "probit", "hinge", "paper"])
def test_links_and_scalings(link, scale, n_classes):
    kernel = RBF([2.0, 20.0, 0.2, 2.0] if scale is None else 2.0, 4.0)
    model = BayesianSVC(kernel, n_inducing=15, tune=None, random_state=0, scale=scale, link=link)
    require_the_same(model.fit(X, LABELS[n_classes]))


@pytest.mark.parametrize("n_classes", LABELS)
@pytest.mark.parametrize("scale", ["standard", None])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("prior", "covariance"), [(1.0, "full"), (np.diag([1.0, 2.0, 3.0, 4.0]), "full"), (1.0, "diagonal")]
)
def test_linear_models(prior, covariance, intercept, scale, n_classes):
    model = BayesianLinearSVC(prior, intercept, covariance, tune=None, scale=scale, max_iter=1000)
    require_the_same(model.fit(X, LABELS[n_classes]))


def test_two_probits_that_differ():
    model = BayesianSVC(n_inducing=15, tune=None, random_state=0).fit(X, LABELS[2])
    model.fitted_ = replace(model.fitted_, link=TwoProbits((2.0, 0.3), (0.5, -0.4), 0.3))
    require_the_same(model, atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        BayesianSVC(7.3 * Matern(1.1, 3.3), n_inducing=15, tune=None, random_state=0),
        BayesianSVC(Linear(0.37), n_inducing=1, tune=None, random_state=0),
        BayesianLinearSVC(0.37, fit_intercept=False, tune=None),
        BayesianLinearSVC(0.37, covariance="diagonal", fit_intercept=False, tune=None),
    ],
    ids=repr,
)
def test_no_number_is_rounded_to_single_precision_on_the_way(model):
    # onnxruntime's MatMulScaleFusion does that to a factor before a MatMul.
    require_the_same(model.fit(X[:, :1], LABELS[2]), ROWS[:, :1], atol=1e-13)


@pytest.mark.parametrize("n_classes", LABELS)
@pytest.mark.parametrize("link", ["calibrated", "probit", "hinge", "paper"])
def test_uncertainty(link, n_classes):
    model = BayesianSVC(n_inducing=15, tune=None, random_state=0, link=link).fit(X, LABELS[n_classes])
    found = said(to_onnx(model, uncertainty=True))
    expected = model.predict_uncertainty(ROWS)
    expected["latent_mean"], expected["latent_variance"] = model.latent_mean_and_variance(ROWS)
    assert set(found) == {"label", "probabilities", *expected}
    for name, values in expected.items():
        assert found[name].shape == values.shape
        np.testing.assert_allclose(
            found[name], values, atol=1e-9 if "latent" in name else SPLIT[n_classes], err_msg=name
        )


@pytest.mark.slow
@pytest.mark.parametrize("link", ["calibrated", "probit", "hinge", "paper"])
@pytest.mark.parametrize("n_classes", LABELS)
@pytest.mark.parametrize("make", [BayesianLinearSVC, BayesianSVC], ids=["linear", "kernel"])
def test_uncertainty_of_rows_far_outside(make, n_classes, link):
    given = {"kernel": "linear", "n_inducing": 15} if make is BayesianSVC else {}
    model = make(tune=None, random_state=0, link=link, **given).fit(X, LABELS[n_classes])
    rows = np.vstack([X[:30] * 10.0**power for power in (0, 1, 2, 3, 9, 30, 90)])
    found, expected = said(to_onnx(model, uncertainty=True), rows), model.predict_uncertainty(rows)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=SPLIT[n_classes], err_msg=name)


@pytest.mark.parametrize("kernel", [RBF(1.7, 4.0), Matern(1.7, 4.0), Matern(1.7, 4.0, nu=2.5)], ids=repr)
def test_columns_of_large_numbers_without_scaling(kernel):
    spread = np.random.default_rng(0)
    centres = spread.uniform(0, 1e6, (120, 3))
    rows = np.vstack([centres, centres + spread.standard_normal((120, 3))])
    model = BayesianSVC(kernel, n_inducing=None, scale=None, tune=None, random_state=0)
    require_the_same(model.fit(rows, (rows[:, 0] % 7 > 3).astype(int)), rows, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "shift", "named"),
    [
        (BayesianSVC(RBF(1.0, 4.0), n_inducing=50, scale=None, tune=None, random_state=0), 1e8, 1),
        (BayesianSVC(n_inducing=50, tune=None, random_state=0), 1e8, 1),
        (BayesianLinearSVC(tune=None), 1e8, 1),
        (BayesianLinearSVC(tune=None), 1e60, 1),
    ],
    ids=repr,
)
def test_what_single_precision_would_round_away_is_refused(model, shift, named):
    rows = np.random.default_rng(0).standard_normal((200, 3))
    labels = rows[:, 1] > 0
    rows *= [1, shift / 1e8, 1]
    rows[:, 1] += shift
    with pytest.raises(ValueError, match=f"dtype='single' rounds the values of column {named} so coarsely"):
        to_onnx(model.fit(rows, labels), dtype="single")
    require_the_same(model, rows, atol=1e-9)


def test_a_model_that_needs_more_digits_than_single_precision_has_is_refused():
    """Far more inducing points than columns: products with the linear kernel cancel."""
    rows = np.random.default_rng(0).standard_normal((300, 3))
    model = BayesianSVC("linear", tune=None, random_state=0).fit(rows, rows[:, 0] > 0)
    with pytest.raises(ValueError, match="loses so many digits in the matrix products"):
        to_onnx(model, dtype="single")
    require_the_same(model, rows, atol=1e-9)


@pytest.mark.parametrize("scale", ["standard", "quantile"])
def test_rows_beyond_all_reach(scale):
    model = BayesianSVC("linear", n_inducing=10, scale=scale, tune=None, random_state=0).fit(X * 1e-80, LABELS[2])
    rows = np.vstack([X * 1e-80, np.diag(np.full(4, 1e100))])
    require_the_same(model, rows)


def test_small_probabilities_keep_their_digits():
    z = np.concatenate([np.linspace(-37, 37, 20_001), [0.0, -1e-9, 1e-9, -1e8]])
    graph = Graph()
    graph.output("both", concatenated(links.log_probits(graph.input("X", np.float64, 1))), 2)
    found = said(graph.model({}), z[:, None])["both"]
    np.testing.assert_allclose(found, np.column_stack([log_ndtr(-z), log_ndtr(z)]), rtol=1e-13, atol=2e-13)


REAL = {
    "breast cancer": (load_breast_cancer, BayesianSVC(n_inducing=100)),
    "iris": (load_iris, BayesianSVC(n_inducing=40, tune=None)),
    "wine, linear": (load_wine, BayesianLinearSVC()),
    "digits": (load_digits, BayesianSVC(n_inducing=100, tune=None)),
    "digits, linear": (load_digits, BayesianLinearSVC(covariance="diagonal", tune=None, max_iter=500)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_rows_and_a_fit_in_single_precision(name):
    load, model = REAL[name]
    rows, y = load(return_X_y=True)
    model.set_params(precision="single", random_state=0).fit(rows[::2], y[::2])
    found = said(to_onnx(model, uncertainty=True), rows)
    assert found["probabilities"].dtype == np.float64
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), rtol=0, atol=1e-10)
    for kind, values in model.predict_uncertainty(rows).items():
        np.testing.assert_allclose(found[kind], values, rtol=0, atol=SPLIT[min(len(model.classes_), 3)], err_msg=kind)
    single = said(to_onnx(model, dtype="single"), rows)["probabilities"]
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, model.predict_proba(rows), rtol=0, atol=1e-4)


def test_a_flat_kernel_in_single_precision():
    model = BayesianSVC(RBF(30.0, 50.0), n_inducing=15, tune=None, precision="single", random_state=0)
    model.fit(X, LABELS[2])
    assert model.fitted_.member.features.offset
    for dtype, atol in (("single", 2e-5), ("double", 1e-9)):
        found = said(to_onnx(model, dtype=dtype), X)["probabilities"]
        np.testing.assert_allclose(found, model.predict_proba(X), rtol=0, atol=atol)


@pytest.mark.parametrize(
    "names",
    [np.array(["yes", "no"]), np.array(["ä", ""], object), np.array([True, False]), np.array([-1.0, 2.0]),
     np.array([-1, 1], np.int8)],
    ids=lambda names: str(names.dtype),
)  # fmt: skip
def test_labels_are_those_of_the_model(names):
    model = BayesianLinearSVC(tune=None).fit(X, names[LABELS[2]])
    found = said(to_onnx(model), X)["label"]
    assert found.dtype.kind == {"U": "O"}.get(names.dtype.kind, names.dtype.kind)
    assert found.tolist() == model.predict(X).tolist()


def test_metadata_tell_the_classes():
    graph = to_onnx(BayesianLinearSVC(tune=None).fit(X, np.array(["a", "b"])[LABELS[2]]))
    meta = onnxruntime.InferenceSession(graph.SerializeToString()).get_modelmeta()
    assert meta.producer_name == "bayesvm"
    assert meta.custom_metadata_map == {"classes": '["a", "b"]', "bayesvm": bayesvm.__version__}


def test_one_row():
    model = BayesianSVC(n_inducing=15, tune=None, scale="quantile", random_state=0).fit(X, LABELS[3])
    graph = to_onnx(model, uncertainty=True)
    np.testing.assert_allclose(said(graph, X[:1])["probabilities"], model.predict_proba(X[:1]), atol=1e-12)


@pytest.mark.parametrize("n_classes", LABELS)
@pytest.mark.parametrize("link", ["calibrated", "probit", "hinge", "paper"])
def test_no_rows(link, n_classes):
    model = BayesianSVC(n_inducing=15, tune=None, link=link, random_state=0).fit(X, LABELS[n_classes])
    found = said(to_onnx(model, uncertainty=True), X[:0])
    assert {len(values) for values in found.values()} == {0}
    assert found["probabilities"].shape == (0, n_classes)


def test_no_kernel_link_or_scaler_is_missing():
    assert kernel_classes() == {*kernels.KERNELS.values(), Sum}
    assert kernel_classes() - {type(kernel) for kernel in KERNELS} == {Constant}  # which is there in a sum
    assert {*links.BINARY, *links.MANY_CLASSES, *Regression.links} == {*states.LINKS.values(), Normalised}
    assert set(scalers.SCALERS) == set(states.SCALERS.values())


class Polynomial(Kernel):
    """A kernel that is no function of distances: ``(1 + xᵀz)²``."""

    def against(self, Z, dtype=np.float64):
        def cross(X, workspace):
            matrix = workspace.empty((len(X), len(Z)), dtype)
            matrix[:] = (1 + X @ Z.T) ** 2
            return matrix

        return cross

    def diagonal(self, X):
        return (1 + np.einsum("ij,ij->i", X, X)) ** 2

    def recorded(self, X, Z):
        raise NotImplementedError

    pull_diagonal = recorded


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Polynomial() + Constant(), "kernel of type Polynomial has no ONNX form; derive it from"),
        (Bessel(2.0), "Bessel.profile uses kve, which has no ONNX form; write it with .*: absolute, add"),
        (Branching(2.0), "Branching.profile uses a branch or a function that is not a ufunc, which has no ONNX form"),
    ],
    ids=["no distances", "an unknown ufunc", "no ufunc"],
)
def test_a_kernel_without_an_onnx_form_is_refused_by_name(kernel, message):
    model = BayesianSVC(kernel, n_inducing=15, tune=None, random_state=0, precision="double").fit(X, LABELS[2])
    with pytest.raises(TypeError, match=message):
        to_onnx(model)


def test_ufuncs_make_nodes():
    graph, rows = Graph(), np.linspace(0.1, 2.0, 20)[:, None]
    x = graph.input("X", np.float64, 1)
    expected = {}
    for ufunc in UFUNCS:
        numbers = (np.float64(1.5),) * (ufunc.nin - 1)
        for given, order in ((x, "xc"), *(((x, "cx"),) if numbers else ())):
            name = f"{ufunc.__name__} {order}"
            graph.output(name, ufunc(given, *numbers) if order == "xc" else ufunc(*numbers, given), 1)
            expected[name] = ufunc(rows, *numbers) if order == "xc" else ufunc(*numbers, rows)
    found = said(graph.model({}), rows)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, atol=1e-15, err_msg=name)
    for senseless in (np.arctan, np.add.reduce):
        with pytest.raises(TypeError, match="has no ONNX form; use add"):
            senseless(x)


def test_what_cannot_be_exported(monkeypatch):
    linear = BayesianLinearSVC(tune=None)
    with pytest.raises(ValueError, match="BayesianLinearSVC is not fitted; call fit before to_onnx"):
        to_onnx(linear)
    linear.fit(X, LABELS[2])
    with pytest.raises(ValueError, match="dtype must be 'double' or 'single'; got 'half'"):
        to_onnx(linear, dtype="half")
    with pytest.raises(TypeError, match="not a Pipeline; for a pipeline, pass the last step"):
        to_onnx(make_pipeline(StandardScaler(), linear))
    monkeypatch.setattr("bayesvm.export.graph.LARGEST", 100)
    with pytest.raises(ValueError, match="larger than 2 GB, the limit of ONNX files"):
        to_onnx(linear)
    linear.classes_ = np.array([1j, 2j])
    with pytest.raises(TypeError, match="labels of the type complex128"):
        to_onnx(linear)
    monkeypatch.setitem(sys.modules, "onnx", None)
    linear.classes_ = np.array([0, 1])
    with pytest.raises(ImportError, match=r'pip install "bayesvm\[onnx\]"'):
        to_onnx(linear)
