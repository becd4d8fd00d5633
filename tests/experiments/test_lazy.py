"""Networks beside their linearisation, at a size that takes a moment."""

import numpy as np
import tiny

from kernelcore.experiments import lazy


def test_exponents_in_the_scale_and_norms_of_solutions():
    result = tiny.result("lazy")
    claims = {claim.text: claim for claim in lazy.claims(result)}
    for name in ("|θ − θ₀| in α", "|θ − θ_lin| in α", "κ(w₀) in α"):
        assert claims[f"exponent of {name}"].holds
    # What no sample sees stays as it was: by least squares, whatever the start.
    np.testing.assert_allclose(result["ratios"], 1.0, atol=1e-3)
    # A wider network is nearer to its linearisation.
    assert (np.diff(result["tanh_far"].mean(0)) < 0).all()
    assert (np.diff(result["weights"].mean(0)[:, 1]) < 0).all()
    assert "side by side" in lazy.paragraph(result)
