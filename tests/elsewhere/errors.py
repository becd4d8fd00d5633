"""Arrays of other libraries, and of two places."""

import types

import array_api_strict
import numpy as np
import sklearn
from messages import Case, where

import kernelcore as kc
from elsewhere import attached, there

EYE, ONES = np.eye(3), np.ones(3)
X = np.arange(6.0).reshape(3, 2)
KERNEL = kc.Laplacian(1.0)
DEVICE = "array_api_strict.Array on array_api_strict.Device('device1')"
HOST = "array_api_strict.Array on array_api_strict.Device('CPU_DEVICE')"
NUMPY = "numpy.ndarray on the host"
MOVE = "; move one of them"
READ = (
    "must be in the memory of the host: got array_api_strict.Array on a device; copy it to a NumPy "
    "array"
)
ridge, descend = kc.solvers.ridge, kc.solvers.kernel_gradient_descent
NET = kc.presets.mlp(1)
FOURIER = kc.features.FourierFeatures(n_features=4, seed=0)


def with_device(call):
    """The call, where arrays on the device have a backend."""

    def refused():
        with attached():
            call()

    return refused


def dispatching(call):
    """The same, and scikit-learn leaves arrays where they are."""

    def refused():
        with sklearn.config_context(array_api_dispatch=True):
            call()

    return where(with_device(refused), SCIPY_ARRAY_API="1")


def network():
    """A network whose parameters are on the device."""
    f = NET.sample(3, 0, shape=2)
    return f.at(there(f.theta))


def on(kind):
    return kc.features.FourierFeatures(n_features=4, seed=0).fit(kind)


class Half:
    """An array of a library, in a dtype that solvers do not take."""

    dtype, shape, device = "library.float16", (3, 3), "cpu"

    def __array_namespace__(self, api_version=None):
        names = {name: f"library.{name}" for name in ("float32", "float64")}
        return types.SimpleNamespace(__name__="library", isdtype=lambda dtype, kind: False, **names)


CASES = [
    # Where arguments are.
    Case(
        TypeError,
        f"y must be where K is, {DEVICE}: got {NUMPY}{MOVE}",
        lambda: ridge(there(EYE), ONES),
    ),
    Case(
        TypeError,
        f"y must be where K is, {DEVICE}: got {HOST}{MOVE}",
        lambda: kc.solvers.conjugate_gradients(there(EYE), array_api_strict.asarray(ONES)),
    ),
    Case(
        TypeError,
        f"initial must be where y is, {DEVICE}: got {NUMPY}{MOVE}",
        lambda: kc.solvers.conjugate_gradients(there(EYE), there(ONES), initial=ONES),
    ),
    Case(TypeError, f"y {READ}", with_device(lambda: ridge(EYE, there(ONES)))),
    Case(TypeError, f"X {READ}", with_device(lambda: NET.sample(3, 0, shape=2)(there(X)))),
    Case(
        TypeError,
        f"X must be where theta is, {DEVICE}: got {NUMPY}{MOVE}",
        with_device(lambda: network()(X)),
    ),
    Case(
        TypeError,
        f"direction must be where X is, {DEVICE}: got {NUMPY}{MOVE}",
        with_device(lambda: network().jvp(there(X), np.ones(9))),
    ),
    Case(
        TypeError,
        f"theta {READ}",
        with_device(
            lambda: kc.networks.train(network(), there(X), there(ONES), method="flow", time=1.0)
        ),
    ),
    Case(
        TypeError,
        f"K_test must be where K is, {DEVICE}: got {NUMPY}{MOVE}",
        lambda: kc.solvers.gradient_flow(there(EYE), there(ONES), 1.0, K_test=EYE),
    ),
    Case(
        TypeError,
        f"nngp must be where ntk is, {DEVICE}: got {NUMPY}{MOVE}",
        lambda: kc.solvers.ensemble_flow(there(EYE), EYE, there(ONES), 1.0),
    ),
    Case(
        TypeError,
        f"sample_weight must be where K is, {DEVICE}: got {NUMPY}{MOVE}",
        lambda: kc.solvers.RidgePath(there(EYE), there(ONES), sample_weight=ONES),
    ),
    Case(
        TypeError,
        f"x must be where K is, {DEVICE}: got {NUMPY}{MOVE}",
        with_device(lambda: kc.GramOperator(KERNEL, there(X)) @ ONES),
    ),
    Case(
        TypeError,
        f"scale must be where X is, {DEVICE}: got {NUMPY}{MOVE}",
        with_device(lambda: kc.GramOperator(KERNEL, there(X), scale=ONES)),
    ),
    Case(
        TypeError,
        f"centres must be where X is, {DEVICE}: got {NUMPY}{MOVE}",
        with_device(lambda: kc.solvers.nystrom_ridge(KERNEL, there(X), there(ONES), centres=X)),
    ),
    Case(
        TypeError,
        f"sample_weight must be where X is, {DEVICE}: got {NUMPY}{MOVE}",
        with_device(lambda: kc.solvers.eigenpro(KERNEL, there(X), there(ONES), sample_weight=ONES)),
    ),
    Case(
        TypeError,
        f"X must be where weights_ is, {DEVICE}: got {NUMPY}{MOVE}",
        lambda: on(there(X)).transform(X),
    ),
    Case(TypeError, f"X {READ}", with_device(lambda: on(X).transform(there(X)))),
    Case(
        TypeError,
        f"X must be where coefficients is, {DEVICE}: got {NUMPY}{MOVE}",
        lambda: kc.features.ridge_features(None, there(X), there(ONES), 1.0).predict(X),
    ),
    # What only the host has.
    Case(TypeError, f"K {READ}", with_device(lambda: kc.spectrum.empirical(there(EYE)))),
    Case(
        TypeError,
        f"K {READ}",
        with_device(lambda: kc.spectrum.empirical(kc.GramOperator(KERNEL, there(X)))),
    ),
    Case(TypeError, f"X {READ}", with_device(lambda: kc.features.feature_error(FOURIER, there(X)))),
    Case(
        TypeError,
        "K must be a NumPy array to be overwritten: got Array",
        lambda: ridge(there(EYE), there(ONES), overwrite_K=True),
    ),
    Case(
        ValueError,
        "out must not be given with X of another library than NumPy: got ndarray",
        lambda: on(there(X)).transform(there(X), out=np.empty((3, 4))),
    ),
    Case(
        ValueError,
        "bound must not be given with X of another library than NumPy: got float",
        lambda: kc.features.ridge_features(None, there(X), there(ONES), 1.0, bound=2.0),
    ),
    Case(
        TypeError,
        f"x must be of a library with erf: got {DEVICE}; copy it to NumPy",
        lambda: kc.Erf()(there(ONES)),
    ),
    # Estimators.
    Case(
        TypeError,
        "X must be in the memory of the host, or scikit-learn dispatch arrays: got "
        f"{DEVICE}; call sklearn.set_config(array_api_dispatch=True)",
        with_device(lambda: kc.KernelRegressor(KERNEL).fit(there(X), there(ONES))),
    ),
    Case(
        TypeError,
        f"y must be where X is, {DEVICE}: got {NUMPY}{MOVE}",
        dispatching(lambda: kc.KernelRegressor(KERNEL).fit(there(X), ONES)),
    ),
    Case(
        TypeError,
        f"X must be where the fit is, {DEVICE}: got {NUMPY}{MOVE}",
        dispatching(lambda: kc.KernelRegressor(KERNEL).fit(there(X), there(ONES)).predict(X)),
    ),
    Case(
        TypeError,
        f"X {READ}",
        dispatching(lambda: kc.KernelRegressor(KERNEL).fit(X, ONES).predict(there(X))),
    ),
    Case(
        TypeError,
        f"noise_variance must be where X is, {DEVICE}: got {NUMPY}{MOVE}",
        dispatching(lambda: kc.GaussianProcess(KERNEL, ONES).fit(there(X), there(ONES))),
    ),
    Case(
        ValueError,
        "class_weight must not be given with X of another library than NumPy: got str",
        dispatching(
            lambda: kc.KernelClassifier(KERNEL, class_weight="balanced").fit(
                there(X), there(np.array([0.0, 1.0, 1.0]))
            )
        ),
    ),
    Case(
        ValueError,
        "y must have at least two classes: got one class, 1.0",
        dispatching(lambda: kc.KernelClassifier(KERNEL).fit(there(X), there(ONES))),
    ),
    # Their numbers.
    Case(
        TypeError,
        "K must be real, got complex128; pass K.real or its magnitude",
        lambda: ridge(there(EYE + 1j), there(ONES)),
    ),
    Case(
        TypeError,
        "K must be float32 or float64, got float16; convert it with K.astype",
        lambda: ridge(Half(), ONES),
    ),
    Case(
        ValueError,
        "K must be finite: K[1, 2] is nan",
        lambda: ridge(there(np.where(np.arange(9).reshape(3, 3) == 5, np.nan, EYE)), there(ONES)),
    ),
    Case(
        ValueError,
        "K must be symmetric: K[0, 2] and K[2, 0] differ by 1; pass (K + K.T) / 2 if that is "
        "rounding",
        lambda: ridge(there(np.where(np.arange(9).reshape(3, 3) == 2, 1.0, EYE)), there(ONES)),
    ),
    Case(
        ValueError,
        "y must be finite: got inf",
        lambda: ridge(there(EYE), there(np.array([1.0, np.inf, 1.0]))),
    ),
    Case(
        ValueError,
        "y must have one row per row of K, 3, and shape (n,) or (n, r): got shape (2,)",
        lambda: ridge(there(EYE), there(np.ones(2))),
    ),
    Case(
        ValueError,
        "sample_weight must be positive: got 0.0",
        lambda: kc.solvers.RidgePath(there(EYE), there(ONES), sample_weight=there(0 * ONES)),
    ),
    Case(
        ValueError,
        "y must be -1 or 1 for loss 'logistic': got 3.0",
        lambda: descend(there(EYE), there(3 * ONES), loss="logistic", iterations=1),
    ),
    Case(
        ValueError,
        "K must be positive semi-definite and not zero: its diagonal entry 1 is -1.0",
        lambda: kc.solvers.randomly_pivoted_cholesky(there(np.diag([1.0, -1.0, 1.0])), rank=2),
    ),
    Case(
        np.linalg.LinAlgError,
        "K must be positive semi-definite: its smallest eigenvalue is -1, its largest 1",
        lambda: kc.solvers.RidgePath(there(np.diag([1.0, -1.0, 1.0])), there(ONES)),
    ),
    Case(ValueError, "X must have shape (n, d): got shape (3,)", lambda: FOURIER.fit(there(ONES))),
    Case(
        ValueError,
        "X must have at least one column: got shape (3, 0)",
        lambda: FOURIER.fit(there(X[:, :0])),
    ),
    Case(
        ValueError,
        "X must be finite: X[0, 1] is inf",
        lambda: FOURIER.fit(there(np.array([[1.0, np.inf]]))),
    ),
]
