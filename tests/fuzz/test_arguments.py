"""Public constructors and calls with whatever comes: a value, or an error of ours."""

import copy
import inspect
import pickle

import numpy as np
from hypothesis import strategies as st

import kernelcore as kc
from fuzz import attempt, fuzzed
from fuzz import strategies as some

X, Y = np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0, 0.5])
MADE = [
    getattr(kc, name) for name in kc.__all__
    if isinstance(getattr(kc, name), type) and issubclass(getattr(kc, name), kc.Dense.__mro__[-2])
    and name not in ("Kernel", "Kernels")
]  # fmt: skip
MADE += [getattr(kc.profiles, name) for name in kc.profiles.__all__]
MADE += [kc.presets.mlp, kc.presets.cntk, kc.presets.myrtle, kc.presets.ckn]
SOUND = st.one_of(
    st.sampled_from([0.5, 1.0, 2, 3, (0.1, 0.2), (3,), (1, 2), "same", True]), some.JUNK
)


@st.composite
def calls(draw):
    """A public class, and arguments by name for some of its parameters."""
    made = draw(st.sampled_from(MADE))
    names = [
        p.name for p in inspect.signature(made).parameters.values()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]  # fmt: skip
    return made, {name: draw(SOUND) for name in names if draw(st.integers(0, 2))}


@fuzzed(400, calls())
def test_constructors(call):
    made, options = call
    missing = [
        p.name for p in inspect.signature(made).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        and p.name not in options
    ]  # fmt: skip
    options |= dict.fromkeys(missing, 2)
    value = attempt(lambda: made(**options))
    if value is None:
        return
    assert repr(value)
    assert copy.deepcopy(value) == value
    function = any(callable(v) and not isinstance(v, type) for v in options.values())
    if not function:
        assert pickle.loads(pickle.dumps(value)) == value
        assert hash(pickle.loads(pickle.dumps(value))) == hash(value)


KERNELS = st.sampled_from([kc.presets.mlp(1).ntk, kc.Gaussian(1.0), kc.Cauchy(2.0)])
CALLS = {
    "gram": lambda k, a, b, c: k(a, b, n_threads=c),
    "out": lambda k, a, b, c: k(X, out=a),
    "diag": lambda k, a, b, c: k.diag(a),
    "profile": lambda k, a, b, c: k.profile(a, radius=b, dim=c),
    "gradient": lambda k, a, b, c: k.gradient(X, weights=a),
    "null degrees": lambda k, a, b, c: k.null_degrees(a),
    "times": lambda k, a, b, c: k * a if isinstance(a, (int, float, kc.Kernel)) else k,
    "sphere": lambda k, a, b, c: kc.spectrum.sphere(k, a, b),
    "hypercube": lambda k, a, b, c: kc.spectrum.hypercube(k, a),
    "empirical": lambda k, a, b, c: kc.spectrum.empirical(a, b),
    "curve": lambda k, a, b, c: kc.theory.learning_curve(a, b, c),
    "subset": lambda k, a, b, c: kc.theory.subset_curve(a, b, c),
    "dimension": lambda k, a, b, c: kc.theory.effective_dimension(a, b),
    "ridge": lambda k, a, b, c: kc.solvers.ridge(a, b, c),
    "path": lambda k, a, b, c: kc.solvers.RidgePath(k(X), a).loo(b),
    "flow": lambda k, a, b, c: kc.solvers.gradient_flow(k(X), a, b),
    "cg": lambda k, a, b, c: kc.solvers.conjugate_gradients(k(X), Y, a, max_iter=b),
    "operator": lambda k, a, b, c: kc.GramOperator(k, a, max_memory=b),
    "plan": lambda k, a, b, c: kc.plan(k, n=a, shape=b, workers=c, seconds=1e-3),
    "sample": lambda k, a, b, c: kc.presets.mlp(1).sample(a, b, shape=c),
    "diagnose": lambda k, a, b, c: kc.diagnose(k, a, b, ridge=c),
    "drawn": lambda k, a, b, c: kc.data.sphere(a, b, seed=c),
    "threads": lambda k, a, b, c: kc.set_threads(a),
    "memory": lambda k, a, b, c: kc.set_memory(a),
}  # fmt: skip
SMALL = st.one_of(st.sampled_from([X, Y, np.eye(3), 2, 3, 0.5, [1.0, 0.5], None]), some.JUNK)


@fuzzed(600, KERNELS, st.sampled_from(sorted(CALLS)), SMALL, SMALL, SMALL)
def test_calls(kernel, name, a, b, c):
    threads, memory = kc.get_threads(), kc.get_memory()
    try:
        attempt(lambda: CALLS[name](kernel, a, b, c))
    finally:
        kc.set_threads(threads)
        kc.set_memory(memory)
