// Gram matrices of rows on a device: sums over coordinates for a tile of entries, then the network on
// each of them, in one kernel. The twin of ext/cpu/dense.
//
// The product is not a library's: an entry must be the same chain of operations wherever it lies
// (product.h), and libraries choose theirs by the shape of a call. Nor do distances have one.
#include "device.h"
#include "kernelcore/gram.h"
#include "kernelcore/norm.h"

namespace kc {

constexpr int block_threads = 256;

// A block computes rows x columns entries, a thread `down` x `across` of them; `step` coordinates of
// all its rows are in shared memory at a time. A thread reads down + across numbers for
// down * across multiplications. In double the sums of a tile would not fit into 48 kB otherwise.
template <class T>
struct tile_shape {
    static constexpr int down = same<T, float> ? 8 : 4, across = 4;
    static constexpr int columns = 16 * across, rows = block_threads / 16 * down;
    static constexpr int step = 16;
    // Rows of shared arrays are longer than they need, so that threads of a warp meet in few banks.
    static constexpr int row_stride = rows + 4, column_stride = columns + 4, stride = columns + 1;
    static constexpr int packed = step * (row_stride + column_stride), staged = rows * stride;
    static constexpr int numbers = packed > staged ? packed : staged;
};

// What a thread brings of `count` rows from `first` on and their coordinates from q on: the unit
// rows, zero past the last row and past the last coordinate.
template <class T, int count>
struct packed_part {
    static constexpr int step = tile_shape<T>::step, each = count * step / block_threads;
    T number[each];
    // The first of them: where it lies, its scale, and how many more rows there are.
    const T *at, *scale;
    int there;
    __device__ packed_part(const side<T>& s, index_t first, index_t d)
        : at(s.rows + (first + threadIdx.x / step) * d + threadIdx.x % step),
          scale(s.scale + first + threadIdx.x / step),
          there(int(s.count - first < count ? s.count - first : count) - int(threadIdx.x / step)) {
        KC_KEEP(at);
        KC_KEEP(scale);
    }
    __device__ void read(index_t d, index_t q) {
        const bool inside = q + threadIdx.x % step < d;
        KC_UNROLL for (int k = 0; k < each; k++) {
            const int row = k * (block_threads / step);
            number[k] = inside && row < there ? scale[row] * at[row * d] : T(0);
        }
        at += step;
    }
    __device__ void write(T* to, int stride) const {
        KC_UNROLL for (int k = 0; k < each; k++)
            to[threadIdx.x % step * stride + threadIdx.x / step + k * (block_threads / step)] =
                number[k];
    }
};

// The sums over coordinates of the tile at (i0, j0), left in shared memory.
template <class T, int kind>
__device__ void reduce_tile(const gram_job<T>& job, index_t i0, index_t j0, T* shared) {
    using shape = tile_shape<T>;
    constexpr int down = shape::down, across = shape::across, step = shape::step;
    const reducer<T, kind> f{job.bump_scale};
    T *rows = shared, *columns = shared + step * shape::row_stride;
    const int row = threadIdx.x / 16 * down, column = threadIdx.x % 16 * across;
    packed_part<T, shape::rows> x(job.x, i0, job.d);
    packed_part<T, shape::columns> y(job.y, j0, job.d);
    T total[down][across], sum[down][across];
    x.read(job.d, 0);
    y.read(job.d, 0);
    for (index_t q = 0; q < job.d || q == 0; q += depth) {
        KC_UNROLL for (int r = 0; r < down; r++)
            KC_UNROLL for (int c = 0; c < across; c++) sum[r][c] = f.start();
        for (index_t p = q; p < job.d && p < q + depth; p += step) {
            x.write(rows, shape::row_stride);
            y.write(columns, shape::column_stride);
            __syncthreads();
            // The next numbers are on their way while these are used.
            x.read(job.d, p + step);
            y.read(job.d, p + step);
            KC_UNROLL for (int k = 0; k < step; k++) {
                T a[down], b[across];
                KC_UNROLL for (int r = 0; r < down; r++) a[r] = rows[k * shape::row_stride + row + r];
                KC_UNROLL for (int c = 0; c < across; c++)
                    b[c] = columns[k * shape::column_stride + column + c];
                KC_UNROLL for (int r = 0; r < down; r++)
                    KC_UNROLL for (int c = 0; c < across; c++)
                        sum[r][c] = f.add(sum[r][c], a[r], b[c]);
            }
            __syncthreads();
        }
        KC_UNROLL for (int r = 0; r < down; r++)
            KC_UNROLL for (int c = 0; c < across; c++)
                total[r][c] = q == 0 ? sum[r][c] : f.join(total[r][c], sum[r][c]);
    }
    KC_UNROLL for (int r = 0; r < down; r++)
        KC_UNROLL for (int c = 0; c < across; c++)
            shared[(row + r) * shape::stride + column + c] = total[r][c];
    __syncthreads();
}

// Entry (i, j) from its sum: the network on a strip of one entry.
template <class T, output want>
__device__ void finish_entry(const gram_job<T>& job, index_t i, index_t j, T sum) {
    T u = sum, delta = 0, t = 0, saved[has<op_save> ? 3 * most_slots : 1];
    bool copy = false;
    if (job.angular) {
        correlation<T> c = far_correlation(u);
        if (is_near(job, i, j, c.delta)) {
            const repaired<T> near = repair<T>(job, i, j, c.u);
            c = near.c, copy = near.copy;
        }
        u = c.u, delta = c.delta;
    }
    walk<T, want>(job.program, row_of<T>{job.x.table + i, job.x.stride},
                  column_of<T>{job.y.table + j, job.y.stride}, 1, {&u, &delta, &t}, saved);
    const T x = job.x.sd[i], y = job.y.sd[j];
    const destination<T>& to = job.to;
    const index_t at = to.transposed ? j * to.stride + i : i * to.stride + j;
    if (to.k)
        put(to.combine, to.k + at,
            copy ? T(job.factor * job.k_diagonal[i]) : entry_of(u, x, y, to.factor));
    if (to.t)
        put(to.combine, to.t + at,
            copy ? T(job.factor * job.t_diagonal[i]) : entry_of(t, x, y, to.factor));
}

// The other half of a symmetric matrix, from what this block has written: through shared memory, so
// that both halves are read and written along rows.
template <class T>
__device__ void mirror_tile(const gram_job<T>& job, index_t i0, index_t j0, T* out, T* shared) {
    using shape = tile_shape<T>;
    constexpr int size = shape::rows * shape::columns;
    const index_t n = job.x.count, stride = job.to.stride;
    __syncthreads();
    for (int k = threadIdx.x; k < size; k += block_threads) {
        const int r = k / shape::columns, c = k % shape::columns;
        const index_t i = i0 + r, j = j0 + c;
        if (i < j && j < n) shared[r * shape::stride + c] = out[i * stride + j];
    }
    __syncthreads();
    for (int k = threadIdx.x; k < size; k += block_threads) {
        const int r = k % shape::rows, c = k / shape::rows;
        const index_t i = i0 + r, j = j0 + c;
        if (i < j && j < n) out[j * stride + i] = shared[r * shape::stride + c];
    }
}

// What this driver was compiled for.
template <class T, int kind>
__device__ void reduce_if(const gram_job<T>& job, index_t i0, index_t j0, T* shared) {
    if constexpr (KC_KINDS >> kind & 1) reduce_tile<T, kind>(job, i0, j0, shared);
}
template <class T, output want, int bit>
__device__ void finish_if(const gram_job<T>& job, index_t i, index_t j, T sum) {
    if constexpr (KC_WANTS & bit) finish_entry<T, want>(job, i, j, sum);
}

// Tile (blockIdx.y, blockIdx.x) of a Gram matrix.
template <class T>
__device__ void gram_tile(const gram_job<T>& job) {
    using shape = tile_shape<T>;
    __shared__ T shared[shape::numbers];
    const index_t i0 = index_t(blockIdx.y) * shape::rows, j0 = index_t(blockIdx.x) * shape::columns;
    if (job.to.symmetric && j0 + shape::columns <= i0) return;
    switch (job.kind) {
        case sum_of_products: reduce_if<T, sum_of_products>(job, i0, j0, shared); break;
        case sum_of_squares: reduce_if<T, sum_of_squares>(job, i0, j0, shared); break;
        case sum_of_sizes: reduce_if<T, sum_of_sizes>(job, i0, j0, shared); break;
        case product_of_bumps: reduce_if<T, product_of_bumps>(job, i0, j0, shared); break;
    }
    for (int k = threadIdx.x; k < shape::rows * shape::columns; k += block_threads) {
        const int r = k / shape::columns, c = k % shape::columns;
        const index_t i = i0 + r, j = j0 + c;
        if (i >= job.x.count || j >= job.y.count || (job.to.symmetric && j < i)) continue;
        const T sum = shared[r * shape::stride + c];
        if (job.to.t)
            finish_if<T, output::tangent, 2>(job, i, j, sum);
        else
            finish_if<T, output::covariance, 1>(job, i, j, sum);
    }
    if (!job.to.symmetric) return;
    if (job.to.k) mirror_tile(job, i0, j0, job.to.k, shared);
    if (job.to.t) mirror_tile(job, i0, j0, job.to.t, shared);
}

// The norm of one row for each thread.
template <class T>
__device__ void row_norm_of(const T* x, index_t n, index_t d, double* out) {
    const index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) out[i] = row_norms<T, double>(x + i * d, 1, d);
}

// What pairs look up of a row: scale, sd and tables, from the numbers of all rows in double.
template <class T>
__device__ void fill_row(const double* norm, const double* k, const double* tables, index_t first,
                         index_t stride, index_t count, index_t n, int angular, T* numbers) {
    const index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    numbers[i] = angular ? unit_scale<T>(norm[i]) : T(1);
    numbers[n + i] = T(sqrt(k[i]));
    for (index_t q = 0; q < count; q++)
        numbers[(2 + q) * n + i] = T(tables[q * stride + first + i]);
}

}  // namespace kc

// Tiles that are to fit on a multiprocessor; where that would spill a register or two, one.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define KC_TILES 1
#else
#define KC_TILES 2
#endif
#define KC_DENSE(real, T, blocks)                                                                \
    extern "C" __global__ void __launch_bounds__(256, blocks)                                    \
        dense_gram_##real(kc::gram_job<T> job) {                                                 \
        kc::gram_tile(job);                                                                      \
    }                                                                                            \
    extern "C" __global__ void dense_norms_##real(const T* x, kc::index_t n, kc::index_t d,      \
                                                  double* out) {                                 \
        kc::row_norm_of(x, n, d, out);                                                           \
    }                                                                                            \
    extern "C" __global__ void dense_sides_##real(                                               \
        const double* norm, const double* k, const double* tables, kc::index_t first,            \
        kc::index_t stride, kc::index_t count, kc::index_t n, int angular, T* numbers) {         \
        kc::fill_row(norm, k, tables, first, stride, count, n, angular, numbers);                \
    }
#if KC_REALS & 1
KC_DENSE(f32, float, KC_TILES)
#endif
#if KC_REALS & 2
KC_DENSE(f64, double, 1)
#endif
