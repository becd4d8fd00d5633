// A tile of a Gram matrix: reduce over coordinates, repair beside the diagonal, run the network,
// write the result where it belongs.
#pragma once

#include "product.h"
#include "program.h"

namespace kc {

enum combination : int { assign = 0, add_to = 1, multiply_by = 2 };

// One Gram matrix. Row i of x has tables at x_table[k * x_stride + i]; likewise y, whose tables
// are readable up to a whole panel past its end.
template <class T>
struct gram_job {
    const T *x, *y;                 // (n, d), (m, d), as the user gave them
    const T *x_scale, *y_scale;     // networks: 1/norm, 0 for a zero row; distances: 1
    const double *x_norm, *y_norm;  // equal norms and delta = 0: a copy
    index_t n, m, d;
    const op* ops;
    int count;
    const T* coefficients;
    const T *x_table, *y_table;
    index_t x_stride, y_stride;
    const T *x_sd, *y_sd;              // of the output, by which correlations are multiplied
    const T *k_diagonal, *t_diagonal;  // of x: what copies get
    T *k_out, *t_out;                  // (n, m) each, or null when not wanted
    index_t out_stride;
    T factor;
    int combine, kind, slots;  // combination, reduction, open residual connections
    T bump_scale;
    bool symmetric;  // y is x: entries j >= i, mirrored
    bool angular;    // the sums are correlations: repair them beside the diagonal
};

template <class T>
struct tile_range {
    const T *x_packed, *y_packed;  // first panels of the blocks in hand
    index_t x_panel, y_panel;      // their numbers
    index_t i0, i1, j0, j1;        // panels of the tile
};

template <class V>
KC_HD index_t tile_scratch(index_t row_panels, index_t column_panels, int slots) {
    const index_t columns = column_panels * panel<V>;
    return 2 * row_panels * panel<V> * columns + (3 + 3 * slots) * columns;
}

// |x/|x| - sign y/|y||^2 / 2 = 1 - |u|, from the rows themselves. Each coordinate of a unit row
// is off by 2 units of rounding, so a scaled copy leaves at most 4 epsilon^2: that is zero.
template <class V>
KC_HD real_of<V> chord(const real_of<V>* x, real_of<V> x_scale, const real_of<V>* y,
                       real_of<V> y_scale, index_t d, bool opposite) {
    using T = real_of<V>;
    constexpr int width = value<V>::width;
    const T to = opposite ? -y_scale : y_scale;
    V sum(T(0));
    index_t q = 0;
    for (; q + width <= d; q += width) {
        const V e = load<V>(x + q) * V(x_scale) - load<V>(y + q) * V(to);
        sum = fma(e, e, sum);
    }
    T parts[width], total = 0;
    store<V>(parts, sum);
    for (int k = 0; k < width; k++) total += parts[k];
    for (; q < d; q++) {
        const T e = x[q] * x_scale - y[q] * to;
        total = fma(e, e, total);
    }
    const T delta = total / 2, eps = limits<T>::epsilon;
    return delta <= 4 * eps * eps ? 0 : delta;
}

// Below this 1 - |u| is recomputed. At the threshold kappa0' = 1/(pi sqrt(2 delta)) = 1.8: what the
// product's rounding does to the NTK is then no larger beside the diagonal than far from it.
template <class T>
inline constexpr T near_threshold = T(1) / 64;

// delta from u for row i of a strip; returns how many copies of row i it found, in `copies`.
template <class V>
KC_HD int begin_row(const gram_job<real_of<V>>& job, index_t i, index_t first, index_t length,
                    strip<real_of<V>> s, real_of<V>* copies) {
    using T = real_of<V>;
    constexpr int width = value<V>::width;
    const V one(1), zero(0), threshold(near_threshold<T>);
    const bool null = job.x_scale[i] == T(0);
    int found = 0;
    for (index_t at = 0; at < length; at += width) {
        const V u = load<V>(s.u + at);
        const V size = minimum(abs(u), one);
        const V delta = one - size;
        store<V>(s.u + at, with_sign(size, u));
        store<V>(s.delta + at, delta);
        store<V>(s.t + at, zero);
        if (!null && !any(delta < threshold)) continue;
        for (int k = 0; k < width && first + at + k < job.m; k++) {
            const index_t j = first + at + k, c = at + k;
            const bool nulls = null && job.y_scale[j] == T(0);
            if (!nulls && !(s.delta[c] < near_threshold<T>)) continue;
            const bool opposite = s.u[c] < T(0);
            const T d = nulls ? T(0)
                              : chord<V>(job.x + i * job.d, job.x_scale[i], job.y + j * job.d,
                                         job.y_scale[j], job.d, opposite);
            s.delta[c] = d;
            s.u[c] = opposite ? d - T(1) : T(1) - d;
            if (d == T(0) && !opposite && job.x_norm[i] == job.y_norm[j]) copies[found++] = T(c);
        }
    }
    return found;
}

// factor (sd_i sd_j) correlations -> values; in this order entry (j, i) has the bits of (i, j).
template <class V>
KC_HD void scale_row(const real_of<V>* from, real_of<V>* to, real_of<V> sd_i, const real_of<V>* sd,
                     index_t length, real_of<V> factor) {
    for (index_t at = 0; at < length; at += value<V>::width)
        store<V>(to + at, load<V>(from + at) * (V(sd_i) * load<V>(sd + at)) * V(factor));
}

// count values, `step` apart, into the matrix.
template <class T>
KC_HD void write_row(const gram_job<T>& job, T* out, const T* values, index_t step, index_t count) {
    if (job.combine == assign)
        for (index_t k = 0; k < count; k++) out[k] = values[k * step];
    else if (job.combine == add_to)
        for (index_t k = 0; k < count; k++) out[k] += values[k * step];
    else
        for (index_t k = 0; k < count; k++) out[k] *= values[k * step];
}

// The tile's values into the matrix, and when symmetric into the other half, in square blocks.
template <class V>
KC_HD void write_tile(const gram_job<real_of<V>>& job, real_of<V>* out, const real_of<V>* values,
                      index_t stride, index_t i0, index_t i1, index_t j0, index_t j1) {
    constexpr int width = value<V>::width;
    for (index_t i = i0; i < i1; i++) {
        const index_t from = job.symmetric && i > j0 ? i : j0;
        if (from < j1)
            write_row(job, out + i * job.out_stride + from,
                      values + (i - i0) * stride + (from - j0), 1, j1 - from);
    }
    if (!job.symmetric) return;
    for (index_t j = j0; j < j1; j += width) {
        const index_t j_end = j + width < j1 ? j + width : j1;
        index_t i = i0;
        for (; job.combine == assign && j + width <= j1 && i + width <= i1 && i + width <= j;
             i += width) {
            V block[width];
    KC_UNROLL for (int k = 0; k < width; k++)
                block[k] = load<V>(values + (i - i0 + k) * stride + (j - j0));
            transpose(block);
            KC_UNROLL for (int k = 0; k < width; k++)
                store<V>(out + (j + k) * job.out_stride + i, block[k]);
        }
        for (index_t c = j; c < j_end; c++) {
            const index_t end = i1 < c ? i1 : c;
            if (i < end)
                write_row(job, out + c * job.out_stride + i,
                          values + (i - i0) * stride + (c - j0), stride, end - i);
        }
    }
}

template <class V, output want>
KC_HD void run_rows(const gram_job<real_of<V>>& job, const tile_range<real_of<V>>& r,
                    real_of<V>* values, real_of<V>* tangents, real_of<V>* rest, index_t stride) {
    using T = real_of<V>;
    const index_t i0 = r.i0 * panel<V>, j0 = r.j0 * panel<V>;
    const index_t i1 = r.i1 * panel<V> < job.n ? r.i1 * panel<V> : job.n;
    for (index_t i = i0; i < i1; i++) {
        // Panels left of the diagonal hold nothing.
        const index_t diagonal = i / panel<V> * panel<V> - j0;
        const index_t start = job.symmetric && diagonal > 0 ? diagonal : 0;
        const index_t first = j0 + start, length = stride - start;
        T* row = values + (i - i0) * stride + start;
        T* copies = rest + 2 * stride;
        const strip<T> s{row, rest, rest + stride};
        const int found = job.angular ? begin_row<V>(job, i, first, length, s, copies) : 0;
        walk<V, want>(job.ops, job.count, job.coefficients,
                      row_of<V>{job.x_table + i, job.x_stride},
                      column_of<V>{job.y_table + first, job.y_stride}, length, s,
                      rest + 3 * stride);
        const T sd = job.x_sd[i];
        if (job.t_out) {
            // Alone, the tangent kernel takes the place of the covariances.
            T* to = job.k_out ? tangents + (i - i0) * stride + start : row;
            if (job.k_out) scale_row<V>(row, row, sd, job.y_sd + first, length, job.factor);
            scale_row<V>(s.t, to, sd, job.y_sd + first, length, job.factor);
            for (int k = 0; k < found; k++) to[index_t(copies[k])] = job.t_diagonal[i];
        } else {
            scale_row<V>(row, row, sd, job.y_sd + first, length, job.factor);
        }
        if (job.k_out)
            for (int k = 0; k < found; k++) row[index_t(copies[k])] = job.k_diagonal[i];
    }
}

template <class V, int kind>
KC_HD void reduce(const gram_job<real_of<V>>& job, const tile_range<real_of<V>>& r,
                  real_of<V>* values, index_t stride) {
    const reducer<V, kind> f{V(job.bump_scale)};
    constexpr int step = panel<V>;
    reduce_tile<V>(f, r.x_packed - r.x_panel * step * job.d, r.y_packed - r.y_panel * step * job.d,
                   job.d, r.i0, r.i1, r.j0, r.j1, job.symmetric, values, stride);
}

template <class V>
KC_HD void compute_tile(const gram_job<real_of<V>>& job, const tile_range<real_of<V>>& r,
                        real_of<V>* scratch) {
    using T = real_of<V>;
    const index_t stride = (r.j1 - r.j0) * panel<V>;
    T* values = scratch;
    T* tangents = values + (r.i1 - r.i0) * panel<V> * stride;
    T* rest = tangents + (r.i1 - r.i0) * panel<V> * stride;
    switch (job.kind) {
        case sum_of_products: reduce<V, sum_of_products>(job, r, values, stride); break;
        case sum_of_squares: reduce<V, sum_of_squares>(job, r, values, stride); break;
        case sum_of_sizes: reduce<V, sum_of_sizes>(job, r, values, stride); break;
        case product_of_bumps: reduce<V, product_of_bumps>(job, r, values, stride); break;
    }
    if (job.t_out)
        run_rows<V, output::tangent>(job, r, values, tangents, rest, stride);
    else
        run_rows<V, output::covariance>(job, r, values, tangents, rest, stride);
    const index_t i0 = r.i0 * panel<V>, j0 = r.j0 * panel<V>;
    const index_t i1 = r.i1 * panel<V> < job.n ? r.i1 * panel<V> : job.n;
    const index_t j1 = r.j1 * panel<V> < job.m ? r.j1 * panel<V> : job.m;
    if (job.k_out) write_tile<V>(job, job.k_out, values, stride, i0, i1, j0, j1);
    if (job.t_out)
        write_tile<V>(job, job.t_out, job.k_out ? tangents : values, stride, i0, i1, j0, j1);
}

}  // namespace kc
