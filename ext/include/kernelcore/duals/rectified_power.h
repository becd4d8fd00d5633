// RectifiedPower(n): max(0, x)^n; Cho & Saul's k_n = 2 E[phi phi], k_n(1) = (2n-1)!!.
//
// Normalised to 1 at u = 1, with z = (1 - |u|)/2 = delta/2 and the far side
//     g_n(z) = c_n z^(n+1/2) 2F1(1/2, 1/2; n+3/2; z),   c_n = Gamma(n+1)^2 / (Gamma(n+3/2) Gamma(n+1/2)),
// the profile is g_n for u < 0 and m_n(u) - (-1)^n g_n for u >= 0, where m_n is the profile of x^n:
// E[x^n y_+^n] is half of E[x^n y^n]. Every series here has terms of one sign (z <= 1/2), so the
// profile is right relative to itself for all u; Cho and Saul's closed form is not for u near -1.
// E[phi' phi'] = n^2 times the profile of order n - 1.
#pragma once

#include "kink.h"

namespace kc {

// g_n(z), summed until the terms, which at least halve, fall below the rounding of the first.
template <class V>
KC_HD V far_power(int n, V z) {
    using T = real_of<V>;
    constexpr int terms = is_single<V> ? 20 : 48;
    double scale = 0.63661977236758134;  // c_0 = 2/pi
    for (int k = 1; k <= n; k++) scale *= double(k) * k / ((k + 0.5) * (k - 0.5));
    V series(T(0));
    for (int k = terms; k > 0; k--) {
        const double ratio = (k - 0.5) * (k - 0.5) / ((n + k + 0.5) * k);
        series = z * V(T(ratio)) * (series + V(T(1)));
    }
    V power = sqrt(z);
    for (int k = 0; k < n; k++) power = power * z;
    return power * V(T(scale)) * (V(T(1)) + series);
}

template <class V>
struct near_parts {
    V value, gap;  // m_n(u), 1 - m_n(u)
};

// m_n(u) = sum over j = n, n-2, .. of w_j u^j for u >= 0, w_n = n!/(2n-1)!!,
// w_(j-2)/w_j = j (j-1)/(n-j+2)^2; and 1 - m_n = delta sum_i u^i (sum of w_j with j > i).
template <class V>
KC_HD near_parts<V> near_power(int n, V u, V delta) {
    using T = real_of<V>;
    double w = 1.0;
    for (int k = 1; k <= n; k++) w *= double(k) / (2 * k - 1);
    double above = 0.0;  // sum of w_j with j > i
    V value(T(0)), gap(T(0));
    for (int i = n; i >= 0; i--) {
        gap = fma(gap, u, V(T(above)));
        const bool present = (n - i) % 2 == 0;
        value = fma(value, u, V(T(present ? w : 0.0)));
        if (present) {
            above += w;
            w *= double(i) * (i - 1) / (double(n - i + 2) * (n - i + 2));
        }
    }
    return {value, gap * delta};
}

template <class V>
KC_HD correlation<V> rectified_profile(int n, correlation<V> c) {
    using T = real_of<V>;
    const V one(1), zero(0);
    const V far = far_power(n, V(T(0.5)) * c.delta);
    const near_parts<V> near = near_power(n, abs(c.u), c.delta);
    const V back = n % 2 == 0 ? far : -far;
    const auto negative = c.u < zero;
    return {select(negative, far, near.value - back),
            select(negative, one - far, maximum(near.gap + back, zero))};
}

template <class V>
KC_HD profile<V> rectified_power(int n, correlation<V> c) {
    using T = real_of<V>;
    const V slope = rectified_profile(n - 1, c).u * V(T(double(n) * n / (2 * n - 1)));
    return {rectified_profile(n, c), slope};
}

}  // namespace kc
