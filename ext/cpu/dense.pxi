# The host driver of the dense engine: loops over panels, tiles and strips, and nothing else.
# Included by one stub per CPU level. Formulas are in ext/include, argument rules in _check.py, and the
# records of the calls in engine/cpu/calls.py.

from cython.parallel cimport parallel, prange, threadid

include "types.pxi"
include "watch.pxi"
include "records.pxi"

cdef extern from "dense.h" namespace "kc" nogil:
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
        operations[T] program
        const T *k_diagonal, *t_diagonal
        destination[T] to
        int kind, slots
        T bump_scale
        bint angular
    cdef cppclass tile_grid[T]:
        const T *x_packed, *y_packed
        index_t i0, i1, j0, j1, rows, columns
        index_t count()
    cdef cppclass pairs_job:
        operations[double] program
        const double *x_table, *y_table
        index_t length
        double *u, *delta, *t
        bint raw
    const index_t pairs_strip, pairs_together
    const int float_panel "kc::panel<kc::native<float>>"
    const int double_panel "kc::panel<kc::native<double>>"
    void dense_tile[T](const gram_job[T]&, const tile_grid[T]&, index_t, T*, watched_call&, int)
    void dense_pack[T](const side[T]&, index_t, index_t, T*)
    index_t dense_scratch[T](index_t, index_t, int, const T*)
    double dense_norm[T](const T*, index_t)
    void dense_pairs(const pairs_job&, index_t, double*, watched_call&, int)
    void dense_correlate(const double*, const double*, const double*, index_t, double*, double*)
    void dense_interpolate(const double*, index_t, index_t, const double*, const long long*,
                           index_t, index_t, double*)
    const int most_terms

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
PANEL = {"float32": float_panel, "float64": double_panel}
STRIP = pairs_strip


def norms(const real_t[:, ::1] x, double[::1] out, int n_threads):
    """Write the Euclidean norm of every row, to the last place; non-finite where the row is."""
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
    """Return the numbers of scratch per thread for tiles of that many panels."""
    return dense_scratch(rows, columns, slots, <const real_t *> NULL)


cdef int open_side(rows, side[real_t] *s) except -1:
    cdef const real_t[:, ::1] x = rows.x, tables = rows.tables
    cdef const real_t[::1] scale = rows.scale, sd = rows.sd
    cdef const double[::1] norm = rows.norm
    s.rows, s.count = matrix(x), x.shape[0]
    s.scale, s.norm, s.sd = line(scale), line(norm), line(sd)
    s.table, s.stride = matrix(tables), tables.shape[1]
    return 0


cdef int open_job(x, y, program, sums, target, diagonals, gram_job[real_t] *job) except -1:
    cdef const real_t[::1] k_diagonal, t_diagonal
    k_diagonal, t_diagonal = diagonals
    open_side(x, &job.x)
    open_side(y, &job.y)
    open_program(program, &job.program)
    open_target(target, &job.to)
    job.d, job.slots = x.x.shape[1], program.slots
    job.k_diagonal, job.t_diagonal = line(k_diagonal), line(t_diagonal)
    job.kind, job.bump_scale, job.angular = sums.kind, sums.bump, sums.angular
    return 0


def gram(
    x, y,                       # Rows; y are x's own when symmetric
    program,                    # Program
    sums,                       # Sums
    target,                     # Target
    diagonals,                  # of k and t, which entries of equal rows get
    tiles,                      # Tiles
    real_t[:, ::1] scratch,     # (n_threads, scratch_size)
    watch=None,
):
    """Compute a Gram matrix. One thread computes a whole tile: n_threads cannot change a bit."""
    cdef gram_job[real_t] job
    cdef tile_grid[real_t] g
    if len(x.x) == 0 or len(y.x) == 0:
        return
    open_job(x, y, program, sums, target, diagonals, &job)
    cdef real_t[::1] x_packed = x.packed, y_packed = y.packed
    cdef int n_threads = <int> scratch.shape[0]
    cdef bint shared
    cdef index_t step = float_panel if real_t is float else double_panel, d = job.d
    cdef index_t x_panels = (job.x.count + step - 1) // step
    cdef index_t y_panels = (job.y.count + step - 1) // step
    cdef index_t bi, bj, q = -1, block = tiles.block
    cdef Watch eye = Watch(
        watch, y_panels * (y_panels + 1) // 2 if job.to.symmetric else x_panels * y_panels
    )
    cdef watched_call *call = &eye.call
    g.rows, g.columns, g.y_packed = tiles.rows, tiles.columns, &y_packed[0]
    for bj in range(0, y_panels, block):
        g.j0, g.j1 = bj, min(bj + block, y_panels)
        for q in prange(g.j0, g.j1, nogil=True, schedule="static", num_threads=n_threads):
            dense_pack(job.y, d, q, &y_packed[0] + (q - g.j0) * step * d)
        for bi in range(0, min(x_panels, g.j1) if job.to.symmetric else x_panels, block):
            g.i0, g.i1 = bi, min(bi + block, x_panels)
            shared = job.to.symmetric and bi == bj
            g.x_packed = &y_packed[0] if shared else &x_packed[0]
            if not shared:
                for q in prange(g.i0, g.i1, nogil=True, schedule="static", num_threads=n_threads):
                    dense_pack(job.x, d, q, &x_packed[0] + (q - g.i0) * step * d)
            call.deal(g.count())
            with nogil, parallel(num_threads=n_threads):
                q = call.next(-1)
                while q >= 0:
                    dense_tile(job, g, q, &scratch[threadid(), 0], call[0], threadid())
                    q = call.next(q)
                call.wait(threadid())
            eye.finish()


def pairs(
    program,                        # Program
    tables,                         # of both sides: (tables, length) each
    state,                          # u, delta, t, in and out: length a multiple of STRIP
    double[:, ::1] saved,           # (n_threads, 3 STRIP per open residual connection)
    bint raw=False,
    watch=None,
):
    """Run a program elementwise on given correlations; raw: a single activation's duals."""
    cdef const double[:, ::1] x_table, y_table
    cdef double[::1] u, delta, t
    x_table, y_table = tables
    u, delta, t = state
    cdef pairs_job job
    open_program(program, &job.program)
    job.length, job.raw = u.shape[0], raw
    cdef index_t piece = pairs_strip * pairs_together
    cdef index_t q = -1, pieces = (job.length + piece - 1) // piece
    if pieces == 0 or job.program.count == 0:
        return
    job.x_table, job.y_table = matrix(x_table), matrix(y_table)
    job.u, job.delta, job.t = &u[0], &delta[0], &t[0]
    cdef int n_threads = <int> saved.shape[0]
    cdef Watch eye = Watch(watch, pieces, pieces)
    cdef watched_call *call = &eye.call
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
    """Write u and 1 - |u| for variances and covariances; their length is a multiple of STRIP."""
    if a.shape[0]:
        with nogil:
            dense_correlate(&a[0], &c[0], &k[0], a.shape[0], &u[0], &delta[0])


MOST_TERMS = most_terms


def interpolate(const double[:, ::1] polynomials, const double[::1] t, const long long[::1] rows,
                double[:, ::1] out):
    """Write all polynomials at t[k] into column rows[k]; there are at most MOST_TERMS terms."""
    if rows.shape[0]:
        with nogil:
            dense_interpolate(&polynomials[0, 0], polynomials.shape[0], polynomials.shape[1],
                              &t[0], &rows[0], rows.shape[0], out.shape[1], &out[0, 0])
