// An entry of a Gram matrix of rows: its correlation, from sums over coordinates, and its value.
#pragma once

#include "correlation.h"

namespace kc {

// What is done with a value.
enum combination : int { assign = 0, add_to = 1, multiply_by = 2 };
template <class T>
KC_HD void put(int how, T* out, T x) {
    *out = how == assign ? x : how == add_to ? *out + x : *out * x;
}

// Where the values of a Gram matrix go.
template <class T>
struct destination {
    T *k, *t;  // whole matrices with rows of `stride` numbers, or null when not wanted
    index_t stride;
    T factor;
    int combine;              // combination
    bool symmetric;           // entries j >= i are computed, and mirrored
    bool transposed = false;  // entry (i, j) is written at (j, i)
};

// The correlation of two rows, from the product of the unit rows.
template <class V>
KC_HD correlation<V> far_correlation(V u) {
    const V one(1);
    const V size = minimum(abs(u), one);
    return {with_sign(size, u), one - size};
}

// |x/|x| - sign y/|y||^2 / 2 = 1 - |u|, from the rows themselves. Each coordinate of a unit row
// is off by 2 units of rounding, so a scaled copy leaves at most 4 epsilon^2: that is zero.
template <class V>
KC_HD real_of<V> chord(const real_of<V>* x, real_of<V> x_scale, const real_of<V>* y,
                       real_of<V> y_scale, index_t d, bool opposite) {
    using T = real_of<V>;
    constexpr int width = value<V>::width;
    const T to = opposite ? -y_scale : y_scale;
    V sum(T(0));
    index_t q = 0;
    for (; q + width <= d; q += width) {
        const V e = load<V>(x + q) * V(x_scale) - load<V>(y + q) * V(to);
        sum = fma(e, e, sum);
    }
    T total = sum_lanes(sum);
    for (; q < d; q++) {
        const T e = x[q] * x_scale - y[q] * to;
        total = fma(e, e, total);
    }
    const T delta = total / 2, eps = limits<T>::epsilon;
    return delta <= 4 * eps * eps ? 0 : delta;
}

// Below this 1 - |u| is recomputed. At the threshold kappa0' = 1/(pi sqrt(2 delta)) = 1.8: what the
// product's rounding does to the NTK is then no larger near the diagonal than far from it.
template <class T>
inline constexpr T near_threshold = T(1) / 64;

// The correlation of two rows that close; two zero rows have delta = 0.
template <class T>
KC_HD correlation<T> near_correlation(T delta, bool opposite) {
    return {opposite ? delta - T(1) : T(1) - delta, delta};
}
// Copies of each other get the value of the diagonal.
template <class T>
KC_HD bool is_copy(correlation<T> near, double x_norm, double y_norm) {
    return near.delta == T(0) && !(near.u < T(0)) && x_norm == y_norm;
}

// factor sd_i sd_j times a correlation; in this order entry (j, i) has the bits of (i, j).
template <class V>
KC_HD V entry_of(V u, V sd_i, V sd_j, V factor) {
    return u * (sd_i * sd_j) * factor;
}

}  // namespace kc
