"""What experiments share: settings, results, claims and cells."""

import dataclasses
import hashlib
import json
import math
import pickle
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

import kernelcore as kc
from kernelcore import experiments
from kernelcore.experiments import Cells, Claim, Result, _base


@dataclasses.dataclass(frozen=True)
class Toy(experiments.Settings):
    n: int = 3
    ridge: float = 0.5
    sizes: tuple[int, ...] = (1, 2)
    rates: tuple[float, ...] = (0, 0.5)
    kernel: str = "ntk"
    fast: bool = False


# ---- settings


def test_settings_are_what_their_defaults_are():
    assert Toy(ridge=1, sizes=[4, 5], rates=(1, 2)) == Toy(
        ridge=1.0, sizes=(4, 5), rates=(1.0, 2.0)
    )
    assert type(Toy(ridge=1).ridge) is float
    assert type(Toy(n=np.int64(4)).n) is int


def test_settings_from_a_command_line():
    given = {"n": "7", "ridge": "1e-3", "sizes": "10,20", "rates": "1,2", "fast": "true"}
    same = Toy(n=7, ridge=1e-3, sizes=(10, 20), rates=(1.0, 2.0), fast=True, kernel="x=y")
    assert Toy().changed(given | {"kernel": "x=y"}) == same


def test_the_key_is_of_name_settings_and_version_alone(monkeypatch):
    text = json.dumps(["toy", Toy().as_dict(), kc.__version__], sort_keys=True)
    assert Toy().key("toy") == hashlib.sha256(text.encode()).hexdigest()
    assert Toy(rates=(0, 0.5)).key("toy") == Toy().key("toy")
    others = {Toy(n=4).key("toy"), Toy(seed=1).key("toy"), Toy().key("toe")}
    monkeypatch.setattr(_base, "__version__", "999")
    assert len(others | {Toy().key("toy")}) == 4


# ---- results


@pytest.fixture
def result():
    arrays = {
        "errors": np.arange(6.0).reshape(2, 3).T,  # not as C has it
        "names": ["κ₁", "b"], "none": np.empty((0, 2)), "one": 1.5, "few": np.array([True]),
    }  # fmt: skip
    return Result("toy", Toy(), arrays)


def test_a_result_comes_back_as_it_was(result, tmp_path):
    path = result.save(tmp_path / "deep" / "toy.npz")
    again = Result.load(path)
    assert (again.name, again.settings, again.version) == ("toy", result.settings, kc.__version__)
    assert Toy(**again.settings) == Toy()
    assert again.key == Toy().key("toy")
    assert list(again.arrays) == sorted(again.arrays) == list(result.arrays)
    for name, a in result.arrays.items():
        assert again[name].dtype == a.dtype
        assert np.array_equal(again[name], a)
        assert again[name].flags.c_contiguous
    assert np.load(path)["errors"].shape == (3, 2)  # a file of NumPy, for whoever has no kernelcore


def test_equal_results_are_equal_bytes_whenever_they_are_saved(result, tmp_path, monkeypatch):
    first = result.save(tmp_path / "a.npz").read_bytes()
    monkeypatch.setattr(time, "time", lambda: 2e9)
    backwards = Result("toy", Toy(), dict(reversed(result.arrays.items())))
    assert backwards.save(tmp_path / "b.npz").read_bytes() == first
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npz", "b.npz"]


DAMAGED = "a damaged or truncated file"


def refused(path, got):
    with pytest.raises(ValueError, match="must be a result") as caught:
        Result.load(path)
    assert str(caught.value) == f"{path} must be a result that kernelcore has saved: got {got}"


def test_truncated_files_are_refused_wherever_they_end(result, tmp_path):
    whole = result.save(tmp_path / "toy.npz").read_bytes()
    path = tmp_path / "part.npz"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        refused(path, DAMAGED)


def test_changed_bytes_are_refused_or_change_nothing(result, tmp_path, rng):
    """What is read has a checksum; the rest, such as dates of the archive, is not read."""
    whole = result.save(tmp_path / "toy.npz").read_bytes()
    path = tmp_path / "other.npz"
    for at in rng.integers(len(whole), size=300):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ rng.integers(1, 256)]) + whole[at + 1 :])
        try:
            found = Result.load(path)
        except ValueError:
            continue
        assert found.settings == result.settings
        known = [name for name in found.arrays if name in result.arrays]
        assert all(np.array_equal(found[name], result[name]) for name in known)


def archive(path, entries):
    with zipfile.ZipFile(path, "w") as file:
        for name, data in entries.items():
            file.writestr(name, data)
    return path


def npy(head, data=b"", version=(1, 0)):
    text = repr(head).encode().ljust(118) + b"\n"
    return b"\x93NUMPY" + bytes(version) + len(text).to_bytes(2, "little") + text + data


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


HEAD = {"descr": "<f8", "fortran_order": False, "shape": (2,)}
HOSTILE = {
    "a pickle": npy(HEAD | {"descr": "|O"}, pickle.dumps(Trap())),
    "a structure": npy(HEAD | {"descr": [("a", "|O")]}, pickle.dumps(Trap())),
    "more than there is": npy(HEAD | {"shape": (2**60,)}, b"0" * 16),
    "less than there is": npy(HEAD, b"0" * 24),
    "a negative shape": npy(HEAD | {"shape": (-2, -1)}, b"0" * 16),
    "another version": npy(HEAD, b"0" * 16, version=(9, 9)),
    "a head that is no head": npy("x" * 50),
    "brackets": b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535,
    "nothing": b"",
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_arrays_are_refused_and_nothing_is_unpickled(what, tmp_path):
    refused(archive(tmp_path / "bad.npz", {"errors.npy": HOSTILE[what]}), DAMAGED)


@pytest.mark.parametrize(
    "head",
    [b"", b"[]", b"{}", b"\xff", b"[" * 9**5, b'{"name": 3, "settings": {}, "version": ""}'],
    ids=range(6),
)
def test_files_without_a_head_are_refused(head, tmp_path):
    _base.write_arrays(tmp_path / "x.npz", {"kernelcore": np.frombuffer(head, np.uint8)})
    refused(tmp_path / "x.npz", "a file without a head that says what it is")


def test_what_unpacks_to_too_much_is_refused_before_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(_base, "MOST", 10_000)
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("errors.npy", npy(HEAD | {"shape": (2000,)}, bytes(16_000)))
    assert (tmp_path / "bomb.npz").stat().st_size < 1000
    refused(tmp_path / "bomb.npz", "more than a result may hold")


def test_settings_in_a_file_are_checked_as_others_are(tmp_path):
    Result("toy", {"n": "many"}, {}).save(tmp_path / "toy.npz")
    with pytest.raises(TypeError, match=r"^n must be an integer: got str$"):
        Toy(**Result.load(tmp_path / "toy.npz").settings)


# ---- claims


@pytest.mark.parametrize(
    ("measured", "error", "verdict"),
    [(1.0, 0.1, 0), (0.8, 0.1, 0), (1.2, 0.1, 0), (1.5, 0.1, 3), (0.4, 0.2, 2), (1.3, 0, math.inf),
     (math.nan, 0.1, math.inf)],
)  # fmt: skip
def test_a_verdict_counts_errors_outside(measured, error, verdict):
    claim = Claim("", "", 1.0, measured, error, 0.8, 1.2)
    assert claim.verdict == pytest.approx(verdict)
    assert claim.holds is (verdict == 0)


def test_claims_of_numbers_orders_and_curves():
    assert Claim.near("", "", 2.0, 2.1, 0.0).holds
    assert not Claim.near("", "", 2.0, 2.11, 0.01).holds
    assert Claim.near("", "", -2.0, -2.19, 0.1).holds
    assert Claim.order("", "", 0).holds
    assert not Claim.order("", "", 1).holds
    predicted = np.array([1.0, 0.1, 0.01])
    near = Claim.curve("", "", predicted, predicted * [1.04, 0.95, 1.01], predicted * 0.001)
    assert near.holds
    assert near.measured == pytest.approx(math.sqrt((0.04**2 + 0.05**2 + 0.01**2) / 3))
    assert near.high == pytest.approx(0.05)
    assert not Claim.curve("", "", predicted, predicted * 1.06, predicted * 0.001).holds
    assert Claim.curve("", "", predicted, predicted * 1.06, predicted * 0.04).holds


# ---- cells


def test_cells_are_computed_once_and_kept(tmp_path):
    calls = []

    def compute(*key):
        calls.append(key)
        return {"x": np.array(key[1:], float)}

    keys = [("a", 1), ("a", 1.5), ("b/../c", 1)]
    seen = []
    first = Cells(tmp_path / "cells").map(compute, keys, seen.append)
    assert (calls, seen) == (keys, [1 / 3, 2 / 3, 1])
    again = Cells(tmp_path / "cells")
    assert [again.get(key, lambda: 1 / 0)["x"] for key in keys] == [[1.0], [1.5], [1.0]]
    assert [cell["x"].tolist() for cell in first] == [[1.0], [1.5], [1.0]]
    files = sorted((tmp_path / "cells").iterdir())
    assert len(files) == 3
    assert all(file.parent == tmp_path / "cells" for file in files)
    files[0].write_bytes(files[0].read_bytes()[:50])  # damaged: computed again
    Cells(tmp_path / "cells").map(compute, keys)
    assert len(calls) == 4


@pytest.mark.parametrize("folder", [True, False])
def test_what_is_done_to_an_answer_stays_outside(folder, tmp_path):
    cells = Cells(tmp_path if folder else None)
    for _ in range(2):
        answer = cells.get(("a",), lambda: {"x": np.zeros(2)})
        assert answer["x"].tolist() == [0, 0]
        answer["x"] += 1


def test_a_share_is_a_part_of_the_whole():
    seen = []
    _base.share(seen.append, 0.5, 0.75)(0.5)
    assert seen == [0.625]
    assert _base.share(None, 0, 1) is None


KILLED = """
import sys, time
import numpy as np
from kernelcore.experiments import Cells, Result, Settings

def cell(word, k):
    time.sleep(0.03)
    print(k, flush=True)
    return {"x": np.random.default_rng(k).standard_normal(2000) @ np.ones(2000)}

folder = sys.argv[1]
found = Cells(folder + "/cells").map(cell, [("draw", k) for k in range(12)])
Result("toy", Settings(), {"x": [one["x"] for one in found]}).save(folder + "/toy.npz")
"""


def test_a_run_that_is_killed_at_random_moments_ends_in_the_same_bytes(tmp_path, rng):
    def start(folder):
        command = [sys.executable, "-c", KILLED, str(folder)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    killed, whole = tmp_path / "killed", tmp_path / "whole"
    computed = []
    with start(whole) as process:
        process.communicate(timeout=60)
    for _ in range(4):
        with start(killed) as process:
            computed += process.stdout.readline().split()
            time.sleep(rng.uniform(0, 0.08))
            process.send_signal(signal.SIGKILL)
            computed += process.communicate(timeout=60)[0].split()
    assert not (killed / "toy.npz").exists()
    with start(killed) as process:
        computed += process.communicate(timeout=60)[0].split()
    assert (killed / "toy.npz").read_bytes() == (whole / "toy.npz").read_bytes()
    assert set(map(int, computed)) == set(range(12))
    assert len(computed) <= 12 + 4  # at most what was under way is computed twice


# ---- the room


def test_experiments_load_when_they_are_named():
    assert {*experiments.NAMES} <= set(dir(experiments))
    name = next(iter(experiments.NAMES))
    assert getattr(experiments, name) is sys.modules[f"kernelcore.experiments.{name}"]
    assert experiments.load(name) is getattr(experiments, name)
