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

// a c - k^2 without cancellation.
template <class V>
KC_HD V determinant(const pair<V>& p) {
    using T = real_of<V>;
    return p.r * p.r * p.rho.delta * (V(T(2)) - p.rho.delta);
}

// The pair after independent noise of variance s on each side: with A = a + s, C = c + s its
// correlation K / sqrt(A C), and A C - K^2 = s (s + a + c) + (a c - K^2).
template <class V>
struct noisy_pair {
    correlation<V> rho;
    V det;
};

template <class V>
KC_HD noisy_pair<V> add_noise(const pair<V>& p, V s) {
    const V root = sqrt(p.a + s) * sqrt(p.c + s);
    const V det = fma(s, s + (p.a + p.c), determinant(p));
    return {{p.k / root, det / (root * (root + abs(p.k)))}, det};
}

}  // namespace kc
