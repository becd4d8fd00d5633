// Gelu: x Phi(x) = E[x step(x + e)], e of variance 1. With A = a + 1, C = c + 1, W = A C - K^2,
// p = 1/(2 pi sqrt W) and h = 1/A + 1/C, integrating E[x y step(x + e) step(y + e')] by parts
// twice gives
//     E     = K kappa0/2 + p (a c - K^2 + h K^2),
//     dE/dK = kappa0/2 + p K (2 h - 1) + p K (a c - K^2 + h K^2) / W,
// kappa0 at the correlation of x + e and y + e'.
#pragma once

#include "../pair.h"
#include "step.h"

namespace kc {

template <class V>
KC_HD dual<V> gelu(const pair<V>& p) {
    using T = real_of<V>;
    const V half(T(0.5)), one(1), k = p.k;
    const noisy_pair<V> q = add_noise(p, one);
    const V density = V(T(0.15915494309189535)) / sqrt(q.det);
    const V h = one / (p.a + one) + one / (p.c + one);
    const V body = fma(h * k, k, determinant(p));
    const V half_kappa0 = half * step(q.rho).u;
    return {fma(k, half_kappa0, density * body),
            fma(density * k, (h + h - one) + body / q.det, half_kappa0)};
}

}  // namespace kc
