// Sums over coordinates for all pairs of a row panel and a column panel.
//
// Inputs are packed into panels of `panel<V>` rows, coordinate by coordinate, so that one layout
// serves both sides: broadcast from one, vectors from the other.
#pragma once

#include "../product.h"

namespace kc {

// 4 x 3 vectors of accumulators, 3 of columns and one broadcast: the 16 registers of x86-64. Twice
// as many rows where there are 32.
inline constexpr int micro_vectors = 3;
template <class V>
inline constexpr int panel = micro_vectors * value<V>::width;
template <class V>
inline constexpr int micro_rows = panel<V> % 4                             ? 3
                                  : panel<V> % 8 == 0 && KC_MANY_REGISTERS ? 8
                                                                           : 4;

// A vector of rows, of which `rows` are there and the others count as zero: `width` coordinates, or one.
template <class V, bool whole>
KC_HD void columns_of(const real_of<V>* x, index_t rows, index_t d, V (&block)[value<V>::width]) {
    KC_UNROLL for (int r = 0; r < value<V>::width; r++)
        block[r] = whole || r < rows ? load<V>(x + r * d) : V(0);
    transpose(block);
}
template <class V, bool whole>
KC_HD V column_of_rows(const real_of<V>* x, index_t rows, index_t d) {
    real_of<V> lane[value<V>::width];
    KC_UNROLL for (int r = 0; r < value<V>::width; r++)
        lane[r] = whole || r < rows ? x[r * d] : 0;
    return load<V>(lane);
}

// packed[q * panel + r] <- scale[r] x[r, q], for a vector of rows of one panel, the first ones of
// `count` of their d coordinates; zeros past the last row.
template <class V, bool whole>
KC_HD void pack_vector(const real_of<V>* x, const real_of<V>* scale, index_t rows, index_t d,
                       index_t count, real_of<V>* packed) {
    constexpr int width = value<V>::width, step = panel<V>;
    const V factors = column_of_rows<V, whole>(scale, rows, 1);
    index_t q = 0;
    for (; q + width <= count; q += width) {
        V block[width];
        columns_of<V, whole>(x + q, rows, d, block);
        KC_UNROLL for (int k = 0; k < width; k++)
            store<V>(packed + (q + k) * step, factors * block[k]);
    }
    for (; q < count; q++)
        store<V>(packed + q * step, factors * column_of_rows<V, whole>(x + q, rows, d));
}
template <class V>
KC_HD void pack(const real_of<V>* x, const real_of<V>* scale, index_t rows, index_t d,
                index_t count, real_of<V>* packed) {
    constexpr int width = value<V>::width;
    for (int first = 0; first < panel<V>; first += width, x += width * d, scale += width) {
        if (first + width <= rows)
            pack_vector<V, true>(x, scale, width, d, count, packed + first);
        else if (first < rows)
            pack_vector<V, false>(x, scale, rows - first, d, count, packed + first);
        else
            for (index_t q = 0; q < count; q++) store<V>(packed + first + q * panel<V>, V(0));
    }
}

// `rows` x `across` vectors of entries over `count` coordinates; panels are `apart` numbers apart.
template <class V, int rows, int across, class Reducer>
KC_HD void micro(const Reducer& f, const real_of<V>* a, const real_of<V>* b, index_t apart,
                 index_t count, real_of<V>* out, index_t stride, bool first) {
    constexpr int width = value<V>::width, step = panel<V>;
    V acc[rows][across];
    KC_UNROLL for (int r = 0; r < rows; r++)
        KC_UNROLL for (int v = 0; v < across; v++) acc[r][v] = f.start();
    for (index_t q = 0; q < count; q++, a += step, b += step) {
        V column[across];
        KC_UNROLL for (int v = 0; v < across; v++)
            column[v] = load<V>(b + v / micro_vectors * apart + v % micro_vectors * width);
        KC_UNROLL for (int r = 0; r < rows; r++) {
            const V row(a[r]);
            KC_UNROLL for (int v = 0; v < across; v++)
                acc[r][v] = f.add(acc[r][v], row, column[v]);
        }
    }
    KC_UNROLL for (int r = 0; r < rows; r++)
        KC_UNROLL for (int v = 0; v < across; v++) {
            real_of<V>* p = out + r * stride + v * width;
            store<V>(p, first ? acc[r][v] : f.join(load<V>(p), acc[r][v]));
        }
}

// The same for part of a panel: vectors left of `from`, or past the last column, hold zeros.
template <class V, class Reducer>
KC_HD void micro_part(const Reducer& f, const real_of<V>* a, const real_of<V>* b, index_t from,
                      index_t columns, index_t count, real_of<V>* out, index_t stride, bool first) {
    constexpr int width = value<V>::width, most = micro_rows<V>, all = micro_vectors;
    const index_t to = columns < panel<V> ? (columns + width - 1) / width : all;
    for (int k = 0; first && k < most * all; k++)
        if (k / most < from || k / most >= to) store<V>(out + k % most * stride + k / most * width, V(0));
    b += from * width, out += from * width;
    if (to - from == all) micro<V, most, all>(f, a, b, 0, count, out, stride, first);
    if (to - from == 2) micro<V, most, 2>(f, a, b, 0, count, out, stride, first);
    if (to - from == 1) micro<V, most, 1>(f, a, b, 0, count, out, stride, first);
}

// One row `a` against a panel of rows as they are, of which `rows` are there; the scales can be read
// for all of it. Numbers are scaled and summed as if they had been packed.
template <class V, bool whole, class Reducer>
KC_LOOP void reduce_panel(const Reducer& f, const real_of<V>* a, const real_of<V>* y,
                        const real_of<V>* scale, index_t rows, index_t d, real_of<V>* out) {
    constexpr int width = value<V>::width, all = micro_vectors;
    V sum[all];
    for (index_t begin = 0; begin < d || begin == 0; begin += depth) {
        const index_t end = begin + depth < d ? begin + depth : d;
        V acc[all];
        KC_UNROLL for (int v = 0; v < all; v++) acc[v] = f.start();
        index_t q = begin;
        // One vector of rows after another: their sums wait for each other, not for registers.
        for (; q + width <= end; q += width)
            KC_ROLLED for (int v = 0; v < all; v++) {
                const V factors = load<V>(scale + v * width);
                V block[width], next = acc[v];
                columns_of<V, whole>(y + v * width * d + q, rows - v * width, d, block);
                KC_UNROLL for (int k = 0; k < width; k++)
                    next = f.add(next, V(a[q + k]), factors * block[k]);
                acc[v] = next;
            }
        for (; q < end; q++)
            KC_ROLLED for (int v = 0; v < all; v++) {
                const real_of<V>* at = y + v * width * d + q;
                const V column = column_of_rows<V, whole>(at, rows - v * width, d);
                acc[v] = f.add(acc[v], V(a[q]), load<V>(scale + v * width) * column);
            }
        KC_UNROLL for (int v = 0; v < all; v++)
            sum[v] = begin == 0 ? acc[v] : f.join(sum[v], acc[v]);
    }
    KC_UNROLL for (int v = 0; v < all; v++) store<V>(out + v * width, sum[v]);
}

// A tile of entries: panels [i0, i1) of x, of which `rows` rows are there, against [j0, j1) of y,
// which has `columns` rows, only panel pairs j >= i when `symmetric`; entry (r, c) at
// out[r * stride + c] counted from the first panels. Panels hold `size` coordinates, the first ones
// where `fresh`, or those that follow what is summed in `out` already: then whole blocks of `depth`
// have come before.
template <class V, class Reducer>
KC_HD void reduce_tile(const Reducer& f, const real_of<V>* x, const real_of<V>* y, index_t size,
                       bool fresh, index_t i0, index_t i1, index_t j0, index_t j1, index_t rows,
                       index_t columns, bool symmetric, real_of<V>* out, index_t stride) {
    constexpr int step = panel<V>, most = micro_rows<V>, all = micro_vectors;
    constexpr int width = value<V>::width, tall = step % (2 * most) == 0 ? 2 * most : most;
    // Of a last panel with few rows one vector is computed, with more rows of x at a time.
    const bool narrow = columns - (j1 - 1) * step <= width;
    const index_t wide = narrow ? j1 - 1 : j1;
    for (index_t q = 0; q < size || q == 0; q += depth) {
        const index_t count = size - q < depth ? size - q : depth;
        const bool first = fresh && q == 0;
        for (index_t j = j0; j < wide; j++)
            for (index_t i = i0; i < i1 && !(symmetric && j < i); i++)
                for (index_t r = 0; r < step && i * step + r < rows; r += most) {
                    if (i * step + r + 1 == rows && !symmetric) continue;
                    const real_of<V>*a = x + (i * size + q) * step + r, *b = y + (j * size + q) * step;
                    real_of<V>* to = out + ((i - i0) * step + r) * stride + (j - j0) * step;
                    if ((symmetric && i == j) || columns < (j + 1) * step)
                        micro_part<V>(f, a, b, symmetric && i == j ? r / width : 0,
                                      columns - j * step, count, to, stride, first);
                    else
                        micro<V, most, all>(f, a, b, 0, count, to, stride, first);
                }
        for (index_t r = i0 * step; narrow && r < i1 * step && r < rows; r += tall) {
            real_of<V>* to = out + (r - i0 * step) * stride + (wide - j0) * step;
            micro<V, tall, 1>(f, x + (r / step * size + q) * step + r % step,
                              y + (wide * size + q) * step, 0, count, to, stride, first);
            for (int k = 0; first && k < tall * (all - 1); k++)
                store<V>(to + k % tall * stride + (1 + k / tall) * width, V(0));
        }
        // A last row that is alone would wait for its own sums: it meets several panels at once.
        const index_t r = rows - 1;
        if (symmetric || r % most != 0 || r < i0 * step || r >= i1 * step) continue;
        const real_of<V>* a = x + (r / step * size + q) * step + r % step;
        real_of<V>* to = out + (r - i0 * step) * stride;
        index_t j = j0;
        for (; j + 4 <= wide; j += 4)
            micro<V, 1, 4 * all>(f, a, y + (j * size + q) * step, size * step, count,
                                 to + (j - j0) * step, stride, first);
        for (; j < wide; j++)
            micro<V, 1, all>(f, a, y + (j * size + q) * step, 0, count, to + (j - j0) * step,
                             stride, first);
    }
}

}  // namespace kc
