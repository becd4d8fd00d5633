// Sums over coordinates for all pairs of a row panel and a column panel.
//
// Inputs are packed into panels of `panel<V>` rows, coordinate by coordinate, so that one layout
// serves both sides: broadcast from one, vectors from the other.
#pragma once

#include "../product.h"

namespace kc {

// 4 x 3 vectors of accumulators, 3 of columns and one broadcast: the 16 registers of x86-64.
inline constexpr int micro_vectors = 3;
template <class V>
inline constexpr int panel = micro_vectors * value<V>::width;
template <class V>
inline constexpr int micro_rows = panel<V> % 4 == 0 ? 4 : 3;

// rows[q * panel + r] <- scale[r] x[r, q], for the rows of one panel; zeros past the last row.
template <class V>
KC_HD void pack(const real_of<V>* x, const real_of<V>* scale, index_t rows, index_t d,
                real_of<V>* packed) {
    for (int r = 0; r < panel<V>; r++) {
        const bool present = r < rows;
        for (index_t q = 0; q < d; q++)
            packed[q * panel<V> + r] = present ? scale[r] * x[r * d + q] : 0;
    }
}

// micro_rows x panel entries over `count` coordinates.
template <class V, class Reducer>
KC_HD void micro(const Reducer& f, const real_of<V>* a, const real_of<V>* b, index_t count,
                 real_of<V>* out, index_t stride, bool first) {
    constexpr int width = value<V>::width, step = panel<V>;
    V acc[micro_rows<V>][micro_vectors];
    KC_UNROLL for (int r = 0; r < micro_rows<V>; r++)
        KC_UNROLL for (int v = 0; v < micro_vectors; v++) acc[r][v] = f.start();
    for (index_t q = 0; q < count; q++, a += step, b += step) {
        V column[micro_vectors];
        KC_UNROLL for (int v = 0; v < micro_vectors; v++) column[v] = load<V>(b + v * width);
        KC_UNROLL for (int r = 0; r < micro_rows<V>; r++) {
            const V row(a[r]);
            KC_UNROLL for (int v = 0; v < micro_vectors; v++)
                acc[r][v] = f.add(acc[r][v], row, column[v]);
        }
    }
    KC_UNROLL for (int r = 0; r < micro_rows<V>; r++)
        KC_UNROLL for (int v = 0; v < micro_vectors; v++) {
            real_of<V>* p = out + r * stride + v * width;
            store<V>(p, first ? acc[r][v] : f.join(load<V>(p), acc[r][v]));
        }
}

// A tile of entries: panels [i0, i1) of x against [j0, j1) of y, only panel pairs j >= i when
// `symmetric`; entry (r, c) at out[r * stride + c] counted from the first panels.
template <class V, class Reducer>
KC_HD void reduce_tile(const Reducer& f, const real_of<V>* x, const real_of<V>* y, index_t d,
                       index_t i0, index_t i1, index_t j0, index_t j1, bool symmetric,
                       real_of<V>* out, index_t stride) {
    constexpr int step = panel<V>;
    for (index_t q = 0; q < d || q == 0; q += depth) {
        const index_t count = d - q < depth ? d - q : depth;
        for (index_t j = j0; j < j1; j++)
            for (index_t i = i0; i < i1 && !(symmetric && j < i); i++)
                for (int r = 0; r < step; r += micro_rows<V>)
                    micro<V>(f, x + (i * d + q) * step + r, y + (j * d + q) * step, count,
                             out + ((i - i0) * step + r) * stride + (j - j0) * step, stride,
                             q == 0);
    }
}

}  // namespace kc
