"""A step on the circle, at a size that takes a moment."""

import numpy as np
import tiny

from kernelcore.experiments import heaviside

TINY = heaviside.Settings(n=200, widths=(0.5,), times=41, top=10, network=64, steps=40)


def test_a_laplacian_learns_by_powers_of_time_and_a_gaussian_does_not():
    result = tiny.result("heaviside")
    claims = {claim.text: claim for claim in heaviside.claims(result)}
    assert claims["exponent of err² in t, Laplacian"].holds
    gaussian, laplacian, ntk = result["errors"]
    assert gaussian[-1] > 3 * laplacian[-1]
    # Along gradient flow on the training points the loss falls; between them nearly so.
    assert (np.diff(laplacian) < 1e-3).all()
    assert (np.diff(ntk) < 1e-3).all()
    # Preconditioning is ahead of descent with the same kernel at every time.
    assert (result["eigenpro"] <= gaussian * (1 + 1e-9)).all()
    assert "200 equidistant points" in heaviside.paragraph(result)
