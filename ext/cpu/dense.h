// What the Cython driver calls: the headers at this machine's vector width.
#pragma once

#include "kernelcore/host/tile.h"
#include "kernelcore/norm.h"
#include "watch.h"

namespace kc {

template <class T>
void dense_tile(const gram_job<T>& job, const tile_range<T>& range, T* scratch, watched_call& call,
                int thread) {
    watcher watch{call, thread};
    compute_tile<native<T>>(job, range, scratch, watch);
}
// Pairs of panels in a tile, without those below the diagonal.
template <class T>
index_t dense_pieces(const gram_job<T>& job, const tile_range<T>& r) {
    index_t pieces = 0;
    for (index_t i = r.i0; i < r.i1; i++) {
        const index_t first = job.symmetric && i > r.j0 ? i : r.j0;
        if (first < r.j1) pieces += r.j1 - first;
    }
    return pieces;
}
template <class T>
void dense_pack(const side<T>& s, index_t d, index_t q, T* packed) {
    constexpr index_t step = panel<native<T>>;
    const index_t first = q * step;
    pack<native<T>>(s.rows + first * d, s.scale + first, s.count - first, d, packed);
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
struct pairs_job {
    const op* ops;
    int count;
    const double *coefficients, *x_table, *y_table;
    index_t length;
    double *u, *delta, *t;
    bool raw;
};
constexpr index_t pairs_strip = 256, pairs_together = 16;
inline void dense_pairs(const pairs_job& job, index_t piece, double* saved, watched_call& call,
                        int thread) {
    using V = native<double>;
    const index_t most = (piece + 1) * pairs_together * pairs_strip;
    const index_t end = most < job.length ? most : job.length;
    for (index_t at = most - pairs_together * pairs_strip; at < end; at += pairs_strip) {
        if (!call.after(thread, job.count * pairs_strip)) return;
        const strip<double> s{job.u + at, job.delta + at, job.t + at};
        const column_of<V> x{job.x_table + at, job.length}, y{job.y_table + at, job.length};
        if (job.raw)
            walk<V, output::raw>(job.ops, job.count, job.coefficients, x, y, pairs_strip, s, saved);
        else
            walk<V, output::tangent>(job.ops, job.count, job.coefficients, x, y, pairs_strip, s,
                                     saved);
    }
    call.done(1);
}

inline void dense_correlate(const double* a, const double* c, const double* k, index_t length,
                            double* u, double* delta) {
    using V = native<double>;
    for (index_t at = 0; at < length; at += value<V>::width) {
        const correlation<V> r = correlate(load<V>(a + at), load<V>(c + at), load<V>(k + at));
        store<V>(u + at, r.u);
        store<V>(delta + at, r.delta);
    }
}

}  // namespace kc
