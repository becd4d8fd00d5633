// What the Cython driver calls: the headers at this machine's vector width.
#pragma once

#include "kernelcore/host/cyclic.h"
#include "watch.h"

namespace kc {

// Rows i0 .. against panels p0 .. of y, as many of both as there are up to `rows` and `columns`.
template <class T>
void cyclic_tile(const cyclic_job<T>& job, index_t i0, index_t p0, index_t rows, index_t columns,
                 T* scratch, watched_call& call, int thread) {
    using V = native<T>;
    constexpr int width = value<V>::width;
    const index_t panels = (job.m + width - 1) / width;
    const index_t i1 = i0 + rows < job.n ? i0 + rows : job.n;
    const index_t p1 = p0 + columns < panels ? p0 + columns : panels;
    if ((job.to.symmetric && p1 * width <= i0) || !call.goes_on(thread)) return;
    watcher watch{call, thread};
    cyclic_values<V>(job, i0, i1, p0, p1, scratch, watch);
    if (call.goes_on()) cyclic_write<V>(job, i0, i1, p0, p1, scratch);
    call.done(i0, i1, p0 * width, p1 * width < job.m ? p1 * width : job.m, job.to.symmetric);
}
// Entry (i, i), y being x: one lane of the vector that the matrix takes it from.
template <class T>
T cyclic_diagonal(const cyclic_job<T>& job, index_t i, T* scratch, watched_call& call, int thread) {
    using V = native<T>;
    constexpr int width = value<V>::width;
    watcher watch{call, thread};
    cyclic_values<V>(job, i, i + 1, i / width, i / width + 1, scratch, watch);
    call.done(1);
    return tile_values<V>(job, scratch)[i % width];
}
template <class T>
index_t cyclic_scratch(const cyclic_job<T>& job) {
    return strip_scratch<native<T>>(job);
}

}  // namespace kc
