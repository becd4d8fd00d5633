// Exp: E = exp((a + c)/2 + K), its own derivative; the shift is a factor.
#pragma once

#include "../pair.h"

namespace kc {

template <class V>
KC_HD dual<V> exponential(const pair<V>& p, V factor) {
    using T = real_of<V>;
    const V e = factor * exp(fma(V(T(0.5)), p.a + p.c, p.k));
    return {e, e};
}

}  // namespace kc
