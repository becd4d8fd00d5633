"""The tangent kernel of anybody's PyTorch module, as a kernel like any other.

A linear layer with inputs A and derivatives D by its outputs has the term ``(A A' + 1) o (D D')``,
the 1 for its bias, and no Jacobian. All other parameters have theirs, input by input, for as many
inputs at a time as memory allows.
"""

from __future__ import annotations

import importlib
import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._types import Array, ArrayLike
from ..architecture import Sequential
from ..engine import Inputs, backend_of
from ..layers import Conv, Dense, GlobalAvgPool
from ._empirical import OfTraces, Trace, between, squares, stacked

TRIED = 3
"""The inputs with which it is tried whether a layer is as linear layers are."""
BATCH = 256
"""The inputs of a pass, at most."""
NUMBERS = 2**24
"""The numbers of a Jacobian that a pass may make."""
TRAINING = ("_DropoutNd", "_BatchNorm", "_InstanceNorm", "RReLU")
"""Classes whose modules mix inputs, or draw numbers, while they are in training mode."""
OF_AXES = {
    2: Sequential(Dense()),
    3: Sequential(Conv((1,)), GlobalAvgPool(), Dense()),
    4: Sequential(Conv(1), GlobalAvgPool(), Dense()),
}
"""Networks that take inputs of as many axes, for the checks of inputs."""


def inspected(module: Any) -> tuple[dict[str, Any], str]:
    """Return the parameters that are trained, by name, and their dtype, if all is as it must be."""
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    _check.must(bool(trained), "module", "have parameters that require gradients", "none")
    held = [*module.parameters(), *module.buffers()]
    away = next((str(p.device) for p in held if p.device.type != "cpu"), None)
    _check.must(
        away is None, "module", "be in the memory of the host",
        f"parameters on {away}; call module.cpu()",
    )  # fmt: skip
    dtypes = sorted({_check.dtype_name(p.dtype) for p in module.parameters()})
    fine = len(dtypes) == 1 and dtypes[0] in ("float32", "float64")
    rule = "have parameters of one dtype, float32 or float64"
    _check.must(fine, "module", rule, f"{' and '.join(dtypes)}; call module.double()")
    for part in module.modules():
        mixes = any(kind.__name__ in TRAINING for kind in type(part).__mro__)
        name = type(part).__name__
        _check.must(
            not (part.training and mixes), "module", "be in evaluation mode",
            f"{name} in training mode; call module.eval()",
        )  # fmt: skip
    return trained, dtypes[0]


def outputs_of(shape: tuple[int, ...], n: int) -> int:
    """Return the number of outputs of a module that returns an array of a shape."""
    fine = len(shape) in (1, 2) and shape[0] == n and 0 not in shape[1:]
    _check.must(
        fine, "module", f"return one output, or a row of them, for each of {n} inputs",
        f"shape {shape}",
    )  # fmt: skip
    return shape[1] if len(shape) == 2 else 1


def axes_of(X: Any) -> int:
    """Return the number of axes of inputs, which are rows, signals or images."""
    axes = _check.real_array(X, "X").ndim
    _check.must(axes in OF_AXES, "X", "have 2, 3 or 4 axes", axes)
    return axes


class Plan(NamedTuple):
    """Which parameters are those of linear layers, and which have Jacobians."""

    linear: list[str]  # names of modules
    others: list[str]  # names of parameters
    outputs: int
    numbers: int  # that an input leaves behind


class TorchNtk(OfTraces):
    """The tangent kernel of a PyTorch module at its parameters: ``<df(x)/dtheta, df(x')/dtheta>``.

    Parameters
    ----------
    module : torch.nn.Module
        In evaluation mode where it has dropout or batch normalisation, on the CPU, of one dtype. It
        maps arrays of shape (n, ...) to (n,) or (n, k). Where it has k outputs, the kernel is the
        mean of their k kernels, as that of ``EmpiricalNtk``. Parameters that do not require
        gradients do not count.

    Notes
    -----
    Inputs are those of the module, as arrays of NumPy with 2, 3 or 4 axes: images have their
    channels first. All is computed in the dtype of the parameters, by PyTorch and its threads, and
    returned in that of the inputs. Solvers, ``GramOperator``, ``spectrum.gram`` and estimators take
    it as any other kernel. It needs the extra ``kernelcore[torch]``.

    For linear layers of rows that are called once, no Jacobian is made; for other parameters a part
    of the memory budget holds some inputs' at a time, and they are computed again for each block of
    the other side.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> import torch  # doctest: +SKIP
    >>> net = torch.nn.Sequential(  # doctest: +SKIP
    ...     torch.nn.Linear(3, 100), torch.nn.ReLU(), torch.nn.Linear(100, 1)
    ... )
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> model = kc.KernelRegressor(kc.networks.TorchNtk(net)).fit(X, X[:, 0])  # doctest: +SKIP
    """

    _parameters = ("module",)
    module: Any

    def __init__(self, module: Any) -> None:
        _check.installed("torch", "kernelcore.networks.TorchNtk")
        _check.an_instance(module, _torch().nn.Module, "module", "a torch.nn.Module")
        inspected(module)
        self.module = module

    def __repr__(self) -> str:
        return f"TorchNtk({type(self.module).__name__})"

    @property
    def _images(self) -> bool:
        return True  # or rows: a module says nothing of the shape of its inputs

    def _open(self, X: Any, Y: Any, n_threads: int) -> Inputs:
        inspected(self.module)
        points = backend_of(X, Y).open(OF_AXES[axes_of(X)].program, X, Y, n_threads)
        for a, name in ((points.x, "X"), (points.y, "Y")):
            if a is not None:
                _check.entries(a, name)
        return points

    def _accepts(self, points: Inputs) -> None:
        inspected(self.module)

    # ---- what inputs leave behind

    def _begin(self, x: Array) -> None:
        if "_plan" not in self.__dict__:
            self.__dict__["_plan"] = self._planned(x[:TRIED])

    def _numbers(self) -> int:
        return max(1, self._plan.numbers)

    @property
    def _plan(self) -> Plan:
        plan: Plan = self.__dict__["_plan"]
        return plan

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_plan"}

    def _tensor(self, x: Array) -> Any:
        torch, dtype = _torch(), inspected(self.module)[1]
        return torch.tensor(x, dtype=getattr(torch, dtype))

    def _planned(self, x: Array) -> Plan:
        """Try linear layers: the norms that they leave behind must be those of the gradients."""
        torch, trained = _torch(), inspected(self.module)[0]
        found = self._linear(trained)
        X = self._tensor(x)
        traces, k = self._passed(found, X)
        linear = []
        for name in found:
            trace = traces.get(name)
            if trace is None or len(trace.c) != len(x):
                continue
            own = [p for key, p in trained.items() if key.rpartition(".")[0] == name]
            want = np.zeros(len(x))
            for i in range(len(x)):
                f = self.module(X[i : i + 1]).reshape(-1)
                for j in range(k):
                    slopes = torch.autograd.grad(f[j], own, retain_graph=True, allow_unused=True)
                    want[i] += sum(float((g**2).sum()) for g in slopes if g is not None) / k
            near = math.sqrt(np.finfo(trace.c.dtype).eps)
            if np.allclose(squares([trace]), want, rtol=near, atol=near * want.max()):
                linear.append(name)
        others = [key for key in trained if key.rpartition(".")[0] not in linear]
        numbers = k * sum(trained[key].numel() for key in others)
        numbers += sum(traces[n].c.shape[1] + (traces[n].g.shape[1] or 0) for n in linear)  # type: ignore[union-attr]
        return Plan(linear, others, k, numbers)

    def _linear(self, trained: dict[str, Any]) -> list[str]:
        """Return the names of linear layers whose parameters are all trained, and nobody else's."""
        torch = _torch()
        times = Counter(
            id(p) for part in self.module.modules() for p in part.parameters(recurse=False)
        )
        names = []
        for name, part in self.module.named_modules():
            own = dict(part.named_parameters(recurse=False))
            alone = all(times[id(p)] == 1 for p in own.values())
            prefix = f"{name}." if name else ""
            if type(part) is torch.nn.Linear and alone and name:
                if all(prefix + key in trained for key in own):
                    names.append(name)
        return names

    def _passed(self, names: list[str], X: Any) -> tuple[dict[str, Trace], int]:
        """Return the traces of linear layers that are called once, with rows, and k."""
        torch = _torch()
        parts, handles = dict(self.module.named_modules()), []
        calls: dict[str, list[Any]] = {}
        for name in names:

            def told(part: Any, given: Any, out: Any, name: str = name) -> Any:
                calls.setdefault(name, []).append((given[0].detach(), out))
                return out.clone()  # what comes next may overwrite its input

            handles.append(parts[name].register_forward_hook(told))
        try:
            with torch.enable_grad():
                f = self.module(X)
        finally:
            for handle in handles:
                handle.remove()
        k = outputs_of(tuple(f.shape), len(X))
        once = {n: c[0] for n, c in calls.items() if len(c) == 1 and c[0][0].ndim == 2}
        slopes: dict[str, list[Any]] = {name: [] for name in once}
        wanted = [out for _, out in once.values()]
        for column in f.reshape(len(X), k).T if wanted else ():
            found = torch.autograd.grad(
                column.sum() / math.sqrt(k), wanted, retain_graph=True, allow_unused=True
            )
            for name, g in zip(once, found, strict=True):
                slopes[name].append(torch.zeros_like(once[name][1]) if g is None else g)
        traces = {}
        for name, (a, _) in once.items():
            shift = 0.0 if parts[name].bias is None else 1.0
            g = np.concatenate([each.numpy() for each in slopes[name]], axis=1)
            traces[name] = Trace(a.numpy(), g, 1, 1.0, shift)
        return traces, k

    def _jacobian(self, X: Any) -> Trace:
        """Return the derivatives of each input by all parameters without a term of their own."""
        torch = _torch()
        plan = self._plan
        every = dict(self.module.named_parameters())
        own = {name: every[name].detach() for name in plan.others}

        def one(parameters: Any, x: Any) -> Any:
            return torch.func.functional_call(self.module, parameters, (x[None],)).reshape(-1)

        each = torch.func.vmap(torch.func.jacrev(one), in_dims=(None, 0), randomness="error")
        with torch.no_grad():
            found = each(own, X)
        flat = [found[name].reshape(len(X), -1).numpy() for name in plan.others]
        c = np.concatenate(flat, axis=1)
        c /= c.dtype.type(math.sqrt(plan.outputs))
        return Trace(c, None, 1, 1.0, 0.0)

    def _left(self, x: Array) -> list[Trace]:
        plan = self._plan
        jacobian = plan.outputs * sum(
            p.numel() for name, p in self.module.named_parameters() if name in set(plan.others)
        )
        rows = max(1, min(BATCH, NUMBERS // max(1, jacobian)))
        parts = []
        for start in range(0, len(x), rows):
            X = self._tensor(x[start : start + rows])
            traces = self._passed(plan.linear, X)[0]
            part = [traces[name] for name in plan.linear]
            parts.append(part + ([self._jacobian(X)] if plan.others else []))
        return [stacked(each) for each in zip(*parts, strict=True)]

    def _between(self, a: list[Trace], b: list[Trace]) -> Array:
        return between(a, b)

    def _squares(self, a: list[Trace]) -> Array:
        return squares(a)


def _torch() -> Any:
    return importlib.import_module("torch")


def empirical_ntk(module: Any, X: ArrayLike, Y: ArrayLike | None = None) -> Array:
    """Return the tangent kernel of a PyTorch module: ``TorchNtk(module)(X, Y)``, of shape (n, m).

    Parameters
    ----------
    module : torch.nn.Module
        See ``TorchNtk``.
    X, Y : arrays
        Inputs of the module; Y is X by default.

    Returns
    -------
    array of shape (n, m), of the dtype of X
        The mean over outputs of ``J J'``.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelcore as kc
    >>> import torch  # doctest: +SKIP
    >>> module = torch.nn.Linear(3, 1)  # doctest: +SKIP
    >>> kc.networks.empirical_ntk(module, np.eye(3))  # doctest: +SKIP
    array([[2., 1., 1.],
           [1., 2., 1.],
           [1., 1., 2.]])
    """
    return TorchNtk(module)(X, Y)
