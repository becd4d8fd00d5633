// What the Cython driver calls: the headers at this machine's vector width.
#pragma once

#include "kernelcore/cyclic.h"

namespace kc {

template <class T>
void values_of(const cyclic_job<T>& job, index_t i0, index_t i1, index_t p0, index_t p1,
               T* scratch) {
    cyclic_values<native<T>>(job, i0, i1, p0, p1, scratch);
}
template <class T>
void tile_of(const cyclic_job<T>& job, index_t i0, index_t i1, index_t p0, index_t p1, T* scratch) {
    values_of(job, i0, i1, p0, p1, scratch);
    cyclic_write<native<T>>(job, i0, i1, p0, p1, scratch);
}
// Entry (i, i), y being x: one lane of the vector that the matrix takes it from.
template <class T>
T diagonal_of(const cyclic_job<T>& job, index_t i, T* scratch) {
    constexpr int width = value<native<T>>::width;
    values_of(job, i, i + 1, i / width, i / width + 1, scratch);
    return tile_values<native<T>>(job, scratch)[i % width];
}
template <class T>
index_t scratch_of(const cyclic_job<T>& job) {
    return strip_scratch<native<T>>(job);
}
template <class T>
int width_of(const T*) {
    return value<native<T>>::width;
}

}  // namespace kc
