// Elu, Selu and what else is linear to the right of zero and bends away to its left without a jump:
//     phi(x) = b x + tail(-x),   tail(s) = l s + g (e^-s - 1 + s) for s > 0, else 0.
//
// With x = sd z a tail is, to rounding, a short sum of fixed functions of z > 0 with factors that
// depend on sd alone (bent.py):  tail(sd z) = sd sum_a f_a(sd) e_a(z),  sd <= top. So over u,
//     E[tail tail] = sd_i sd_j sum_(a<=b) p_ab G_ab(u),   p_ab = f_a(sd_i) f_b(sd_j) + f_b(sd_i) f_a(sd_j),
// G_ab = E[e_a(z) e_b(w)] over z, w > 0 (half of it for a = b): in polar coordinates an integral of
// an entire function over the angle between the edges, hence itself an entire function of arcsin u,
// and a polynomial in (2/pi) arcsin u. The same with e_a' e_b' is the slope, dG/du (Price). Stein's
// E[x f(y)] = K E[f'] is the rest:
//     E     = sd_i sd_j (u (b^2 - m_i - m_j) + sum p G),   m(sd) = b E[tail'],
//     dE/dK = b^2 - m_i - m_j + sum p G'.
// Nothing cancels, at any sd. With D = E[phi^2], errors are below 1e-6 sqrt(D D) in float.
#pragma once

#include "one_kink.h"

namespace kc {

// The numbers behind the 7 of one_kink: top, b^2, the number of groups, and the groups, 4 pairs
// a <= b each: the degrees of G and of G' plus 1, a and b of every pair, and the coefficients,
// highest first, those of 4 pairs side by side.
template <class T>
struct bent_shape {
    static constexpr int most = 16;
    T top, square;
    int groups;
    int value[most], slope[most], first[4 * most], second[4 * most];
    const T *values[most], *slopes[most];
    KC_HD explicit bent_shape(const T* f) : top(f[0]), square(f[1]), groups(int(f[2])) {
        f += 3;
        for (int k = 0; k < groups; k++) {
            value[k] = int(f[0]);
            slope[k] = int(f[1]);
            for (int i = 0; i < 4; i++) {
                first[4 * k + i] = int(f[2 + 2 * i]);
                second[4 * k + i] = int(f[3 + 2 * i]);
            }
            values[k] = f + 10;
            slopes[k] = values[k] + 4 * value[k];
            f = slopes[k] + 4 * slope[k];
        }
    }
};

// sum_i p_i q_i(x) for four polynomials of `count` coefficients.
template <class V>
KC_HD V four_polynomials(const real_of<V>* f, int count, V x, const V (&p)[4], V sum) {
    V q[4];
    KC_UNROLL for (int i = 0; i < 4; i++) q[i] = V(f[i]);
    for (int k = 1; k < count; k++)
        KC_UNROLL for (int i = 0; i < 4; i++) q[i] = fma(q[i], x, V(f[4 * k + i]));
    KC_UNROLL for (int i = 0; i < 4; i++) sum = fma(p[i], q[i], sum);
    return sum;
}

// Tables: after the common three m, then f_a for a < count.
template <class V, class X, class Y>
KC_HD dual<V> bent(const pair<V>& p, const X& x, const Y& y, int count,
                   const bent_shape<real_of<V>>& s) {
    using T = real_of<V>;
    constexpr int most = 16;
    V fi[most], fj[most];
    for (int a = 0; a < count; a++) {
        fi[a] = x(4 + a);
        fj[a] = y(4 + a);
    }
    const V angle = V(T(0.63661977236758134)) * arcsin(p.rho.u, p.rho.delta);
    V value(0), slope(0);
    for (int k = 0; k < s.groups; k++) {
        V products[4];
        KC_UNROLL for (int i = 0; i < 4; i++) {
            const int a = s.first[4 * k + i], b = s.second[4 * k + i];
            products[i] = fi[a] * fj[b] + fi[b] * fj[a];  // the same in either order
        }
        value = four_polynomials(s.values[k], s.value[k], angle, products, value);
        slope = four_polynomials(s.slopes[k], s.slope[k], angle, products, slope);
    }
    const V rest = V(s.square) - (x(3) + y(3));
    return {p.r * fma(p.rho.u, rest, value), rest + slope};
}

}  // namespace kc
