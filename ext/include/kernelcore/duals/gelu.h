// Gelu: x Phi(x) = E[x step(x + e)], e of variance 1. With A = a + 1, C = c + 1, v = K/sqrt(A C),
// w = 1 - v^2, h = 1/A + 1/C and b = (a c - K^2)/(A C) + h v^2, integrating
// E[x y step(x + e) step(y + e')] by parts twice gives
//     E     = K kappa0(v)/2 + sqrt(A C) b / (2 pi sqrt w),
//     dE/dK = kappa0(v)/2 + v (h + 1/(A C w)) / (2 pi sqrt w).
#pragma once

#include "../pair.h"

namespace kc {

// v below the product `share` of both sides, with their shares of noise 1/A and 1/C, their losses
// (pair.h) and root = sqrt(A C). arccos |v| is that of a correlation with 1 - |v| = delta (kink.h).
template <class V>
KC_HD dual<V> gelu(const bounded<V>& v, V share, V noise_i, V noise_j, V loss_i, V loss_j, V root) {
    using T = real_of<V>;
    const V one(1), half(T(0.5)), inverse_2pi(T(0.15915494309189535));
    const V delta = v.gap + both_losses(loss_i, loss_j), h = noise_i + noise_j;
    const V over = one / sqrt(delta * (one + v.size));          // 1/sqrt w
    const V beyond = half * sqrt(delta) * arccos_ratio(delta);  // kappa0(-|v|)/2
    const V half_kappa0 = select_negative(v.k, beyond, half - beyond);
    const V density = inverse_2pi * over;
    const V b = fma(h * v.k, v.k, v.gap * (share + v.size));
    return {root * fma(v.k, half_kappa0, density * b),
            fma(density * v.k, fma(noise_i * noise_j, over * over, h), half_kappa0)};
}

}  // namespace kc
