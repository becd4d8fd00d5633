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
