# The host driver of derivatives by rows: loops over the rows of a tile, and nothing else.
# Included by one stub per CPU level. Formulas are in ext/include, argument rules in _check.py.

include "types.pxi"
include "watch.pxi"

cdef extern from "slopes.h" namespace "kc" nogil:
    cdef cppclass slope_step:
        pass
    cdef cppclass slopes_job:
        const slope_step *steps
        int count
        const double *x
        const double *y
        double *state
        double *room
        index_t rows, columns
        bint tangent, fresh
        double by_s
        int first, last
    const index_t slopes_width
    void slopes_row(const slopes_job&, index_t)
    void slopes_series(const double*, const double*, const double*, int, const double*, double*,
                       index_t, index_t)

STEP_SIZE, WIDTH = sizeof(slope_step), slopes_width


def walk(
    const unsigned char[::1] steps,  # bytes of slope_step
    const double[:, :, ::1] x,       # (steps, numbers, rows)
    const double[:, :, ::1] y,       # (steps, numbers, columns)
    double[:, :, ::1] state,         # (6, rows, columns): K, T, derivatives; columns in WIDTHs
    double[:, ::1] room,             # (6, columns)
    bint tangent,
    bint fresh, double by_s,         # whether there is K alone, and its derivative by s
    int first, int last,             # which arrays are kept, in the first places
    watch=None,
):
    """Take a tile through steps, in place; without ``tangent`` T and its derivatives stay."""
    cdef slopes_job job
    cdef index_t i
    job.count = <int> (steps.shape[0] // <index_t> sizeof(slope_step))
    job.rows, job.columns, job.tangent = state.shape[1], state.shape[2], tangent
    job.fresh, job.by_s, job.first, job.last = fresh, by_s, first, last
    if job.rows == 0 or job.columns == 0:
        return
    if job.count > 0:  # else nobody reads them
        job.steps = <const slope_step *> &steps[0]
        job.x, job.y = &x[0, 0, 0], &y[0, 0, 0]
    job.state, job.room = &state[0, 0, 0], &room[0, 0]
    cdef Watch eye = Watch(watch, job.rows)
    with nogil:
        for i in range(job.rows):
            if not eye.call.after(0, job.count * job.columns):
                break
            slopes_row(job, i)
            eye.call.done(1)
    eye.finish()


def series(
    const double[:, ::1] a,     # (rows, orders)
    const double[:, ::1] r,     # (rows, orders)
    const double[:, :, ::1] b,  # (columns in WIDTHs, orders, WIDTH)
    const double[:, ::1] u,     # (rows, columns): correlations
    double[:, :, ::1] out,      # (5, rows, columns)
    watch=None,
):
    """Write sums over orders: of a b u^k, its slope, half its bend; of r b u^k, its slope."""
    cdef index_t q, n = u.shape[0], m = u.shape[1]
    cdef int count = <int> a.shape[1]
    if n == 0 or m == 0 or count == 0:
        return
    cdef Watch eye = Watch(watch, b.shape[0])
    with nogil:
        for q in range(b.shape[0]):
            if not eye.call.after(0, count * n):
                break
            slopes_series(&a[0, 0], &r[0, 0], &b[q, 0, 0], count, &u[0, q * slopes_width],
                          &out[0, 0, q * slopes_width], n, m)
            eye.call.done(1)
    eye.finish()
