// What an entry carries through the layers.
//
// With variances a, c of the two inputs at some depth, covariance K and tangent kernel T:
//     u = K / sqrt(a c),   delta = 1 - |u|,   t = T / sqrt(a c).
// delta is carried along with u because arccos loses half the digits near |u| = 1 and 1 - |u| all of
// them. In this form a layer without bias, and every homogeneous activation, needs no norms.
#pragma once

#include "elementary.h"

namespace kc {

template <class V>
struct correlation {
    V u, delta;
};

// The correlation of x and y given exactly by their variances and covariance: a c - K^2 by
// products with their rounding errors (Dekker), hence delta to a few units in its last place.
template <class V>
KC_HD correlation<V> correlate(V a, V c, V k) {
    using T = real_of<V>;
    const V root = sqrt(a) * sqrt(c);
    const V p = a * c, q = k * k;
    const V gap = (p - q) + (product_error(a, c, p) - product_error(k, k, q));
    const V one(T(1)), zero(T(0));
    const V size = abs(k);
    const V scale = root * (root + size);
    const V delta = minimum(maximum(gap, zero) / scale, one);
    const V u = with_sign(minimum(size / root, one), k);
    const auto null = root <= zero;  // a zero input: correlation 1 with another one, else 0
    const auto both = maximum(a, c) <= zero;
    const V u_null = select(both, one, zero);
    return {select(null, u_null, u), select(null, one - u_null, delta)};
}

// The sum of two kernels, as it arises in a bias (the second is constant: u = 1) and in a
// residual connection. For row i, p_i^2 + q_i^2 = 1 are the two shares of its new variance; then
//     u     = p_i p_j u1 + q_i q_j u2,
//     1-u^2 = (p_i p_j)^2 (1-u1^2) + (q_i q_j)^2 (1-u2^2) + (p_i q_j - p_j q_i)^2
//             + 2 p_i p_j q_i q_j (1 - u1 u2),
// a sum of terms >= 0: delta = (1-u^2)/(1+|u|) has no cancellation.
template <class V>
KC_HD correlation<V> mix(V pi, V qi, V pj, V qj, correlation<V> first, correlation<V> second) {
    using T = real_of<V>;
    const V one(T(1)), two(T(2)), zero(T(0));
    const V p = pi * pj, q = qi * qj, cross = pi * qj - pj * qi;
    const V u = fma(p, first.u, q * second.u);
    // 1 - |u1 u2| = d1 + d2 - d1 d2
    const V far = fma(-first.delta, second.delta, first.delta + second.delta);
    const V apart = select(first.u * second.u < zero, two - far, far);
    V s = p * p * first.delta * (two - first.delta);
    s = fma(q * q * second.delta, two - second.delta, s);
    s = fma(cross, cross, s);
    s = fma(two * p * q, apart, s);
    const V size = minimum(abs(u), one);
    return {with_sign(size, u), minimum(s / (one + size), one)};
}

// A correlation that comes without its delta: within rounding of +-1 it is +-1.
template <class V>
KC_HD correlation<V> plain(V u) {
    using T = real_of<V>;
    const V one(T(1));
    const V size = minimum(abs(u), one);
    const V delta = one - size;
    const auto close = delta <= V(T(4) * limits<T>::epsilon);
    return {with_sign(select(close, one, size), u), select(close, V(T(0)), delta)};
}

}  // namespace kc
