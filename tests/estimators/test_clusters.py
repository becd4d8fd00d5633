"""Clusters, against all partitions, scikit-learn's k-means, and invariances."""

import itertools

import conventions
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import kernelcore as kc

LINEAR = kc.Polynomial(1)


def within(K, labels, weights):
    """The weighted sum of squares within clusters, by sums over pairs of points."""
    total = 0.0
    for k in set(labels):
        at = np.flatnonzero(np.asarray(labels) == k)
        w, part = weights[at], K[np.ix_(at, at)]
        pairs = np.diag(part)[:, None] + np.diag(part) - 2 * part
        total += w @ pairs @ w / (2 * w.sum())
    return total


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("kernel", [kc.Gaussian(1.0), kc.presets.mlp(2).ntk, LINEAR], ids=repr)
def test_the_best_of_all_partitions(kernel, count, rng):
    X, w = rng.standard_normal((8, 2)), rng.uniform(0.5, 2.0, 8)
    K = kernel(X)
    best = min(within(K, p, w) for p in itertools.product(range(count), repeat=8))
    model = kc.KernelKMeans(count, kernel, n_init=50, random_state=0).fit(X, sample_weight=w)
    assert_allclose(model.inertia_, best, rtol=1e-10)
    assert_allclose(within(K, model.labels_, w), best, rtol=1e-10)
    assert_array_equal(model.predict(X), model.labels_)


def blobs(rng, n=60):
    labels = rng.integers(0, 3, n)
    labels[:3] = 0, 1, 2
    return 12 * np.eye(3)[labels][:, :2] + rng.standard_normal((n, 2)), labels


def test_a_linear_kernel_is_k_means(rng):
    X, _ = blobs(rng)
    want = KMeans(3, n_init=20, random_state=0).fit(X)
    got = kc.KernelKMeans(3, LINEAR, n_init=20, random_state=0).fit(X)
    assert adjusted_rand_score(want.labels_, got.labels_) == 1
    assert_allclose(got.inertia_, want.inertia_, rtol=1e-10)
    new = 3 * rng.standard_normal((50, 2))
    assert adjusted_rand_score(want.predict(new), got.predict(new)) == 1


@pytest.mark.parametrize(
    "model",
    [kc.KernelKMeans(3, kc.Gaussian(3.0)), kc.SpectralClustering(3, kc.Gaussian(2.0))],
    ids=lambda model: type(model).__name__,
)
class TestBoth:
    def test_the_order_of_points_does_not_matter(self, model, rng):
        X, labels = blobs(rng)
        order = rng.permutation(60)
        model = clone(model).set_params(random_state=0)
        one, other = model.fit_predict(X), clone(model).fit_predict(X[order])
        assert adjusted_rand_score(one[order], other) == 1
        assert adjusted_rand_score(one, labels) == 1
        # numbered in the order of first points
        assert_array_equal(np.unique(other, return_index=True)[0], np.arange(3))
        assert (np.diff(np.unique(other, return_index=True)[1]) > 0).all()

    def test_matrices_seeds_and_precision(self, model, rng):
        X, _ = blobs(rng)
        model = clone(model).set_params(random_state=0).fit(X)
        again = clone(model).fit(X)
        assert_array_equal(model.labels_, again.labels_)
        assert model.inertia_ == again.inertia_
        single = clone(model).fit(X.astype(np.float32))
        assert_array_equal(model.labels_, single.labels_)
        K = model.kernel(X)
        matrix = clone(model).set_params(kernel="precomputed").fit(K)
        assert_array_equal(model.labels_, matrix.labels_)
        new = rng.standard_normal((9, 2))
        assert_array_equal(model.predict(new), matrix.predict(model.kernel(new, X)))
        assert_array_equal(model.predict(X), model.labels_)

    def test_the_checks_of_scikit_learn(self, model):
        # other draws lead to other local minima, as in scikit-learn's k-means
        drawn = "points are drawn" if isinstance(model, kc.KernelKMeans) else None
        conventions.check(clone(model).set_params(random_state=0, n_init=2), drawn)


def test_a_weight_of_two_is_two_points(rng):
    X, _ = blobs(rng)
    copies = rng.integers(0, 3, 60)
    more = np.repeat(np.arange(60), copies)
    model = kc.KernelKMeans(3, kc.Gaussian(3.0), n_init=20, random_state=0)
    a = clone(model).fit(X, sample_weight=copies)
    b = clone(model).fit(X[more])
    assert_allclose(a.inertia_, b.inertia_, rtol=1e-10)
    assert adjusted_rand_score(a.labels_[more], b.labels_) == 1


def test_rings_are_one_cluster_each(rng):
    """Which no k-means of the points themselves finds."""
    angle = rng.uniform(0, 2 * np.pi, 300)
    radius = np.repeat([1.0, 4.0], 150)
    X = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    X += 0.05 * rng.standard_normal(X.shape)
    labels = np.repeat([0, 1], 150)
    model = kc.SpectralClustering(2, kc.Gaussian(0.4), random_state=0).fit(X)
    assert adjusted_rand_score(model.labels_, labels) == 1
    new = np.array([[1.0, 0.1], [0.0, -4.1]])
    assert model.predict(new).tolist() == [0, 1]
    plain = kc.KernelKMeans(2, LINEAR, random_state=0).fit_predict(X)
    assert adjusted_rand_score(plain, labels) < 0.2


def test_points_that_coincide():
    X = np.ones((5, 2))
    model = kc.KernelKMeans(3, LINEAR, random_state=0).fit(X)
    assert model.inertia_ == 0
    assert_array_equal(model.labels_, np.zeros(5))
    one = kc.SpectralClustering(1, random_state=0).fit(np.arange(6.0).reshape(3, 2))
    assert_array_equal(one.labels_, np.zeros(3))
