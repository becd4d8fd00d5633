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
    row_merge = 8,  // table: shares of the current and of the saved part
};

struct row_step {
    int code, n;
    int table;  // first row of its table
    int node;   // of the program, for messages
    double a, b, c;
};

// Arrays of `length` rows, whole vectors; the last ones repeat the last row.
struct row_job {
    const row_step* steps;
    int count;
    index_t length;
    double d, limit, floor;        // the largest variance, and the least whose reciprocal is finite
    double *variance, *t, *saved;  // two rows per slot
    double* table;
};

inline constexpr index_t row_strip = 128;

// Rows [first, last) through all steps; returns the first step whose variances are beyond the limit.
template <class V>
KC_HD int walk_rows(const row_job& job, index_t first, index_t last) {
    constexpr int width = value<V>::width;
    const V zero(0.0), one(1.0), limit(job.limit);
    double *v = job.variance, *t = job.t;
    int bad = job.count;
    for (int k = 0; k < job.count; k++) {
        const row_step s = job.steps[k];
        const V a(s.a), b(s.b), square(s.a * s.a), bias(s.b * s.b);
        double *table = job.table + s.table * job.length, *next = table + job.length;
        double *saved = job.saved + 2 * s.n * job.length, *saved_t = saved + job.length;
        bool beyond = false;
        for (index_t i = first; i < last; i += width) {
            const V old = load<V>(v + i), slope = load<V>(t + i);
            V now = old;
            switch (s.code) {
                case row_input_mean: now = old * (old / V(job.d)); break;
                case row_input_sum: now = old * old; break;
                case row_input_one: now = one; break;
                case row_weights:
                    now = square * old + bias;
                    store<V>(t + i, square * slope + (s.c ? now : zero));
                    if (s.b) {
                        const V sd = sqrt(now);
                        store<V>(table + i, a * sqrt(old) / sd);
                        store<V>(next + i, b / sd);
                    }
                    break;
                case row_homogeneous:
                    now = s.n == 0 ? a : a * (s.n == 1 ? old : old * old);
                    store<V>(t + i, slope * (s.n == 0 ? zero : s.n == 1 ? b : b * old));
                    break;
                case row_unit: {
                    const auto there = V(job.floor) < old;
                    now = select(there, one, zero);
                    store<V>(t + i, slope * select(there, one / old, zero));
                    break;
                }
                case row_save:
                    store<V>(saved + i, old);
                    store<V>(saved_t + i, slope);
                    break;
                case row_swap:
                    now = load<V>(saved + i);
                    store<V>(t + i, load<V>(saved_t + i));
                    store<V>(saved + i, old);
                    store<V>(saved_t + i, slope);
                    break;
                case row_merge: {
                    const V other = load<V>(saved + i);
                    now = old + other;
                    store<V>(t + i, slope + load<V>(saved_t + i));
                    const V sd = sqrt(now), inverse = select(zero < sd, one / sd, zero);
                    store<V>(table + i, sqrt(old) * inverse);
                    store<V>(next + i, sqrt(other) * inverse);
                    break;
                }
            }
            store<V>(v + i, now);
            // Not a number is not below the limit, either.
            beyond |= any(select(now <= limit, zero, one) == one);
        }
        if (beyond && k < bad) bad = k;
    }
    return bad;
}

}  // namespace kc
