// Tables of rows as polynomials of their standard deviation, sum_p c_p T_p(t) with -1 <= t <= 1.
#pragma once

#include "lanes.h"

namespace kc {

constexpr int most_terms = 16;

// T_0(t) .. T_(terms - 1)(t).
template <class V>
KC_HD void chebyshev_terms(V t, int terms, V* out) {
    out[0] = V(1);
    if (terms > 1) out[1] = t;
    for (int p = 2; p < terms; p++) out[p] = fma(t + t, out[p - 1], -out[p - 2]);
}

template <class V>
KC_HD V polynomial(const real_of<V>* c, const V* terms, int count) {
    V sum = V(c[0]) * terms[0];
    for (int p = 1; p < count; p++) sum = fma(V(c[p]), terms[p], sum);
    return sum;
}

}  // namespace kc
