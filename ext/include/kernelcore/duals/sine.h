// Sin, Cos and their shifts: sin(x + b) = cos b sin x + sin b cos x, cross terms vanish.
//     E[sin sin] = exp(-(a+c)/2) sinh K,   E[cos cos] = exp(-(a+c)/2) cosh K,
// each the derivative of the other. Through exp(|K| - (a+c)/2) = exp(-(sd_i - sd_j)^2/2 - r delta)
// and expm1(-2|K|) nothing overflows or cancels. phi = sqrt(sin2) sin + sqrt(cos2) cos. Up to
// |K| = 3 the factor is that of two tables, and sinh and cosh are polynomials.
#pragma once

#include "../pair.h"

namespace kc {

// decay = exp(-(a+c)/2), which may underflow where K is large; gap = r delta = sd_i sd_j - |K|.
template <class V>
KC_HD dual<V> sine(V k, V gap, V sd_i, V sd_j, V decay, V sin2, V cos2) {
    using T = real_of<V>;
    const V half(T(0.5)), two(T(2)), most(T(3));
    const V square = k * k;
    V s = decay * (k * sinh_ratio(square)), c = decay * cosh_even(square);
    const auto large = most < abs(k);
    if (any(large)) {
        const V apart = sd_i - sd_j;
        const V top = half * exp(-fma(half * apart, apart, gap));
        const V drop = expm1_negative(-two * abs(k));
        s = select(large, with_sign(-top * drop, k), s);
        c = select(large, top * (two + drop), c);
    }
    return {fma(sin2, s, cos2 * c), fma(sin2, c, cos2 * s)};
}

}  // namespace kc
