"""Inputs and targets against exact moments, deformations against their norms, files as written."""

import gzip
import itertools
import math
import pathlib
import pickle
import struct

import numpy as np
import pytest
from scipy.fft import dctn

import kernelcore as kc
from kernelcore import data


def corners(dim):
    """All points of the hypercube."""
    return np.array(list(itertools.product((-1.0, 1.0), repeat=dim)))


# ---- inputs and targets


@pytest.mark.parametrize("draw", [
    lambda n: data.sphere(n, 6, seed=0), lambda n: data.gaussian(n, 6, seed=0),
    lambda n: data.hypercube(n, 6, seed=0), lambda n: data.spiked(n, 6, 2, 4.0, seed=0),
])  # fmt: skip
def test_inputs_have_the_covariance_of_their_law(draw):
    n = 40_000
    x = draw(n)
    variance = np.array([4, 4, 1, 1, 1, 1]) if abs(x[0] @ x[0] - 12) < 1e-9 else np.ones(6)
    scale = np.sqrt(variance * variance[:, None])
    # An entry of the mean of n products deviates by at most sqrt(2/n), or 3/n for four moments.
    assert np.abs((x.T @ x / n - np.diag(variance)) / scale).max() < 5 * math.sqrt(2 / n)
    assert np.abs(x.mean(0) / np.sqrt(variance)).max() < 5 / math.sqrt(n)


def test_spiked_inputs_lie_on_two_spheres():
    x = data.spiked(50, 20, 1, 16.0, seed=1)
    np.testing.assert_allclose(np.abs(x[:, 0]), 4.0)
    np.testing.assert_allclose((x[:, 1:] ** 2).sum(1), 19.0)
    assert len(set(np.sign(x[:, 0]))) == 2


def test_chains_have_their_power_exactly_on_the_hypercube():
    x, power = corners(6), [0.1, 0.2, 0.0, 0.7]
    y = data.Chains(6, power, seed=3)(x)
    # Degrees are orthogonal: their powers are those of the Walsh coefficients.
    found = np.zeros(7)
    for size in range(7):
        for subset in itertools.combinations(range(6), size):
            found[size] += (y @ x[:, list(subset)].prod(1) / len(x)) ** 2
    np.testing.assert_allclose(found, [*power, 0, 0, 0], atol=1e-14)


def test_chains_on_the_sphere_have_their_power_and_no_norm():
    f, n = data.Chains(5, [0.0, 0.0, 0.5, 0.5], seed=3, law="sphere"), 200_000
    x = data.sphere(n, 5, seed=4)
    y = f(x)
    assert abs((y**2).mean() - 1) < 5 * (y**2).std() / math.sqrt(n)
    np.testing.assert_allclose(f(3 * x[:10]), y[:10], rtol=1e-12)
    power, error = kc.spectrum.degree_power(x[:3000], y[:3000], 4)
    assert (np.abs(power - [0, 0, 0.5, 0.5, 0]) < 5 * error).all()


def test_low_and_high_frequencies_against_their_sums():
    x = data.hypercube(20, 8, seed=0)
    for f, sign in ((data.low_frequency, 1), (data.high_frequency, -1)):
        sums = [
            sum(sign**i * math.prod(row[(i + k) % 8] for k in range(3)) for i in range(8))
            for row in x
        ]
        np.testing.assert_allclose(f(x), np.array(sums) / math.sqrt(8), rtol=1e-14)
        shifted = f(np.roll(x, 1, axis=1))
        np.testing.assert_allclose(shifted, sign * f(x), rtol=1e-13)
        np.testing.assert_allclose((f(corners(8)) ** 2).mean(), 1.0, rtol=1e-13)


def test_hermite_targets_of_a_subspace_have_their_power():
    x, weights = np.polynomial.hermite_e.hermegauss(12)
    weights = weights / weights.sum()
    g = data.hermite([0.0, 0.0, 0.25, 0.75])
    np.testing.assert_allclose(weights @ g(x) ** 2, 1.0, rtol=1e-12)
    np.testing.assert_allclose(weights @ (g(x) * (x**2 - 1) / 2**0.5), 0.5, rtol=1e-12)
    U = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 2)))[0]
    z = np.array(list(itertools.product(x, x)))
    y = data.Subspace(U, g)(z @ U.T)
    both = np.array([a * b for a, b in itertools.product(weights, weights)])
    np.testing.assert_allclose(both @ y**2, 1.0, rtol=1e-12)
    np.testing.assert_array_equal(data.neuron(U[:, 0], np.sin)(z @ U.T), np.sin(z @ U.T @ U[:, 0]))


def test_labels_are_drawn_anew_in_the_share_asked_for():
    y = np.repeat(["a", "b", "c", "d"], 500)
    changed = (data.random_labels(y, 0.4, seed=0) != y).mean()
    assert abs(changed - 0.3) < 5 * math.sqrt(0.4 * 0.25 * 0.75 / 2000)
    assert (data.random_labels(y, 0.0) == y).all()


# ---- images


def test_noise_is_in_the_high_frequencies_of_its_norm():
    rng = np.random.default_rng(0)
    x = rng.random((3, 28, 28, 1))
    noisy = data.frequency_noise(x, 2.0, seed=1)
    np.testing.assert_allclose((noisy**2).sum((1, 2, 3)), 784)
    i, j = np.ogrid[:28, :28]
    low = np.hypot(i - 27, j - 27) > 27
    before = dctn(x - x.mean((1, 2, 3), keepdims=True), axes=(1, 2), norm="ortho")[..., 0]
    after = dctn(noisy, axes=(1, 2), norm="ortho")[..., 0]
    for a, b in zip(before, after, strict=True):
        scale = (b[low] @ a[low]) / (a[low] @ a[low])
        np.testing.assert_allclose(b[low], scale * a[low], atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(b / scale - a), 2 * np.linalg.norm(a))


def test_a_constant_displacement_is_a_translation():
    x = np.random.default_rng(0).random((2, 6, 5, 3))
    moved = data.deform(x, [2.0, -1.0])
    np.testing.assert_allclose(moved[:, 2:, :-1], x[:, :-2, 1:], rtol=1e-13)
    assert not moved[:, :2].any()
    half = data.deform(x, np.full((6, 5, 2), (0.5, 0.0)))
    np.testing.assert_allclose(half[:, 1:], (x[:, 1:] + x[:, :-1]) / 2, rtol=1e-13)


@pytest.mark.parametrize("gradient", [0.1, 0.4])
def test_deformations_have_the_norms_asked_for(gradient):
    d = data.deformation((20, 24), 1.5, gradient, seed=2)
    sizes = np.sqrt((d.tau**2).sum(-1))
    rows, columns = np.gradient(d.tau, axis=(0, 1))
    steepest = max(np.linalg.norm([rows[i, j], columns[i, j]], 2) for i, j in np.ndindex(20, 24))
    np.testing.assert_allclose([sizes.max(), steepest], [1.5, gradient], rtol=1e-9)
    np.testing.assert_allclose([d.size, d.gradient], [1.5, gradient], rtol=1e-9)
    wide = data.deformation((20, 24), 1.5, scale=d.scale, seed=2)
    np.testing.assert_allclose(wide.tau, d.tau)


def test_whitening_is_the_nearest_of_all():
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((400, 6)) @ rng.standard_normal((6, 6))).reshape(400, 2, 3, 1)
    white = data.Whitening(x, epsilon=0.0)
    z = white(x)
    assert z.shape == x.shape
    np.testing.assert_allclose(np.cov(z.reshape(400, -1).T), np.eye(6), atol=1e-10)
    np.testing.assert_allclose(white.matrix, white.matrix.T, atol=1e-12)
    assert (np.linalg.eigvalsh(white.matrix) > 0).all()  # ZCA is the symmetric positive root


def test_flips():
    x = np.random.default_rng(0).random((3, 4, 5, 2))
    np.testing.assert_array_equal(data.flips(x)[3:], x[:, :, ::-1])
    np.testing.assert_array_equal(data.flips(x, axis=1)[3:], x[:, ::-1])


# ---- files


def idx(array):
    array = np.asarray(array, np.uint8)
    head = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.tobytes()


def test_idx_files_gzipped_or_not(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (5, 28, 28)), rng.integers(0, 10, 5)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(x)))
    (tmp_path / "train-labels.idx1-ubyte").write_bytes(idx(y))
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(x[:2]))
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(y[:2])))
    for load in (data.mnist, data.fashion_mnist):
        found = load(tmp_path)
        for got, want in zip(found, (x[..., None], y, x[:2, ..., None], y[:2]), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.slow  # needs a package of Debian
def test_fashion_mnist_of_debian():
    if not pathlib.Path(data._files.DEBIAN).is_dir():
        pytest.skip("dataset-fashion-mnist is not installed")
    found = data.fashion_mnist()
    assert found.X_train.shape == (60_000, 28, 28, 1)
    assert np.bincount(found.y_test).tolist() == [1000] * 10


def test_batches_of_both_kinds_and_npz(tmp_path):
    rng = np.random.default_rng(0)
    planes, labels = rng.integers(0, 256, (7, 3072), dtype=np.uint8), rng.integers(0, 10, 7)
    images = planes.reshape(7, 3, 32, 32).transpose(0, 2, 3, 1)
    for name, part in (("data_batch_1", slice(3)), ("data_batch_2", slice(3, 5)),
                       ("test_batch", slice(5, 7))):  # fmt: skip
        content = {b"data": planes[part], b"labels": labels[part].tolist(), b"batch_label": b"one"}
        (tmp_path / name).write_bytes(pickle.dumps(content, 2))
        records = np.hstack([labels[part, None].astype(np.uint8), planes[part]])
        (tmp_path / "binary").mkdir(exist_ok=True)
        (tmp_path / "binary" / f"{name}.bin").write_bytes(records.tobytes())
    np.savez(tmp_path / "all.npz", x_train=images[:5], y_train=labels[:5, None],
             x_test=images[5:], y_test=labels[5:])  # fmt: skip
    for path in (tmp_path, tmp_path / "binary", tmp_path / "all.npz"):
        found = data.cifar10(path)
        for got, want in zip(found, (images[:5], labels[:5], images[5:], labels[5:]), strict=True):
            np.testing.assert_array_equal(got, want)


def test_every_truncation_of_a_batch_is_refused(tmp_path):
    content = {b"data": np.zeros((1, 3072), np.uint8), b"labels": [1]}
    whole = pickle.dumps(content, 2)
    (tmp_path / "data_batch_1").write_bytes(whole)
    for end in [*range(0, len(whole) - 1, 97), len(whole) - 1]:
        (tmp_path / "test_batch").write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"test_batch must be a batch of CIFAR-10: "):
            data.cifar10(tmp_path)
