// What a network makes of single rows: variances, diagonals of the tangent kernel, and tables of the
// operations that want some (program.h). All in double, one vector of rows after another.
#pragma once

#include "../lanes.h"

namespace kc {

enum row_code : int {
    row_input_mean = 0,   // the input: <x, x> / d from the norm
    row_input_sum = 1,    // <x, x>
    row_input_one = 2,    // 1, where sums are no correlations
    row_weights = 3,      // a = w_std, b = b_std, c = trained; table, if b: shares in the new sd
    row_homogeneous = 4,  // n = degree, at most 2, a = gain, b = slope
    row_unit = 5,
    row_save = 6,  // n = slot, also of the next two
    row_swap = 7,
    row_merge = 8,   // table: shares of the current and of the saved part
    row_linear = 9,  // v <- a v, t <- b t + c v; no variance on the way is above top v
};

struct row_step {
    int code, n;
    int table;  // first row of its table
    int node;   // of the program, for messages
    double a, b, c, top;
};

// Arrays of `length` numbers, whole blocks: those past the last of `rows` rows repeat it.
inline constexpr index_t row_block = 32;
struct row_job {
    const row_step* steps;
    int count;
    index_t rows, length;
    double d, limit, floor;  // the largest variance, and the least whose reciprocal is finite
    const double* from;      // of all rows: norms for the input, variances after Python's steps
    double *variance, *t;    // out; t also in, but for the input
    double *saved, *table;   // two rows per slot
};
struct row_result {
    int bad;             // the first step whose variances are beyond the limit, or `count`
    double least, most;  // the least variance at the end, and the largest t: inf if one is none
};

// Rows through all steps, four vectors at a time, which stay in registers.
template <class V>
KC_HD row_result walk_rows(const row_job& job) {
    constexpr int width = value<V>::width, across = 4;
    constexpr index_t together = across * width;
    static_assert(row_block % together == 0, "blocks are whole");
    const double inf = 2 * limits<double>::largest;
    const V zero(0.0), one(1.0), limit(job.limit), infinite(inf);
    row_result found{job.count, inf, 0.0};
    V least = infinite, most = zero;
    int exponent;
    const V over(1.0 / job.d);
    const bool exact = split(job.d, &exponent) == 0.5;  // a power of two, and so is its reciprocal
    for (index_t i = 0; i < job.length; i += together) {
        V v[across], t[across];
        double rest[2][together];
        const bool whole = i + together <= job.rows;
        if (!whole)
            for (index_t k = 0; k < together; k++) {
                const index_t row = i + k < job.rows ? i + k : job.rows - 1;
                rest[0][k] = job.from[row], rest[1][k] = job.t[row];
            }
    KC_UNROLL for (int k = 0; k < across; k++) {
            v[k] = load<V>((whole ? job.from + i : rest[0]) + k * width);
            t[k] = load<V>((whole ? job.t + i : rest[1]) + k * width);
        }
        for (int k = 0; k < job.count; k++) {
            const row_step& s = job.steps[k];
            const V a(s.a), b(s.b), square(s.a * s.a), bias(s.b * s.b);
            double *table = job.table + s.table * job.length + i, *next = table + job.length;
            double *saved = job.saved + 2 * s.n * job.length + i, *saved_t = saved + job.length;
            V beyond = zero;
            switch (s.code) {
                case row_input_mean:
                    KC_UNROLL for (int m = 0; m < across; m++)
                        v[m] = v[m] * (exact ? v[m] * over : v[m] / V(job.d)), t[m] = zero;
                    break;
                case row_input_sum:
                    KC_UNROLL for (int m = 0; m < across; m++) v[m] = v[m] * v[m], t[m] = zero;
                    break;
                case row_input_one:
                    KC_UNROLL for (int m = 0; m < across; m++) v[m] = one, t[m] = zero;
                    break;
                case row_weights:
                    KC_UNROLL for (int m = 0; m < across; m++) {
                        const V old = v[m];
                        v[m] = square * old + bias;
                        t[m] = square * t[m] + (s.c ? v[m] : zero);
                        if (!s.b) continue;
                        const V sd = sqrt(v[m]);
                        store<V>(table + m * width, a * sqrt(old) / sd);
                        store<V>(next + m * width, b / sd);
                    }
                    break;
                case row_homogeneous:
                    KC_UNROLL for (int m = 0; m < across; m++) {
                        t[m] = t[m] * (s.n == 0 ? zero : s.n == 1 ? b : b * v[m]);
                        v[m] = s.n == 0 ? a : a * (s.n == 1 ? v[m] : v[m] * v[m]);
                    }
                    break;
                case row_linear:
                    KC_UNROLL for (int m = 0; m < across; m++) {
                        const V old = v[m];
                        v[m] = a * old;
                        t[m] = b * t[m] + V(s.c) * old;
                        beyond = select(V(s.top) * old <= limit, beyond, one);
                    }
                    break;
                case row_unit:
                    KC_UNROLL for (int m = 0; m < across; m++) {
                        const auto there = V(job.floor) < v[m];
                        t[m] = t[m] * select(there, one / v[m], zero);
                        v[m] = select(there, one, zero);
                    }
                    break;
                case row_save:
                    KC_UNROLL for (int m = 0; m < across; m++) {
                        store<V>(saved + m * width, v[m]);
                        store<V>(saved_t + m * width, t[m]);
                    }
                    break;
                case row_swap:
                    KC_UNROLL for (int m = 0; m < across; m++) {
                        const V old = v[m], slope = t[m];
                        v[m] = load<V>(saved + m * width);
                        t[m] = load<V>(saved_t + m * width);
                        store<V>(saved + m * width, old);
                        store<V>(saved_t + m * width, slope);
                    }
                    break;
                case row_merge:
                    KC_UNROLL for (int m = 0; m < across; m++) {
                        const V old = v[m], other = load<V>(saved + m * width);
                        v[m] = old + other;
                        t[m] = t[m] + load<V>(saved_t + m * width);
                        const V sd = sqrt(v[m]), inverse = select(zero < sd, one / sd, zero);
                        store<V>(table + m * width, sqrt(old) * inverse);
                        store<V>(next + m * width, sqrt(other) * inverse);
                    }
                    break;
            }
            // Not a number is not below the limit, either.
            KC_UNROLL for (int m = 0; m < across; m++) beyond = select(v[m] <= limit, beyond, one);
            if (k < found.bad && any(beyond == one)) found.bad = k;
        }
        KC_UNROLL for (int m = 0; m < across; m++) {
            store<V>(job.variance + i + m * width, v[m]);
            store<V>(job.t + i + m * width, t[m]);
            least = minimum(v[m], least);
            most = select(t[m] <= most, most, select(most < t[m], t[m], infinite));
        }
    }
    double lane[width];
    store<V>(lane, least);
    for (int k = 0; k < width; k++) found.least = minimum(lane[k], found.least);
    store<V>(lane, most);
    for (int k = 0; k < width; k++) found.most = maximum(lane[k], found.most);
    return found;
}

}  // namespace kc
