// What the Cython driver calls: the headers at this machine's vector width.
#pragma once

#include "kernelcore/cells.h"
#include "kernelcore/host/rows.h"
#include "kernelcore/host/tile.h"
#include "kernelcore/norm.h"
#include "watch.h"

namespace kc {

// A block of panels [i0, i1) x [j0, j1) in tiles of `rows` x `columns` panels, and the coordinates
// [from, to) that are packed. Sums wait in `sums` for those that follow, tile after tile.
template <class T>
struct tile_grid {
    // The panels of the block; no y where tiles pack their own, and no x where that is one row.
    const T *x_packed, *y_packed;
    index_t i0, i1, j0, j1, rows, columns, from, to;
    T* sums;  // null where all coordinates are packed
    index_t across() const { return (j1 - j0 + columns - 1) / columns; }
    index_t count() const { return (i1 - i0 + rows - 1) / rows * across(); }
};
template <class T>
index_t dense_tile_size(index_t rows, index_t columns, const T*) {
    return tile_size<native<T>>(rows, columns);
}
template <class T>
index_t dense_scratch(index_t rows, index_t columns, int slots, const T*) {
    return tile_size<native<T>>(rows, columns) + tile_scratch<native<T>>(rows, columns, slots);
}
// Coordinates [from, to) of panel q.
template <class T>
void dense_pack(const side<T>& s, index_t d, index_t q, index_t from, index_t to, T* packed) {
    constexpr index_t step = panel<native<T>>;
    const index_t first = q * step;
    pack<native<T>>(s.rows + first * d + from, s.scale + first, s.count - first, d, to - from,
                    packed);
}
// Tile q of a block.
template <class T>
void dense_tile(const gram_job<T>& job, const tile_grid<T>& g, index_t q, T* scratch,
                watched_call& call, int thread) {
    const index_t i = g.i0 + q / g.across() * g.rows, j = g.j0 + q % g.across() * g.columns;
    const index_t i_end = i + g.rows < g.i1 ? i + g.rows : g.i1;
    const index_t j_end = j + g.columns < g.j1 ? j + g.columns : g.j1;
    tile_range<T> r{g.x_packed, g.y_packed, g.i0, g.j0, i, i_end, j, j_end, g.from, g.to};
    if ((job.to.symmetric && r.j1 <= r.i0) || !call.goes_on(thread)) return;
    watcher watch{call, thread};
    const index_t size = tile_size<native<T>>(g.rows, g.columns);
    if (!g.y_packed) {
        T* own = scratch + dense_scratch<T>(g.rows, g.columns, job.slots, nullptr);
        for (index_t q = j; g.x_packed && q < j_end; q++)
            dense_pack(job.y, job.d, q, g.from, g.to,
                       own + (q - j) * panel<native<T>> * (g.to - g.from));
        for (index_t q = 0; !g.x_packed && q < job.d; q++) own[q] = job.x.scale[0] * job.x.rows[q];
        (g.x_packed ? r.y_packed : r.x_packed) = own;
        r.y_panel = j;
    }
    compute_tile<native<T>>(job, r, g.sums ? g.sums + q * size : scratch, scratch + size, watch);
    if (g.to == job.d) call.done(r.i0, r.i1, r.j0, r.j1, job.to.symmetric);
}
inline row_result dense_rows(const row_job& job) { return walk_rows<native<double>>(job); }
// The norms of rows [first, last); returns whether all are finite.
constexpr index_t norm_rows = value<native<double>>::width;
template <class T>
bool dense_norms(const T* x, index_t first, index_t last, index_t d, double* out) {
    using V = native<double>;
    const V one(1.0);
    V bad(0.0);
    for (index_t i = first; i < last; i += norm_rows) {
        const V norm = row_norms<T, V>(x + i * d, last - i, d);
        bad = select(norm <= V(limits<double>::largest), bad, one);
        if (i + norm_rows <= last) {
            store<V>(out + i, norm);
        } else {
            double lane[norm_rows];
            store<V>(lane, norm);
            for (index_t k = i; k < last; k++) out[k] = lane[k - i];
        }
    }
    return !any(bad == one);
}

// Elementwise: entry k has its own row tables and its own column tables.
struct pairs_job {
    operations<double> program;
    const double *x_table, *y_table;
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
        if (!call.after(thread, job.program.count * pairs_strip)) return;
        const strip<double> s{job.u + at, job.delta + at, job.t + at};
        const column_of<V> x{job.x_table + at, job.length}, y{job.y_table + at, job.length};
        if (job.raw)
            walk<V, output::raw>(job.program, x, y, pairs_strip, s, saved);
        else
            walk<V, output::tangent>(job.program, x, y, pairs_strip, s, saved);
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

// All polynomials of a cell at t[at] for its rows: out[k * stride + rows[at]].
inline void dense_interpolate(const double* polynomials, index_t count, index_t terms,
                              const double* t, const long long* rows, index_t length,
                              index_t stride, double* out) {
    using V = native<double>;
    constexpr index_t width = value<V>::width;
    for (index_t at = 0; at < length; at += width) {
        const index_t lanes = at + width < length ? width : length - at;
        double place[width] = {}, values[width];
        for (index_t m = 0; m < lanes; m++) place[m] = t[at + m];
        V powers[most_terms];
        chebyshev_terms<V>(load<V>(place), int(terms), powers);
        for (index_t k = 0; k < count; k++) {
            store<V>(values, polynomial<V>(polynomials + k * terms, powers, int(terms)));
            for (index_t m = 0; m < lanes; m++) out[k * stride + rows[at + m]] = values[m];
        }
    }
}

}  // namespace kc
