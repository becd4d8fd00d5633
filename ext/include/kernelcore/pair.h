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
// K / sqrt(A C), and (A C - K^2) / (A C) as a sum of positive shares. Rows bring theirs in tables,
// share = sd / sqrt A and noise = s / A, which add up to 1 = share^2 + noise.
template <class V>
struct noisy_pair {
    correlation<V> rho;
    V det;   // (A C - K^2)/(A C)
    V part;  // (a c - K^2)/(A C)
};

template <class V>
KC_HD noisy_pair<V> add_noise(correlation<V> c, V share_i, V noise_i, V share_j, V noise_j) {
    using T = real_of<V>;
    const V one(1), two(T(2));
    const V fi = share_i * share_i, fj = share_j * share_j;
    const V part = fi * fj * (c.delta * (two - c.delta));
    const V det = noise_i * noise_j + (noise_i * fj + noise_j * fi) + part;
    const V u = c.u * (share_i * share_j);
    return {{u, det / (one + abs(u))}, det, part};
}

}  // namespace kc
