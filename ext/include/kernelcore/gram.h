// A Gram matrix of rows: what both sides bring, and how an entry begins.
#pragma once

#include "entry.h"
#include "product.h"
#include "program.h"

namespace kc {

// The rows of one side. Row i has tables at table[k * stride + i]; the tables of the second side can
// be read up to a whole panel.
template <class T>
struct side {
    const T* rows;  // (count, d), as the user gave them
    index_t count;
    const T* scale;      // networks: 1/norm, 0 for a zero row; distances: 1
    const double* norm;  // equal norms and delta = 0: a copy
    const T* table;
    index_t stride;
    const T* sd;  // of the output, by which correlations are multiplied
};

// One Gram matrix.
template <class T>
struct gram_job {
    side<T> x, y;
    index_t d;
    operations<T> program;
    const double *k_diagonal, *t_diagonal;  // of x: what copies get, times the factor
    double factor;
    destination<T> to;
    int kind, slots;  // reduction, open residual connections
    T bump_scale;
    bool angular;  // the sums are correlations, to be repaired near 1
};

// 1/norm; a norm whose reciprocal overflows counts as zero.
template <class T>
KC_HD T unit_scale(double norm) {
    const double least = 2.0 / double(limits<T>::largest);
    return norm > least ? T(1.0 / norm) : T(0);
}

// Whether the correlation of rows i and j is computed again, from the rows themselves: they are close,
// or both are zero.
template <class T>
KC_HD bool is_near(const gram_job<T>& job, index_t i, index_t j, T delta) {
    return delta < near_threshold<T> || (job.x.scale[i] == T(0) && job.y.scale[j] == T(0));
}
template <class T>
struct repaired {
    correlation<T> c;
    bool copy;  // the value of the diagonal is due
};
template <class V>
KC_HD repaired<real_of<V>> repair(const gram_job<real_of<V>>& job, index_t i, index_t j,
                                  real_of<V> u) {
    using T = real_of<V>;
    const T x = job.x.scale[i], y = job.y.scale[j];
    const bool opposite = u < T(0);
    const T delta = x == T(0) && y == T(0) ? T(0)
                                           : chord<V>(job.x.rows + i * job.d, x,
                                                      job.y.rows + j * job.d, y, job.d, opposite);
    const correlation<T> near = near_correlation(delta, opposite);
    return {near, is_copy(near, job.x.norm[i], job.y.norm[j])};
}

}  // namespace kc
