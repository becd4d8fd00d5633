// What the Cython driver calls: the headers at this machine's vector width.
#pragma once

#include "kernelcore/gegenbauer.h"

namespace kc {

inline void project_native(const powers<double>& terms, index_t q, index_t p, index_t first,
                           index_t degrees, projection<double>* out) {
    raise_dimension<native<double>>(terms, q, p, int(first));
    project<native<double>>(terms, double(p), first, degrees, out);
}
inline void integrate_native(const double* t, const double* values, index_t n, double p,
                             index_t degrees, double* scratch, double* out) {
    integrate<native<double>>(t, values, n, p, degrees, scratch, scratch + n, out);
}
inline void multiply_native(const double* a, const double* b, index_t n, double* c) {
    multiply_series<native<double>>(a, b, n, c);
}
inline void inverse_root_native(const double* w, double d0, index_t n, double* s, double* scratch) {
    inverse_root<native<double>>(w, d0, n, s, scratch);
}
inline void shift_native(double* c, index_t n, double x) { shift_series(c, n, x); }
constexpr int native_width = value<native<double>>::width;

}  // namespace kc
