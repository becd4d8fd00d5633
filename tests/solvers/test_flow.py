"""Gradient flow in closed form, ensembles of networks, and descent step by step."""

import re
import tracemalloc

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.optimize import approx_fprime, linprog, minimize
from scipy.sparse.linalg import aslinearoperator

import kernelcore as kc
from kernelcore.engine import progress as _progress
from kernelcore.solvers import (
    RidgePath,
    _descent,
    ensemble_flow,
    gradient_flow,
    kernel_gradient_descent,
    ridge,
)

NET = kc.presets.mlp(2, b_std=0.3)
TIMES = np.array([0.0, 1e-3, 0.1, 1.0, 30.0, np.inf])


class Problem:
    """Training and test points with every kernel between them."""

    def __init__(self, rng, n=20, m=7, outputs=None):
        x, z = rng.standard_normal((n, 3)), rng.standard_normal((m, 3))
        shape = () if outputs is None else (outputs,)
        self.n, self.m = n, m
        self.y = rng.standard_normal((n, *shape))
        self.f0, self.f0_test = rng.standard_normal((n, *shape)), rng.standard_normal((m, *shape))
        self.ntk, self.ntk_test = NET.ntk(x), NET.ntk(z, x)
        self.nngp, self.nngp_test, self.nngp_test_test = NET.nngp(x), NET.nngp(z, x), NET.nngp(z)

    def flow(self, times, **more):
        return gradient_flow(
            self.ntk, self.y, times, K_test=self.ntk_test, f0=self.f0, f0_test=self.f0_test, **more
        )


# ---- gradient flow


@pytest.mark.parametrize("amount", [0.0, 0.3])
def test_flow_against_a_stiff_solver(rng, amount):
    p = Problem(rng, outputs=2)
    times = np.array([0.0, 1e-3, 0.1, 1.0, 30.0])
    operator = p.ntk + amount * np.eye(p.n)

    # coefficients and predictions on test points, side by side
    def move(_, state):
        a = state[: 2 * p.n].reshape(p.n, 2)
        rate = p.y - p.f0 - operator @ a
        return np.concatenate([rate.ravel(), (p.ntk_test @ rate).ravel()])

    start = np.concatenate([np.zeros(2 * p.n), p.f0_test.ravel()])
    found = solve_ivp(
        move, (0, 30), start, "Radau", t_eval=times, rtol=1e-9, atol=1e-11
    )  # fmt: skip
    flow = p.flow(times, ridge=amount)
    for k in range(len(times)):
        a = found.y[: 2 * p.n, k].reshape(p.n, 2)
        # the solver's own tolerance, over the steps it takes
        np.testing.assert_allclose(flow.train[k], p.f0 + p.ntk @ a, atol=1e-6)
        np.testing.assert_allclose(flow.test[k], found.y[2 * p.n :, k].reshape(p.m, 2), atol=1e-6)
        np.testing.assert_allclose(flow.alpha[k], a, atol=1e-6)


def test_flow_against_the_matrix_exponential(rng):
    p = Problem(rng)
    flow = p.flow(TIMES)
    for k, t in enumerate(TIMES):
        left = expm(-p.ntk * t) if np.isfinite(t) else np.zeros((p.n, p.n))
        train = p.y + left @ (p.f0 - p.y)
        learned = np.linalg.solve(p.ntk, (np.eye(p.n) - left) @ (p.y - p.f0))
        # condition 1e4 times n eps
        np.testing.assert_allclose(flow.train[k], train, atol=1e-11)
        np.testing.assert_allclose(flow.test[k], p.f0_test + p.ntk_test @ learned, atol=1e-10)


def test_flow_at_its_ends(rng):
    p = Problem(rng, outputs=3)
    flow = p.flow([0, np.inf])
    np.testing.assert_array_equal(flow.train[0], p.f0)
    np.testing.assert_array_equal(flow.test[0], p.f0_test)
    np.testing.assert_allclose(flow.train[1], p.y, atol=1e-12)
    alpha = ridge(p.ntk, p.y - p.f0)
    np.testing.assert_allclose(flow.test[1], p.f0_test + p.ntk_test @ alpha, atol=1e-10)
    ended = gradient_flow(p.ntk, p.y, np.inf, ridge=0.2)
    np.testing.assert_allclose(ended.alpha, RidgePath(p.ntk, p.y).alpha(0.2), rtol=1e-9)
    assert ended.train.shape == p.y.shape
    assert ended.test is None


def test_early_times_lose_nothing(rng):
    """To first order f = f0 + t K (y - f0) with all digits of the difference."""
    p = Problem(rng)
    flow = gradient_flow(p.ntk, p.y, 1e-14, K_test=p.ntk_test)
    np.testing.assert_allclose(flow.train, 1e-14 * p.ntk @ p.y, rtol=1e-11)
    np.testing.assert_allclose(flow.test, 1e-14 * p.ntk_test @ p.y, rtol=1e-11)


def test_decay_by_eigenvector(rng):
    p = Problem(rng)
    times = np.array([[0.0, 0.1], [2.0, np.inf]])
    flow = p.flow(times)
    values, vectors = np.linalg.eigh(p.ntk)
    values, vectors = values[::-1], vectors[:, ::-1]
    np.testing.assert_allclose(flow.eigenvalues, values, atol=1e-13 * values[0])
    np.testing.assert_allclose(
        flow.decay[:1], np.exp(-times[:1, :, None] * values), rtol=1e-12 * values[0]
    )
    assert (flow.decay[1, 1] == 0).all()
    assert flow.train.shape == (2, 2, p.n)
    assert flow.test.shape == (2, 2, p.m)
    # the residual along each eigenvector is that of the start times its decay
    along = (p.y - flow.train) @ vectors
    np.testing.assert_allclose(along, flow.decay * ((p.y - p.f0) @ vectors), atol=1e-12)
    np.testing.assert_allclose(
        flow.decay[0], kc.spectrum.gram(p.ntk).decay(times[0]), rtol=1e-10, atol=1e-14
    )


def test_small_steps_of_descent_follow_the_flow(rng):
    """Euler's method has an error of first order in the step: halved with it."""
    p = Problem(rng)
    end = 0.5
    want = gradient_flow(p.ntk, p.y, end, f0=p.f0)
    errors = []
    for steps in (2000, 4000):
        made = kernel_gradient_descent(p.ntk, p.y, iterations=steps, step=end / steps, f0=p.f0)
        errors.append(np.abs(p.f0 + p.ntk @ made.alpha - want.train).max())
    assert errors[0] < 1e-2
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.05)


def test_flow_of_a_singular_matrix_stays_bounded(rng):
    """Gaussian kernels have eigenvalues below rounding; they are not learned, at any time."""
    x, z = np.linspace(-1, 1, 40)[:, None], np.linspace(-1, 1, 9)[:, None]
    kernel, y = kc.Gaussian(1.0), np.sin(3 * x[:, 0])
    flow = gradient_flow(kernel(x), y, [1.0, 1e10, 1e30, np.inf], K_test=kernel(z, x))
    np.testing.assert_allclose(flow.test[2], flow.test[3], atol=1e-7)
    np.testing.assert_allclose(flow.test[3], np.sin(3 * z[:, 0]), atol=1e-3)
    assert (flow.decay[3] == (flow.eigenvalues == 0)).all()


def test_flow_of_float32_and_other_layouts(rng, dtype):
    p = Problem(rng, outputs=2)
    want = p.flow(TIMES)
    got = gradient_flow(
        np.asfortranarray(p.ntk.astype(dtype)), p.y, TIMES,
        K_test=np.asfortranarray(p.ntk_test.astype(dtype)), f0=p.f0, f0_test=p.f0_test,
    )  # fmt: skip
    assert got.train.dtype == got.test.dtype == got.alpha.dtype == dtype
    condition = np.linalg.cond(p.ntk)
    error = p.n * np.finfo(dtype).eps * condition * 4
    np.testing.assert_allclose(got.train, want.train, atol=error)
    np.testing.assert_allclose(got.test, want.test, atol=error)


def test_flow_of_permuted_points_one_point_and_no_outputs(rng):
    p = Problem(rng)
    order = rng.permutation(p.n)
    got = gradient_flow(p.ntk[np.ix_(order, order)], p.y[order], TIMES, K_test=p.ntk_test[:, order])
    want = gradient_flow(p.ntk, p.y, TIMES, K_test=p.ntk_test)
    np.testing.assert_allclose(got.train, want.train[:, order], atol=1e-11)
    np.testing.assert_allclose(got.test, want.test, atol=1e-10)
    one = gradient_flow([[2.0]], [3.0], [0.5])
    np.testing.assert_allclose(one.train, [[-3 * np.expm1(-1)]], rtol=1e-15)
    none = gradient_flow(p.ntk, np.empty((p.n, 0)), TIMES, K_test=p.ntk_test)
    assert none.train.shape == (6, p.n, 0)
    assert none.test.shape == (6, p.m, 0)
    assert gradient_flow(p.ntk, p.y, []).train.shape == (0, p.n)


# ---- ensembles


@pytest.mark.parametrize("outputs", [None, 2])
def test_ensemble_against_matrix_exponentials(rng, outputs):
    """Lee et al. 2019, equations 14 and 15, with dense inverses and exponentials."""
    p = Problem(rng, outputs=outputs)
    got = ensemble_flow(
        p.ntk, p.nngp, p.y, TIMES,
        ntk_test=p.ntk_test, nngp_test=p.nngp_test, nngp_test_test=p.nngp_test_test,
    )  # fmt: skip
    plain = ensemble_flow(
        p.ntk, p.nngp, p.y, TIMES,
        ntk_test=p.ntk_test, nngp_test=p.nngp_test, nngp_test_test=np.diag(p.nngp_test_test),
    )  # fmt: skip
    assert plain.test_covariance is None
    np.testing.assert_allclose(plain.test_variance, got.test_variance, atol=1e-11)
    for k, t in enumerate(TIMES):
        left = expm(-p.ntk * t) if np.isfinite(t) else np.zeros((p.n, p.n))
        a = p.ntk_test @ np.linalg.inv(p.ntk) @ (np.eye(p.n) - left)
        cross = a @ p.nngp_test.T
        covariance = p.nngp_test_test - cross - cross.T + a @ p.nngp @ a.T
        train = left @ p.nngp @ left.T
        # n eps, times the condition of the NTK in a
        np.testing.assert_allclose(got.train_mean[k], p.y - left @ p.y, atol=1e-11)
        np.testing.assert_allclose(got.train_variance[k], np.diag(train), atol=1e-12)
        np.testing.assert_allclose(got.test_mean[k], a @ p.y, atol=1e-10)
        np.testing.assert_allclose(got.test_covariance[k], covariance, atol=1e-10)
        np.testing.assert_allclose(got.test_variance[k], np.diag(covariance), atol=1e-10)


def test_ensemble_at_its_ends(rng):
    p = Problem(rng)
    args = {"ntk_test": p.ntk_test, "nngp_test": p.nngp_test, "nngp_test_test": p.nngp_test_test}
    got = ensemble_flow(p.ntk, p.nngp, p.y, [0, np.inf], **args)
    np.testing.assert_array_equal(got.test_mean[0], 0)
    np.testing.assert_allclose(got.test_covariance[0], p.nngp_test_test, rtol=1e-15)
    np.testing.assert_allclose(got.train_variance[0], np.diag(p.nngp), rtol=1e-13)
    np.testing.assert_array_equal(got.train_variance[1], 0)
    # one kernel for both: the posterior of its process without noise
    args["ntk_test"] = p.nngp_test
    got = ensemble_flow(p.nngp, p.nngp, p.y, np.inf, **args)
    gain = np.linalg.solve(p.nngp, p.nngp_test.T)
    np.testing.assert_allclose(got.test_mean, gain.T @ p.y, atol=1e-9)
    np.testing.assert_allclose(
        got.test_covariance, p.nngp_test_test - p.nngp_test @ gain, atol=1e-9
    )


def test_ensemble_is_what_many_draws_do(rng):
    """Draws of the prior, each flowing by itself from its own initial function."""
    p = Problem(rng, n=6, m=3)
    draws, t = 20000, 0.4
    joint = np.block([[p.nngp, p.nngp_test.T], [p.nngp_test, p.nngp_test_test]])
    f = np.linalg.cholesky(joint + 1e-12 * np.eye(9)) @ rng.standard_normal((9, draws))
    y = np.tile(p.y[:, None], draws)
    flow = gradient_flow(p.ntk, y, t, K_test=p.ntk_test, f0=f[:6], f0_test=f[6:])
    got = ensemble_flow(
        p.ntk, p.nngp, p.y, t,
        ntk_test=p.ntk_test, nngp_test=p.nngp_test, nngp_test_test=np.diag(p.nngp_test_test),
    )  # fmt: skip
    for sample, mean, variance in (
        (flow.train, got.train_mean, got.train_variance),
        (flow.test, got.test_mean, got.test_variance),
    ):
        error = np.sqrt(variance / draws)
        assert (np.abs(sample.mean(1) - mean) <= 5 * error).all()
        # a variance from N draws has relative standard error sqrt(2/N)
        np.testing.assert_allclose(sample.var(1), variance, rtol=5 * np.sqrt(2 / draws))


@pytest.mark.parametrize(("covariances", "arrays"), [(False, 5), (True, 9)])
def test_memory_of_an_ensemble(rng, covariances, arrays):
    """As documented, in arrays of n x n beyond what is returned: the same for any number of times.

    One more than documented for rows of blocks and scratch.
    """
    p = Problem(rng, 600, 600)
    prior = p.nngp_test_test if covariances else np.diag(p.nngp_test_test).copy()
    for times in (2, 6):
        tracemalloc.start()
        got = ensemble_flow(
            p.ntk, p.nngp, p.y, np.arange(times),
            ntk_test=p.ntk_test, nngp_test=p.nngp_test, nngp_test_test=prior,
        )  # fmt: skip
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak - sum(a.nbytes for a in got if a is not None) < arrays * 8 * 600**2


def test_ensemble_of_float32_without_test_points(rng):
    p = Problem(rng)
    want = ensemble_flow(p.ntk, p.nngp, p.y, TIMES)
    got = ensemble_flow(p.ntk.astype(np.float32), p.nngp, p.y, TIMES)
    assert got.train_variance.dtype == got.train_mean.dtype == np.float32
    assert want.test_mean is want.test_variance is want.test_covariance is None
    np.testing.assert_allclose(got.train_variance, want.train_variance, atol=1e-3)
    np.testing.assert_allclose(got.train_mean, want.train_mean, atol=1e-3)


# ---- descent: the losses


def plain_loss(name, f, y):
    """Row by row, number by number."""
    total = 0.0
    for i in range(len(y)):
        if name == "softmax":
            total += np.log(sum(np.exp(f[i, c]) for c in range(f.shape[1]))) - f[i, int(y[i])]
            continue
        for a, b in zip(np.ravel(f[i]), np.ravel(y[i]), strict=True):
            if name == "square":
                total += 0.5 * (a - b) ** 2
            elif name == "logistic":
                total += np.log(1 + np.exp(-a * b))
            else:
                total += 0.5 * max(0.0, 1 - a * b) ** 2
    return total


def labels(rng, name, n):
    if name == "square":
        return rng.standard_normal(n)
    if name == "softmax":
        return rng.integers(0, 3, n)
    return rng.choice([-1.0, 1.0], n)


NAMES = ["square", "logistic", "softmax", "squared_hinge"]


@pytest.mark.parametrize("name", NAMES)
def test_losses_and_their_slopes(rng, name):
    y = labels(rng, name, 6)
    f = 2 * rng.standard_normal((6, 3) if name == "softmax" else 6)
    inside = np.eye(3)[y] if name == "softmax" else y
    value, slope, curvature = _descent.LOSSES[name]
    assert value(f, inside).sum() == pytest.approx(plain_loss(name, f, y), rel=1e-13)
    numeric = approx_fprime(
        f.ravel(), lambda at: plain_loss(name, at.reshape(f.shape), y), 1e-7
    ).reshape(f.shape)
    np.testing.assert_allclose(slope(f, inside), numeric, atol=1e-5)
    # curvature: the most that a slope changes between any two points
    for _ in range(200):
        g = f + 10.0 ** rng.uniform(-3, 1) * rng.standard_normal(f.shape)
        change = np.linalg.norm(slope(g, inside) - slope(f, inside))
        assert change <= curvature * np.linalg.norm(g - f) * (1 + 1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_losses_of_large_values(name):
    y = np.array([[1.0, 0.0], [0.0, 1.0]]) if name == "softmax" else np.array([1.0, -1.0])
    f = np.array([[800.0, -800.0], [800.0, -800.0]]) if name == "softmax" else np.full(2, 800.0)
    loss = _descent.LOSSES[name]
    assert np.isfinite(loss.value(f, y)).all()
    assert np.isfinite(loss.slope(f, y)).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_few_steps_by_hand(rng, name):
    p = Problem(rng, n=8)
    y = labels(rng, name, 8)
    shape = (8, 3) if name == "softmax" else (8,)
    f0 = rng.standard_normal(shape)
    step, momentum = 0.01, 0.5
    got = kernel_gradient_descent(
        p.ntk, y, loss=name, iterations=4, step=step, momentum=momentum, f0=f0
    )
    alpha, change, history = np.zeros(shape), np.zeros(shape), []
    for _ in range(4):
        f = f0 + p.ntk @ alpha
        history.append(plain_loss(name, f, y) / 8)
        slope = approx_fprime(
            f.ravel(), lambda at: plain_loss(name, at.reshape(shape), y), 1e-7
        ).reshape(shape)
        change = momentum * change - step * slope
        alpha = alpha + change
    history.append(plain_loss(name, f0 + p.ntk @ alpha, y) / 8)
    np.testing.assert_allclose(got.alpha, alpha, atol=1e-6)
    np.testing.assert_allclose(got.train_loss, history, rtol=1e-5)
    assert (got.iterations, got.best_iteration, got.step) == (4, 4, step)
    assert got.validation_loss is None


@pytest.mark.parametrize("name", NAMES)
def test_the_default_step_descends_as_convexity_promises(rng, name):
    """After k steps loss <= loss of f + |f|^2/(2 step k) for any f: the one that is least."""
    n, k = 12, 60
    p = Problem(rng, n=n)
    y = labels(rng, name, n)
    shape = (n, 3) if name == "softmax" else (n,)
    made = kernel_gradient_descent(p.ntk, y, loss=name, iterations=k)
    assert (np.diff(made.train_loss) < 0).all()
    curvature = {"square": 1, "logistic": 1 / 4, "softmax": 1 / 2, "squared_hinge": 1}[name]
    # as many products as eigenvalues: the estimate is the largest, and its margin of 1.05
    want = 1 / (1.05 * curvature * np.linalg.norm(p.ntk, 2))
    assert made.step == pytest.approx(want, rel=1e-6)
    root = np.linalg.cholesky(p.ntk)  # f = root b has |f|^2 = |b|^2

    def bound(b):
        b = b.reshape(shape)
        return plain_loss(name, root @ b, y) + np.sum(b**2) / (2 * made.step * k)

    found = minimize(bound, np.zeros(np.prod(shape)), method="BFGS")
    assert n * made.train_loss[-1] <= found.fun * (1 + 1e-6)
    # and cannot be below the least loss of functions with no larger norm, by the same problem
    size = np.sum(made.alpha * (p.ntk @ made.alpha))
    assert n * made.train_loss[-1] >= found.fun - size / (2 * made.step * k) - 1e-9


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("name", NAMES)
def test_the_minimum_where_labels_disagree(rng, name, momentum):
    """Four rows at each point: the best value there has a closed form, whatever the kernel."""
    x = np.repeat(2 * rng.standard_normal((5, 3)), 4, axis=0)
    k = kc.Gaussian(1.0)(x)
    y = np.tile([0, 1, 2, 1] if name == "softmax" else [1.0, 1, -1, 1], 5)
    f, least = {
        "square": (0.5, np.mean([0.25, 0.25, 2.25, 0.25]) / 2),
        "logistic": (np.log(3), -0.75 * np.log(0.75) - 0.25 * np.log(0.25)),
        "softmax": (np.log([0.25, 0.5, 0.25]), 1.5 * np.log(2)),  # entropy of 1/4, 1/2, 1/4
        "squared_hinge": (0.5, (3 * 0.5**2 + 1.5**2) / 8),
    }[name]
    made = kernel_gradient_descent(k, y, loss=name, iterations=3000, momentum=momentum)
    assert made.train_loss[-1] == pytest.approx(least, rel=1e-9)
    got = k @ made.alpha
    if name == "softmax":
        got, f = got - got[:, :1], f - f[0]
    np.testing.assert_allclose(got, np.broadcast_to(f, got.shape), atol=1e-4)


def test_early_stopping(rng):
    n, m = 60, 200
    x, z = rng.uniform(-2, 2, (n, 1)), rng.uniform(-2, 2, (m, 1))
    kernel = kc.Laplacian(0.5)
    y = np.sin(3 * x[:, 0]) + 0.5 * rng.standard_normal(n)
    truth = np.sin(3 * z[:, 0])
    more = {"K_validation": kernel(z, x), "y_validation": truth}
    whole = kernel_gradient_descent(kernel(x), y, iterations=3000, **more)
    assert 0 < whole.best_iteration < 3000
    assert whole.best_iteration == np.argmin(whole.validation_loss)
    early = kernel_gradient_descent(kernel(x), y, iterations=3000, patience=20, **more)
    assert early.iterations <= early.best_iteration + 20 < 3000
    assert len(early.train_loss) == len(early.validation_loss) == early.iterations + 1
    loss = np.mean((kernel(z, x) @ early.alpha - truth) ** 2) / 2
    assert loss == pytest.approx(early.validation_loss.min(), rel=1e-12)
    # and iteration 0 where everything only gets worse
    worse = kernel_gradient_descent(
        kernel(x), y, iterations=50, patience=5,
        K_validation=kernel(x), y_validation=-y,
    )  # fmt: skip
    assert (worse.best_iteration, worse.iterations) == (0, 5)
    assert (worse.alpha == 0).all()


def test_the_limit_of_the_square_loss(rng):
    """f0 + k(x, X) K^-1 (y - f0), also with momentum, which gets there sooner."""
    p = Problem(rng, n=10, outputs=2)
    k = p.ntk + 0.3 * np.eye(10)
    want = np.linalg.solve(k, p.y - p.f0)
    plain = kernel_gradient_descent(k, p.y, f0=p.f0, iterations=20000)
    quick = kernel_gradient_descent(k, p.y, f0=p.f0, iterations=1500, momentum=0.9)
    np.testing.assert_allclose(plain.alpha, want, atol=1e-10)
    np.testing.assert_allclose(quick.alpha, want, atol=1e-10)


def test_classes_in_every_spelling(rng):
    p = Problem(rng, n=9)
    y = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    want = kernel_gradient_descent(p.ntk, y, loss="softmax", iterations=20)
    hot = kernel_gradient_descent(p.ntk, np.eye(3)[y], loss="softmax", iterations=20)
    np.testing.assert_array_equal(hot.alpha, want.alpha)
    np.testing.assert_allclose(want.alpha.sum(1), 0, atol=1e-12)
    # validation data need not have all classes, and two columns are two problems
    seen = kernel_gradient_descent(
        p.ntk, y, loss="softmax", iterations=20, K_validation=p.ntk[:2], y_validation=[0, 1]
    )
    assert seen.validation_loss.shape == (21,)
    # softmax of two classes is logistic on the difference of logits, at half the step
    two = np.where(y == 0, -1.0, 1.0)
    logistic = kernel_gradient_descent(p.ntk, two, loss="logistic", iterations=30, step=0.02)
    softmax = kernel_gradient_descent(
        p.ntk, (two > 0).astype(int), loss="softmax", iterations=30, step=0.01
    )
    np.testing.assert_allclose(
        softmax.alpha[:, 1] - softmax.alpha[:, 0], logistic.alpha, atol=1e-13
    )
    both = kernel_gradient_descent(
        p.ntk, np.stack([two, -two], 1), loss="logistic", iterations=30, step=0.02
    )
    np.testing.assert_allclose(both.alpha, np.stack([logistic.alpha, -logistic.alpha], 1))


def test_operators_float32_and_callbacks(rng):
    p = Problem(rng)
    want = kernel_gradient_descent(p.ntk, p.y, iterations=30)
    got = kernel_gradient_descent(aslinearoperator(p.ntk), p.y, iterations=30)
    np.testing.assert_allclose(got.alpha, want.alpha, rtol=1e-12)
    narrow = kernel_gradient_descent(p.ntk.astype(np.float32), p.y, iterations=30)
    assert narrow.alpha.dtype == np.float32
    np.testing.assert_allclose(narrow.alpha, want.alpha, atol=1e-5)
    seen = []
    stopped = kernel_gradient_descent(
        p.ntk, p.y, iterations=30, callback=lambda k, a: seen.append((k, a.copy())) or k == 7
    )
    assert stopped.iterations == 7
    assert [k for k, _ in seen] == list(range(1, 8))
    np.testing.assert_array_equal(seen[-1][1], stopped.alpha)
    none = kernel_gradient_descent(np.zeros((3, 3)), np.ones(3), iterations=2)
    assert none.train_loss.tolist() == [0.5] * 3
    assert kernel_gradient_descent(p.ntk, p.y, iterations=0).alpha.shape == (p.n,)


def test_progress(rng, capsys, monkeypatch):
    p = Problem(rng)
    clock = iter(np.arange(0, 1000, 0.5))
    monkeypatch.setattr(_progress.time, "monotonic", lambda: float(next(clock)))
    kernel_gradient_descent(p.ntk, p.y, iterations=9, step=1e-3)
    assert capsys.readouterr().err == ""
    kernel_gradient_descent(p.ntk, p.y, iterations=9, step=1e-3, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "kernel_gradient_descent: 4/9",
        "kernel_gradient_descent: 8/9",
    ]
    assert re.fullmatch(r"kernel_gradient_descent: 4/9, 2 s, loss [\d.]+", lines[0])
    _progress.Progress("work", 3, True, seconds=0).at(1)
    assert capsys.readouterr().err.startswith("work: 1/3, ")


# ---- the hinge loss, whose slope jumps


def support_vectors(K, y):
    """The function of least norm with margins of 1 at least, without offset, by its dual.

    max sum a - a' Q a / 2 over a >= 0 with Q = y K y': then |f|^2 = a' Q a = sum a.
    """
    Q = y[:, None] * K * y
    found = minimize(
        lambda a: (a @ Q @ a / 2 - a.sum(), Q @ a - 1), np.ones(len(y)), jac=True,
        method="L-BFGS-B", bounds=[(0, None)] * len(y),
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    )  # fmt: skip
    return np.sqrt(found.x @ Q @ found.x)


def test_hinge_separates_with_half_the_margin_of_support_vectors(rng):
    """Let f* have the least norm with y f* >= 1. A step s over the set V where y f < 1 adds at
    least s |V| to <f, f*>, and at most 2 s |V| + s^2 G^2 to |f|^2. So small steps end with
    |f|^2 <= 2 |f| |f*|, up to sum s^2 G^2; and |f| >= |f*| once the loss is zero.
    """
    p = Problem(rng, n=20)
    y, steps = rng.choice([-1.0, 1.0], 20), []
    made = kernel_gradient_descent(
        p.ntk, y, loss="hinge", iterations=20000, step=0.3,
        callback=lambda k, alpha: steps.append(k) or bool((y * (p.ntk @ alpha) >= 1).all()),
    )  # fmt: skip
    assert made.train_loss[-1] == 0
    assert made.iterations < 20000
    size, least = np.sqrt(made.alpha @ p.ntk @ made.alpha), support_vectors(p.ntk, y)
    slopes = np.abs(p.ntk).sum() * (0.3**2 / np.array(steps)).sum()  # sum of s^2 G^2 at most
    assert least * (1 - 1e-6) <= size <= least + np.sqrt(least**2 + slopes)
    assert (y * made.alpha >= 0).all()  # sums of steps along y


def test_hinge_reaches_the_least_loss_where_labels_disagree(rng):
    """A linear kernel of two columns has a linear programme as its minimum."""
    X, y = rng.standard_normal((40, 2)), rng.choice([-1.0, 1.0], 40)
    rows = np.hstack([y[:, None] * X, np.eye(40)])
    least = linprog(
        np.r_[0, 0, np.ones(40)], A_ub=-rows, b_ub=-np.ones(40),
        bounds=[(None, None)] * 2 + [(0, None)] * 40,
    )  # fmt: skip
    K = X @ X.T
    made = kernel_gradient_descent(K, y, loss="hinge", iterations=4000)
    s = made.step / np.sqrt(np.arange(1, 4001))
    assert made.step == pytest.approx(1 / np.linalg.norm(K, 2), rel=0.06)
    G2 = 40 * np.linalg.norm(K, 2)  # |slope|^2 = g' K g with |g_i| <= 1
    bound = (np.sum(least.x[:2] ** 2) + G2 * (s**2).sum()) / (2 * s.sum())
    assert least.fun <= 40 * made.train_loss.min() + 1e-9 <= least.fun + bound
    # which is a crude bound: the last is closer
    assert 40 * made.train_loss[-1] <= least.fun * 1.01


def test_a_few_hinge_steps_by_hand(rng):
    p = Problem(rng, n=8)
    y, f0 = rng.choice([-1.0, 1.0], 8), rng.standard_normal(8)
    made = kernel_gradient_descent(p.ntk, y, loss="hinge", iterations=5, step=0.1, f0=f0)
    alpha = np.zeros(8)
    for k in range(1, 6):
        alpha += 0.1 / np.sqrt(k) * y * (y * (f0 + p.ntk @ alpha) < 1)
    np.testing.assert_allclose(made.alpha, alpha, rtol=1e-13)
    want = np.maximum(1 - y * (f0 + p.ntk @ alpha), 0).mean()
    assert made.train_loss[-1] == pytest.approx(want, rel=1e-12)
