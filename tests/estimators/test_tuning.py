"""Hyper-parameters that data choose, against brute force, differences and known answers."""

import conventions
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import kernelcore as kc
from kernelcore.estimators import _tuning

NET = kc.presets.mlp(1, b_std=0.1).ntk
CRITERIA = ("likelihood", "loo", "cv")
GAUSSIANS = kc.Gaussian(0.5) + 0.5 * kc.Cauchy(1.0)


def waves(rng, n, noise=0.1):
    """Two outputs of three inputs."""
    X = rng.standard_normal((n, 3))
    clean = np.stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]], 1)
    return X, clean + noise * rng.standard_normal((n, 2))


def draw(rng, n, lengthscale, noise):
    """A function of a Gaussian process in two dimensions, with noise."""
    X = rng.uniform(-2, 2, (n, 2))
    K = kc.Gaussian(lengthscale)(X) + 1e-10 * np.eye(n)
    return X, np.linalg.cholesky(K) @ rng.standard_normal(n) + noise * rng.standard_normal(n)


def criterion(name, y, weights=None, ridge=None, copies=None):
    copies = weights if copies is None else copies
    return _tuning.OfRidge(name, y, ridge, np.random.RandomState(0), weights, copies)


def weights_of(kind, rng, n):
    if kind == "none":
        return None, None
    copies = rng.choice([0.5, 1.0, 2.0, 3.0], n)
    return (copies if kind == "copies" else 1.5 * copies), copies


KINDS = ("none", "copies", "weights")


# ---- criteria


@pytest.mark.parametrize("kind", KINDS)
def test_criteria_are_those_of_all_ridges(kind, rng):
    (X, y), (total, copies) = waves(rng, 30), weights_of(kind, rng, 30)
    K = NET(X)
    path = kc.solvers.RidgePath(K, y, sample_weight=total, copies=copies)
    for log_ridge in (-9.0, -2.0, 1.0):
        for name, value in (
            ("loo", path.loo_error),
            ("likelihood", path.log_marginal_likelihood),
        ):
            of = criterion(name, y, total, copies=copies)
            want = value(of.ridge(K, log_ridge))
            # K + ridge I has condition 30 e^9 or less, and both lose that many digits
            assert_allclose(of.cost(K, log_ridge).value, want, rtol=1e-9)


def test_folds_are_predicted_by_fits_to_the_others(rng):
    X, y = waves(rng, 31)
    w = rng.uniform(0.5, 2.0, 31)
    of, K = criterion("cv", y, w), NET(X)
    ridge, total = of.ridge(K, -3.0), 0.0
    assert sorted(np.concatenate(of.parts)) == list(range(31))
    assert len(of.parts) == 5
    for part in of.parts:
        rest = np.setdiff1d(np.arange(31), part)
        inside = K[np.ix_(rest, rest)] + ridge * np.diag(1 / w[rest])
        off = y[part] - K[np.ix_(part, rest)] @ np.linalg.solve(inside, y[rest])
        total += (w[part] @ off**2).sum()
    assert_allclose(of.cost(K, -3.0).value, total / (2 * w.sum()), rtol=1e-10)


@pytest.mark.parametrize("name", ["loo", "cv"])
def test_averages_without_the_point_itself(name, rng):
    X, y = waves(rng, 23)
    w = rng.uniform(0.5, 2.0, 23)
    of = _tuning.OfAverages(name, y, np.random.RandomState(0), w)
    parts = _tuning.parts(23, name, np.random.RandomState(0))
    square = 0.0
    for part in parts:
        rest = np.setdiff1d(np.arange(23), part)
        model = kc.KernelSmoother(GAUSSIANS).fit(X[rest], y[rest], w[rest])
        square += (w[part] @ (y[part] - model.predict(X[part])) ** 2).sum()
    assert_allclose(of.cost(GAUSSIANS(X), 0.0).value, square / (2 * w.sum()), rtol=1e-12)


def slopes(search, at, h=1e-4):
    """The gradient, and central differences: their errors are h^2/6 times a third derivative."""
    ways = h * np.eye(len(at))
    near = [(search.loss(at + way)[0] - search.loss(at - way)[0]) / (2 * h) for way in ways]
    return search.loss(at)[1], np.array(near)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CRITERIA)
def test_gradients_are_differences(name, kind, rng):
    (X, y), (total, copies) = waves(rng, 30), weights_of(kind, rng, 30)
    for ties, free in ((None, 4), ("layers", 2)):
        search = _tuning.Search(NET, X, criterion(name, y, total, copies=copies), ties)
        assert len(search.first) == free + 1
        got, want = slopes(search, search.first + np.linspace(0.1, 0.2, free + 1))
        assert_allclose(got, want, rtol=0, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("ridge", [0.3, np.linspace(0.1, 0.5, 30)], ids=["one", "each"])
def test_gradients_where_the_ridge_is_given(ridge, rng):
    X, y = waves(rng, 30)
    for name in CRITERIA:
        search = _tuning.Search(GAUSSIANS, X, criterion(name, y, ridge=ridge), "layers")
        assert len(search.first) == 3
        got, want = slopes(search, search.first + 0.1)
        assert_allclose(got, want, rtol=0, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("name", ["loo", "cv"])
def test_gradients_of_averages(name, rng):
    X, y = waves(rng, 30)
    w = rng.uniform(0.5, 2.0, 30)
    X[0] = 60.0  # all weights of this one underflow
    of = _tuning.OfAverages(name, y, np.random.RandomState(0), w)
    search = _tuning.Search(kc.Gaussian(0.5) + 0.5 * kc.Laplacian(0.05), X, of, None)
    got, want = slopes(search, search.first + 0.1)
    assert_allclose(got, want, rtol=0, atol=1e-6 * np.abs(want).max())


# ---- what is found


@pytest.mark.parametrize("name", CRITERIA)
def test_the_optimum_is_stationary(name, rng):
    X, y = waves(rng, 60)
    search = _tuning.Search(GAUSSIANS, X, criterion(name, y), None)
    search.run(np.random.RandomState(0))
    loss, _, at = search.best
    _, slope = search.loss(at)
    inside = (at > search.low + 1e-9) & (at < search.high - 1e-9)
    # the search ends where a step gains less than 1e-6; along a curvature c of the loss that is a
    # slope of sqrt(2e-6 c), and c is at most of the order of 1 in logarithms
    assert np.abs(slope[inside]).max() < 1e-2
    assert loss < search.loss(search.first)[0]


def test_layers_of_a_network_move_together(rng):
    """By one factor for all w_std, and one for all b_std; other numbers move alone."""
    block = kc.Residual(kc.Relu(), kc.Dense(0.8), shortcut=(kc.Dense(0.7, b_std=0.2),))
    net = kc.Sequential(kc.Dense(1.2, b_std=0.1), block, kc.Relu(), kc.Dense())
    kernel = (net.ntk + 0.5 * kc.presets.mlp(1).nngp) * GAUSSIANS
    names = tuple(kernel.hyperparameters())
    together = _tuning.tied(names, "layers")
    groups = [[names[i] for i in np.flatnonzero(together == k)] for k in range(together.max() + 1)]
    assert sorted(map(len, groups)) == [1, 1, 1, 1, 2, 2, 4]
    for group in groups:
        assert len({(n.split("__layers__")[0], n.split("__")[-1]) for n in group}) == 1
    assert_array_equal(_tuning.tied(names, None), range(len(names)))
    X, y = waves(rng, 40)
    tied = kc.KernelRegressor(net.ntk, tune="loo", random_state=0).fit(X, y)
    before, after = net.ntk.hyperparameters(), tied.tuning_.parameters
    factors = {
        k: [after[n] / before[n] for n in before if n.endswith(k)] for k in ("w_std", "b_std")
    }
    for each in factors.values():
        assert_allclose(each, each[0], rtol=1e-12)
        assert each[0] != 1
    assert factors["w_std"][0] != factors["b_std"][0]
    alone = kc.KernelRegressor(net.ntk, tune="loo", ties=None, random_state=0).fit(X, y)
    assert len(set(alone.tuning_.parameters.values())) == 6
    assert alone.tuning_.after < tied.tuning_.after < tied.tuning_.before


@pytest.mark.parametrize("model", [kc.GaussianProcess, kc.KernelRegressor])
def test_a_known_lengthscale_is_recovered(model, rng):
    # A draw with 250 points has some (4/0.7)^2 cells of its lengthscale, so that its logarithm is
    # known to about 1/sqrt(2 * 33), and the noise to 1/sqrt(2 * 250): three deviations.
    X, y = draw(rng, 250, 0.7, 0.1)
    found = model(kc.Gaussian(3.0), tune="likelihood", random_state=0).fit(X, y)
    assert abs(np.log(found.kernel_.lengthscale / 0.7)) < 3 / np.sqrt(66)
    assert abs(np.log(found.tuning_.ridge / 0.01)) < 2 * 3 / np.sqrt(500)
    assert found.tuning_.parameters == {"lengthscale": found.kernel_.lengthscale}
    assert found.tuning_.after > found.tuning_.before
    assert found.kernel == kc.Gaussian(3.0)


@pytest.mark.parametrize("name", CRITERIA)
def test_tuned_regressors_beat_defaults_on_new_points(name, rng):
    (X, y), (new, labels) = waves(rng, 150), waves(rng, 300, noise=0.0)
    for kernel in (NET, kc.Gaussian(5.0)):
        plain = kc.KernelRegressor(kernel).fit(X, y).score(new, labels)
        tuned = kc.KernelRegressor(kernel, tune=name, random_state=0).fit(X, y)
        assert tuned.score(new, labels) > plain
        assert tuned.tuning_.exact
        assert tuned.tuning_.points == 150


def test_tuned_classifiers_beat_defaults_on_digits():
    X, y = kc.data.digits()
    X, new, y, labels = X[:300], X[300:], y[:300], y[300:]
    kernel = kc.Gaussian(2.0)
    plain = kc.KernelClassifier(kernel).fit(X, y).score(new, labels)
    for name in ("likelihood", "loo"):
        tuned = kc.KernelClassifier(kernel, tune=name, random_state=0).fit(X, y)
        assert tuned.score(new, labels) > plain
        assert tuned.predict_proba(new[:3]).shape == (3, 10)


@pytest.mark.parametrize("name", ["loo", "cv"])
def test_tuned_smoothers_beat_defaults(name, rng):
    (X, y), (new, labels) = waves(rng, 200), waves(rng, 200, noise=0.0)
    plain = kc.KernelSmoother().fit(X, y)
    tuned = kc.KernelSmoother(tune=name, random_state=0).fit(X, y)
    assert tuned.score(new, labels) > plain.score(new, labels)
    assert tuned.tuning_.ridge is None
    errors = [
        _tuning.OfAverages(name, y, np.random.RandomState(0), None).cost(kc.Gaussian(h)(X), 0).value
        for h in np.geomspace(0.05, 5, 100)
    ]
    # the grid has steps of 5 per cent; folds are drawn once more, from the same seed
    assert tuned.tuning_.after <= min(errors) * (1 + 1e-5)


def test_depth_is_chosen_from_a_list(rng):
    X, y = waves(rng, 60)
    kernels = [kc.presets.mlp(depth, b_std=0.1).ntk for depth in (1, 3)]
    each = [kc.KernelRegressor(k, tune="loo", random_state=0).fit(X, y).tuning_ for k in kernels]
    both = kc.KernelRegressor(kernels, tune="loo", random_state=0)
    assert clone(both).get_params()["kernel"] == kernels
    both.fit(X, y)
    best = int(np.argmin([one.after for one in each]))
    assert len(both.kernel_.network.layers) == len(kernels[best].network.layers)
    # the second kernel begins from other places
    assert_allclose(both.tuning_.after, each[best].after, rtol=0.05)
    assert both.tuning_.before == each[0].before


# ---- what does not change it


def test_a_weight_of_two_is_two_samples(rng):
    X, y = waves(rng, 25)
    copies = rng.integers(0, 3, 25)
    more = np.repeat(np.arange(25), copies)
    for name in ("likelihood", "loo"):
        # copies without noise would have a likelihood without bound if the ridge were free
        model = kc.KernelRegressor(kc.Gaussian(1.0), 0.1, tune=name, random_state=0)
        a = clone(model).fit(X, y, sample_weight=copies).tuning_
        b = clone(model).fit(X[more], y[more]).tuning_
        # a search ends within 1e-6 of the minimum of the loss, which is a logarithm, or a mean
        assert_allclose(a.before, b.before, rtol=1e-8)
        assert_allclose(a.after, b.after, rtol=1e-4)


def test_seeds_and_threads(rng):
    X, y = waves(rng, 40)
    model = kc.KernelRegressor(NET, tune="cv", random_state=3)
    kc.set_threads(1)
    one = clone(model).fit(X, y)
    kc.set_threads(3)
    other = clone(model).fit(X, y)
    assert one.kernel_ == other.kernel_
    assert one.tuning_ == other.tuning_


def test_single_precision_is_tuned_in_double(rng):
    X, y = (a.astype(np.float32) for a in waves(rng, 40))
    model = kc.KernelRegressor(NET, tune="loo", random_state=0)
    single, double = clone(model).fit(X, y), clone(model).fit(X.astype(float), y.astype(float))
    assert single.kernel_ == double.kernel_
    assert single.alpha_.dtype == single.predict(X).dtype == np.float32


def test_many_points_are_drawn_from(rng):
    X, y = waves(rng, _tuning.TUNED_ON + 100)
    model = kc.KernelSmoother(tune="loo", random_state=0).fit(X, y)
    assert model.tuning_.points == _tuning.TUNED_ON
    assert model.predict(X[:3]).shape == (3, 2)
    assert model.X_fit_.shape == X.shape


def test_a_ridge_that_is_given_stays(rng):
    X, y = waves(rng, 40)
    model = kc.KernelRegressor(kc.Gaussian(5.0), ridge=0.2, tune="loo", random_state=0).fit(X, y)
    assert model.ridge_ == model.tuning_.ridge == 0.2
    grid = [
        kc.solvers.RidgePath(kc.Gaussian(h)(X), y).loo_error(0.2) for h in np.geomspace(0.1, 10, 99)
    ]
    # the least ridge is added to the one that is given, 1e-10 of the diagonal
    assert model.tuning_.after <= min(grid) * (1 + 1e-5)
    noise = np.full(40, 0.2)
    process = kc.GaussianProcess(kc.Gaussian(5.0), noise, tune="loo", random_state=0).fit(X, y)
    assert_allclose(process.kernel_.lengthscale, model.kernel_.lengthscale, rtol=1e-5)
    assert_array_equal(process.noise_variance_, noise)


def test_kernels_without_derivatives_are_tuned_without(rng):
    images = rng.standard_normal((12, 3, 3, 1))
    y = images.mean((1, 2, 3)) + 1
    net = kc.Sequential(kc.Conv(3, b_std=1.0), kc.Relu(), kc.GlobalAvgPool())
    for name, ridge in (("likelihood", 0.1), ("loo", "loo"), ("cv", 0.1)):
        model = kc.KernelRegressor(net.nngp, ridge, tune=name, random_state=0).fit(images, y)
        found = model.tuning_
        assert not found.exact
        assert (found.after > found.before) == (name == "likelihood")
        assert model.predict(images).shape == (12,)
    # without a ridge to choose, the smoother sees values alone
    lengths = kc.CyclicConvolution(2, 1, kc.Gaussian(1.0))
    signs = np.sign(rng.standard_normal((12, 4)))
    model = kc.KernelSmoother(lengths, tune="loo", random_state=0).fit(signs, signs[:, 0])
    assert model.tuning_.after <= model.tuning_.before


def test_searches_turn_back_from_kernels_that_overflow(rng):
    X, y = waves(rng, 20)
    net = kc.Sequential(kc.Dense(0.5), kc.Exp(), kc.Dense())
    search = _tuning.Search(net.nngp, X, criterion("loo", y), None)
    assert search.loss(search.first + np.array([6.0, 0.0, 0.0]))[0] == _tuning.WALL
    model = kc.KernelRegressor(net.nngp, tune="loo", random_state=0).fit(X, y)
    assert model.tuning_.after <= model.tuning_.before


def test_nothing_to_choose(rng):
    X, y = waves(rng, 20)
    model = kc.KernelRegressor(kc.ArcCosine(1), ridge=0.1, tune="loo").fit(X, y)
    assert model.kernel_ == kc.ArcCosine(1)
    assert model.tuning_.before == model.tuning_.after
    flat = kc.KernelRegressor(kc.Gaussian(1.0), tune="loo", random_state=0).fit(X, 0 * y)
    assert_array_equal(flat.predict(X), 0 * y)
    assert kc.KernelRegressor().fit(X, y).tuning_ is None


MODELS = [
    kc.KernelClassifier(kc.Gaussian(1.0), 0.1, probabilities=None, tune="loo", random_state=0),
    kc.KernelSmoother(tune="cv", random_state=0),
    kc.GaussianProcess(kc.Gaussian(1.0), 0.1, tune="likelihood", random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_checks_of_scikit_learn(model):
    # searches with repeated points are equal to the tolerance at which they end; folds differ
    conventions.check(model, "a search ends near the optimum")
