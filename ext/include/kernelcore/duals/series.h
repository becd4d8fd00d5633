// Any activation: phi(sd z) = sum_n a_n(sd) h_n(z) in normalised Hermite polynomials, hence
// (Mehler)  E[phi phi] = sum_n a_n(sd_i) a_n(sd_j) u^n  and  sqrt(a c) E[phi' phi'] = d/du of it.
// The rows bring their coefficients; polynomials are finite sums, and exact.
#pragma once

#include "../correlation.h"

namespace kc {

template <class V, class Rows, class Columns>
KC_HD void series(const Rows& x, const Columns& y, index_t at, int table, int count, V u, V* value,
                  V* slope) {
    V b(0), db(0);
    for (int n = count - 1; n >= 0; n--) {
        db = fma(db, u, b);
        b = fma(b, u, x(table + n, at) * y(table + n, at));
    }
    *value = b;
    *slope = db;
}

}  // namespace kc
