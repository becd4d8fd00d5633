"""Approximation by features and by balls, at a size that takes a moment."""

import math

import numpy as np
import tiny

from kernelcore.experiments import approximation

TINY = tiny.settings("approximation")


def test_features_and_balls_against_theory():
    result = tiny.result("approximation")
    wrong = [c for c in approximation.claims(result) if c.verdict > 1]
    assert not wrong
    assert "d = 8" in approximation.paragraph(result)
    assert len(approximation.tables(result)) == 2


def test_what_features_leave_is_that_of_least_squares_on_many_points():
    """The closed form at n infinite, against a fit of as many points as do."""
    import kernelcore as kc

    s, ns = TINY, [6, 20]
    left = approximation._left_over(s, 1, 0, ns)
    rng = np.random.default_rng([s.seed, 1, 0])
    f = kc.data.RandomFunction(s.dim, [0.0, 1.0], seed=rng, centres=400)
    w = kc.data.sphere(ns[-1], s.dim, seed=rng)
    x = kc.data.sphere(20_000, s.dim, seed=1)
    units = np.maximum(x @ w.T / math.sqrt(s.dim) + s.shift, 0)
    for n, wanted in zip(ns, left, strict=True):
        rest = f(x) - units[:, :n] @ np.linalg.lstsq(units[:, :n], f(x), rcond=None)[0]
        assert abs((rest**2).mean() - wanted) < 0.03


def test_what_gradients_leave_is_that_of_least_squares_on_other_points():
    """With the gradients of a finite network, whose only trained weights are the first."""
    import kernelcore as kc

    s, ns = TINY, [2, 6]
    left = approximation._tangent_left(s, 0, ns)
    rng = np.random.default_rng([s.seed, 50, 0])
    power = np.eye(3)
    targets = [kc.data.RandomFunction(6, power[k, : k + 1], seed=rng, centres=400) for k in (1, 2)]
    w = kc.data.sphere(ns[-1], 6, 1.0, seed=rng)
    x = kc.data.sphere(6000, 6, seed=2)
    net = kc.Sequential(kc.Dense(), kc.Relu(shift=s.shift), kc.Dense(trainable=False))
    for i, n in enumerate(ns):
        f = net.sample(n, seed=0, shape=6)
        units = np.sqrt(6) * w[:n].T
        J = f.at(np.concatenate([units.ravel(), np.ones(f.theta.size - units.size)])).jacobian(x)
        for k, target in enumerate(targets):
            rest = target(x) - J @ np.linalg.lstsq(J, target(x), rcond=None)[0]
            # 4,000 and 6,000 points: squares of kurtosis below 6 err by 0.05 at two deviations.
            assert abs((rest**2).mean() - left[k, i]) < 0.06
