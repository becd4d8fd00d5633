"""Kernels and arrays by name, for the command line: ``cntk:depth=21,gap``, ``train.npz:X``."""

from __future__ import annotations

import inspect
import os
from typing import Any, NoReturn

import numpy as np

from .. import _check, _files, kernels, presets
from ..architecture import Sequential
from ..kernels import Kernel
from .source import opened

CLASSES = {
    name.lower(): getattr(kernels, name)
    for name in ("ArcCosine", "Cauchy", "Gaussian", "Laplacian", "Matern", "Polynomial")
}
NETWORKS = {name: getattr(presets, name) for name in ("ckn", "cntk", "mlp", "myrtle")}


def _value(text: str) -> Any:
    """Return a number or a truth value, where the text is one, and else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text.lower(), text)


def kernel(text: str) -> Kernel:
    """Return the kernel that a text describes: ``NAME[:argument,...]``.

    A name is that of a preset, whose NTK is meant unless ``nngp`` is an argument, or that of a
    kernel. Arguments are ``name=value``, or a name that is true.
    """
    name, _, rest = text.partition(":")
    known = {**NETWORKS, **CLASSES}
    _check.must(name in known, "--kernel", f"begin with one of {', '.join(known)}", repr(text))
    options: dict[str, Any] = {}
    for word in filter(None, rest.split(",")):
        key, equals, value = word.partition("=")
        options[key] = _value(value) if equals else True
    made_by = NETWORKS.get(name) or CLASSES[name].__init__
    takes = [key for key in inspect.signature(made_by).parameters if key != "self"]
    takes += ["nngp"] * (name in NETWORKS)
    for key in options:
        _check.must(
            key in takes, "--kernel", f"have arguments among {', '.join(takes)}", repr(text)
        )
    signature = inspect.signature(made_by).parameters.values()
    needs = [p.name for p in signature if p.default is p.empty and p.name in takes]
    for key in needs:
        _check.must(key in options, "--kernel", f"have {key}=, as in {name}:{key}=2", repr(text))
    nngp = name in NETWORKS and options.pop("nngp", False)
    made = known[name](**options)
    if isinstance(made, Sequential):
        return made.nngp if nngp else made.ntk
    return made


def array(text: str, name: str) -> Any:
    """Return the array of a file: ``FILE.npy``, mapped; ``FILE.npz[:KEY]``; a folder of Zarr."""
    path, _, key = text.rpartition(".npz:")
    if path:
        path += ".npz"
    else:
        path, key = text, ""
    if not os.path.exists(path):
        raise FileNotFoundError(f"{name} must be a file or a folder: {path} is none")
    if os.path.isdir(path):
        _check.installed("zarr", f"{name}, a folder,")
        return opened(path, name)
    try:
        if not path.endswith(".npz"):
            return np.lib.format.open_memmap(path, mode="r")
        names = _files.names(path)
    except _files.DAMAGE as error:
        _unread(name, path, error)
    if not key:
        rule = f"name one of its arrays, as in {path}:{names[0] if names else 'X'}"
        _check.must(len(names) == 1, name, rule, f"{len(names)} arrays: {', '.join(names)}")
    key = key or names[0]
    _check.must(key in names, name, f"name an array of {path}, {', '.join(names)}", repr(key))
    try:
        return _files.of_npz(path, key)
    except MemoryError:
        raise
    except _files.DAMAGE as error:
        _unread(name, path, error)


def _unread(name: str, path: str, error: Exception) -> NoReturn:
    why = str(error) or type(error).__name__
    raise ValueError(f"{name} must be an array of plain numbers or text: {path}: {why}") from None
