// The norm of a row: scaled by a power of two against overflow, summed with the error of every
// product and sum kept (Ogita, Rump & Oishi 2005), so good to the last place at any length.
#pragma once

#include "lanes.h"

namespace kc {

template <class T>
KC_HD double row_norm(const T* x, index_t d) {
    double top = 0;
    for (index_t q = 0; q < d; q++) {
        const double a = abs(double(x[q]));
        if (!(a <= top)) top = a;  // also carries a NaN outwards
    }
    if (!(top > 0) || !(top <= 0x1.fffffffffffffp1023)) return top;
    double scale = 1;
    while (top * scale > 0x1p400) scale *= 0x1p-400;
    while (top * scale < 0x1p-400) scale *= 0x1p400;
    double sum = 0, error = 0;
    for (index_t q = 0; q < d; q++) {
        const double a = scale * double(x[q]);
        const double p = a * a;
        const double s = sum + p, t = s - sum;
        error += ((sum - (s - t)) + (p - t)) + product_error(a, a, p);
        sum = s;
    }
    return sqrt(sum + error) / scale;
}

}  // namespace kc
