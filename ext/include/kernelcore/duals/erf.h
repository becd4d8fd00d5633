// Erf: a sign seen through Gaussian noise, erf(x) = E[sign(x + e)], e of variance 1/2. So with
// A = a + 1/2, C = c + 1/2:  E = (2/pi) arcsin(K / sqrt(A C)),  dE/dK = (2/pi) / sqrt(A C - K^2)
// (Williams 1997).
#pragma once

#include "../pair.h"

namespace kc {

// The pair with noise; inverse = 1 / sqrt(A C).
template <class V>
KC_HD dual<V> erf(const noisy_pair<V>& q, V inverse) {
    using T = real_of<V>;
    const V two_over_pi(T(0.63661977236758134));
    const angle_of<V> a = arcsin_of(q);
    return {two_over_pi * a.angle, two_over_pi * inverse * a.over};
}

}  // namespace kc
