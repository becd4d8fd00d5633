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

// What order n needs, the same for all entries: g_n = sqrt(z) z^n sum_k far_k z^k, cut where terms,
// which at least halve, fall below the rounding of the first; m_n(u) = sum over j = n, n-2, .. of
// w_j u^j, w_n = n!/(2n-1)!!, w_(j-2)/w_j = j (j-1)/(n-j+2)^2.
template <class T>
struct power_series {
    static constexpr int terms = same<T, float> ? 21 : 49;
    int n;
    T far[terms];
    double top;
    KC_HD explicit power_series(int order) : n(order), top(1) {
        double scale = 0.63661977236758134;  // c_0 = 2/pi
        for (int k = 1; k <= n; k++) scale *= double(k) * k / ((k + 0.5) * (k - 0.5));
        for (int k = 0; k < terms; k++) {
            far[k] = T(scale);
            scale *= (k + 0.5) * (k + 0.5) / ((n + k + 1.5) * (k + 1));
        }
        for (int k = 1; k <= n; k++) top *= double(k) / (2 * k - 1);
    }
};

template <class V>
KC_HD V far_power(const power_series<real_of<V>>& f, V z) {
    V series(f.far[f.terms - 1]), power = sqrt(z);
    for (int k = f.terms - 2; k >= 0; k--) series = fma(series, z, V(f.far[k]));
    for (int k = 0; k < f.n; k++) power = power * z;
    return power * series;
}

template <class V>
struct near_parts {
    V value, gap;  // m_n(u), 1 - m_n(u)
};

// For u >= 0; 1 - m_n = delta sum_i u^i (sum of w_j with j > i).
template <class V>
KC_HD near_parts<V> near_power(const power_series<real_of<V>>& f, V u, V delta) {
    using T = real_of<V>;
    double w = f.top, above = 0.0;  // sum of w_j with j > i
    V value(T(0)), gap(T(0));
    for (int i = f.n; i >= 0; i--) {
        gap = fma(gap, u, V(T(above)));
        const bool present = (f.n - i) % 2 == 0;
        value = fma(value, u, V(T(present ? w : 0.0)));
        if (present) {
            above += w;
            w *= double(i) * (i - 1) / (double(f.n - i + 2) * (f.n - i + 2));
        }
    }
    return {value, gap * delta};
}

// From m_n, 1 - m_n and g_n.
template <class V>
KC_HD correlation<V> rectified_profile(bool even, correlation<V> c, near_parts<V> near, V far) {
    const V one(1), zero(0);
    const V back = even ? far : -far;
    const auto negative = c.u < zero;
    return {select(negative, far, near.value - back),
            select(negative, one - far, maximum(near.gap + back, zero))};
}

template <class V>
KC_HD profile<V> rectified_power(const power_series<real_of<V>>& value,
                                 const power_series<real_of<V>>& slope, correlation<V> c) {
    using T = real_of<V>;
    const int n = value.n;
    const V a = abs(c.u), z = V(T(0.5)) * c.delta;
    const correlation<V> one =
        rectified_profile(n % 2 == 1, c, near_power(slope, a, c.delta), far_power(slope, z));
    return {rectified_profile(n % 2 == 0, c, near_power(value, a, c.delta), far_power(value, z)),
            one.u * V(T(double(n) * n / (2 * n - 1)))};
}

// Orders 2 and 3 with polynomials for g_n, m_2 = (1 + 2 u^2)/3 and m_3 = (3 u + 2 u^3)/5.
template <class V>
KC_HD profile<V> rectified_square(correlation<V> c) {
    using T = real_of<V>;
    const V root = sqrt(c.delta), power = root * c.delta, a = abs(c.u);
    const V far = power * c.delta * kappa2_ratio(c.delta);
    const V two_thirds(T(2.0 / 3.0)), third(T(1.0 / 3.0)), four_thirds(T(4.0 / 3.0));
    const V gap = c.delta * fma(two_thirds, a, two_thirds);
    return {rectified_profile(true, c, {fma(two_thirds * a, a, third), gap}, far),
            four_thirds * fma(power, kappa1_ratio(c.delta), positive_part(c.u))};
}
template <class V>
KC_HD profile<V> rectified_cube(correlation<V> c) {
    using T = real_of<V>;
    const V root = sqrt(c.delta), power = root * c.delta * c.delta, a = abs(c.u), zero(0);
    const V far = power * c.delta * kappa3_ratio(c.delta), square = a * a;
    const V w3(T(0.4)), w1(T(0.6)), third(T(1.0 / 3.0)), scale(T(1.8));
    const V gap = c.delta * fma(w3, a + square, V(T(1)));
    const V far2 = power * kappa2_ratio(c.delta);
    const V near2 = fma(V(T(2.0 / 3.0)), square, third) - far2;
    return {rectified_profile(false, c, {a * fma(w3, square, w1), gap}, far),
            scale * select(c.u < zero, far2, near2)};
}

}  // namespace kc
