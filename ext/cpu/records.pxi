# Records of engine/cpu/calls.py that several drivers are called with, as the structs of the headers.

from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)

cdef extern from "kernelcore/entry.h" namespace "kc" nogil:
    cdef cppclass destination[T]:
        T *k, *t
        index_t stride
        T factor
        int combine
        bint symmetric, transposed

cdef extern from "kernelcore/program.h" namespace "kc" nogil:
    cdef cppclass op:
        pass
    cdef cppclass operations[T]:
        const op *ops
        int count
        const T *coefficients


cdef struct numbers:
    const void *begin  # NULL where there are none
    index_t rows, columns  # columns of a matrix


cdef numbers see(array, size_t size, int flags=PyBUF_C_CONTIGUOUS) except *:
    """Return where the numbers of an array are, each of ``size`` bytes; the caller keeps it alive.

    A memoryview takes several times as long.
    """
    cdef Py_buffer view
    cdef numbers found
    PyObject_GetBuffer(array, &view, flags)
    found.begin = view.buf if view.len > 0 else NULL
    found.rows, found.columns = view.shape[0], view.shape[1] if view.ndim > 1 else 1
    cdef bint fits = <size_t> view.itemsize == size
    PyBuffer_Release(&view)
    assert fits
    return found


cdef inline const real_t *line(const real_t[::1] a) noexcept:
    return &a[0] if a.shape[0] > 0 else NULL


cdef inline const real_t *matrix(const real_t[:, ::1] a) noexcept:
    return &a[0, 0] if a.shape[0] > 0 and a.shape[1] > 0 else NULL


cdef int open_program(program, operations[real_t] *p) except -1:
    cdef numbers ops = see(program.ops, 1)
    p.ops, p.count = <const op *> ops.begin, <int> (ops.rows // sizeof(op))
    p.coefficients = <const real_t *> see(program.coefficients, sizeof(real_t)).begin
    return 0


cdef int open_target(target, destination[real_t] *to) except -1:
    cdef numbers out
    k, t = target.k, target.t
    to.k = to.t = NULL
    to.stride = 0
    for array in (t, k):
        if array is None:
            continue
        out = see(array, sizeof(real_t), PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
        to.stride = out.columns
        if array is k:
            to.k = <real_t *> out.begin
        else:
            to.t = <real_t *> out.begin
    to.factor, to.combine, to.symmetric = target.factor, target.combine, target.symmetric
    return 0
