// Sine and cosine of products of rows and frequencies: random Fourier features.
//
// z = k pi + r with |r| <= pi/2, and cos z = (-1)^k cos r, sin z = (-1)^k sin r: one reduction and no
// exchange of the two. Absolute error below 3 u of the scale for |z| <= wave_limit; larger z, whose
// own last bit is an eighth of a turn or more in single precision, count as the limit.
#pragma once

#include "coefficients.h"

namespace kc {

template <class T>
inline constexpr T wave_limit = same<T, float> ? T(0x1p21) : T(0x1p50);

template <class V>
struct wave {
    V cosine, sine;
};

template <class V>
KC_HD wave<V> wave_of(V z, V scale) {
    using T = real_of<V>;
    const V inside = maximum(minimum(z, V(wave_limit<T>)), V(-wave_limit<T>));
    const V k = round(inside * V(T(0.3183098861837907)));
    // pi in two parts: the product with the first is exact, or its error is added back.
    const V high(T(is_single<V> ? 0x1.921fb6p+1 : 0x1.921fb54442d18p+1));
    const V low(T(is_single<V> ? -0x1.777a5cp-24 : 0x1.1a62633145c07p-53));
#if KC_FMA
    const V near = fma(-k, high, inside);
#else
    const V whole = k * high;
    const V near = (inside - whole) - product_error(k, high, whole);
#endif
    const V r = fma(-k, low, near);
    const V odd = fma(round(k * V(T(0.5))), V(T(-2)), k);  // -1, 0 or 1
    const V signed_scale = fma(odd * odd, V(T(-2)) * scale, scale);
    const V x = r * r;
    const V cosine = fma(x * x, cosine_tail(x), fma(x, V(T(-0.5)), V(T(1))));
    const V sine = fma(r * x, sine_tail(x), r);
    return {signed_scale * cosine, signed_scale * sine};
}

// scale cos z and scale sin z of n numbers; cosines may be z itself.
template <class V>
KC_LOOP void cosines_and_sines(const real_of<V>* z, index_t n, real_of<V> scale,
                               real_of<V>* cosines, real_of<V>* sines) {
    constexpr int width = value<V>::width;
    using T = real_of<V>;
    index_t i = 0;
    for (; i + width <= n; i += width) {
        const wave<V> w = wave_of(load<V>(z + i), V(scale));
        store(cosines + i, w.cosine);
        store(sines + i, w.sine);
    }
    for (; i < n; i++) {
        const wave<T> w = wave_of(z[i], scale);
        cosines[i] = w.cosine;
        sines[i] = w.sine;
    }
}

// scale cos(z + phase) of n numbers, in place.
template <class V>
KC_LOOP void shifted_cosines(real_of<V>* z, const real_of<V>* phase, index_t n, real_of<V> scale) {
    constexpr int width = value<V>::width;
    using T = real_of<V>;
    index_t i = 0;
    for (; i + width <= n; i += width)
        store(z + i, wave_of(load<V>(z + i) + load<V>(phase + i), V(scale)).cosine);
    for (; i < n; i++) z[i] = wave_of(T(z[i] + phase[i]), scale).cosine;
}

}  // namespace kc
