"""Norms and rates, at a size that takes a moment."""

import numpy as np
import tiny

from kernelcore.experiments import complexity


def test_random_labels_need_larger_norms():
    result = tiny.result("complexity")
    true, random = result["kernel"][:, 0].mean(-1)
    assert random > 1.2 * true
    assert result["fitted"].min() > 0.99
    # A Gram matrix predicts every step of descent on the tangent kernel.
    np.testing.assert_allclose(result["loss"], result["predicted"], rtol=0.15)
    assert (np.diff(result["loss"], axis=1) < 0).all()
    assert "even against odd" in complexity.paragraph(result)
