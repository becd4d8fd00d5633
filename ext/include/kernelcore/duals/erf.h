// Erf: a sign seen through Gaussian noise, erf(x) = E[sign(x + e)], e of variance 1/2. So with
// A = a + 1/2, C = c + 1/2:  E = (2/pi) arcsin(K / sqrt(A C)),  dE/dK = (2/pi) / sqrt(A C - K^2)
// (Williams 1997).
#pragma once

#include "../pair.h"

namespace kc {

// v = K / sqrt(A C) below the product `share` of both sides, with their shares of noise (pair.h) and
// inverse = 1 / sqrt(A C). The tangent of half the angle whose sine is v is v/(1 + sqrt(1 - v^2)).
template <class V>
KC_HD dual<V> erf(const bounded<V>& v, V share, V noise_i, V noise_j, V inverse) {
    using T = real_of<V>;
    const V one(1), two_over_pi(T(0.63661977236758134));
    const V det = fma(v.gap, share + v.size, both_losses(noise_i, noise_j));  // share^2 + noise = 1
    const V root = sqrt(det), half = v.k / (one + root);
    return {two_over_pi * (half * arctan_ratio(half * half)), two_over_pi * inverse * (one / root)};
}

}  // namespace kc
