// Kernels on cyclic signals on a device (cyclic.h): a block of threads for a pair, its threads side by
// side in positions. The twin of ext/cpu/cyclic.
#include "device.h"
#include "kernelcore/cyclic.h"

namespace kc {

constexpr int block_threads = 256;

// The sum of the `lead` < 8 numbers from p on, neighbours first.
template <class T>
__device__ T leading_window(const T* p, int lead) {
    T sum = lead > 1 ? p[0] + p[1] : p[0];
    for (int j = 2; j + 1 < lead; j += 2) sum = sum + (p[j] + p[j + 1]);
    return lead > 1 && lead % 2 ? sum + p[lead - 1] : sum;
}

// The sums over windows of `patch` products x[k + r] y[k + r] for all positions k, in one of two
// buffers, which is returned. Windows of m make windows of 2m or 2m + 1, bit by bit.
template <class T>
__device__ const T* window_products(const cyclic_job<T>& job, const T* x, const T* y, T* products,
                                    T* now, T* other) {
    const index_t all = job.positions + job.patch;
    int bits = 0;
    while (job.patch >> bits > 7) bits++;
    index_t m = job.patch >> bits;
    for (index_t k = threadIdx.x; k < all - 1; k += block_threads) products[k] = x[k] * y[k];
    __syncthreads();
    for (index_t k = threadIdx.x; k < all - m; k += block_threads)
        now[k] = leading_window(products + k, int(m));
    __syncthreads();
    while (bits > 0) {
        bits--;
        const bool odd = job.patch >> bits & 1;
        const index_t next = 2 * m + odd;
        for (index_t k = threadIdx.x; k < all - next; k += block_threads) {
            const T sum = now[k] + now[k + m];
            other[k] = odd ? sum + products[k + 2 * m] : sum;
        }
        __syncthreads();
        T* const old = now;
        now = other, other = old, m = next;
    }
    return now;
}

// The sum of h over all positions, by halves; every thread gets it.
template <class T>
__device__ T position_sum(const cyclic_job<T>& job, const T* u, T* partial) {
    const column_of<T> none{nullptr, 0};
    T sum = 0;
    for (index_t k = threadIdx.x; k < job.positions; k += block_threads) {
        T value = u[k], delta = 0, t = 0;
        walk<T, output::covariance>(job.program, none, none, 1, {&value, &delta, &t}, &t);
        sum = sum + value;
    }
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = block_threads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            partial[threadIdx.x] = partial[threadIdx.x] + partial[threadIdx.x + half];
        __syncthreads();
    }
    sum = partial[0];
    __syncthreads();
    return sum;
}

// Pairs, block by block; (i, i) alone where there is a `diagonal`. `room` has three times
// positions + patch numbers for a block, null: shared memory does.
template <class T>
__device__ void cyclic_pairs(const cyclic_job<T>& job, T* diagonal, T* room) {
    KC_SHARED_BYTES(bytes);
    __shared__ T partial[block_threads];
    const index_t all = job.positions + job.patch, m = diagonal ? 1 : job.m;
    T* products = room ? room + blockIdx.x * 3 * all : reinterpret_cast<T*>(bytes);
    T *first = products + all, *second = first + all;
    for (index_t q = blockIdx.x; q < job.n * m; q += gridDim.x) {
        const index_t i = q / m, j = diagonal ? i : q % m;
        if (job.to.symmetric && j < i) continue;
        const T *x = job.x + i * job.length, *y = job.y + j * job.length;
        T total = 0;
        for (index_t r = 0; r < job.offsets; r++) {
            const T a =
                position_sum(job, window_products(job, x, y + r, products, first, second), partial);
            T b = a;
            if (r > 0)
                b = position_sum(job, window_products(job, x + r, y, products, first, second),
                                 partial);
            total = fma(job.weights[r], a + b, total);
        }
        if (threadIdx.x > 0) continue;
        const destination<T>& to = job.to;
        const T value = total * to.factor;
        if (diagonal) {
            diagonal[i] = value;
            continue;
        }
        put(to.combine, to.k + i * to.stride + j, value);
        if (to.symmetric && i != j) put(to.combine, to.k + j * to.stride + i, value);
    }
}

}  // namespace kc

#define KC_CYCLIC(real, T)                                                \
    extern "C" __global__ void __launch_bounds__(256, 2)                  \
        cyclic_gram_##real(kc::cyclic_job<T> job, T* diagonal, T* room) { \
        kc::cyclic_pairs(job, diagonal, room);                            \
    }
#if KC_REALS & 1
KC_CYCLIC(f32, float)
#endif
#if KC_REALS & 2
KC_CYCLIC(f64, double)
#endif
