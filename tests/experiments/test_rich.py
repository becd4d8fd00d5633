"""Scales of the start, at a size that takes a moment."""

import numpy as np
import tiny

from kernelcore.experiments import rich


def test_a_large_scale_is_the_tangent_kernel_and_a_small_one_moves():
    result = tiny.result("rich")
    # In closed form, by gradient flow with the kernel at the start.
    np.testing.assert_allclose(result["test"][-1], result["tangent"], rtol=0.1)
    assert (result["moved"][0] > 5 * result["moved"][-1]).all()
    assert (result["train"] < 0.5).all()
    assert "3 neurons" in rich.paragraph(result)


def test_power_of_filters_is_that_of_plain_projections():
    rng = np.random.default_rng(0)
    filters, images = rng.standard_normal((64, 5)), rng.standard_normal((90, 64)) * np.arange(64)
    waves = np.cos(np.pi * np.outer(np.arange(8), np.arange(8) + 0.5) / 8)
    waves /= np.sqrt((waves**2).sum(1, keepdims=True))
    low = sorted(np.ndindex(8, 8), key=lambda ij: (ij[0] ** 2 + ij[1] ** 2, ij))[:16]
    basis = np.array([np.outer(waves[i], waves[j]).ravel() for i, j in low])
    leading = np.linalg.svd(images - images.mean(0))[2][:16]
    found = rich._powers(filters, images)
    for share, directions in zip(found, (basis, leading), strict=True):
        want = np.square(directions @ filters).sum() / np.square(filters).sum()
        np.testing.assert_allclose(share, want, rtol=1e-9)
    assert rich._powers(basis[:3].T, images)[0] > 1 - 1e-12


def test_filters_stay_noise_where_training_is_lazy():
    result = tiny.result("rich")
    power = result["power"]  # scale, before and after, kind, draw
    np.testing.assert_allclose(power[-1, 1], power[-1, 0], rtol=0.02)
    assert (power[0, 1, 1] > 1.1 * power[0, 0, 1]).all()
    assert (result["right"] > 30).all()  # 10 by chance
