"""Random features beside their kernel, at a size that takes a moment."""

import numpy as np
import tiny

from kernelcore.experiments import features


def test_features_reach_their_kernel_in_error_and_norm():
    result = tiny.result("features")
    ratio = result["errors"].mean(1) / result["kernel"].mean(1)
    assert (ratio[:, 0] > 1.3).all()
    assert np.abs(ratio[:, -1] - 1).max() < 0.3
    # At N = 256 the fit with the kernel of the features has nearly the norm of the kernel's.
    assert np.abs(result["norms"][..., -1].mean() - 1) < 0.1
    assert result["wrong"].shape == (3, 2, 2)
    assert "Fourier features" in features.paragraph(result)
