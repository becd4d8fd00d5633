// Random Fourier features on a device: a number for each thread. The twin of ext/cpu/waves.
#include "device.h"
#include "kernelcore/waves.h"

namespace kc {

// z, (n, 2 m): products on the left; then cosines, and sines on the right.
template <class T>
__device__ void both_waves(T* z, index_t n, index_t m, T scale) {
    const index_t k = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (k >= n * m) return;
    T* at = z + k / m * 2 * m + k % m;
    const wave<T> w = wave_of(*at, scale);
    at[0] = w.cosine;
    at[m] = w.sine;
}

// z, (n, m): products; then cosines.
template <class T>
__device__ void shifted_wave(T* z, const T* phase, index_t n, index_t m, T scale) {
    const index_t k = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (k < n * m) z[k] = wave_of(T(z[k] + phase[k % m]), scale).cosine;
}

}  // namespace kc

#define KC_WAVES(real, T)                                                                         \
    extern "C" __global__ void waves_cosines_and_sines_##real(T* z, kc::index_t n, kc::index_t m, \
                                                              T scale) {                          \
        kc::both_waves(z, n, m, scale);                                                           \
    }                                                                                             \
    extern "C" __global__ void waves_shifted_cosines_##real(T* z, const T* phase, kc::index_t n,  \
                                                            kc::index_t m, T scale) {             \
        kc::shifted_wave(z, phase, n, m, scale);                                                  \
    }
#if KC_REALS & 1
KC_WAVES(f32, float)
#endif
#if KC_REALS & 2
KC_WAVES(f64, double)
#endif
