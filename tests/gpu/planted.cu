// Small kernels that are right, and others with one fault each, for the tests of the twin.
#include "device.h"

// ---- right: a sum by halves in a static shared array, and a transpose through dynamic shared memory

#ifndef MOST
#define MOST 64
#endif
constexpr int most = MOST;

template <class T>
__device__ void sum_body(const T* a, int n, T* out) {
    __shared__ T part[most];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? a[i] : T(0);
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
#define SUM(name, T)                                                \
    extern "C" __global__ void __launch_bounds__(most)              \
        name(const T* __restrict__ a, int n, T* __restrict__ out) { \
        sum_body(a, n, out);                                        \
    }
SUM(sum_f32, float)
SUM(sum_f64, double)

struct matrix {
    const float* a;
    float* out;
    long long rows, columns;
};
extern "C" __global__ void transpose(const matrix m) {
    KC_SHARED_BYTES(bytes);
    float* const tile = reinterpret_cast<float*>(bytes);
    const int side = blockDim.x, x = threadIdx.x, y = threadIdx.y;
    const long long left = blockIdx.x * side, top = blockIdx.y * side;
    if (top + y < m.rows && left + x < m.columns)
        tile[y * (side + 1) + x] = m.a[(top + y) * m.columns + left + x];
    __syncthreads();
    if (left + y < m.columns && top + x < m.rows)
        m.out[(left + y) * m.rows + top + x] = tile[x * (side + 1) + y];
}

// The names and extents of CUDA: every thread writes where it is.
extern "C" __global__ void places(unsigned* out) {
    const unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[b * blockDim.x * blockDim.y * blockDim.z + t] = 1000 * b + t;
}

// ---- faults

extern "C" {
__global__ void divergent(float* out) {
    if (threadIdx.x < 3)
        __syncthreads();  // here
    else
        __syncthreads();  // there
    out[threadIdx.x] = 1;
}
}

extern "C" __global__ __launch_bounds__(8) void early(float* out) {
    if (threadIdx.x == 5) return;
    __syncthreads();  // others wait
    out[threadIdx.x] = 1;
}

extern "C" __global__ void no_barrier(float* out) {
    __shared__ float part[32];
    const int t = threadIdx.x;
    part[t] = t;
    __syncthreads();                              // a race follows
    part[t] = part[blockIdx.x == 1 ? t ^ 1 : t];  // before or after the other does the same
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = part[t];
}

extern "C" __global__ void between_blocks(float* out) {
    if (blockIdx.x == 0) out[0] = 1;
    if (blockIdx.x == 1) out[1] = out[0];
}

extern "C" __global__ void unwritten_static(float* out) {
    __shared__ float part[33];
    const int t = threadIdx.x;
    part[t] = t;
    __syncthreads();
    out[t] = part[t + 1];
}

extern "C" __global__ void unwritten_dynamic(float* out) {
    KC_SHARED_BYTES(bytes);
    float* const part = reinterpret_cast<float*>(bytes);
    const int t = threadIdx.x;
    part[t] = t;
    __syncthreads();
    out[t] = part[t + 1];
}

__device__ void touch(float* a, int i, int write, float* out) {
    if (threadIdx.x != 2) return;
    if (write)
        a[i] = 1;
    else
        out[0] = a[i];  // element i
}
extern "C" __global__ void touch_global(float* a, int i, int write, float* out) {
    touch(a, i, write, out);
}
extern "C" __global__ void touch_dynamic(int i, int write, float* out) {
    KC_SHARED_BYTES(bytes);
    touch(reinterpret_cast<float*>(bytes), i, write, out);
}
extern "C" __global__ void touch_static(int i, float* out) {
    __shared__ float part[16];
    part[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 2) out[0] = part[i];  // an index
}
extern "C" __global__ void touch_pointer(int i, float* out) {
    __shared__ float part[16];
    part[threadIdx.x] = 1;
    __syncthreads();
    touch(part, i, 0, out);  // a pointer
}

struct alignas(8) pair {
    float a, b;
};
extern "C" __global__ void misaligned(int i, float* out) {
    __shared__ float part[16];
    part[threadIdx.x] = part[threadIdx.x + 8] = 1;
    __syncthreads();
    out[threadIdx.x] = reinterpret_cast<const pair*>(part + i)->b;  // not aligned
}

// A pointer that is no address at all.
extern "C" __global__ void wild(long long address, float* out) {
    out[threadIdx.x] = *reinterpret_cast<const float*>(address);
}

extern "C" __global__ void divide(int by, float* out) { out[threadIdx.x] = 7 / by; }

__device__ __attribute__((noinline)) int deep(int n) { return n ? n ^ deep(n + 1) : 0; }
extern "C" __global__ void recurse(int n, float* out) { out[threadIdx.x] = deep(n); }
