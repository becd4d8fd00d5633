"""Several devices, little memory, streams: what is around a launch, on CuPy's stand-in."""

import importlib.util
import warnings
from unittest import mock

import numpy as np
import pytest
from gpu import standin, twin

import kernelcore as kc
from kernelcore.engine.gpu import drivers, images, memory, rows, sharing

NET = kc.Sequential(kc.Conv(3, w_std=1.4), kc.Relu(), kc.GlobalAvgPool(), kc.Dense())
ROWS = np.random.default_rng(0).standard_normal((21, 5)).astype(np.float32)
PICTURES = np.random.default_rng(1).standard_normal((9, 4, 4, 2)).astype(np.float32)
SIGNALS = np.sign(ROWS)
CASES = [
    (kc.presets.mlp(2).ntk, ROWS),
    (kc.CyclicConvolution(3, 2, [0.3, 0.5, 0.2]), SIGNALS),
    (NET.ntk, PICTURES),
    (NET.ntk + 0.5 * NET.nngp, PICTURES),
    (kc.Gaussian(2.0) * kc.ArcCosine(1), ROWS),
]
NAMES = ["rows", "signals", "images", "sum", "product"]


@pytest.fixture
def three(device, monkeypatch):
    """Three devices, which share whatever there is."""
    device.devices = [twin.Device("ascending") for _ in range(3)]
    for inputs in (rows.Rows, images.Images):
        monkeypatch.setattr(inputs, "shared_from", 1)
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *a: mock.Mock() if name == "cupy" else found(name, *a),
    )
    return device


def on(number, a):
    with standin.cuda.Device(number):
        return standin.asarray(a)


def busy(device):
    """Which devices have computed parts of a matrix."""
    return {number for number, name in device.launched if "gram" in name or "tangent" in name}


@pytest.mark.parametrize("home", [0, 2])
@pytest.mark.parametrize(("kernel", "X"), CASES, ids=NAMES)
def test_devices_share_a_matrix_and_no_bit_depends_on_it(three, kernel, X, home):
    alone = kernel(on(home, X)), kernel(on(home, X[:7]), on(home, X[7:]))
    assert busy(three) == {home}
    three.launched.clear()
    kc.set_devices("all")
    shared = kernel(on(home, X)), kernel(on(home, X[:7]), on(home, X[7:]))
    assert busy(three) == {0, 1, 2}
    for one, other in zip(alone, shared, strict=True):
        assert one.device.id == other.device.id == home
        np.testing.assert_array_equal(one._view, other._view)


def test_a_matrix_is_computed_where_its_points_are(three):
    """Whichever device is the current one."""
    for kernel, X in CASES:
        K, diagonal = kernel(on(1, X)), kernel.diag(on(1, X))
        assert (K.number, diagonal.number) == (1, 1)
    assert {number for number, _ in three.launched} == {1}


def test_small_matrices_are_not_shared(three, monkeypatch):
    monkeypatch.setattr(rows.Rows, "shared_from", 21 * 21 + 1)
    kc.set_devices([1, 2])
    kc.Gaussian(1.0)(on(0, ROWS))
    assert busy(three) == {0}


def test_some_devices_for_points_of_another(three):
    kc.set_devices([2, 1])
    assert kc.get_devices() == (2, 1)
    assert kc.Gaussian(1.0)(on(0, ROWS)).number == 0
    assert busy(three) == {1, 2}
    kc.set_devices(None)
    assert kc.get_devices() is None


def test_a_device_with_little_memory_takes_fewer_rows(three, monkeypatch):
    alone = NET.ntk(on(0, PICTURES))
    kc.set_devices([1])
    taken, put = [], sharing._put

    def watched(out, *rest):
        taken.append(out.shape)
        put(out, *rest)

    monkeypatch.setattr(sharing, "_put", watched)
    monkeypatch.setattr(sharing, "BLOCK_BYTES", 3 * 9 * 4)
    np.testing.assert_array_equal(NET.ntk(on(0, PICTURES))._view, alone._view)
    assert max(shape[0] for shape in taken if shape[0] != shape[1]) <= 6


def test_an_error_on_one_device_ends_the_work_of_all(three):
    kc.set_devices("all")
    told = []

    def stop(fraction):
        told.append(fraction)
        raise KeyError("enough")

    points = NET.ntk._open(on(0, PICTURES), None, 1)
    points.watch = stop
    out = points.output()
    with pytest.raises(KeyError, match="enough"):
        NET.ntk._into(points, out, 1.0, 0)
    assert 1 <= len(told) <= 3


def test_progress_of_several_devices_adds_up(three):
    kc.set_devices("all")
    for Y in (None, on(0, PICTURES[:4])):
        told = []
        points = NET.ntk._open(on(0, PICTURES), Y, 1)
        points.watch = told.append
        NET.ntk._into(points, points.output(), 1.0, 0)
        assert told == sorted(told)
        assert told[-1] == pytest.approx(1)


def test_doubts_of_all_devices_are_told_once(three):
    """Threads of other devices are within the call, which warns at its end."""
    kc.set_devices("all")
    kernel = kc.Sequential(
        kc.Conv(3), kc.Activation(np.sign), kc.GlobalAvgPool(), kc.Dense()
    ).ntk  # fmt: skip
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        kernel(on(0, PICTURES))
    assert [type(w.message) for w in said] == [RuntimeWarning]


# ---- memory


def test_tiles_fit_the_memory_that_is_free(device, monkeypatch):
    """Down to where there is none for a tile of one image; then the error says so."""
    deep = kc.Sequential(kc.Conv(1), *[kc.Relu(), kc.Conv(1)] * 8, kc.Flatten(), kc.Dense()).nngp
    X = on(0, np.random.default_rng(2).standard_normal((25, 2, 2, 1)))
    whole, tiles = deep(X), []
    base = standin.used(0)
    monkeypatch.setattr(images, "SPARE", 4000)
    for room in range(30_000, 0, -1000):
        device.limit = base + room
        device.launched.clear()
        try:
            np.testing.assert_array_equal(deep(X)._view, whole._view)
        except MemoryError as error:
            assert "must fit into the memory of the device" in str(error)  # noqa: PT017  the last
            break
        tiles.append(sum("covariance" in name for _, name in device.launched))
    assert tiles == sorted(tiles)
    assert tiles[0] == 1
    assert tiles[-1] > 10


def test_most_halves_until_there_is_room(device):
    device.limit = 1000
    assert memory.free() == 1000
    assert [memory.most(n, lambda k: 100 * k, "it") for n in (10, 11, 33)] == [10, 6, 9]
    assert device.refused == [1100, 3300, 1700]


# ---- streams


def test_launches_wait_in_a_short_queue_and_tell_what_is_done(device):
    told = []
    device.pending = 3
    launches = drivers.Launches(told.append)
    launches.add(0.5)
    launches.wait(1)
    assert told == []
    launches.add(1.0)
    launches.wait(1)
    assert told == [0.5]
    launches.wait(0)
    assert told == [0.5, 1.0]


def test_images_tell_of_their_tiles(device, monkeypatch):
    monkeypatch.setattr(images, "TILE", 4)
    for Y, counts in ((None, (10, 26, 36, 40, 44, 45)), (PICTURES[:5], (16, 32, 36, 40, 44, 45))):
        told = []
        points = NET.ntk._open(on(0, PICTURES), None if Y is None else on(0, Y), 1)
        points.watch = told.append
        NET.ntk._into(points, points.output(), 1.0, 0)
        np.testing.assert_allclose(told, np.array(counts) / 45)


def test_other_streams_see_finished_inputs(three):
    """The host waits for the stream of the points before other threads read them."""
    kc.set_devices([1])
    kc.Gaussian(1.0)(on(0, ROWS))
    assert three.waited[0] == 0
