// What the Cython driver calls: the headers at this machine's vector width.
#pragma once

#include "kernelcore/host/thin.h"
#include "watch.h"

namespace kc {

// t = K x for a group of thin_rows rows, of `rows` in all.
template <class T>
void thin_forward_native(const T* K, index_t m, index_t rows, index_t group, const T* x,
                         int columns, T* t) {
    const index_t first = group * thin_rows, last = first + thin_rows;
    if (last <= rows)
        thin_forward<native<T>, thin_rows>(K + first * m, m, x, columns, t + first * columns);
    else
        for (index_t i = first; i < rows; i++)
            thin_forward<native<T>, 1>(K + i * m, m, x, columns, t + i * columns);
}
// y += K't for one strip of columns; each block of rows is summed before it is added to y.
template <class T>
void thin_transposed_native(const T* K, index_t m, index_t rows, index_t block, index_t strip,
                            const T* t, int columns, T* y, watched_call& call, int thread) {
    const index_t j = strip * thin_strip, count = m - j < thin_strip ? m - j : thin_strip;
    for (index_t i = 0; i < rows; i += block) {
        const index_t some = rows - i < block ? rows - i : block;
        if (!call.after(thread, some * columns * thin_strip / 8)) return;
        thin_transposed<native<T>>(K + i * m + j, m, some, count, t + i * columns, columns, y + j);
    }
}

}  // namespace kc
