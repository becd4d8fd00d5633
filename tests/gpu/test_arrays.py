"""Arrays that stand in for CuPy's: what they refuse, and what of solvers comes to the host.

What solvers, features and estimators compute on them is compared with the host beside their own
tests, in files ``test_namespaces.py``.
"""

import copy

import numpy as np
import pytest
import sklearn
from gpu import arrays, standin

import kernelcore as kc
from kernelcore import features, solvers
from kernelcore.solvers import _preconditioners

N, FEW = 70, 64
KERNEL = kc.Laplacian(1.0)


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # which scikit-learn asks for
    with standin.installed() as state, sklearn.config_context(array_api_dispatch=True):
        yield state


def up(a):
    return standin.asarray(np.asarray(a))


# ---- the wall


@pytest.mark.parametrize(
    "call",
    [
        np.asarray, np.sqrt, np.sum, lambda a: np.concatenate([a, a]), range, lambda a: [1][a[0]],
        lambda a: a + np.ones(3), lambda a: np.ones(3) * a, lambda a: a.__setitem__(0, np.ones(1)),
        lambda a: standin.matmul(a, np.ones(3)), lambda a: standin.sum(a, initial=0.0), hash,
    ],
)  # fmt: skip
def test_numpy_and_python_are_kept_out(call):
    with arrays.copies() as seen, pytest.raises(TypeError):
        call(up(np.ones(3)))
    assert seen.count == 0


@pytest.mark.parametrize(
    ("call", "nbytes"),
    [
        (lambda a: float(a[0]), 8), (lambda a: int(a[0]), 8), (lambda a: bool(a[0]), 8),
        (lambda a: a.get(), 24), (lambda a: a[0].item(), 8), (lambda a: a.tolist(), 24), (str, 24),
        (lambda a: f"{a[0]:.3g}", 8), (lambda a: a[a > 0], 8), (standin.nonzero, 8),
        (lambda a: a + 1, 0), (lambda a: a[1:] * np.float64(2.0), 0), (copy.deepcopy, 0),
        (lambda a: a.sum(), 0), (lambda a: standin.where(a > 0, a, 0.0), 0),
    ],
)  # fmt: skip
def test_copies_are_counted_and_forbidden(call, nbytes):
    a = up(np.ones(3))
    with arrays.copies() as seen:
        call(a)
    assert (seen.count, seen.total) == (bool(nbytes), nbytes)
    if nbytes:
        message = f"{nbytes} bytes came to the host, of {nbytes - 1} at most"
        with arrays.copies(largest=nbytes - 1), pytest.raises(AssertionError, match=message):
            call(a)


def test_a_factor_that_fails_is_no_error_unless_asked_for():
    """As in CuPy: the first minor is that of the factor, and the rest is finite."""
    a = up(np.array([[4.0, 2.0], [2.0, -5.0]]))
    found = standin.linalg.cholesky(a)._view
    assert found[0, 0] == 2
    assert np.isfinite(found).all()
    with arrays.errstate(linalg="raise"), pytest.raises(np.linalg.LinAlgError):
        standin.linalg.cholesky(a)


# ---- what comes to the host


class Data:
    def __init__(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((N, 3)).astype(np.float32)
        self.X, self.K, self.y = up(X), up(KERNEL(X)), up(X[:, :2] + X[:, 2:])
        self.labels = up((X[:, 0] > 0).astype(int))


def fourier(X):
    return features.FourierFeatures(n_features=6, seed=0).fit(X)


def nystrom(d, **more):
    return solvers.nystrom_ridge(KERNEL, d.X, d.y, 0.1, centres=5, seed=0, **more).predict(d.X)


STOP = {"tol": 1e-30, "max_iter": 4}
CALLS = {
    "ridge": lambda d: solvers.ridge(d.K, d.y, 0.1),
    "pinv": lambda d: solvers.ridge(d.K, d.y, 0.1, on_singular="pinv"),
    "interpolate": lambda d: solvers.interpolate(d.K, d.y),
    "rkhs_inner": lambda d: solvers.rkhs_inner(d.y, d.K),
    "RidgePath": lambda d: solvers.RidgePath(d.K, d.y).loo(0.1),
    "best": lambda d: solvers.RidgePath(d.K, d.y).best("likelihood", [0.1, 1.0]),
    "gradient_flow": lambda d: solvers.gradient_flow(d.K, d.y, [0.0, 1.0], K_test=d.K),
    "ensemble_flow": lambda d: solvers.ensemble_flow(d.K, d.K, d.y, [1.0]),
    "conjugate_gradients": lambda d: solvers.conjugate_gradients(d.K, d.y, 0.1, **STOP),
    "richardson": lambda d: solvers.richardson(d.K, d.y, 0.1, **STOP),
    "landweber": lambda d: solvers.landweber(d.K, d.y, 0.1, **STOP),
    "gradient_descent": lambda d: solvers.gradient_descent(d.K, d.y, 0.1, **STOP),
    "losses": lambda d: solvers.kernel_gradient_descent(
        d.K, d.labels, loss="softmax", iterations=2
    ),
    "largest_eigenvalue": lambda d: solvers.largest_eigenvalue(d.K),
    "eigenpro": lambda d: solvers.eigenpro(KERNEL, d.X, d.y, 0.1, epochs=1, rank=4, seed=0),
    "askotch": lambda d: solvers.askotch(KERNEL, d.X, d.y, 0.1, epochs=1, rank=4, seed=0),
    "askotch by leverage": lambda d: solvers.askotch(
        KERNEL, d.X, d.y, 0.1, epochs=1, sampling="leverage", seed=0
    ),
    "eigenpro_centres": lambda d: solvers.eigenpro_centres(
        KERNEL, d.X, d.y, 0.1, centres=5, epochs=1, rank=2, batch=N, seed=0
    ),
    "pivoted": lambda d: solvers.randomly_pivoted_cholesky(d.K, rank=5, seed=0),
    "nystrom_preconditioner": lambda d: solvers.nystrom_preconditioner(
        d.K, rank=5, ridge=0.1, seed=0
    ).solve(d.y),
    "eigenpro_preconditioner": lambda d: solvers.eigenpro_preconditioner(
        d.K, rank=4, ridge=0.1, seed=0
    ).solve(d.y),
    "block_jacobi": lambda d: solvers.block_jacobi(d.K, block=20, ridge=0.1).solve(d.y),
    "nystrom_ridge": nystrom,
    "nystrom by cg": lambda d: nystrom(d, solver="cg"),
    "nystrom by pivots": lambda d: nystrom(d, method="rpcholesky"),
    "nystrom by leverage": lambda d: nystrom(d, method="leverage"),
    "GramOperator": lambda d: kc.GramOperator(KERNEL, d.X) @ d.y,
    "features": lambda d: features.ridge_features(fourier(d.X), d.X, d.y, 0.1).predict(d.X),
    "gram of features": lambda d: fourier(d.X).gram(d.X),
    "TangentFeatures": lambda d: features.TangentFeatures(6, seed=0).fit(d.X).transform(d.X),
    "KernelRegressor": lambda d: kc.KernelRegressor(KERNEL).fit(d.X, d.y).predict(d.X),
    "KernelClassifier": lambda d: kc.KernelClassifier(KERNEL).fit(d.X, d.labels).predict_proba(d.X),
    "GaussianProcess": lambda d: (
        kc.GaussianProcess(KERNEL).fit(d.X, d.y).predict(d.X, return_cov=True)
    ),
    "KernelSmoother": lambda d: kc.KernelSmoother(KERNEL).fit(d.X, d.y).predict(d.X),
}
PER_POINT = {
    "nystrom by leverage": "centres are drawn on the host, by a score of each point",
    "askotch by leverage": "as blocks are",
}


@pytest.mark.filterwarnings("ignore:.*converge:RuntimeWarning")
@pytest.mark.parametrize("name", CALLS)
def test_few_numbers_at_a_time_come_to_the_host(name, monkeypatch):
    """Those per column, and between proposals of pivots; the norms of points are the backend's.

    An array with an entry per point has at least ``N`` bytes.
    """
    monkeypatch.setattr(_preconditioners, "PROPOSALS", 2)
    data = Data()
    with arrays.copies(largest=8 * N if name in PER_POINT else FEW) as seen:
        CALLS[name](data)
    assert seen.of_backend <= 8 * 8 * N  # norms, in at most eight evaluations


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["conjugate_gradients", "richardson", "gradient_descent"])
def test_copies_of_an_iteration(name):
    """Each waits for the device: what is left of every column, sums of squares, a check or two."""
    data, counts = Data(), []
    for iterations in (3, 7):
        with arrays.copies() as seen:
            getattr(solvers, name)(data.K, data.y, 0.1, tol=1e-30, max_iter=iterations)
        counts.append(seen.count)
    assert 0 < counts[1] - counts[0] <= 4 * 7
