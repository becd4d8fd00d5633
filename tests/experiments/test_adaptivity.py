"""Adaptivity, at a size that takes a moment."""

import numpy as np
import pytest
import tiny

import kernelcore as kc
from kernelcore.experiments import Result, adaptivity
from kernelcore.experiments._learn import seeds

TINY = tiny.settings("adaptivity")


def test_targets_have_their_powers():
    tasks = adaptivity._tasks(TINY)
    assert list(tasks) == ["p = 3, s = 2", "p = 4, s = 2", "p = 4, s = 1", "latent", "generic"]
    for task in tasks.values():
        assert sum(task.power) == pytest.approx(1)
    smooth = adaptivity._powers(1.0, 8)
    assert smooth[4] / smooth[2] == pytest.approx(2.0**-3)


def test_latent_targets_read_a_direction_for_each_degree():
    """So that they do not change where the part of an input beyond these is turned around."""
    for name, same in (("latent", True), ("generic", False)):
        f, x = adaptivity._tasks(TINY)[name].draw(30, seeds(0))
        q = np.linalg.qr(np.concatenate([w[:1] for _, w, _ in f._parts]).T)[0]
        assert q.shape == (TINY.ambient, 2)
        assert np.allclose(f(2 * (x @ q) @ q.T - x), f(x)) is same


def test_a_subspace_keeps_cosines():
    x = kc.data.sphere(20, 3, seed=0)
    wide = adaptivity._embedded(x, 7, seeds(1))
    np.testing.assert_allclose(wide @ wide.T / 7, x @ x.T / 3, atol=1e-12)
    assert np.linalg.matrix_rank(wide) == 3


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_dimension_is_that_of_the_likelihood_of_neighbours(dim):
    rng = np.random.default_rng(dim)
    x = rng.random((400, dim)) @ rng.standard_normal((dim, 6))
    logs = []
    for one in x:
        first, second = np.sort(np.sqrt(np.square(x - one).sum(1)))[1:3]
        logs.append(np.log(second / first))
    found = adaptivity.intrinsic_dimension(x)
    assert found == pytest.approx(399 / sum(logs), rel=1e-6)
    # The spread of the estimate is dim/sqrt(n) for uniform inputs; edges take a little more.
    assert abs(found / dim - 1) < 4 / np.sqrt(400)


def test_claims_tell_who_adapts():
    result = tiny.result("adaptivity")
    assert result["around"] < 1e-9
    names = list(result["names"])
    assert result["predicted"][names.index("latent")] == pytest.approx(
        result["predicted"][names.index("generic")]
    )
    networks = result["networks"].copy()
    networks[names.index("latent"), :, -1] = 0.1
    networks[names.index("generic"), :, -1] = 0.5
    made = Result("adaptivity", result.settings, {**result.arrays, "networks": networks})
    (ratio,) = (c for c in adaptivity.claims(made) if c.text.startswith("networks do"))
    assert ratio.measured == pytest.approx(5)
    assert ratio.holds
    assert "curse of dimensionality" in adaptivity.paragraph(result)
