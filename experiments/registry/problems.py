"""Registry: generated problems, each a function of the number of rows and a seed.

All know P(y = +1) at every row, so that the best log loss anyone can reach is known as well. What a problem is (its
rotations, its tables of effects) is fixed; the seed draws rows and labels only.
"""

import numpy as np
from scipy.special import expit, logsumexp, ndtr

from bayesvm.datasets.breiman import Problem


def moons(n_rows, seed, noise=0.3):
    """Two interlocking half circles in the plane, blurred by normal noise."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], n_rows)
    X = np.where(y[:, None] == 1, _upper_moon(rng.random(n_rows)), _lower_moon(rng.random(n_rows)))
    X += noise * rng.standard_normal(X.shape)

    def log_density(moon):
        arc = moon((np.arange(400) + 0.5) / 400)
        return logsumexp(-0.5 * np.sum((X[:, None] - arc) ** 2, axis=2) / noise**2, axis=1)

    return Problem(X, y.astype(np.int8), expit(log_density(_upper_moon) - log_density(_lower_moon)))


def xor(n_rows, seed):
    """The sign of x0·x1 among 20 uniform features; one label in twenty is flipped."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 20))
    return _labelled(X, np.where(X[:, 0] * X[:, 1] > 0, 0.95, 0.05), rng)


def sparse_linear(n_rows, seed):
    """A logistic model in 5 of 50 normal features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 50))
    return _labelled(X, expit(X[:, :5] @ [2.0, -2.0, 1.5, -1.5, 1.0]), rng)


def additive(n_rows, seed):
    """A probit of a sum of six sines, each of its own uniform feature and frequency; four more features are noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 10))
    waves = np.sin(np.pi * X[:, :6] * [0.5, 0.5, 1.0, 1.0, 1.5, 2.0])
    return _labelled(X, ndtr(1.5 * waves.sum(axis=1)), rng)


def friedman(n_rows, seed):
    """Friedman's first function, which uses 5 of 10 uniform features, centred and put through a probit."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 10))
    value = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return _labelled(X, ndtr((value - 14.4) / 2), rng)


def heavy_tailed(n_rows, seed):
    """A smooth problem in eight normal variables, of which one sees exp(1.5·) only."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n_rows, 8))
    return _labelled(np.exp(1.5 * Z), ndtr(1.5 * (Z[:, 0] - Z[:, 1]) + Z[:, 2] * Z[:, 3]), rng)


def ellipses(n_rows, seed):
    """Two long normal clouds in six dimensions, close to each other, each turned its own way."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], n_rows)
    lengths = np.array([3.0, 2.0, 1.0, 1.0, 0.5, 0.25])
    turns = [np.linalg.qr(np.random.default_rng(which).standard_normal((6, 6)))[0] for which in (1, 2)]
    centres = (np.zeros(6), np.full(6, 0.5))
    round_ = rng.standard_normal((n_rows, 6)) * lengths
    X = np.where(y[:, None] == 1, centres[1] + round_ @ turns[1].T, centres[0] + round_ @ turns[0].T)
    distance = [np.sum(((X - c) @ turn / lengths) ** 2, axis=1) for c, turn in zip(centres, turns, strict=True)]
    return Problem(X, y.astype(np.int8), expit((distance[0] - distance[1]) / 2))


def categories(n_rows, seed):
    """Three one-hot columns of 3, 5 and 12 levels and four numbers: a logistic model with interactions."""
    rng = np.random.default_rng(seed)
    effects = np.random.default_rng(0)
    pair, slope, many = effects.normal(0, 1.2, (3, 5)), effects.normal(0, 1.5, 5), effects.normal(0, 0.7, 12)
    a, b, c = (rng.integers(0, levels, n_rows) for levels in (3, 5, 12))
    numbers = rng.standard_normal((n_rows, 4))
    value = pair[a, b] + slope[b] * numbers[:, 0] + many[c] + numbers[:, 1] * numbers[:, 2]
    X = np.hstack([np.eye(3)[a], np.eye(5)[b], np.eye(12)[c], numbers])
    return _labelled(X, expit(value), rng)


def imbalanced(n_rows, seed, share=0.01):
    """One row in a hundred comes from a smaller cloud at the edge of a large one, in ten dimensions."""
    rng = np.random.default_rng(seed)
    rare = rng.random(n_rows) < share
    centre, width = np.r_[2.0, 2.0, np.zeros(8)], np.r_[0.5, 0.5, np.ones(8)]
    X = rng.standard_normal((n_rows, 10))
    X = np.where(rare[:, None], centre + width * X, X)
    log_ratio = np.sum(X**2 - ((X - centre) / width) ** 2, axis=1) / 2 - np.log(width).sum()
    return Problem(X, np.where(rare, 1, -1).astype(np.int8), expit(log_ratio + np.log(share / (1 - share))))


def collisions(n_rows, seed):
    """18 features as in SUSY: of two normal clouds one is shifted in six of them and wider in six others.

    Single precision and in parts, for millions of rows.
    """
    rng = np.random.default_rng(seed)
    shift, width = np.repeat([0.4, 0.0, 0.0], 6), np.repeat([1.0, 1.5, 1.0], 6)
    y = rng.choice(np.array([-1, 1], np.int8), n_rows)
    X, log_ratio = np.empty((n_rows, 18), np.float32), np.empty(n_rows)
    for start in range(0, n_rows, 100_000):
        part = slice(start, start + 100_000)
        rows = rng.standard_normal((len(y[part]), 18))
        X[part] = rows = np.where(y[part, None] == 1, shift + width * rows, rows)
        log_ratio[part] = np.sum(rows**2 - ((rows - shift) / width) ** 2, axis=1) / 2 - np.log(width).sum()
    return Problem(X, y, expit(log_ratio))


def _labelled(X, probability, rng):
    return Problem(X, np.where(rng.random(len(X)) < probability, 1, -1).astype(np.int8), probability)


def _upper_moon(along):
    return np.column_stack([np.cos(np.pi * along), np.sin(np.pi * along)])


def _lower_moon(along):
    return np.column_stack([1 - np.cos(np.pi * along), 0.5 - np.sin(np.pi * along)])
