// Elu, Selu and what else is linear to the right of zero and bends away to its left without a jump,
// in single precision:   phi(x) = b x for x > 0,   m1 x + m2 (e^x - 1) for x < 0.
//
// With phi(sd z) = sd sum_n a_n(sd) h_n(z) in normalised Hermite polynomials (Mehler, series.h),
//     E / (sd_i sd_j) = sum_n a_n a_n u^n,   a_n a_n for a_n(sd_i) a_n(sd_j),   dE/dK = d/du of it.
// Orders below 16 are added up. Those beyond converge slowly next to u = +-1, where the kink is, but
// all a_n of one parity are then nearly combinations of few functions of sd, so that
//     sum_(n >= 16) a_n a_n u^n = u^16 (sum_k B_k V_k(t) + u sum_k B'_k V'_k(t)),
//     B_k(sd_i, sd_j) = sum_r d_kr(sd_i) d_kr(sd_j) - sum_r e_kr(sd_i) e_kr(sd_j),
// even and odd orders by themselves, and the slope likewise, u^15 (.. S_k(t) + u ..), with the same
// B_k. V_k and S_k are analytic in sqrt delta and steep where sd sqrt delta is of order 1: they are
// polynomials in t = 1.8 - 1.12 / (sqrt delta + 0.4), which goes from -1 to 1. kinks.py makes them,
// and the tables a_n, d_kr and e_kr, for sd <= top.
// With D = E[phi^2], or E[phi'^2] for the slope, errors of Elu and Selu are below 1e-6 sqrt(D D), and
// below 5e-6 where b is small next to m2.
#pragma once

#include "one_kink.h"

namespace kc {

constexpr int bent_orders = 16;
constexpr int bent_value = 5, bent_slope = 7;  // the numbers of coefficients of V and S

// The numbers behind the 7 of one_kink: top, how many functions there are of even and of odd orders,
// and the functions: how many products B has, how many of them are added, and the coefficients of S
// and of V, highest first.
template <class T>
struct bent_shape {
    static constexpr int most = 24;
    T top;
    int even, count;
    struct function {
        int rank, added;
        const T* coefficients;
    } functions[most];
    KC_HD explicit bent_shape(const T* f) : top(f[0]), even(int(f[1])), count(int(f[1] + f[2])) {
        f += 3;
        for (int k = 0; k < count; k++) {
            functions[k] = {int(f[0]), int(f[1]), f + 2};
            f += 2 + bent_slope + bent_value;
        }
    }
};

// M vectors of entries side by side, from entry `at` on. Tables: after the common three a_n, then all
// d_kr and e_kr in the order of the functions.
template <class V, int M, class Rows, class Columns>
struct bent_sums {
    using T = real_of<V>;
    static constexpr index_t width = value<V>::width;
    const Rows& x;
    const Columns& y;
    index_t at;
    int table;
    const bent_shape<T>& shape;

    KC_LOOP void operator()(const correlation<V> (&rho)[M], dual<V> (&out)[M]) const {
        V t[M], value[2][M], slope[2][M];
        KC_UNROLL for (int m = 0; m < M; m++) {
            t[m] = V(T(1.8)) - V(T(1.12)) / (sqrt(rho[m].delta) + V(T(0.4)));
            value[0][m] = value[1][m] = slope[0][m] = slope[1][m] = V(0);
        }
        int row = table + 3 + bent_orders;
        for (int k = 0; k < shape.count; k++) {
            const auto& f = shape.functions[k];
            const T* c = f.coefficients;
            V p[M], q[M], b[M], less[M];
            KC_UNROLL for (int m = 0; m < M; m++) {
                p[m] = V(c[bent_slope]);
                q[m] = V(c[0]);
                b[m] = less[m] = V(0);
            }
            KC_UNROLL for (int n = 1; n < bent_slope; n++)
                KC_UNROLL for (int m = 0; m < M; m++) {
                    q[m] = fma(q[m], t[m], V(c[n]));
                    if (n < bent_value) p[m] = fma(p[m], t[m], V(c[bent_slope + n]));
                }
            const auto add = [&](int rows, V(&sum)[M]) {
                for (const int end = row + rows; row < end; row++)
                    KC_UNROLL for (int m = 0; m < M; m++) {
                        const index_t k = at + m * width;
                        sum[m] = fma(x(row, k), y(row, k), sum[m]);
                    }
            };
            add(f.added, b);
            add(f.rank - f.added, less);
            const int odd = k >= shape.even;
            KC_UNROLL for (int m = 0; m < M; m++) {
                b[m] = b[m] - less[m];
                value[odd][m] = fma(b[m], p[m], value[odd][m]);
                slope[odd][m] = fma(b[m], q[m], slope[odd][m]);
            }
        }
        V u[M], low[M], rise[M];
        KC_UNROLL for (int m = 0; m < M; m++) {
            u[m] = rho[m].u;
            low[m] = rise[m] = V(0);
        }
        for (int n = bent_orders - 1; n >= 0; n--)
            KC_UNROLL for (int m = 0; m < M; m++) {
                const int r = table + 3 + n;
                rise[m] = fma(rise[m], u[m], low[m]);
                low[m] = fma(low[m], u[m], x(r, at + m * width) * y(r, at + m * width));
            }
        KC_UNROLL for (int m = 0; m < M; m++) {
            const index_t k = at + m * width;
            const V u2 = u[m] * u[m], u4 = u2 * u2, head = (u[m] * u2) * (u4 * (u4 * u4));  // u^15
            const V whole = fma(head * u[m], fma(u[m], value[1][m], value[0][m]), low[m]);
            out[m] = {x(table, k) * y(table, k) * whole,
                      fma(head, fma(u[m], slope[1][m], slope[0][m]), rise[m])};
        }
    }
};

}  // namespace kc
