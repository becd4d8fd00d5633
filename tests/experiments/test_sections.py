"""Experiments that show what the package does: their parts, against plain versions of them."""

import itertools
import os
from dataclasses import replace

import numpy as np
import pytest
import scipy.special
import tiny

import kernelcore as kc
from kernelcore import data, experiments
from kernelcore.experiments import (
    _cifar,
    _draw,
    _given,
    _words,
    curves,
    defaults,
    digits,
    images,
    learning,
    spectrum,
    speed,
    uci,
)


@pytest.mark.parametrize("name", tiny.SETTINGS)
def test_equal_settings_give_equal_results(name, tmp_path):
    """To the last bit, in memory as from cells that are there already; but for times."""
    again = experiments.run(name, tiny.settings(name), out=tmp_path)
    (folder,) = (tmp_path / "cells").iterdir()
    (tmp_path / f"{name}.npz").unlink()
    for file in sorted(folder.iterdir())[::2]:
        file.unlink()
    resumed = experiments.run(name, tiny.settings(name), out=tmp_path)
    for other in (again, resumed):
        assert other.settings == tiny.result(name).settings
        for key, a in tiny.result(name).arrays.items():
            assert a.shape == other[key].shape
            if name != "speed":
                assert np.array_equal(a, other[key], equal_nan=a.dtype.kind == "f")


@pytest.mark.parametrize("name", tiny.SETTINGS)
def test_what_is_said_is_plain_text(name):
    module, result = experiments.load(name), tiny.result(name)
    claims = module.claims(result)
    assert claims
    with _draw.style():
        pictures = module.plot(result)
    told = [module.paragraph(result), *(claim.text for claim in claims)]
    told += [text for picture in pictures for text in (picture.caption, picture.alt)]
    tables = module.tables(result) if hasattr(module, "tables") else []
    told += [table.caption for table in tables]
    for text in told:
        assert not any(mark in text for mark in ("<", ">", "&", "nan", "$"))
    assert len({picture.name for picture in pictures}) == len(pictures)
    for table in tables:
        assert all(len(row) == len(table.head) for row in table.rows)


@pytest.mark.parametrize("name", experiments.NAMES)
def test_every_experiment_has_presets_and_their_times(name):
    module = experiments.load(name)
    assert replace(module.PRESETS["small"], seed=0) == module.Settings()
    assert set(module.SECONDS) == set(module.PRESETS)
    assert all(isinstance(preset, experiments.Settings) for preset in module.PRESETS.values())


# ---- words


def test_numbers_in_words():
    assert _words.signed(-0.004, 2) == "0.00"
    assert _words.signed(-1.5, 1) == "−1.5"
    assert _words.power_of_ten(1e-12) == "10⁻¹²"
    assert _words.scientific(1.7e-4) == "1.7·10⁻⁴"
    assert _words.listed([1, 2, 3]) == "1, 2 and 3"
    assert _words.listed(["a"]) == "a"
    assert _words.spanned([1.001, 0.999]) == "1.00"
    assert _words.spanned([1.0, 2.0], 1) == "1.0 to 2.0"
    assert _words.plus_minus(-1.0, 0.25, 2) == "−1.00 ± 0.25"


# ---- data


def test_digits_are_the_published_ones():
    x, y = data.digits()
    assert x.shape == (1797, 64)
    assert x.dtype == np.float64
    assert y.shape == (1797,)
    assert y.dtype == np.int64
    assert (x.min(), x.max()) == (0, 16)
    assert np.array_equal(x, np.round(x))
    # Class counts of optdigits.names (testing file), and the first image of the file.
    assert np.bincount(y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert y[:10].tolist() == list(range(10))
    assert x[0, :16].tolist() == [0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0]


def test_digits_are_new_at_each_call():
    x, y = data.digits()
    x[:], y[:] = -1, -1
    again_x, again_y = data.digits()
    assert again_x.min() == 0
    assert again_y.min() == 0


# ---- speed


def test_the_numpy_version_is_the_same_kernel():
    x = np.random.default_rng(0).standard_normal((20, 7))
    # NumPy's arccos loses half of the digits on the diagonal: sqrt(eps) is about 1.5e-8.
    np.testing.assert_allclose(speed.numpy_ntk(x, 3), kc.presets.mlp(3).ntk(x), rtol=2e-7)


@pytest.mark.parametrize(("load", "warns"), [(1.0, False), (6.0, False), (6.1, True)])
def test_speed_warns_on_a_busy_machine(monkeypatch, load, warns):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    result = tiny.result("speed")
    arrays = {**result.arrays, "load": np.full((2, 2, 1), speed._load())}
    told = speed.paragraph(experiments.Result("speed", result.settings, arrays))
    assert ("Other work was running (load 1.5 per CPU)" in told) is warns


# ---- digits


def test_ridge_solves_its_system():
    rng = np.random.default_rng(1)
    factor = rng.standard_normal((6, 6))
    gram, target = factor @ factor.T, rng.standard_normal((6, 2))
    kept = gram.copy()
    weights = digits._ridge(gram, 0.5, target)
    system = gram + 0.5 * np.trace(gram) / 6 * np.eye(6)
    np.testing.assert_allclose(system @ weights, target, rtol=1e-10, atol=1e-12)
    assert np.array_equal(gram, kept)


def test_choice_of_ridge_and_lengthscale_never_sees_the_test():
    x, y = data.digits()
    x = x / 16
    kernels = [kc.Gaussian(0.5), kc.Gaussian(2.0)]
    together, ridge = digits._classify(kernels, x[:80], y[:80], x[80:120])
    for part in (slice(80, 100), slice(100, 120)):
        alone, same = digits._classify(kernels, x[:80], y[:80], x[part])
        assert same == ridge
        assert np.array_equal(alone, together[part.start - 80 : part.stop - 80])


# ---- images


def test_images_stand_where_their_corners_say():
    some = np.arange(1, 13, dtype=np.float32).reshape(3, 2, 2)
    corners = np.array([[0, 0], [3, 2], [1, 3]])
    canvas = images._on_canvas(some, corners, 5)
    assert canvas.shape == (3, 5, 5, 1)
    assert canvas.dtype == np.float32
    for image, (i, j), found in zip(some, corners, canvas[..., 0], strict=True):
        assert np.array_equal(found[i : i + 2, j : j + 2], image)
        assert found.sum() == image.sum()


def test_ridge_of_the_canvas_is_that_of_leaving_one_out():
    rng = np.random.default_rng(2)
    labels = np.repeat(np.arange(10), 3)
    factor = rng.standard_normal((30, 8)) + np.eye(10).repeat(3, axis=0)[:, :8]
    gram = factor @ factor.T + 0.1 * np.eye(30)
    target = np.eye(10)[labels] - 0.1

    def solve(keep, ridge):
        system = gram[np.ix_(keep, keep)] + ridge * gram.diagonal().mean() * np.eye(len(keep))
        return np.linalg.solve(system, target[keep])

    scores = []
    for ridge in images.RIDGES:
        held = []
        for i in range(30):
            keep = np.delete(np.arange(30), i)
            held.append(gram[i, keep] @ solve(keep, ridge))
        held = np.array(held)
        scores.append(((held.argmax(1) != labels).sum(), np.square(held - target).sum()))
    best = images.RIDGES[scores.index(min(scores))]
    assert best not in (images.RIDGES[0], images.RIDGES[-1])
    # Condition number of the system times rounding, with room.
    np.testing.assert_allclose(images._fitted(gram, labels), solve(np.arange(30), best), rtol=1e-9)


def test_only_global_pooling_is_blind_to_positions():
    some = data.digits()[0][:2].reshape(-1, 8, 8) / 16
    here, there = (images._on_canvas(some, np.full((2, 2), k), 12) for k in (0, 3))
    for name, kernel in images.KERNELS.items():
        change = np.abs(kernel(here, there) / kernel(here) - 1).max()
        assert (change < 1e-12) == (name == images.GAP), name


def test_kernels_of_the_table_are_those_of_presets_and_pooling_gains():
    """Myrtle-5 without its 8 x 8 window is the published one on 32 x 32 pixels."""
    x = np.random.default_rng(7).random((2, 32, 32, 3), dtype=np.float32)
    makers = _cifar.grams(32, x, 0)
    assert set(makers) == set(_cifar.PUBLISHED)
    np.testing.assert_allclose(
        makers[_cifar.MYRTLE](x), kc.presets.myrtle(5).nngp(x), rtol=1e-5
    )  # float32
    result = tiny.result("images")
    right = dict(zip(_cifar.PUBLISHED, result["table"], strict=True))
    assert all(one.mean() > 30 for one in right.values())  # 10 by chance
    claims = {claim.text: claim for claim in images.claims(result)}
    gain = next(claim for text, claim in claims.items() if text.startswith("Local pooling"))
    assert gain.measured == (right[_cifar.LOCAL] - right[_cifar.FLAT]).mean()
    assert not any("Mirror" in text for text in claims)


def test_few_images_are_those_of_a_plain_fit(tmp_path):
    """Of shapes that CIFAR-10 has; from cells, which hold parts of the matrix."""
    rng = np.random.default_rng(8)
    y, w = np.repeat(np.arange(10), 3), np.arange(10).repeat(2)
    level = rng.random((10, 32, 32, 3)) * 200
    pixels = {
        name: np.clip(level[labels] + 20 * rng.standard_normal((len(labels), 32, 32, 3)), 0, 255)
        for name, labels in (("x_train", y), ("x_test", w))
    }
    file = tmp_path / "some.npz"
    np.savez(file, y_train=y, y_test=w, **{k: v.astype(np.uint8) for k, v in pixels.items()})
    s = images.Settings(data=str(file), few=(10, 25), few_test=15, few_depth=2, few_draws=3)
    given = _given.read(str(file))
    found = images._few(s, given, experiments.Cells(tmp_path / "cells"), None)
    rng = np.random.default_rng([s.seed, 2])
    X, labels, Z, wanted = _given.divided(given, 25, 15, rng)
    X, Z = ((a - X.mean((0, 1, 2))) / X.std((0, 1, 2)) for a in (X, Z))
    kernel = kc.presets.cntk(2).ntk
    K, K_test = kernel(X), kernel(Z, X)
    for order in (rng.permutation(25) for _ in range(1)):
        for k, n in enumerate((10, 25)):
            some = order[:n]
            weights = images._fitted(K[np.ix_(some, some)].astype(float), labels[some])
            right = 100 * np.mean((K_test[:, some] @ weights).argmax(1) == wanted)
            assert found[k, 0] == pytest.approx(right)
    assert found.shape == (2, 3)


# ---- spectrum


def test_fitted_exponents_are_those_of_the_closed_forms():
    result = tiny.result("spectrum")
    laws = {(name, parity): fits for name, parity, _, fits in spectrum._laws(result)}
    deep, shallow = f"NTK, {spectrum.DEEP} hidden layers", "NTK, 1 hidden layer"
    vanish = {("κ₀", 0), ("κ₁", 1), (shallow, 1)}
    assert set(laws) == set(itertools.product(("κ₀", "κ₁", shallow, deep), (0, 1))) - vanish
    # Bach 2017: max(0, t)^n has the root of mu_k in degrees k > n with k - n odd.
    degrees = result.settings["degrees"]
    for n, key in enumerate((("κ₀", 1), ("κ₁", 0))):
        k = np.arange(degrees // 2 + (n + 1) % 2, degrees + 1, 2)
        for p, (exponent, _) in zip(result.settings["dims"], laws[key], strict=True):
            root = scipy.special.gammaln(k - n) - k * np.log(2)
            root -= scipy.special.gammaln((k - n + 1) / 2)
            log = 2 * (root - scipy.special.gammaln((k + p + n) / 2))
            slope = np.polyfit(np.log(k + (p - 2) / 2), log, 1)[0]
            assert exponent == pytest.approx(slope, rel=1e-8)


def test_exponents_that_are_off_are_said_to_be():
    result = tiny.result("spectrum")
    assert all(claim.holds for claim in spectrum.claims(result)[:4])
    arrays = {**result.arrays, "fit": result["fit"] * 1.02}
    off = spectrum.claims(experiments.Result("spectrum", result.settings, arrays))
    assert [claim.holds for claim in off[:4]] == [False] * 4


def test_levels_are_cut_and_shifted_as_stated():
    from kernelcore.spectrum import Spectrum

    part = spectrum.PART
    mu, count, tail = (0.2, 0.0, 0.5, 0.01), (3, 7, 1, 2 * part), 0.1
    trace = 3 * 0.2 + 0.5 + 2 * part * 0.01 + tail
    with np.errstate(divide="ignore"):
        theory = Spectrum(np.log(mu), count, trace)
    n = 6 * part  # room for the first two levels alone
    found = np.linspace(2.0, 0.0, 2 * n).reshape(2, n)
    first, second = spectrum._levels(theory, found)
    assert [*first[:2], *second[:2]] == [2, 1, 0, 3]
    assert first[4] == pytest.approx(found[:, 0].mean() / 0.5 - 1)
    assert second[4] == pytest.approx(found[:, 1:4].mean() / 0.2 - 1)
    assert second[5] == pytest.approx(abs(found[1] - found[0])[1:4].mean() / 2 / 0.2)
    shift = 0.5 / (0.2 - 0.5) + 2 * part * 0.01 / (0.2 - 0.01) + tail / 0.2
    assert second[3] == pytest.approx(shift / n)


def test_mean_of_a_level_shifts_as_predicted_to_second_order():
    # Two degrees alone: exact but for third order, (N_1 N_2)^(1/2) n^(-3/2) at these sizes.
    rng, n = np.random.default_rng(5), 400
    theory = kc.spectrum.sphere((0.0, 1.0, 0.5), 4, 2)
    points = [spectrum._uniform(rng, n, 4) for _ in range(30)]
    grams = (x @ x.T + 0.5 * (x @ x.T) ** 2 for x in points)
    found = np.array([kc.spectrum.gram(gram, vectors=False).eigenvalues for gram in grams])
    for *_, shift, mean, error in spectrum._levels(theory, found):
        assert abs(mean - shift) < 4 * error + n**-1.5
        assert error < abs(shift)


@pytest.mark.parametrize("parity", [0, 1])
def test_drawn_degrees_have_one_parity_and_reach_both_ends(parity):
    k = spectrum._few(parity, 0.0, 1000)
    assert set(k % 2) == {parity}
    assert k[:4].tolist() == [2 - parity, 4 - parity, 6 - parity, 8 - parity]
    assert 1000 / 1.3 < k[-1] <= 1000


# ---- curves


def test_a_wrong_theory_shows_in_the_claims(monkeypatch):
    s = curves.Settings(sizes=(30, 60, 120), draws=4, test=200, features=40, shares=(0.5, 1, 2))
    right = kc.theory.learning_curve
    assert all(claim.holds for claim in curves.claims(curves.run(s))[:2])
    monkeypatch.setattr(kc.theory, "learning_curve", lambda *a: 1.5 * right(*a))
    assert not any(claim.holds for claim in curves.claims(curves.run(s))[:2])


# ---- learning


def test_chosen_ridges_stay_within_the_figure():
    """Whatever the criteria choose, and however far off."""
    result = tiny.result("learning")
    far = {**result.arrays, "chosen": np.array([(1e-14, 0.0), (1e-4, 0.0), (1e9, 0.0)])}
    with _draw.style():
        fig = learning._draw_paths(experiments.Result("learning", result.settings, far))
        fig.draw_without_rendering()
    axes = fig.axes[0]
    inside = axes.get_window_extent()
    assert [text.get_text() for text in axes.texts] == [
        "leave-one-out (1e-14)", "generalised CV", "marginal likelihood (1e+09)",
    ]  # fmt: skip
    for text in axes.texts:
        box = text.get_window_extent()
        assert inside.x0 <= box.x0 < box.x1 <= inside.x1
    assert axes.get_xlim()[1] < 1000


def test_ridges_are_chosen_without_test_images():
    task = learning._digits(kc.presets.mlp(2, b_std=0.1).ntk, learning.Settings(n=200))
    blind = task._replace(K_test=task.K_test[:50], labels=task.labels[:50])
    chosen, again = learning._paths(task)["chosen"], learning._paths(blind)["chosen"]
    assert chosen[:, 0].tolist() == again[:, 0].tolist()
    # Interpolating spoiled labels is worse than what leave-one-out chooses.
    alpha = np.linalg.solve(task.K, task.y)
    assert chosen[0, 1] < task.wrong(task.K_test @ alpha)


def test_descent_is_on_the_flow():
    """After k steps of 1/lambda_max a mode of relative eigenvalue l has (1 - l)^(2k) of its energy
    left, after the flow exp(-2 l k): at most 0.157 apart (k = 1, l = 0.71), 0.157/k by and large.
    """
    result = tiny.result("learning")
    apart = np.abs(result["flow.steps"][0] - result["descent"][0])
    first = 0.9**2 + 9 * 0.1**2
    assert (apart <= 0.16 / learning.STEPS * first + 1e-12).all()


# ---- defaults


def test_the_table_of_defaults_has_every_estimator_of_a_kernel_and_solver():
    """Clusters are without labels, so that there is nothing to score."""
    from sklearn.base import is_clusterer

    from kernelcore import estimators
    from kernelcore.estimators import _ridge

    made = {name: getattr(kc, name)() for name in estimators.__all__}
    of_kernels = {name for name, model in made.items() if "kernel" in model.get_params()}
    scored = {name for name in of_kernels if not is_clusterer(made[name])}
    assert {name for name, _ in defaults.MODELS} == scored
    assert defaults.SOLVERS == _ridge.SOLVERS
    solvers = {name: [s for n, s in defaults.MODELS if n == name] for name, _ in defaults.MODELS}
    for name, listed in solvers.items():
        has = "solver" in getattr(kc, name)().get_params()
        assert listed == (list(defaults.SOLVERS) if has else [""])


def test_scores_of_defaults_are_those_of_scikit_learn():
    from sklearn.metrics import log_loss

    x, labels = data.digits()
    x = x / 16
    s = defaults.Settings(n=150, test=400)
    accuracy, loss, reachable = defaults._score("KernelClassifier", "auto", None, x, labels, s)
    model = kc.KernelClassifier().fit(x[:150], labels[:150])
    test, truth = x[-400:], labels[-400:]
    assert accuracy == pytest.approx(100 * model.score(test, truth))
    assert loss == pytest.approx(log_loss(truth, model.predict_proba(test)))
    losses = [
        log_loss(truth, scipy.special.softmax(model.decision_function(test) / t, 1))
        for t in np.geomspace(0.02, 1, 200)
    ]
    assert reachable == pytest.approx(min(losses), rel=1e-3)
    again, *none = defaults._score("KernelRegressor", "auto", None, x, labels, s)
    assert again == pytest.approx(accuracy, abs=1)
    assert np.isnan(none).all()


# ---- uci


def test_shipped_sets_are_divided_as_the_protocol_has_it():
    found = uci._shipped("iris", 0)
    everything = np.arange(150)
    assert np.array_equal(np.sort(np.concatenate(found.choice)), everything)
    assert len(found.choice[0]) == 75
    assert np.array_equal(np.sort(np.concatenate([test for _, test in found.folds])), everything)
    for train, test in found.folds:
        assert np.array_equal(np.sort(np.concatenate([train, test])), everything)
    np.testing.assert_allclose(found.X.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(found.X.std(0), 1)
