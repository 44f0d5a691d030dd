"""Inducing points: distinct, from a bounded sample, the same for weights and for repetition."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from bayesvm.core.heads import Binary
from bayesvm.core.kernels import RBF, Constant, Linear, Matern, Sum
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.inference import inducing

rng = np.random.default_rng(0)
X = rng.standard_normal((500, 3))
CORNERS = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0], [9.0, 9.0]])
every_way = pytest.mark.parametrize("how", inducing.HOW)


def source(rows, weight=None):
    return MemorySource(rows, np.ones(len(rows), np.int32), weight, ColumnScaler(), Workers(1), 100)


def pick(a_source, how, n, seed=0, kernel=RBF(), head=None):  # noqa: B008
    return inducing.select(a_source, how, n, np.random.default_rng(seed), kernel, head)


def squared_distances(A, B):
    return ((A[:, None] - B) ** 2).sum(-1)


def quantisation_error(rows, points, weight=None):
    return np.average(squared_distances(rows, points).min(axis=1), weights=weight)


def around(centres, times, spread):
    return np.concatenate([c + spread * rng.standard_normal((n, len(c))) for c, n in zip(centres, times, strict=True)])


# ---- every way ----


@every_way
def test_points_are_distinct_and_as_many_as_asked(how):
    points = pick(source(np.repeat(X, 3, axis=0)), how, 40)
    assert points.shape == (40, 3)
    assert len(np.unique(points, axis=0)) == 40


@every_way
@pytest.mark.parametrize("n_points", [1, 2, 497, 499])
def test_one_point_and_nearly_as_many_as_rows(how, n_points):
    points = pick(source(X, rng.uniform(0.1, 5, len(X))), how, n_points, kernel=RBF(0.1))
    assert np.isfinite(points).all()
    assert len(np.unique(points, axis=0)) == n_points


@every_way
def test_weights_and_repetition_lead_to_the_same_points(how):
    times = rng.integers(1, 4, len(X))
    shuffled = rng.permutation(times.sum())
    weighted = pick(source(X, times.astype(float)), how, 20)
    repeated = pick(source(np.repeat(X, times, axis=0)[shuffled]), how, 20)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9, atol=1e-12)


@every_way
def test_a_row_of_weight_zero_is_left_out(how):
    given = rng.random(len(X)) < 0.7
    points, expected = (pick(a_source, how, 20) for a_source in (source(X, given.astype(float)), source(X[given])))
    np.testing.assert_allclose(points, expected, rtol=1e-9, atol=1e-12)


@every_way
def test_a_seed_gives_the_same_bits(how):
    np.testing.assert_array_equal(pick(source(X), how, 30, seed=5), pick(source(X), how, 30, seed=5))


@pytest.mark.parametrize("how", ["kmeans", "random", "gmm"])
def test_another_seed_gives_other_points(how):
    assert not np.array_equal(pick(source(X), how, 30, seed=5), pick(source(X), how, 30, seed=6))


@every_way
def test_fewer_distinct_rows_than_points(how):
    few = np.repeat(X[:7], 20, axis=0)
    np.testing.assert_array_equal(pick(source(few), how, 7), np.unique(X[:7], axis=0))
    np.testing.assert_array_equal(pick(source(few), how, 50), np.unique(X[:7], axis=0))
    np.testing.assert_array_equal(inducing.every_row(source(few)), np.unique(X[:7], axis=0))


@pytest.mark.parametrize("how", ["random", "greedy"])
def test_only_a_bounded_sample_is_read(monkeypatch, how):
    monkeypatch.setattr(inducing, "SAMPLE_ROWS", 60)
    monkeypatch.setattr(inducing, "SAMPLE_ROWS_PER_POINT", 2)
    points = pick(source(X), how, 30, kernel=RBF(0.1))
    assert len(points) == 30
    assert {tuple(p) for p in points} <= {tuple(row) for row in X}
    # Which 60 rows are read depends on the seed, even where the choice among them does not.
    assert not np.array_equal(points, pick(source(X), how, 30, seed=1, kernel=RBF(0.1)))


@pytest.mark.parametrize("how", ["kmeans", "gmm"])
@pytest.mark.parametrize(
    "spoil", [lambda A: A * 1e-200, lambda A: A * 1e150, lambda A: A + 1e9], ids=["tiny", "huge", "far"]
)
def test_any_origin_and_unit_give_as_good_points(how, spoil):
    def error(rows):
        points = pick(source(rows), how, 30, kernel=None)
        unit = np.ptp(rows)
        return quantisation_error((rows - rows[0]) / unit, (points - rows[0]) / unit)

    assert error(spoil(X)) == pytest.approx(error(X), rel=0.2)


def test_unknown_ways_and_a_missing_kernel_are_told():
    with pytest.raises(ValueError, match="'kmeans', 'random', 'greedy', 'gmm'; got 'best'"):
        pick(source(X), "best", 5)
    with pytest.raises(ValueError, match="'greedy' .* pass kernel to select"):
        pick(source(X), "greedy", 5, kernel=None)
    with pytest.raises(ValueError, match="one per column"):
        pick(source(X), "kmeans", 5, kernel=RBF([1.0, 2.0]))


# ---- k-means ----


def kmeans_plus_plus(rows, weight, n, generator):
    """Exact, naive: each seed with p(x) ∝ ω d(x, seeds)²."""
    chances, seeds = weight, []
    while len(seeds) < n:
        seeds.append(generator.choice(len(rows), p=chances / chances.sum()))
        chances = weight * squared_distances(rows, rows[seeds]).min(axis=1)
    return seeds


def test_seeds_are_as_good_as_those_of_exact_kmeans_plus_plus_and_far_better_than_chance():
    centres = 6 * rng.standard_normal((30, 4))
    rows = around(centres, [400] + 29 * [10], spread=0.3)  # one large cluster, which chance would seed only
    weight = rng.uniform(0.5, 2, len(rows))

    def mean_error(seeding):
        generators = [np.random.default_rng(seed) for seed in range(12)]
        errors = [quantisation_error(rows, rows[seeding(g)], weight) for g in generators]
        return np.mean(errors)

    exact = mean_error(lambda g: kmeans_plus_plus(rows, weight, 40, g))
    chained = mean_error(lambda g: inducing.afk_mc2_seeds(rows, weight, 40, g))
    chance = mean_error(lambda g: g.choice(len(rows), 40, replace=False))
    assert chained == pytest.approx(exact, rel=0.08)
    assert 5 * chained < chance


def test_the_second_seed_follows_the_law_of_kmeans_plus_plus():
    rows, weight = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([4.0, 1.0, 2.0, 1.0])
    second = np.bincount(
        [inducing.afk_mc2_seeds(rows, weight, 2, np.random.default_rng(seed))[1] for seed in range(2000)], minlength=4
    )
    from_each = weight * squared_distances(rows, rows)
    law = weight / weight.sum() @ (from_each / from_each.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(second / 2000, law, atol=4 * np.sqrt(0.25 / 2000))


def test_seeds_are_distinct_rows_even_if_chains_meet_nothing_but_seeds():
    rows, weight = rng.standard_normal((200, 30)), np.where(np.arange(200) < 5, 1.0, 1e-12)
    seeds = inducing.afk_mc2_seeds(rows, weight, 199, np.random.default_rng(0))
    assert len(set(seeds)) == 199


def test_kmeans_covers_the_data_better_than_chance_and_nearly_as_well_as_scikit_learns():
    kmeans, chance = (quantisation_error(X, pick(source(X), how, 30)) for how in ("kmeans", "random"))
    with threadpool_limits(limits=1):  # waking threads takes longer than the work
        converged = KMeans(30, n_init=5, random_state=0).fit(X)
    assert kmeans < 0.8 * chance
    assert kmeans < 1.08 * converged.inertia_ / len(X)


def test_centres_are_the_weighted_means_of_their_clusters():
    rows, weight = around(CORNERS, [50, 60, 70, 80], spread=0.2), rng.uniform(0.5, 2, 260)
    means = [np.average(rows[part], axis=0, weights=weight[part]) for part in np.split(np.arange(260), [50, 110, 180])]
    centres = pick(source(rows, weight), "kmeans", 4)
    assert squared_distances(np.array(means), centres).min(axis=1).max() < 1e-20


@pytest.mark.parametrize(
    "kernel",
    [RBF([1.0, 1e6]), Matern([1e-3, 1e3]), Linear() + 2 * RBF([1.0, 1e6]), Sum([Constant() + RBF([1.0, 1e6]), RBF()])],
    ids=repr,
)
@pytest.mark.parametrize("how", ["kmeans", "gmm"])
def test_a_column_of_huge_length_scale_is_ignored(how, kernel):
    informative = around(np.array([[0.0], [5.0], [10.0]]), [100, 100, 100], spread=0.1)
    rows = np.column_stack([informative, 100 * rng.standard_normal(300)])
    points = pick(source(rows), how, 3, kernel=kernel)
    np.testing.assert_allclose(np.sort(points[:, 0]), [0, 5, 10], atol=0.1)
    assert np.ptp(pick(source(rows), how, 3, kernel=None)[:, 0]) < 4  # in plain units the noisy column decides


def test_one_length_scale_for_all_columns_changes_nothing():
    plain, scaled = (pick(source(X), "kmeans", 20, kernel=kernel) for kernel in (None, RBF(7.0)))
    np.testing.assert_allclose(plain, scaled)


# ---- greedy ----


def naive_conditional_variances(kernel, rows, chosen):
    K = kernel(rows)
    return np.diag(K - K[:, chosen] @ np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen]))


@pytest.mark.parametrize("kernel", [RBF(1.0), Matern(2.0, nu=2.5), Linear() + RBF(0.5, 2.0)], ids=repr)
def test_each_greedy_row_has_the_largest_conditional_variance(kernel):
    rows = X[:60]
    chosen = inducing.greedy_rows(rows, 15, kernel)
    assert chosen[0] == kernel.diagonal(rows).argmax()  # the first of the rows that share the largest variance
    for i in range(1, 15):
        variances = naive_conditional_variances(kernel, rows, chosen[:i])
        assert variances[chosen[i]] == pytest.approx(variances.max(), rel=1e-9)


def test_greedy_stops_when_the_points_explain_every_row():
    kernel = Linear() + Constant()
    points = pick(source(X), "greedy", 40, kernel=kernel)
    assert len(points) == 4  # three columns and a constant
    explained = kernel(X, points) @ np.linalg.solve(kernel(points), kernel(points, X))
    np.testing.assert_allclose(explained, kernel(X), atol=1e-8)


def test_greedy_points_reconstruct_a_smooth_kernel_matrix():
    kernel = RBF(3.0)
    points = pick(source(X), "greedy", 400, kernel=kernel)
    assert len(points) < 250
    explained = kernel(X, points) @ np.linalg.solve(kernel(points), kernel(points, X))
    np.testing.assert_allclose(explained, kernel(X), atol=1e-7)


# ---- mixture ----


def test_the_mixture_finds_well_separated_means():
    rows = around(CORNERS, [40, 80, 120, 160], spread=0.3)
    points = pick(source(rows), "gmm", 4)
    assert squared_distances(CORNERS, points).min(axis=1).max() < 0.15**2


def test_the_mixture_is_that_of_scikit_learn(monkeypatch):
    monkeypatch.setattr(inducing, "EM_STEPS", 100)
    rows = around(CORNERS / 5, [100, 100, 100, 100], spread=0.4)
    with_kmeans_start = GaussianMixture(4, covariance_type="diag", tol=1e-6, max_iter=500, random_state=0).fit(rows)
    points = pick(source(rows), "gmm", 4)
    assert squared_distances(with_kmeans_start.means_, points).min(axis=1).max() < 0.02**2


def test_weights_pull_the_means_of_the_mixture():
    rows = np.linspace(0, 1, 200)[:, None]
    light, heavy = (pick(source(rows, np.exp(slope * rows[:, 0])), "gmm", 1)[0, 0] for slope in (0, 5))
    assert light == pytest.approx(0.5, abs=1e-3)
    assert heavy == pytest.approx(1 - 1 / 5 + 1 / (np.exp(5) - 1), abs=1e-2)  # the mean of that density


def test_components_of_rows_too_light_to_be_taken_stay_at_their_centres():
    rows = around(CORNERS + 100, [50, 50, 50, 50], spread=0.1)
    weight = np.repeat([1.0, 1.0, 1.0, 1e-9], 50)
    points = pick(source(rows, weight), "gmm", 180)
    assert np.isfinite(points).all()
    assert squared_distances(points, rows).min(axis=1).max() < 1


# ---- within strata ----

HEAD = Binary((0.1,))  # whose strata are the classes


def two_classes(n, sizes=(0.9, 0.1)):
    """Many rows, the classes overlapping; the sample is a small part."""
    y = rng.choice(2, n, p=sizes).astype(np.int32)
    rows = rng.standard_normal((n, 3)) + 2 * y[:, None]
    return MemorySource(rows, y, None, ColumnScaler(), Workers(1), 1000)


def test_many_rows_have_clusters_within_classes():
    many = two_classes(20_000)
    points = pick(many, "kmeans", 40, head=HEAD)
    assert points.shape == (40, 3)
    exchanged = replace(many, y=rng.permutation(many.y))
    assert not np.array_equal(points, pick(exchanged, "kmeans", 40, head=HEAD))
    np.testing.assert_array_equal(pick(many, "kmeans", 40), pick(exchanged, "kmeans", 40))  # nobody says what y means


def test_few_rows_keep_their_labels_to_themselves():
    few = two_classes(19_999)
    exchanged = replace(few, y=1 - few.y[::-1])
    np.testing.assert_array_equal(pick(few, "kmeans", 40, head=HEAD), pick(exchanged, "kmeans", 40, head=HEAD))


def test_a_stratum_has_points_by_the_root_of_its_weight():
    rows = around(np.array([[0.0, 0.0], [50.0, 50.0]]), (900, 100), 1.0)
    stratum = np.repeat([0, 1], (900, 100))
    centres = inducing.stratified_centres(rows, np.ones(1000), stratum, 40, np.random.default_rng(0))
    assert (centres[:, 0] > 25).sum() == 10


@pytest.mark.parametrize("n_points", [1, 2, 5, 103, 105])
def test_small_strata_give_what_they_have(n_points):
    stratum = np.repeat([0, 3, 7], (100, 5, 1))
    points = inducing.stratified_centres(X[:106], np.ones(106), stratum, n_points, np.random.default_rng(0))
    assert len(np.unique(points, axis=0)) == n_points
