"""Wide networks in training, at a size that takes a moment; and the parts of their theory."""

import numpy as np
import pytest
import tiny

from kernelcore.experiments import wide


@pytest.fixture
def kernel():
    factor = np.random.default_rng(0).standard_normal((2, 5))
    return factor @ factor.T


def test_descent_on_a_linear_model_leaves_what_is_predicted(kernel):
    left, step = wide.Y.copy(), 0.02
    kept = [left]
    for _ in range(wide.STEPS):
        left = left - step * kernel @ left
        kept.append(left)
    np.testing.assert_allclose(wide._left(kernel, wide.Y, 7, step), kept[::7], atol=1e-12)


def test_parameters_of_a_linear_model_move_as_far_as_predicted():
    """By Euler's method, whose error is of the order of the step."""
    J = np.random.default_rng(1).standard_normal((2, 30))
    theta, steps = np.zeros(30), 40_000
    for _ in range(steps):
        theta -= wide.END / steps * J.T @ (J @ theta - wide.Y)
    found = wide._moved(J @ J.T, wide.Y)
    assert found == pytest.approx(np.sqrt(theta @ theta), rel=1e-3)


@pytest.mark.parametrize("alpha", [1.0, 3.0])
def test_paths_are_those_of_plain_descent(alpha):
    """On the sum of squares over alpha^2, with gradients from the Jacobian."""
    start = wide.NET.sample(6, seed=0, shape=1).scaled(alpha)
    path, now = wide._path(start, wide.X, wide.Y, wide.STEPS // 2), start
    for k in range(wide.STEPS):
        if k == wide.STEPS // 2:
            np.testing.assert_allclose(path[1].theta, now.theta, rtol=1e-9)
        slope = now.jacobian(wide.X).T @ (now(wide.X) - wide.Y)
        now = now.at(now.theta - wide.STEP / alpha**2 * slope)
    np.testing.assert_allclose(path[-1].theta, now.theta, rtol=1e-9)
    assert np.array_equal(path[0].theta, start.theta)


def test_slopes_and_jumps_are_those_of_outputs():
    network = wide.SHALLOW.sample(20, seed=3, shape=1)
    kinks = wide._Kinks(network)
    line = np.linspace(-wide.HALF, wide.HALF, 800_001)  # no two knots between neighbours
    f, h = network(line[:, None]), line[1] - line[0]
    middle = (line[1:] + line[:-1])[::999] / 2
    away = np.abs(middle[:, None] - kinks.knots).min(1) > h
    slope = (np.diff(f) / h)[::999]
    np.testing.assert_allclose(kinks.derivative(middle)[away], slope[away], atol=1e-8)
    change = np.diff(f, 2) / h
    inside = np.abs(kinks.knots) < wide.HALF
    assert len(kinks.jumps()) == inside.sum()
    # A knot changes the slope over the two intervals beside it.
    for knot, jump in zip(kinks.knots[inside], kinks.jumps(), strict=True):
        near = np.abs(line[1:-1] - knot) < 1.01 * h
        assert change[near].sum() == pytest.approx(jump, abs=1e-6)
    assert np.abs(change).sum() == pytest.approx(np.abs(kinks.jumps()).sum(), abs=1e-3)


def test_expected_kinks_are_those_of_many_units():
    """Of normal weights; bounds are four standard errors."""
    rng, units = np.random.default_rng(4), 400_000
    w, b, a = rng.standard_normal((3, units))
    inside = np.abs(b) < wide.HALF * np.abs(w)
    x, y = wide.KNOTS[:, 0], np.sin(wide.KNOTS[:, 0])
    alpha = np.linalg.solve(wide.SHALLOW.nngp(wide.KNOTS), y)
    share, start, top = wide._expected_kinks()
    trained = np.maximum(np.outer(w, x) + b[:, None], 0) @ alpha
    for found, squares in ((start, 2 * (a * w) ** 2), (top, 4 * (trained * w) ** 2)):
        kept = squares[inside]
        assert abs(kept.mean() - found**2) < 4 * kept.std() / np.sqrt(kept.size)
    assert abs(inside.mean() - share) < 4 * inside.std() / np.sqrt(units)


def test_ellipses_have_the_kernel_as_their_form(kernel):
    u = wide._ellipse(kernel, 0.3)
    np.testing.assert_allclose((u * np.linalg.solve(kernel, u)).sum(0), 0.09, rtol=1e-9)


def test_small_results_say_what_is_claimed():
    result = tiny.result("wide")
    claims = {claim.text: claim for claim in wide.claims(result)}
    for part in ("the top layer trained", "for each of its units", "in α, from 2 on"):
        assert all(claim.holds for text, claim in claims.items() if part in text)
    assert (np.diff(result["change"], axis=0) < 0).all()
    # A wide network is near its linearisation.
    assert (wide._gaps(result)[-1] < 0.01).all()
    # Trained networks pass through the two points, but for what is still to learn.
    line = np.linspace(-wide.HALF, wide.HALF, result["outputs"].shape[-1])
    at = np.flatnonzero(line == wide.X[0, 0])
    assert np.abs(result["outputs"][1][:, at] - wide.Y[0]).max() < 0.2
    assert np.abs(result["outputs"][0][:, at] - wide.Y[0]).max() > 0.5
    assert "two points on a line" in wide.paragraph(result)


def test_the_band_is_that_of_functions_which_flow():
    """Draws f of the NNGP become f - A (f(X) - y), A = T(z, X) T(X, X)^-1 (1 - exp(-T t))."""
    result, net = tiny.result("wide"), wide.NET
    line = np.linspace(-wide.HALF, wide.HALF, result["outputs"].shape[-1])[:, None]
    values, vectors = np.linalg.eigh(net.ntk(wide.X))
    learned = vectors * (-np.expm1(-wide.END * values) / values) @ vectors.T
    A, K = net.ntk(line, wide.X) @ learned, net.nngp(line, wide.X)
    np.testing.assert_allclose(result["band_mean"], [0 * A[:, 0], A @ wide.Y], atol=1e-9)
    first = np.diag(net.nngp(line))
    last = first + ((A @ net.nngp(wide.X) - 2 * K) * A).sum(1)
    np.testing.assert_allclose(result["band_variance"], [first, last], rtol=1e-9, atol=1e-9)
    # Shares of one line vary less than those of one point, and more than those of many apart.
    p, points = wide.INSIDE, wide._open(result["band_variance"]).sum(1)
    spread = result["share_spread"]
    assert (spread < np.sqrt(p * (1 - p)) * 1.05).all()
    assert (spread > np.sqrt(p * (1 - p) / points)).all()
