"""Random features: laws of their errors, ridge on them, and the rules of transformers."""

import importlib
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest

import kernelcore as kc
from kernelcore.engine.cpu import dispatch as _dispatch
from kernelcore.features import (
    ArcCosineFeatures,
    ConvolutionalFeatures,
    FourierFeatures,
    NetworkFeatures,
    TangentFeatures,
    feature_error,
    ridge_features,
)
from kernelcore.linalg import blas as _blas

FAMILIES = {
    "Gaussian": FourierFeatures(kc.Gaussian(2.0)),
    "Gaussian, cos": FourierFeatures(kc.Gaussian(2.0), kind="cos"),
    "Gaussian, orthogonal": FourierFeatures(kc.Gaussian(2.0), orthogonal=True),
    "Laplacian": FourierFeatures(kc.Laplacian(3.0)),
    "Laplacian, orthogonal": FourierFeatures(kc.Laplacian(3.0), orthogonal=True),
    "Laplacian, sizes": FourierFeatures(kc.Laplacian(6.0, norm=1)),
    "Cauchy": FourierFeatures(kc.Cauchy(3.0)),
    "Cauchy, cos": FourierFeatures(kc.Cauchy(3.0), kind="cos"),
    "Matern 0.3": FourierFeatures(kc.Matern(0.3, 3.0)),
    "Matern 1.5": FourierFeatures(kc.Matern(1.5, 3.0)),
    "Matern 4.2, orthogonal": FourierFeatures(kc.Matern(4.2, 3.0), orthogonal=True),
    "arc-cosine 0": ArcCosineFeatures(0),
    "arc-cosine 1": ArcCosineFeatures(1),
    "arc-cosine 2": ArcCosineFeatures(2),
    "arc-cosine 3": ArcCosineFeatures(3),
    "arc-cosine 0, sphere": ArcCosineFeatures(0, weights="sphere"),
    "arc-cosine 2, sphere": ArcCosineFeatures(2, weights="sphere"),
    "arc-cosine 1, orthogonal": ArcCosineFeatures(1, orthogonal=True),
    "network": NetworkFeatures(b_std=0.5),
    "network, Gelu": NetworkFeatures(kc.Gelu(), w_std=1.4, b_std=0.5),
    "network, LeakyRelu": NetworkFeatures(kc.LeakyRelu(0.2, shift=0.3)),
    "tangent": TangentFeatures(),
    "tangent, first": TangentFeatures(layers="first", b_std=0.3),
    "tangent, second": TangentFeatures(layers="second", b_std=0.3),
    "tangent, normal": TangentFeatures(readout="normal"),
    "tangent, Gelu": TangentFeatures(activation=kc.Gelu(), w_std=1.3, b_std=0.2),
    "tangent, Elu": TangentFeatures(activation=kc.Elu(shift=0.4), b_std=0.2),
    "convolution": ConvolutionalFeatures(),
    "convolution, pooled": ConvolutionalFeatures(FourierFeatures(kc.Gaussian(2.0)), 2, 3),
    "convolution, global": ConvolutionalFeatures(NetworkFeatures(kc.Gelu()), 3, 5),
}
SIZES = 2 ** np.arange(6, 14)
ONE_OF_EACH = [
    FourierFeatures(n_features=40, seed=0),
    FourierFeatures(n_features=41, kind="cos", seed=0),
    ArcCosineFeatures(2, 40, seed=0),
    NetworkFeatures(kc.Tanh(), 40, b_std=0.1, seed=0),
    TangentFeatures(7, b_std=0.1, seed=0),
    ConvolutionalFeatures(ArcCosineFeatures(1, 9), 2, 1, seed=0),
    ConvolutionalFeatures(TangentFeatures(5, b_std=0.1), 3, 2, seed=0),
]
NAMES = [f"{type(f).__name__}-{k}" for k, f in enumerate(ONE_OF_EACH)]


def copy(features, n=None, **params):
    """The same with other parameters; n: its size, whatever that is called."""
    given = features.get_params(deep=False) | params
    if n is not None and isinstance(features, ConvolutionalFeatures):
        given["features"] = copy(given["features"] or NetworkFeatures(), n)
    elif n is not None:
        given["width" if isinstance(features, TangentFeatures) else "n_features"] = int(n)
    return type(features)(**given)


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(7).standard_normal((12, 5))


# ---- waves


@pytest.mark.parametrize("level", _dispatch.built_levels("waves"))
def test_waves_against_longdouble(level, dtype, rng):
    # Reduction and polynomials each round a few times; the header promises 3 u in all.
    if level not in _dispatch.machine_levels():
        pytest.skip(f"this machine does not run {level}")
    driver = __import__(f"kernelcore._cpu.waves_{level}", fromlist=["waves"])
    u = np.finfo(dtype).eps / 2
    for size in (1e-3, 1.0, 1e3, 2.0**20):
        z = (size * rng.uniform(-1, 1, (3, 1003))).astype(dtype)
        both, phase = np.zeros((3, 2006), dtype), rng.uniform(0, 6, 1003).astype(dtype)
        both[:, :1003] = z
        driver.cosines_and_sines(both, 1.0)
        exact = z.astype(np.longdouble)
        assert np.abs(both[:, :1003] - np.cos(exact)).max() < 3 * u
        assert np.abs(both[:, 1003:] - np.sin(exact)).max() < 3 * u
        shifted = z.copy()
        driver.shifted_cosines(shifted, phase, 0.5)
        assert np.abs(shifted - np.cos((z + phase).astype(np.longdouble)) / 2).max() < 1.5 * u
    far = np.array([[1e30, -1e30, 0, 0]], dtype)
    driver.cosines_and_sines(far, 1.0)
    assert (np.abs(far) <= 1 + 4 * u).all()


# ---- errors


@pytest.mark.parametrize("name", FAMILIES)
def test_error_falls_as_the_root_of_the_size(name, points):
    # Root mean square over 144 entries and 24 draws: known to about 5 % at each of 8 sizes over
    # seven octaves, so the slope to 0.05/(sqrt(8) 1.6) = 0.02.
    rms = []
    for n in SIZES:
        features = copy(FAMILIES[name], n, seed=np.random.default_rng(int(n)))
        want = features.fit(points).kernel_(points)
        errors = [features.fit(points).gram(points) - want for _ in range(24)]
        rms.append(np.sqrt(np.mean(np.square(errors))))
    slope = np.polyfit(np.log(SIZES), np.log(rms), 1)[0]
    assert abs(slope + 0.5) < 0.1, slope


@pytest.mark.parametrize("name", FAMILIES)
def test_errors_are_those_of_theory_and_without_bias(name, points):
    error = feature_error(copy(FAMILIES[name], 256), points, 400)
    # 78 entries, 400 draws: under normal errors the largest ratio is below 4.6 but once in 3,000.
    assert error.bias < 4.6
    if name.endswith("orthogonal"):
        assert error.rms < 1.02 * error.theory_rms  # independent ones are as good, at most
    elif np.isnan(error.theory_rms):
        assert name in ("network, LeakyRelu", "tangent, Elu") or name.startswith("convolution")
    else:
        # Orders above 1 have heavy tails: the variance of a square is that of an 8n-th power.
        loose = 0.3 if name.startswith(("arc-cosine 2", "arc-cosine 3")) else 0.06
        assert abs(error.rms / error.theory_rms - 1) < loose


def test_bounds_of_the_largest_error(points):
    for name, finite in (("Gaussian", True), ("Cauchy", True), ("Laplacian", False)):
        error = feature_error(copy(FAMILIES[name], 2000), points, 50)
        assert error.rms < error.sup < error.union_bound < error.uniform_bound
        assert np.isfinite(error.uniform_bound) == finite
    # The bound states 1/2 at the e that is returned: m = 1000, d = 5, E|w|^2 = 5/4.
    e = feature_error(copy(FAMILIES["Gaussian"], 2000), points, 2).uniform_bound
    square = ((points[:, None] - points) ** 2).sum(-1).max()
    probability = 2**8 * (5 / 4) * square / e**2 * np.exp(-1000 * e**2 / 28)
    assert abs(probability - 0.5) < 1e-9
    assert np.isnan(feature_error(FAMILIES["Gaussian, cos"], points, 2).uniform_bound)
    same = np.zeros((3, 5))
    assert feature_error(FAMILIES["Gaussian"], same, 2).uniform_bound == 0


def test_orthogonal_features_are_better_for_the_gaussian(rng):
    x = rng.standard_normal((20, 8))
    one = feature_error(FourierFeatures(kc.Gaussian(3.0), 16), x, 400)
    other = feature_error(FourierFeatures(kc.Gaussian(3.0), 16, orthogonal=True), x, 400)
    assert other.rms < 0.7 * one.rms


def test_orthogonal_frequencies_are_orthogonal_and_have_the_law(rng):
    x = rng.standard_normal((1, 6))
    w = FourierFeatures(kc.Gaussian(1.0), 4000, orthogonal=True, seed=0).fit(x).weights_
    for start in (0, 6, 1992):
        block = w[start : start + 6]
        off = block @ block.T
        assert np.abs(off - np.diag(np.diag(off))).max() < 1e-12
    # Squares of norms are chi-squared with 6 degrees: mean 6, variance 12.
    squares = (w**2).sum(1)
    assert abs(squares.mean() - 6) < 4 * np.sqrt(12 / 2000)
    assert abs(squares.var() - 12) < 1.5


def test_the_diagonal_of_cos_sin_is_one(dtype, rng):
    x = (10 * rng.standard_normal((50, 9))).astype(dtype)
    for kernel in (kc.Gaussian(1.0), kc.Laplacian(1.0), kc.Cauchy(1.0), kc.Matern(2.5, 1.0)):
        z = FourierFeatures(kernel, 1000, seed=0).fit_transform(x)
        # Each of 500 terms (3 u twice) and their sum in another precision
        square = (z.astype(np.float64) ** 2).sum(1)
        assert np.abs(square - 1).max() < 12 * np.finfo(dtype).eps


def test_the_limits_are_kernels_of_the_package(points):
    relu = kc.Sequential(kc.Dense(1.3, 0.2), kc.Relu(), kc.Dense())
    assert NetworkFeatures(w_std=1.3, b_std=0.2).fit(points).kernel_ == relu.nngp
    assert TangentFeatures().fit(points).kernel_ == kc.presets.mlp(1).ntk
    net = kc.presets.mlp(1, kc.Erf(), w_std=1.3, b_std=0.2)
    fitted = TangentFeatures(3, kc.Erf(), w_std=1.3, b_std=0.2).fit(points)
    assert fitted.kernel_ == net.ntk
    terms = net.ntk.terms(points)
    for layers, want in (("first", terms[0]), ("second", terms[1])):
        part = copy(fitted, layers=layers).fit(points).kernel_
        np.testing.assert_allclose(part(points), want, rtol=1e-12)
    assert FourierFeatures().fit(points).kernel_ == kc.Gaussian(1.0)
    assert ArcCosineFeatures(2).fit(points).kernel_ == kc.ArcCosine(2)


@pytest.mark.parametrize(("patch", "pool"), [(1, 1), (2, 3), (4, 1), (3, 5), (5, 5), (5, 2)])
def test_convolutional_features_are_sums_over_patches(patch, pool, dtype, rng):
    x = rng.standard_normal((40, 5)).astype(dtype)
    units = TangentFeatures(4, b_std=0.2)
    features = ConvolutionalFeatures(units, patch, pool, seed=3).fit(x)
    z = features.transform(x)
    each = copy(units, seed=3).fit(x[:, :patch])
    circular = np.hstack([x, x])
    maps = [each.transform(np.ascontiguousarray(circular[:, k : k + patch])) for k in range(5)]
    blocks = [sum(maps[(k + s) % 5] for s in range(pool)) / (5 * pool) ** 0.5 for k in range(5)]
    # Of a mean of w maps the roundings of the parts, whatever their order.
    close = {"rtol": 0, "atol": 20 * np.finfo(dtype).eps * np.abs(z).max()}
    if pool == 5:
        np.testing.assert_allclose(z, 5**0.5 * blocks[0], **close)
    else:
        np.testing.assert_allclose(z, np.hstack(blocks), **close)
    assert features.kernel_ == kc.CyclicConvolution(patch, pool, each.kernel_)


def test_parameters_of_features_of_features(points):
    features = ConvolutionalFeatures(FourierFeatures(n_features=6), 2)
    assert features.get_params()["features__n_features"] == 6
    assert "features__n_features" not in features.get_params(deep=False)
    assert features.set_params(features__n_features=8, pool=5) is features
    assert features.fit(points).n_features_out_ == 8
    assert ConvolutionalFeatures().fit(points).kernel_.patch == 3


def test_tangent_features_are_the_gradient(rng):
    # Against finite differences of the network itself.
    x = rng.standard_normal((3, 4))
    features = TangentFeatures(6, kc.Gelu(), w_std=1.3, b_std=0.4, readout="normal", seed=0).fit(x)
    w, a, b = features.weights_ / (1.3 / 2), features.readout_, features.biases_ / 0.4
    theta = np.concatenate([np.hstack([w, b[:, None]]).ravel(), a, [0.0]])

    def network(theta):
        first, a, last = theta[:30].reshape(6, 5), theta[30:36], theta[36]
        h = 1.3 / 2 * x @ first[:, :4].T + 0.4 * first[:, 4]
        return 1.3 / np.sqrt(6) * kc.Gelu()(h) @ a + 0.4 * last

    e = 1e-6 * np.eye(37)
    want = np.array([(network(theta + s) - network(theta - s)) / 2e-6 for s in e]).T
    np.testing.assert_allclose(features.transform(x), want, atol=1e-8)


@pytest.mark.parametrize(
    "activation",
    [
        kc.Relu(), kc.LeakyRelu(0.2), kc.Abs(), kc.RectifiedPower(1), kc.RectifiedPower(3),
        kc.Elu(), kc.Selu(), kc.OneKink(0.1, (0.5, 1.0, 0.0), (0.2, 0.3, 0.1)), kc.Erf(),
        kc.Gelu(), kc.Sin(), kc.Cos(), kc.Exp(), kc.GaussianBump(), kc.PowerSeries((1, 2, 3, 4)),
        kc.Monomial(2), kc.Identity(), kc.Hermite(0), kc.Hermite(3), kc.Tanh(), kc.Sigmoid(),
        kc.Silu(), kc.Softplus(), kc.Step(), kc.Sign(), kc.RectifiedPower(0), kc.Relu(shift=0.3),
        kc.Elu(shift=0.3), kc.Tanh(shift=-0.2), kc.Hermite(2, shift=0.5),
    ],
    ids=repr,
)  # fmt: skip
def test_slopes_are_derivatives(activation, dtype):
    x = np.linspace(-2, 2, 38)
    want = (activation(x + 1e-6) - activation(x - 1e-6)) / 2e-6
    got = activation.derivative(x.astype(dtype))
    assert got.dtype == dtype
    # Differences: rounding 1e-16/1e-6 and curvature 1e-12, of values up to e^4.
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6 if dtype == "float32" else 1e-8)


SIMPLE = {"LeakyRelu": (0.2,), "PowerSeries": ((1, 2),)}
SIMPLE |= {name: (2,) for name in ("Hermite", "Monomial", "RectifiedPower")}


def test_every_activation_states_what_it_is():
    """Function, derivative, form and series: one that forgets any cannot be silently slower."""
    base = kc.activations._Activation
    for name in kc.activations.__all__:
        kind = getattr(kc, name)
        for fact in ("_phi", "_derivative", "_form", "_series"):
            assert getattr(kind, fact) is not getattr(base, fact), (kind, fact)
        if not kind._sampled and kind is not kc.Identity:  # which needs no series
            assert kind(*SIMPLE.get(name, ()))._series(1.0) is not None, (kind, "is sampled")


def test_a_derivative_of_ones_own(points):
    given = kc.Activation(np.sin)
    features = TangentFeatures(50, given, derivative=np.cos, seed=0)
    want = TangentFeatures(50, kc.Sin(), seed=0).fit_transform(points)
    np.testing.assert_allclose(features.fit_transform(points), want, rtol=1e-12)


# ---- the shape of inputs


@pytest.mark.parametrize("features", ONE_OF_EACH, ids=NAMES)
def test_dtypes_orders_threads_and_rows(features, dtype, rng, two_of_blas):
    x = rng.standard_normal((700, 6)).astype(dtype)
    z = copy(features).fit(x).transform(x)
    assert z.dtype == dtype
    assert z.flags.c_contiguous
    fitted = copy(features).fit(x)
    assert z.shape == (700, fitted.n_features_out_)
    np.testing.assert_array_equal(fitted.transform(x), z)  # the seed
    for n_threads in (1, 2, 3):
        np.testing.assert_array_equal(fitted.transform(x, n_threads=n_threads), z)
    np.testing.assert_array_equal(fitted.transform(np.asfortranarray(x)), z)
    frozen = x.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(fitted.transform(frozen), z)
    np.testing.assert_array_equal(copy(features).fit_transform(frozen), z)
    out = np.full_like(z, np.nan)
    assert fitted.transform(x, out=out) is out
    np.testing.assert_array_equal(out, z)
    # Products of other shapes may add in another order.
    close = {"rtol": 0, "atol": 50 * np.finfo(dtype).eps * np.abs(z).max()}
    np.testing.assert_allclose(fitted.transform(x[:1]), z[:1], **close)
    np.testing.assert_allclose(fitted.transform(x[::3]), z[::3], **close)
    assert fitted.transform(x[:0]).shape == (0, z.shape[1])
    np.testing.assert_allclose(fitted.gram(x[:9], x[5:20]), z[:9] @ z[5:20].T, rtol=1e-3)
    # Whatever the dtype that was fitted, the features are the same, rounded.
    other = copy(features).fit(x.astype(np.float64)).transform(x)
    assert other.dtype == dtype
    np.testing.assert_allclose(other, z, atol=1e-4 if dtype == np.float32 else 0)


def test_integers_and_lists_count_as_float64():
    fitted = FourierFeatures(n_features=10, seed=0).fit([[1, 2], [3, 4]])
    want = fitted.transform(np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(fitted.transform([[1, 2], [3, 4]]), want)
    np.testing.assert_array_equal(fitted.transform(np.array([[1, 2], [3, 4]], object)), want)
    assert fitted.weights_.dtype == np.float64


def test_seeds():
    x = np.ones((1, 3))
    draw = {s: FourierFeatures(seed=s).fit(x).weights_ for s in (0, 1)}
    assert (FourierFeatures(seed=0).fit(x).weights_ == draw[0]).all()
    assert (FourierFeatures(seed=np.int64(0)).fit(x).weights_ == draw[0]).all()
    assert (draw[0] != draw[1]).all()
    assert (FourierFeatures().fit(x).weights_ != FourierFeatures().fit(x).weights_).all()
    rng = np.random.default_rng(0)
    features = FourierFeatures(seed=rng)
    assert (features.fit(x).weights_ == draw[0]).all()
    assert (features.fit(x).weights_ != draw[0]).all()  # a generator goes on


@pytest.mark.parametrize("chunk", [1000, 5])
def test_gram_in_chunks(monkeypatch, points, chunk):
    from kernelcore.features import _transformer

    monkeypatch.setattr(_transformer, "chunk_rows", lambda columns: chunk)
    for features in ONE_OF_EACH:
        fitted = copy(features).fit(points)
        z, w = fitted.transform(points), fitted.transform(points[:7] + 1)
        np.testing.assert_allclose(fitted.gram(points), z @ z.T, rtol=1e-10)
        np.testing.assert_allclose(fitted.gram(points, points[:7] + 1), z @ w.T, rtol=1e-10)


def test_threads_of_the_product_are_put_back(two_of_blas):
    from threadpoolctl import threadpool_info

    def threads():
        return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

    before = threads()
    inside = []
    with _blas.one_thread(), _blas.one_thread():
        inside.append(min(threads()))
    assert inside == [1]
    assert threads() == before
    with pytest.raises(ZeroDivisionError):
        _blas.share(lambda start: 1 / 0, range(3), 2)
    assert threads() == before


@pytest.mark.parametrize("name", ["Gaussian", "Gaussian, cos", "arc-cosine 1", "network, Gelu"])
def test_memory_beyond_the_result(name, rng):
    x = rng.standard_normal((20_000, 20)).astype(np.float32)
    features = copy(FAMILIES[name], 500).fit(x)
    out = np.empty((20_000, 500), np.float32)
    features.transform(x[:300], out=out[:300])  # modules loaded
    tracemalloc.start()
    features.transform(x, out=out, n_threads=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # At most: the mask of a check of 1024 rows; of each thread some copies of a block of 128 rows.
    assert peak < 100_000 + (2 * 8 * 128 * 500 * 4 if name == "network, Gelu" else 0)


# ---- ridge


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((150, 4))
    return x, np.stack([np.sin(x[:, 0]), x[:, 1] * x[:, 2]], 1), rng.standard_normal((40, 4))


@pytest.mark.parametrize("n_features", [60, 400])
def test_ridge_in_primal_dual_and_kernel_form(regression, n_features):
    x, y, new = regression
    features = FourierFeatures(kc.Gaussian(2.0), n_features, seed=0).fit(x)
    z, z_new = features.transform(x), features.transform(new)
    want = z_new @ z.T @ np.linalg.solve(z @ z.T + 1e-2 * np.eye(150), y)
    for solver in ("primal", "dual", "auto"):
        fit = ridge_features(features, x, y, 1e-2, solver=solver)
        whole = ridge_features(None, z, y, 1e-2, solver=solver)
        smaller = "primal" if n_features < 150 else "dual"
        assert fit.solver == (smaller if solver == "auto" else solver)
        # Condition below 150/1e-2: rounding below 1e-11 or so.
        np.testing.assert_allclose(fit.predict(new), want, atol=1e-10)
        np.testing.assert_allclose(whole.predict(z_new), want, atol=1e-10)
        np.testing.assert_allclose(fit.coefficients, whole.coefficients, atol=1e-9)
        one = ridge_features(features, x, y[:, 1], 1e-2, solver=solver)
        assert one.coefficients.shape == (n_features,)
        np.testing.assert_allclose(one.predict(new), want[:, 1], atol=1e-10)
        assert repr(one).startswith("FeatureRidge(FourierFeatures(kernel=Gaussian(2.0), n_")


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_ridge_streams(regression, solver, monkeypatch):
    from kernelcore.features import _ridge, _transformer

    x, y, new = regression
    for features in (FourierFeatures(n_features=80, seed=0), TangentFeatures(20, seed=0)):
        features.fit(x)
        whole = ridge_features(features, x, y, 1e-2, solver=solver)
        with monkeypatch.context() as patch:
            for module in (_ridge, _transformer):
                patch.setattr(module, "chunk_rows", lambda columns: 7)
            parts = ridge_features(features, x, y, 1e-2, solver=solver)
            np.testing.assert_allclose(parts.coefficients, whole.coefficients, atol=1e-9)
            np.testing.assert_allclose(parts.predict(new), whole.predict(new), atol=1e-10)


def test_ridge_of_single_precision(regression):
    x, y, new = regression
    features = FourierFeatures(kc.Gaussian(2.0), 60, seed=0).fit(x)
    want = ridge_features(features, x, y, 1e-2).predict(new)
    for solver in ("primal", "dual"):
        fit = ridge_features(features, x.astype(np.float32), y, 1e-2, solver=solver)
        got = fit.predict(new.astype(np.float32))
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, atol=1e-3)


@pytest.mark.slow
def test_ridge_tends_to_kernel_ridge_and_its_norm(regression):
    """To first order in the error of the kernel, with one frequency in place of all.

    (k_z - k_z A^-1 K) A^-1 y for k(x, x') = cos(w.(x - x')): its variance over w, over as many
    frequencies as are drawn, is that of a prediction.
    """
    x, y, new = regression
    kernel, seeds = kc.Gaussian(2.0), 12
    A = kernel(x) + 0.1 * np.eye(150)
    alpha = np.linalg.solve(A, y[:, 0])
    want, norm = kernel(new, x) @ alpha, np.sqrt(alpha @ kernel(x) @ alpha)
    w = np.random.default_rng(9).standard_normal((4, 4000)) / 2.0
    weights = np.linalg.solve(A, kernel(x, new)).T
    one = sum(
        (wave(new @ w) - weights @ wave(x @ w)) * (alpha @ wave(x @ w)) for wave in (np.cos, np.sin)
    )
    covariance = np.cov(one)
    sizes, off = 2 ** np.arange(8, 13), []
    for n in sizes:
        fits = [
            ridge_features(FourierFeatures(kernel, int(n), seed=s).fit(x), x, y[:, 0], 0.1)
            for s in range(seeds)
        ]
        off.append(np.sqrt(np.mean([(f.predict(new) - want) ** 2 for f in fits])))
    # cos and sin of each frequency; predictions are correlated, so few of their squares count
    first_order = np.sqrt(np.trace(covariance) / 40 / (sizes / 2))
    free = seeds * np.trace(covariance) ** 2 / np.square(covariance).sum()
    error = np.sqrt(0.5 / free)  # relative, of a root of a mean of squares: 8 %
    assert abs(off[-1] / first_order[-1] - 1) < 4 * error
    # log off has that error at five sizes with a spread of 0.98 in log n; the second order, some
    # 50/n of the first, makes it steeper by up to 0.05
    slope = np.polyfit(np.log(sizes), np.log(off), 1)[0]
    assert abs(slope + 0.5) < 0.05 + 3 * error / (0.98 * np.sqrt(5))
    norms = np.array([f.norm for f in fits]) / norm
    assert abs(norms.mean() - 1) < 4 * norms.std(ddof=1) / np.sqrt(seeds) < 0.04


def test_ridge_of_tangent_features_is_the_linearised_network(regression):
    x, y, new = regression
    features = TangentFeatures(500, seed=0).fit(x)
    fit = ridge_features(features, x, y, 1e-2)
    assert fit.solver == "dual"
    k, k_new = features.gram(x), features.gram(new, x)
    want = k_new @ np.linalg.solve(k + 1e-2 * np.eye(150), y)
    np.testing.assert_allclose(fit.predict(new), want, atol=1e-9)


def test_bounded_coefficients(regression):
    x, y, _ = regression
    features = FourierFeatures(kc.Gaussian(2.0), 60, kind="cos", seed=0).fit(x)
    free = ridge_features(features, x, y, 1e-2)
    loose = ridge_features(
        features, x, y, 1e-2, bound=2 * 60**0.5 * np.abs(free.coefficients).max()
    )
    np.testing.assert_allclose(loose.coefficients, free.coefficients, atol=1e-5)
    z = features.transform(x)
    tight = ridge_features(features, x, y, 1e-2, bound=2.0)
    c, limit = tight.coefficients, 2.0 / 60**0.5
    assert tight.solver == "bounded"
    assert (np.abs(c) <= limit).all()
    assert (np.abs(c) == limit).any()
    # At the minimum the gradient is zero inside the box, and points out of it at its sides.
    gradient = z.T @ (z @ c - y) + 1e-2 * c
    scale = np.abs(z.T @ y).max()
    assert np.abs(gradient[np.abs(c) < limit]).max() < 1e-5 * scale
    assert (gradient * np.sign(c))[np.abs(c) == limit].max() < 1e-5 * scale


def test_a_bounded_fit_that_does_not_converge_says_so(monkeypatch, regression):
    import scipy.optimize

    x, y, _ = regression
    features = FourierFeatures(kc.Gaussian(2.0), 60, seed=0).fit(x)
    real = scipy.optimize.minimize

    def short(*given, options, **keywords):
        return real(*given, options=options | {"maxiter": 2}, **keywords)

    monkeypatch.setattr(scipy.optimize, "minimize", short)
    text = r"^the bounded fit did not converge: projected gradient .* after 2 iterations$"
    with pytest.warns(RuntimeWarning, match=text):
        ridge_features(features, x, y[:, 0], 1e-2, bound=5.0)


# ---- parameters and scikit-learn


def test_parameters_and_repr():
    features = FourierFeatures(kc.Gaussian(2.0), kind="cos", seed=3)
    assert repr(features) == "FourierFeatures(kernel=Gaussian(2.0), kind='cos', seed=3)"
    assert repr(TangentFeatures()) == "TangentFeatures()"
    assert features.get_params() == {
        "kernel": kc.Gaussian(2.0), "n_features": 1000, "kind": "cos", "orthogonal": False,
        "seed": 3,
    }  # fmt: skip
    assert features.set_params(n_features=5, seed=4) is features
    assert (features.n_features, features.seed) == (5, 4)


@pytest.mark.parametrize("features", ONE_OF_EACH, ids=NAMES)
def test_pickles(features, points):
    fitted = copy(features).fit(points)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(points), fitted.transform(points))


def test_without_scikit_learn(monkeypatch, points):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.exceptions", None)
    with pytest.raises(ValueError, match=r"^FourierFeatures must be fitted first: call fit\(X\)$"):
        FourierFeatures().transform(points)


@pytest.mark.parametrize("features", ONE_OF_EACH, ids=NAMES)
def test_scikit_learn(features, points):
    from sklearn import base
    from sklearn.exceptions import NotFittedError
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.utils.estimator_checks import check_estimator

    twin = base.clone(features)
    assert twin is not features
    assert repr(twin) == repr(features)
    with pytest.raises(NotFittedError):
        twin.transform(points)
    y = points[:, 0]
    pipe = make_pipeline(base.clone(features), Ridge(1e-2, fit_intercept=False)).fit(points, y)
    want = ridge_features(copy(features).fit(points), points, y, 1e-2).predict(points)
    np.testing.assert_allclose(pipe.predict(points), want, atol=1e-8)
    name = pipe.steps[0][0]
    grid = GridSearchCV(pipe, {f"{name}__seed": [0, 1]}, cv=2).fit(points, y)
    assert grid.best_params_.keys() == {f"{name}__seed"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*does not inherit from")
        warnings.filterwarnings(
            "ignore", category=importlib.import_module("sklearn.exceptions").SkipTestWarning
        )
        small = {"patch": 1, "pool": 1} if hasattr(features, "patch") else {}  # for one column
        check_estimator(copy(features, **small))


# ---- seeds by other names

SEEDED = [
    lambda **seed: kc.features.FourierFeatures(n_features=8, **seed),
    lambda **seed: kc.features.ArcCosineFeatures(n_features=8, **seed),
    lambda **seed: kc.features.NetworkFeatures(n_features=8, **seed),
    lambda **seed: kc.features.TangentFeatures(8, **seed),
    lambda **seed: kc.features.ConvolutionalFeatures(patch=2, **seed),
]


@pytest.mark.parametrize("make", SEEDED)
def test_a_seed_may_be_called_rng_or_random_state(make):
    from sklearn.base import clone

    X = np.linspace(-1, 1, 12).reshape(4, 3)
    want = make(seed=3).fit_transform(X)
    for name in ("rng", "random_state"):
        features = make(**{name: 3})
        assert features.get_params()["seed"] == 3
        assert name not in features.get_params()
        np.testing.assert_array_equal(features.fit_transform(X), want)
        np.testing.assert_array_equal(clone(features).fit_transform(X), want)
        features = make().set_params(**{name: 3})
        np.testing.assert_array_equal(features.fit_transform(X), want)
    drawn = [make(rng=np.random.default_rng(5)).fit_transform(X) for _ in range(2)]
    np.testing.assert_array_equal(*drawn)


def test_the_error_of_features_takes_a_generator():
    X = np.linspace(-1, 1, 12).reshape(4, 3)
    features = kc.features.FourierFeatures(n_features=8)
    a = kc.features.feature_error(features, X, rng=np.random.default_rng(0))
    assert a == kc.features.feature_error(features, X, seed=0)


# ---- ridges by leaving one out


@pytest.mark.parametrize("n_features", [30, 300])
def test_the_ridge_of_the_least_leave_one_out_error(regression, n_features, monkeypatch):
    from kernelcore.features import _path, _transformer

    x, y, new = regression
    features = FourierFeatures(kc.Gaussian(2.0), n_features, seed=0).fit(x)
    monkeypatch.setattr(_transformer, "chunk_rows", lambda columns: 40)
    fit = ridge_features(features, x, y, "loo")
    z, n = features.transform(x), len(x)

    def error(ridge):  # one fit without each point
        total = 0.0
        for i in range(n):
            rest = np.arange(n) != i
            a = z[rest].T @ z[rest] + ridge * np.eye(n_features)
            total += np.square(y[i] - z[i] @ np.linalg.solve(a, z[rest].T @ y[rest])).mean()
        return total / n

    least = error(fit.ridge)
    for times in (0.3, 3.0):
        assert error(times * fit.ridge) > least
    given = ridge_features(features, x, y, fit.ridge)
    np.testing.assert_allclose(fit.predict(new), given.predict(new), atol=1e-8)
    assert fit.solver == given.solver == ("primal" if n_features < n else "dual")
    if fit.solver == "primal":
        path = _path.FeaturePath(lambda: [(slice(None), z)], y, n_features)
        assert path.loo_error(np.array([fit.ridge]))[0] == pytest.approx(least, rel=1e-9)
        assert path.best() == pytest.approx((fit.ridge, least))


def test_weights_of_leave_one_out_in_the_primal_are_those_of_the_dual(rng):
    from kernelcore.features._path import FeaturePath

    z, y = rng.standard_normal((40, 6)), rng.standard_normal((40, 2))
    for weights, copies in ((rng.uniform(0.2, 3, 40), None), (None, None)):
        for many in (copies, weights):
            path = FeaturePath(
                lambda: [(slice(0, 25), z[:25]), (slice(25, 40), z[25:])], y, 6, weights, many
            )
            dual = kc.solvers.RidgePath(
                z @ z.T, y, sample_weight=weights, copies=np.ones(40) if many is None else many
            )
            for ridge in (0.01, 2.0):
                np.testing.assert_allclose(path.left_out(ridge), dual.loo(ridge), atol=1e-9)
                np.testing.assert_allclose(
                    z @ path.coefficients(ridge), dual.fitted(ridge), atol=1e-10
                )
                assert path.loo_error(np.array([ridge]))[0] == pytest.approx(dual.loo_error(ridge))


def test_features_of_zero_have_a_ridge():
    fit = ridge_features(None, np.zeros((5, 2)), np.ones(5), "loo")
    np.testing.assert_array_equal(fit.predict(np.zeros((2, 2))), 0.0)


@pytest.mark.parametrize("kernel", [
    kc.Gaussian(0.7), kc.Laplacian(1.3), kc.Laplacian(0.8, norm=1), kc.Cauchy(2.0),
    kc.Matern(1.5, 0.6),
], ids=repr)  # fmt: skip
def test_spectral_densities_are_fourier_transforms_of_their_kernels(kernel):
    """In one dimension by quadrature; in two, that the rays of p carry the mass of its samples."""
    from scipy.integrate import quad

    p = kc.features.SpectralDensity(kernel, 1)
    for x in (0.3, 1.1):
        whole = 2 * quad(lambda w: p([[w]])[0], 0, np.inf, weight="cos", wvar=x, limlst=200)[0]
        np.testing.assert_allclose(whole, kernel([[0.0]], [[x]])[0, 0], atol=2e-7)
    p, n = kc.features.SpectralDensity(kernel, 2), 20_000
    w = p.sample(n, seed=0)
    r = 1 / kernel.lengthscale
    grid, weights = np.polynomial.legendre.leggauss(40)
    square = np.array([(a * r, b * r) for a in grid for b in grid])
    share = r * r * np.outer(weights, weights).ravel() @ p(square)
    found = (np.abs(w) < r).all(1).mean()
    assert abs(found - share) < 5 * np.sqrt(share / n) + 1e-3
