"""Features of any network: against Jacobians, hidden units and exact kernels; whitened patches."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kernelcore as kc
from kernelcore.features import (
    ConvolutionalFeatures,
    FrozenFeatures,
    PatchFeatures,
    SampledFeatures,
    _sampled,
    _transformer,
    feature_error,
    ridge_features,
)

ROOT2 = 2**0.5
CONV = {"w_std": ROOT2, "b_std": 0.2}
NETWORKS = {
    "rows": (kc.presets.mlp(1, b_std=0.3), (4,)),
    "deep": (kc.presets.mlp(2, kc.Erf(), b_std=0.3), (4,)),
    "residual": (
        kc.Sequential(
            kc.Dense(1.2, 0.1), kc.Residual(kc.Relu(), kc.Dense(1.1)), kc.Relu(), kc.Dense(1.3, 0.2)
        ),
        (4,),
    ),
    "signals": (
        kc.Sequential(
            kc.Conv((3,), **CONV), kc.Relu(), kc.AvgPool((2,)), kc.Flatten(), kc.Dense(1.2, 0.4)
        ),
        (6, 2),
    ),
    "images": (
        kc.Sequential(
            kc.Conv(3, **CONV), kc.Relu(), kc.AvgPool(2), kc.GlobalAvgPool(), kc.Dense(1.2, 0.4)
        ),
        (4, 4, 2),
    ),
    "deep images": (
        kc.Sequential(
            kc.Conv(3, **CONV), kc.Relu(), kc.AvgPool(2), kc.Conv(2, w_std=ROOT2), kc.Relu(),
            kc.GlobalAvgPool(), kc.Dense(1.2),
        ),
        (4, 4, 2),
    ),
    "ends in a convolution": (
        kc.Sequential(
            kc.Conv(3, **CONV), kc.Relu(), kc.Conv(3, w_std=1.3, b_std=0.5),
            kc.AvgPool(2, padding="same"), kc.Flatten(),
        ),
        (3, 3, 2),
    ),
    "ends in a sum": (
        kc.Sequential(kc.Dense(1.2, 0.1), kc.Residual(kc.Relu(), kc.Dense(1.1))), (4,),
    ),
}  # fmt: skip
SHALLOW = ("rows", "signals", "images")
KINDS = ("nngp", "ntk")


def inputs(name, n=6, seed=3):
    net, shape = NETWORKS[name]
    return net, np.random.default_rng(seed).standard_normal((n, *shape))


# ---- what they are, on one draw


@pytest.mark.parametrize("name", NETWORKS)
def test_units_make_the_covariance_of_outputs_given_the_layers_before(name):
    """With all but the last weights fixed, outputs over draws of these have the covariance Z Z'."""
    net, X = inputs(name)
    features = SampledFeatures(net, 40, width=30, seed=0).fit(X)
    f, Z = features.network_, features.transform(X)
    assert Z.shape == (6, features.n_features_out_)
    if name == "ends in a sum":  # these are its outputs
        assert_allclose(Z, f(X) / 40**0.5, rtol=1e-12)
        return
    last = f.training(-1)
    J = last.jacobian(X)  # linear in the last weights, which are standard normal
    if J.ndim == 2:
        assert_allclose(Z @ Z.T, J @ J.T, rtol=1e-12)
    else:  # the mean over positions
        assert_allclose(Z @ Z.T, np.einsum("ikp,jkp->ij", J, J) / J.shape[1], rtol=1e-12)


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("name", NETWORKS)
def test_sketches_are_random_directions_of_the_jacobian(name, direct, monkeypatch):
    """Z is linear in the gradient: each column is a sum over parameters with signs u v."""
    monkeypatch.setattr(_sampled, "_direct", lambda *sizes: direct)
    net, X = inputs(name)
    features = SampledFeatures(net, 7, kind="ntk", width=5, seed=0).fit(X)
    f = features.network_
    J = f.jacobian(X).reshape(len(X), f.outputs, -1)
    want = np.zeros((len(X), 7))
    for way in range(len(features._ways)):
        gradient = np.einsum("k,ikp->ip", features._ways[way], J)
        at = 0
        for step, (u, v) in zip(f._weighs(), features._signs[0], strict=True):
            fan_in, units = step.sizes
            own = v[way * units : (way + 1) * units]
            signs = (u[:fan_in, None, :].astype(float) * own).reshape(-1, 7)
            if step.shift:
                signs = np.concatenate([signs, u[fan_in] * own.astype(float)])
            want += gradient[:, at : at + len(signs)] @ signs
            at += len(signs)
        assert at == f.theta.size
    assert_allclose(features.transform(X), want / 7**0.5, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("kind", KINDS)
def test_their_kernel_is_that_of_the_network(name, kind):
    net, X = inputs(name)
    assert SampledFeatures(net, 4, kind=kind, seed=0).fit(X).kernel_ == getattr(net, kind)


# ---- laws of the error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SHALLOW)
def test_no_bias_with_one_hidden_layer(name, kind):
    """21 entries, 200 draws: the largest ratio is below 4.6 but once in 10,000."""
    net, X = inputs(name)
    error = feature_error(SampledFeatures(net, 60, kind=kind, width=20), X, 200)
    assert error.bias < 4.6
    assert np.isnan(error.theory_rms)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["rows", "signals", "images", "deep images"])
def test_error_falls_as_the_root_of_the_size(name, kind):
    """The root mean square over 20 draws is known to 1/sqrt(2 x 20 x about 4) = 8 % at a size.

    Entries of a draw are correlated and count as about four. The slope over sizes follows, with
    four of its standard errors; the bias of deep networks, of the order 1/N, makes it steeper by up
    to 0.05.
    """
    net, X = inputs(name, 4)
    sizes = 16 * 2 ** np.arange(5 if name == "deep images" else 6)
    if (name, kind) == ("signals", "nngp"):
        sizes *= 3  # a unit has three positions
    want, rms = getattr(net, kind)(X), []
    for n in sizes:
        rng = np.random.default_rng(int(n))
        features = SampledFeatures(net, int(n), kind=kind, seed=rng)
        errors = [features.fit(X).gram(X) - want for _ in range(20)]
        rms.append(np.sqrt(np.mean(np.square(errors))))
    slope = np.polyfit(np.log(sizes), np.log(rms), 1)[0]
    error = 0.08 / (np.log(sizes).std() * len(sizes) ** 0.5)
    assert abs(slope + 0.5) < 4 * error + 0.05 * name.startswith("deep"), slope


def test_a_sketch_of_one_network_has_the_error_of_signs():
    """Var of a product of sketches is at most 9 |g|^2 |g'|^2 for one layer with one position.

    With E[(u'a)^2 (u'b)^2] at most |a|^2 |b|^2 + 2 (a'b)^2, so at most 3 times each norm.
    """
    net, X = inputs("rows", 8)
    f = net.sample(50, 0, shape=4)
    K = f.ntk(X)
    for n in (100, 1600):
        rng = np.random.default_rng(n)
        features = FrozenFeatures(f, kind="gradient", n_features=n, seed=rng)
        error = [features.fit(X).gram(X) - K for _ in range(60)]
        bound = 3 * np.sqrt(np.outer(np.diag(K), np.diag(K)) / n)
        assert (np.sqrt(np.mean(np.square(error), 0)) < bound).all()
        ratio = np.abs(np.mean(error, 0)) / (np.std(error, 0, ddof=1) / 60**0.5)
        assert ratio.max() < 4.5


# ---- networks that are given


def test_frozen_units_and_gradients():
    X = np.random.default_rng(0).standard_normal((30, 3))
    f = kc.presets.mlp(2, b_std=0.1).sample(20, 0, doubled=True, outputs=2)
    f(X)
    trained = kc.networks.train(f, X, np.stack([X[:, 0], X[:, 1] ** 2], 1), steps=20).network
    for layer in (0, -1):
        features = FrozenFeatures(trained, layer=layer).fit(X)
        assert features.n_features_out_ == 40  # of both halves
        assert features.kernel_ == trained.conjugate(layer)
        assert_allclose(features.gram(X), trained.conjugate(layer)(X), rtol=1e-12)
    features = FrozenFeatures(trained, kind="gradient", n_features=20_000, seed=0).fit(X)
    want = trained.ntk(X)
    # 3 sigma of sqrt(2/N) |g| |g'|, and 3 more for the largest of 465 entries
    assert np.abs(features.gram(X) - want).max() < 6 * np.sqrt(2 / 20_000) * np.diag(want).max()
    part = FrozenFeatures(trained.training(0), kind="gradient", n_features=10, seed=0).fit(X)
    assert [s is None for s in part._signs[0]] == [False, True, True]


def test_frozen_features_of_images():
    net, X = inputs("images")
    f = net.sample(7, 0)
    features = FrozenFeatures(f).fit(X)
    assert features.n_features_out_ == 16 * 7
    assert_allclose(features.gram(X), f.conjugate()(X), rtol=1e-12)


# ---- use


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["deep", "signals", "images"])
def test_blocks_threads_and_dtypes(name, kind, monkeypatch):
    net, X = inputs(name, 40)
    features = SampledFeatures(net, 30, kind=kind, seed=0).fit(X)
    one = features.transform(X, n_threads=1)
    assert_array_equal(features.transform(X, n_threads=2), one)
    again = pickle.loads(pickle.dumps(features))
    assert_array_equal(again.transform(X), one)
    monkeypatch.setattr(_sampled, "BLOCK", 1)
    # Sums of up to 100 products of numbers of order 1 round in another order.
    assert_allclose(features.transform(X), one, atol=1e-12)
    single = features.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, one, atol=100 * np.finfo(np.float32).eps * np.abs(one).max())
    small = SampledFeatures(net, 30, kind=kind, seed=0).fit(X.astype(np.float32))
    assert_array_equal(small.transform(X.astype(np.float32)), single)
    assert small.transform(X).dtype == np.float64


@pytest.mark.parametrize("name", ["deep", "images"])
def test_ridge_is_that_of_the_features_in_chunks(name, monkeypatch):
    net, X = inputs(name, 50)
    y = np.random.default_rng(0).standard_normal(50)
    for kind in KINDS:
        features = SampledFeatures(net, 20, kind=kind, seed=0).fit(X)
        Z = features.transform(X)
        want = Z @ np.linalg.solve(Z.T @ Z + 0.1 * np.eye(Z.shape[1]), Z.T @ y)
        monkeypatch.setattr(_transformer, "chunk_rows", lambda columns: 7)
        for solver in ("primal", "dual"):
            fit = ridge_features(features, X, y, 0.1, solver=solver)
            assert_allclose(fit.predict(X), want, atol=1e-9)


def test_widths_and_sizes():
    net, X = inputs("deep images")
    features = SampledFeatures(net, 50, width=[7], seed=0).fit(X)
    assert features.network_.widths == (7, 50, 1)
    assert features.n_features_out_ == 50
    assert SampledFeatures(net, 9, kind="ntk", width=[3, 4]).fit(X).network_.widths == (3, 4, 1)
    signals, X = inputs("signals")
    features = SampledFeatures(signals, 50, seed=0).fit(X)
    assert features.n_features_out_ == 3 * 16 + 1  # three positions, and a bias
    assert SampledFeatures(signals, 1).fit(X).network_.widths == (1, 1)
    linear = kc.Sequential(kc.Dense(1.5))
    rows = np.eye(3)
    assert_allclose(SampledFeatures(linear).fit(rows).gram(rows), linear.nngp(rows), rtol=1e-12)


def test_they_are_features_of_patches_too(rng):
    X = rng.standard_normal((5, 6))
    patches = ConvolutionalFeatures(SampledFeatures(n_features=4000, width=300), 3, 6, seed=0)
    K = patches.fit(X).gram(X)
    assert np.abs(K - patches.kernel_(X)).max() < 0.15 * K.max()


def test_the_checks_of_scikit_learn():
    from sklearn.base import clone
    from sklearn.exceptions import SkipTestWarning
    from sklearn.utils.estimator_checks import check_estimator

    features = SampledFeatures(n_features=20, width=9, seed=0)
    assert repr(clone(features)) == repr(features)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*does not inherit from")
        warnings.filterwarnings("ignore", category=SkipTestWarning)
        check_estimator(features)


def test_images_in_a_pipeline_of_scikit_learn():
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    net, X = inputs("deep images", 30)
    y = X[:, 0, 0, 0]
    features = SampledFeatures(net, 20, width=10, seed=0)
    pipe = make_pipeline(features, Ridge(0.1, fit_intercept=False)).fit(X, y)
    want = ridge_features(features.fit(X), X, y, 0.1).predict(X)
    assert_allclose(pipe.predict(X), want, atol=1e-8)


# ---- patches


def plain(images, features, filters, mean, whitening):
    """One patch at a time."""
    size, step = features.patch, features.stride
    results = []
    for image in images:
        rows = range(0, image.shape[0] - size + 1, step)
        columns = range(0, image.shape[1] - size + 1, step)
        found = {}
        for a, i in enumerate(rows):
            for b, j in enumerate(columns):
                p = image[i : i + size, j : j + size].ravel()
                p = (p - p.mean()) / np.sqrt(p.var(ddof=1) + features.contrast_)
                x = whitening @ (p - mean)
                if features.activation == "triangle":
                    z = np.array([np.sqrt(((x - d) ** 2).sum()) for d in filters])
                    f = np.maximum(z.mean() - z, 0)
                else:
                    d = np.array([filter @ x for filter in filters])
                    f = np.concatenate([np.maximum(d - 0.25, 0), np.maximum(-d - 0.25, 0)])
                # quadrants; of an odd number of patches the first has one more
                where = (a >= -(-len(rows) // 2), b >= -(-len(columns) // 2))
                found[where] = found.get(where, 0) + f
        order = [(False, False), (False, True), (True, False), (True, True)]
        results.append(np.concatenate([found[where] for where in order]))
    return np.array(results)


@pytest.fixture(scope="module")
def pictures():
    X, y = kc.data.digits()
    return X.reshape(-1, 8, 8, 1), y


@pytest.mark.parametrize("filters", ["kmeans", "patches"])
@pytest.mark.parametrize("activation", ["triangle", "threshold"])
def test_patches_against_the_plain_algorithm(filters, activation, rng):
    images = rng.standard_normal((12, 8, 7, 2))
    features = PatchFeatures(6, 3, filters=filters, activation=activation, stride=1, seed=0)
    features.fit(images)
    assert features.kernel_ is None
    got = features.transform(images)
    args = features, features.filters_, features.mean_, features.whitening_
    assert_allclose(got, plain(images, *args), atol=1e-11)
    single = features.transform(images.astype(np.float32))
    assert single.dtype == np.float32
    # A distance of zero is the root of what squares of up to 30 round off.
    assert_allclose(single, got, rtol=0, atol=(16 * 30 * np.finfo(np.float32).eps) ** 0.5)
    assert_array_equal(features.transform(images, n_threads=2), got)


def test_patches_are_white(pictures):
    """Whitened patches have the covariance L/(L + epsilon), and filters are their clusters."""
    images = pictures[0][:200]
    features = PatchFeatures(8, 4, whiten=0.01, seed=0, max_iter=300).fit(images)
    every = np.lib.stride_tricks.sliding_window_view(images[..., 0], (4, 4), axis=(1, 2))
    p = every.reshape(-1, 16)
    p = (p - p.mean(1, keepdims=True)) / np.sqrt(
        p.var(1, ddof=1, keepdims=True) + 10 / 255**2 * images.max() ** 2
    )
    assert_allclose(features.mean_, p.mean(0), atol=1e-12)
    values, vectors = np.linalg.eigh(np.cov(p.T, bias=True))
    x = (p - p.mean(0)) @ features.whitening_
    want = (vectors * (values / (values + 0.01))) @ vectors.T
    assert_allclose(x.T @ x / len(x), want, atol=1e-10)
    # Lloyd's iterations have converged: filters are the means of the points nearest to them.
    d = ((x[:, None] - features.filters_) ** 2).sum(-1)
    means = np.array([x[d.argmin(1) == k].mean(0) for k in range(8)])
    assert_allclose(features.filters_, means, atol=1e-10)
    other = PatchFeatures(8, 4, whiten=None, contrast=1.0, seed=0).fit(images)
    assert_array_equal(other.whitening_, np.eye(16))
    assert other.contrast_ == 1.0


def test_patches_do_not_depend_on_the_scale_of_pixels(pictures):
    images = pictures[0][:50]
    one = PatchFeatures(9, 3, seed=0).fit_transform(images)
    other = PatchFeatures(9, 3, seed=0).fit_transform(255 * images)
    assert_allclose(other, one, atol=1e-9)


def test_patches_learn_digits(pictures):
    """Better than the pixels, by the same ridge regression on codes."""
    images, labels = pictures
    codes = np.eye(10)[labels]
    right = {}
    features = PatchFeatures(100, 4, activation="threshold", seed=0).fit(images[:500])
    for name, Z in (
        ("pixels", images.reshape(len(images), -1)),
        ("patches", features.transform(images)),
    ):
        Z = np.concatenate([(Z - Z[:500].mean(0)), np.ones((len(Z), 1))], axis=1)
        fit = ridge_features(None, Z[:500], codes[:500], 1e-3 * (Z[:500] ** 2).sum() / Z.shape[1])
        right[name] = np.mean(fit.predict(Z[500:]).argmax(1) == labels[500:])
    # One standard deviation of a share of 1,297 near 0.95 is 0.006.
    assert right["patches"] > right["pixels"] + 0.018
    assert right["patches"] > 0.95


def test_patches_of_signals(rng):
    signals = rng.standard_normal((20, 12, 2))
    features = PatchFeatures(5, 4, pool=3, seed=0, n_patches=100)
    Z = features.fit_transform(signals)
    assert Z.shape == (20, 15)
    assert (Z >= 0).all()
    again = pickle.loads(pickle.dumps(features))
    assert_array_equal(again.transform(signals), Z)
