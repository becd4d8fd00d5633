"""Noise in high frequencies, and the images that experiments read."""

import gzip

import numpy as np
import pytest
import tiny

import kernelcore as kc
from kernelcore.experiments import Result, _given, noise
from kernelcore.experiments._learn import seeds


@pytest.mark.parametrize("part", [0.05, 0.25, 0.5, 1.0])
def test_a_band_is_what_the_cosines_of_its_frequencies_span(part):
    images = np.random.default_rng(0).standard_normal((3, 6, 8, 2))
    bases = []
    for size in images.shape[1:3]:
        waves = np.cos(np.pi * np.outer(np.arange(size), np.arange(size) + 0.5) / size)
        bases.append(waves / np.sqrt((waves**2).sum(1, keepdims=True)))
    both = sorted(np.ndindex(6, 8), key=lambda ij: (ij[0] ** 2 + ij[1] ** 2, ij))
    count = max(1, round(48 * part))
    for chosen, highest in ((both[:count], False), (both[-count:], True)):
        waves = np.array([np.outer(bases[0][i], bases[1][j]).ravel() for i, j in chosen])
        flat = np.moveaxis(images, 3, 1).reshape(-1, 48)
        want = np.moveaxis((flat @ waves.T @ waves).reshape(3, 2, 6, 8), 1, 3)
        got = _given.band(images, part, highest=highest)
        np.testing.assert_allclose(got, want, atol=1e-12)


def test_shares_of_the_variance_add_up():
    images = _given.read("").X[:100].astype(np.float64)
    low, high = (noise._variance(images, 0.5, highest=h) for h in (False, True))
    assert low + high == pytest.approx(1)
    assert low > high
    values = noise._spectrum(images)
    want = np.linalg.eigvalsh(np.cov(images.reshape(100, -1).T))[::-1]
    np.testing.assert_allclose(values, want / want.sum(), atol=1e-12)


def test_parts_do_not_overlap():
    given = _given.read("")
    numbered = given._replace(X=np.arange(len(given.X)))
    x, y, z, w = _given.divided(numbered, 1000, 700, seeds(0))
    assert len({*x, *z}) == 1700
    assert np.array_equal(given.y[x], y)
    assert np.array_equal(given.y[z], w)


def test_a_set_with_a_test_of_its_own_is_tested_on_it(tmp_path):
    """Files in the format of MNIST, written by hand."""
    rng = np.random.default_rng(0)
    made = {}
    for part, n in (("train", 20), ("t10k", 8)):
        made[part] = X, y = rng.integers(0, 256, (n, 28, 28)), rng.integers(0, 10, n)
        for name, a in (("images-idx3", X), ("labels-idx1", y)):
            head = bytes((0, 0, 8, a.ndim)) + np.array(a.shape, ">u4").tobytes()
            with gzip.open(tmp_path / f"{part}-{name}-ubyte.gz", "wb") as file:
                file.write(head + a.astype(np.uint8).tobytes())
    given = _given.read(str(tmp_path))
    assert given.name == "Fashion-MNIST"
    np.testing.assert_allclose(given.X[..., 0], made["train"][0] / 255, rtol=1e-6)
    _, _, z, w = _given.divided(given, 20, 8, seeds(0))
    assert sorted(w) == sorted(made["t10k"][1])
    assert z.sum() == pytest.approx((made["t10k"][0] / 255).sum(), rel=1e-5)
    small = _given.shrunk(given.X, 2)
    np.testing.assert_allclose(small[3, 1, 5, 0], given.X[3, 2:4, 10:12, 0].mean(), rtol=1e-6)


def test_colours_are_read_from_one_file(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {}
    for part, n in (("train", 5), ("test", 3)):
        arrays[f"x_{part}"] = rng.integers(0, 256, (n, 32, 32, 3)).astype(np.uint8)
        arrays[f"y_{part}"] = np.arange(n)
    np.savez(tmp_path / "part.npz", **arrays)
    given = _given.read(str(tmp_path / "part.npz"))
    assert given.name == "CIFAR-10"
    np.testing.assert_allclose(given.X_test, arrays["x_test"] / 255, rtol=1e-6)


def test_ridges_are_chosen_on_held_images():
    s = tiny.settings("noise")
    parts = noise._Parts(s, _given.read(""), 0)
    x, z = (one.reshape(len(one), -1).astype(np.float64) for one in parts.noisy(3.0))
    kernel = kc.presets.mlp(1).ntk
    target = np.eye(10)[parts.y] - 0.1
    K = kernel(x)
    best = None
    for ridge in noise.RIDGES:
        system = K[40:, 40:] + ridge * K.diagonal().mean() * np.eye(120)
        alpha = np.linalg.solve(system, target[40:])
        guess = K[:40, 40:] @ alpha
        score = np.sum(guess.argmax(1) == parts.y[:40]), -np.square(guess - target[:40]).sum()
        if best is None or score > best[0]:
            best = score, alpha
    want = np.mean((kernel(z, x[40:]) @ best[1]).argmax(1) == parts.wanted)
    assert parts.kernel(kernel, x, z) == want


def test_the_lead_of_the_network_is_judged_with_its_error():
    result = tiny.result("noise")
    assert result["accuracy"].shape == (2, 2, len(noise.METHODS))
    # One draw is as in the other: a lead of 2 points at the start, and of 8 three units later.
    accuracy = np.full((2, 2, 5), 50.0)
    accuracy[0, :, 0], accuracy[1, :, 0] = 52.0, 58.0
    made = Result("noise", result.settings, {**result.arrays, "accuracy": accuracy})
    ahead, grows = noise.claims(made)[:2]
    assert (ahead.measured, grows.measured) == pytest.approx((8.0, 2.0))
    assert ahead.holds
    assert grows.holds
    accuracy[1, 0, 0] = 48.0  # -2 and 8: 3 on average, and no more than the error of 5
    made = Result("noise", result.settings, {**result.arrays, "accuracy": accuracy})
    assert not any(claim.holds for claim in noise.claims(made)[:2])
    assert "stand in for Fashion-MNIST" in noise.paragraph(result)
