// What the Cython driver calls: the headers at this machine's vector width.
#pragma once

#include "kernelcore/norm.h"
#include "kernelcore/tile.h"

namespace kc {

template <class T>
void dense_tile(const gram_job<T>& job, const tile_range<T>& range, T* scratch) {
    compute_tile<native<T>>(job, range, scratch);
}
template <class T>
void dense_pack(const T* x, const T* scale, index_t rows, index_t d, T* packed) {
    pack<native<T>>(x, scale, rows, d, packed);
}
template <class T>
double dense_norm(const T* x, index_t d) {
    return row_norm<T, native<double>>(x, d);
}
template <class T>
index_t dense_scratch(index_t rows, index_t columns, int slots, const T*) {
    return tile_scratch<native<T>>(rows, columns, slots);
}
template <class T>
int dense_panel(const T*) {
    return panel<native<T>>;
}

// Elementwise: entry k has its own row tables and its own column tables.
inline void dense_pairs(const op* ops, int count, const double* coefficients, const double* x_table,
                        const double* y_table, index_t stride, index_t first, index_t length,
                        double* u, double* delta, double* t, double* saved, bool raw) {
    using V = native<double>;
    const strip<double> s{u + first, delta + first, t + first};
    const column_of<V> x{x_table + first, stride}, y{y_table + first, stride};
    if (raw)
        walk<V, output::raw>(ops, count, coefficients, x, y, length, s, saved);
    else
        walk<V, output::tangent>(ops, count, coefficients, x, y, length, s, saved);
}

inline void dense_correlate(const double* a, const double* c, const double* k, index_t first,
                            index_t length, double* u, double* delta) {
    using V = native<double>;
    for (index_t at = first; at < first + length; at += value<V>::width) {
        const correlation<V> r = correlate(load<V>(a + at), load<V>(c + at), load<V>(k + at));
        store<V>(u + at, r.u);
        store<V>(delta + at, r.delta);
    }
}

}  // namespace kc
