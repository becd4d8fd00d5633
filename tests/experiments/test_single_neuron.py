"""One direction, at a size that takes a moment."""

import numpy as np
import tiny

from kernelcore.experiments import single_neuron

TINY = tiny.settings("single_neuron")


def test_weights_turn_and_a_neuron_is_recovered():
    result = tiny.result("single_neuron")
    assert result["aligned"][0, 0] > 2 / TINY.dim
    assert result["errors"][0, 0, 0] < 0.9
    # Descent on one neuron without noise: each record is nearer than the one before.
    assert (np.diff(result["off"], axis=1) < 1e-12).all()
    assert [c.holds for c in single_neuron.claims(result)][-1]
    assert "one direction" in single_neuron.paragraph(result)
    assert len(single_neuron.tables(result)[0].rows) == 3


def test_alignment_of_weights_that_are_known():
    class Layer:
        def __init__(self, w):
            self.w = np.array(w)

    class Network:
        weights = (Layer([[3.0, 0.0], [0.0, 1.0]]), Layer([[1.0], [2.0]]))

    # Rows are inputs: units (3, 0) read with 1 and (0, 1) read with 2.
    assert single_neuron._alignment(Network, np.array([1.0, 0.0])) == 9 / 13
