"""Naive dense forms, written independently of the library: loops, explicit inverses, quadrature."""

import itertools

import numpy as np
from scipy import integrate, stats


def kernel_matrix(function, A, B):
    return np.array([[function(np.asarray(a), np.asarray(b)) for b in B] for a in A])


def expected_log_likelihood(m, v, y):
    """Quadrature of E[-2 max(0, 1 - y f)], f ~ N(m, v), split at the kink."""
    s = np.sqrt(v)
    density = stats.norm(m, s).pdf
    hinge = lambda f: -2 * max(0.0, 1 - y * f) * density(f)
    low, high = m - 12 * s, m + 12 * s
    kink = np.clip(y, low, high)
    return integrate.quad(hinge, low, kink)[0] + integrate.quad(hinge, kink, high)[0]


def tube(f, y, epsilon, scale):
    """The ε-insensitive pseudo-likelihood of y at a given f, a density of y."""
    return np.exp(log_tube(f, y, epsilon, scale))


def log_tube(f, y, epsilon, scale):
    return -2 * max(0.0, abs(y - f) - epsilon) / scale - np.log(2 * epsilon + scale)


def over_f(function, m, v, kinks):
    """Quadrature of E function(f), f ~ N(m, v), split at kinks and where it may be steep."""
    s = np.sqrt(v)
    low, high = m - 12 * s, m + 12 * s
    edges = np.unique(np.clip([low, high, *kinks, *np.linspace(m - 6 * s, m + 6 * s, 7)], low, high))
    density = lambda f: function(f) * np.exp(-0.5 * (f - m) ** 2 / v) / np.sqrt(2 * np.pi * v)
    return sum(integrate.quad(density, a, b, epsabs=0, epsrel=1e-11)[0] for a, b in itertools.pairwise(edges))


def elbo(bound, K_zz, K_xz, k_xx, y, mu_u, S_u, weight=None):
    """ELBO of the inducing-point model in the unwhitened parametrisation q(u) = N(mu_u, S_u)."""
    K_inv = np.linalg.inv(K_zz)
    total = 0.0
    for i, label in enumerate(y):
        a = K_inv @ K_xz[i]
        m = a @ mu_u
        v = k_xx[i] - K_xz[i] @ a + a @ S_u @ a
        total += (1.0 if weight is None else weight[i]) * bound(m, v, label)
    kl = 0.5 * (
        np.trace(K_inv @ S_u) + mu_u @ K_inv @ mu_u - len(mu_u) + np.linalg.slogdet(K_zz)[1] - np.linalg.slogdet(S_u)[1]
    )
    return total - kl


def features(kernel, points, X, jitter=1e-10):
    """``phi(x) = L^-1 k(Z,x)`` of every row, and the residual ``k(x,x) - |phi|²`` (D3)."""
    K = kernel(points)
    L = np.linalg.cholesky(K + jitter * np.mean(np.diag(K)) * np.eye(len(K)))
    phi = np.linalg.solve(L, kernel(points, X)).T
    return phi, np.array([kernel(row[None], row[None])[0, 0] - p @ p for row, p in zip(X, phi, strict=True)])


def marginals(phi, residual, prior_mean, mean, covariance):
    """Mean, explained variance and residual of f at every row, by one quadratic form each (D4)."""
    return prior_mean + phi @ mean, np.array([row @ covariance @ row for row in phi]), residual


def augmented_bound(m, v, y):
    return -(1 - y * m) - np.sqrt((1 - y * m) ** 2 + v)


def dense_augmented_fixed_point(K, y, iterations=2000):
    """The paper's batch updates (section 4.1) for alpha, zeta, mu over all rows."""
    K_inv = np.linalg.inv(K)
    mu, zeta = np.zeros(len(y)), K.copy()
    for _ in range(iterations):
        alpha = (1 - y * mu) ** 2 + np.diag(zeta)
        zeta = np.linalg.inv(np.diag(alpha**-0.5) + K_inv)
        mu = zeta @ (y * (alpha**-0.5 + 1))
    return mu, zeta


def numerical_gradient(function, x, step=1e-6):
    x = np.asarray(x, float)
    gradient = np.empty_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        gradient[i] = (function(up) - function(down)) / (2 * step)
    return gradient
