# The host driver of the dense engine: loops over panels, tiles and strips, and nothing else.
# Included by one stub per CPU level; formulas are in ext/include, argument rules in _check.py.

from cython.parallel cimport prange, threadid
from libc.stdint cimport uintptr_t

ctypedef long long index_t

ctypedef fused real_t:
    float
    double

cdef extern from "dense.h" namespace "kc" nogil:
    cdef cppclass op "kc::op":
        pass
    cdef cppclass gram_job[T]:
        const T *x
        const T *y
        const T *x_scale
        const T *y_scale
        const double *x_norm
        const double *y_norm
        index_t n, m, d
        const op *ops
        int count
        const T *coefficients
        const T *x_table
        const T *y_table
        index_t x_stride, y_stride
        const T *x_sd
        const T *y_sd
        const T *k_diagonal
        const T *t_diagonal
        T *k_out
        T *t_out
        index_t out_stride
        T factor
        int combine, kind, slots
        T bump_scale
        bint symmetric, angular
    cdef cppclass tile_range[T]:
        const T *x_packed
        const T *y_packed
        index_t x_panel, y_panel, i0, i1, j0, j1
    void dense_tile[T](const gram_job[T]&, const tile_range[T]&, T*)
    void dense_pack[T](const T*, const T*, index_t, index_t, T*)
    index_t dense_scratch[T](index_t, index_t, int, const T*)
    int dense_panel[T](const T*)
    double dense_norm[T](const T*, index_t)
    void dense_pairs(const op*, int, const double*, const double*, const double*, index_t, index_t,
                     index_t, double*, double*, double*, double*, bint)
    void dense_correlate(const double*, const double*, const double*, index_t, index_t, double*,
                         double*)

cdef extern from *:
    """
    #ifdef _OPENMP
    #define KC_OPENMP 1
    #else
    #define KC_OPENMP 0
    #endif
    """
    int KC_OPENMP

OPENMP = bool(KC_OPENMP)
OP_SIZE = sizeof(op)
PANEL = {"float32": dense_panel(<const float *> NULL), "float64": dense_panel(<const double *> NULL)}
DEF STRIP = 256


def norms(const real_t[:, ::1] x, double[::1] out, int n_threads):
    """Euclidean norm of every row, to the last place; non-finite where the row is."""
    cdef index_t n = x.shape[0], d = x.shape[1], i
    if n == 0 or d == 0:
        return
    for i in prange(n, nogil=True, schedule="static", num_threads=n_threads):
        out[i] = dense_norm(&x[i, 0], d)


def scratch_size(real_t[::1] like, index_t rows, index_t columns, int slots):
    """Numbers of scratch per thread for tiles of that many panels."""
    return dense_scratch(rows, columns, slots, <const real_t *> NULL)


cdef inline const real_t *at(const real_t[::1] a) noexcept:
    return &a[0] if a.shape[0] > 0 else NULL


def gram(
    const real_t[:, ::1] x,         # (n, d)
    const real_t[:, ::1] y,         # (m, d); x itself when symmetric
    const real_t[::1] x_scale, const real_t[::1] y_scale,
    const double[::1] x_norm, const double[::1] y_norm,
    const unsigned char[::1] ops,
    const real_t[::1] coefficients,
    const real_t[:, ::1] x_table, const real_t[:, ::1] y_table,   # (tables, rows to whole panels)
    const real_t[::1] x_sd, const real_t[::1] y_sd,
    const real_t[::1] k_diagonal, const real_t[::1] t_diagonal,
    uintptr_t k_out, uintptr_t t_out,   # addresses of (n, m) C-contiguous arrays, 0: not wanted
    double factor, int combine, int kind, int slots, double bump_scale, bint symmetric,
    bint angular,
    real_t[::1] x_packed, real_t[::1] y_packed,   # room for a block of whole panels each
    index_t block,                  # panels in a block
    index_t tile_rows, index_t tile_columns,      # panels in a tile
    real_t[:, ::1] scratch,         # (n_threads, scratch_size)
    int n_threads,
):
    """One Gram matrix, each tile computed whole by one thread: n_threads cannot change a bit."""
    cdef gram_job[real_t] job
    cdef index_t n = x.shape[0], m = y.shape[0], d = x.shape[1]
    if n == 0 or m == 0:
        return
    job.x = &x[0, 0] if d > 0 else NULL
    job.y = &y[0, 0] if d > 0 else NULL
    job.x_scale, job.y_scale = at(x_scale), at(y_scale)
    job.x_norm, job.y_norm = &x_norm[0], &y_norm[0]
    job.n, job.m, job.d = n, m, d
    job.ops = <const op *> &ops[0] if ops.shape[0] > 0 else NULL
    job.count = <int> (ops.shape[0] // sizeof(op))
    job.coefficients = at(coefficients)
    job.x_table = &x_table[0, 0] if x_table.shape[0] > 0 else NULL
    job.y_table = &y_table[0, 0] if y_table.shape[0] > 0 else NULL
    job.x_stride, job.y_stride = x_table.shape[1], y_table.shape[1]
    job.x_sd, job.y_sd = at(x_sd), at(y_sd)
    job.k_diagonal, job.t_diagonal = at(k_diagonal), at(t_diagonal)
    job.k_out, job.t_out = <real_t *> k_out, <real_t *> t_out
    job.out_stride = m
    job.factor, job.bump_scale = <real_t> factor, <real_t> bump_scale
    job.combine, job.kind, job.slots = combine, kind, slots
    job.symmetric, job.angular = symmetric, angular

    cdef index_t step = dense_panel(<const real_t *> NULL)
    cdef index_t x_panels = (n + step - 1) // step, y_panels = (m + step - 1) // step
    cdef index_t bi, bj, i_end, j_end, rows, columns, q
    for bj in range(0, y_panels, block):
        j_end = min(bj + block, y_panels)
        for q in prange(bj, j_end, nogil=True, schedule="static", num_threads=n_threads):
            dense_pack(job.y + q * step * d, job.y_scale + q * step,
                               min(step, m - q * step), d, &y_packed[0] + (q - bj) * step * d)
        for bi in range(0, min(x_panels, j_end) if symmetric else x_panels, block):
            i_end = min(bi + block, x_panels)
            if not (symmetric and bi == bj):
                for q in prange(bi, i_end, nogil=True, schedule="static", num_threads=n_threads):
                    dense_pack(job.x + q * step * d, job.x_scale + q * step,
                                       min(step, n - q * step), d,
                                       &x_packed[0] + (q - bi) * step * d)
            rows = (i_end - bi + tile_rows - 1) // tile_rows
            columns = (j_end - bj + tile_columns - 1) // tile_columns
            for q in prange(rows * columns, nogil=True, schedule="dynamic",
                            num_threads=n_threads):
                tile(job, bi, bj, i_end, j_end, tile_rows, tile_columns, columns, q,
                     &y_packed[0] if symmetric and bi == bj else &x_packed[0], &y_packed[0],
                     &scratch[threadid(), 0])


cdef inline void tile(const gram_job[real_t]& job, index_t bi, index_t bj, index_t i_end,
                      index_t j_end, index_t tile_rows, index_t tile_columns, index_t columns,
                      index_t q, const real_t *x_packed, const real_t *y_packed,
                      real_t *scratch) noexcept nogil:
    cdef tile_range[real_t] r
    r.x_packed, r.y_packed, r.x_panel, r.y_panel = x_packed, y_packed, bi, bj
    r.i0 = bi + q // columns * tile_rows
    r.i1 = min(r.i0 + tile_rows, i_end)
    r.j0 = bj + q % columns * tile_columns
    r.j1 = min(r.j0 + tile_columns, j_end)
    if not (job.symmetric and r.j1 <= r.i0):
        dense_tile(job, r, scratch)


def pairs(
    const unsigned char[::1] ops,
    const double[::1] coefficients,
    const double[:, ::1] x_table, const double[:, ::1] y_table,   # (tables, length)
    double[::1] u, double[::1] delta, double[::1] t,   # in and out; length a multiple of STRIP
    double[:, ::1] saved,           # (n_threads, 3 STRIP per open residual connection)
    bint raw, int n_threads,
):
    """Run a program elementwise on given correlations; raw: a single activation's duals."""
    cdef index_t q, strips = u.shape[0] // STRIP
    cdef int count = <int> (ops.shape[0] // sizeof(op))
    if strips == 0 or count == 0:
        return
    cdef const double *xt = &x_table[0, 0] if x_table.shape[0] > 0 else NULL
    cdef const double *yt = &y_table[0, 0] if y_table.shape[0] > 0 else NULL
    for q in prange(strips, nogil=True, schedule="static", num_threads=n_threads):
        dense_pairs(<const op *> &ops[0], count, &coefficients[0] if coefficients.shape[0] else NULL,
                    xt, yt, x_table.shape[1], q * STRIP, STRIP, &u[0], &delta[0], &t[0],
                    &saved[threadid(), 0] if saved.shape[1] > 0 else NULL, raw)


def correlate(const double[::1] a, const double[::1] c, const double[::1] k,
              double[::1] u, double[::1] delta):
    """Correlations and 1 - |u| from variances and covariances; length a multiple of STRIP."""
    if a.shape[0]:
        with nogil:
            dense_correlate(&a[0], &c[0], &k[0], 0, a.shape[0], &u[0], &delta[0])
