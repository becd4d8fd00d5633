"""The report is one page that loads nothing, shows failures first, and computes nothing."""

from __future__ import annotations

import ast
import base64
import csv
import gzip
import io
import os
import pathlib
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
import tiny

import kernelcore as kc
from kernelcore import _check, experiments, report
from kernelcore.experiments import Claim, Failure, _draw
from kernelcore.report import _data, _page, _svg

VOID = {"meta", "link", "br", "img", "hr", "input", "path", "use", "image", "rect", "circle"}


class Page(HTMLParser):
    """Addresses, ids, headings, and what each section has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.headings: list[int] = []
        self.found: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.downloads: dict[str, str] = {}
        self.section = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.addresses += [attrs[key] for key in ("src", "href", "srcset", "data") if key in attrs]
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.headings += [int(tag[1])] if re.fullmatch(r"h\d", tag) else []
        assert tag not in {"script", "iframe", "object", "embed"}
        if tag == "section":
            self.section = attrs["id"]
            self.found[self.section] = []
        elif self.section:
            self.found[self.section].append(tag)
        if "download" in attrs:
            self.downloads[attrs["download"]] = attrs["href"]
        if tag == "svg":
            assert attrs["role"] == "img"
            assert attrs["aria-label"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def results():
    return [tiny.result(name) for name in tiny.SETTINGS]


@pytest.fixture(scope="module")
def written(tmp_path_factory, results):
    folder = tmp_path_factory.mktemp("report")
    for result in results:
        result.save(folder / "results" / f"{result.name}.npz")
    (folder / "results" / "images.npz").write_bytes(b"not what it was")
    with pytest.MonkeyPatch.context() as patch:
        # What modules of experiments say and draw comes from the arrays of their results.
        patch.setattr(kc.Kernel, "__call__", lambda *_, **__: pytest.fail("a Gram matrix"))
        for name in tiny.SETTINGS:
            patch.setattr(experiments.load(name), "run", lambda *_, **__: pytest.fail("a run"))
        return report.write(folder / "results", folder / "page.html")


@pytest.fixture(scope="module")
def text(written):
    return written.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_every_experiment_of_the_small_results_is_drawn(page, results):
    shown = [name for name in experiments.NAMES if name in tiny.SETTINGS]
    assert list(page.found) == ["verdicts", *shown]
    for name in shown:
        if name != "images":
            tables = {"table"} if hasattr(experiments.load(name), "tables") else set()
            assert {"svg", "details"} | tables <= set(page.found[name]), name


def test_the_page_is_well_formed(page):
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert set(page.headings) == {1, 2}
    assert page.headings[0] == 1
    targets = {address[1:] for address in page.addresses if address.startswith("#")}
    assert targets <= set(page.ids)


def test_the_page_loads_nothing(page, text, written):
    assert page.addresses
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert not re.search(r"https?:|@import|url\((?!#)", text)
    assert written.is_absolute()
    assert len(text) < 55_000 * len(tiny.SETTINGS)  # of 1.5 MB for 27


def test_a_damaged_result_is_a_red_row_on_top(text):
    rows = re.findall(r'<tr role="row" class="([\w-]+)">(.*?)</tr>', text, re.S)
    assert rows[0][0] == "crashed"
    assert "images.npz must be a result that kernelcore has saved" in rows[0][1]
    kinds = [kind for kind, _ in rows]
    assert kinds == sorted(kinds, key=["crashed", "fails", "holds", "left-out"].index)


def test_rows_are_the_claims_of_the_results(text, results):
    claims = [
        (result.name, claim)
        for result in results
        if result.name != "images"
        for claim in experiments.load(result.name).claims(result)
    ]
    rows = re.findall(r'<tr role="row" class="(fails|holds)">.*?<a href="#(\w+)">', text)
    assert sorted((name, claim.holds) for name, claim in claims) == sorted(
        (name, kind == "holds") for kind, name in rows
    )
    held = sum(claim.holds for _, claim in claims)
    assert f"{held} of {len(claims)} claims hold" in text


def test_what_fails_crashes_and_is_left_out_is_said(monkeypatch, tmp_path):
    bad = Claim("a < b", "Nobody 2000", 1.0, 2.0, 0.25, 0.5, 1.5)
    module = experiments.load("profiles")
    monkeypatch.setattr(module, "claims", lambda result: [bad])
    monkeypatch.setattr(module, "plot", lambda result: [])
    monkeypatch.setattr(experiments.load("curves"), "plot", lambda result: 1 / 0)
    shown = [
        tiny.result("profiles"), tiny.result("curves"), Failure("digits", "no <disk>"),
        Failure("uci", "no data", absent=True),
    ]  # fmt: skip
    text = report.write(shown, tmp_path / "page.html").read_text(encoding="utf-8")
    rows = re.findall(r'<tr role="row" class="([\w-]+)">(.*?)</tr>', text, re.S)
    assert [kind for kind, _ in rows] == ["crashed", "crashed", "fails", "left-out"]
    assert "its result cannot be drawn: ZeroDivisionError: division by zero" in rows[0][1]
    assert "no &lt;disk&gt;" in rows[1][1]
    assert "a &lt; b" in rows[2][1]
    assert "fails by 2 σ" in rows[2][1]
    assert "0 of 1 claims hold · 4 experiments · 1 fail · 2 crashed · 1 left out" in text


@pytest.mark.parametrize(
    ("claim", "shown"),
    [
        (
            Claim("", "", 1.0, 1.01, 0.02, 0.9, 1.1),
            ("1.010 ± 0.020", "1.000", "1.010", "0.900 to 1.100"),
        ),
        (Claim("", "", None, 0.97, 0.0, 0.9, np.inf), ("0.970", "", "", "at least 0.900")),
        (Claim("", "", None, -5.3, 0.16, -np.inf, -0.3), ("−5.30 ± 0.16", "", "", "at most −0.30")),
        (Claim.order("", "", 2), ("2", "0", "", "")),
        (Claim("", "", 0.0, 3e-8, 0.0, 0.0, 1e-7), ("3e−08", "0", "", "at most 1e−07")),
        (Claim("", "", None, np.nan, 0.0, 0.0, 1.0), ("nan", "", "", "at most 1.000")),
    ],
)  # fmt: skip
def test_numbers_of_a_claim(claim, shown):
    assert tuple(_page.numbers(claim).values()) == shown


# ---- figures


def drawn():
    fig, (left, right) = _draw.panels(3, ("a", "b"), "x", "y")
    left.set_yscale("log")
    _draw.measured(left, [1, 2], [0.5, 0.25], [0.1, 0.3], _draw.BLUE, "o", "points")
    _draw.theory(left, [1, 2, 3], [0.5, 0.3, 0.1], _draw.BLACK, "line")
    left.axhline(0.2)
    right.imshow([[0.0, 1.0], [2.0, 3.5]], cmap="Greys")
    return fig


def test_data_of_a_figure_are_what_it_shows():
    with _draw.style():
        address, ending = _data.address(drawn())
    kind, _, data = address.partition(",")
    assert (kind, ending) == ("data:text/csv;charset=utf-8;base64", "csv")
    rows = list(csv.reader(io.StringIO(base64.b64decode(data).decode())))
    assert rows == [
        ["panel", "curve", "x", "y", "low", "high"],
        ["a", "points", "1", "0.5", "0.4", "0.6"],
        ["a", "points", "2", "0.25", "0.00025", "0.55"],
        ["a", "line", "1", "0.5", "", ""],
        ["a", "line", "2", "0.3", "", ""],
        ["a", "line", "3", "0.1", "", ""],
        ["b", "", "0", "0 1", "", ""],
        ["b", "", "1", "2 3.5", "", ""],
    ]


def test_long_data_are_packed(page):
    packed = [name for name in page.downloads if name.endswith(".csv.gz")]
    plain = [name for name in page.downloads if name.endswith(".csv")]
    assert plain
    assert len(packed) + len(plain) == sum(tags.count("svg") for tags in page.found.values())
    for name in packed:
        data = gzip.decompress(base64.b64decode(page.downloads[name].partition(",")[2]))
        assert len(data) > _data.LONG
        assert data.startswith(b"panel,curve,x,y,low,high\n")


def test_figures_have_ids_of_their_own_and_say_nothing_of_fonts():
    with _draw.style():
        one, colors = _svg.svg(drawn(), "f1", "alt")
        two, _ = _svg.svg(drawn(), "f2", "alt")
    assert {"#000000", "#0072b2"} <= colors
    ids = re.findall(r' id="([^"]*)"', one)
    assert len(ids) == len(set(ids)) == one.count(" id=")
    assert all(name.startswith("f1-") for name in ids)
    assert two.replace("f2-", "f1-") == one  # equal figures are equal bytes
    assert {*re.findall(r"#([\w-]+)\)", one), *re.findall(r'href="#([\w-]+)"', one)} == set(ids)
    assert "font-family" not in one
    assert not re.search(r"\d\.\d{4}", one)  # no coordinate to more than what can be seen


def test_powers_of_ten_are_written_without_formulas():
    from matplotlib import mathtext

    with _draw.style(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(mathtext.MathTextParser, "parse", lambda *_: pytest.fail("a formula"))
        fig = _draw.figure(3, 3)
        axes = fig.subplots()
        axes.loglog([1e-12, 1e3], [1e-3, 1e2])
        _svg.svg(fig, "f", "alt")
        labels = [label.get_text() for label in axes.get_yticklabels()]
    assert [label for label in labels if label][1:-1] == "10⁻³ 10⁻² 10⁻¹ 10⁰ 10¹ 10²".split()


def test_contrast_is_that_of_wcag():
    assert _svg.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert _svg.contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)  # its example


@pytest.mark.parametrize(
    "color",
    [_draw.BLACK, _draw.ORANGE, _draw.SKY, _draw.GREEN, _draw.BLUE, _draw.VERMILLION, _draw.PURPLE,
     _draw.GREY, *_draw.STEPS],
)  # fmt: skip
def test_curves_are_legible_on_a_dark_page(color):
    assert _svg.contrast(_svg.in_the_dark(color.lower()), _svg.DARK) >= _svg.LEGIBLE
    white, pale, grid = (_svg.in_the_dark(c) for c in ("#ffffff", _draw.PALE, "#e3e3e3"))
    assert white == _svg.DARK
    assert 1 < _svg.contrast(pale, _svg.DARK) < _svg.contrast(grid, _svg.DARK) < 3


def test_drawing_leaves_no_pyplot_state_and_no_settings():
    # In a process of its own: other tests may have imported pyplot.
    code = """
import sys, matplotlib
before = matplotlib.rcParams.copy()
from kernelcore.experiments import _draw
from kernelcore.report import _svg
with _draw.style():
    fig = _draw.figure(2, 2)
    fig.subplots().plot([0, 1])
    _svg.svg(fig, "f", "alt")
assert "matplotlib.pyplot" not in sys.modules
changed = [key for key in before if key != "backend" and matplotlib.rcParams[key] != before[key]]
assert not changed, changed
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- files


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("M 10.04 20 \nL 30.06 19.96 \nL 30 0 \nz\n", "M10 20l20.1 0-.1-20z"),
        ("M 1 1 L 2 2 z L 1 3 M 5 5 L 5 4.5", "M1 1l1 1zl0 2M5 5l0-.5"),
        ("M 0 0 L 1 1 L 2.5 1 C 1 2 3 4 5e-05 6 L 1 6", "M0 0l1 1 1.5 0C1 2 3 4 0 6l1 0"),
        ("M 0.3 -0.04 Q 1 1 2 -2.25 L 2 -3", "M.3 0Q1 1 2-2.2l0-.8"),
    ],
)
def test_paths_are_short(given, written):
    """Lines say how far they go from the rounded place where they begin: errors do not add up."""
    assert _svg._short(f'<path d="{given}"/>') == f'<path d="{written}"/>'


def test_missing_matplotlib_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = "kernelcore report needs matplotlib; install it with: pip install 'kernelcore[plot]'"
    with pytest.raises(ImportError, match=f"^{re.escape(text)}$"):
        report.write([], tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "missing/page.html"])
def test_path_must_name_a_file_in_a_folder(tmp_path, name):
    path = tmp_path / name
    text = f"path must name a file in an existing folder: {path}"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        report.write([], path)


def test_the_call_of_earlier_versions_draws_the_usual_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny.result("curves").save("kernelcore-results/curves.npz")
    assert 'id="curves"' in report.write("page.html").read_text(encoding="utf-8")


def test_only_some_of_a_folder(tmp_path):
    for name in ("profiles", "curves"):
        tiny.result(name).save(tmp_path / f"{name}.npz")
    path = report.write(tmp_path, tmp_path / "page.html", only=["curves"])
    assert list(Page(path.read_text(encoding="utf-8")).found) == ["verdicts", "curves"]


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


def test_a_diagnosis_is_a_page_of_the_same_kind(tmp_path):
    X, y = kc.data.digits()
    found = kc.diagnose(kc.presets.mlp(1).ntk, X, y, points=100)
    text = report.write(found, tmp_path / "page.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert {"svg", "table", "dl"} <= set(page.found["verdicts"])
    assert list(page.downloads) == ["kernel-diagnosis.csv"]
    for told in (*found.facts(), "0.0", *found.rows()[-1]):
        assert told in text


# ---- nothing is computed

ROOMS = {"_check", "_info", "_version", "diagnosis", "experiments", "report"}
OUTSIDE = {"matplotlib", *sys.stdlib_module_names}
CALLS = {"run", "run_all", "diagnose", "eval", "exec", "__import__", "import_module"}


@pytest.mark.parametrize("path", sorted(pathlib.Path(report.__file__).parent.glob("*.py")), ids=str)
def test_the_report_computes_nothing(path):
    """It imports no room that computes, neither NumPy nor SciPy, and runs no experiment."""
    package = ("kernelcore", "report")
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            whole = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{whole}.{alias.name}" for alias in node.names]
        for name in names:
            first, *rest = name.split(".")
            assert first in OUTSIDE or (first == "kernelcore" and rest[0] in ROOMS), name
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            assert called not in CALLS, f"{path.name}:{node.lineno} calls {called}"
