# The host driver of the cyclic convolution kernel: loops over tiles, and nothing else.
# Included by one stub per CPU level; formulas are in ext/include, argument rules in _check.py.

from cython.parallel cimport prange, threadid
from libc.stdint cimport uintptr_t

ctypedef long long index_t

ctypedef fused real_t:
    float
    double

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
    void tile_of[T](const cyclic_job[T]&, index_t, index_t, index_t, index_t, T*)
    T diagonal_of[T](const cyclic_job[T]&, index_t, T*)
    index_t scratch_of[T](const cyclic_job[T]&)
    int width_of[T](const T*)

WIDTH = {"float32": width_of(<const float *> NULL), "float64": width_of(<const double *> NULL)}


def gram(
    const real_t[:, ::1] x,         # (n, length)
    const real_t[:, :, ::1] y,      # (panels, length, width); of x itself when symmetric
    index_t m,
    index_t positions, index_t patch,
    const real_t[::1] weights,
    const unsigned char[::1] ops,
    const real_t[::1] coefficients,
    uintptr_t out,                  # address of an (n, m) C-contiguous array; 0: diagonal only
    real_t[::1] diagonal,           # (n,), or empty
    double factor, int combine, bint symmetric,
    index_t rows, index_t columns,  # of a tile: rows, panels
    real_t[:, ::1] scratch,         # (n_threads, scratch_size)
    int n_threads,
):
    """One Gram matrix, or its diagonal, each entry whole by one thread."""
    cdef cyclic_job[real_t] job
    cdef index_t n = x.shape[0], panels = y.shape[0], q, across, down
    if n == 0 or m == 0:
        return
    job.x, job.y = &x[0, 0], &y[0, 0, 0]
    job.n, job.m, job.length = n, m, x.shape[1]
    job.positions, job.patch, job.offsets = positions, patch, weights.shape[0]
    job.weights = &weights[0]
    job.ops = <const op *> &ops[0]
    job.count = <int> (ops.shape[0] // sizeof(op))
    job.coefficients = &coefficients[0] if coefficients.shape[0] > 0 else NULL
    job.out = <real_t *> out
    job.factor, job.combine, job.symmetric = <real_t> factor, combine, symmetric
    if out == 0:
        for q in prange(n, nogil=True, schedule="static", num_threads=n_threads):
            diagonal[q] = diagonal_of(job, q, &scratch[threadid(), 0])
        return
    down, across = (n + rows - 1) // rows, (panels + columns - 1) // columns
    for q in prange(down * across, nogil=True, schedule="dynamic", num_threads=n_threads):
        tile(job, q // across * rows, q % across * columns, rows, columns, panels,
             &scratch[threadid(), 0])


cdef inline void tile(const cyclic_job[real_t]& job, index_t i, index_t p, index_t rows,
                      index_t columns, index_t panels, real_t *scratch) noexcept nogil:
    cdef index_t p_end = min(p + columns, panels)
    if not (job.symmetric and p_end * width_of(<const real_t *> NULL) <= i):
        tile_of(job, i, min(i + rows, job.n), p, p_end, scratch)


def scratch_size(real_t[::1] like, index_t positions, index_t patch, index_t values):
    """Numbers of scratch per thread for tiles of that many values."""
    cdef cyclic_job[real_t] job
    job.positions, job.patch = positions, patch
    return scratch_of(job) + values
