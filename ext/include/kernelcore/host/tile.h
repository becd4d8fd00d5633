// A tile of a Gram matrix: reduce over coordinates, repair correlations near 1, run the network, write
// the result where it belongs.
#pragma once

#include "../gram.h"
#include "product.h"
#include "watch.h"

namespace kc {

template <class T>
struct tile_range {
    const T *x_packed, *y_packed;  // first panels of the blocks in hand; or one row of x, and no y
    index_t x_panel, y_panel;      // their numbers
    index_t i0, i1, j0, j1;        // panels of the tile
    index_t from, to;              // coordinates that are packed
};

// The rows of one side from what is known of them in double: `room` holds two arrays of `length`
// numbers, then the tables; past the last row they are zero.
template <class T>
KC_HD void fill_side(const double* k, const double* tables, index_t stride, int count,
                     index_t length, bool angular, T* room, side<T>* s) {
    T *scale = room, *sd = room + length, *table = sd + length;
    const double* norm = s->norm;
    const index_t n = s->count;
    // Each of these loops is one that compilers vectorise.
    for (index_t i = 0; i < n && !angular; i++) scale[i] = T(1);
    for (index_t i = 0; i < n && angular; i++) scale[i] = unit_scale<T>(norm[i]);
    for (index_t i = 0; i < n; i++) sd[i] = T(sqrt(k[i]));
    for (index_t i = n; i < length; i++) scale[i] = sd[i] = 0;
    for (int q = 0; q < count; q++) {
        const double* from = tables + q * stride;
        T* row = table + q * length;
        for (index_t i = 0; i < n; i++) row[i] = T(from[i]);
        for (index_t i = n; i < length; i++) row[i] = 0;
    }
    s->scale = scale, s->sd = sd, s->table = table, s->stride = length;
}

// The numbers in the sums of a tile, and what it needs besides.
template <class V>
KC_HD index_t tile_size(index_t row_panels, index_t column_panels) {
    return row_panels * panel<V> * column_panels * panel<V>;
}
template <class V>
KC_HD index_t tile_scratch(index_t row_panels, index_t column_panels, int slots) {
    return tile_size<V>(row_panels, column_panels) + (3 + 3 * slots) * column_panels * panel<V>;
}

// delta from u for row i of a strip; returns how many copies of row i it found, in `copies`.
template <class V>
KC_HD int begin_row(const gram_job<real_of<V>>& job, index_t i, index_t first, index_t length,
                    strip<real_of<V>> s, real_of<V>* copies) {
    using T = real_of<V>;
    constexpr int width = value<V>::width;
    const V zero(0), threshold(near_threshold<T>);
    const bool null = job.x.scale[i] == T(0);
    int found = 0;
    for (index_t at = 0; at < length; at += width) {
        const correlation<V> r = far_correlation(load<V>(s.u + at));
        store<V>(s.u + at, r.u);
        store<V>(s.delta + at, r.delta);
        store<V>(s.t + at, zero);
        if (!null && !any(r.delta < threshold)) continue;
        for (int k = 0; k < width && first + at + k < job.y.count; k++) {
            const index_t j = first + at + k, c = at + k;
            if (!is_near(job, i, j, s.delta[c])) continue;
            const bool itself = job.to.symmetric && i == j;
            const repaired<T> near =
                itself ? repaired<T>{{T(1), T(0)}, true} : repair<V>(job, i, j, s.u[c]);
            s.delta[c] = near.c.delta;
            s.u[c] = near.c.u;
            if (near.copy) copies[found++] = T(c);
        }
    }
    return found;
}

// Correlations into values.
template <class V>
KC_HD void scale_row(const real_of<V>* from, real_of<V>* to, real_of<V> sd_i, const real_of<V>* sd,
                     index_t length, real_of<V> factor) {
    for (index_t at = 0; at < length; at += value<V>::width)
        store<V>(to + at, entry_of(load<V>(from + at), V(sd_i), load<V>(sd + at), V(factor)));
}

// Write count values, `step` apart, into the matrix.
template <class T>
KC_HD void write_row(int combine, T* out, const T* values, index_t step, index_t count) {
    switch (combine) {
        case assign:
            for (index_t k = 0; k < count; k++) put(assign, out + k, values[k * step]);
            break;
        case add_to:
            for (index_t k = 0; k < count; k++) put(add_to, out + k, values[k * step]);
            break;
        case multiply_by:
            for (index_t k = 0; k < count; k++) put(multiply_by, out + k, values[k * step]);
            break;
    }
}

// Write the tile's values into the matrix, and when symmetric into the other half, in square blocks.
template <class V>
KC_HD void write_tile(const destination<real_of<V>>& to, real_of<V>* out, const real_of<V>* values,
                      index_t stride, index_t i0, index_t i1, index_t j0, index_t j1) {
    constexpr int width = value<V>::width;
    if (to.transposed) {
        for (index_t j = j0; j < j1; j++)
            write_row(to.combine, out + j * to.stride + i0, values + (j - j0), stride, i1 - i0);
        return;
    }
    for (index_t i = i0; i < i1; i++) {
        const index_t from = to.symmetric && i > j0 ? i : j0;
        if (from < j1)
            write_row(to.combine, out + i * to.stride + from,
                      values + (i - i0) * stride + (from - j0), 1, j1 - from);
    }
    if (!to.symmetric) return;
    for (index_t j = j0; j < j1; j += width) {
        const index_t j_end = j + width < j1 ? j + width : j1;
        index_t i = i0;
        for (; to.combine == assign && j + width <= j1 && i + width <= i1 && i + width <= j;
             i += width) {
            V block[width];
    KC_UNROLL for (int k = 0; k < width; k++)
                block[k] = load<V>(values + (i - i0 + k) * stride + (j - j0));
            transpose(block);
            KC_UNROLL for (int k = 0; k < width; k++)
                store<V>(out + (j + k) * to.stride + i, block[k]);
        }
        for (index_t c = j; c < j_end; c++) {
            const index_t end = i1 < c ? i1 : c;
            if (i < end)
                write_row(to.combine, out + c * to.stride + i,
                          values + (i - i0) * stride + (c - j0), stride, end - i);
        }
    }
}

// Run the program on all rows of a tile; false where the watch (watch.h) stopped it between two rows.
template <class V, output want, class Watch>
KC_HD bool run_rows(const gram_job<real_of<V>>& job, const tile_range<real_of<V>>& r,
                    real_of<V>* values, real_of<V>* tangents, real_of<V>* rest, index_t stride,
                    Watch& watch) {
    using T = real_of<V>;
    const index_t i0 = r.i0 * panel<V>, j0 = r.j0 * panel<V>;
    const index_t i1 = r.i1 * panel<V> < job.x.count ? r.i1 * panel<V> : job.x.count;
    for (index_t i = i0; i < i1; i++) {
        // Panels left of the diagonal hold nothing.
        const index_t diagonal = i / panel<V> * panel<V> - j0;
        const index_t start = job.to.symmetric && diagonal > 0 ? diagonal : 0;
        const index_t first = j0 + start, length = stride - start;
        if (!watch.after(job.program.count * length)) return false;
        T* row = values + (i - i0) * stride + start;
        T* copies = rest + 2 * stride;
        const strip<T> s{row, rest, rest + stride};
        const int found = job.angular ? begin_row<V>(job, i, first, length, s, copies) : 0;
        walk<V, want>(job.program, row_of<V>{job.x.table + i, job.x.stride},
                      column_of<V>{job.y.table + first, job.y.stride}, length, s,
                      rest + 3 * stride);
        const T sd = job.x.sd[i], factor = job.to.factor;
        if (job.to.k) {
            scale_row<V>(row, row, sd, job.y.sd + first, length, factor);
            for (int k = 0; k < found; k++) row[index_t(copies[k])] = T(job.factor * job.k_diagonal[i]);
        }
        if (job.to.t) {
            // Alone, the tangent kernel takes the place of the covariances.
            T* to = job.to.k ? tangents + (i - i0) * stride + start : row;
            scale_row<V>(s.t, to, sd, job.y.sd + first, length, factor);
            for (int k = 0; k < found; k++) to[index_t(copies[k])] = T(job.factor * job.t_diagonal[i]);
        }
    }
    return true;
}

template <class V, int kind>
KC_HD void reduce(const gram_job<real_of<V>>& job, const tile_range<real_of<V>>& r,
                  real_of<V>* values, index_t stride) {
    const reducer<V, kind> f{V(job.bump_scale)};
    const index_t size = r.to - r.from;
    constexpr int step = panel<V>;
    for (index_t j = r.j0; !r.y_packed && j < r.j1; j++) {
        const index_t first = j * step, rows = job.y.count - first;
        const real_of<V>*y = job.y.rows + first * job.d, *scale = job.y.scale + first;
        real_of<V>* out = values + (j - r.j0) * step;
        if (rows < step)
            reduce_panel<V, false>(f, r.x_packed, y, scale, rows, job.d, out);
        else
            reduce_panel<V, true>(f, r.x_packed, y, scale, rows, job.d, out);
    }
    if (!r.y_packed) return;
    reduce_tile<V>(f, r.x_packed - r.x_panel * step * size, r.y_packed - r.y_panel * step * size,
                   size, r.from == 0, r.i0, r.i1, r.j0, r.j1, job.x.count, job.y.count,
                   job.to.symmetric, values, stride);
}

// Add the coordinates in hand to the sums in `values`, and after the last ones finish the tile.
template <class V, class Watch>
KC_HD void compute_tile(const gram_job<real_of<V>>& job, const tile_range<real_of<V>>& r,
                        real_of<V>* values, real_of<V>* scratch, Watch& watch) {
    using T = real_of<V>;
    const index_t stride = (r.j1 - r.j0) * panel<V>;
    T* tangents = scratch;
    T* rest = tangents + tile_size<V>(r.i1 - r.i0, r.j1 - r.j0);
    switch (job.kind) {
        case sum_of_products: reduce<V, sum_of_products>(job, r, values, stride); break;
        case sum_of_squares: reduce<V, sum_of_squares>(job, r, values, stride); break;
        case sum_of_sizes: reduce<V, sum_of_sizes>(job, r, values, stride); break;
        case product_of_bumps: reduce<V, product_of_bumps>(job, r, values, stride); break;
    }
    if (r.to < job.d) return;
    const bool done =
        job.to.t
            ? run_rows<V, output::tangent>(job, r, values, tangents, rest, stride, watch)
            : run_rows<V, output::covariance>(job, r, values, tangents, rest, stride, watch);
    if (!done) return;
    const index_t i0 = r.i0 * panel<V>, j0 = r.j0 * panel<V>;
    const index_t i1 = r.i1 * panel<V> < job.x.count ? r.i1 * panel<V> : job.x.count;
    const index_t j1 = r.j1 * panel<V> < job.y.count ? r.j1 * panel<V> : job.y.count;
    if (job.to.k) write_tile<V>(job.to, job.to.k, values, stride, i0, i1, j0, j1);
    if (job.to.t)
        write_tile<V>(job.to, job.to.t, job.to.k ? tangents : values, stride, i0, i1, j0, j1);
}

}  // namespace kc
