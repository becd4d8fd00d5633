// Sums over the coordinates of two rows: what is summed, and in which order.
//
// Every entry is the same chain of operations wherever it lies: blocks of `depth` coordinates, each
// summed in order, added in order. Hence a value depends on its two rows alone, not on tiles, threads,
// position or order of arguments, and the error of a sum grows with depth + d/depth rather than d.
#pragma once

#include "lanes.h"

namespace kc {

inline constexpr index_t depth = 128;

enum reduction : int {
    sum_of_products = 0,
    sum_of_squares = 1,
    sum_of_sizes = 2,
    product_of_bumps = 3
};

// One coordinate of the pair (a, b) into the accumulator; two blocks into one.
template <class V, int kind>
struct reducer {
    V scale;  // product_of_bumps: 1 / lengthscale
    KC_HD V start() const { return V(kind == product_of_bumps ? 1 : 0); }
    KC_HD V add(V acc, V a, V b) const {
        if constexpr (kind == sum_of_products) return fma(a, b, acc);
        const V d = a - b;
        if constexpr (kind == sum_of_squares) return fma(d, d, acc);
        if constexpr (kind == sum_of_sizes) return acc + abs(d);
        const V e = d * scale;
        return acc * fma(e, e, V(1));
    }
    KC_HD V join(V p, V q) const {
        if constexpr (kind == product_of_bumps) return p * q;
        return p + q;
    }
};

}  // namespace kc
