# The host driver of the cyclic convolution kernel: loops over tiles, and nothing else.
# Included by one stub per CPU level; formulas are in ext/include, argument rules in _check.py, the
# records that come in are those of engine/cpu/calls.py.

from cython.parallel cimport parallel, threadid

include "types.pxi"
include "watch.pxi"

cdef extern from "cyclic.h" namespace "kc" nogil:
    cdef cppclass op "kc::op":
        pass
    cdef cppclass cyclic_job[T]:
        const T *x
        const T *y
        index_t n, m, length, positions, patch, offsets
        const T *weights
        const op *ops
        int count
        const T *coefficients
        T *out
        T factor
        int combine
        bint symmetric
    void cyclic_tile[T](const cyclic_job[T]&, index_t, index_t, index_t, index_t, T*,
                        watched_call&, int)
    T cyclic_diagonal[T](const cyclic_job[T]&, index_t, T*, watched_call&, int)
    index_t cyclic_scratch[T](const cyclic_job[T]&)
    int cyclic_width[T](const T*)

WIDTH = {"float32": cyclic_width(<const float *> NULL),
         "float64": cyclic_width(<const double *> NULL)}


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
    """One Gram matrix, or its diagonal, each entry whole by one thread."""
    cdef cyclic_job[real_t] job
    cdef const unsigned char[::1] ops = program.ops
    cdef const real_t[::1] coefficients = program.coefficients, weights = kernel.weights
    cdef real_t[:, ::1] out = target.k
    job.n, job.length = x.shape[0], x.shape[1]
    job.m = job.n if out is None else out.shape[1]
    if job.n == 0 or job.m == 0:
        return
    job.x, job.y = &x[0, 0], &y[0, 0, 0]
    job.positions, job.patch = kernel.positions, kernel.patch
    job.weights, job.offsets = &weights[0], weights.shape[0]
    job.ops, job.count = <const op *> &ops[0], <int> (ops.shape[0] // sizeof(op))
    job.coefficients = &coefficients[0] if coefficients.shape[0] > 0 else NULL
    job.out = &out[0, 0] if out is not None else NULL
    job.factor, job.combine, job.symmetric = target.factor, target.combine, target.symmetric

    cdef int n_threads = <int> scratch.shape[0]
    cdef index_t rows = 1, columns = 1, across = 1, q = -1, pieces = job.n, entries = job.n
    if out is not None:
        rows, columns = tile
        across = (y.shape[0] + columns - 1) // columns
        pieces = (job.n + rows - 1) // rows * across
        entries = job.n * (job.n + 1) // 2 if job.symmetric else job.n * job.m
    cdef Watch eye = Watch(watch, entries)
    cdef watched_call *call = &eye.call
    call.deal(pieces)
    with nogil, parallel(num_threads=n_threads):
        q = call.next(-1)
        while q >= 0:
            if job.out != NULL:
                cyclic_tile(job, q // across * rows, q % across * columns, rows, columns,
                            &scratch[threadid(), 0], call[0], threadid())
            else:
                diagonal[q] = cyclic_diagonal(job, q, &scratch[threadid(), 0], call[0], threadid())
            q = call.next(q)
        call.wait(threadid())
    eye.finish()


def scratch_size(real_t[::1] like, index_t positions, index_t patch, index_t values):
    """Numbers of scratch per thread for tiles of that many values."""
    cdef cyclic_job[real_t] job
    job.positions, job.patch = positions, patch
    return cyclic_scratch(job) + values
