# The host driver of the cyclic convolution kernel: loops over tiles, and nothing else.
# Included by one stub per CPU level. Formulas are in ext/include, argument rules in _check.py, and the
# records of the calls in engine/cpu/calls.py.

from cython.parallel cimport parallel, threadid

include "types.pxi"
include "watch.pxi"
include "records.pxi"

cdef extern from "cyclic.h" namespace "kc" nogil:
    cdef cppclass cyclic_job[T]:
        const T *x, *y
        index_t n, m, length, positions, patch, offsets
        const T *weights
        operations[T] program
        destination[T] to
    void cyclic_tile[T](const cyclic_job[T]&, index_t, index_t, index_t, index_t, T*,
                        watched_call&, int)
    T cyclic_diagonal[T](const cyclic_job[T]&, index_t, T*, watched_call&, int)
    index_t cyclic_scratch[T](const cyclic_job[T]&)
    cdef cppclass cyclic_table[T]:
        const T *values
        index_t stride
        const int *x
        const int *y
        index_t n, m, d, offsets
        const T *weights
        T factor
    void cyclic_look_up[T](const cyclic_table[T]&, index_t, T*, T*)
    const int float_width "kc::value<kc::native<float>>::width"
    const int double_width "kc::value<kc::native<double>>::width"

WIDTH = {"float32": float_width, "float64": double_width}


def gram(
    const real_t[:, ::1] x,         # (n, length)
    const real_t[:, :, ::1] y,      # (panels, length, width); of x itself when symmetric
    kernel,                         # Cyclic
    program,                        # Program
    target,                         # Target; without k: the diagonal only
    real_t[::1] diagonal,           # (n,), or empty
    tile,                           # its rows, and panels of columns
    real_t[:, ::1] scratch,         # (n_threads, scratch_size)
    watch=None,
):
    """Compute a Gram matrix, or its diagonal. One thread computes a whole entry."""
    cdef cyclic_job[real_t] job
    cdef const real_t[::1] weights = kernel.weights
    open_program(program, &job.program)
    open_target(target, &job.to)
    job.n, job.length = x.shape[0], x.shape[1]
    job.m = job.to.stride if job.to.k != NULL else job.n
    if job.n == 0 or job.m == 0:
        return
    job.x, job.y = &x[0, 0], &y[0, 0, 0]
    job.positions, job.patch = kernel.positions, kernel.patch
    job.weights, job.offsets = &weights[0], weights.shape[0]
    cdef int n_threads = <int> scratch.shape[0]
    cdef index_t rows = 1, columns = 1, across = 1, q = -1, pieces = job.n, entries = job.n
    if job.to.k != NULL:
        rows, columns = tile
        across = (y.shape[0] + columns - 1) // columns
        pieces = (job.n + rows - 1) // rows * across
        entries = job.n * (job.n + 1) // 2 if job.to.symmetric else job.n * job.m
    cdef Watch eye = Watch(watch, entries, pieces)
    cdef watched_call *call = &eye.call
    with nogil, parallel(num_threads=n_threads):
        q = call.next(-1)
        while q >= 0:
            if job.to.k != NULL:
                cyclic_tile(job, q // across * rows, q % across * columns, rows, columns,
                            &scratch[threadid(), 0], call[0], threadid())
            else:
                diagonal[q] = cyclic_diagonal(job, q, &scratch[threadid(), 0], call[0], threadid())
            q = call.next(q)
        call.wait(threadid())
    eye.finish()


def look_up(
    const real_t[:, ::1] table,     # the kernel of all patches of x with those of y
    const int[:, ::1] x,            # (d, n): their places in the table
    const int[:, ::1] y,            # (d, m)
    const real_t[::1] weights,      # of each offset
    real_t factor,
    real_t[:, ::1] rows,            # (n_threads, 3 m)
    real_t[:, :] out,               # (n, m)
    watch=None,
):
    """Sum a kernel of patches over positions and offsets. One thread computes a whole row."""
    cdef cyclic_table[real_t] f
    cdef index_t m = y.shape[1], i = -1, j
    cdef real_t *row = NULL
    f.d, f.n, f.m, f.offsets = x.shape[0], x.shape[1], m, weights.shape[0]
    if f.n == 0 or m == 0:
        return
    f.values, f.stride, f.factor = &table[0, 0], table.shape[1], factor
    f.x, f.y, f.weights = &x[0, 0], &y[0, 0], &weights[0]
    cdef Watch eye = Watch(watch, f.n, f.n)
    cdef watched_call *call = &eye.call
    with nogil, parallel(num_threads=<int> rows.shape[0]):
        i = call.next(-1)
        while i >= 0:
            if call.goes_on(threadid()):
                row = &rows[threadid(), 0]
                cyclic_look_up(f, i, row, row + 2 * m)
                for j in range(m):
                    out[i, j] = row[2 * m + j]
                call.done(1)
            i = call.next(i)
        call.wait(threadid())
    eye.finish()


def scratch_size(real_t[::1] like, index_t positions, index_t patch, index_t values):
    """Return the numbers of scratch per thread for tiles of that many values."""
    cdef cyclic_job[real_t] job
    job.positions, job.patch = positions, patch
    return cyclic_scratch(job) + values
