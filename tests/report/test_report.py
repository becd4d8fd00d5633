"""The report is one file that loads nothing, and says what is missing when it cannot be drawn."""

from __future__ import annotations

import base64
import itertools
import os
import pathlib
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.special

from kernelcore import _check, data, report
from kernelcore.report import _draw, _page

TITLES = [
    "Profiles of the kernels",
    "Spectra and learning curves",
    "Handwritten digits",
    "Every estimator with its defaults",
    "Solvers, flows and random features",
    "Convolutional kernels",
    "Speed of a Gram matrix",
]


class Page(HTMLParser):
    """Addresses, and per section its title and the sources of its images."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.titles: list[str] = []
        self.images: list[list[str]] = []
        self.tables: list[int] = []
        self._heading = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.addresses += [attrs[key] for key in ("src", "href", "srcset", "data") if key in attrs]
        assert tag not in {"script", "iframe", "object", "embed"}
        if tag == "section":
            self.images.append([])
            self.tables.append(0)
        elif tag == "img":
            self.images[-1].append(attrs["src"])
            assert attrs["alt"]
        elif tag == "table":
            self.tables[-1] += 1
        self._heading = tag == "h2" and bool(self.images)

    def handle_data(self, data):
        if self._heading:
            self.titles.append(data)
            self._heading = False


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    lines: list[str] = []
    sections: list[_page.Section] = []
    add = _page.Drawing.add

    def keep(drawing, section):
        sections.append(section)
        add(drawing, section)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_page.Drawing, "add", keep)
        path = report.write(folder / "page.html", quick=True, progress=lines.append)
    return folder, path, lines, dict(zip(report.SECTIONS, sections, strict=True))


@pytest.fixture(scope="module")
def page(written):
    return Page(written[1].read_text(encoding="utf-8"))


def test_report_is_one_file_at_the_returned_path(written):
    folder, path, *_ = written
    assert list(folder.iterdir()) == [path]
    assert path.is_absolute()


def test_report_tells_progress_by_section(written):
    assert [line.split()[0] for line in written[2]] == list(report.SECTIONS)
    assert all(re.fullmatch(r"\w+ +\d+\.\d s", line) for line in written[2])


def test_page_loads_nothing(page, written):
    assert page.addresses
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    text = written[1].read_text(encoding="utf-8")
    assert "http" not in text
    assert not re.search(r"@import|url\(", text)


def test_every_section_has_title_figures_and_a_table(page):
    assert page.titles == [f"{i}. {title}" for i, title in enumerate(TITLES, start=1)]
    assert all(page.images)
    assert all(page.tables)


def test_figures_are_drawings_that_load_nothing(page):
    for source in itertools.chain(*page.images):
        svg = base64.b64decode(source.removeprefix("data:image/svg+xml;base64,")).decode()
        assert svg.rstrip().endswith("</svg>")
        assert not re.search(r'(href|src)="(?!#|data:)', svg)


def test_header_gives_version_and_machine(written):
    import kernelcore

    header = written[1].read_text(encoding="utf-8").split("</header>")[0]
    assert f"<dd>{kernelcore.__version__}</dd>" in header
    for name in ("written", "cpu", "threads", "blas"):
        assert f"<dt>{name}</dt>" in header


def test_report_leaves_no_pyplot_state_and_no_settings():
    # In a process of its own: other tests may have imported pyplot.
    import subprocess

    code = """
import sys, matplotlib
before = matplotlib.rcParams.copy()
from kernelcore.report import _draw, _page
with _draw.style():
    fig = _draw.figure(2, 2)
    fig.subplots().plot([0, 1])
    _page.Drawing().add(_page.Section("s", "s", [_page.Picture(fig, "c", "a")]))
assert "matplotlib.pyplot" not in sys.modules
changed = [key for key in before if key != "backend" and matplotlib.rcParams[key] != before[key]]
assert not changed, changed
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_text_of_cells_facts_and_listings_is_escaped():
    section = _page.Section(
        "a < b", "s", [_page.Table(("<h>",), [("<c>",)], ""), _page.Listing("x < y", "")]
    )
    drawing = _page.Drawing()
    drawing.add(section)
    text = drawing.page("t", "l", {"<k>": "<v>"})
    for shown in ("a &lt; b", "&lt;h&gt;", "&lt;c&gt;", "x &lt; y", "&lt;k&gt;", "&lt;v&gt;"):
        assert shown in text


def test_missing_matplotlib_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = "kernelcore report needs matplotlib; install it with: pip install 'kernelcore[plot]'"
    with pytest.raises(ImportError, match=f"^{re.escape(text)}$"):
        report.write(tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "missing/page.html"])
def test_path_must_name_a_file_in_a_folder(tmp_path, name):
    path = tmp_path / name
    text = f"path must name a file in an existing folder: {path}"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        report.write(path)


def test_the_path_is_tried_before_any_work(monkeypatch, tmp_path):
    monkeypatch.setattr(report, "import_module", lambda *_: pytest.fail("work has begun"))
    monkeypatch.setattr("builtins.open", refuse)
    text = f"path must name a file that can be written: {tmp_path / 'page.html'}: Permission denied"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        report.write(tmp_path / "page.html", quick=True)


def refuse(*_):
    raise PermissionError(13, "Permission denied")


def test_trying_a_path_leaves_no_trace(tmp_path):
    path, link, device = tmp_path / "page.html", tmp_path / "link.html", pathlib.Path(os.devnull)
    assert _check.destination(path, "path") == path
    link.symlink_to(path)
    assert _check.destination(link, "path") == link
    assert list(tmp_path.iterdir()) == [link]
    path.write_text("old")
    before = path.stat()
    assert _check.destination(str(link), "path") == link
    assert path.read_text() == "old"
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert _check.destination(device, "path") == device


def test_every_section_is_drawn_before_its_progress_is_told(monkeypatch, tmp_path):
    """Nothing is left to do in silence at the end."""
    events = []

    class Module:
        def section(quick):
            return _page.Section("s", "s", [_page.Picture(_draw.figure(1, 1), "c", "a")])

    monkeypatch.setattr(report, "import_module", lambda *_: Module)
    monkeypatch.setattr(_page, "svg", lambda fig: events.append("drawn") or "data:,")
    report.write(tmp_path / "page.html", progress=lambda line: events.append(line.split()[0]))
    assert events == [event for name in report.SECTIONS for event in ("drawn", name)]


def test_powers_of_ten_are_written_without_formulas(tmp_path):
    from matplotlib import mathtext

    with _draw.style(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(mathtext.MathTextParser, "parse", lambda *_: pytest.fail("a formula"))
        fig = _draw.figure(3, 3)
        axes = fig.subplots()
        axes.loglog([1e-12, 1e3], [1e-3, 1e2])
        _draw.svg(fig)
        labels = [label.get_text() for label in axes.get_yticklabels()]
    assert [label for label in labels if label][1:-1] == "10⁻³ 10⁻² 10⁻¹ 10⁰ 10¹ 10²".split()


def test_chosen_ridges_stay_within_the_figure():
    """Whatever the criteria choose, and however far off."""
    import kernelcore as kc
    from kernelcore.report import learning

    paths = learning._paths(learning._digits(kc.presets.mlp(2, b_std=0.1).ntk, 60))
    far = dict(zip(learning.CRITERIA, [(1e-14, 0.0), (1e-4, 0.0), (1e9, 0.0)], strict=True))
    with _draw.style():
        fig = learning._draw_paths(paths._replace(chosen=far))
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


@pytest.mark.parametrize(("x", "decimals"), [(0.0, 0), (3.0, 0), (0.5, 1), (0.02, 2), (0.00013, 4)])
def test_a_small_spread_is_not_written_as_zero(x, decimals):
    from kernelcore.report.images import _decimals

    assert _decimals(x) == decimals


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


def test_numpy_version_of_the_speed_section_is_the_same_kernel():
    import kernelcore as kc
    from kernelcore.report.speed import numpy_ntk

    x = np.random.default_rng(0).standard_normal((20, 7))
    # NumPy's arccos loses half of the digits on the diagonal: sqrt(eps) is about 1.5e-8.
    np.testing.assert_allclose(numpy_ntk(x, 3), kc.presets.mlp(3).ntk(x), rtol=2e-7)


@pytest.mark.parametrize(("load", "warns"), [(1.0, False), (6.0, False), (6.1, True)])
def test_speed_warns_on_a_busy_machine(monkeypatch, load, warns):
    import os

    from kernelcore.report.speed import _busy

    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert ("(load average 6.1 on 4 CPUs)" in _busy()) is warns
    assert bool(_busy()) is warns


def test_ridge_solves_its_system():
    from kernelcore.report.digits import _ridge

    rng = np.random.default_rng(1)
    factor = rng.standard_normal((6, 6))
    gram, target = factor @ factor.T, rng.standard_normal((6, 2))
    kept = gram.copy()
    weights = _ridge(gram, 0.5, target)
    system = gram + 0.5 * np.trace(gram) / 6 * np.eye(6)
    np.testing.assert_allclose(system @ weights, target, rtol=1e-10, atol=1e-12)
    assert np.array_equal(gram, kept)


def test_choice_of_ridge_and_lengthscale_never_sees_the_test():
    import kernelcore as kc
    from kernelcore.report.digits import _classify

    x, y = data.digits()
    x = x / 16
    kernels = [kc.Gaussian(0.5), kc.Gaussian(2.0)]
    together, ridge = _classify(kernels, x[:80], y[:80], x[80:120])
    for part in (slice(80, 100), slice(100, 120)):
        alone, same = _classify(kernels, x[:80], y[:80], x[part])
        assert same == ridge
        assert np.array_equal(alone, together[part.start - 80 : part.stop - 80])


def test_images_stand_where_their_corners_say():
    from kernelcore.report.images import _on_canvas

    images = np.arange(1, 13, dtype=np.float32).reshape(3, 2, 2)
    corners = np.array([[0, 0], [3, 2], [1, 3]])
    canvas = _on_canvas(images, corners, 5)
    assert canvas.shape == (3, 5, 5, 1)
    assert canvas.dtype == np.float32
    for image, (i, j), found in zip(images, corners, canvas[..., 0], strict=True):
        assert np.array_equal(found[i : i + 2, j : j + 2], image)
        assert found.sum() == image.sum()


def test_ridge_of_the_canvas_is_that_of_leaving_one_out():
    from kernelcore.report.images import RIDGES, _fitted

    rng = np.random.default_rng(2)
    labels = np.repeat(np.arange(10), 3)
    factor = rng.standard_normal((30, 8)) + np.eye(10).repeat(3, axis=0)[:, :8]
    gram = factor @ factor.T + 0.1 * np.eye(30)
    target = np.eye(10)[labels] - 0.1

    def solve(keep, ridge):
        system = gram[np.ix_(keep, keep)] + ridge * gram.diagonal().mean() * np.eye(len(keep))
        return np.linalg.solve(system, target[keep])

    scores = []
    for ridge in RIDGES:
        held = []
        for i in range(30):
            keep = np.delete(np.arange(30), i)
            held.append(gram[i, keep] @ solve(keep, ridge))
        held = np.array(held)
        scores.append(((held.argmax(1) != labels).sum(), np.square(held - target).sum()))
    best = RIDGES[scores.index(min(scores))]
    assert best not in (RIDGES[0], RIDGES[-1])
    # Condition number of the system times rounding, with room.
    np.testing.assert_allclose(_fitted(gram, labels), solve(np.arange(30), best), rtol=1e-9)


def test_only_global_pooling_is_blind_to_positions():
    from kernelcore.report.images import CURVES, GAP, _on_canvas

    digits = data.digits()[0][:2].reshape(-1, 8, 8) / 16
    here, there = (_on_canvas(digits, np.full((2, 2), k), 12) for k in (0, 3))
    for curve in CURVES:
        change = np.abs(curve.kernel(here, there) / curve.kernel(here) - 1).max()
        assert (change < 1e-12) == (curve.name == GAP), curve.name


def test_cubic_targets_have_variance_one_and_the_symmetry_they_are_named_for():
    from kernelcore.report.images import _cubic

    corners = 1.0 - 2 * (np.arange(256)[:, None] >> np.arange(8) & 1)
    y = _cubic(corners)
    np.testing.assert_allclose(y.T @ y / 256, np.eye(2), atol=1e-14)
    np.testing.assert_allclose(_cubic(np.roll(corners, 1, axis=1)), y * [1, -1], atol=1e-14)


def test_dimensions_are_the_rank_of_the_pooled_kernel():
    import kernelcore as kc
    from kernelcore.report.images import _dimensions

    x = np.random.default_rng(3).choice([-1.0, 1.0], (120, 16))
    gram = kc.CyclicConvolution(6, 16, (0.0, 0.2, 0.2, 0.2))(x)
    assert np.linalg.matrix_rank(gram, hermitian=True) == _dimensions(6, 3) == 17


def test_crossing_is_exact_for_a_power_law_and_says_when_there_is_none():
    from kernelcore.report.images import _crossing

    sizes = (10, 100, 1000)
    assert _crossing(sizes, 50 / np.array(sizes)) == "100"
    assert _crossing(sizes, 20 / np.array(sizes)) == "40"
    assert _crossing(sizes, np.array([0.4, 0.3, 0.2])) == "fewer than 10"
    assert _crossing(sizes, np.array([1.0, 0.9, 0.8])) == "more than 1000"


def test_fitted_exponents_are_those_of_the_closed_forms():
    from scipy.special import gammaln

    from kernelcore.report import spectra

    parts, falls = spectra._decay()
    (table,) = (part for part in parts if isinstance(part, _page.Table))
    rows = {row[:2]: row[3:-1] for row in table.rows}
    deep = f"NTK, {spectra.DEEP} hidden layers"
    shallow = "NTK, 1 hidden layer"
    vanish = {("κ₀", "even"), ("κ₁", "odd"), (shallow, "odd")}
    kernels = itertools.product(("κ₀", "κ₁", shallow, deep), ("even", "odd"))
    assert set(rows) == set(kernels) - vanish
    # Bach 2017: max(0, t)^n has the root of mu_k in degrees k > n with k - n odd.
    for n, (name, parity) in enumerate((("κ₀", "odd"), ("κ₁", "even"))):
        k = np.arange(spectra.DEGREES // 2 + (n + 1) % 2, spectra.DEGREES + 1, 2)
        for p, cell in zip(spectra.DIMS, rows[name, parity], strict=True):
            root = gammaln(k - n) - k * np.log(2) - gammaln((k - n + 1) / 2)
            log = 2 * (root - gammaln((k + p + n) / 2))
            slope = np.polyfit(np.log(k + (p - 2) / 2), log, 1)[0]
            assert cell.replace("−", "-") == f"{slope:.3f}"
    assert "sphere follow the powers" in falls


def test_exponents_that_are_off_are_said_to_be():
    from kernelcore.report.spectra import CLOSE, _falls

    assert "do not follow" not in _falls(CLOSE)
    assert "do not follow" in _falls(1.01 * CLOSE)
    assert "off by at most 3.2 %" in _falls(0.0321)


def test_levels_are_cut_and_shifted_as_stated():
    from kernelcore.report.spectra import SHARE, _levels
    from kernelcore.spectrum import Spectrum

    mu, count, tail = (0.2, 0.0, 0.5, 0.01), (3, 7, 1, 2 * SHARE), 0.1
    trace = 3 * 0.2 + 0.5 + 2 * SHARE * 0.01 + tail
    with np.errstate(divide="ignore"):
        theory = Spectrum(np.log(mu), count, trace)
    n = 6 * SHARE  # room for the first two levels alone
    found = np.linspace(2.0, 0.0, 2 * n).reshape(2, n)
    first, second = _levels(theory, found)
    assert (first.degree, first.size, second.degree, second.size) == (2, 1, 0, 3)
    assert first.mean == pytest.approx(found[:, 0].mean() / 0.5 - 1)
    assert second.mean == pytest.approx(found[:, 1:4].mean() / 0.2 - 1)
    assert second.error == pytest.approx(abs(found[1] - found[0])[1:4].mean() / 2 / 0.2)
    shift = 0.5 / (0.2 - 0.5) + 2 * SHARE * 0.01 / (0.2 - 0.01) + tail / 0.2
    assert second.shift == pytest.approx(shift / n)


def test_mean_of_a_level_shifts_as_predicted_to_second_order():
    import kernelcore as kc
    from kernelcore.report.spectra import _levels, _uniform

    # Two degrees alone: exact but for third order, (N_1 N_2)^(1/2) n^(-3/2) at these sizes.
    rng, n = np.random.default_rng(5), 400
    theory = kc.spectrum.sphere((0.0, 1.0, 0.5), 4, 2)
    points = [_uniform(rng, n, 4) for _ in range(30)]
    grams = (x @ x.T + 0.5 * (x @ x.T) ** 2 for x in points)
    found = np.array([kc.spectrum.gram(gram, vectors=False).eigenvalues for gram in grams])
    for level in _levels(theory, found):
        assert abs(level.mean - level.shift) < 4 * level.error + n**-1.5
        assert level.error < abs(level.shift)


def test_learning_curves_that_miss_are_counted():
    from kernelcore.report.spectra import ENOUGH, Curve, _learns

    predicted = np.array([1.0, 1.0, 1.0, 2.0])
    near, far = 1 + 0.9 * ENOUGH, 1 + 1.1 * ENOUGH
    # Two draws of mean m and standard error e: m - e and m + e.
    means, errors = np.array([near, far, far, 2.0]), np.array([0, 0, 0.6 * ENOUGH, 0])
    measured = np.stack([means - errors, means + errors])
    curve = Curve((10, 20, 30, 40), lambda n: predicted, measured)
    np.testing.assert_allclose(curve.error, errors, atol=1e-15)
    assert curve.agrees.tolist() == [True, False, True, True]
    text = _learns([curve, curve], curve, 25)
    assert "two standard errors at 6 of 8 sizes; with 25 random" in text
    assert "at n = 40 in theory and n = 40 as measured" in text
    assert curve.cells(1) == ("1.000", f"{far:.3f} ± 0.000")


def test_wrong_theory_shows_in_the_findings(monkeypatch):
    import kernelcore as kc
    from kernelcore.report import spectra

    right = kc.theory.learning_curve
    monkeypatch.setattr(kc.theory, "learning_curve", lambda *a: 1.5 * right(*a))
    with _draw.style():
        parts, learns = spectra._curves(quick=True)
    (good, whole) = map(int, re.search(r"at (\d+) of (\d+) sizes", learns).groups())
    kernel, features = (part for part in parts if isinstance(part, _page.Table))
    assert whole == 2 * len(kernel.rows) + len(features.rows)
    assert good <= len(features.rows)


@pytest.mark.parametrize("parity", [0, 1])
def test_drawn_degrees_have_one_parity_and_reach_both_ends(parity):
    from kernelcore.report.spectra import DEGREES, _few

    k = _few(parity, 0.0)
    assert set(k % 2) == {parity}
    assert k[:4].tolist() == [2 - parity, 4 - parity, 6 - parity, 8 - parity]
    assert DEGREES / 1.3 < k[-1] <= DEGREES


@pytest.fixture(scope="module")
def learned(written):
    return written[3]["learning"]


def test_random_features_fall_as_their_number(learned):
    """Ten draws of 820 pairs at four sizes: the slope of -1/2 is known to some 0.03."""
    table = learned.parts[-1]
    slopes = [float(row[-1].replace("−", "-")) for row in table.rows]
    assert len(slopes) == 6
    assert all(abs(slope + 0.5) < 0.1 for slope in slopes)
    spread = [float(row[1]) / float(row[-2]) for row in table.rows]
    assert all(5 < s < 13 for s in spread)  # from 32 to 2048: 8


def test_ridges_are_chosen_without_test_images(learned):
    import kernelcore as kc
    from kernelcore.report import learning

    task = learning._digits(kc.presets.mlp(2, b_std=0.1).ntk, 300)
    blind = task._replace(K_test=task.K_test[:50], labels=task.labels[:50])
    chosen, again = learning._paths(task).chosen, learning._paths(blind).chosen
    assert {c: r for c, (r, _) in chosen.items()} == {c: r for c, (r, _) in again.items()}
    shown = {row[0]: row[1] for row in learned.parts[2].rows}
    assert all(shown[learning.CRITERIA[c]] == f"{r:.2g}" for c, (r, _) in chosen.items())
    # Interpolating spoiled labels is worse than what leave-one-out chooses.
    alpha = np.linalg.solve(task.K, task.y)
    assert chosen["loo"][1] < task.wrong(task.K_test @ alpha)


def test_descent_is_on_the_flow():
    """After k steps of 1/lambda_max a mode of relative eigenvalue l has (1 - l)^(2k) of its energy
    left, after the flow exp(-2 l k): at most 0.157 apart (k = 1, l = 0.71), 0.157/k by and large.
    """
    import kernelcore as kc
    from kernelcore.report import learning

    paths = learning._paths(learning._digits(kc.presets.mlp(2, b_std=0.1).ntk, 300))
    apart = np.abs(learning._flow_at(paths, paths.steps)[0] - paths.descent[0])
    first = 0.9**2 + 9 * 0.1**2
    assert (apart <= 0.16 / paths.steps * first + 0.01).all()  # 0.01: between the times computed


# ---- defaults


def test_the_table_of_defaults_has_every_estimator_of_a_kernel_and_solver():
    """Clusters are without labels, so that there is nothing to score."""
    from sklearn.base import is_clusterer

    import kernelcore as kc
    from kernelcore import estimators
    from kernelcore.estimators import _ridge
    from kernelcore.report import defaults

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

    import kernelcore as kc
    from kernelcore.report import defaults

    x, labels = data.digits()
    x = x / 16
    score = defaults._score("KernelClassifier", "auto", None, x, labels, 150)
    model = kc.KernelClassifier().fit(x[:150], labels[:150])
    test, truth = x[-defaults.TEST :], labels[-defaults.TEST :]
    assert score.accuracy == pytest.approx(100 * model.score(test, truth))
    assert score.log_loss == pytest.approx(log_loss(truth, model.predict_proba(test)))
    losses = [
        log_loss(truth, scipy.special.softmax(model.decision_function(test) / t, 1))
        for t in np.geomspace(0.02, 1, 200)
    ]
    assert score.reachable == pytest.approx(min(losses), rel=1e-3)
    regressor = defaults._score("KernelRegressor", "auto", None, x, labels, 150)
    assert regressor.accuracy == pytest.approx(score.accuracy, abs=1)
    assert np.isnan(regressor.log_loss)


def test_defaults_without_scikit_learn(monkeypatch):
    from kernelcore.report import defaults

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    section = defaults.section(True)
    assert "pip install 'kernelcore[sklearn]'" in section.summary
    assert section.parts == []
