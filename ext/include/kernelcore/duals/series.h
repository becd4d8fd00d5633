// Any activation: phi(sd z) = sum_n a_n(sd) h_n(z) in normalised Hermite polynomials, hence
// (Mehler)  E[phi phi] = sum_n a_n(sd_i) a_n(sd_j) u^n  and  sqrt(a c) E[phi' phi'] = d/du of it.
// The rows bring their coefficients; polynomials are finite sums, and exact.
//
// Numerical duals take few of the high orders, with weights that are in the tables: below 4 e all,
// then octaves b = 1, 2, .. of n = 2 (e + k) 2^b and n + 1, k < e, in this order; e is 8, or 4 in single
// precision. Their powers of u are those of r = u^(2 2^b), and 1 - r comes from delta by squaring: no
// digits are lost near 1. Of a function that is even but for a multiple of x, or odd but for a
// constant, tables have that one order first, and then those of its parity alone.
#pragma once

#include "../correlation.h"

namespace kc {

template <class V>
inline constexpr int ladder_each = is_single<V> ? 4 : 8;

enum class parity : int { none = 0, even = 1, odd = 2 };

// The rows of a table before the octaves, and of an octave.
template <class V, parity of>
inline constexpr int ladder_first =
    of == parity::none ? 4 * ladder_each<V> : 2 * ladder_each<V> + 1;
template <class V, parity of>
inline constexpr int ladder_octave = of == parity::none ? 2 * ladder_each<V> : ladder_each<V>;

// A value and its derivative.
template <class V>
struct jet {
    V value, slope;
};

// M vectors of entries side by side, from entry `at` on.
template <class V, bool slopes, parity of, int M, class Rows, class Columns>
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

    // The first `rows` of the table, which have all orders, or all of one parity.
    KC_HD void first(int rows, const correlation<V> (&rho)[M], jet<V> (&out)[M]) const {
        V r[M], sum[M], slope[M];
        constexpr int least = of == parity::none ? 0 : 1;
        KC_UNROLL for (int m = 0; m < M; m++) {
            r[m] = of == parity::none ? rho[m].u : rho[m].u * rho[m].u;
            sum[m] = slope[m] = V(0);
        }
        for (int n = rows - 1; n >= least; n--)
            KC_UNROLL for (int m = 0; m < M; m++) {
                if constexpr (slopes) slope[m] = fma(slope[m], r[m], sum[m]);
                sum[m] = fma(sum[m], r[m], term(n, m));
            }
        KC_UNROLL for (int m = 0; m < M; m++) {
            const V u = rho[m].u;
            if constexpr (of == parity::none) out[m] = {sum[m], slope[m]};
            if constexpr (of == parity::even) {
                const V o = term(0, m);
                out[m] = {fma(u, o, sum[m]), fma(u + u, slope[m], o)};
            }
            if constexpr (of == parity::odd)
                out[m] = {fma(u, sum[m], term(0, m)), fma(r[m] + r[m], slope[m], sum[m])};
        }
    }

    // Add the orders of `count` octaves. An entry has no more of them once u^n is below eps^2, next to a
    // sum of at most 1, and where no entry has, they are left out. (Without that end, powers would go
    // through the subnormal numbers, which take some processors a hundred cycles each.)
    KC_HD void octaves(int count, const correlation<V> (&rho)[M], jet<V> (&out)[M]) const {
        const V one(1), two(2), zero(0), lowest(T{each});
        const V end(limits<T>::epsilon * limits<T>::epsilon);
        const auto twice = [=](V gap) { return gap * (two - gap); };  // 1 - r^2 from 1 - r
        // 1 - r; u^(n - 4 each), n the lowest order of the octave
        V gap[M], past[M], sum[M], slope[M];
        KC_UNROLL for (int m = 0; m < M; m++) {
            gap[m] = twice(twice(rho[m].delta));
            past[m] = one;
            sum[m] = slope[m] = zero;
        }
        for (int b = 1; b <= count; b++) {
            V r[M], part[M], derivative[M], odd[M], left = zero;
            KC_UNROLL for (int m = 0; m < M; m++) r[m] = one - gap[m];
            const int row = ladder_first<V, of> + (b - 1) * ladder_octave<V, of>;
            KC_UNROLL for (int k = each - 1; k >= 0; k--)
                KC_UNROLL for (int m = 0; m < M; m++) {
                    V t, o;
                    if constexpr (of == parity::none) {
                        o = term(row + 2 * k + 1, m);
                        t = fma(rho[m].u, o, term(row + 2 * k, m));
                        if constexpr (slopes) odd[m] = k == each - 1 ? o : fma(odd[m], r[m], o);
                    } else {
                        t = term(row + k, m);
                    }
                    if constexpr (slopes)
                        derivative[m] = k == each - 1   ? zero
                                        : k == each - 2 ? part[m]
                                                        : fma(derivative[m], r[m], part[m]);
                    part[m] = k == each - 1 ? t : fma(part[m], r[m], t);
                }
            // n is 2 2^b (each + k), or one more where odd.
            const V scale(T(index_t(2) << b));
            KC_UNROLL for (int m = 0; m < M; m++) {
                if constexpr (slopes) {
                    V orders = scale * fma(lowest, part[m], r[m] * derivative[m]);
                    if constexpr (of == parity::none) orders = fma(rho[m].u, odd[m], orders);
                    if constexpr (of == parity::odd) orders = orders + part[m];
                    slope[m] = fma(past[m], orders, slope[m]);
                }
                sum[m] = fma(past[m], part[m], sum[m]);
                gap[m] = twice(gap[m]);
                V whole = gap[m];  // 1 - r^each
                KC_UNROLL for (int k = 1; k < log_each; k++) whole = twice(whole);
                const V further = past[m] * (one - whole);
                past[m] = select(end < further, further, zero);
                left = left + past[m];
            }
            if (!any(zero < left)) break;
        }
        KC_UNROLL for (int m = 0; m < M; m++) {
            const V u = rho[m].u;
            V next = twice(rho[m].delta), head = one - next;  // u^2
            if constexpr (of == parity::odd) head = head * head;
            KC_UNROLL for (int k = 0; k < log_each; k++) {
                next = twice(next);
                head = head * (one - next);
            }
            // u^(4 each), or one power less
            if constexpr (of != parity::odd) head = head * u;
            out[m].value = fma(head * u, sum[m], out[m].value);
            if constexpr (slopes) out[m].slope = fma(head, slope[m], out[m].slope);
        }
    }
};

}  // namespace kc
