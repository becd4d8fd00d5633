// Any activation: phi(sd z) = sum_n a_n(sd) h_n(z) in normalised Hermite polynomials, hence
// (Mehler)  E[phi phi] = sum_n a_n(sd_i) a_n(sd_j) u^n  and  sqrt(a c) E[phi' phi'] = d/du of it.
// The rows bring their coefficients; polynomials are finite sums, and exact.
//
// Numerical duals take few of the high orders, with weights that are in the tables: below 32 all, then
// octaves b = 1, 2, .. of n = 2 (8 + k) 2^b and n + 1, k < 8, in this order. Their powers of u are
// those of r = u^(2 2^b), and r = 1 - (1 - u^2)^.. by squaring, from delta: no digits are lost near 1.
#pragma once

#include "../correlation.h"

namespace kc {

constexpr int ladder_first = 32, ladder_each = 8, ladder_most = 24;

// Sums of the octaves over u^32, and of n times their terms.
template <class V, bool slopes, int M, class Rows, class Columns>
KC_HD void octaves(const Rows& x, const Columns& y, index_t at, int table, int count,
                   const correlation<V>* rho, V* value, V* slope) {
    using T = real_of<V>;
    constexpr int width = kc::value<V>::width;
    const V one(1), two(2), each(T{ladder_each});
    V square[ladder_most + 4][M];  // u^(2 2^b)
    KC_UNROLL for (int m = 0; m < M; m++) {
        V gap = rho[m].delta * (two - rho[m].delta);
        for (int b = 0; b < count + 4; b++) {
            square[b][m] = one - gap;
            gap = gap * (two - gap);
        }
        value[m] = slope[m] = V(T(0));
    }
    for (int b = count; b > 0; b--) {
        V sum[M], derivative[M], odd[M];
        KC_UNROLL for (int m = 0; m < M; m++) sum[m] = derivative[m] = odd[m] = V(T(0));
        for (int k = ladder_each - 1; k >= 0; k--) {
            const int row = table + ladder_first + 2 * ((b - 1) * ladder_each + k);
            KC_UNROLL for (int m = 0; m < M; m++) {
                const index_t place = at + m * width;
                const V o = x(row + 1, place) * y(row + 1, place);
                const V term = fma(rho[m].u, o, x(row, place) * y(row, place));
                if constexpr (slopes) {
                    derivative[m] = fma(derivative[m], square[b][m], sum[m]);
                    odd[m] = fma(odd[m], square[b][m], o);
                }
                sum[m] = fma(sum[m], square[b][m], term);
            }
        }
        const V scale(T(index_t(2) << b));
        KC_UNROLL for (int m = 0; m < M; m++) {
            value[m] = fma(square[b + 3][m], value[m], sum[m]);
            if constexpr (slopes) {
                const V orders = scale * fma(each, sum[m], square[b][m] * derivative[m]);
                slope[m] = fma(square[b + 3][m], slope[m], fma(rho[m].u, odd[m], orders));
            }
        }
    }
    KC_UNROLL for (int m = 0; m < M; m++) {
        const V head = rho[m].u * (square[0][m] * square[1][m] * (square[2][m] * square[3][m]));
        value[m] = head * rho[m].u * value[m];
        slope[m] = head * slope[m];
    }
}

// M vectors of entries side by side, from entry `at` on.
template <class V, bool slopes, int M, class Rows, class Columns>
KC_HD void series(const Rows& x, const Columns& y, index_t at, int table, int count, bool ladder,
                  const correlation<V>* rho, V* value, V* slope) {
    using T = real_of<V>;
    constexpr int width = kc::value<V>::width;
    const bool more = ladder && count > ladder_first;
    V high[M], high_slope[M];
    if (more)
        octaves<V, slopes, M>(x, y, at, table, (count - ladder_first) / (2 * ladder_each), rho,
                              high, high_slope);
    KC_UNROLL for (int m = 0; m < M; m++) value[m] = slope[m] = V(T(0));
    for (int n = (more ? ladder_first : count) - 1; n >= 0; n--)
        KC_UNROLL for (int m = 0; m < M; m++) {
            const index_t place = at + m * width;
            if constexpr (slopes) slope[m] = fma(slope[m], rho[m].u, value[m]);
            value[m] = fma(value[m], rho[m].u, x(table + n, place) * y(table + n, place));
        }
    if (more)
        KC_UNROLL for (int m = 0; m < M; m++) {
            value[m] = value[m] + high[m];
            if constexpr (slopes) slope[m] = slope[m] + high_slope[m];
        }
}

}  // namespace kc
