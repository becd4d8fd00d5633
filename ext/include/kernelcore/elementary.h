// exp, expm1, arcsine and arccosine of a value.
#pragma once

#include "coefficients.h"

namespace kc {

template <class V>
struct exp_parts {
    V n, fraction;  // exp(x) = 2^n (1 + fraction), |fraction| <= sqrt 2 - 1
};

// Cody and Waite: x = n log 2 + r with log 2 split in two, so that r is good to the last bit.
template <class V>
KC_HD exp_parts<V> split_exp(V x) {
    using T = real_of<V>;
    const V n = round(x * V(T(1.4426950408889634)));
    V r;
    if constexpr (is_single<V>)
        r = fma(n, V(T(-0x1.7f7d1cp-20)), fma(n, V(T(-0x1.62e4p-1)), x));
    else
        r = fma(n, V(T(-0x1.ef35793c76730p-45)), fma(n, V(T(-0x1.62e42fefa3800p-1)), x));
    return {n, fma(r * r, exp_tail(r), r)};
}

// exp(x): relative error below 1.5 epsilon; 0 and infinity where the true value rounds to them.
template <class V>
KC_HD V exp(V x) {
    using T = real_of<V>;
    const V inside = maximum(minimum(x, V(limits<T>::exp_high)), V(limits<T>::exp_low));
    const exp_parts<V> e = split_exp(inside);
    // 2^n in two factors: one alone would leave the exponent's range before the result does.
    const V half = round(e.n * V(T(0.5)));
    return (V(T(1)) + e.fraction) * exp2i(half) * exp2i(e.n - half);
}

// exp(x) - 1 for x <= 1, relative error below 2 epsilon.
template <class V>
KC_HD V expm1_negative(V x) {
    using T = real_of<V>;
    const exp_parts<V> e = split_exp(maximum(x, V(T(-80))));  // exp(-80) is nothing next to 1
    const V scale = exp2i(e.n);
    return fma(scale, e.fraction, scale - V(T(1)));
}

// log x for a normal x > 0: x = m 2^e with m in [1/sqrt 2, sqrt 2], log m = 2 artanh((m-1)/(m+1)).
// Error about epsilon (1 + |log x|).
template <class V>
KC_HD V log(V x) {
    using T = real_of<V>;
    const V one(1), half(T(0.5));
    V e, m = split(x, &e);
    const auto large = V(T(1.4142135623730951)) < m;
    m = select(large, half * m, m);
    e = select(large, e + one, e);
    const V z = (m - one) / (m + one);
    return fma(e, V(T(0.69314718055994531)), z * artanh_ratio(z * z));
}

// arcsin u, delta = 1 - |u|: near +-1 from delta, elsewhere from u, so that it is right relative
// to itself for small u and relative to its distance from pi/2 for large.
template <class V>
KC_HD V arcsin(V u, V delta) {
    using T = real_of<V>;
    const V a = abs(u);
    const auto small = a <= V(T(0.5));
    const V z = select(small, a * a, V(T(0.5)) * delta);
    const V x = select(small, a, sqrt(z));
    const V y = x * arcsin_ratio(z);
    const V two(T(2)), half_pi(T(1.5707963267948966));
    return with_sign(select(small, y, half_pi - two * y), u);
}

}  // namespace kc
