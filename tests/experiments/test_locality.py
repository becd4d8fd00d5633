"""Kernels on cyclic signals, at a size that takes a moment."""

import itertools

import numpy as np
import tiny

from kernelcore.experiments import locality

TINY = tiny.settings("locality")


def test_targets_have_power_one_on_all_signals():
    x = np.array(list(itertools.product((-1.0, 1.0), repeat=TINY.dim)))
    np.testing.assert_allclose((locality._values(TINY, x) ** 2).mean(0), 1.0)


def test_errors_lie_on_the_curves_and_symmetry_is_never_broken():
    result = tiny.result("locality")
    names = [claim.text for claim in locality.claims(result) if claim.verdict > 2]
    assert not [text for text in names if "predicted curve" in text]
    floor = result["floor"]
    # Global pooling has no part of f_HF, and 1/d of the power of one product.
    np.testing.assert_allclose(floor[4], [0, 1, 1, 11 / 12], atol=1e-12)
    np.testing.assert_allclose(floor[0], 0, atol=1e-12)
    last = result["errors"].mean(-1)[:, :, -1]
    assert last[4, 0] < last[0, 0]
    assert last[4, 1] > 0.9
    assert "q = 4" in locality.paragraph(result)
    assert len(locality.tables(result)[0].rows) == 5
