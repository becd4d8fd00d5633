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
// K / sqrt(A C), and (A C - K^2) / (A C) as a sum of positive shares that cannot overflow.
template <class V>
struct noisy_pair {
    correlation<V> rho;
    V det, root;  // (A C - K^2)/(A C), sqrt(A C)
    V part;       // (a c - K^2)/(A C)
    V inverse_a, inverse_c;
};

template <class V>
KC_HD noisy_pair<V> add_noise(const pair<V>& p, V s) {
    using T = real_of<V>;
    const V one(1), two(T(2));
    const V ia = one / (p.a + s), ic = one / (p.c + s);
    const V fa = p.a * ia, fc = p.c * ic, na = s * ia, nc = s * ic;
    const V part = fa * fc * (p.rho.delta * (two - p.rho.delta));
    const V det = na * nc + (na * fc + nc * fa) + part;
    const V u = p.rho.u * (sqrt(fa) * sqrt(fc));
    return {{u, det / (one + abs(u))}, det, sqrt(p.a + s) * sqrt(p.c + s), part, ia, ic};
}

}  // namespace kc
