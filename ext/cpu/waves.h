// What the Cython driver calls: the headers at this machine's vector width.
#pragma once

#include "kernelcore/waves.h"
#include "watch.h"

namespace kc {

template <class T>
void cosines_and_sines_native(const T* z, index_t n, T scale, T* cosines, T* sines) {
    cosines_and_sines<native<T>>(z, n, scale, cosines, sines);
}
template <class T>
void shifted_cosines_native(T* z, const T* phase, index_t n, T scale) {
    shifted_cosines<native<T>>(z, phase, n, scale);
}

}  // namespace kc
