// Single images: the variance at a position, and what pairs look up of it.
#pragma once

#include "lanes.h"

namespace kc {

// |x|^2 scale of one position's channels.
template <class T>
KC_HD double pixel_variance(const T* x, index_t channels, double scale) {
    double sum = 0;
    for (index_t c = 0; c < channels; c++) {
        const double v = x[c];
        sum = fma(v, v, sum);
    }
    return sum * scale;
}

// factor / sqrt(v), 0 where that is beyond `largest`, and sqrt(gain v).
template <class T>
struct norm_pair {
    T inverse, sd;
};
template <class T>
KC_HD norm_pair<T> norms_of(double v, double factor, double gain, double largest) {
    const double over = factor / sqrt(v);
    return {static_cast<T>(over <= largest ? over : 0.0), static_cast<T>(sqrt(gain * v))};
}

}  // namespace kc
