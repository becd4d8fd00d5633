"""The host twin runs kernels rightly, in any order of threads, and sees planted faults."""

import ctypes
import pathlib
import re

import numpy as np
import pytest
from gpu import twin

SOURCE = pathlib.Path(__file__).with_name("planted.cu")
LINES = SOURCE.read_text().splitlines()
ORDERS = (*twin.ORDERS, "every")


def line(comment):
    """The place of the line of ``planted.cu`` that ends so, as messages name it."""
    (found,) = [i for i, text in enumerate(LINES, 1) if text.endswith(f"// {comment}")]
    return f"planted.cu:{found}"


@pytest.fixture(scope="module")
def library():
    return twin.build(SOURCE)


def ints(*values):
    return map(ctypes.c_int, values)


def fault(message):
    return pytest.raises(twin.Fault, match=f"^{re.escape(message)}$")


def run(library, name, *args, order="ascending", shared_bytes=0, at_start=False):
    """One block of eight threads, with an array for results as the last argument; its values."""
    device = twin.Device(order, at_start)
    out = device.empty(8, "f4")
    device.launch(library, name, 1, 8, (*args, out), shared_bytes)
    return out.get()


# ---- what is right


def test_kernels_are_found_with_their_parameters(library):
    """By the names that macros have made, too; a struct by value has its size."""
    assert library["sum_f32"].parameters == library["sum_f64"].parameters == ["p8", "i4", "p8"]
    assert library["transpose"].parameters == ["s32"]
    plain = re.findall(r"__global__ (?:\S+ )?void ([a-z]\w+)\(", SOURCE.read_text())
    assert sorted(library) == sorted([*plain, "sum_f32", "sum_f64"])


@pytest.mark.parametrize("order", ORDERS)
def test_a_sum_by_halves(library, order, dtype, rng):
    """Integers, whose sums are exact, and the same bits for other numbers in any order."""
    for values in (rng.integers(-9, 9, 1000), rng.standard_normal(1000)):
        values, out = values.astype(dtype), np.empty(16, dtype)
        name = f"sum_f{8 * dtype.itemsize}"
        twin.launch(library, name, 16, 64, (values, ctypes.c_int(1000), out), order=order)
        part = np.zeros((16, 64), dtype)
        part.flat[:1000] = values
        while part.shape[1] > 1:
            part = part[:, : part.shape[1] // 2] + part[:, part.shape[1] // 2 :]
        np.testing.assert_array_equal(out, part[:, 0])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("at_start", [False, True])
def test_a_transpose_by_tiles(library, order, at_start, rng):
    """Pointers in a struct by value: of ctypes, and a record of NumPy."""
    a = rng.standard_normal((21, 13)).astype("f4")
    device = twin.Device(order, at_start)
    kinds = [("a", "u8"), ("out", "u8"), ("rows", "i8"), ("columns", "i8")]

    class Matrix(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint64) for name, _ in kinds]

    for make in (lambda *fields: np.array(fields, kinds)[()], Matrix):
        source, out = device.array(a), device.empty((13, 21), "f4")
        job = make(source.ptr, out.ptr, *a.shape)
        device.launch(library, "transpose", (2, 3), (8, 8), (job,), shared_bytes=8 * 9 * 4)
        np.testing.assert_array_equal(out.get(), a.T)


@pytest.mark.parametrize("order", ORDERS)
def test_every_thread_of_every_block_knows_its_place(library, order):
    out = np.empty(24 * 30, "u4")
    twin.launch(library, "places", (2, 3, 4), (5, 3, 2), (out,), order=order)
    np.testing.assert_array_equal(out, np.add.outer(1000 * np.arange(24), np.arange(30)).ravel())


def test_a_launch_after_a_fault_is_as_if_there_had_been_none(library):
    with pytest.raises(twin.Fault):
        run(library, "divergent")
    values, out = np.ones(64, "f4"), np.empty(1, "f4")
    twin.launch(library, "sum_f32", 1, 64, (values, ctypes.c_int(64), out))
    assert out[0] == 64


# ---- faults


def test_divergent_barrier(library):
    with fault(
        f"divergent, block (0, 0, 0), thread (0, 0, 0) waits at {line('here')}, "
        f"but thread (3, 0, 0) waits at {line('there')}: divergent barrier"
    ):
        run(library, "divergent")


def test_return_before_a_barrier(library):
    with fault(
        f"early, block (0, 0, 0), thread (0, 0, 0) waits at {line('others wait')}, "
        "but thread (5, 0, 0) has returned: divergent barrier"
    ):
        run(library, "early")


def test_missing_barrier(library):
    """Found with the block, and the barrier before it."""
    with fault(
        f"no_barrier, block (1, 0, 0), after {line('a race follows')}: element 8 of a buffer "
        "of 96 bytes depends on the order of threads: missing barrier"
    ):
        twin.launch(library, "no_barrier", 3, 8, (np.empty(24, "f4"),))


def test_a_block_that_needs_another(library):
    device = twin.Device()
    out = device.array(np.zeros(2, "f4"))
    with fault("between_blocks: element 1 of a buffer of 8 bytes depends on the order of blocks"):
        device.launch(library, "between_blocks", 2, 1, (out,))


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_uninitialised_shared_memory(library, kind):
    name, shared_bytes = f"unwritten_{kind}", 36 * (kind == "dynamic")
    assert np.isnan(run(library, name, shared_bytes=shared_bytes)[7])
    with fault(
        f"{name}: element 7 of a buffer of 32 bytes depends on memory that nobody has written to"
    ):
        run(library, name, order="every", shared_bytes=shared_bytes)


@pytest.mark.parametrize("write", [0, 1])
@pytest.mark.parametrize(("at_start", "i"), [(False, 10), (True, -1), (False, 5000), (True, -5000)])
def test_global_memory_out_of_bounds(library, write, at_start, i):
    device = twin.Device("ascending", at_start)
    a, out = device.array(np.zeros(10, "f4")), device.empty(8, "f4")
    args = (a, *ints(i, write), out)
    with fault(
        f"touch_global, block (0, 0, 0), thread (2, 0, 0): {['read', 'write'][write]} "
        f"out of bounds: byte {4 * i} of a buffer of 40 bytes"
    ):
        device.launch(library, "touch_global", 1, 8, args)


@pytest.mark.parametrize(
    ("at_start", "i", "where"), [(False, -1, "before the start"), (True, 10, "after the end")]
)
def test_global_memory_beyond_the_other_end(library, at_start, i, where):
    device = twin.Device("every", at_start)
    out, a = device.empty(8, "f4"), device.array(np.zeros(10, "f4"))
    with fault(f"touch_global: write {where} of a buffer of 40 bytes"):
        device.launch(library, "touch_global", 1, 8, (a, *ints(i, 1), out))
    with fault(
        "touch_global: element 0 of a buffer of 32 bytes depends on memory "
        "that nobody has written to"
    ):
        device.launch(library, "touch_global", 1, 8, (a, *ints(i, 0), out))


@pytest.mark.parametrize(("i", "write"), [(12, 0), (12, 1), (-1, 0), (-5000, 1)])
def test_dynamic_shared_memory_out_of_bounds(library, i, write):
    with fault(
        f"touch_dynamic, block (0, 0, 0), thread (2, 0, 0): {['read', 'write'][write]} "
        f"out of bounds: byte {4 * i} of the 48 bytes of dynamic shared memory"
    ):
        run(library, "touch_dynamic", *ints(i, write), order="every", shared_bytes=48)


def test_dynamic_shared_memory_and_what_is_left_of_a_page(library):
    """It begins at a multiple of 16 bytes and may end elsewhere."""
    for i, where in ((-1, "before the start"), (9, "after the end")):
        with fault(f"touch_dynamic: write {where} of the 36 bytes of dynamic shared memory"):
            run(library, "touch_dynamic", *ints(i, 1), shared_bytes=36)
    with fault(
        "touch_dynamic: element 0 of a buffer of 32 bytes depends on memory "
        "that nobody has written to"
    ):
        run(library, "touch_dynamic", *ints(9, 0), order="every", shared_bytes=36)


@pytest.mark.parametrize("i", [-1, 16])
def test_a_static_shared_array_out_of_bounds(library, i):
    with fault(
        "touch_static, block (0, 0, 0), thread (2, 0, 0): "
        f"index {i} is beyond an array, at {line('an index')}"
    ):
        run(library, "touch_static", ctypes.c_int(i))


def test_a_pointer_beyond_a_static_shared_array(library):
    """The end only, and where the compiler sees what the pointer points into."""
    with fault(
        "touch_pointer, block (0, 0, 0), thread (2, 0, 0): a pointer is beyond its array, "
        f"at {line('element i')}"
    ):
        run(library, "touch_pointer", ctypes.c_int(16))


def test_other_faults(library):
    who = "block (0, 0, 0), thread (0, 0, 0)"
    with fault(f"misaligned, {who}: a pointer is not aligned, at {line('not aligned')}"):
        run(library, "misaligned", ctypes.c_int(1))
    with fault(f"wild, {who}: no address"):
        run(library, "wild", ctypes.c_longlong(0x7F7F << 48))
    with fault(f"divide, {who}: division of an integer by zero"):
        run(library, "divide", ctypes.c_int(0))
    with fault(f"recurse, {who}: its stack is full"):
        run(library, "recurse", ctypes.c_int(1))


def test_launches_that_a_device_refuses_or_does_not_see(library):
    a = np.zeros(4, "f4")
    with fault("sum_f32 takes p8 i4 p8, not p8 i8 p8"):
        twin.launch(library, "sum_f32", 1, 4, (a, ctypes.c_longlong(4), a))
    with fault("sum_f32 takes p8 i4 p8, not p8 f4 p8"):
        twin.launch(library, "sum_f32", 1, 4, (a, np.float32(4), a))
    with fault("sum_f32 takes at most 64 threads, not (1, 1, 1) x (65, 1, 1)"):
        twin.launch(library, "sum_f32", 1, 65, (a, np.int32(4), a))
    with fault("places takes at most 1024 threads, not (0, 1, 1) x (1, 1, 1)"):
        twin.launch(library, "places", 0, 1, (a,))


def test_options_make_another_library(library):
    assert library["sum_f32"].threads == 64
    assert twin.build(SOURCE, "-DMOST=32")["sum_f32"].threads == 32


def test_names_that_the_twin_does_not_have(tmp_path):
    """A driver that uses more of CUDA does not compile."""
    source = tmp_path / "more.cu"
    source.write_text('extern "C" __global__ void more() { __syncwarp(); }\n')
    with pytest.raises(twin.Fault, match=r"__syncwarp.* was not declared in this scope"):
        twin.build(source)
