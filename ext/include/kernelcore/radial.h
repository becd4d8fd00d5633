// Kernels of a distance: from the reduced sum over coordinates to the value.
//     Gaussian exp(-s/2l^2), Laplacian exp(-sqrt s / l) or exp(-s_1 / l), Cauchy 1/prod,
//     Matern nu = p + 1/2 (Rasmussen & Williams 4.16): with r = sqrt(2 nu) d/l,
//     exp(-r) sum_i c_i r^i,  c_i = p!/(2p)! (2p-i)!/((p-i)! i!) 2^i,
//     and any other nu by polynomials (matern_of).
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
// 2^(1-nu)/Gamma(nu) r^nu K_nu(r), x = r^2 = scale s. With n the integer next to nu, up to x = near
//     A(x) + x^n (x^(nu-n) - 1)/(nu-n) B(x),
// from the series of K_nu (DLMF 10.27.4) with what is singular at nu = n taken together, A and B
// entire; beyond, e^-r r^(nu-1/2) C(1/r) (DLMF 10.40.2). f: near, nu - n, n, (nu - 1/2)/2, and for
// float, then for double: the numbers of coefficients of A, B and C, and these, highest first, for
// 2 x/near - 1 and 2 sqrt(near)/r - 1.
template <class V>
KC_HD V matern_of(V s, V scale, const real_of<V>* f) {
    using T = real_of<V>;
    const V one(1), two(T(2)), tiny(T(is_single<V> ? 1e-36 : 1e-300));
    const T* counts = f + 4;
    if constexpr (!is_single<V>) counts += 3 + int(f[4]) + int(f[5]) + int(f[6]);
    const int count_a = int(counts[0]), count_b = int(counts[1]), count_c = int(counts[2]);
    const T *a = counts + 3, *b = a + count_a, *c = b + count_b;
    const V near(f[0]), x = maximum(scale * s, tiny), r = sqrt(x), l = log(x);
    const V y = fma(two / near, minimum(x, near), -one);
    const V z = fma(sqrt(near) * two, one / maximum(r, sqrt(near)), -one);
    V sum_a(a[0]), sum_b(b[0]), sum_c(c[0]), power(1);
    for (int k = 1; k < count_a; k++) sum_a = fma(sum_a, y, V(a[k]));
    for (int k = 1; k < count_b; k++) sum_b = fma(sum_b, y, V(b[k]));
    for (int k = 1; k < count_c; k++) sum_c = fma(sum_c, z, V(c[k]));
    for (int k = 0; k < int(f[2]); k++) power = power * minimum(x, near);
    const V grow = f[1] == T(0) ? l : expm1_negative(V(f[1]) * l) / V(f[1]);
    const V inside = minimum(fma(power * grow, sum_b, sum_a), one);
    const V value = select(x <= near, inside, exp(fma(V(f[3]), l, -r)) * sum_c);
    return select(s <= V(0), one, value);
}
// s = prod_k (1 + D_k^2/l^2)
template <class V>
KC_HD V cauchy(V s) {
    return V(1) / s;
}

}  // namespace kc
