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
