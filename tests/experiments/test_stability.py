"""Distances in the RKHS, at a size that takes a moment."""

import numpy as np
import tiny

from kernelcore.experiments import stability

TINY = tiny.settings("stability")


def test_the_last_layer_alone_is_lipschitz_and_the_ntk_is_not():
    result = tiny.result("stability")
    exponents = stability._exponents(result)
    np.testing.assert_allclose(exponents[:, 0], 1.0, atol=2e-3)
    np.testing.assert_allclose(exponents[:, 1], 0.5, atol=5e-3)
    # kappa1 is non-expansive: no distance on the sphere is longer in the RKHS.
    assert (result["local"][:, 0] <= result["r"] * (1 + 1e-6)).all()
    bounds = [c for c in stability.claims(result) if c.predicted is None]
    assert len(bounds) == 2
    assert all(claim.holds for claim in bounds)
    for name in ("translations", "deformations"):
        ckn, ntk = (result[f"{name}_{kind}"].mean(-1) for kind in ("CKN", "NTK"))
        assert (np.diff(ckn, axis=1) > 0).all()
        assert (ntk[:, 0] > ckn[:, 0]).all()
    assert "1.000" in stability.paragraph(result)
    assert len(stability.tables(result)) == 2
