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
    V v;
    V det;           // (A C - K^2)/(A C)
    V part;          // (a c - K^2)/(A C)
    V sum, product;  // of both noises
};

// share: the product of both; gap = share - |v|.
template <class V>
KC_HD noisy_pair<V> add_noise(V v, V gap, V share, V noise_i, V noise_j) {
    const V size = share + abs(v), sum = noise_i + noise_j, product = noise_i * noise_j;
    // 1 - share^2 = sum - product
    return {v, fma(gap, size, sum - product), gap * size, sum, product};
}

// k, at most `most` in size, and what |k| leaves of it: within rounding, `snap`, nothing.
template <class V>
struct bounded {
    V k, gap;
};
template <class V>
KC_HD bounded<V> bound_by(V most, V k, V snap) {
    const V left = most - abs(k), gap = select(left <= snap * most, V(0), left);
    const V size = most - gap;
    return {select_negative(k, -size, size), gap};
}

// Of the angle whose sine or cosine is v, given det = 1 - v^2: the angle, and 1/sqrt(det). By half the
// angle, whose tangent is v/(1 + sqrt det) or sqrt(det)/(1 + |v|).
template <class V>
struct angle_of {
    V angle, over;
};
template <class V>
KC_HD angle_of<V> arcsin_of(V v, V det) {
    const V one(1), root = sqrt(det);
    const V half = v / (one + root);
    return {half * arctan_ratio(half * half), one / root};
}
// arccos |v|
template <class V>
KC_HD angle_of<V> arccos_of(V v, V det) {
    const V one(1), root = sqrt(det);
    const V half = root / (one + abs(v));
    return {half * arctan_ratio(half * half), one / root};
}

}  // namespace kc
