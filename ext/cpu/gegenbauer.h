// What the Cython driver calls: the headers at this machine's vector width.
#pragma once

#include "kernelcore/gegenbauer.h"
#include "watch.h"

namespace kc {

// Pieces of as many steps as one scale is kept for: cutting the work there changes no result.
constexpr index_t piece = steps_per_scale<native<double>>;

inline index_t project_pieces(index_t q, index_t p, index_t degrees) {
    return ((p - q) / 2 + piece - 1) / piece + (degrees + piece - 1) / piece;
}
inline void project_native(const powers<double>& terms, index_t q, index_t p, index_t first,
                           index_t degrees, projection<double>* out, watched_call& call,
                           int thread) {
    for (; q < p; q += 2 * piece) {
        if (!call.after(thread, piece * terms.count)) return;
        const index_t next = q + 2 * piece < p ? q + 2 * piece : p;
        raise_dimension<native<double>>(terms, q, next, int(first));
        call.done(1);
    }
    for (index_t j = 0; j < degrees; j += piece) {
        if (!call.after(thread, piece * terms.count)) return;
        const index_t count = degrees - j < piece ? degrees - j : piece;
        project<native<double>>(terms, double(p), first + 2 * j, count, out + j);
        call.done(1);
    }
}
inline void integrate_native(const double* t, const double* values, index_t n, double p,
                             index_t degrees, double* scratch, double* out, watched_call& call) {
    for (index_t k = 0; k < degrees; k += piece) {
        if (!call.after(0, piece * n)) return;
        const index_t end = k + piece < degrees ? k + piece : degrees;
        integrate<native<double>>(t, values, n, p, k, end, scratch, scratch + n, out);
        call.done(end - k);
    }
}

}  // namespace kc
