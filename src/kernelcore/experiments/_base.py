"""What experiments share: settings, results, claims, and the cells that a run is cut into.

::

    Settings ──▶ run ──▶ Cells: one file per part, so that a killed run goes on ──▶ Result, a file
                                                                                      │
                          plot: Pictures ◀── claims, tables, paragraph ◀──────────────┘

Nothing here or in the modules of experiments knows of HTML, and only ``plot`` of Matplotlib.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .. import _check, _files
from .._files import DAMAGE, PLAIN
from .._types import Array
from .._version import __version__

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.figure import Figure

Key = tuple[str | int | float, ...]
Progress = Callable[[float], None]
"""Called with the fraction done, from 0 to 1."""


# ---- settings


@dataclass(frozen=True)
class Settings:
    """Plain numbers, strings, and tuples of them; every one has a default.

    A value becomes what its default is: 1 where that is a float is 1.0, a list a tuple. Equal
    settings therefore have equal keys, however they were written.

    Parameters
    ----------
    seed : int, default 0
        Of whatever is drawn.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from kernelcore.experiments import Settings
    >>> @dataclass(frozen=True)
    ... class Mine(Settings):
    ...     sizes: tuple[int, ...] = (10, 20)
    >>> Mine(sizes=[30])
    Mine(seed=0, sizes=(30,))
    """

    seed: int = 0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = _check.setting(getattr(self, one.name), one.default, one.name)
            object.__setattr__(self, one.name, value)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def changed(self, texts: Mapping[str, str]) -> Self:
        """Return a copy with settings that a command line gives as text, such as ``n=100``."""
        known = {one.name: one.default for one in fields(self)}
        for name in texts:
            got = f"{name!r}; there are {', '.join(known)}"
            _check.must(name in known, "--set", "name a setting", got)
        values = {
            name: _check.setting_text(text, known[name], name) for name, text in texts.items()
        }
        return replace(self, **values)

    def key(self, name: str) -> str:
        """Return what a cache of an experiment is named by: name, settings and version alone."""
        return key_of(name, self.as_dict(), __version__)


def key_of(name: str, settings: Mapping[str, Any], version: str) -> str:
    text = json.dumps([name, settings, version], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


# ---- files of arrays

MOST = 2**30
"""Bytes that the arrays of one file may have: what claims more is no file of ours."""
NAME = re.compile(r"[\w.-]{1,100}")


def _arrays(values: Mapping[str, Any]) -> dict[str, Array]:
    """Return plain C-contiguous arrays, sorted by name: as they come back from a file."""
    found = {}
    for name in sorted(values):
        _check.must(bool(NAME.fullmatch(name)), "names of arrays", "be plain words", repr(name))
        a = np.array(values[name], order="C")
        _check.must(a.dtype.kind in PLAIN, name, "hold numbers or text", f"dtype {a.dtype}")
        found[name] = a
    return found


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write a file ``.npz`` at once or not at all; equal arrays give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name in sorted(arrays):
            entry = io.BytesIO()
            np.lib.format.write_array(entry, arrays[name], allow_pickle=False)
            # A ZipInfo of its own has the date 1980-01-01, whenever it is written.
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, entry.getvalue())
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with part.open("wb") as out:
            out.write(buffer.getvalue())
            out.flush()
            os.fsync(out.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_arrays(path: Path, what: str) -> dict[str, Array]:
    """Read what ``write_arrays`` wrote; ``what`` names it for a message.

    Nothing is unpickled, and no array is made that is larger than what the file holds.
    """
    large = False
    try:
        with zipfile.ZipFile(path) as file:
            entries = file.infolist()
            large = sum(entry.file_size for entry in entries) > MOST
            if not large:
                read = ((entry.filename, file.read(entry)) for entry in entries)
                return {name.removesuffix(".npy"): _files.array(data) for name, data in read}
    except FileNotFoundError:
        raise
    except DAMAGE:
        pass
    got = "more than a result may hold" if large else "a damaged or truncated file"
    _check.damaged(path, what, got)


# ---- cells


class Cells:
    """Parts of a run by key: computed once, and kept in a folder where there is one.

    Parameters
    ----------
    folder : path, optional
        One file per cell, written whole or not at all; None keeps them in memory.

    Examples
    --------
    >>> from kernelcore.experiments import Cells
    >>> cells = Cells()
    >>> cells.get(("draw", 0), lambda: {"mean": 1.5})
    {'mean': array(1.5)}
    >>> cells.get(("draw", 0), lambda: 1 / 0)  # it is there
    {'mean': array(1.5)}
    """

    def __init__(self, folder: str | PathLike[str] | None = None) -> None:
        self.folder = None if folder is None else _check.a_path(folder, "folder")
        self._held: dict[Key, dict[str, Array]] = {}

    def get(self, key: Key, function: Callable[[], Mapping[str, Any]]) -> dict[str, Array]:
        """Return the arrays stored under ``key``, or those that ``function`` now computes."""
        if key not in self._held:
            self._held[key] = self._stored(key, function)
        return {name: a.copy() for name, a in self._held[key].items()}

    def _stored(self, key: Key, function: Callable[[], Mapping[str, Any]]) -> dict[str, Array]:
        if self.folder is None:
            return _arrays(function())
        path = self.folder / _file_of(key)
        with suppress(FileNotFoundError, ValueError):  # a damaged cell is computed again
            return read_arrays(path, "a cell")
        found = _arrays(function())
        write_arrays(path, found)
        return found

    def map(
        self,
        function: Callable[..., Mapping[str, Any]],
        keys: Iterable[Key],
        progress: Progress | None = None,
    ) -> list[dict[str, Array]]:
        """Return ``get(key, lambda: function(*key))`` for each key, reporting the fraction done.

        Keys of one run must differ: put a word first where several functions are mapped.
        """
        keys = list(keys)
        found = []
        for k, key in enumerate(keys):
            found.append(self.get(key, partial(function, *key)))
            if progress is not None:
                progress((k + 1) / len(keys))
        return found


def _file_of(key: Key) -> str:
    """Return a file name that says which cell it is, with a hash that tells it from others."""
    words = re.sub(r"[^\w.]+", "_", "-".join(map(str, key)))[:60]
    return f"{words}-{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]}.npz"


def share(progress: Progress | None, start: float, stop: float) -> Progress | None:
    """Return a progress for the part of a run from ``start`` to ``stop``, fractions of it."""
    if progress is None:
        return None
    return lambda fraction: progress(start + fraction * (stop - start))


# ---- results

HEAD = "kernelcore"
"""The array of a file that says what the others are: bytes of JSON."""
A_RESULT = "a result that kernelcore has saved"


@dataclass(frozen=True, init=False)
class Result:
    """What an experiment found: arrays by name, and the settings and version that gave them.

    It holds no times or dates, so that a run that was killed and went on ends in the same file.

    Parameters
    ----------
    name : str
    settings : Settings or mapping
    arrays : mapping of str to arrays
    version : str
        Of kernelcore; this one by default.

    Examples
    --------
    >>> from kernelcore.experiments import Result, Settings
    >>> result = Result("mine", Settings(seed=3), {"errors": [0.5, 0.25]})
    >>> result["errors"], result.settings
    (array([0.5 , 0.25]), {'seed': 3})
    """

    name: str
    settings: dict[str, Any]
    arrays: dict[str, Array]
    version: str

    def __init__(
        self, name: str, settings: Settings | Mapping[str, Any], arrays: Mapping[str, Any],
        version: str = __version__,
    ) -> None:  # fmt: skip
        plain = settings.as_dict() if isinstance(settings, Settings) else _tuples(dict(settings))
        own = {"name": name, "settings": plain, "arrays": _arrays(arrays), "version": version}
        for key, value in own.items():
            object.__setattr__(self, key, value)

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    @property
    def key(self) -> str:
        """The key of the settings that it was computed with."""
        return key_of(self.name, self.settings, self.version)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write it to a file ``.npz``, whole or not at all, and return its path."""
        file = _check.a_path(path, "path").absolute()
        head = {"name": self.name, "settings": self.settings, "version": self.version}
        text = json.dumps(head, sort_keys=True).encode()
        write_arrays(file, {**self.arrays, HEAD: np.frombuffer(text, np.uint8)})
        return file

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Result:
        """Read a file that ``save`` has written; nothing in it is unpickled."""
        file = _check.a_path(path, "path")
        arrays = read_arrays(file, A_RESULT)
        try:
            head = json.loads(arrays.pop(HEAD).astype(np.uint8).tobytes())
            name, settings, version = head["name"], head["settings"], head["version"]
            fine = isinstance(name, str) and isinstance(settings, dict) and isinstance(version, str)
            found = cls(name, settings, arrays, version) if fine else None
        except (KeyError, TypeError, ValueError, RecursionError):
            found = None
        if found is None:
            _check.damaged(file, A_RESULT, "a file without a head that says what it is")
        return found


def _tuples(value: Any) -> Any:
    """Return what JSON turned into lists as tuples again."""
    if isinstance(value, dict):
        return {name: _tuples(one) for name, one in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value


# ---- what is said and shown of a result


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper, what theory predicts, and what was measured.

    Parameters
    ----------
    text : str
        What is claimed.
    paper : str
        Where: author and year.
    predicted : float or None
        None where an order is claimed rather than a number; ``measured`` is then the number of
        pairs in the wrong order.
    measured, error : float
        The value and its standard error; 0 where nothing is random.
    low, high : float
        The claim holds where ``measured`` is between them. They contain the stated tolerance, or
        two standard errors.

    Examples
    --------
    >>> from kernelcore.experiments import Claim
    >>> slope = Claim.near("the error falls as 1/N", "Nobody 2000", -1.0, -0.98, 0.03)
    >>> slope.low, slope.high, slope.verdict, slope.holds
    (-1.06, -0.94, 0.0, True)
    """

    text: str
    paper: str
    predicted: float | None
    measured: float
    error: float
    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("measured", "error", "low", "high"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if self.predicted is not None:
            object.__setattr__(self, "predicted", float(self.predicted))

    @property
    def verdict(self) -> float:
        """How far ``measured`` lies outside, in units of ``error``; 0 inside, inf for NaN."""
        if self.low <= self.measured <= self.high:
            return 0.0
        outside = max(self.low - self.measured, self.measured - self.high)
        return outside / self.error if self.error > 0 and outside > 0 else math.inf

    @property
    def holds(self) -> bool:
        return self.verdict <= 0

    @classmethod
    def near(
        cls, text: str, paper: str, predicted: float, measured: float, error: float = 0.0,
        tolerance: float = 0.05,
    ) -> Claim:  # fmt: skip
        """Claim a number: within ``tolerance`` of it, relative, or two standard errors."""
        room = max(tolerance * abs(predicted), 2 * error)
        return cls(text, paper, predicted, measured, error, predicted - room, predicted + room)

    @classmethod
    def order(cls, text: str, paper: str, wrong: int) -> Claim:
        """Claim an order, of which ``wrong`` pairs are in the wrong one."""
        return cls(text, paper, None, wrong, 0.0, 0.0, 0.0)

    @classmethod
    def curve(
        cls, text: str, paper: str, predicted: Any, measured: Any, errors: Any,
        tolerance: float = 0.05,
    ) -> Claim:  # fmt: skip
        """Claim a whole curve, by one number: the root mean square of relative deviations.

        At each point the tolerance or two standard errors are allowed, whichever is more, and the
        root mean square of what is allowed is the bound.
        """
        predicted, errors = np.asarray(predicted, float), np.asarray(errors, float)
        apart = np.asarray(measured, float) / predicted - 1
        spread = errors / np.abs(predicted)
        found, error, most = (
            float(np.sqrt(np.mean(np.square(a))))
            for a in (apart, spread, np.maximum(tolerance, 2 * spread))
        )
        return cls(text, paper, 0.0, found, error, 0.0, most)


class Picture(NamedTuple):
    """A figure, a caption (plain text) that says what to see, and a text for who cannot see it.

    Parameters
    ----------
    name : str
        Of its file.
    figure : matplotlib.figure.Figure
    caption, alt : str

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import kernelcore as kc
    >>> kc.experiments.Picture("empty", Figure(), "Nothing to see.", "An empty figure.").name
    'empty'
    """

    name: str
    figure: Figure
    caption: str
    alt: str


class Table(NamedTuple):
    """Rows of plain cells; the first ``labels`` columns are names, the rest numbers.

    Parameters
    ----------
    head : sequence of str
    rows : sequence of sequences of str
    caption : str
    labels : int, default 1

    Examples
    --------
    >>> import kernelcore as kc
    >>> kc.experiments.Table(["n", "error"], [["100", "0.25"]], "Errors by n.").rows
    [['100', '0.25']]
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    labels: int = 1


class Experiment(Protocol):
    """What a module of this folder has; it may also have ``tables(result) -> list[Table]``."""

    @property
    def PRESETS(self) -> Mapping[str, Any]: ...
    @property
    def SECONDS(self) -> Mapping[str, float]: ...
    @property
    def Settings(self) -> type[Any]: ...
    def run(
        self, settings: Any = ..., *, cells: Cells | None = ..., progress: Progress | None = ...
    ) -> Result: ...
    def plot(self, result: Result) -> list[Picture]: ...
    def claims(self, result: Result) -> list[Claim]: ...
    def paragraph(self, result: Result) -> str: ...
