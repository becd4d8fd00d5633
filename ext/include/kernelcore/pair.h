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

// Independent noise of variance s on each side, A = a + s, C = c + s, bounds the correlation
// v = K / sqrt(A C) by the product of share = sd / sqrt A of both sides. Inputs bring in tables their
// share, noise = s / A > 0 and loss = 1 - share: what is missing from 1 is a sum of positive parts.
// 1 - x y for the products of two shares, from 1 - x and 1 - y.
template <class V>
KC_HD V both_losses(V i, V j) {
    return i + j - i * j;
}

}  // namespace kc
