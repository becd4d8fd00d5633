// Single images: loops over their positions, and images side by side in lanes.
#pragma once

#include "../variances.h"

namespace kc {

// The variance at every position of an image.
template <class T>
KC_HD void pixel_variances(const T* x, index_t positions, index_t channels, double scale,
                           double* out) {
    for (index_t p = 0; p < positions; p++)
        out[p] = pixel_variance(x + p * channels, channels, scale);
}

// One axis of an image: outputs windows of taps positions each, -1 for padding.
struct window_axis {
    const long long* at;
    index_t outputs, taps;
};

// scale times the sum over windows, plus bias; `line` has room for a row of the image.
template <class T>
KC_HD void window_variances(const T* in, index_t columns, window_axis y, window_axis x, T scale,
                            T bias, T* line, T* out) {
    for (index_t i = 0; i < y.outputs; i++) {
        for (index_t q = 0; q < columns; q++) line[q] = 0;
        for (index_t k = 0; k < y.taps; k++) {
            const index_t row = y.at[i * y.taps + k];
            if (row < 0) continue;
            for (index_t q = 0; q < columns; q++) line[q] += in[row * columns + q];
        }
        for (index_t j = 0; j < x.outputs; j++) {
            T sum = 0;
            for (index_t k = 0; k < x.taps; k++) {
                const index_t q = x.at[j * x.taps + k];
                if (q >= 0) sum += line[q];
            }
            out[i * x.outputs + j] = fma(sum, scale, bias);
        }
    }
}

template <class T>
KC_HD void norm_tables(const double* v, index_t positions, double factor, double gain,
                       double largest, T* inverse, T* sd) {
    for (index_t p = 0; p < positions; p++) {
        const norm_pair<T> n = norms_of<T>(v[p], factor, gain, largest);
        inverse[p] = n.inverse;
        sd[p] = n.sd;
    }
}

// Copy row k of up to `width` rows into lane k; the lanes of missing rows are zero.
template <class V>
KC_HD void into_lanes(const real_of<V>* rows, index_t count, index_t length, real_of<V>* out) {
    constexpr index_t width = value<V>::width;
    index_t p = 0;
    if (count == width)
        for (; p + width <= length; p += width) {
            V block[width];
    KC_UNROLL for (index_t k = 0; k < width; k++) block[k] = load<V>(rows + k * length + p);
            transpose(block);
            KC_UNROLL for (index_t k = 0; k < width; k++) store<V>(out + (p + k) * width, block[k]);
        }
    for (; p < length; p++)
        for (index_t k = 0; k < width; k++)
            out[p * width + k] = k < count ? rows[k * length + p] : 0;
}

}  // namespace kc
