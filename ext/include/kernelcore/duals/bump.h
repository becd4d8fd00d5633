// GaussianBump: exp(-(x + b)^2). With W = (1+2a)(1+2c) - 4K^2 and S = 2 + 2a + 2c - 4K,
//     E = W^(-1/2) exp(-b^2 S/W),   dE/dK = E (4 (K + b^2)/W - 8 b^2 K S/W^2).
#pragma once

#include "../pair.h"

namespace kc {

template <class V>
KC_HD dual<V> bump(const pair<V>& p, V b2) {
    using T = real_of<V>;
    const V one(1), two(T(2)), four(T(4)), eight(T(8));
    const V det = p.r * (p.r * (p.rho.delta * (two - p.rho.delta)));  // a c - K^2
    const V w = one / fma(four, det, fma(two, p.a + p.c, one));
    // 2a + 2c - 4K = 2 (sd_i - sd_j)^2 + 4 r (1 - u), but a relative error of S this small is
    // only an absolute one of the exponent: b^2 S/W <= b^2 2.
    const V s = fma(two, p.a + p.c, two) - four * p.k;
    const V e = sqrt(w) * exp(-b2 * s * w);
    return {e, e * w * (four * (p.k + b2) - eight * b2 * p.k * s * w)};
}

}  // namespace kc
