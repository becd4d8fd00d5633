"""What a kernel can make of given data: against plain algebra, and against held-out points."""

import json
import math
import re

import numpy as np
import pytest

import kernelcore as kc
from kernelcore import cli

NTK = kc.presets.mlp(1).ntk


def smooth(n, d=4, noise=0.1, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X.astype(dtype), np.sin(X[:, 0]) + 0.5 * X[:, 1] + noise * rng.standard_normal(n)


def cubic(n, d=4, seed=0):
    """Points of a sphere, and a harmonic of degree 3 on it: x0^3 - 3/(d + 2) x0 with |x| = 1."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X, X[:, 0] ** 3 - 3 / (d + 2) * X[:, 0]


@pytest.mark.parametrize("ridge", [None, 0.5])
def test_numbers_of_the_spectrum_are_those_of_numpy(ridge):
    X, y = smooth(100)
    kernel = kc.Gaussian(2.0)
    found = kc.diagnose(kernel, X, y, ridge=ridge, seed=3)
    first = np.random.default_rng(3).permutation(100)[:80]  # the last fifth is held out
    K, y = kernel(X[first]), y[first]
    values, vectors = np.linalg.eigh(K)
    values, vectors = values[::-1], vectors[:, ::-1]
    assert (found.n, found.points, found.held, found.shape) == (100, 80, 20, (4,))
    assert found.ridge == (found.suggested_ridge if ridge is None else 0.5)
    # LAPACK's eigenvalues are good to a few roundings of the largest, times the root of n
    bound = 4 * math.sqrt(80) * values[0] * np.finfo(float).eps
    np.testing.assert_allclose(80 * found.eigenvalues, values, rtol=0, atol=bound)
    np.testing.assert_allclose(found.target_power[:20], (vectors.T @ y)[:20] ** 2 / 80, atol=1e-9)
    assert found.target_power.sum() == pytest.approx(np.mean(y**2), rel=1e-12)
    assert found.variance == pytest.approx(np.var(y), rel=1e-12)
    assert found.condition == pytest.approx((values[0] + found.ridge) / (values[-1] + found.ridge))
    hat = np.trace(np.linalg.solve(K + found.ridge * np.eye(80), K))
    assert found.effective_dimension == pytest.approx(hat, rel=1e-9)
    left_out = [np.delete(np.arange(80), i) for i in range(80)]
    fits = (np.linalg.solve(K[np.ix_(o, o)] + found.suggested_ridge * np.eye(79), y[o])
            for o in left_out)  # fmt: skip
    residuals = [y[i] - K[i, o] @ a for i, (o, a) in enumerate(zip(left_out, fits, strict=True))]
    asked = next(one for one in found.candidates if one.kernel == kernel)
    if found.suggested == kernel:
        assert asked.error == pytest.approx(np.mean(np.square(residuals)), rel=1e-8)


@pytest.mark.parametrize("kernel", [kc.presets.mlp(2, b_std=0.1).ntk, kc.Laplacian(3.0)], ids=repr)
def test_predictions_agree_with_held_out_points_within_their_bars(kernel):
    """Over five seeds and all sizes: squares of deviations over those of bars are one in the mean.

    25 of them are not independent; as few as five would have a mean of chi square beyond 2.2 in one
    of twenty cases.
    """
    X, y = smooth(600, noise=0.3)
    off = []
    for seed in range(5):
        found = kc.diagnose(kernel, X, y, seed=seed, candidates=())
        bars = np.hypot(found.predicted_error, found.measured_error)
        off.append((found.predicted - found.measured) / bars)
        assert (found.predicted_error < found.predicted).all()
    assert np.mean(np.square(off)) <= 2.2


def test_nothing_is_chosen_by_what_is_held_out():
    X, y = smooth(100)
    held = np.random.default_rng(0).permutation(100)[80:]
    other = y.copy()
    other[held] = -5.0
    one, two = (kc.diagnose(kc.Gaussian(1.0), X, labels) for labels in (y, other))
    for name in ("ridge", "suggested_ridge", "suggested", "candidates", "condition", "variance"):
        assert getattr(one, name) == getattr(two, name), name
    np.testing.assert_array_equal(one.predicted, two.predicted)
    assert (one.measured != two.measured).all()


def test_degrees_that_a_kernel_lacks_are_named_and_another_kernel_is_suggested():
    X, y = cubic(400)
    found = kc.diagnose(NTK, X, y)
    assert found.null_degrees == (3, 5, 7, 9)
    assert (found.measured > 0.9 * found.variance).all()
    assert found.suggested != NTK
    better = kc.diagnose(found.suggested, X, y, ridge=found.suggested_ridge)
    assert better.measured[-1] < 0.3 * better.variance
    assert re.search(r"\ncannot learn +degrees 3, 5, 7, 9 ", str(found))
    assert kc.diagnose(kc.Cauchy(1.0), X, y).null_degrees is None


def test_a_kernel_that_is_best_is_kept():
    X, y = smooth(200)
    kernel = kc.diagnose(kc.Gaussian(0.1), X, y).suggested
    found = kc.diagnose(kernel, X, y)
    assert found.suggested == kernel
    assert found.suggested_ridge == found.ridge
    errors = [one.error for one in found.candidates]
    assert errors == sorted(errors)


def test_labels_of_any_kind_are_classes():
    X, y = kc.data.digits()
    X, y = X[:150], y[:150] % 3
    names = np.array(["zero", "one", "two"], object)[y]
    found = [kc.diagnose(NTK, X, labels, seed=1) for labels in (y, names.astype(str), names)]
    for one in found:
        assert (one.task, one.outputs) == ("classification", 3)
        assert one.wrong[-1] < 0.5 * one.wrong[0]
        assert one.variance == pytest.approx(2 / 9, rel=0.05)
    np.testing.assert_allclose(found[1].measured, found[0].measured, rtol=1e-9)
    np.testing.assert_array_equal(found[1].measured, found[2].measured)
    plain = kc.diagnose(NTK, X, y, task="regression")
    assert (plain.task, plain.outputs, plain.wrong) == ("regression", 1, None)
    both = kc.diagnose(NTK, X, np.column_stack([y, 1.0 - y]))
    assert (both.task, both.outputs) == ("regression", 2)


def test_images_in_single_precision_are_compared_with_networks_that_see_no_neighbours():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6, 6, 2)).astype(np.float32)
    net = kc.Sequential(kc.Conv(3), kc.Relu(), kc.GlobalAvgPool(), kc.Dense())
    found = kc.diagnose(net.ntk, X, X.mean((1, 2, 3)))
    assert len(found.candidates) == 4
    assert found.null_degrees is None
    assert np.isfinite(found.predicted).all()


@pytest.mark.parametrize("kind", ["constant inputs", "constant target", "no ridge"])
def test_data_without_any_structure_give_finite_numbers(kind):
    X, y = smooth(60)
    X = np.ones_like(X) if kind == "constant inputs" else X
    y = np.zeros_like(y) if kind == "constant target" else y
    found = kc.diagnose(kc.Gaussian(1.0), X, y, ridge=0.0 if kind == "no ridge" else None)
    told = [found.predicted, found.predicted_error, found.measured, found.measured_error]
    assert np.isfinite(told).all()
    assert "nan" not in str(found)


def test_points_are_drawn_as_the_budget_allows():
    X, y = smooth(3000)
    kc.set_memory("12MB")
    found = kc.diagnose(NTK, X, y)
    assert found.points + found.held == int(math.sqrt(12e6 / 48))  # six arrays of float64
    assert found.n == 3000
    assert found.solver.solver != "direct"


def test_a_generator_is_a_seed_and_so_is_rng():
    X, y = smooth(60)
    one, two = (kc.diagnose(NTK, X, y, **{name: 5}) for name in ("seed", "rng"))
    three = kc.diagnose(NTK, X, y, seed=np.random.default_rng(5))
    assert str(one) == str(two) == str(three)


def test_the_command_prints_what_the_function_returns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = smooth(80)
    np.save("X.npy", X)
    np.savez("y.npz", y=y)
    found = kc.diagnose(kc.Gaussian(2.0), X, y, seed=2, ridge=0.1)
    command = ["diagnose", "X.npy", "y.npz", "--kernel", "gaussian:lengthscale=2", "--ridge", "0.1",
               "--seed", "2"]  # fmt: skip
    assert cli.main([*command, "--out", "page.html"]) == 0
    assert capsys.readouterr().out == f"{found}\n\n{tmp_path / 'page.html'}\n"
    assert "predicted" in (tmp_path / "page.html").read_text()
    assert cli.main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(json.dumps(found.as_dict()))
    assert told["measured"] == found.measured.tolist()
    assert cli.main([*command, "--out", "missing/page.html"]) == 1
    assert capsys.readouterr().err.startswith("kernelcore: --out must name a file")
    np.save("y.npy", np.arange(80) % 2)
    command[2] = "y.npy"
    assert cli.main([*command, "--regression", "--points", "60"]) == 0
    assert "classes" not in capsys.readouterr().out


def test_inputs_in_files_are_read_point_by_point(tmp_path):
    zarr = pytest.importorskip("zarr")
    X, y = smooth(60)
    np.save(tmp_path / "x.npy", X)
    stored = zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(7, 4))
    told = str(kc.diagnose(NTK, X, y))
    assert str(kc.diagnose(NTK, np.load(tmp_path / "x.npy", mmap_mode="r"), y)) == told
    assert str(kc.diagnose(NTK, stored, y)) == told
