"""The slips of the paper, each shown against something independent, beside what the library computes.

The table at the end of docs/derivation.md lists them. Every test has two sides: the printed formula fails, ours holds.
"""

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import rbf_kernel

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.core.features import InducingFeatures
from bayesvm.core.likelihoods import AugmentedHinge
from bayesvm.core.links import Paper, Probit
from bayesvm.core.posterior import Gaussian, NaturalParameters
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.inference import stochastic
from bayesvm.inference.learning_rates import FixedRate
from bayesvm.inference.objective import Model, Task
from bayesvm.kernels import RBF

ROWS = [(0.3, 0.5, 1.0), (-1.2, 2.0, 1.0), (2.5, 0.1, -1.0)]  # m, v, y


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def toy(rng, n_rows):
    X = rng.normal(size=(n_rows, 2))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n_rows) > 0, 1.0, -1.0)


def gig_mean(function, alpha):
    """E of a function of λ ~ GIG(1/2, 1, α), whose density is ∝ λ^-½ exp(-(λ + α/λ)/2), by quadrature."""
    law = stats.geninvgauss(0.5, np.sqrt(alpha), scale=np.sqrt(alpha))
    return integrate.quad(lambda x: function(x) * law.pdf(x), 0, np.inf)[0]


def normal_mean(function, m, v):
    """E of a function of f ~ N(m, v), by quadrature."""
    law = stats.norm(m, np.sqrt(v))
    return integrate.quad(lambda f: function(f) * law.pdf(f), -np.inf, np.inf)[0]


def augmented(m, v, y):
    """The library's bound and site of one row, as numbers."""
    update = AugmentedHinge().update(np.array([m]), np.array([v]), np.array([y]))
    return update.bound.item(), update.precision.item(), update.linear.item()


def test_printed_predictive_variance_is_negative_ours_is_not(rng):
    X, y = toy(rng, 80)
    Z, new, kernel = X[:12], X[40:60], RBF(2.0, 2.0)
    model = BayesianSVC(kernel, inducing=Z, bound="augmented", tune=None, scale=None, tol=1e-6, max_iter=1000, n_jobs=1)
    _, ours = model.fit(X, y).latent_mean_and_variance(new)

    Kmm_inverse = np.linalg.inv(kernel(Z))
    kappa = kernel(X, Z) @ Kmm_inverse
    residual = 2.0 - np.sum(kappa * kernel(X, Z), axis=1)
    mean, zeta = np.zeros(12), kernel(Z)
    for _ in range(200):  # the paper's updates, dense and with u not whitened
        alpha = (1 - y * (kappa @ mean)) ** 2 + np.sum(kappa @ zeta * kappa, axis=1) + residual
        zeta = np.linalg.inv(Kmm_inverse + (kappa.T / np.sqrt(alpha)) @ kappa)
        mean = zeta @ kappa.T @ (y * (1 + 1 / np.sqrt(alpha)))

    kappa = kernel(new, Z) @ Kmm_inverse
    given_u = 2.0 - np.sum(kappa * kernel(new, Z), axis=1)
    u = rng.multivariate_normal(mean, zeta, size=40_000)
    f = u @ kappa.T + np.sqrt(given_u) * rng.normal(size=(len(u), len(new)))
    printed = given_u - np.sum(kappa @ zeta * kappa, axis=1)
    np.testing.assert_allclose(ours, f.var(axis=0), rtol=0.03)
    assert np.mean(printed < 0) > 0.5
    assert np.all(ours > 0)


@pytest.mark.parametrize(("m", "v"), [(0.5, 0.3), (-2.0, 3.0), (1.0, 8.0)])
def test_probit_integral_needs_the_root(m, v):
    probability = normal_mean(stats.norm.cdf, m, v)
    assert special.ndtr(Probit().score(m, v)) == pytest.approx(probability, abs=1e-8)
    assert abs(special.ndtr(Paper().score(m, v)) - probability) > 0.01


def test_rbf_footnote_without_the_square_has_no_length_scale_and_no_smooth_functions(rng):
    X, theta = rng.normal(size=(6, 3)), 1.7
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    footnote = lambda d, scale: np.exp(-d / scale**2)
    ours = lambda d, scale: RBF(length_scale=scale / np.sqrt(2))(np.atleast_2d(d).T, [[0.0]]).ravel()
    np.testing.assert_allclose(RBF(theta / np.sqrt(2))(X), rbf_kernel(X, gamma=1 / theta**2), atol=1e-12)
    np.testing.assert_allclose(footnote(distance, theta), Matern(theta**2, nu=0.5)(X), atol=1e-12)  # not an RBF at all
    # A length-scale doubles when the inputs are measured in half the unit.
    d = np.array([0.5, 1.0, 2.0])
    np.testing.assert_allclose(ours(2 * d, 2 * theta), ours(d, theta))
    assert not np.allclose(footnote(2 * d, 2 * theta), footnote(d, theta), rtol=0.05)
    # The variance of (f(h) - f(0))/h tends to that of f'(0), 2/θ²; the footnote's functions have no derivative.
    h = np.array([1e-2, 1e-3])
    np.testing.assert_allclose(2 * (1 - ours(h, theta)) / h**2, 2 / theta**2, rtol=1e-4)
    assert np.all(2 * (1 - footnote(h, theta)) / h**2 > 50)


@pytest.mark.parametrize(("m", "v", "y"), ROWS)
def test_elbo_with_bessel_order_one_half_matches_the_numerical_bound(m, v, y):
    square = normal_mean(lambda f: (1 - y * f) ** 2, m, v)
    alphas = square * np.array([0.2, 0.5, 1.0, 2.0, 5.0])

    def numerical(alpha):
        log_q = stats.geninvgauss(0.5, np.sqrt(alpha), scale=np.sqrt(alpha)).logpdf
        log_p = lambda x: -0.5 * (np.log(2 * np.pi * x) + square / x + 2 * (1 - y * m) + x)
        return gig_mean(lambda x: log_p(x) - log_q(x), alpha)

    def closed_form(alpha, order, share):
        bracket = 1 - alpha - 2 * y * m + m**2 + v
        bessel = np.log(special.kv(order, np.sqrt(alpha))) + share * np.log(alpha)
        return bessel + y * m - 0.5 * bracket / np.sqrt(alpha)

    def best_alpha(*parameters):
        return np.exp(optimize.minimize_scalar(lambda log_alpha: -closed_form(np.exp(log_alpha), *parameters)).x)

    truth = np.array([numerical(alpha) for alpha in alphas])
    assert np.ptp(closed_form(alphas, 0.5, 0.25) - truth) < 1e-6  # equal up to a constant, as the paper says
    assert np.ptp(closed_form(alphas, 0.25, 0.5) - truth) > 0.3
    assert best_alpha(0.5, 0.25) == pytest.approx(square, rel=1e-4)  # the paper's own update
    assert best_alpha(0.25, 0.5) > 1.1 * square
    assert augmented(m, v, y)[0] == pytest.approx(truth.max(), abs=1e-6)


def test_log_determinant_of_kmm_is_part_of_the_elbo(rng):
    Z, root = np.array([[0.0], [0.7], [1.1]]), np.linalg.cholesky(np.cov(rng.normal(size=(3, 9))))
    mu = rng.normal(size=3)
    precision = np.linalg.inv(root @ root.T)
    ours = Gaussian.from_natural(NaturalParameters(precision, precision @ mu)).divergence_from(Gaussian.prior(len(mu)))
    without_determinant = []
    for length_scale in (0.3, 1.0):
        K = RBF(length_scale)(Z)
        L = np.linalg.cholesky(K)
        mean, spread = L @ mu, L @ root
        zeta, origin = spread @ spread.T, np.zeros(3)
        # 2M points around the mean integrate a quadratic, such as log q - log p, exactly.
        points = mean + np.sqrt(3) * np.vstack([spread.T, -spread.T])
        log_ratio = stats.multivariate_normal(mean, zeta).logpdf(points) - stats.multivariate_normal(origin, K).logpdf(
            points
        )
        assert ours == pytest.approx(log_ratio.mean(), rel=1e-8)
        quadratic = np.trace(np.linalg.solve(K, zeta)) + mean @ np.linalg.solve(K, mean)
        without_determinant.append(0.5 * (quadratic - 3 - np.linalg.slogdet(zeta)[1]))
    assert abs(without_determinant[1] - without_determinant[0]) > 1  # it would push the length-scale


@pytest.mark.parametrize(("m", "v", "y"), ROWS)
def test_lambda_squared_is_counted_twice_in_the_appendix(m, v, y):
    square = normal_mean(lambda f: (1 - y * f) ** 2, m, v)
    alpha = 1.3 * square
    nodes, weights = np.polynomial.hermite_e.hermegauss(4)  # exact for the quadratic in f
    at_nodes = [gig_mean(lambda x, f=f: (1 + x - y * f) ** 2 / x, alpha) for f in m + np.sqrt(v) * nodes]
    truth = weights @ at_nodes / weights.sum() - 2  # the paper drops the constant 2
    mean = gig_mean(lambda x: x, alpha)
    right = square / np.sqrt(alpha) + mean - 2 * y * m
    assert right == pytest.approx(truth, abs=1e-6)
    for lambda_squared in (mean**2, gig_mean(lambda x: x**2, alpha)):  # however the bare λ_i² is read
        assert right + lambda_squared / np.sqrt(alpha) > truth + 1


@pytest.mark.parametrize(("m", "v", "y"), ROWS)
def test_quadratic_term_is_minus_one_half_for_mean_and_variance(m, v, y):
    c = (1 - y * m) ** 2 + v
    weight = gig_mean(lambda x: 1 / x, c)
    truth = normal_mean(lambda f: -0.5 * weight * (1 - y * f) ** 2, m, v)
    bound, w, _ = augmented(m, v, y)
    assert w == pytest.approx(weight, rel=1e-7)
    assert bound + (1 - y * m) + 0.5 * np.sqrt(c) == pytest.approx(truth, abs=1e-6)
    assert -0.5 * weight * v + weight * (1 - y * m) ** 2 > truth + 0.5  # AugmentedGaussianProcesses.jl


def test_quadratic_term_of_the_mean_gradient_has_a_minus(rng):
    X, y = toy(rng, 30)
    K = RBF(1.5)(X[:4])
    kappa = np.linalg.solve(K, RBF(1.5)(X[:4], X)).T
    v, mu = rng.uniform(0.1, 1, size=30), rng.normal(size=4)
    elbo = lambda mean: AugmentedHinge().update(kappa @ mean, v, y).bound.sum() - 0.5 * mean @ np.linalg.solve(K, mean)
    steps = 1e-5 * np.eye(4)
    truth = np.array([elbo(mu + step) - elbo(mu - step) for step in steps]) / 2e-5
    w = AugmentedHinge().update(kappa @ mu, v, y).precision
    rest = -np.linalg.solve(K, mu) + kappa.T @ (y * (1 + w))
    quadratic = (kappa.T * w) @ kappa @ mu
    np.testing.assert_allclose(rest - quadratic, truth, rtol=1e-5, atol=1e-5)
    assert not np.allclose(rest + quadratic, truth, rtol=0.1)


def test_batch_update_of_zeta_uses_the_expected_inverse(rng):
    X, y = toy(rng, 5)
    kernel = RBF(1.0, 2.0)
    model = BayesianSVC(
        kernel, n_inducing=None, bound="augmented", tune=None, scale=None, tol=1e-9, max_iter=2000, n_jobs=1
    )
    m, v = model.fit(X, y).latent_mean_and_variance(X)
    K_inverse, alpha = np.linalg.inv(kernel(X)), (1 - y * m) ** 2 + v
    right = np.linalg.inv(np.diag(alpha**-0.5) + K_inverse)
    draws = np.column_stack([stats.geninvgauss.rvs(0.5, a, scale=a, size=4000, random_state=rng) for a in alpha**0.5])
    printed = np.linalg.inv(draws[:, :, None] ** -1 * np.eye(5) + K_inverse).mean(axis=0)
    elbo = lambda zeta: 0.5 * (np.linalg.slogdet(zeta)[1] - np.sum((np.diag(alpha**-0.5) + K_inverse) * zeta))
    np.testing.assert_allclose(v, np.diag(right), rtol=1e-4)
    assert np.all(np.diag(printed) > 1.02 * v)
    assert elbo(right) > elbo(printed) + 0.01


def test_linear_conditional_mean_needs_the_signed_data_matrix(rng):
    X, y = rng.normal(size=(4, 4)), np.array([1.0, -1.0, 1.0, -1.0])  # N = D: else the printed product has no meaning
    Z, latent, prior_variance = (y[:, None] * X).T, rng.uniform(0.5, 2, size=4), 2.0
    joint = lambda beta: np.sum((1 + latent - Z.T @ beta) ** 2 / latent) / 2 + beta @ beta / (2 * prior_variance)
    mode = optimize.minimize(joint, np.zeros(4)).x
    B = np.linalg.inv((Z / latent) @ Z.T + np.eye(4) / prior_variance)
    np.testing.assert_allclose(B @ Z @ (1 / latent + 1), mode, atol=1e-4)
    assert not np.allclose(B @ (1 / latent + 1), mode, atol=0.1)

    model = BayesianLinearSVC(
        prior_variance, fit_intercept=False, bound="augmented", tune=None, scale=None, tol=1e-9, max_iter=2000, n_jobs=1
    ).fit(X, y)
    m, v = model.latent_mean_and_variance(X)
    latent = np.sqrt((1 - y * m) ** 2 + v)  # 1/E[1/λ] in the place of λ
    np.testing.assert_allclose(model.coef_[0], optimize.minimize(joint, np.zeros(4)).x, atol=1e-3)


def test_minibatch_sums_need_scaling(rng):
    X, y = toy(rng, 60)
    Z, kernel = X[:5], RBF(1.0, 3.0)
    phi = np.linalg.solve(np.linalg.cholesky(kernel(Z)), kernel(Z, X)).T
    w = 1 / np.sqrt(1 + 3.0)  # at the prior m = 0 and v = k(x,x) in every row
    source = MemorySource(X, (y > 0).astype(np.int32), None, ColumnScaler(), Workers(1), 16)
    model = Model(InducingFeatures.build(kernel, Z), AugmentedHinge(), np.float64, 60.0)
    prior, full_step = Gaussian.prior(5), FixedRate(1.0)
    start = stochastic.init([Task(1, 0.0, prior, prior)], full_step)
    reached = [stochastic.step(model, batch, start, full_step)[0] for batch in source.minibatches(10, rng)]
    ours = np.mean([state.task.posterior.natural.precision for state in reached], axis=0)
    linear = np.mean([state.task.posterior.natural.linear for state in reached], axis=0)
    printed = np.mean([np.eye(5) + w * part.T @ part for part in np.split(phi, 6)], axis=0)
    np.testing.assert_allclose(ours, np.eye(5) + w * phi.T @ phi, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(linear, phi.T @ (y * (1 + w)), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(printed - np.eye(5), (ours - np.eye(5)) / 6, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("a", [-1.5, 0.4, 2.0])  # 1 - y f
def test_exponential_prior_leaves_lambda_generalised_inverse_gaussian(a):
    rate = 0.8
    joint = lambda x: rate * np.exp(-rate * x - 0.5 * (a + x) ** 2 / x) / np.sqrt(2 * np.pi * x)
    likelihood = integrate.quad(joint, 0, np.inf)[0]
    psi = 1 + 2 * rate
    x = np.linspace(0.1, 4, 40)
    gig = stats.geninvgauss(0.5, np.sqrt(psi) * abs(a), scale=abs(a) / np.sqrt(psi))
    np.testing.assert_allclose(joint(x) / likelihood, gig.pdf(x), rtol=1e-6)
    # A skewed Laplace law of λ would have a log density with one kink and no curvature elsewhere.
    assert np.sum(np.abs(np.diff(np.log(joint(x)), 2)) > 1e-5) > 30
    # Skewed Laplace is what the prior makes of the likelihood, as a function of 1 - y f.
    skew = np.sqrt((np.sqrt(psi) + 1) / (np.sqrt(psi) - 1))
    laplace = stats.laplace_asymmetric(skew, scale=1 / np.sqrt(2 * rate))
    assert likelihood == pytest.approx(laplace.pdf(a), rel=1e-6)


def test_without_the_exponential_prior_the_hinge_comes_back():
    for a in (-1.5, 0.4, 2.0):
        joint = lambda x, a=a: np.exp(-0.5 * (a + x) ** 2 / x) / np.sqrt(2 * np.pi * x)
        assert integrate.quad(joint, 0, np.inf)[0] == pytest.approx(np.exp(-2 * max(0.0, a)), rel=1e-6)
