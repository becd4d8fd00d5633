"""Random networks, kernels and inputs, most of them sound and some not."""

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import kernelcore as kc

# ---- numbers

STDS = st.sampled_from([1.0, 2**0.5, 0.5, 0.1, 1e-3, 1e3, 1e-30, 1e30, 1e-200, 1e200])
BIASES = st.sampled_from([0.0, 0.0, 0.1, 1.0, 1e-30, 1e30])
SHIFTS = st.sampled_from([0.0, 0.0, 0.0, 0.5, -1.0, 20.0, 1e-300])
FLAGS = st.booleans()
PADDINGS = st.sampled_from(["same", "valid", "circular"])
JUNK = st.one_of(
    st.none(), st.booleans(), st.text(max_size=3), st.integers(-3, 3), st.just(10**400),
    st.floats(allow_nan=True, allow_infinity=True), st.complex_numbers(max_magnitude=2),
    st.just(b"x"), st.lists(st.integers(-2, 2), max_size=3), st.tuples(), st.just(object()),
    st.just({}), st.just(np.float32(0.5)), st.just(np.int8(2)), st.just(np.ones((2, 2))),
    st.just(np.array(1.5)), st.just(np.array(["a"])), st.just(np.sin), st.just(kc.Relu),
    st.just(kc.Relu()), st.just(kc.Gaussian(1.0)), st.just(kc.presets.mlp(1)), st.just(len),
)  # fmt: skip


# ---- layers


def shifted(made, *options):
    return st.builds(made, *options, shift=SHIFTS)


TAME = st.sampled_from([kc.Relu(), kc.LeakyRelu(0.2), kc.Abs(), kc.Erf(), kc.Relu(shift=0.5)])
WILD = st.one_of(
    *(shifted(made) for made in (kc.Relu, kc.Step, kc.Sign, kc.Erf, kc.Gelu, kc.Sin, kc.Cos,
                                 kc.Exp, kc.GaussianBump, kc.Tanh, kc.Sigmoid, kc.Softplus)),
    shifted(kc.LeakyRelu, st.sampled_from([0.0, 1.0, -1.0, 0.3, 1e30])),
    st.builds(kc.RectifiedPower, st.integers(0, 4)), st.builds(kc.Hermite, st.integers(0, 5)),
    st.builds(kc.Monomial, st.integers(0, 4)), st.just(kc.Identity()), st.just(kc.Elu()),
    st.just(kc.Selu()), st.just(kc.Project()), st.just(kc.DotProduct(kc.profiles.Exp(0.8))),
    st.just(kc.DotProduct(kc.profiles.Kappa0())), st.just(kc.DotProduct((0.2, 0.0, 0.5))),
    st.just(kc.DotProduct(kc.profiles.Kappa1())), st.just(kc.Activation(np.cos)),
)  # fmt: skip


def dense(tame):
    if tame:
        return st.builds(kc.Dense, st.floats(0.5, 1.5), st.sampled_from([0.0, 0.3]))
    return st.builds(kc.Dense, STDS, BIASES, trainable=FLAGS)


def conv(axes, tame):
    size = st.tuples(*[st.integers(1, 3)] * axes)
    stds = (st.floats(0.5, 1.5), st.sampled_from([0.0, 0.3])) if tame else (STDS, BIASES)
    return st.builds(
        kc.Conv, size, stride=st.sampled_from([1, 1, 2]), padding=PADDINGS, w_std=stds[0],
        b_std=stds[1],
    )  # fmt: skip


def blocks(axes, tame):
    """Weights and then a function, or a residual connection; also of a wrong shape or order."""
    weights = dense(tame) if not axes else st.one_of(conv(axes, tame), dense(tame))
    act = TAME if tame else st.one_of(TAME, WILD)
    plain = st.tuples(weights, act)
    around = st.builds(lambda a, w: (w, kc.Residual(a, w), a), act, weights)
    pool = [st.builds(lambda s: (kc.AvgPool((s,) * axes),), st.integers(1, 3))] if axes else []
    return st.one_of(plain, plain, around, *pool)


@st.composite
def networks(draw, axes=0, tame=False):
    """Networks on rows (no axes), signals or images; lengths up to 3 blocks."""
    layers = [kc.Input(sum=True)] if draw(st.integers(0, 3)) == 0 else []
    for block in draw(st.lists(blocks(axes, tame), min_size=1, max_size=3)):
        layers += block
    if axes:
        layers.append(draw(st.sampled_from([kc.GlobalAvgPool(), kc.Flatten()])))
    return kc.Sequential(*layers, draw(dense(tame)))


def of_network(net, ntk):
    return net.ntk if ntk else net.nngp


def sound(net, ntk):
    """A kernel of a network that has one; ``test_networks`` looks at what is said of the others."""
    try:
        return of_network(net, ntk)
    except ValueError:
        reject()


POSITIVE = st.sampled_from([1.0, 0.3, 5.0, 1e-3, 1e3, 1e-30, 1e30, 1e-200, 1e200])
CLASSICAL = st.one_of(
    st.builds(kc.Gaussian, POSITIVE), st.builds(kc.Laplacian, POSITIVE, st.sampled_from([1, 2])),
    st.builds(kc.Cauchy, POSITIVE), st.builds(kc.ArcCosine, st.integers(0, 3)),
    st.builds(kc.Matern, st.sampled_from([0.5, 1.5, 2.5, 1.3, 20.0]), POSITIVE),
    st.builds(kc.Polynomial, st.integers(1, 4), POSITIVE, st.sampled_from([0.0, 1.0, 1e30])),
)  # fmt: skip
BASE = st.one_of(CLASSICAL, st.builds(sound, networks(), FLAGS))
ROWS = st.one_of(
    BASE, BASE,
    st.builds(lambda a, b: a + b, BASE, BASE), st.builds(lambda a, b: a * b, BASE, BASE),
    st.builds(lambda a, s: s * a, BASE, POSITIVE),
)  # fmt: skip


# ---- inputs

SPECIAL = {
    np.float64: [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-310, 1e-160, 1e-30, 1e30, -1e30, 1e160, 1e300],
    np.float32: [0.0, -0.0, 1.0, -1.0, 1e-45, 1e-40, 1e-20, 1e-10, 1e10, -1e10, 1e20, 3e38],
}
LAYOUTS = ("C", "F", "strided", "backwards", "read-only", "swapped", "unaligned")


@st.composite
def inputs(draw, shape, dtype=None, tame=False):
    """Arrays of inputs with special values, copies of each other, and constant ones."""
    dtype = draw(st.sampled_from([np.float32, np.float64])) if dtype is None else dtype
    n = draw(st.integers(0 if not tame else 2, 5))
    plain = st.floats(-2, 2, width=32)
    values = plain if tame else st.one_of(plain, plain, st.sampled_from(SPECIAL[dtype]))
    x = draw(arrays.arrays(dtype, (n, *shape), elements=values.map(dtype)))
    for k in range(1, n):
        kind = draw(st.sampled_from(["own", "own", "copy", "opposite", "constant", "zero"]))
        if kind == "copy":
            x[k] = x[0]
        elif kind == "opposite":
            x[k] = -x[0]
        elif kind == "constant":
            x[k] = x[k].ravel()[:1].sum() if x[k].size else 0
        elif kind == "zero":
            x[k] = 0
    return x


def laid_out(x, layout):
    """The same values, elsewhere in memory."""
    if layout == "F":
        return np.asfortranarray(x)
    if layout == "strided":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if layout == "backwards":
        return x[::-1].copy()[::-1]
    if layout == "swapped":
        return x.astype(x.dtype.newbyteorder())
    if layout == "unaligned":
        room = np.empty(x.nbytes + 1, np.uint8)[1:]
        room[:] = np.frombuffer(x.tobytes(), np.uint8)
        return room.view(x.dtype).reshape(x.shape)
    y = x.copy()
    y.flags.writeable = layout != "read-only"
    return y
