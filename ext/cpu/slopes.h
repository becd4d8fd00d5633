// What the Cython driver calls: the headers at this machine's vector width.
#pragma once

#include "kernelcore/slopes.h"
#include "watch.h"

namespace kc {

// Tables of a tile, (steps, numbers, rows or columns), and its state, (6, rows, columns).
struct slopes_job {
    const slope_step* steps;
    int count;
    const double *x, *y;
    double* state;
    index_t rows, columns;
    bool tangent;
};
constexpr index_t slopes_width = value<native<double>>::width;
inline void slopes_row(const slopes_job& job, index_t i) {
    using V = native<double>;
    double* state = job.state + i * job.columns;
    const index_t apart = job.rows * job.columns;
    if (job.tangent)
        walk_slopes<V, true>(job.steps, job.count, job.x + i, job.rows, job.y, job.columns, state,
                             apart, job.columns);
    else
        walk_slopes<V, false>(job.steps, job.count, job.x + i, job.rows, job.y, job.columns, state,
                              apart, job.columns);
}

}  // namespace kc
