// Kernels on cyclic signals (../cyclic.h), for one x and a vector of y's: all positions k of an offset
// stand in a strip: products, sums over windows, then the program that is h. Nothing leaves the
// first-level cache but the result.
#pragma once

#include "../cyclic.h"
#include "tile.h"

namespace kc {

// A kernel of patches, tabulated for all that differ, with the places of x's and y's in the table.
template <class T>
struct cyclic_table {
    const T* values;
    index_t stride;
    const int *x, *y;  // (d, n), (d, m): row, and column
    index_t n, m, d, offsets;
    const T* weights;  // c' of each offset
    T factor;
};

// Entries of scratch for strips: products, windows, and three arrays of both A and B.
template <class V>
KC_HD index_t strip_scratch(const cyclic_job<real_of<V>>& job) {
    return (2 * (job.positions + job.patch - 1) + 6 * job.positions) * value<V>::width;
}

// to[k] = sum of the `lead` < 8 products x[k] y[k] .. for k < count, out of registers: pairs of
// neighbours, and the last one alone where lead is odd. `products`, if wanted, gets them all.
template <class V, int lead>
KC_HD void leading_windows(const real_of<V>* x, const real_of<V>* y, index_t count,
                           real_of<V>* products, real_of<V>* to) {
    constexpr int width = value<V>::width, last = lead - 1;
    V pair[7], p(0);  // pair[j] = products k + j and k + j + 1
    KC_UNROLL for (int k = 0; k < last; k++) {
        const V next = V(x[k]) * load<V>(y + k * width);
        if (products) store<V>(products + k * width, next);
        if (k > 0) pair[k - 1] = p + next;
        p = next;
    }
    for (index_t k = 0; k < count; k++) {
        const V next = V(x[k + last]) * load<V>(y + (k + last) * width);
        if (products) store<V>(products + (k + last) * width, next);
        if constexpr (lead > 1) pair[last - 1] = p + next;
        V sum = lead > 1 ? pair[0] : next;
        KC_UNROLL for (int j = 2; j < last; j += 2) sum = sum + pair[j];
        if constexpr (lead > 1 && lead % 2 == 1) sum = sum + next;
        store<V>(to + k * width, sum);
        KC_UNROLL for (int j = 1; j < last; j++) pair[j - 1] = pair[j];
        p = next;
    }
}

// u[k] = sum over r < patch of x[k+r] y[k+r] for all positions k. The first three bits of `patch`
// are summed in registers; then windows of m make windows of 2m or 2m + 1, bit by bit. That makes
// one or two additions per bit, sums are by halves, and they are the same at every k.
template <class V>
KC_HD void window_products(const cyclic_job<real_of<V>>& job, const real_of<V>* x,
                           const real_of<V>* y, real_of<V>* products, real_of<V>* windows,
                           real_of<V>* u) {
    using T = real_of<V>;
    constexpr int width = value<V>::width;
    int bits = 0;
    while (job.patch >> bits > 7) bits++;
    index_t m = job.patch >> bits;
    const index_t all = job.positions + job.patch;
    T* to = m == job.patch ? u : windows;
    T* keep = job.patch == m << bits ? nullptr : products;
    switch (m) {
        case 1: leading_windows<V, 1>(x, y, all - m, keep, to); break;
        case 2: leading_windows<V, 2>(x, y, all - m, keep, to); break;
        case 3: leading_windows<V, 3>(x, y, all - m, keep, to); break;
        case 4: leading_windows<V, 4>(x, y, all - m, keep, to); break;
        case 5: leading_windows<V, 5>(x, y, all - m, keep, to); break;
        case 6: leading_windows<V, 6>(x, y, all - m, keep, to); break;
        case 7: leading_windows<V, 7>(x, y, all - m, keep, to); break;
    }
    while (bits > 0) {
        bits--;
        const bool odd = job.patch >> bits & 1;
        const index_t next = 2 * m + odd, end = (all - next) * width;
        const T *second = windows + m * width, *third = products + 2 * m * width;
        to = bits == 0 ? u : windows;  // in place: what is read lies at or after what is written
        if (odd)
            for (index_t k = 0; k < end; k += width)
                store<V>(to + k, load<V>(windows + k) + load<V>(second + k) + load<V>(third + k));
        else
            for (index_t k = 0; k < end; k += width)
                store<V>(to + k, load<V>(windows + k) + load<V>(second + k));
        m = next;
    }
}

template <class V>
KC_HD V strip_sum(const real_of<V>* u, index_t count) {
    constexpr int width = value<V>::width, ways = 4;
    V part[ways];
    KC_UNROLL for (int r = 0; r < ways; r++) part[r] = V(0);
    index_t k = 0;
    for (; k + ways <= count; k += ways)
        KC_UNROLL for (int r = 0; r < ways; r++)
            part[r] = part[r] + load<V>(u + (k + r) * width);
    for (; k < count; k++) part[0] = part[0] + load<V>(u + k * width);
    return (part[0] + part[1]) + (part[2] + part[3]);
}

// The kernel of row i with the rows of a panel of y; a part of its sum where the watch (watch.h)
// stopped it between two offsets.
template <class V, class Watch>
KC_HD V cyclic_entries(const cyclic_job<real_of<V>>& job, index_t i, index_t panel_of_y,
                       real_of<V>* scratch, Watch& watch) {
    using T = real_of<V>;
    constexpr int width = value<V>::width;
    const index_t strip_length = job.positions * width;
    const index_t all = (job.positions + job.patch - 1) * width;
    const T *x = job.x + i * job.length, *y = job.y + panel_of_y * job.length * width;
    T *products = scratch, *windows = products + all, *u = windows + all;
    const strip<T> s{u, u + 2 * strip_length, u + 4 * strip_length};
    const column_of<V> none{nullptr, 0};
    V total(0);
    for (index_t r = 0; r < job.offsets && watch.after(job.positions); r++) {
        window_products<V>(job, x, y + r * width, products, windows, u);
        if (r > 0) window_products<V>(job, x + r, y, products, windows, u + strip_length);
        walk<V, output::covariance>(job.program, none, none,
                                    r > 0 ? 2 * strip_length : strip_length, s, nullptr);
        const V a = strip_sum<V>(u, job.positions);
        const V b = r > 0 ? strip_sum<V>(u + strip_length, job.positions) : a;
        total = fma(V(job.weights[r]), a + b, total);
    }
    return total * V(job.to.factor);
}

// Where the values of a tile begin in its scratch.
template <class V>
KC_HD real_of<V>* tile_values(const cyclic_job<real_of<V>>& job, real_of<V>* scratch) {
    return scratch + strip_scratch<V>(job);
}

// Rows [i0, i1) against panels [p0, p1) of y, into the scratch ...
template <class V, class Watch>
KC_HD void cyclic_values(const cyclic_job<real_of<V>>& job, index_t i0, index_t i1, index_t p0,
                         index_t p1, real_of<V>* scratch, Watch& watch) {
    constexpr int width = value<V>::width;
    real_of<V>* to = tile_values<V>(job, scratch);
    for (index_t i = i0; i < i1; i++)
        for (index_t p = p0; p < p1; p++, to += width)
            if (!job.to.symmetric || (p + 1) * width > i)
                store<V>(to, cyclic_entries<V>(job, i, p, scratch, watch));
}

// ... and from there into the matrix.
template <class V>
KC_HD void cyclic_write(const cyclic_job<real_of<V>>& job, index_t i0, index_t i1, index_t p0,
                        index_t p1, real_of<V>* scratch) {
    constexpr int width = value<V>::width;
    write_tile<V>(job.to, job.to.k, tile_values<V>(job, scratch), (p1 - p0) * width, i0, i1,
                  p0 * width, p1 * width < job.m ? p1 * width : job.m);
}

// Numbers of a table at the places of y's patches, added one after another to the sums, which begin
// with them: `count` pairs of patches at (x[k + s], y[k + t]), indices mod d.
template <class T, int count>
KC_HD void add_looked_up(const cyclic_table<T>& f, const int* x, index_t k, index_t s, index_t t,
                         T* sum) {
    const T* rows[count];
    const int* places[count];
    KC_UNROLL for (int c = 0; c < count; c++) {
        rows[c] = f.values + x[(k + c + s) % f.d * f.n] * f.stride;
        places[c] = f.y + (k + c + t) % f.d * f.m;
    }
    for (index_t j = 0; j < f.m; j++) {
        T value = rows[0][places[0][j]];
        if (k > 0) value = sum[j] + value;
        KC_UNROLL for (int c = 1; c < count; c++) value = value + rows[c][places[c][j]];
        sum[j] = value;
    }
}
template <class T>
KC_HD void sum_looked_up(const cyclic_table<T>& f, const int* x, index_t s, index_t t, T* sum) {
    index_t k = 0;
    for (; k + 4 <= f.d; k += 4) add_looked_up<T, 4>(f, x, k, s, t, sum);
    for (; k < f.d; k++) add_looked_up<T, 1>(f, x, k, s, t, sum);
}

// Row i of H from a table: A_r and B_r in the order of k, their sums in that of r. `room` holds 2 m
// numbers.
template <class T>
KC_LOOP void cyclic_look_up(const cyclic_table<T>& f, index_t i, T* room, T* out) {
    T *a = room, *b = room + f.m;
    for (index_t r = 0; r < f.offsets; r++) {
        sum_looked_up(f, f.x + i, 0, r, a);
        if (r > 0) sum_looked_up(f, f.x + i, r, 0, b);
        const T* other = r > 0 ? b : a;
        for (index_t j = 0; j < f.m; j++) {
            const T both = (a[j] + other[j]) * f.weights[r];
            out[j] = r > 0 ? out[j] + both : both;
        }
    }
    for (index_t j = 0; j < f.m; j++) out[j] = out[j] * f.factor;
}

}  // namespace kc
