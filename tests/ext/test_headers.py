"""The shared headers are clean for host and device, and those of the host work at one lane.

Shared is all that is not in ``host/``, where the blocking for a CPU lives: NVRTC compiles every
template of it. It refuses every function without ``KC_HD``, called or not; a scan of the text also
covers what only the host sees. That the gate reaches every function, for float and for double, is
read off the PTX of a build in which nothing is inlined.
"""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
from typing import NamedTuple

import numpy as np
import pytest

import kernelcore as kc
from kernelcore import program as _program
from kernelcore.engine import geometry as _geometry
from kernelcore.engine.cpu import calls as _calls
from kernelcore.engine.cpu import dense as _dense
from kernelcore.engine.cpu import dispatch as _dispatch
from kernelcore.engine.cpu import images as _spatial
from kernelcore.engine.cpu import rows as _rows
from kernelcore.engine.cpu import steps
from kernelcore.engine.gpu import compile as _compile
from kernelcore.kernels import _powers

INCLUDE = pathlib.Path(kc.get_include())


def headers(include):
    return sorted(path.relative_to(include).as_posix() for path in include.rglob("*.h"))


def is_shared(header):
    return not header.startswith("kernelcore/host/")


HEADERS = headers(INCLUDE)
SHARED = [header for header in HEADERS if is_shared(header)]

GATE = """
template <class T, int parts>
KC_HD void steps(const kc::spatial_step& step, T* a) {
    kc::linear_step<T, parts>{step}(a[0], a[1], a);
    a[4] += kc::relu_step<T, parts, true, true>{step}(a[0], a[1], a[2], a[3]).t;
    a[4] += kc::relu_step<T, parts, true, false>{step}(a[0], a[1], a[2], a[3]).t;
    a[4] += kc::relu_step<T, parts, false, true>{step}(a[0], a[1], a[2], a[3]).t;
    a[4] += kc::relu_step<T, parts, false, false>{step}(a[0], a[1], a[2], a[3]).t;
    kc::write_entry<T, parts>(a[0], a[1], a[2], a[3], a);
}

template <class T, int kind>
KC_HD void sum(T* a) {
    const kc::reducer<T, kind> f{a[0]};
    a[1] = f.join(f.add(f.start(), a[2], a[3]), a[4]);
}

template <class T>
__global__ void every(const kc::op* ops, const kc::spatial_step* step, const kc::pool_term* term,
                      kc::index_t n, T* a, double* b) {
    // entries of rows: sums over coordinates, the program, values
    sum<T, kc::sum_of_products>(a);
    sum<T, kc::sum_of_squares>(a);
    sum<T, kc::sum_of_sizes>(a);
    sum<T, kc::product_of_bumps>(a);
    const kc::correlation<T> far = kc::far_correlation(a[0]);
    const T delta = kc::chord<T>(a, a[0], a, a[1], n, far.u < 0);
    const kc::correlation<T> near = kc::near_correlation(delta, far.u < 0);
    kc::gram_job<T> job{};
    job.x.rows = job.y.rows = a;
    a[0] = kc::unit_scale<T>(b[0]);
    if (kc::is_near(job, 0, 1, a[0])) a[1] = kc::repair<T>(job, 0, 1, a[1]).c.u;
    const kc::strip<T> s{a, a + n, a + 2 * n};
    const kc::row_of<T> x{a, n};
    const kc::column_of<T> y{a, n};
    const kc::operations<T> program{ops, int(n), a};
    kc::walk<T, kc::output::covariance>(program, x, y, n, s, a);
    kc::walk<T, kc::output::tangent>(program, x, y, n, s, a);
    kc::walk<T, kc::output::raw>(program, x, y, n, s, a);
    const kc::slope_step bend{};
    kc::walk_slopes<T, true>(&bend, 1, a, n, a, n, a, n, n);
    kc::walk_slopes<T, false>(&bend, 1, a, n, a, n, a, n, n);
    kc::bent_series<T, 2>(a, a, a, 1, a, a, n, n);
    const kc::correlation<T> c = kc::correlate(a[0], a[1], a[2]);
    const bool alike = kc::is_copy(near, b[0], b[1]);
    kc::put(int(alike), a, kc::entry_of(c.u, c.delta, near.u, far.u));
    b[0] = kc::row_norm<T, double>(a, n) + kc::row_norms<T, double>(a, n, n);
    b[0] += kc::norms_beside<T, double, true>(a, n, n);
    kc::chebyshev_terms<T>(a[0], int(n), a);
    a[0] = kc::polynomial<T>(a, a, int(n));
    kc::exact_sum<T>{}.add_square(a[0]);
    // entries of images
    const kc::one_image<T> one = kc::one_image<T>{a, a}.moved(n);
    a[4] = one.table(n) + T(kc::is_plain(*step, 2));
    b[1] = kc::pixel_variance(a, n, b[0]);
    a[0] = kc::norms_of<T>(b[0], b[1], b[2], b[3]).sd;
    a[1] = kc::multiply_channels<T>(one, 0, one, 1, n);
    a[2] = kc::correlated(a[0], a[1], a[2], a[3]).u;
    const kc::entry_tables<T, kc::row_of<T>> table{x, 0, 0};
    a[3] = kc::erf_of<T>{}(a[0], a[1], table, table).value;
    a[3] += kc::gelu_of<T>{}(a[0], a[1], table, table).value;
    a[3] += kc::sine_of<T>{a[0], a[1]}(a[0], a[1], table, table).value;
    kc::add_exactly<T>(a, a + 1, kc::weight_of<T>(*term));
    steps<T, 1>(*step, a);
    steps<T, 2>(*step, a);
    // spectra and features
    const kc::powers<T> terms{a, a, a, a, n, 0};
    kc::projection<T> sums{};
    kc::raise_dimension<T>(terms, 2, n, 1);
    kc::project<T>(terms, a[0], 0, 1, &sums);
    kc::integrate<T>(a, a, n, sums.sum, 0, n, a, a, a);
    kc::multiply_series<T>(a, a, n, a);
    kc::inverse_root<T>(a, a[0], n, a, a);
    kc::shift_series<T>(a, n, a[0]);
    kc::cosines_and_sines<T>(a, n, a[0], a, a);
    kc::shifted_cosines<T>(a, a, n, a[0]);
    a[3] = kc::sector_ratio(a[0], a[1]);  // double takes a rule instead, and for all corners
    const kc::corner_place<T> corner{a[0], a[1], a[2], a[3], a[4]};
    a[3] = kc::near_corner<T, true>(c, corner, a[0], table, table).both;
    T single[1] = {a[0]};
    a[3] = kc::sum_each(single);
}
#define EVERY(T) template __global__ void every(const kc::op*, const kc::spatial_step*, \
                                                const kc::pool_term*, kc::index_t, T*, double*);
EVERY(float)
EVERY(double)
"""


# ---- NVRTC


def compile_device(source, include):
    """The PTX of ``source``, empty on failure, and the compiler's messages."""
    library, program = _compile._library(_compile.compiler().path), ctypes.c_void_p()

    def text(which):
        return _compile._read(program, which).rstrip(b"\0").decode()

    # The front end is what is tested: no optimisation, which also leaves every call in the PTX.
    options = [f"-I{include}".encode(), b"-std=c++17", b"--Ofast-compile=max"]
    name = (source.encode(), b"gate.cu", 0, None, None)
    assert library.nvrtcCreateProgram(ctypes.byref(program), *name) == 0
    try:
        array = (ctypes.c_char_p * len(options))(*options)
        failed = library.nvrtcCompileProgram(program, len(options), array)
        return "" if failed else text("PTX"), text("ProgramLog").strip("\n")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def gate(include):
    shared = [header for header in headers(include) if is_shared(header)]
    return "".join(f'#include "{name}"\n' for name in shared) + GATE


@pytest.fixture
def copy(tmp_path):
    """A copy of the headers to spoil, and how: ``copy(header, old, new)``."""
    shutil.copytree(INCLUDE, tmp_path / "include")

    def edit(header, old, new):
        path = tmp_path / "include" / "kernelcore" / header
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        return tmp_path / "include"

    return edit


# ---- what functions there are


class Function(NamedTuple):
    name: str
    marked: bool
    template: bool  # itself, or a member of one
    owner: str = ""  # the class it is a member of


def functions(text):
    """The function definitions of a header; marked: KC_HD, or KC_LOOP for a hot loop."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(\\\n|[^\n])*", "", text, flags=re.M)
    found = []

    def past_block(at):
        depth = 0
        for brace in re.compile(r"[{}]").finditer(text, at):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                return brace.end()
        raise AssertionError("unbalanced braces")

    def scope(at, outer, owner=""):
        start, parens = at, 0
        while at < len(text):
            c = text[at]
            parens += (c == "(") - (c == ")")
            at += 1
            if parens or c not in ";{}":
                continue
            head = text[start : at - 1]
            if c == "}":
                return at
            if c == "{":
                template = outer or re.match(r"\s*template\b", head) is not None
                bare = re.sub(r"template\s*<[^>]*>", "", head)
                inner = re.search(r"\b(namespace|struct|class|union)\s+(\w*)[^()]*$", bare)
                if inner:
                    at = scope(at, template, "" if inner[1] == "namespace" else inner[2])
                else:
                    at = past_block(at - 1)
                    name = re.search(r"(operator\s*(?:\(\)|[^\s(]+)|~?\w+)\s*\(", bare)
                    if name and not re.search(r"=\s*$|\benum\b", bare):
                        marked = re.search(r"\bKC_(HD|LOOP)\b", head) is not None
                        found.append(Function(name[1], marked, template, owner))
            start = at
        return at

    scope(0, False)
    return found


def device_branches(text):
    """The lines that a device compiler sees, by the macros of config.h."""

    def holds(condition):
        condition = re.sub(r"defined\s*\(?\s*(__CUDACC(?:_RTC)?__)\s*\)?", "1", condition)
        condition = re.sub(r"defined\s*\(?\s*\w+\s*\)?|\bKC_VECTORS\b", "0", condition)
        condition = re.sub(r"\bKC_(DEVICE|FMA)\b", "1", condition)
        assert re.fullmatch(r"[01!&|()\s]*", condition), condition
        for c, python in (("!", " not "), ("&&", " and "), ("||", " or ")):
            condition = condition.replace(c, python)
        return bool(eval(condition.strip()))

    lines, stack = [], []  # stack: (this branch is on, an earlier one was)
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        rest = rest.split("//")[0]
        assert word not in ("#ifdef", "#ifndef"), "write #if defined(...)"
        if word == "#if":
            stack.append((holds(rest), False))
        elif word in ("#elif", "#else"):
            on, before = stack.pop()
            before = before or on
            stack.append((not before and (word == "#else" or holds(rest)), before))
        elif word == "#endif":
            stack.pop()
        elif all(on for on, _ in stack):
            lines.append(line)
    return "\n".join(lines)


def instances(ptx):
    """The mangled names of the functions in a build without inlining."""
    return set(re.findall(r"^.*\.func.*?\b(_Z\w+)", ptx, re.M))


def unreached(found, ptx):
    """Functions without a float or a double instance in the PTX of a build without inlining."""
    symbols = instances(ptx)
    plain = [f.name for f in found if not f.template]
    missing = []
    numbers = r"(?:Li\d+E)*"  # template arguments before the type
    for name, owner in dict.fromkeys((f.name, f.owner) for f in found if f.template):
        mangled = {"operator()": "cl", owner: "C[12]"}.get(name, f"{len(name)}{name}")
        for letter, real in (("f", "float"), ("d", "double")):
            pattern = rf"(?<!\d){mangled}I{numbers}{letter}"
            if owner:
                pattern = rf"(?<!\d){len(owner)}{owner}I{letter}\w*E{mangled}[EI]"
            if not any(re.search(pattern, s) for s in symbols):
                missing.append(f"{owner}::{name}, {real}" if owner else f"{name}, {real}")
    for name in dict.fromkeys(plain):
        have = [s for s in symbols if s.startswith(f"_ZN2kc{len(name)}{name}E")]
        if len(have) < plain.count(name):
            missing.append(f"{name}, {plain.count(name)} overloads, reached {sorted(have)}")
    return missing


# ---- tests


def test_every_shared_template_compiles_for_the_device():
    ptx, log = compile_device(gate(INCLUDE), INCLUDE)
    assert log == ""
    assert ptx.count(".entry") == 2


@pytest.mark.parametrize("header", HEADERS)
def test_header_stands_alone(header):
    source = f'#include "{header}"\n'
    if is_shared(header):
        ptx, log = compile_device(source, INCLUDE)
        assert log == ""
        assert ptx
    else:
        run_host_compiler(source, "-fsyntax-only", "-Wall", "-Wextra")


def host_includes(include):
    """Shared headers that include one of the host, and how."""
    found = {}
    for header in filter(is_shared, headers(include)):
        path = include / header
        for name in re.findall(r'^\s*#\s*include\s*"(.*)"', path.read_text(), re.M):
            target = (path.parent / name).resolve().relative_to(include.resolve())
            if not is_shared(target.as_posix()):
                found[header] = name
    return found


def test_no_shared_header_includes_one_of_the_host(copy):
    assert host_includes(INCLUDE) == {}
    spoiled = copy("duals/erf.h", "#pragma once", '#pragma once\n#include "../host/watch.h"')
    assert host_includes(spoiled) == {"kernelcore/duals/erf.h": "../host/watch.h"}


def test_only_one_header_knows_compilers_and_instructions():
    words = r"__(AVX|SSE|FMA|ARM|GNUC|clang|CUDA)\w*|\b_mm\d*_\w+|\b__m\d+\w*|\basm\b|_MSC_VER"
    knowing = [h for h in HEADERS if re.search(words, (INCLUDE / h).read_text())]
    assert knowing == ["kernelcore/config.h"]


def test_the_gate_covers_a_new_shared_header(copy):
    include = copy("config.h", "__forceinline__", "__noinline__")
    text = '#include "lanes.h"\nnamespace kc {\ntemplate <class V>\nKC_HD V novelty(V x) {\n'
    (include / "kernelcore" / "novelty.h").write_text(text + "    return x;\n}\n}\n")
    source = gate(include)
    assert '#include "kernelcore/novelty.h"' in source
    ptx, log = compile_device(source, include)
    assert ptx, log
    found = functions((include / "kernelcore" / "novelty.h").read_text())
    assert unreached(found, ptx) == ["novelty, float", "novelty, double"]


def test_the_gate_reaches_every_function(copy):
    include = copy("config.h", "__forceinline__", "__noinline__")
    ptx, log = compile_device(gate(include), include)
    assert ptx, log
    found = [f for h in SHARED for f in functions(device_branches((INCLUDE / h).read_text()))]
    assert len(found) > 60
    assert unreached(found, ptx) == []
    member = Function("stranger", True, True, "relu_step")
    stranger = [Function("stranger", True, True), member, Function("sqrt", True, False), *found]
    missing = unreached(stranger, ptx)
    assert missing[:2] == ["stranger, float", "stranger, double"]
    assert missing[2:4] == ["relu_step::stranger, float", "relu_step::stranger, double"]
    assert missing[4].startswith("sqrt, 3 overloads")


@pytest.mark.parametrize("header", HEADERS)
def test_every_function_is_marked(header):
    assert [f.name for f in functions((INCLUDE / header).read_text()) if not f.marked] == []


UNMARKED = {
    "inline double plain_one(double x) { return x; }": ("plain_one", False, ""),
    "template <class V>\nV a_template(V x) {\n    return x;\n}": ("a_template", True, ""),
    "struct s {\n    double member() const { return 1; }\n};": ("member", False, "s"),
    "template <class V>\nstruct t {\n    V operator()(V x) const { return x; }\n};": (
        "operator()",
        True,
        "t",
    ),
    "struct u {\n    double v;\n    explicit u(double x) : v(x - double{}) {}\n};": (
        "u",
        False,
        "u",
    ),
    "struct w {\n    friend bool operator<=(w, w) { return true; }\n};": ("operator<=", False, "w"),
    "// KC_HD\nauto trailing(int n) -> int { return n; }": ("trailing", False, ""),
}


@pytest.mark.parametrize(
    ("code", "expected"), UNMARKED.items(), ids=[e[0] for e in UNMARKED.values()]
)
def test_an_unmarked_function_is_found(code, expected):
    head = '#include "kernelcore/config.h"\n'
    text = f"namespace kc {{\nKC_HD int fine() {{ return 0; }}\n{code}\n}}  // namespace kc\n"
    name, template, owner = expected
    assert functions(text) == [("fine", True, False, ""), (name, False, template, owner)]
    ptx, log = compile_device(head + text, INCLUDE)
    assert ptx == ""
    assert "A function without execution space annotations" in log


def test_the_gate_fails_on_an_unmarked_function(copy):
    include = copy("duals/kink.h", "KC_HD kappas<V> far_kappas", "inline kappas<V> far_kappas")
    ptx, log = compile_device(gate(include), include)
    assert ptx == ""
    assert "A function without execution space annotations" in log
    assert "far_kappas" in log
    text = (include / "kernelcore" / "duals" / "kink.h").read_text()
    assert [f.name for f in functions(text) if not f.marked] == ["far_kappas"]


def test_the_gate_fails_on_a_standard_header(copy):
    include = copy("norm.h", "#pragma once", "#pragma once\n#include <cmath>")
    ptx, log = compile_device(gate(include), include)
    assert ptx == ""
    assert 'cannot open source file "cmath"' in log


@pytest.mark.parametrize("header", SHARED)
def test_no_standard_headers_for_the_device(header):
    text = (INCLUDE / header).read_text()
    assert re.findall(r"^\s*#\s*include\s*<.*", device_branches(text), re.M) == []
    if header != "kernelcore/config.h":
        assert "#include <" not in text


# ---- what Python repeats


def enumerators(header, name):
    text = (INCLUDE / "kernelcore" / header).read_text()
    body = re.search(rf"enum {name} : int {{(.*?)}};", text, re.S)[1]
    body = re.sub(r"//[^\n]*", "", body)
    return {key: int(value) for key, value in re.findall(r"(\w+) = (\d+)", body)}


def fields(name, header="plane.h"):
    """Types and names of the members of a struct."""
    text = (INCLUDE / "kernelcore" / header).read_text()
    body = re.search(rf"^struct {name} {{(.*?)^}};", text, re.S | re.M)[1]
    body = re.sub(r"//[^\n]*", "", body)
    members = re.findall(r"(?:const\s+)?(\w+\s*\*?)\s*([\w\s,]+);", body)
    return [
        (kind.replace(" ", ""), member.strip())
        for kind, names in members
        for member in names.split(",")
    ]


def test_records_have_the_layout_of_the_headers(one_lane):
    names = (*_geometry.Maps.KINDS, "terms", "steps", "stages")
    counted = (ctypes.c_longlong * len(names)).in_dll(one_lane["spatial"].library, "record_sizes")
    sizes = dict(zip(names, counted, strict=True))
    types = {"int": "i4", "index_t": "i8", "float": "f4", "double": "f8"}
    # Maps of integers, ...
    structs = {
        "rows": "row_map", "row_sums": "row_sum", "columns": "column_map",
        "places": "column_place", "loads": "column_load", "copies": "column_copy",
        "runs": "column_run", "pools": "pool_map", "targets": "pool_target", "cells": "pool_cell",
        "passes": "pool_pass", "tracks": "pool_track", "items": "pool_item", "sums": "pool_sum",
    }  # fmt: skip
    assert structs.keys() == _geometry.Maps.KINDS.keys()
    for kind, names in _geometry.Maps.KINDS.items():
        assert [("int", name) for name in names.split()] == fields(structs[kind])
        assert sizes.pop(kind) == 4 * len(names.split())

    # ... records ...
    def described(dtype):
        return [(dtype[name], name) for name in dtype.names]

    def wanted(members):
        return [(np.dtype(types[kind]), name) for kind, name in members]

    assert described(_geometry.TERM) == wanted(fields("pool_term"))
    *members, act = fields("spatial_step", "spatial.h")
    assert act == ("op", "act")
    *own, operation = described(_spatial.STEP)
    assert own == wanted(members)
    assert described(operation[0]) == described(_dense.OP) == wanted(fields("op", "program.h"))
    *members, places = fields("spatial_stage", "spatial.h")
    assert places == ("plane_store", "places")
    inner = [("places_columns" if n == "columns" else n) for _, n in fields("plane_store")]
    assert described(_spatial.STAGE) == wanted(members) + [(np.dtype("i4"), n) for n in inner]
    # ... and all of them as the compiler lays them out.
    records = {"terms": _geometry.TERM, "steps": _spatial.STEP, "stages": _spatial.STAGE}
    assert sizes == {name: dtype.itemsize for name, dtype in records.items()}


def test_python_has_the_numbers_of_the_headers():
    codes = {f"op_{code.name.lower()}": int(code) for code in _program.Code}
    assert enumerators("program.h", "opcode") == codes
    reductions = [*dict.fromkeys(_dense.REDUCTIONS.values())]
    assert list(enumerators("product.h", "reduction").values()) == reductions
    combinations = {"assign": _dense.ASSIGN, "add_to": _dense.ADD, "multiply_by": _dense.MULTIPLY}
    assert enumerators("entry.h", "combination") == combinations
    assert _dispatch.driver("dense").OP_SIZE == _dense.OP.itemsize
    assert _dispatch.driver("dense").ROW_SIZE == _dense.ROW.itemsize
    assert _dispatch.driver("dense").ROW_BLOCK == _rows.LANES
    assert _dispatch.driver("dense").STRIP == steps.STRIP
    codes = {f"step_{name}": number for name, number in _spatial.CODES.items()}
    assert enumerators("spatial.h", "step_code") == codes
    kinds = {f"kind_{k.lower()}": getattr(_spatial, k) for k in ("LINEAR", "RELU", "GENERAL")}
    assert enumerators("spatial.h", "step_kind") == kinds
    text = (INCLUDE / "kernelcore" / "program.h").read_text()
    assert int(re.search(r"most_slots = (\d+);", text)[1]) == _spatial.MOST_SLOTS
    text = (INCLUDE / "kernelcore" / "host" / "plane.h").read_text()
    assert int(re.search(r"least_box = (\d+);", text)[1]) == _geometry.LEAST_BOX
    assert int(re.search(r"most_vectors = (\d+);", text)[1]) == _spatial.MOST_VECTORS


def adds(code):
    """Whether ``add`` makes an operation do t <- slope t + u; it changes nothing of the others."""
    driver = _dispatch.driver("dense")
    before = (
        [(int(_program.Code.SAVE),)] if code in (_program.Code.SWAP, _program.Code.MERGE) else []
    )

    def tangents(add):
        rows = [(*row, *[0] * 7) for row in before] + [(int(code), 1, 0, 0, 0.5, 0.5, 0.5, add)]
        ops = np.array(rows, _dense.OP).view(np.uint8)
        u, t = np.full(driver.STRIP, 0.25), np.zeros(driver.STRIP)
        tables = np.full((64, driver.STRIP), 0.5)  # more than any of them looks up
        coefficients = np.full(256, 0.5)  # likewise
        if code == _program.Code.MATERN_OF:  # its first coefficients count the others
            coefficients = np.array(kc.Matern(0.7, 1.0)._op().coefficients)
        program = _calls.Program(ops.view(np.uint8), coefficients, 1)
        saved = np.empty((1, 3 * driver.STRIP))
        driver.pairs(program, (tables, tables), (u, 1 - u, t), saved)
        return u, t

    (u, plain), (same, added) = tangents(0.0), tangents(1.0)
    np.testing.assert_array_equal(u, same)
    assert u.all()
    changed = not np.array_equal(added, plain)
    np.testing.assert_array_equal(added, plain + u if changed else plain)
    return changed


@pytest.mark.parametrize("code", _program.Code, ids=lambda code: code.name)
def test_operations_that_add_are_those_of_layers(code):
    """Distances and plain sums are whole kernels: nothing trained comes after them."""
    kernels = ("EXPONENTIAL_OF", "LAPLACIAN", "MATERN", "CAUCHY", "COSINE", "POWER_OF")
    others = (*kernels, "MATERN_OF", "CHEBYSHEV_OF", "TRAINED", "SAVE", "SWAP", "MERGE")
    assert adds(code) == (code.name not in others)


@pytest.mark.parametrize("name", kc.activations.__all__)
def test_forms_fuse_what_operations_add(name):
    """What a form states of its operation is what the operation does."""
    form = getattr(kc, name)(*ARGUMENTS.get(name, ()))._form()
    op = steps.step(form, np.ones(1), 0.0, 1).op
    if op is not None:
        assert form.fuses == adds(op.code)


# ---- one lane, on the host

ONE_LANE = """
#include <vector>

#include "kernelcore/gegenbauer.h"
#include "kernelcore/host/cyclic.h"
#include "kernelcore/host/rows.h"
#include "kernelcore/host/spatial.h"
#include "kernelcore/norm.h"

using namespace kc;

// Functions take the fields of the records of calls.py one by one, then sizes.
unwatched watch;

// The driver's loop over tiles, on one thread and without blocks: room for all panels of its own.
// Coordinates come in parts all the same.
template <class T>
void gram(const T* x, const T* y, const double* norm, const double* tables, const double* k,
          const double* t, index_t x_first, index_t y_first, const op* ops, const T* coefficients,
          index_t slots, index_t kind, double bump, index_t angular, T* k_out, T* t_out,
          double factor, index_t combine, index_t symmetric, index_t, index_t rows,
          index_t columns, index_t coordinates, index_t transposed, index_t, index_t, index_t,
          index_t, index_t, index_t, index_t, T*, index_t n, index_t m, index_t d, index_t count,
          index_t table_count, index_t stride) {
    constexpr index_t step = panel<T>;
    const index_t x_panels = (n + step - 1) / step, y_panels = (m + step - 1) / step;
    gram_job<T> job{};
    std::vector<T> x_room((2 + table_count) * n), y_room((2 + table_count) * y_panels * step);
    job.x.rows = x, job.x.count = n, job.x.norm = norm + x_first;
    job.y.rows = y, job.y.count = m, job.y.norm = norm + y_first;
    fill_side(k + x_first, tables + x_first, stride, int(table_count), n, angular != 0,
              x_room.data(), &job.x);
    fill_side(k + y_first, tables + y_first, stride, int(table_count), y_panels * step,
              angular != 0, y_room.data(), &job.y);
    job.d = d, job.program = {ops, int(count), coefficients};
    job.k_diagonal = k + x_first, job.t_diagonal = t + x_first, job.factor = factor;
    job.to = {k_out, t_out, transposed ? n : m, T(factor), int(combine), symmetric != 0,
              transposed != 0};
    job.kind = int(kind), job.slots = int(slots);
    job.bump_scale = T(bump), job.angular = angular;
    const index_t most = coordinates < d ? coordinates : d;
    const index_t across = (y_panels + columns - 1) / columns;
    const index_t down = (x_panels + rows - 1) / rows, size = tile_size<T>(rows, columns);
    std::vector<T> x_packed(x_panels * step * most), y_packed(y_panels * step * most);
    std::vector<T> values(down * across * size), scratch(tile_scratch<T>(rows, columns, job.slots));
    for (index_t from = 0; from < d; from += most) {
        const index_t to = from + most < d ? from + most : d, part = step * (to - from);
        for (index_t q = 0; q < x_panels; q++)
            pack<T>(x + q * step * d + from, job.x.scale + q * step, n - q * step, d, to - from,
                    &x_packed[q * part]);
        for (index_t q = 0; q < y_panels; q++)
            pack<T>(y + q * step * d + from, job.y.scale + q * step, m - q * step, d, to - from,
                    &y_packed[q * part]);
        for (index_t q = 0; q < down * across; q++) {
            const index_t i = q / across * rows, j = q % across * columns;
            const index_t i1 = i + rows < x_panels ? i + rows : x_panels;
            const index_t j1 = j + columns < y_panels ? j + columns : y_panels;
            if (symmetric && j1 <= i) continue;
            const tile_range<T> range{x_packed.data(), y_packed.data(), 0, 0, i, i1, j, j1, from,
                                      to};
            compute_tile<T>(job, range, &values[q * size], scratch.data(), watch);
        }
    }
}
template <class T>
void norms(const T* x, double* out, index_t, index_t n, index_t d) {
    for (index_t i = 0; i < n; i++) out[i] = row_norms<T, double>(x + i * d, 1, d);
}

// All of the matrix as one tile, or tiles of one entry on the diagonal.
template <class T>
void cyclic(const T* x, const T* y, index_t positions, index_t patch, const T* weights,
            const op* ops, const T* coefficients, index_t, T* out, T*, double factor,
            index_t combine, index_t symmetric, T* diagonal, index_t, index_t, T*, index_t n,
            index_t length, index_t m, index_t offsets, index_t count) {
    cyclic_job<T> job{x, y, n, m, length, positions, patch, offsets, weights,
                      {ops, int(count), coefficients},
                      {out, nullptr, m, T(factor), int(combine), symmetric != 0}};
    std::vector<T> scratch(strip_scratch<T>(job) + n * m);
    if (out) {
        cyclic_values<T>(job, 0, n, 0, m, scratch.data(), watch);
        cyclic_write<T>(job, 0, n, 0, m, scratch.data());
    } else {
        for (index_t i = 0; i < n; i++) {
            cyclic_values<T>(job, i, i + 1, i, i + 1, scratch.data(), watch);
            diagonal[i] = *tile_values<T>(job, scratch.data());
        }
    }
}

// What a Program of the driver holds: the plan's maps, and its sizes in the order of its class.
template <class T>
spatial_job<T> spatial_network(const plane_maps* maps, const spatial_stage* stages,
                               const index_t* sizes, double input_scale, double input_add,
                               const spatial_step* steps, const T* coefficients,
                               index_t table_size) {
    return {*maps, stages, int(sizes[0]), steps, coefficients, sizes[1], sizes[2], T(input_scale),
            T(input_add), table_size, sizes[3], sizes[4], sizes[5], int(sizes[6]),
            int(sizes[7]), sizes[8], sizes[9], sizes[10]};
}
#define NETWORK(T)                                                                              \
    const plane_maps *maps, const spatial_stage *stages, const index_t *sizes, double scale,    \
        double add, const spatial_step *steps, const T *coefficients, index_t table_size
#define JOB spatial_network<T>(maps, stages, sizes, scale, add, steps, coefficients, table_size)

template <class T>
void spatial_gram(NETWORK(T), const T* x_pixels, const T* x_tables, const T* y_pixels,
                  const T* y_tables, index_t i0, index_t j0, index_t j1, index_t, T* k_out,
                  T* t_out, double factor, index_t, index_t symmetric, T*, index_t n,
                  index_t pixels, index_t stride) {
    const spatial_job<T> job = JOB;
    std::vector<T> scratch(spatial_scratch<T, 2>(job));
    for (index_t i = i0; i < i0 + n; i++)
        for (index_t j = symmetric && i > j0 ? i : j0; j < j1; j++) {
            const one_image<T> x{x_pixels + (i - i0) * pixels, x_tables + (i - i0) * table_size};
            const lane_images<T> y{y_pixels + (j - j0) * pixels, y_tables + (j - j0) * table_size};
            const T* k = t_out ? run_pair<T, 2>(job, x, y, scratch.data(), watch)
                               : run_pair<T, 1>(job, x, y, scratch.data(), watch);
            for (index_t at : {i * stride + j, j * stride + i}) {
                if (k_out) k_out[at] = k[0] * T(factor);
                if (t_out) t_out[at] = k[1] * T(factor);
                if (!symmetric) break;
            }
        }
}
template <class T>
void spatial_selves(NETWORK(T), const T* pixels, const T* tables, index_t parts, T* out, T*,
                    index_t n, index_t size, index_t numbers) {
    const spatial_job<T> job = JOB;
    std::vector<T> scratch(spatial_scratch<T, 2>(job));
    for (index_t i = 0; i < n; i++) {
        const lane_images<T> x{pixels + i * size, tables + i * table_size};
        copy_numbers<T>(parts == 2 ? run_pair<T, 2>(job, x, x, scratch.data(), watch, sizes[11])
                                   : run_pair<T, 1>(job, x, x, scratch.data(), watch, sizes[11]),
                        out + i * numbers, numbers);
    }
}

extern "C" {
#define ENTRY(name, of) decltype(&of<float>) name##_float32 = of<float>; \\
    decltype(&of<double>) name##_float64 = of<double>;
ENTRY(gram, gram)
ENTRY(norms, norms)
ENTRY(cyclic, cyclic)
ENTRY(spatial_gram, spatial_gram)
ENTRY(spatial_selves, spatial_selves)
index_t panel_rows() { return panel<double>; }
index_t first_beyond = -1;
index_t beyond() { return first_beyond; }
void rows(const row_step* steps, const double* norm, double* state, double saved, double tables,
          double d, double limit, double floor, double, index_t n, index_t size) {
    const index_t length = (n + row_block - 1) / row_block * row_block;
    const int count = int(size / sizeof(row_step));
    const row_job job{steps, count, n, length, d, limit, floor, norm, state, state + length,
                      state + index_t(saved) * length, state + index_t(tables) * length};
    const int bad = walk_rows<double>(job).bad;
    first_beyond = bad == count ? -1 : bad;
}
index_t record_sizes[] = {
    sizeof(row_map), sizeof(row_sum), sizeof(column_map), sizeof(column_place), sizeof(column_load),
    sizeof(column_copy), sizeof(column_run), sizeof(pool_map), sizeof(pool_target),
    sizeof(pool_cell), sizeof(pool_pass), sizeof(pool_track), sizeof(pool_item), sizeof(pool_sum),
    sizeof(pool_term), sizeof(spatial_step), sizeof(spatial_stage)};
void pairs(const op* ops, const double* coefficients, index_t, const double* x_table,
           const double* y_table, double* u, double* delta, double* t, double* saved, index_t raw,
           index_t count, index_t length) {
    const strip<double> s{u, delta, t};
    const column_of<double> x{x_table, length}, y{y_table, length};
    if (raw)
        walk<double, output::raw>({ops, int(count), coefficients}, x, y, length, s, saved);
    else
        walk<double, output::tangent>({ops, int(count), coefficients}, x, y, length, s, saved);
}
void correlates(const double* a, const double* c, const double* k, double* u, double* delta,
                index_t length) {
    for (index_t at = 0; at < length; at++) {
        const correlation<double> r = correlate(a[at], c[at], k[at]);
        u[at] = r.u, delta[at] = r.delta;
    }
}
void projects(const double* n, double* x, double* exponent, double* scale, index_t q, index_t p,
              const index_t* first, const index_t* watched, double* out, index_t, index_t jobs,
              index_t count, index_t degrees) {
    for (index_t i = 0; i < jobs; i++) {
        const index_t at = i * count;
        const powers<double> terms{n + at, x + at, exponent + at, scale + at, count, watched[i]};
        raise_dimension<double>(terms, q, p, int(first[i]));
        project<double>(terms, double(p), first[i], degrees,
                        (projection<double>*)(out + 4 * i * degrees));
    }
}
void integrates(const double* t, const double* values, double p, double* out, double* scratch,
                index_t n, index_t degrees) {
    integrate<double>(t, values, n, p, 0, degrees, scratch, scratch + n, out);
}
void multiplies(const double* a, const double* b, double* out, index_t n) {
    multiply_series<double>(a, b, n, out);
}
void inverse_roots(const double* w, double d0, double* out, double* scratch, index_t n) {
    inverse_root<double>(w, d0, n, out, scratch);
}
void shifts(double* c, double x, index_t n) { shift_series(c, n, x); }
}
"""


def run_host_compiler(source, *options):
    """C++ for this machine, with the flags that matter to values; it must not say anything."""
    compiler = (os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++").split()
    if not shutil.which(compiler[0]):
        compiler = ["c++"]
    flags = ["-std=c++17", "-O0", "-g0", "-ffp-contract=off"]  # a quarter of the time of -O1
    flags += ["-D__SANITIZE_ADDRESS__"]  # config.h then forces no inlining
    flags += ["-march=x86-64-v3"] if _dispatch.level() != "v1" else []
    command = [*compiler, *flags, *options, f"-I{INCLUDE}", "-x", "c++", "-"]
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run(command, input=source, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def compile_host(source, library):
    """A shared library for this machine."""
    run_host_compiler(source, "-fPIC", "-shared", "-o", str(library))
    return ctypes.CDLL(str(library))


def arguments(*values):
    """Arrays as addresses (none when empty or None), integers as index_t, floats as double.

    Records, tuples and lists field by field.
    """
    for v in values:
        if isinstance(v, (tuple, list)):
            yield from arguments(*v)
        elif v is None or isinstance(v, np.ndarray):
            assert v is None or v.flags.c_contiguous
            yield ctypes.c_void_p(v.ctypes.data if v is not None and v.size else None)
        else:
            yield (ctypes.c_double if isinstance(v, float) else ctypes.c_longlong)(v)


class OneLane:
    """Stands in for a compiled driver: the same calls, answered one lane at a time."""

    OPENMP, DEPTH = False, 128

    def __init__(self, library, record):
        self.library, self.record = library, record
        self.PANEL = dict.fromkeys(("float32", "float64"), library.panel_rows())
        self.calls = 0
        # What rows look up of functions has no lanes: the driver's own.
        self.interpolate = _dispatch.driver("dense").interpolate

    def _entry(self, name, dtype):
        address = ctypes.c_void_p.in_dll(self.library, f"{name}_{dtype}").value
        return ctypes.CFUNCTYPE(None)(address)

    def _call(self, function, *values):
        self.calls += 1
        function(*arguments(*values))

    def norms(self, x, out, n_threads):
        self._call(self._entry("norms", x.dtype), x, out, n_threads, *x.shape)
        return bool(np.isfinite(out).all())

    def scratch_size(self, like, rows, columns, slots):
        return 0

    def tile_size(self, like, rows, columns):
        return 0

    def rows(self, steps, norm, state, *rest):
        self._call(self.library.rows, steps, norm, state, *map(float, rest), len(norm), len(steps))
        low, most = state[0, : len(norm)].min() < rest[-1], state[1, : len(norm)].max()
        return self.library.beyond(), low, most

    def gram(self, x, y, tables, program, *rest, watch=None):
        sizes = (len(x), len(y), x.shape[1], program.ops.size // self.record)
        sizes += tables.tables.shape
        self._call(self._entry("gram", x.dtype), x, y, tables, program, *rest, *sizes)

    def pairs(self, program, tables, state, saved, raw=False):
        sizes = (program.ops.size // self.record, state[0].size)
        self._call(self.library.pairs, program, tables, state, saved, raw, *sizes)

    def correlate(self, a, *rest):
        self._call(self.library.correlates, a, *rest, a.size)


class OneLaneCyclic(OneLane):
    """The same for the driver of cyclic convolutions."""

    WIDTH = dict.fromkeys(("float32", "float64"), 1)

    def __init__(self, *rest):
        super().__init__(*rest)
        self.look_up = _dispatch.driver("cyclic").look_up  # which has no lanes

    def gram(self, x, y, kernel, program, target, *rest, watch=None):
        m = len(x) if target.k is None else target.k.shape[1]
        assert (y.shape, kernel.weights.ndim) == ((m, x.shape[1], 1), 1)
        sizes = (*x.shape, m, len(kernel.weights), program.ops.size // self.record)
        function = self._entry("cyclic", x.dtype)
        self._call(function, x, y, kernel, program, target, *rest, *sizes)


class OneLaneSpatial(OneLane):
    """The same for the driver of images."""

    WIDTH = dict.fromkeys(("float32", "float64"), 1)
    SIZES = (
        "channels pixel_columns plane_size line_size store_size slots boxed slab_size pass_size "
        "track_size variances"
    )

    def __init__(self, *rest):
        super().__init__(*rest)
        # What is done to single images has no lanes: the driver's own.
        driver = _dispatch.driver("spatial")
        self.pixels, self.window, self.norms = driver.pixels, driver.window, driver.norms

    def lanes(self, rows, out, n_threads):
        out[:] = rows[:, :, None]

    def Program(self, plan):
        maps = np.array([getattr(plan, name).ctypes.data for _, name in fields("plane_maps")])
        sizes = [len(plan.stages), *(getattr(plan, name) for name in self.SIZES.split())]
        return maps, plan.stages, np.array(sizes), plan.input_scale, plan.input_add

    def gram(self, network, x, y, place, target, scratch, watch=None):
        assert target.combine == _dense.ASSIGN
        assert not place.flipped  # no side fills single lanes better
        stride = (target.k if target.t is None else target.t).shape[1]
        function = self._entry("spatial_gram", scratch.dtype)
        self._call(function, network, x, y, place, target, scratch, *x.pixels.shape, stride)

    def selves(self, network, images, parts, out, scratch):
        sizes = (*images.pixels.shape[:2], out.shape[1])
        function = self._entry("spatial_selves", scratch.dtype)
        self._call(function, network, images, parts, out, scratch, *sizes)


class OneLaneGegenbauer(OneLane):
    """The same for the driver of spectra."""

    WIDTH = 1

    def project(self, terms, dims, first, watched, out, n_threads):
        sizes = (*terms.n.shape, out.shape[1])
        self._call(self.library.projects, terms, dims, first, watched, out, n_threads, *sizes)

    def integrate(self, t, values, p, out, scratch):
        sizes = (len(t), len(out))
        self._call(self.library.integrates, t, values, p, out, scratch, *sizes)

    def multiply(self, a, *rest):
        self._call(self.library.multiplies, a, *rest, len(a))

    def inverse_root(self, w, d0, *rest):
        self._call(self.library.inverse_roots, w, d0, *rest, len(w))

    def shift(self, c, x):
        self._call(self.library.shifts, c, x, len(c))


@pytest.fixture(scope="module")
def one_lane(tmp_path_factory):
    library = compile_host(ONE_LANE, tmp_path_factory.mktemp("lanes") / "one_lane.so")
    library.panel_rows.restype = library.beyond.restype = ctypes.c_longlong
    record = _dispatch.driver("dense").OP_SIZE
    kinds = {
        "dense": OneLane,
        "cyclic": OneLaneCyclic,
        "spatial": OneLaneSpatial,
        "gegenbauer": OneLaneGegenbauer,
    }
    return {name: kind(library, record) for name, kind in kinds.items()}


@pytest.fixture
def one_lane_driver(one_lane, monkeypatch):
    """Puts the drivers of one lane in the place of the others; plans hold on to a driver."""

    def put():
        monkeypatch.setattr(_dispatch, "driver", one_lane.__getitem__)
        _spatial.plan.cache_clear()
        return one_lane

    yield put
    _spatial.plan.cache_clear()


BLOCK = kc.Residual(kc.Relu(), kc.Dense(1.2, 0.1), shortcut=kc.Dense(0.7))
NESTED = kc.Residual(kc.Erf(), kc.Dense(0.8), BLOCK, kc.Dense(0.9, 0.3, trainable=False))
ARGUMENTS = {
    "Activation": (np.arctan,), "Hermite": (3,), "LeakyRelu": (0.2,), "Monomial": (3,),
    "OneKink": (0.1, (0.0, 1.0, 0.0), (-1.0, 0.0, 1.0)), "PowerSeries": ((0.3, -1.0, 0.5),),
    "RectifiedPower": (2,),
}  # fmt: skip
LAYERS = [getattr(kc, name)(*ARGUMENTS.get(name, ())) for name in kc.activations.__all__]
LAYERS += [
    kc.Cos(shift=0.3), kc.GaussianBump(shift=0.2), kc.Relu(shift=0.4), NESTED,
    kc.DotProduct(kc.profiles.Exp(0.7)), kc.DotProduct((0.1, 0.3, 0.0, 0.6)),
    kc.DotProduct(np.exp), kc.Project(),
]  # fmt: skip
KERNELS = [
    kc.Gaussian(2.0), kc.Laplacian(2.0), kc.Laplacian(2.0, norm=1), kc.Cauchy(3.0),
    kc.Matern(2.5, 2.0), kc.Polynomial(3, 0.2), kc.ArcCosine(2),
    *(0.5 * kc.CyclicConvolution(q, 3, (0.1, 0.2, 0.3)) for q in (1, 2, 3, 4, 11, 28, 77, 130)),
]  # fmt: skip


CONV = kc.Conv(3, w_std=1.3)
IMAGES = {
    "pooled": kc.presets.cntk(4),
    "flat": kc.Sequential(CONV, kc.Relu(), CONV, kc.Relu(), kc.Flatten(), kc.Dense()),
    "circular": kc.Sequential(
        *[kc.Conv((3, 2), padding="circular"), kc.Relu()] * 2, kc.GlobalAvgPool(), kc.Dense()
    ),
    "bias": kc.Sequential(
        *[kc.Conv(3, padding="circular", b_std=0.3), kc.Relu()] * 2, kc.Flatten(), kc.Dense(1, 0.1)
    ),
    "pools": kc.Sequential(
        kc.AvgPool(2, 1), CONV, kc.Relu(), kc.AvgPool(2, padding="same"), CONV, kc.Erf(),
        kc.GaussianPool(1), CONV, kc.LeakyRelu(0.1), kc.GlobalAvgPool(), kc.Dense(), kc.Tanh(),
        kc.Dense(),
    ),
    "residual": kc.Sequential(
        kc.Conv((2, 3), padding="valid", trainable=False),
        kc.Residual(
            kc.Relu(), kc.Conv(3, 2), kc.Residual(kc.Gelu(), CONV), kc.Dense(),
            shortcut=kc.Conv(1, 2, b_std=0.1),
        ),
        kc.Relu(), kc.AvgPool((2, 1)), kc.Flatten(), kc.Dense(),
    ),
    "maps": kc.Sequential(
        kc.Input(sum=True), kc.Conv(2), kc.DotProduct(kc.profiles.Exp(0.6)), kc.AvgPool(2),
        kc.Project(), CONV, kc.DotProduct((0.1, 0.3, 0.6)), kc.Conv(1),
        kc.DotProduct(kc.profiles.Kappa1()), kc.Flatten(sum=True), kc.Dense(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("name", IMAGES)
def test_one_lane_gives_the_same_bits_of_images(one_lane_driver, dtype, channels, name):
    rng = np.random.default_rng(4)
    x, y = (rng.standard_normal((n, 6, 5, channels)).astype(dtype) for n in (4, 9))
    x[1, 2:] = 0
    x[2] = y[3]
    net = IMAGES[name]

    def values():
        return [
            *net.kernels(x),
            *net.kernels(x, y),
            net.nngp(x, y),
            net.nngp.diag(y),
            net.ntk.diag(y),
        ]

    want = values()
    driver = one_lane_driver()["spatial"]
    calls = driver.calls
    got = values()
    assert driver.calls > calls
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("what", LAYERS + KERNELS, ids=str)
def test_one_lane_gives_the_same_bits(one_lane, one_lane_driver, dtype, what):
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal((n, 130)).astype(dtype) for n in (26, 11))

    def values():
        if isinstance(what, kc.Kernel):
            return [what(x), what(x, y), what.diag(x)]
        net = kc.Sequential(kc.Dense(0.9, 0.2), what, kc.Dense(1.1), kc.Relu(), kc.Dense())
        u = np.linspace(-1, 1, 77)
        return [*net.kernels(x), *net.kernels(x, y), net.nngp(x), net.ntk.profile(u)]

    want = values()
    calls = sum(driver.calls for driver in one_lane.values())
    one_lane_driver()
    got = values()
    assert sum(driver.calls for driver in one_lane.values()) > calls
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "kernel",
    [kc.presets.mlp(3, b_std=0.1).ntk, kc.Gaussian(0.5), kc.presets.mlp(1, kc.Tanh()).nngp],
    ids=["tail", "entire", "sampled"],
)
def test_one_lane_gives_the_same_spectra(one_lane, one_lane_driver, kernel):
    # Lanes only change the order in which the terms, all of them positive or below the noise that
    # is stated, are added.
    want = kc.spectrum.sphere(kernel, 7, 60)
    _powers.powers_of.cache_clear()
    calls = one_lane["gegenbauer"].calls
    one_lane_driver()
    got = kc.spectrum.sphere(kernel, 7, 60)
    _powers.powers_of.cache_clear()
    assert one_lane["gegenbauer"].calls > calls
    np.testing.assert_array_equal(got.resolved, want.resolved)
    there = np.isfinite(want.log_eigenvalues)
    np.testing.assert_array_equal(np.isfinite(got.log_eigenvalues), there)
    off = np.abs(got.log_eigenvalues[there] - want.log_eigenvalues[there])
    assert (off <= want.error[there]).all()
