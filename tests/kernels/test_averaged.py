"""Kernels averaged over symmetries, against sums over all moved copies."""

import itertools

import numpy as np
import pytest

import kernelcore as kc

IMAGES = np.random.default_rng(0).standard_normal((5, 4, 6, 2))
OTHERS = np.random.default_rng(1).standard_normal((3, 4, 6, 2))
ROWS = np.random.default_rng(2).standard_normal((70, 3))
PLAIN = kc.presets.cntk(3, gap=False).ntk


def moved(x, symmetries):
    """All copies, written out."""
    if symmetries == "left and right":
        return [x, x[:, :, ::-1]]
    if symmetries == "all corners":
        return [x, x[:, ::-1], x[:, :, ::-1], x[:, ::-1, ::-1]]
    if symmetries == "shifts by two":
        return [np.roll(x, k, axis=2) for k in (0, 2, 4)]
    return [x, x[:, [1, 2, 0]], x[:, [2, 0, 1]]]


CASES = {
    "left and right": (PLAIN, kc.Flip(2), IMAGES, OTHERS),
    "all corners": (PLAIN, (kc.Flip(1), kc.Flip(2)), IMAGES, OTHERS),
    "shifts by two": (PLAIN, kc.Shift(2, step=2), IMAGES, OTHERS),
    "a cycle of columns": (kc.Gaussian(1.5), kc.Permutation((1, 2, 0)), ROWS, ROWS[:9] + 0.1),
}


@pytest.mark.parametrize("name", CASES)
def test_the_mean_over_all_pairs_of_copies(name):
    k, symmetries, x, y = CASES[name]
    average = kc.Averaged(k, symmetries)
    pairs = list(itertools.product(moved(x, name), moved(y, name)))
    want = sum(k(a, b) for a, b in pairs) / len(pairs)
    np.testing.assert_allclose(average(x, y), want, rtol=1e-13)
    K = average(x)
    assert (K == K.T).all()
    np.testing.assert_allclose(K, average(x, x), rtol=1e-13)
    np.testing.assert_array_equal(average.diag(x), K.diagonal())
    for one in moved(x, name):  # it does not change along the group
        np.testing.assert_allclose(average(one, y), average(x, y), rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-12 * np.abs(K).max()


def test_what_is_jointly_invariant_needs_one_mean():
    whole, joint = (kc.Averaged(PLAIN, kc.Flip(2), joint) for joint in (False, True))
    np.testing.assert_allclose(joint(IMAGES, OTHERS), whole(IMAGES, OTHERS), rtol=1e-12)
    K = joint(IMAGES)
    np.testing.assert_allclose(K, whole(IMAGES), rtol=1e-12)
    assert (K == K.T).all()
    np.testing.assert_array_equal(joint.diag(IMAGES), K.diagonal())


def test_algebra_and_operators_take_it():
    average = kc.Averaged(kc.Gaussian(1.5), kc.Permutation((1, 2, 0)))
    both = 2 * average + average * kc.Gaussian(3.0)
    K = average(ROWS)
    np.testing.assert_allclose(both(ROWS), 2 * K + K * kc.Gaussian(3.0)(ROWS), rtol=1e-13)
    operator = kc.GramOperator(average, ROWS, max_memory=1000)
    np.testing.assert_allclose(operator @ np.ones(70), K.sum(1), rtol=1e-12)
    assert average.replace(kernel__lengthscale=2.0).kernel == kc.Gaussian(2.0)


@pytest.mark.parametrize("axes", [1, 2])
def test_local_pooling_is_the_mean_over_shifted_copies(axes):
    """A border of zeros is wide enough for shifts by one and two convolutions."""
    rng = np.random.default_rng(3)
    x = np.zeros((2, *(9,) * axes, 2))
    x[(slice(None), *(slice(3, 6),) * axes)] = rng.standard_normal((2, *(3,) * axes, 2))
    flat = kc.presets.cntk(3, gap=False, axes=axes).ntk
    shifts = list(itertools.product((-1, 0, 1), repeat=axes))
    places = tuple(range(1, axes + 1))
    copies = [np.roll(x, shift, axis=places) for shift in shifts]
    want = sum(flat(a, b) for a in copies for b in copies) / len(copies) ** 2
    pooled = kc.presets.cntk(3, axes=axes, pool=3).ntk
    np.testing.assert_allclose(pooled(x, x), want, rtol=1e-12)


@pytest.mark.parametrize("name", ["myrtle", "ckn"])
def test_local_pooling_of_other_presets_is_that_mean_too(name):
    """Myrtle's before its last map; it has one position for four pixels, and the CKN for two."""
    if name == "myrtle":
        layers, step = kc.presets.myrtle(5, pool=3).layers[:-2], 4
        assert layers[:-2] == kc.presets.myrtle(5).layers[:-4]
    else:
        layers, step = kc.presets.ckn((3,), (2,), sigmas=0.6, pool=3).layers, 2
    assert layers[-2] == kc.AvgPool(3, stride=1, padding="same")
    pooled, flat = kc.Sequential(*layers), kc.Sequential(*layers[:-2], layers[-1])
    x = np.zeros((2, 28, 28, 1))
    x[:, 12:16, 12:16] = np.random.default_rng(6).standard_normal((2, 4, 4, 1))
    shifts = itertools.product((-step, 0, step), repeat=2)
    copies = [np.roll(x, shift, axis=(1, 2)) for shift in shifts]
    want = sum(flat.nngp(a, b) for a in copies for b in copies) / len(copies) ** 2
    np.testing.assert_allclose(pooled.nngp(x, x), want, rtol=1e-12)


def test_a_gaussian_filter_of_any_width():
    """On the inputs themselves, where the kernel is that of filtered images."""
    from scipy.ndimage import gaussian_filter

    for step, sigma in ((1, 0.7), (2, 1.6), (3, 0.9)):
        net = kc.Sequential(kc.Input(sum=True), kc.GaussianPool(step, sigma), kc.Flatten(sum=True))
        x = np.random.default_rng(4).standard_normal((3, 9, 9, 2))
        radius = int(np.ceil(3 * sigma))
        taps = {"mode": "constant", "radius": [0, radius, radius, 0]}
        smooth = gaussian_filter(x, (0, sigma, sigma, 0), **taps)
        # Windows of "same" padding: the smaller half of what is missing comes first.
        total = max((-(-9 // step) - 1) * step + 2 * radius + 1 - 9, 0)
        first = radius - total // 2
        kept = smooth[:, first::step, first::step].reshape(3, -1)
        np.testing.assert_allclose(net.nngp(x), kept @ kept.T, rtol=1e-12)


def test_maps_that_expand_are_told_from_others():
    rng = np.random.default_rng(5)
    for profile in (kc.profiles.Exp(0.6), kc.profiles.Exp(1.5), kc.profiles.Kappa1()):
        k = kc.Sequential(kc.Input(sum=True), kc.Dense(), kc.DotProduct(profile)).nngp
        x = rng.standard_normal((200, 3))
        y = x + 1e-3 * rng.standard_normal((200, 3))
        square = [float(np.sum(k([a, b]) * [[1, -1], [-1, 1]])) for a, b in zip(x, y, strict=True)]
        ratio = np.sqrt(np.maximum(square, 0)) / np.linalg.norm(x - y, axis=1)
        assert ratio.max() <= profile.lipschitz * (1 + 1e-6)
        assert ratio.max() >= 0.98 * profile.lipschitz
    assert kc.profiles.Kappa0().lipschitz == np.inf
    kc.presets.ckn(2, profiles=kc.profiles.Kappa1(), non_expansive=True)
