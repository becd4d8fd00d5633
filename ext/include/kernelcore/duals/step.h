// Step: 1 for x > 0.  E = kappa0(u)/2.   Sign: E = (2/pi) arcsin u.   Cho & Saul order 0.
// Both have derivative zero almost everywhere.
#pragma once

#include "kink.h"

namespace kc {

template <class V>
KC_HD correlation<V> step(correlation<V> c) {
    const V one(1), zero(0);
    const V far = far_kappas(c.delta).k0;
    const auto negative = c.u < zero;
    return {select(negative, far, one - far), select(negative, one - far, far)};
}

template <class V>
KC_HD correlation<V> sign(correlation<V> c) {
    using T = real_of<V>;
    const V far = far_kappas(c.delta).k0;
    return {V(T(0.63661977236758134)) * arcsin(c.u, c.delta), far + far};
}

}  // namespace kc
