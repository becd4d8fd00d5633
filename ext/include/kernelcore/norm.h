// The norm of a row, in double. For rows of doubles it is good to the last place at any length: the
// rounding errors of all products and sums are kept and added at the end (Ogita, Rump & Oishi 2005).
// For rows of floats, whose squares are exact, plain sums of d/4 or fewer terms are added: 1e-12 at a
// million coordinates, which no float sees.
#pragma once

#include "lanes.h"

namespace kc {

template <class T, class V>
KC_HD V load_wide(const T* p) {
    V x;
    if constexpr (value<V>::width == 1)
        x = V(p[0]);
    else if constexpr (same<T, double>)
        x = load<V>(p);
    else
        for (int k = 0; k < value<V>::width; k++) x.v[k] = p[k];
    return x;
}

// sum of squares so far, and the errors made
template <class V>
struct exact_sum {
    V sum, error;

    // The error of a sum of two numbers that are not negative is exact: the smaller one without
    // what the sum has of it.
    KC_HD void add(V p, V p_error) { error = error + (error_of(p) + p_error); }
    KC_HD V error_of(V p) {
        const auto less = sum < p;
        const V s = sum + p, big = select(less, p, sum), small = select(less, sum, p);
        sum = s;
        return small - (s - big);
    }
    KC_HD void add_square(V a) {
        const V p = a * a;
        add(p, product_error(a, a, p));
    }
};

// |scale x|^2, `plain` where the scale is 1; V is a vector of doubles.
template <class T, class V, bool plain>
KC_HD double sum_of_squares_of(const T* x, index_t d, double scale) {
    constexpr int width = value<V>::width;
    const V zero(0.0);
    exact_sum<V> even{zero, zero}, odd{zero, zero};
    index_t q = 0;
    for (; q + 2 * width <= d; q += 2 * width) {
        const V a = load_wide<T, V>(x + q), b = load_wide<T, V>(x + q + width);
        even.add_square(plain ? a : V(scale) * a);
        odd.add_square(plain ? b : V(scale) * b);
    }
    exact_sum<double> total{0.0, 0.0};
    double parts[4][width];
    store<V>(parts[0], even.sum);
    store<V>(parts[1], odd.sum);
    store<V>(parts[2], even.error);
    store<V>(parts[3], odd.error);
    for (int k = 0; k < width; k++) {
        total.add(parts[0][k], parts[2][k]);
        total.add(parts[1][k], parts[3][k]);
    }
    for (; q < d; q++) total.add_square(scale * double(x[q]));
    return total.sum + total.error;
}

// Not finite where x is not, or where the norm overflows.
template <class T, class V>
KC_HD double row_norm(const T* x, index_t d) {
    const double sum = sum_of_squares_of<T, V, true>(x, d, 1.0);
    if (sum > 0x1p-900 && sum < 0x1p1000) return sqrt(sum);
    // A zero row, or squares out of range: again, scaled by powers of two.
    double top = 0;
    for (index_t q = 0; q < d; q++) {
        const double a = abs(double(x[q]));
        if (!(a <= top)) top = a;  // also carries a NaN outwards
    }
    if (!(top > 0) || !(top <= 0x1.fffffffffffffp1023)) return top;
    double scale = 1;
    while (top * scale > 0x1p400) scale *= 0x1p-400;
    while (top * scale < 0x1p-400) scale *= 0x1p400;
    return sqrt(sum_of_squares_of<T, V, false>(x, d, scale)) / scale;
}

// The norms of rows of floats, one per lane of V; the last of `rows` rows stands in for those beyond,
// unless there are enough for the `whole` vector.
template <class T, class V, bool whole>
KC_HD V norms_beside(const T* x, index_t rows, index_t d) {
    constexpr int width = value<V>::width;
    const T* row[width];
    KC_UNROLL for (int r = 0; r < width; r++) row[r] = x + (whole || r < rows ? r : rows - 1) * d;
    V even[width], odd[width];
    KC_UNROLL for (int r = 0; r < width; r++) even[r] = odd[r] = V(0.0);
    index_t q = 0;
    for (; q + 2 * width <= d; q += 2 * width)
        KC_UNROLL for (int r = 0; r < width; r++) {
            const V a = load_wide<T, V>(row[r] + q), b = load_wide<T, V>(row[r] + q + width);
            even[r] = fma(a, a, even[r]);
            odd[r] = fma(b, b, odd[r]);
        }
    KC_UNROLL for (int r = 0; r < width; r++) even[r] = even[r] + odd[r];
    V sum = sum_each(even);
    for (; q < d; q++) {
        double last[width];
        KC_UNROLL for (int r = 0; r < width; r++) last[r] = row[r][q];
        const V a = load<V>(last);
        sum = fma(a, a, sum);
    }
    return sqrt(sum);
}
// The norms of the next rows, likewise.
template <class T, class V>
KC_HD V row_norms(const T* x, index_t rows, index_t d) {
    constexpr int width = value<V>::width;
    if constexpr (same<T, float>) {
        return rows < width ? norms_beside<T, V, false>(x, rows, d)
                            : norms_beside<T, V, true>(x, rows, d);
    } else {
        double norm[width];
        for (int r = 0; r < width; r++) norm[r] = row_norm<T, V>(x + (r < rows ? r : rows - 1) * d, d);
        return load<V>(norm);
    }
}

}  // namespace kc
