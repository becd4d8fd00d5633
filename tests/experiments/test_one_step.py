"""One gradient step, at a size that takes a moment."""

import numpy as np
import pytest
import tiny

from kernelcore.experiments import one_step


def test_weights_turn_towards_the_target_with_n():
    result = tiny.result("one_step")
    angles = result["angles"].mean(-1)
    assert (angles[:2, -1] < angles[:2, 0]).all()
    assert angles[0, -1] < 25
    # Where there is no average Hessian there is nothing to turn to.
    assert angles[2, -1] > angles[0, -1]
    assert result["errors"][0, -1, :, 0].mean() < 0.3
    assert np.isnan(result["errors"][:, -1, :, 1]).all()  # too many points for a kernel
    assert "r = 1" in one_step.paragraph(result)


@pytest.mark.parametrize("degrees", [0.0, 25.0, 90.0])
def test_angles_that_are_known(degrees):
    t = np.radians(degrees)
    basis = np.array([[np.cos(t), 0.0], [0.0, 1.0], [np.sin(t), 0.0]])
    assert abs(one_step._angle(basis, np.eye(3)[:, :2]) - degrees) < 1e-5
