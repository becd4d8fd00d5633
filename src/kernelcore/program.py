"""A network lowered to a short program: a value that interpreters walk, without any arithmetic.

Nodes    Input, Weights, Apply, Pool, Readout, and Save, Swap, Merge around a residual branch
Forms    what a function that is applied tells an engine about itself
Op       one compiled operation and its constants

Whoever walks a program is an interpreter: a class with one method per kind of node, named after
it. Rows, images, cyclic signals and series on the sphere are interpreters, and know nodes and forms
but no class of layers. Nodes keep the layer they come from for error messages alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar

from ._types import Self, field
from ._value import Record, Value

# ---- operations


class Code(IntEnum):
    """Operations; the numbers are those of ``program.h``."""

    TRAINED = 0
    BIAS = 1
    SAVE = 2
    SWAP = 3
    MERGE = 4
    RELU = 5
    LEAKY_RELU = 6
    STEP = 7
    SIGN = 8
    RECTIFIED_POWER = 9
    ERF = 10
    GELU = 11
    SINE = 12
    EXPONENTIAL = 13
    BUMP = 14
    POLYNOMIAL = 15
    SERIES = 16
    EXPONENTIAL_OF = 17
    LAPLACIAN = 18
    MATERN = 19
    CAUCHY = 20
    ONE_KINK = 21
    EXPONENTIAL_PROFILE = 22
    POWER_PROFILE = 23
    CHEBYSHEV_PROFILE = 24
    COSINE = 25
    POWER_OF = 26
    CHEBYSHEV_OF = 27
    BENT = 28
    RAMP = 29
    MATERN_OF = 30


class Op(Record):
    """One operation with its constants."""

    code: Code
    n: int = 0
    a: float = 0.0
    b: float = 0.0
    c: float = 0.0
    coefficients: tuple[float, ...] = ()


# ---- forms


class Form(Record):
    """Base of the forms: what a function makes of a pair of inputs, as engines can compute it.

    ``fuses`` states that the operation of the form adds ``add K`` to T by itself (``program.h``),
    so that a trained layer without bias that follows needs no pass of its own.
    """

    fuses: ClassVar[bool] = True


class Homogeneous(Form):
    """A homogeneous function: ``E[phi phi] = gain (sd1 sd2)^degree p(u)``, p(1) = 1; the op is p.

    ``slope`` is ``E[phi'(z)^2]`` for a standard normal z. ``kappa1`` states that p is Cho and
    Saul's of order 1, for which engines have a separate path.
    """

    op: Op
    degree: int
    gain: float
    slope: float
    kappa1: bool = False


class Closed(Form):
    """A closed form: one operation of the variances and the correlation gives both duals."""

    op: Op


class Powers(Form):
    """The power ``(scale K + offset)^degree``: it is no expectation and has no derivative here."""

    op: Op
    degree: int
    scale: float
    offset: float


class Expansion(Form):
    """A finite sum of powers of x, or of Hermite polynomials He_n(x)."""

    coefficients: tuple[float, ...]
    hermite: bool = False


class Sampled(Form):
    """Any function, whose Hermite coefficients are found by quadrature."""

    fn: Callable[[Any], Any]


class Unit(Form):
    """Division by ``sqrt(K11 K22)``."""


class Unchanged(Form):
    """The identity."""


class OfSum(Form):
    """An operation on a sum over coordinates, not on a correlation; it is 1 on the diagonal."""

    fuses: ClassVar[bool] = False
    op: Op


# ---- nodes


class Window(Record):
    """Sizes, strides and padding of windows of positions, one entry per axis.

    ``every`` states that there is one entry, which counts for any number of axes. Padding is that
    of ``Conv``, or "behind": ``size // stride - 1`` windows, with zeros behind the last position.
    """

    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str
    every: bool = False

    @property
    def axes(self) -> int:
        return 0 if self.every else len(self.size)

    def __str__(self) -> str:
        size, stride = (" x ".join(map(str, x)) for x in (self.size, self.stride))
        return f"window {size}, stride {stride}, {self.padding}"


class Node(Record):
    """Base of all nodes; ``kind`` names the method of an interpreter that takes it."""

    kind: ClassVar[str]
    if TYPE_CHECKING:  # an attribute, but no parameter: nodes of different layers may be equal
        layer: Any = field(default=None, kw_only=True)

    def __init__(self, *args: Any, layer: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        object.__setattr__(self, "layer", layer)

    def _rebuilt(self, parameters: dict[str, object]) -> Self:
        return type(self)(**parameters, layer=self.layer)

    @property
    def axes(self) -> int | None:
        """The number of axes of positions the node is for: 0 for any, None without positions."""
        return None

    def describe(self) -> str:
        """Say what the node does, for a person to read."""
        return ""


class Input(Node):
    """The first node: what is summed over the coordinates, or channels, of two inputs.

    "mean" and "sum" are inner products taken to correlations, "products" are left as they are;
    "squares" and "sizes" sum those of differences, "bumps" log(1 + (scale difference)^2).
    """

    kind = "input"
    of: str = "mean"
    domain: str = "rows"  # or "positions": signals and images; or "cyclic"
    scale: float = 1.0

    def describe(self) -> str:
        return {
            "mean": "<x, x'> / channels",
            "sum": "<x, x'>",
            "products": "<x, x'>, no correlation",
            "squares": "sum of (x - x')^2",
            "sizes": "sum of |x - x'|",
            "bumps": f"sum of log(1 + {self.scale:.6g}^2 (x - x')^2)",
        }[self.of] + {"rows": "", "positions": " at positions", "cyclic": " on a cycle"}[
            self.domain
        ]


class Weights(Node):
    """Weights: ``K <- w_std^2 K + b_std^2``, ``T <- K + w_std^2 T``, of window means if any."""

    kind = "weights"
    w_std: float
    b_std: float
    trained: bool
    window: Window | None = None

    @property
    def axes(self) -> int | None:
        return None if self.window is None else self.window.axes

    def describe(self) -> str:
        text = f"w_std {self.w_std:.6g}, b_std {self.b_std:.6g}"
        text += ", trained" if self.trained else ", frozen"
        return text if self.window is None else f"{text}, {self.window}"


class Apply(Node):
    """A function: an activation, a map, or what a kernel makes of a sum.

    The function has ``_form()``, for engines, and ``_series(q)``, for the sphere: itself as a
    series in the correlation of two inputs of variance q.
    """

    kind = "apply"
    function: Any

    @functools.cached_property
    def form(self) -> Form:
        form = self.function._form()
        assert isinstance(form, Form)
        return form

    def describe(self) -> str:
        return repr(self.function)


class Pool(Node):
    """Sums over windows, in which each position is weighted by its tap, along every axis."""

    kind = "pool"
    window: Window
    taps: tuple[tuple[float, ...], ...]

    @property
    def axes(self) -> int | None:
        return self.window.axes

    def describe(self) -> str:
        mean = all(set(taps) == {1 / len(taps)} for taps in self.taps)
        return f"{'mean' if mean else 'weighted sum'}, {self.window}"


class Readout(Node):
    """The end of positions: the mean or the sum over all pairs of them, or over equal ones."""

    kind = "readout"
    equal: bool
    total: bool = False

    @property
    def axes(self) -> int | None:
        return 0

    def describe(self) -> str:
        how = "sum" if self.total else "mean"
        return f"{how} over {'equal positions' if self.equal else 'all pairs of positions'}"


class Save(Node):
    """The start of a branch: K and T are put aside."""

    kind = "save"


class Swap(Node):
    """The end of the branch and the start of the shortcut, from what was put aside."""

    kind = "swap"


class Merge(Node):
    """The end of the shortcut: K and T of both sides are added."""

    kind = "merge"
    plain: bool = True  # whether the shortcut has no layers


# ---- programs


class Program(Value):
    """A tuple of nodes, of which the first is an ``Input``; immutable, hashed and compared by them.

    ``print`` shows a table of the nodes.

    Examples
    --------
    >>> import kernelcore as kc
    >>> print(kc.presets.mlp(1).program)
    program of rows
    0  input    <x, x'> / channels
    1  weights  w_std 1, b_std 0, trained
    2  apply    Relu()
    3  weights  w_std 1.41421, b_std 0, trained
    """

    _parameters = ("nodes",)

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = tuple(nodes)
        self._hash = hash(self.nodes)

    def __reduce__(self) -> tuple[type[Program], tuple[tuple[Node, ...]]]:
        return Program, (self.nodes,)  # a hash is of one process

    def __hash__(self) -> int:
        return self._hash

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, index: int) -> Node:
        return self.nodes[index]

    def __str__(self) -> str:
        if self.input.domain == "positions" and self.decisive is not None:
            kind = {0: "signals or images", 1: "signals", 2: "images"}[self.decisive.axes or 0]
        else:
            kind = {"rows": "rows", "cyclic": "cyclic signals"}[self.input.domain]
        width, depth, lines = len(str(len(self) - 1)), 0, [f"program of {kind}"]
        for k, node in enumerate(self):
            depth -= isinstance(node, (Swap, Merge))
            line = f"{k:{width}}  {'  ' * depth}{node.kind:7}  {node.describe()}"
            lines.append(line.rstrip())
            depth += isinstance(node, (Save, Swap))
        return "\n".join(lines)

    @property
    def input(self) -> Input:
        """The first node."""
        first = self.nodes[0]
        assert isinstance(first, Input)
        return first

    @functools.cached_property
    def decisive(self) -> Node | None:
        """The node that decides the axes of inputs: the first with windows, or with positions."""
        spatial = [node for node in self if node.axes is not None]
        return next((node for node in spatial if node.axes), spatial[0] if spatial else None)

    def run(self, interpreter: Any) -> Any:
        """Hand every node to the interpreter's method of that kind.

        What a method returns, if anything, ends the walk and is returned.
        """
        for node in self.nodes:
            stop = getattr(interpreter, node.kind)(node)
            if stop is not None:
                return stop
        return None

    @property
    def trained(self) -> list[int]:
        """The places of the trained weights."""
        return [k for k, node in enumerate(self) if isinstance(node, Weights) and node.trained]

    def training_only(self, place: int) -> Program:
        """Return this program with every trained ``Weights`` but the one at ``place`` frozen."""
        return Program(
            node.replace(trained=False) if isinstance(node, Weights) and k != place else node
            for k, node in enumerate(self)
        )
