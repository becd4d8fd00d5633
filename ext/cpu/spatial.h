// What the Cython driver calls: the headers at this machine's vector width.
#pragma once

#include "kernelcore/entry.h"
#include "kernelcore/host/spatial.h"
#include "kernelcore/host/variances.h"
#include "watch.h"

namespace kc {

template <class T>
index_t spatial_scratch_size(const spatial_job<T>& job, int parts) {
    return parts == 2 ? spatial_scratch<native<T>, 2>(job) : spatial_scratch<native<T>, 1>(job);
}

template <class T>
void spatial_lanes(const T* rows, index_t count, index_t length, T* out) {
    into_lanes<native<T>>(rows, count, length, out);
}

// A block of a Gram matrix: images i0 .. i1, one by one, against j0 .. j1, which are in lanes. The
// former are rows of the matrix and the latter columns, or (flipped) the other way round, and then
// the maps of the job are, too.
template <class T>
struct spatial_block {
    const T *pixels, *tables, *lane_pixels, *lane_tables;
    index_t size;  // pixels per image
    index_t i0, i1, j0, j1;
    bool flipped;
    destination<T> to;
};

// Whether image i0 + i against group g of partners lies below the diagonal.
template <class T>
bool spatial_below(const spatial_block<T>& b, index_t i, index_t g) {
    const index_t next = b.j0 + (g + 1) * value<native<T>>::width;
    return b.to.symmetric && (next < b.j1 ? next : b.j1) <= b.i0 + i;
}
template <class T>
index_t spatial_pieces(const spatial_block<T>& b, index_t groups) {
    index_t pieces = 0;
    for (index_t i = 0; i < b.i1 - b.i0; i++)
        for (index_t g = 0; g < groups; g++) pieces += !spatial_below(b, i, g);
    return pieces;
}

template <class V, class X, class Y>
const real_of<V>* spatial_pair(const spatial_job<real_of<V>>& job, bool tangent, const X& x,
                               const Y& y, real_of<V>* scratch, watcher& watch,
                               bool halves = false) {
    return tangent ? run_pair<V, 2>(job, x, y, scratch, watch, halves)
                   : run_pair<V, 1>(job, x, y, scratch, watch, halves);
}

template <class T>
void spatial_unit(const spatial_job<T>& job, const spatial_block<T>& b, index_t i, index_t g,
                  T* scratch, watched_call& call, int thread) {
    using V = native<T>;
    constexpr index_t width = value<V>::width;
    if (spatial_below(b, i, g) || !call.goes_on(thread)) return;
    watcher watch{call, thread};
    const one_image<V> one{b.pixels + i * b.size, b.tables + i * job.table_size};
    const lane_images<V> many{b.lane_pixels + g * b.size * width,
                              b.lane_tables + g * job.table_size * width};
    const destination<T>& to = b.to;
    const T* result = spatial_pair<V>(job, to.t, one, many, scratch, watch);
    if (!result) return;
    const index_t first = b.j0 + g * width, single = b.i0 + i;
    const index_t last = first + width < b.j1 ? first + width : b.j1;
    for (index_t j = to.symmetric && first < single ? single : first; j < last; j++) {
        const index_t row = b.flipped ? j : single, column = b.flipped ? single : j;
        for (int part = 0; part < 2; part++) {
            T* out = part ? to.t : to.k;
            if (!out) continue;
            const T value = result[part * width + (j - first)] * to.factor;
            put(to.combine, out + row * to.stride + column, value);
            if (to.symmetric && column != row)
                put(to.combine, out + column * to.stride + row, value);
        }
    }
    call.done(1);
}

// The images of group g each with itself: `entries` numbers of the result, per lane.
template <class T>
void spatial_self(const spatial_job<T>& job, const T* pixels, const T* tables, index_t size,
                  index_t g, int parts, bool halves, index_t entries, T* scratch, T* out,
                  watched_call& call, int thread) {
    using V = native<T>;
    constexpr index_t width = value<V>::width;
    if (!call.goes_on(thread)) return;
    watcher watch{call, thread};
    const lane_images<V> y{pixels + g * size * width, tables + g * job.table_size * width};
    const T* result = spatial_pair<V>(job, parts == 2, y, y, scratch, watch, halves);
    if (!result) return;
    copy_numbers<V>(result, out + g * entries * parts * width, entries * parts * width);
    call.done(1);
}

}  // namespace kc
