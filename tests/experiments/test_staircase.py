"""Learning curves of isotropic targets, at a size that takes a moment."""

import numpy as np

from kernelcore.experiments import Cells, staircase

TINY = staircase.Settings(
    dim=8, depths=(1, 2), sizes=4, high=2.6, draws=6, test=600, feature_sizes=4, feature_draws=6
)


def test_errors_lie_on_the_curves_and_end_at_the_floor_of_parity():
    cells = Cells()
    result = staircase.run(TINY, cells=cells)
    for claim in staircase.claims(result):
        assert claim.verdict <= 1, claim
    last = result["errors"].mean(-1)[:, -1]
    # Degree 3 has a third of the power, and one hidden layer without biases does not have it.
    assert last[0] > 0.3 > last[1]
    # The plane of n and N is large where both are equal, and on either side smaller.
    plane = result["features_predicted"]
    for k in range(1, len(plane) - 1):
        assert plane[k, k] > max(plane[k, k - 1], plane[k, k + 1])
    again = staircase.run(TINY, cells=cells)
    np.testing.assert_array_equal(again["errors"], result["errors"])
    assert "d = 8" in staircase.paragraph(result)
    assert len(staircase.tables(result)[0].rows) == len(result["n"])
