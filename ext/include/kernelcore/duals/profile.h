// Homogeneous maps K <- n p(u), T <- T p'(u), n = sqrt(K11 K22), u = K/n (Mairal 2016; Bietti &
// Mairal 2019), and profiles p of a plain number.
//
// A correlation carries delta = 1 - |u|, so a map has to give 1 - |p(u)/p(1)| as well. Each one
// below gives it as a product with delta, or as a sum of terms >= 0 for coefficients >= 0: near
// |u| = 1 its relative error is about (terms + 4) epsilon.
#pragma once

#include "kink.h"

namespace kc {

// A correlation of which both parts are known, kept in range. Where delta < 1/2 it decides u too:
// what was 1 stays exactly 1.
template <class V>
KC_HD correlation<V> agreed(V u, V delta) {
    using T = real_of<V>;
    const V one(1);
    const V d = minimum(maximum(delta, V(0)), one);
    const V size = select(d < V(T(0.5)), one - d, minimum(abs(u), one));
    return {with_sign(size, u), d};
}

// p(u) = exp(-(1 - u) rate), rate = 1/s^2. With exp(-x) = scale (1 + f) both u' and 1 - u' come of
// one reduction; where scale is 1, the latter is -f. Error 2 epsilon + |log u'| epsilon of u'.
template <class V>
KC_HD profile<V> exponential_profile(correlation<V> c, V rate) {
    using T = real_of<V>;
    const V one(1);
    const V x = rate * select(c.u < V(0), V(T(2)) - c.delta, c.delta);
    const exp_parts<V> e = split_exp(maximum(-x, V(limits<T>::exp_low)));
    const V half = round(e.n * V(T(0.5)));  // as in exp: 2^n may be subnormal
    const V scale = exp2i(half) * exp2i(e.n - half);
    const V u = fma(scale, e.fraction, scale);
    return {{u, fma(-scale, e.fraction, one - scale)}, rate * u};
}

// p(u) = sum_k c_k u^k with sum c_k = 1. f: `pairs` pairs c_0, c_1, ..., then as many
// g_k = c_(k+1) + c_(k+2) + ..., for 1 - p(a) = (1 - a) sum_k g_k a^k. With a = |u| and the even
// and the odd part at a, |p(u)| = |even +- odd|:
//     1 - (even + odd) = delta g(a),   1 - |even - odd| = delta g(a) + 2 (the smaller of the two).
template <class V>
KC_HD profile<V> power_profile(correlation<V> c, const real_of<V>* f, int pairs) {
    using T = real_of<V>;
    const V one(1), zero(0), two(T(2));
    const V a = abs(c.u), z = a * a;
    const auto negative = c.u < zero;
    V even(0), odd(0), even_slope(0), odd_slope(0), g(0);
    for (int k = pairs - 1; k >= 0; k--) {
        even_slope = fma(even_slope, z, even);
        odd_slope = fma(odd_slope, z, odd);
        even = fma(even, z, V(f[2 * k]));
        odd = fma(odd, z, V(f[2 * k + 1]));
    }
    for (int k = 2 * pairs - 1; k >= 0; k--) g = fma(g, a, V(f[2 * pairs + k]));
    const V turn = two * a * even_slope;  // d even/du is odd
    const V slope = fma(two * z, odd_slope, odd) + select(negative, -turn, turn);
    odd = a * odd;
    const V u = even + select(negative, -odd, odd), near = c.delta * g;
    const auto below = u < zero;
    const V behind = fma(two, select(below, even, odd), near);
    const V delta = select(negative, behind, select(below, two - near, near));
    return {agreed(u, delta), slope};
}

// sum_k f_k T_k(x) for x = 1 - delta >= 0, or for -x: Clenshaw's recurrence in Reinsch's form,
// which stays stable towards x = 1. Error about epsilon sum_k |b_k|, b the recurrence's numbers.
// `ways` values at a time hide the latency of fma.
template <class V, int ways>
KC_HD void chebyshev_sums(const real_of<V>* f, int count, const V (&delta)[ways],
                          const V (&sign)[ways], V (&sum)[ways]) {
    using T = real_of<V>;
    V twice[ways], b[ways], d[ways];
    KC_UNROLL for (int r = 0; r < ways; r++) {
        twice[r] = V(T(-2)) * delta[r];
        b[r] = d[r] = V(0);
    }
    for (int k = count - 1; k > 0; k--) {
        const V c(f[k]);
        KC_UNROLL for (int r = 0; r < ways; r++) {
            d[r] = fma(twice[r], b[r], d[r] + (k % 2 ? c * sign[r] : c));
            b[r] = b[r] + d[r];
        }
    }
    KC_UNROLL for (int r = 0; r < ways; r++) sum[r] = fma(-delta[r], b[r], d[r]) + V(f[0]);
}
template <class V>
KC_HD V chebyshev_sum(const real_of<V>* f, int count, V delta, V sign) {
    const V deltas[1] = {delta}, signs[1] = {sign};
    V sum[1];
    chebyshev_sums<V, 1>(f, count, deltas, signs, sum);
    return sum[0];
}

// p(u) = sum_k c_k T_k(u) with sum c_k = 1. f: c_0 .. c_(count-1), as many of p' and of
// (1 - p(u))/(1 - u) = sum_n c_n (n + 2 sum_(k<n) (n - k) T_k).
template <class V>
KC_HD profile<V> chebyshev_profile(correlation<V> c, const real_of<V>* f, int count) {
    using T = real_of<V>;
    const V one(1), zero(0), two(T(2));
    const auto negative = c.u < zero;
    const V sign = select(negative, -one, one);
    const V u = chebyshev_sum(f, count, c.delta, sign);
    const V slope = chebyshev_sum(f + count, count, c.delta, sign);
    const V near = c.delta * chebyshev_sum(f + 2 * count, count, c.delta, one);
    const V front = select(u < zero, two - near, near);
    return {agreed(u, select(negative, plain(u).delta, front)), slope};
}

// The correlation of a number that is a cosine up to rounding, for the maps above.
template <class V>
KC_HD correlation<V> cosine(V sum, V scale) {
    return plain(sum * scale);
}

// sum_k f_k t^k of t = scale u, in place; `ways` values at a time, which hides the latency of fma.
template <class V, int ways>
KC_HD void power_of(real_of<V>* u, V scale, const real_of<V>* f, int count) {
    constexpr int width = value<V>::width;
    V t[ways], sum[ways];
    KC_UNROLL for (int r = 0; r < ways; r++) {
        t[r] = load<V>(u + r * width) * scale;
        sum[r] = V(f[count - 1]);
    }
    for (int k = count - 2; k >= 0; k--) {
        const V c(f[k]);
        KC_UNROLL for (int r = 0; r < ways; r++) sum[r] = fma(sum[r], t[r], c);
    }
    KC_UNROLL for (int r = 0; r < ways; r++) store<V>(u + r * width, sum[r]);
}

// The same for sum_k f_k T_k(t), with |t| cut at 1.
template <class V, int ways>
KC_HD void chebyshev_of(real_of<V>* u, V scale, const real_of<V>* f, int count) {
    constexpr int width = value<V>::width;
    const V one(1), zero(0);
    V delta[ways], sign[ways], sum[ways];
    KC_UNROLL for (int r = 0; r < ways; r++) {
        const V t = load<V>(u + r * width) * scale;
        delta[r] = one - minimum(abs(t), one);
        sign[r] = select(t < zero, -one, one);
    }
    chebyshev_sums<V, ways>(f, count, delta, sign, sum);
    KC_UNROLL for (int r = 0; r < ways; r++) store<V>(u + r * width, sum[r]);
}

}  // namespace kc
