"""The room: it has every call of BLAS and LAPACK, and knows whose arrays it is given."""

import ast
import pathlib
import subprocess
import sys

import array_api_strict
import numpy as np
import threadpoolctl

import kernelcore as kc
from kernelcore.linalg import namespace_of
from kernelcore.linalg.blas import serial

PACKAGE = pathlib.Path(kc.__file__).parent
ELSEWHERE = {
    "_info.py": {"scipy.linalg.blas"},  # loaded to be listed
    # once for a function, of 136 x 42 numbers and less
    "engine/cpu/kinks.py": {"np.linalg.eigh", "np.linalg.lstsq", "np.linalg.svd"},
    "experiments/speed.py": {"np.linalg.norm"},  # what one would write by hand, to compare with
}


def used(path):
    """Names below ``np.linalg``, ``scipy.linalg`` and ``scipy.sparse.linalg`` in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np.linalg":
            yield f"np.linalg.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if "linalg" in node.module or "linalg" in {a.name for a in node.names}:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if "linalg" in a.name)


def test_nothing_else_calls_blas_or_lapack():
    # An exception's class, and a type of argument, are no calls.
    harmless = {"np.linalg.LinAlgError", "scipy.sparse.linalg.LinearOperator"}
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        names = set(used(path)) - harmless
        if names and not name.startswith("linalg/"):
            found[name] = names
    assert found == ELSEWHERE


def test_the_search_finds_what_it_should(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("from scipy import linalg\nimport scipy.linalg\nx = np.linalg.qr(y)\n")
    assert set(used(path)) == {"scipy.linalg", "np.linalg.qr"}


def test_namespaces():
    a = array_api_strict.asarray([1.0])
    assert namespace_of(np.ones(2), np.eye(1)) is np
    assert namespace_of(a, a) is array_api_strict


def test_numpy_needs_no_other_package():
    code = """
import sys
sys.modules["array_api_compat"] = None
import numpy as np
from kernelcore import linalg
assert abs(linalg.cholesky(np.eye(2), 1.0).solve(np.ones(2))[0] - 0.5) < 1e-15
"""
    path = str(PACKAGE.parent)
    run = [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r})\n{code}"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_importing_the_room_loads_no_scipy():
    code = "import sys, kernelcore.linalg; print([m for m in sys.modules if m[:5] == 'scipy'])"
    path = str(PACKAGE.parent)
    run = [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r})\n{code}"]
    assert subprocess.run(run, capture_output=True, text=True, timeout=60).stdout == "[]\n"


def test_serial_reaches_all_of_blas(two_of_blas):
    with serial():
        libraries = [i for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"]
        assert {i["num_threads"] for i in libraries} == {1}


def test_arrays_that_cannot_be_written_to_are_read_by_numpy():
    class ArrayImpl:  # as JAX's, of which no more is needed
        __module__ = "jaxlib._jax"

        def __init__(self, data):
            self.data, self.shape, self.dtype = data, data.shape, data.dtype

        def __array_namespace__(self, api_version=None):
            raise AssertionError

        def __dlpack_device__(self):
            return 1, 0

        def __array__(self, *args, **kwargs):
            return self.data

    found = kc.solvers.ridge(ArrayImpl(np.eye(2)), ArrayImpl(np.ones(2)), 1.0)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, [0.5, 0.5], rtol=1e-15)


def test_a_backend_may_have_products_with_few_columns(rng):
    from elsewhere import attached, back, there

    from kernelcore import engine
    from kernelcore.linalg.thin import normal_product, transposed_product

    K, x = rng.standard_normal((9, 4)), rng.standard_normal((4, 2))
    near = {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(back(normal_product(there(K), there(x))), K.T @ (K @ x), **near)
    np.testing.assert_allclose(back(transposed_product(there(K), there(K))), K.T @ K, **near)
    with attached():
        backend = engine.BACKENDS[-1]
        backend.normal_product, backend.transposed_product = (
            lambda K, x: ("normal", x.shape),
            lambda K, t: ("transposed", t.shape),
        )
        assert normal_product(there(K), there(x)) == ("normal", (4, 2))
        assert transposed_product(there(K), there(K)) == ("transposed", (9, 4))


def test_a_backend_may_have_substitution():
    from elsewhere import attached, back, there

    from kernelcore import engine, linalg

    seen = []

    def solve_triangular(t, b, lower, transpose):
        seen.append((lower, transpose))
        half = np.tril(back(t)) if lower else np.triu(back(t))
        return there(np.linalg.solve(half.T if transpose else half, back(b)))

    t, b = np.array([[2.0, 9.0], [1.0, 4.0]]), np.array([2.0, 3.0])
    with attached():
        engine.BACKENDS[-1].solve_triangular = solve_triangular
        got = linalg.triangular_solve(there(t), there(b), lower=True)
        np.testing.assert_allclose(back(got), [1.0, 0.5], rtol=1e-15)
        linalg.triangular_solve(there(t), there(b), transpose=True)
    assert seen == [(True, False), (False, True)]
