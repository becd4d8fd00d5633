// Gelu: x Phi(x) = E[x step(x + e)], e of variance 1. With A = a + 1, C = c + 1, v = K/sqrt(A C),
// w = 1 - v^2, h = 1/A + 1/C and b = (a c - K^2)/(A C) + h v^2, integrating
// E[x y step(x + e) step(y + e')] by parts twice gives
//     E     = K kappa0(v)/2 + sqrt(A C) b / (2 pi sqrt w),
//     dE/dK = kappa0(v)/2 + v (h + 1/(A C w)) / (2 pi sqrt w).
#pragma once

#include "../pair.h"

namespace kc {

// The pair with noise; root = sqrt(A C).
template <class V>
KC_HD dual<V> gelu(const noisy_pair<V>& q, V root) {
    using T = real_of<V>;
    const V half(T(0.5)), inverse_2pi(T(0.15915494309189535));
    const angle_of<V> a = arccos_of(q);
    const V beyond = inverse_2pi * a.angle;  // kappa0(-|v|)/2
    const V half_kappa0 = select_negative(q.v, beyond, half - beyond);
    const V density = inverse_2pi * a.over;
    const V b = fma(q.sum * q.v, q.v, q.part);
    return {root * fma(q.v, half_kappa0, density * b),
            fma(density * q.v, fma(q.product, a.over * a.over, q.sum), half_kappa0)};
}

}  // namespace kc
