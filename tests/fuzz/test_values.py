"""Gram matrices of random kernels on random inputs: finite, symmetric, the same in any layout, in
any tiling and on any number of threads, semi-definite, and in float32 what they are in float64.
"""

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import kernelcore as kc
from fuzz import attempt, fuzzed
from fuzz import strategies as some


def bits(a):
    return np.ascontiguousarray(a).tobytes()


def holds_for_rows(kernel, x, layout, cut):
    """What is promised of kernels of rows, to the last bit."""
    K = attempt(lambda: kernel(x))
    if K is None:
        return
    n = len(x)
    assert K.dtype == x.dtype
    assert K.shape == (n, n)
    assert np.isfinite(K).all()
    assert bits(K) == bits(K.T)
    assert bits(kernel.diag(x)) == bits(np.diagonal(K))
    assert bits(kernel(some.laid_out(x, layout))) == bits(K)
    assert bits(kernel(x, n_threads=2)) == bits(K)
    cut = min(cut, n)
    assert bits(kernel(x[:cut], x[cut:])) == bits(K[:cut, cut:])
    assert bits(kernel(x[cut:], x[:cut])) == bits(K[cut:, :cut])


@fuzzed(
    250, some.ROWS, st.data(), st.integers(1, 4), st.sampled_from(some.LAYOUTS), st.integers(0, 5)
)
def test_rows(kernel, data, d, layout, cut):
    holds_for_rows(kernel, data.draw(some.inputs((d,))), layout, cut)


@fuzzed(
    120, st.sampled_from([1, 2]), st.data(), st.booleans(), st.sampled_from(some.LAYOUTS),
    st.integers(0, 5),
)  # fmt: skip
def test_signals_and_images(axes, data, ntk, layout, cut):
    """An entry of these depends on its two inputs and on which is first."""
    net = data.draw(some.networks(axes))
    shape = tuple(data.draw(st.integers(1, 4)) for _ in range(axes + 1))
    x = data.draw(some.inputs(shape))
    kernel = attempt(lambda: some.of_network(net, ntk))
    K = None if kernel is None else attempt(lambda: kernel(x))
    if K is None:
        return
    assert np.isfinite(K).all()
    assert bits(K) == bits(K.T)
    assert bits(kernel.diag(x)) == bits(np.diagonal(K))
    assert bits(kernel(some.laid_out(x, layout))) == bits(K)
    assert bits(kernel(x, n_threads=2)) == bits(K)
    cut = min(cut, len(x))
    assert bits(kernel(x[:cut])) == bits(K[:cut, :cut])
    assert bits(kernel(x[cut:])) == bits(K[cut:, cut:])


@fuzzed(120, st.sampled_from([0, 0, 1, 2]), st.data(), st.booleans())
def test_single_precision_is_double_precision_rounded_and_semidefinite(axes, data, ntk):
    """The bound counts roundings: of sums over all coordinates, and some 32 for each layer.

    Duals of these activations carry relative errors of variances on, and errors of correlations
    shrink (their slopes are at most 1 in the correlation), so that no layer multiplies errors. What
    a residual connection adds has its own layers. Correlations are relative to the diagonal.
    """
    net = data.draw(some.networks(axes, tame=True))
    shape = tuple(data.draw(st.integers(1, 4)) for _ in range(axes + 1))
    x = data.draw(some.inputs(shape, np.float32, tame=True))
    kernel = attempt(lambda: some.of_network(net, ntk))
    found = None if kernel is None else attempt(lambda: (kernel(x), kernel(x.astype(float))))
    if found is None:
        return
    K32, K = found
    size = np.sqrt(np.diagonal(K))
    assume((size == 0).all() or size[size > 0].min() > 1e-15)
    layers = str(net.program).count("\n") + 1
    counted = 32 * layers + int(np.prod(shape))
    scale = np.outer(size, size)
    assert (np.abs(K32 - K) <= counted * 2.0**-24 * scale).all()
    there = size > 0
    correlations = K[np.ix_(there, there)] / scale[np.ix_(there, there)]
    if there.any():
        least = np.linalg.eigvalsh(correlations).min()
        assert least >= -len(x) * counted * 2.0**-53


@fuzzed(100, st.sampled_from([0, 1, 2]), st.data())
def test_networks_have_kernels_or_say_why_not(axes, data):
    net = data.draw(some.networks(axes))
    for ntk in (False, True):
        kernel = attempt(lambda ntk=ntk: some.of_network(net, ntk))
        assert kernel is None or kernel == some.of_network(net.replace(), ntk)
    if (program := attempt(lambda: net.program)) is not None:
        assert str(program)


@fuzzed(60, some.networks(), st.floats(-1, 1), st.sampled_from([None, 1e-3, 1.0, 1e3]))
def test_profiles_are_entries_of_two_inputs_on_a_circle(net, u, radius):
    kernel = attempt(lambda: net.nngp)
    value = None if kernel is None else attempt(lambda: kernel.profile(u, radius=radius, dim=2))
    if value is None:
        return
    assert np.isfinite(value)
    assert value <= attempt(lambda: kernel.profile(1.0, radius=radius, dim=2)) * (1 + 1e-12)


@fuzzed(60, some.ROWS, st.data())
def test_operators_multiply_as_matrices_do(kernel, data):
    x = data.draw(some.inputs((3,)))
    K = attempt(lambda: kernel(x))
    if K is None or not len(x):
        return
    operator = attempt(lambda: kc.GramOperator(kernel, x, max_memory=200.0))
    assert bits(operator.toarray()) == bits(K)
    assert bits(operator.diagonal()) == bits(np.diagonal(K))
    assert bits(operator.columns([len(x) - 1])) == bits(K[:, -1:])
