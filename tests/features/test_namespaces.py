"""Random features of rows on a device: draws, features and fits of the same rows on the host."""

import elsewhere
import numpy as np
import pytest
from elsewhere import back, device, library, there  # noqa: F401  -- fixtures
from gpu import standin
from numpy.testing import assert_allclose, assert_array_equal

import kernelcore as kc
from kernelcore.features import (
    ArcCosineFeatures,
    ConvolutionalFeatures,
    FourierFeatures,
    NetworkFeatures,
    TangentFeatures,
    _transformer,
    ridge_features,
)

N, D = 25, 6
SMALL = NetworkFeatures(n_features=7)
MAKE = {
    "cos_sin": lambda: FourierFeatures(kc.Gaussian(1.0), 20, seed=0),
    "cos": lambda: FourierFeatures(kc.Laplacian(1.0), 20, kind="cos", seed=0),
    "orthogonal": lambda: FourierFeatures(n_features=20, orthogonal=True, seed=0),
    "Relu": lambda: NetworkFeatures(n_features=20, seed=0),
    "Tanh": lambda: NetworkFeatures(kc.Tanh(), 20, b_std=0.3, seed=0),
    "step": lambda: ArcCosineFeatures(0, 20, seed=0),
    "cube": lambda: ArcCosineFeatures(3, 20, weights="sphere", seed=0),
    "tangent": lambda: TangentFeatures(9, b_std=0.2, seed=0),
    "first": lambda: TangentFeatures(9, kc.Tanh(), layers="first", seed=0),
    "second": lambda: TangentFeatures(9, layers="second", readout="normal", seed=0),
    "patches": lambda: ConvolutionalFeatures(SMALL, patch=2, pool=1, seed=0),
    "windows": lambda: ConvolutionalFeatures(SMALL, patch=2, pool=3, seed=0),
    "pooled": lambda: ConvolutionalFeatures(SMALL, patch=2, pool=D, seed=0),
}


@pytest.fixture(params=MAKE)
def pair(request, rng, dtype):
    """Features that were fitted on the host and on the device, and rows."""
    X = rng.standard_normal((N, D)).astype(dtype)
    return MAKE[request.param]().fit(X), MAKE[request.param]().fit(there(X)), X


def bound(features, X):
    """The rounding of D products in an angle or unit, of 3 u in a wave, and of powers.

    Features have a derivative in each product that is below their size or that of the weights.
    """
    most = np.abs(X).max() * np.abs(features.weights_).sum(1).max()
    return 8 * D * float(np.finfo(X.dtype).eps) * (1 + float(most))


def test_weights_are_drawn_on_the_host_and_go_to_the_rows(pair):
    host, there_, X = pair
    assert_array_equal(back(there_.weights_), host.weights_)
    assert back(there_.weights_).dtype == X.dtype


def test_features(pair):
    host, there_, X = pair
    want = host.transform(X)
    got = back(there_.transform(there(X)))
    assert got.dtype == want.dtype
    assert_allclose(got, want, atol=bound(host, X) * np.abs(want).max())
    other = X.astype(np.float64 if X.dtype == np.float32 else np.float32)
    assert back(there_.transform(there(other))).dtype == other.dtype


def test_inner_products(pair, monkeypatch):
    monkeypatch.setattr(_transformer, "chunk_rows", lambda columns: 10)  # several chunks
    host, there_, X = pair
    Z = host.transform(X).astype(float)
    near = {"atol": 4 * bound(host, X) * np.square(Z).sum(1).max()}
    assert_allclose(back(there_.gram(there(X))), Z @ Z.T, **near)
    assert_allclose(back(there_.gram(there(X), there(X[:4]))), Z @ Z[:4].T, **near)


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("column", [False, True])
def test_ridge(pair, rng, solver, column):
    host, there_, X = pair
    y = rng.standard_normal(N if column else (N, 2)).astype(X.dtype)
    # A ridge of the size of the kernel keeps the condition below 1 + N.
    Z = back(there_.transform(there(X))).astype(float)
    ridge = float(np.square(Z).sum(1).max())
    fit = ridge_features(there_, there(X), there(y), ridge, solver=solver)
    want = np.linalg.solve(Z.T @ Z + ridge * np.eye(Z.shape[1]), Z.T @ y)
    eps = float(np.finfo(X.dtype).eps)
    # The dual computes features of float64, the primal those of the dtype.
    near = {"atol": (bound(host, X) + 8 * N * eps) * (1 + N) * np.abs(y).sum() / np.sqrt(ridge)}
    assert_allclose(back(fit.coefficients), want, **near)
    assert back(fit.coefficients).dtype == np.float64
    found = back(fit.predict(there(X)))
    assert found.dtype == X.dtype
    assert_allclose(found, Z @ want, atol=near["atol"] * np.sqrt(ridge))
    assert_allclose(back(fit.norm), np.sqrt(np.square(want).sum(0)), **near)


def test_ridge_on_features_themselves(rng):
    Z, y = rng.standard_normal((N, 4)), rng.standard_normal(N)
    fit = ridge_features(None, there(Z), there(y), 0.5)
    want = np.linalg.solve(Z.T @ Z + 0.5 * np.eye(4), Z.T @ y)
    assert_allclose(back(fit.coefficients), want, atol=1e-13)
    assert_allclose(back(fit.predict(there(Z))), Z @ want, atol=1e-12)


PARAMETERS = {
    "Activation": (lambda x: x * x,),
    "Hermite": (3,),
    "LeakyRelu": (0.1,),
    "Monomial": (3,),
    "OneKink": (0.0, (0.0, 1.0, 0.0), (-1.0, 0.0, 1.0)),
    "PowerSeries": ((0.5, 1.0, 0.5),),
    "RectifiedPower": (2,),
}
NOT_STANDARD = {"Erf": "erf", "Gelu": "ndtr"}


@pytest.mark.parametrize("shift", [0.0, 0.3])
@pytest.mark.parametrize("name", kc.layers.activations.__all__)
def test_activations(name, shift, rng, dtype):
    x = np.append(rng.standard_normal(20), 0.0).astype(dtype)
    given = {} if name == "OneKink" else {"shift": shift}
    activation = getattr(kc, name)(*PARAMETERS.get(name, ()), **given)
    functions = [activation] if name == "Activation" else [activation, activation.derivative]
    for function in functions:
        if not elsewhere.Now.cupy and ((name, function) == ("Erf", activation) or name == "Gelu"):
            with pytest.raises(TypeError, match=f"of a library with {NOT_STANDARD[name]}: got"):
                function(there(x))
            continue
        got = back(function(there(x)))
        assert got.dtype == dtype
        eps = 8 * float(np.finfo(dtype).eps)
        assert_allclose(got, function(x), atol=eps, rtol=eps)


@pytest.mark.parametrize("library", ["array_api_strict"], indirect=True)
def test_a_backend_may_have_what_the_library_lacks(device, rng, monkeypatch):  # noqa: F811
    import scipy.special

    from kernelcore import engine

    backend, seen = engine.BACKENDS[-1], []
    for name in ("erf", "ndtr"):
        function = getattr(scipy.special, name)
        monkeypatch.setattr(backend, name, lambda x, f=function: there(f(back(x))), raising=False)
    x = rng.standard_normal(9)
    for activation in (kc.Erf(), kc.Gelu()):
        assert_allclose(back(activation(there(x))), activation(x), atol=1e-15)

    class Waves:
        @staticmethod
        def cosines_and_sines(out, scale):
            seen.append("both")
            engine.cpu.loops.cosines_and_sines(out._array, scale)

        @staticmethod
        def shifted_cosines(out, phases, scale):
            seen.append("one")
            engine.cpu.loops.shifted_cosines(out._array, back(phases), scale)

    monkeypatch.setattr(backend, "loops", Waves, raising=False)
    X = rng.standard_normal((N, D))
    for name in ("cos_sin", "cos"):
        features = MAKE[name]().fit(there(X))
        want = MAKE[name]().fit(X).transform(X)
        assert_array_equal(back(features.transform(there(X))), want)
    assert seen == ["both", "one"]


@pytest.mark.parametrize("library", ["CuPy"], indirect=True)
def test_waves_run_in_the_driver(pair):
    """On products that are NumPy's on both sides, so that all bits are those of the host."""
    host, there_, X = pair
    if isinstance(host, FourierFeatures):
        assert_array_equal(back(there_.transform(there(X))), host.transform(X))
    waves = [name for _, name in standin.State.launched if name.startswith("waves")]
    kinds = {"cos_sin": "cosines_and_sines", "cos": "shifted_cosines"}
    kind = getattr(host, "kind", None)
    assert waves == ([f"waves_{kinds[kind]}_f{8 * X.itemsize}"] if kind else [])
