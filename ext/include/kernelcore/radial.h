// Kernels of a distance: from the reduced sum over coordinates to the value.
//     Gaussian exp(-s/2l^2), Laplacian exp(-sqrt s / l) or exp(-s_1 / l), Cauchy 1/prod,
//     Matern nu = p + 1/2 (Rasmussen & Williams 4.16): with r = sqrt(2 nu) d/l,
//     exp(-r) sum_i c_i r^i,  c_i = p!/(2p)! (2p-i)!/((p-i)! i!) 2^i.
#pragma once

#include "elementary.h"

namespace kc {

// exp(-scale s)
template <class V>
KC_HD V exponential_of(V s, V scale) {
    return exp(-scale * s);
}
// exp(-scale sqrt s)
template <class V>
KC_HD V laplacian(V s, V scale) {
    return exp(-scale * sqrt(s));
}
// coefficients c_0 .. c_p
template <class V>
KC_HD V matern(V s, V scale, const real_of<V>* coefficients, int p) {
    const V r = scale * sqrt(s);
    V sum(coefficients[p]);
    for (int i = p - 1; i >= 0; i--) sum = fma(sum, r, V(coefficients[i]));
    const V e = exp(-r);
    // Far away the polynomial may overflow where the product underflows.
    return select(e <= V(0), e, sum * e);
}
// s = prod_k (1 + D_k^2/l^2)
template <class V>
KC_HD V cauchy(V s) {
    return V(1) / s;
}

}  // namespace kc
