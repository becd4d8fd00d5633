"""Metrics that adapt, at a size that takes a moment."""

import math

import numpy as np
import tiny

from kernelcore.experiments import adaptive


def test_the_metric_turns_and_errors_fall():
    result = tiny.result("adaptive")
    errors, angles = result["errors"].mean(2), result["angles"].mean(2)
    assert (errors[:, -1, -1] < errors[:, -1, 0]).all()
    assert (angles[:, -1, -1] < 45).all()
    assert "two of d = 6" in adaptive.paragraph(result)


def test_the_target_has_power_one():
    x, weights = np.polynomial.hermite_e.hermegauss(8)
    weights = weights / weights.sum()
    grid = np.array([(a, b) for a in x for b in x])
    both = np.array([a * b for a in weights for b in weights])
    assert math.isclose(both @ adaptive._target(grid) ** 2, 1.0, rel_tol=1e-12)
