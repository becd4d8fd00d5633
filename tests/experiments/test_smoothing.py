"""Weighted means, components and clusters, at a size that takes a moment."""

import math

import numpy as np
import tiny

from kernelcore.experiments import smoothing


def test_errors_fall_and_rings_come_apart():
    result = tiny.result("smoothing")
    best = result["errors"].mean(-1).min(1)
    assert (np.diff(best) < 0).all()
    assert result["split"][:, 1].min() > 0.95  # kernel components
    assert result["right"][:, 2].min() > 0.95  # spectral clustering
    assert "−4/5" in smoothing.paragraph(result)


def test_leading_order_is_the_error_of_the_weighted_mean():
    """Bias and variance by sums over a fine grid, with no random number."""
    s, n = smoothing.Settings(), 4000
    x = np.arange(n) / n
    for h in (0.01, 0.02):
        away = (x + 0.5) % 1 - 0.5
        weight = np.exp(-((away / h) ** 2) / 2)
        weight /= weight.sum()
        mean = np.fft.irfft(np.fft.rfft(weight) * np.fft.rfft(smoothing._curve(x)), n)
        bias = np.square(mean - smoothing._curve(x)).mean()
        whole = bias + s.noise**2 * (weight**2).sum()
        assert math.isclose(whole, smoothing._theory(s, n, np.array(h)), rel_tol=0.02)


def test_the_best_threshold_on_a_line():
    label = np.array([0, 1, 0, 1, 1])
    assert smoothing._split(np.array([0.0, 1.0, 2.0, 3.0, 4.0]), label) == 0.8
    assert smoothing._right(1 - label, label) == 1.0
