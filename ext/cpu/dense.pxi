# The host driver of the dense engine: loops over panels, tiles and strips, and nothing else.
# Included by one stub per CPU level; formulas are in ext/include, argument rules in _check.py, the
# records that come in are those of engine/cpu/calls.py.

from cython.parallel cimport parallel, prange, threadid

include "types.pxi"
include "watch.pxi"

cdef extern from "dense.h" namespace "kc" nogil:
    cdef cppclass op "kc::op":
        pass
    cdef cppclass side[T]:
        const T *rows
        index_t count
        const T *scale
        const double *norm
        const T *table
        index_t stride
        const T *sd
    cdef cppclass gram_job[T]:
        side[T] x, y
        index_t d
        const op *ops
        int count
        const T *coefficients
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
    cdef cppclass pairs_job:
        const op *ops
        int count
        const double *coefficients
        const double *x_table
        const double *y_table
        index_t length
        double *u
        double *delta
        double *t
        bint raw
    const index_t pairs_strip, pairs_together
    void dense_tile[T](const gram_job[T]&, const tile_range[T]&, T*, watched_call&, int)
    index_t dense_pieces[T](const gram_job[T]&, const tile_range[T]&)
    void dense_pack[T](const side[T]&, index_t, index_t, T*)
    index_t dense_scratch[T](index_t, index_t, int, const T*)
    int dense_panel[T](const T*)
    double dense_norm[T](const T*, index_t)
    void dense_pairs(const pairs_job&, index_t, double*, watched_call&, int)
    void dense_correlate(const double*, const double*, const double*, index_t, double*, double*)
    bint c_can_add "kc::can_add"(int)

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
STRIP = pairs_strip


def can_add(int code):
    """Whether an operation does a trained Dense without bias that follows it: ``op.add``."""
    return bool(c_can_add(code))


def norms(const real_t[:, ::1] x, double[::1] out, int n_threads):
    """Euclidean norm of every row, to the last place; non-finite where the row is."""
    cdef index_t n = x.shape[0], d = x.shape[1], i
    if n == 0 or d == 0:
        return
    cdef Watch eye = Watch(None, n)
    cdef watched_call *call = &eye.call
    for i in prange(n, nogil=True, schedule="static", num_threads=n_threads):
        if call.after(threadid(), d):
            out[i] = dense_norm(&x[i, 0], d)
    eye.finish()


def scratch_size(real_t[::1] like, index_t rows, index_t columns, int slots):
    """Numbers of scratch per thread for tiles of that many panels."""
    return dense_scratch(rows, columns, slots, <const real_t *> NULL)


cdef inline const real_t *line(const real_t[::1] a) noexcept:
    return &a[0] if a.shape[0] > 0 else NULL


cdef inline const real_t *matrix(const real_t[:, ::1] a) noexcept:
    return &a[0, 0] if a.shape[0] > 0 and a.shape[1] > 0 else NULL


cdef int open_side(rows, side[real_t] *s) except -1:
    cdef const real_t[:, ::1] x = rows.x, tables = rows.tables
    cdef const real_t[::1] scale = rows.scale, sd = rows.sd
    cdef const double[::1] norm = rows.norm
    s.rows, s.count = matrix(x), x.shape[0]
    s.scale, s.norm, s.sd = line(scale), line(norm), line(sd)
    s.table, s.stride = matrix(tables), tables.shape[1]
    return 0


cdef int open_job(x, y, program, sums, target, diagonals, gram_job[real_t] *job) except -1:
    cdef const unsigned char[::1] ops = program.ops
    cdef const real_t[::1] coefficients = program.coefficients
    cdef const real_t[::1] k_diagonal, t_diagonal
    cdef real_t[:, ::1] k = target.k, t = target.t
    k_diagonal, t_diagonal = diagonals
    open_side(x, &job.x)
    open_side(y, &job.y)
    job.d = x.x.shape[1]
    job.ops = <const op *> &ops[0] if ops.shape[0] > 0 else NULL
    job.count, job.slots = <int> (ops.shape[0] // sizeof(op)), program.slots
    job.coefficients = line(coefficients)
    job.k_diagonal, job.t_diagonal = line(k_diagonal), line(t_diagonal)
    job.k_out = &k[0, 0] if k is not None else NULL
    job.t_out = &t[0, 0] if t is not None else NULL
    job.out_stride = job.y.count
    job.factor, job.combine, job.symmetric = target.factor, target.combine, target.symmetric
    job.kind, job.bump_scale, job.angular = sums.kind, sums.bump, sums.angular
    return 0


def gram(
    x, y,                       # Rows; y are x's own when symmetric
    program,                    # Program
    sums,                       # Sums
    target,                     # Target
    diagonals,                  # of k and t: what copies get
    tiles,                      # Tiles
    real_t[:, ::1] scratch,     # (n_threads, scratch_size)
    watch=None,
):
    """One Gram matrix, each tile computed whole by one thread: n_threads cannot change a bit."""
    cdef gram_job[real_t] job
    if len(x.x) == 0 or len(y.x) == 0:
        return
    open_job(x, y, program, sums, target, diagonals, &job)
    cdef real_t[::1] x_packed = x.packed, y_packed = y.packed
    cdef index_t block = tiles.block, tile_rows = tiles.rows, tile_columns = tiles.columns
    cdef int n_threads = <int> scratch.shape[0]
    cdef bint shared

    cdef index_t step = dense_panel(<const real_t *> NULL), d = job.d
    cdef index_t x_panels = (job.x.count + step - 1) // step
    cdef index_t y_panels = (job.y.count + step - 1) // step
    cdef index_t bi, bj, i_end, j_end, rows, columns, q = -1
    cdef Watch eye = Watch(
        watch, y_panels * (y_panels + 1) // 2 if job.symmetric else x_panels * y_panels
    )
    cdef watched_call *call = &eye.call
    for bj in range(0, y_panels, block):
        j_end = min(bj + block, y_panels)
        for q in prange(bj, j_end, nogil=True, schedule="static", num_threads=n_threads):
            dense_pack(job.y, d, q, &y_packed[0] + (q - bj) * step * d)
        for bi in range(0, min(x_panels, j_end) if job.symmetric else x_panels, block):
            i_end = min(bi + block, x_panels)
            shared = job.symmetric and bi == bj
            if not shared:
                for q in prange(bi, i_end, nogil=True, schedule="static", num_threads=n_threads):
                    dense_pack(job.x, d, q, &x_packed[0] + (q - bi) * step * d)
            rows = (i_end - bi + tile_rows - 1) // tile_rows
            columns = (j_end - bj + tile_columns - 1) // tile_columns
            call.deal(rows * columns)
            with nogil, parallel(num_threads=n_threads):
                q = call.next(-1)
                while q >= 0:
                    tile(job, bi, bj, i_end, j_end, tile_rows, tile_columns, columns, q,
                         &y_packed[0] if shared else &x_packed[0], &y_packed[0],
                         &scratch[threadid(), 0], call, threadid())
                    q = call.next(q)
                call.wait(threadid())
            eye.finish()


cdef inline void tile(const gram_job[real_t]& job, index_t bi, index_t bj, index_t i_end,
                      index_t j_end, index_t tile_rows, index_t tile_columns, index_t columns,
                      index_t q, const real_t *x_packed, const real_t *y_packed,
                      real_t *scratch, watched_call *call, int thread) noexcept nogil:
    cdef tile_range[real_t] r
    r.x_packed, r.y_packed, r.x_panel, r.y_panel = x_packed, y_packed, bi, bj
    r.i0 = bi + q // columns * tile_rows
    r.i1 = min(r.i0 + tile_rows, i_end)
    r.j0 = bj + q % columns * tile_columns
    r.j1 = min(r.j0 + tile_columns, j_end)
    if not (job.symmetric and r.j1 <= r.i0) and call.goes_on(thread):
        dense_tile(job, r, scratch, call[0], thread)
        call.done(dense_pieces(job, r))


def pairs(
    program,                        # Program
    tables,                         # of both sides: (tables, length) each
    state,                          # u, delta, t, in and out: length a multiple of STRIP
    double[:, ::1] saved,           # (n_threads, 3 STRIP per open residual connection)
    bint raw=False,
    watch=None,
):
    """Run a program elementwise on given correlations; raw: a single activation's duals."""
    cdef const unsigned char[::1] ops = program.ops
    cdef const double[::1] coefficients = program.coefficients
    cdef const double[:, ::1] x_table, y_table
    cdef double[::1] u, delta, t
    x_table, y_table = tables
    u, delta, t = state
    cdef pairs_job job
    job.count, job.length, job.raw = <int> (ops.shape[0] // sizeof(op)), u.shape[0], raw
    cdef index_t piece = pairs_strip * pairs_together
    cdef index_t q = -1, pieces = (job.length + piece - 1) // piece
    if pieces == 0 or job.count == 0:
        return
    job.ops, job.coefficients = <const op *> &ops[0], line(coefficients)
    job.x_table, job.y_table = matrix(x_table), matrix(y_table)
    job.u, job.delta, job.t = &u[0], &delta[0], &t[0]
    cdef int n_threads = <int> saved.shape[0]
    cdef Watch eye = Watch(watch, pieces)
    cdef watched_call *call = &eye.call
    call.deal(pieces)
    with nogil, parallel(num_threads=n_threads):
        q = call.next(-1)
        while q >= 0:
            dense_pairs(job, q, &saved[threadid(), 0] if saved.shape[1] > 0 else NULL, call[0],
                        threadid())
            q = call.next(q)
        call.wait(threadid())
    eye.finish()


def correlate(const double[::1] a, const double[::1] c, const double[::1] k,
              double[::1] u, double[::1] delta):
    """Correlations and 1 - |u| from variances and covariances; length a multiple of STRIP."""
    if a.shape[0]:
        with nogil:
            dense_correlate(&a[0], &c[0], &k[0], a.shape[0], &u[0], &delta[0])
