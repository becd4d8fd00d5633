// The convolutional kernel on cyclic signals (Misiakiewicz & Mei 2022, "H(q, w)"):
//     H = 1/(d w) sum_k sum_(s, s' < w) h(<x_(k+s), y_(k+s')>/q),   x_(k) = (x_k .. x_(k+q-1)).
// Only the offset r = s' - s mod d matters, and it occurs c(r) = c(-r) times:
//     H = 1/(d w) sum_(0 <= r <= d/2) c'(r) (A_r + B_r),
//     A_r = sum_k h(<x_(k), y_(k+r)>/q),   B_r = sum_k h(<x_(k+r), y_(k)>/q),
// c' = c, but half of it where A and B are the same pairs (r = 0, 2 r = d). Exchanging x and y
// exchanges A and B, term by term, so that the result is symmetric to the last bit.
#pragma once

#include "entry.h"
#include "program.h"

namespace kc {

template <class T>
struct cyclic_job {
    const T* x;  // (n, length): rows continued cyclically to positions + patch + offsets - 2
    const T* y;  // (panels, length, width): rows of y side by side, continued in the same way
    index_t n, m, length;
    index_t positions;  // k: d of them, or 1 where the patch is all of x and k does not matter
    index_t patch, offsets;
    const T* weights;       // c' of each offset
    operations<T> program;  // h, without tables
    destination<T> to;      // of k only
};

}  // namespace kc
