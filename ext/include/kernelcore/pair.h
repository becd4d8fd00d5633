// Two inputs with their variances, for activations that are not homogeneous.
#pragma once

#include "correlation.h"

namespace kc {

// a = sd_i^2, c = sd_j^2, r = sd_i sd_j, k = r u.
template <class V>
struct pair {
    V a, c, r, k;
    correlation<V> rho;
};

template <class V>
KC_HD pair<V> make_pair(V sd_i, V sd_j, correlation<V> rho) {
    const V r = sd_i * sd_j;
    return {sd_i * sd_i, sd_j * sd_j, r, r * rho.u, rho};
}

// E[phi phi] and E[phi' phi'].
template <class V>
struct dual {
    V value, slope;
};

// The pair after independent noise of variance s on each side, A = a + s, C = c + s: its correlation
// v = K / sqrt(A C), and 1 - v^2 as a sum of positive shares. Inputs bring theirs in tables,
// share = sd / sqrt A and noise = s / A > 0, which add up to 1 = share^2 + noise.
template <class V>
struct noisy_pair {
    V v, size;       // and |v|
    V det;           // (A C - K^2)/(A C)
    V part;          // (a c - K^2)/(A C)
    V sum, product;  // of both noises
};

// Some k, its size, and what that leaves of the most it can be.
template <class V>
struct bounded {
    V k, size, gap;
};
// Within rounding, `snap`, nothing is left.
template <class V>
KC_HD bounded<V> bound_by(V most, V k, V snap) {
    const V left = most - abs(k), gap = select(left <= snap * most, V(0), left);
    const V size = most - gap;
    return {select_negative(k, -size, size), size, gap};
}
template <class V>
KC_HD bounded<V> bound_by(V most, correlation<V> c) {
    const V k = most * c.u;
    return {k, abs(k), most * c.delta};
}

// share: the product of both, which bounds v.
template <class V>
KC_HD noisy_pair<V> add_noise(const bounded<V>& v, V share, V noise_i, V noise_j) {
    const V whole = share + v.size, sum = noise_i + noise_j, product = noise_i * noise_j;
    // 1 - share^2 = sum - product
    return {v.k, v.size, fma(v.gap, whole, sum - product), v.gap * whole, sum, product};
}

// Of the angle whose sine is v, or whose cosine is |v|: the angle, and 1/sqrt(1 - v^2). By half the
// angle, whose tangent is v/(1 + sqrt det) or sqrt(det)/(1 + |v|).
template <class V>
struct angle_of {
    V angle, over;
};
template <class V>
KC_HD angle_of<V> arcsin_of(const noisy_pair<V>& q) {
    const V one(1), root = sqrt(q.det);
    const V half = q.v / (one + root);
    return {half * arctan_ratio(half * half), one / root};
}
template <class V>
KC_HD angle_of<V> arccos_of(const noisy_pair<V>& q) {
    const V one(1), root = sqrt(q.det);
    const V half = root / (one + q.size);
    return {half * arctan_ratio(half * half), one / root};
}

}  // namespace kc
