"""Errors of kernels that take more than a message: what they leave alone, and all doors at once."""

import numpy as np
import pytest

import kernelcore as kc

X = np.arange(6.0).reshape(3, 2)
NTK = kc.presets.mlp(1).ntk


def test_overlap_of_a_part_is_refused():
    block = np.zeros((4, 3))
    with pytest.raises(
        ValueError, match=r"^out must not overlap X: they share memory; pass a copy$"
    ):
        NTK(block[:3], out=block[1:])
    before = block[:3].copy()
    np.testing.assert_array_equal(block[:3], before)


def test_an_ntk_that_overflows_before_the_variance_does():
    net = kc.Sequential(kc.Dense(), kc.Dense(), kc.Dense())
    assert np.isfinite(net.nngp.profile(1.0, radius=1.3e154))
    for call in (net.ntk, net.ntk.diag, net.kernels):
        with pytest.raises(
            OverflowError, match=r"^X must keep the kernel within float64: .*; scale X down$"
        ):
            call([[1.3e154]])


def test_kernels_do_not_combine_with_other_things():
    for combine in (lambda: NTK + 1, lambda: 1 + NTK, lambda: NTK * "2", lambda: [1] * NTK):
        with pytest.raises(TypeError):
            combine()


def test_a_failed_call_leaves_out_alone():
    out = np.full((3, 3), 7.0)
    for bad in (np.array([[1.0, np.nan]] * 3), 1e160 * X):
        with pytest.raises((ValueError, OverflowError)):
            NTK(bad, out=out)
        assert (out == 7).all()
