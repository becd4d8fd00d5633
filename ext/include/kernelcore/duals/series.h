// Any activation: phi(sd z) = sum_n a_n(sd) h_n(z) in normalised Hermite polynomials, hence
// (Mehler)  E[phi phi] = sum_n a_n(sd_i) a_n(sd_j) u^n  and  sqrt(a c) E[phi' phi'] = d/du of it.
// The rows bring their coefficients; polynomials are finite sums, and exact.
//
// Numerical duals take few of the high orders, with weights that are in the tables: below 4 e all,
// then octaves b = 1, 2, .. of n = 2 (e + k) 2^b and n + 1, k < e, in this order; e is 8, or 4 in single
// precision. Their powers of u are those of r = u^(2 2^b), and 1 - r comes from delta by squaring: no
// digits are lost near 1.
#pragma once

#include "../correlation.h"

namespace kc {

template <class V>
inline constexpr int ladder_each = is_single<V> ? 4 : 8;
template <class V>
inline constexpr int ladder_first = 4 * ladder_each<V>;
constexpr int ladder_most = 28;

// A value and its derivative.
template <class V>
struct jet {
    V value, slope;
};

// M vectors of entries side by side, from entry `at` on.
template <class V, bool slopes, int M, class Rows, class Columns>
struct hermite_series {
    using T = real_of<V>;
    static constexpr index_t width = value<V>::width;
    static constexpr int each = ladder_each<V>, log_each = each == 8 ? 3 : 2;
    const Rows& x;
    const Columns& y;
    index_t at;
    int table;

    KC_HD V term(int row, int m) const {
        return x(table + row, at + m * width) * y(table + row, at + m * width);
    }

    // Orders below `count`, all of them.
    KC_HD void first(int count, const correlation<V> (&rho)[M], jet<V> (&out)[M]) const {
        V u[M], sum[M], slope[M];
        KC_UNROLL for (int m = 0; m < M; m++) {
            u[m] = rho[m].u;
            sum[m] = slope[m] = V(0);
        }
        for (int n = count - 1; n >= 0; n--)
            KC_UNROLL for (int m = 0; m < M; m++) {
                if constexpr (slopes) slope[m] = fma(slope[m], u[m], sum[m]);
                sum[m] = fma(sum[m], u[m], term(n, m));
            }
        KC_UNROLL for (int m = 0; m < M; m++) out[m] = {sum[m], slope[m]};
    }

    // Add the orders of `count` octaves.
    KC_HD void octaves(int count, const correlation<V> (&rho)[M], jet<V> (&out)[M]) const {
        const V one(1), two(2), lowest(T{each});
        V power[ladder_most + 4][M], sum[M], slope[M];  // power b is u^(2 2^b)
        KC_UNROLL for (int m = 0; m < M; m++) {
            V gap = rho[m].delta * (two - rho[m].delta);
            for (int b = 0; b <= count + log_each; b++) {
                power[b][m] = one - gap;
                gap = gap * (two - gap);
            }
            sum[m] = slope[m] = V(0);
        }
        for (int b = count; b > 0; b--) {
            V r[M], part[M], derivative[M], odd[M];
            KC_UNROLL for (int m = 0; m < M; m++) {
                r[m] = power[b][m];
                part[m] = derivative[m] = odd[m] = V(0);
            }
            const int row = ladder_first<V> + 2 * (b - 1) * each;
            for (int k = 2 * each - 2; k >= 0; k -= 2)
                KC_UNROLL for (int m = 0; m < M; m++) {
                    const V o = term(row + k + 1, m), both = fma(rho[m].u, o, term(row + k, m));
                    if constexpr (slopes) {
                        derivative[m] = fma(derivative[m], r[m], part[m]);
                        odd[m] = fma(odd[m], r[m], o);
                    }
                    part[m] = fma(part[m], r[m], both);
                }
            // n is 2 2^b (each + k), or one more where odd.
            const V scale(T(index_t(2) << b));
            KC_UNROLL for (int m = 0; m < M; m++) {
                const V whole = power[b + log_each][m];  // r^each
                const V orders = scale * fma(lowest, part[m], r[m] * derivative[m]);
                if constexpr (slopes)
                    slope[m] = fma(whole, slope[m], fma(rho[m].u, odd[m], orders));
                sum[m] = fma(whole, sum[m], part[m]);
            }
        }
        KC_UNROLL for (int m = 0; m < M; m++) {
            V head = rho[m].u;  // u^(4 each - 1)
            KC_UNROLL for (int b = 0; b <= log_each; b++) head = head * power[b][m];
            out[m].value = fma(head * rho[m].u, sum[m], out[m].value);
            if constexpr (slopes) out[m].slope = fma(head, slope[m], out[m].slope);
        }
    }
};

}  // namespace kc
