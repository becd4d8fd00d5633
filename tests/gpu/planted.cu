// Small kernels that are right, and the same with one fault each, for the tests of the twin.
#include "device.h"

constexpr int side = 8;

template <class T>
__device__ void sum_body(const T* a, int n, T* out) {
    __shared__ T part[64];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? a[i] : T(0);
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
#define SUM(name, T) \
    extern "C" __global__ void __launch_bounds__(64) name(const T* __restrict__ a, int n, T* out) { \
        sum_body(a, n, out); \
    }
SUM(sum_f32, float)
SUM(sum_f64, double)

extern "C" __global__ void transpose(const float* a, int rows, int columns, float* out) {
    KC_SHARED_BYTES(bytes);
    float* tile = reinterpret_cast<float*>(bytes);
    const int x = blockIdx.x * side + threadIdx.x, y = blockIdx.y * side + threadIdx.y;
    if (y < rows && x < columns) tile[threadIdx.y * (side + 1) + threadIdx.x] = a[y * columns + x];
    __syncthreads();
    const int i = blockIdx.x * side + threadIdx.y, j = blockIdx.y * side + threadIdx.x;
    if (i < columns && j < rows) out[i * rows + j] = tile[threadIdx.x * (side + 1) + threadIdx.y];
}
