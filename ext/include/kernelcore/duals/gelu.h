// Gelu: x Phi(x) = E[x step(x + e)], e of variance 1. With A = a + 1, C = c + 1, v = K/sqrt(A C),
// w = 1 - v^2, h = 1/A + 1/C and b = (a c - K^2)/(A C) + h v^2, integrating
// E[x y step(x + e) step(y + e')] by parts twice gives
//     E     = K kappa0(v)/2 + sqrt(A C) b / (2 pi sqrt w),
//     dE/dK = kappa0(v)/2 + v (h + 1/(A C w)) / (2 pi sqrt w).
#pragma once

#include "../pair.h"
#include "step.h"

namespace kc {

// The pair with noise; root = sqrt(A C), noise_i = 1/A, noise_j = 1/C.
template <class V>
KC_HD dual<V> gelu(const noisy_pair<V>& q, V k, V root, V noise_i, V noise_j) {
    using T = real_of<V>;
    const V half(T(0.5));
    const V density = V(T(0.15915494309189535)) / sqrt(q.det);
    const V h = noise_i + noise_j;
    const V b = fma(h * q.rho.u, q.rho.u, q.part);
    const V half_kappa0 = half * step(q.rho).u;
    return {fma(k, half_kappa0, density * b * root),
            fma(density * q.rho.u, h + noise_i * noise_j / q.det, half_kappa0)};
}

}  // namespace kc
