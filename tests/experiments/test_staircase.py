"""Learning curves of isotropic targets, at a size that takes a moment."""

import tiny

from kernelcore.experiments import staircase


def test_errors_lie_on_the_curves_and_end_at_the_floor_of_parity():
    result = tiny.result("staircase")
    for claim in staircase.claims(result):
        assert claim.verdict <= 1, claim
    last = result["errors"].mean(-1)[:, -1]
    # Degree 3 has a third of the power, and one hidden layer without biases does not have it.
    assert last[0] > 0.3 > last[1]
    # The plane of n and N is large where both are equal, and on either side smaller.
    plane = result["features_predicted"]
    for k in range(1, len(plane) - 1):
        assert plane[k, k] > max(plane[k, k - 1], plane[k, k + 1])
    assert "d = 8" in staircase.paragraph(result)
    assert len(staircase.tables(result)[0].rows) == len(result["n"])
