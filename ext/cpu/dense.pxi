# The host driver of the dense engine: loops over panels, tiles and strips, and nothing else.
# Included by one stub per CPU level. Formulas are in ext/include, argument rules in _check.py, and the
# records of the calls in engine/cpu/calls.py.

from cython.parallel cimport parallel, prange, threadid
from libc.math cimport INFINITY as inf

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
        const double *k_diagonal, *t_diagonal
        double factor
        destination[T] to
        int kind, slots
        T bump_scale
        bint angular
    cdef cppclass tile_grid[T]:
        const T *x_packed, *y_packed
        index_t i0, i1, j0, j1, rows, columns, from_ "from", to
        T *sums
        index_t count()
    cdef cppclass row_step:
        pass
    cdef cppclass row_job:
        const row_step *steps
        int count
        index_t rows, length
        double d, limit, floor
        const double *from_ "from"
        double *variance, *t, *saved, *table
    cdef cppclass row_result:
        int bad
        double least, most
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
    void dense_pack[T](const side[T]&, index_t, index_t, index_t, index_t, T*)
    index_t dense_tile_size[T](index_t, index_t, const T*)
    index_t dense_scratch[T](index_t, index_t, int, const T*)
    void fill_side[T](const double*, const double*, index_t, int, index_t, bint, T*, side[T]*)
    row_result dense_rows(const row_job&)
    const index_t block_depth "kc::depth"
    const index_t norm_rows, row_block
    bint dense_norms[T](const T*, index_t, index_t, index_t, double*)
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
OP_SIZE, ROW_SIZE = sizeof(op), sizeof(row_step)
DEPTH, ROW_BLOCK = block_depth, row_block
PANEL = {"float32": float_panel, "float64": double_panel}
STRIP = pairs_strip


def norms(const real_t[:, ::1] x, out, int n_threads):
    """Write the Euclidean norm of every row, to the last place; return whether all are finite."""
    cdef index_t n = x.shape[0], d = x.shape[1], i, piece = norm_rows
    cdef int bad = 0
    if n == 0 or d == 0:
        return True
    cdef double *norm = <double *> see(out, sizeof(double), PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE).begin
    cdef Watch eye = Watch(None, n)
    cdef watched_call *call = &eye.call
    piece *= 1 + 1000 // d
    for i in prange(0, n, piece, nogil=True, schedule="static", num_threads=n_threads):
        if call.after(threadid(), d * piece):
            bad += not dense_norms(&x[0, 0], i, min(i + piece, n), d, norm)
    eye.finish()
    return bad == 0


def rows(
    steps,                              # bytes of row_step
    norm,                               # or variances, of n rows
    state,                              # variance, t, two rows per slot, tables; whole ROW_BLOCKs
    int saved, int tables,              # where slots and tables begin in it
    double d, double limit, double floor, double tiny,
):
    """Take rows through the steps of a network.

    Return the first step whose variances are beyond the limit, -1 for none; whether a variance at
    the end is below ``tiny``; and the largest t, infinite where one is no number.
    """
    cdef row_job job
    cdef row_result found
    cdef numbers of_steps = see(steps, 1), of_norm = see(norm, sizeof(double))
    cdef numbers of_state = see(state, sizeof(double), PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
    job.steps, job.count = <const row_step *> of_steps.begin, <int> (of_steps.rows // sizeof(row_step))
    job.rows, job.length = of_norm.rows, of_state.columns
    job.d, job.limit, job.floor = d, limit, floor
    job.from_, job.variance = <const double *> of_norm.begin, <double *> of_state.begin
    job.t = job.variance + job.length
    job.saved = job.variance + saved * job.length
    job.table = job.variance + tables * job.length
    with nogil:
        found = dense_rows(job)
    return -1 if found.bad == job.count else found.bad, found.least < tiny, found.most


def tile_size(real_t[::1] like, index_t rows, index_t columns):
    """Return the numbers in the sums of a tile of that many panels."""
    return dense_tile_size(rows, columns, <const real_t *> NULL)


def scratch_size(real_t[::1] like, index_t rows, index_t columns, int slots):
    """Return the numbers of scratch per thread for tiles of that many panels."""
    return dense_scratch(rows, columns, slots, <const real_t *> NULL)


cdef int open_job(
    x, y, tables, program, sums, target, real_t *room, gram_job[real_t] *job
) except -1:
    cdef numbers x_rows = see(x, sizeof(real_t))
    cdef numbers y_rows = x_rows if y is x else see(y, sizeof(real_t))
    cdef numbers table = see(tables.tables, sizeof(double))
    cdef const double *norm = <const double *> see(tables.norm, sizeof(double)).begin
    cdef const double *k = <const double *> see(tables.k, sizeof(double)).begin
    cdef const double *t = <const double *> see(tables.t, sizeof(double)).begin
    cdef const double *values = <const double *> table.begin
    cdef index_t step = float_panel if real_t is float else double_panel
    cdef index_t first = tables.x, second = tables.y, n = x_rows.rows, m = y_rows.rows
    cdef index_t length = (m + step - 1) // step * step
    cdef int count = <int> table.rows
    open_program(program, &job.program)
    open_target(target, &job.to)
    job.d, job.slots = x_rows.columns, program.slots
    job.kind, job.bump_scale, job.angular = sums.kind, sums.bump, sums.angular
    job.y.rows, job.y.count, job.y.norm = <const real_t *> y_rows.begin, m, norm + second
    fill_side(k + second, values + second, table.columns, count, length, job.angular, room, &job.y)
    if job.to.symmetric:
        job.x = job.y
    else:
        job.x.rows, job.x.count, job.x.norm = <const real_t *> x_rows.begin, n, norm + first
        fill_side(k + first, values + first, table.columns, count, n, job.angular,
                  room + (2 + count) * length, &job.x)
    job.k_diagonal, job.t_diagonal, job.factor = k + first, t + first, target.factor
    return 0


def gram(
    x, y,                       # (n, d) each; y is x when symmetric
    tables,                     # Tables
    program,                    # Program
    sums,                       # Sums
    target,                     # Target
    tiles,                      # Tiles
    real_t[::1] room,           # whose parts Tiles places
    watch=None,
):
    """Compute a Gram matrix. One thread computes a whole tile: n_threads cannot change a bit."""
    cdef gram_job[real_t] job
    cdef tile_grid[real_t] g
    if len(x) == 0 or len(y) == 0:
        return
    cdef real_t *none = NULL
    cdef real_t *x_packed = &room[0]
    cdef real_t *y_packed = x_packed + <index_t> tiles.packed
    cdef real_t *scratch = x_packed + <index_t> tiles.scratch
    open_job(x, y, tables, program, sums, target, x_packed + <index_t> tiles.tables, &job)
    job.to.transposed = tiles.transposed and job.x.count > 1  # a row and a column are the same
    cdef int n_threads = tiles.n_threads
    cdef bint shared, whole, apart = tiles.apart
    cdef bint one = job.x.count == 1 and not job.to.symmetric  # which is not packed
    cdef index_t step = float_panel if real_t is float else double_panel, d = job.d
    cdef index_t x_panels = (job.x.count + step - 1) // step
    cdef index_t y_panels = (job.y.count + step - 1) // step
    cdef index_t bi, i_end, bj = 0, q = -1, c, block = tiles.block, size = tiles.coordinates
    cdef index_t each = tiles.each
    cdef Watch eye = Watch(
        watch, y_panels * (y_panels + 1) // 2 if job.to.symmetric else x_panels * y_panels
    )
    cdef watched_call *call = &eye.call
    whole = size >= d
    g.rows, g.columns, g.y_packed = tiles.rows, tiles.columns, y_packed if apart else none
    g.sums = none if whole else x_packed + <index_t> tiles.waiting
    # Loops whose step is no constant go through objects of Python where they are written as range.
    while bj < y_panels:
        g.j0, g.j1, bi = bj, min(bj + block, y_panels), 0
        i_end = min(x_panels, g.j1) if job.to.symmetric else x_panels
        while bi < i_end:
            g.i0, g.i1, c = bi, min(bi + block, x_panels), 0
            shared = job.to.symmetric and bi == bj
            g.x_packed = y_packed if shared else none if one else x_packed
            while c < d:
                g.from_, g.to = c, min(c + size, d)
                if apart and (bi == 0 or not whole):
                    for q in prange(g.j0, g.j1, nogil=True, schedule="static",
                                    num_threads=n_threads):
                        dense_pack(job.y, d, q, g.from_, g.to,
                                   y_packed + (q - g.j0) * step * (g.to - g.from_))
                if not shared and not one:
                    for q in prange(g.i0, g.i1, nogil=True, schedule="static",
                                    num_threads=n_threads):
                        dense_pack(job.x, d, q, g.from_, g.to,
                                   x_packed + (q - g.i0) * step * (g.to - g.from_))
                call.deal(g.count())
                with nogil, parallel(num_threads=n_threads):
                    q = call.next(-1)
                    while q >= 0:
                        dense_tile(job, g, q, scratch + threadid() * each, call[0], threadid())
                        q = call.next(q)
                    call.wait(threadid())
                eye.finish()
                c += size
            bi += block
        bj += block


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
