"""Spiked covariates, at a size that takes a moment."""

import numpy as np
import tiny

from kernelcore.experiments import spiked

TINY = tiny.settings("spiked")


def test_errors_lie_on_the_curves_of_the_product_of_spheres():
    result = tiny.result("spiked")
    curves = spiked.claims(result)[: len(TINY.snrs)]
    assert all(claim.verdict <= 1 for claim in curves), curves
    # With more signal there is less to learn, in theory and as measured.
    assert (np.diff(result["predicted"][:, -1]) < 0).all()
    assert (np.diff(result["errors"].mean(-1)[:, -1]) < 0).all()
    assert result["fits"].shape == (2, 4, 1)
    # Points of the picture have the variances of the covariates.
    assert 10 < result["points"][1, :, 0].var() < 22
    assert "d_s = 2" in spiked.paragraph(result)
    assert spiked.tables(result)[0].rows[1][1] == "2"  # d_eff = d_s
