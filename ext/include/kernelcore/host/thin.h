// t = K x and y = K't for few columns x and t: products that libraries made for square matrices do
// at a third of their rate.
//
// x and y are stored column after column, so that vectors run along a row of K. A strip of
// `thin_strip` entries of `thin_rows` rows stays in the first-level cache for all columns, taken two
// by two. Every entry is the same chain of operations wherever it lies: along a row of K by lanes,
// which are then added; down the rows in order, block by block. So errors grow with
// m/width + width, and with the rows in a block plus the number of blocks.
#pragma once

#include "../lanes.h"

namespace kc {

// 6 x 2 vectors: twelve sums at once in K x, twelve factors in K't; eight loads for twelve products.
inline constexpr int thin_rows = 6, thin_pair = 2;
inline constexpr index_t thin_strip = 256;
// Columns at once; more are done in turns.
inline constexpr int thin_columns = 16;

// sums[r, c] += K[r, :count] x[c, :count], lane by lane, for R rows and C columns.
template <class V, int R, int C>
KC_HD void thin_dot(const real_of<V>* K, index_t m, index_t count, const real_of<V>* x, V* sums) {
    V acc[R][C];
    KC_UNROLL for (int r = 0; r < R; r++)
        KC_UNROLL for (int c = 0; c < C; c++) acc[r][c] = sums[r * thin_columns + c];
    for (index_t j = 0; j < count; j += value<V>::width) {
        V column[C];
        KC_UNROLL for (int c = 0; c < C; c++) column[c] = load<V>(x + c * m + j);
        KC_UNROLL for (int r = 0; r < R; r++) {
            const V row = load<V>(K + r * m + j);
            KC_UNROLL for (int c = 0; c < C; c++) acc[r][c] = fma(row, column[c], acc[r][c]);
        }
    }
    KC_UNROLL for (int r = 0; r < R; r++)
        KC_UNROLL for (int c = 0; c < C; c++) sums[r * thin_columns + c] = acc[r][c];
}

// t[r, c] = K[r, :] x[c, :] for R rows, K and x with m columns, t with `columns` of them.
template <class V, int R>
KC_LOOP void thin_forward(const real_of<V>* K, index_t m, const real_of<V>* x, int columns,
                          real_of<V>* t) {
    using T = real_of<V>;
    constexpr int width = value<V>::width;
    const index_t whole = m - m % width;
    for (int c0 = 0; c0 < columns; c0 += thin_columns) {
        const int c1 = columns - c0 < thin_columns ? columns : c0 + thin_columns;
        V sums[R * thin_columns];
        for (V& sum : sums) sum = V(T(0));
        for (index_t j = 0; j < whole; j += thin_strip) {
            const index_t count = whole - j < thin_strip ? whole - j : thin_strip;
            int c = c0;
            for (; c + thin_pair <= c1; c += thin_pair)
                thin_dot<V, R, thin_pair>(K + j, m, count, x + c * m + j, sums + c - c0);
            if (c < c1)
                thin_dot<V, R, 1>(K + j, m, count, x + c * m + j, sums + c - c0);
        }
        for (int r = 0; r < R; r++)
            for (int c = c0; c < c1; c++) {
                T total = sum_lanes(sums[r * thin_columns + c - c0]);
                for (index_t j = whole; j < m; j++) total = fma(K[r * m + j], x[c * m + j], total);
                t[r * columns + c] = total;
            }
    }
}

// y[c, :count] += the sum over R rows of t[r, c] K[r, :count], for C columns.
template <class V, int R, int C>
KC_HD void thin_add(const real_of<V>* K, index_t m, index_t count, const real_of<V>* t, int columns,
                    real_of<V>* y) {
    using T = real_of<V>;
    constexpr int width = value<V>::width;
    V factor[R][C];
    KC_UNROLL for (int r = 0; r < R; r++)
        KC_UNROLL for (int c = 0; c < C; c++) factor[r][c] = V(t[r * columns + c]);
    index_t j = 0;
    for (; j + width <= count; j += width) {
        V sum[C];
        KC_UNROLL for (int c = 0; c < C; c++) sum[c] = load<V>(y + c * thin_strip + j);
        KC_UNROLL for (int r = 0; r < R; r++) {
            const V row = load<V>(K + r * m + j);
            KC_UNROLL for (int c = 0; c < C; c++) sum[c] = fma(row, factor[r][c], sum[c]);
        }
        KC_UNROLL for (int c = 0; c < C; c++) store<V>(y + c * thin_strip + j, sum[c]);
    }
    for (; j < count; j++)
        for (int c = 0; c < C; c++) {
            T sum = y[c * thin_strip + j];
            for (int r = 0; r < R; r++) sum = fma(K[r * m + j], t[r * columns + c], sum);
            y[c * thin_strip + j] = sum;
        }
}

template <class V, int R>
KC_LOOP void thin_add_rows(const real_of<V>* K, index_t m, index_t count, const real_of<V>* t,
                           int columns, int c0, int c1, real_of<V>* y) {
    int c = c0;
    for (; c + thin_pair <= c1; c += thin_pair)
        thin_add<V, R, thin_pair>(K, m, count, t + c, columns, y + (c - c0) * thin_strip);
    if (c < c1) thin_add<V, R, 1>(K, m, count, t + c, columns, y + (c - c0) * thin_strip);
}

// y[c, :count] += (K't)[:count, c]; the `rows` rows are summed before they are added to y.
template <class V>
KC_HD void thin_transposed(const real_of<V>* K, index_t m, index_t rows, index_t count,
                           const real_of<V>* t, int columns, real_of<V>* y) {
    for (int c0 = 0; c0 < columns; c0 += thin_columns) {
        const int c1 = columns - c0 < thin_columns ? columns : c0 + thin_columns;
        alignas(64) real_of<V> sums[thin_columns * thin_strip];
        for (int i = 0; i < (c1 - c0) * thin_strip; i++) sums[i] = 0;
        index_t r = 0;
        for (; r + thin_rows <= rows; r += thin_rows)
            thin_add_rows<V, thin_rows>(K + r * m, m, count, t + r * columns, columns, c0, c1, sums);
        for (; r < rows; r++)
            thin_add_rows<V, 1>(K + r * m, m, count, t + r * columns, columns, c0, c1, sums);
        for (int c = c0; c < c1; c++)
            for (index_t j = 0; j < count; j++) y[c * m + j] += sums[(c - c0) * thin_strip + j];
    }
}

}  // namespace kc
