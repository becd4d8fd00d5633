// What the Cython driver calls: the headers at this machine's vector width.
#pragma once

#include "kernelcore/slopes.h"
#include "watch.h"

namespace kc {

// Tables of a tile, (steps, numbers, rows or columns), and its state, (6, rows, columns). A tile that is
// fresh has K, and constants else: `by_s` for the derivative by s, and zeros. Arrays [first, last) of the
// state are written, from the first of its places on; `room` has six arrays of a row.
struct slopes_job {
    const slope_step* steps;
    int count;
    const double *x, *y;
    double *state, *room;
    index_t rows, columns;
    bool tangent, fresh;
    double by_s;
    int first, last;
};
constexpr index_t slopes_width = value<native<double>>::width;
inline void slopes_row(const slopes_job& job, index_t i) {
    using V = native<double>;
    const index_t n = job.columns, apart = job.rows * n;
    double *state = job.state + i * n, *room = job.room;
    for (int q = 0; q < 6; q++) {
        const bool given = q == 0 || !job.fresh;
        const double constant = q == 1 ? job.by_s : 0.0;
        for (index_t at = 0; at < n; at++)
            room[q * n + at] = given ? state[q * apart + at] : constant;
    }
    if (job.tangent)
        walk_slopes<V, true>(job.steps, job.count, job.x + i, job.rows, job.y, n, room, n, n);
    else
        walk_slopes<V, false>(job.steps, job.count, job.x + i, job.rows, job.y, n, room, n, n);
    for (int q = job.first; q < job.last; q++)
        for (index_t at = 0; at < n; at++) state[(q - job.first) * apart + at] = room[q * n + at];
}
// A vector of columns, whose orders follow each other in b, for all rows.
inline void slopes_series(const double* a, const double* r, const double* b, int count,
                          const double* u, double* out, index_t rows, index_t stride) {
    using V = native<double>;
    const index_t apart = rows * stride;
    index_t i = 0;
    for (; i + 2 <= rows; i += 2)
        bent_series<V, 2>(a + i * count, r + i * count, b, count, u + i * stride, out + i * stride,
                          apart, stride);
    if (i < rows)
        bent_series<V, 1>(a + i * count, r + i * count, b, count, u + i * stride, out + i * stride,
                          apart, stride);
}

}  // namespace kc
