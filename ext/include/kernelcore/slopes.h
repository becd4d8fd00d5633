// Derivatives of a network's kernels by the first of two rows. They are F(q1, q2, s) with s = <x, y> and
// q1 = |x|^2, and an entry carries K and T with their derivatives by s and by q1. With the dual
// D(v1, v2, c) of a function, dD/dc is the dual of its derivative, which multiplies T.
#pragma once

#include "duals/kink.h"
#include "program.h"

namespace kc {

// Weights, then a function: K <- w K + bias, T <- w T + K if trained. `code` is that of the function, or
// op_trained for none; the profile of a kink is a kappa + b u, or a kappa0 + b, times the gain.
struct slope_step {
    int code, trained;
    double w, bias, gain, a, b;
};

// What a step looks up: v1, its derivative by q1, sd, 1/sd and 1/(2 v1) of a row; v2, sd, 1/sd of a column.
constexpr int row_slopes = 5, column_slopes = 3;
template <class V>
struct slope_pair {
    V v1, rate, sd1, inverse1, half1, v2, sd2, inverse2;
};

template <class V>
struct slopes {
    V k, ks, kq, t, ts, tq;
};

// D with its derivatives by c and v1, and the same of dD/dc as far as T knows of it.
template <class V>
struct bent_dual {
    V value, c, v, slope, slope_c, slope_v;
};

// The derivative of kappa0, infinite at |u| = 1: there the derivative of a kernel jumps, and the mean of
// both sides has no part of it.
template <class V>
KC_HD V kappa0_slope(V delta) {
    using T = real_of<V>;
    const V least(T(is_single<V> ? 1e-6 : 1e-14));
    const V gap = maximum(delta, least) * (V(T(2)) - delta);
    return select(delta <= least, V(0), V(T(0.31830988618379067)) / sqrt(gap));
}

// gain n (a kappa1 + b u), n = sd1 sd2. By Euler: 2 v1 dD/dv1 + c dD/dc = D, of degree 1 in x.
template <class V>
KC_HD bent_dual<V> bent_kink(const slope_pair<V>& p, V c, V gain, V a, V b) {
    const V over = p.inverse1 * p.inverse2;
    const correlation<V> r = plain(c * over);
    const kappas<V> k = near_kappas(r.u, r.delta);
    const V value = gain * (p.sd1 * p.sd2) * fma(a, k.k1, b * r.u);
    const V slope = gain * fma(a, k.k0, b);
    const V slope_c = gain * a * kappa0_slope(r.delta) * over;
    return {value, slope, (value - c * slope) * p.half1, slope, slope_c, -c * slope_c * p.half1};
}

// gain (a kappa0 + b), of degree 0; its slope counts as zero for T.
template <class V>
KC_HD bent_dual<V> bent_step(const slope_pair<V>& p, V c, V gain, V a, V b) {
    const V zero(0), over = p.inverse1 * p.inverse2;
    const correlation<V> r = plain(c * over);
    const V value = gain * fma(a, near_kappas(r.u, r.delta).k0, b);
    const V by_c = gain * a * kappa0_slope(r.delta) * over;
    return {value, by_c, -c * by_c * p.half1, zero, zero, zero};
}

// (2/pi) arcsin(2 c / sqrt((1 + 2 v1)(1 + 2 v2))), as in erf.h
template <class V>
KC_HD bent_dual<V> bent_erf(const slope_pair<V>& p, V c) {
    using T = real_of<V>;
    const V one(1), two(T(2)), four(T(4));
    const V a = fma(two, p.v1, one), b = fma(two, p.v2, one);
    const V gap = maximum(fma(p.v1, p.v2, -c * c), V(0));
    const V square = fma(four, gap, fma(two, p.v1 + p.v2, one)), root = sqrt(square);
    const V half = two * c / (sqrt(a * b) + root);
    const V value = V(T(0.63661977236758134)) * (half * arctan_ratio(half * half));
    const V slope = V(T(1.2732395447351628)) / root, share = slope / square;
    return {value, slope, -c * slope / a, slope, four * c * share, -b * share};
}

// exp(-(v1 + v2)/2) times a sinh c + b cosh c
template <class V>
KC_HD bent_dual<V> bent_sine(const slope_pair<V>& p, V c, V a, V b) {
    using T = real_of<V>;
    const V half(T(0.5)), mean = half * (p.v1 + p.v2);
    const V up = half * exp(c - mean), down = half * exp(-c - mean);
    const V odd = up - down, even = up + down;
    const V value = fma(a, odd, b * even), slope = fma(a, even, b * odd);
    return {value, slope, -half * value, slope, value, -half * slope};
}

template <class V>
KC_HD bent_dual<V> bent_exponential(const slope_pair<V>& p, V c, V factor) {
    using T = real_of<V>;
    const V half(T(0.5)), e = factor * exp(fma(half, p.v1 + p.v2, c));
    return {e, e, half * e, e, e, half * e};
}

template <class V>
KC_HD slopes<V> bend(const slopes<V>& s, const bent_dual<V>& d, V rate) {
    return {d.value,
            d.c * s.ks,
            fma(d.c, s.kq, d.v * rate),
            d.slope * s.t,
            fma(d.slope, s.ts, s.t * (d.slope_c * s.ks)),
            fma(d.slope, s.tq, s.t * fma(d.slope_c, s.kq, d.slope_v * rate))};
}

// One step along a row of entries; f maps a pair and c to a bent_dual. The six arrays of the state are
// `apart` numbers from each other.
template <class V, bool tangent, class F>
KC_HD void slope_row(const slope_step& step, const real_of<V>* x, index_t x_stride,
                     const real_of<V>* y, index_t y_stride, real_of<V>* state, index_t apart,
                     index_t length, F f) {
    using T = real_of<V>;
    const V w{T(step.w)}, bias{T(step.bias)}, trained{T(step.trained)}, zero(0);
    slope_pair<V> p{V(x[0]),
                    V(x[x_stride]),
                    V(x[2 * x_stride]),
                    V(x[3 * x_stride]),
                    V(x[4 * x_stride]),
                    zero,
                    zero,
                    zero};
    for (index_t at = 0; at < length; at += value<V>::width) {
        T* from = state + at;
        slopes<V> s{fma(w, load<V>(from), bias),
                    w * load<V>(from + apart),
                    w * load<V>(from + 2 * apart),
                    zero,
                    zero,
                    zero};
        if constexpr (tangent) {
            s.t = fma(w, load<V>(from + 3 * apart), trained * s.k);
            s.ts = fma(w, load<V>(from + 4 * apart), trained * s.ks);
            s.tq = fma(w, load<V>(from + 5 * apart), trained * s.kq);
        }
        p.v2 = load<V>(y + at), p.sd2 = load<V>(y + y_stride + at);
        p.inverse2 = load<V>(y + 2 * y_stride + at);
        s = f(s, p);
        store<V>(from, s.k), store<V>(from + apart, s.ks), store<V>(from + 2 * apart, s.kq);
        if constexpr (tangent) {
            store<V>(from + 3 * apart, s.t), store<V>(from + 4 * apart, s.ts);
            store<V>(from + 5 * apart, s.tq);
        }
    }
}

// All steps along a row of entries, whose tables follow each other.
template <class V, bool tangent>
KC_HD void walk_slopes(const slope_step* steps, int count, const real_of<V>* x, index_t x_stride,
                       const real_of<V>* y, index_t y_stride, real_of<V>* state, index_t apart,
                       index_t length) {
    using T = real_of<V>;
    for (int k = 0; k < count; k++) {
        const slope_step step = steps[k];
        const V gain{T(step.gain)}, a{T(step.a)}, b{T(step.b)};
        const T* row = x + k * row_slopes * x_stride;
        const T* column = y + k * column_slopes * y_stride;
        const auto run = [&](auto dual) {
            slope_row<V, tangent>(step, row, x_stride, column, y_stride, state, apart, length,
                                  [=](const slopes<V>& s, const slope_pair<V>& p) {
                                      return bend(s, dual(p, s.k), p.rate);
                                  });
        };
        switch (step.code) {
            case op_relu:
                run([=](const slope_pair<V>& p, V c) { return bent_kink(p, c, gain, a, b); });
                break;
            case op_step:
                run([=](const slope_pair<V>& p, V c) { return bent_step(p, c, gain, a, b); });
                break;
            case op_erf: run([](const slope_pair<V>& p, V c) { return bent_erf(p, c); }); break;
            case op_sine:
                run([=](const slope_pair<V>& p, V c) { return bent_sine(p, c, a, b); });
                break;
            case op_exponential:
                run([=](const slope_pair<V>& p, V c) { return bent_exponential(p, c, a); });
                break;
            default:
                slope_row<V, tangent>(step, row, x_stride, column, y_stride, state, apart, length,
                                      [](const slopes<V>& s, const slope_pair<V>&) { return s; });
        }
    }
}

// Sums over orders k: of a_k b_k u^k with its first derivative and half of its second, and of r_k b_k u^k
// with its first, for M rows. a and r have `count` numbers per row, b a vector per order; u and the five
// results have rows of `stride` numbers.
template <class V, int M>
KC_HD void bent_series(const real_of<V>* a, const real_of<V>* r, const real_of<V>* b, int count,
                       const real_of<V>* u, real_of<V>* out, index_t apart, index_t stride) {
    V x[M], sum[M], first[M], second[M], other[M], slope[M];
    KC_UNROLL for (int m = 0; m < M; m++) {
        x[m] = load<V>(u + m * stride);
        sum[m] = first[m] = second[m] = other[m] = slope[m] = V(0);
    }
    for (int k = count - 1; k >= 0; k--) {
        const V c = load<V>(b + k * value<V>::width);
        KC_UNROLL for (int m = 0; m < M; m++) {
            second[m] = fma(second[m], x[m], first[m]);
            first[m] = fma(first[m], x[m], sum[m]);
            sum[m] = fma(sum[m], x[m], V(a[m * count + k]) * c);
            slope[m] = fma(slope[m], x[m], other[m]);
            other[m] = fma(other[m], x[m], V(r[m * count + k]) * c);
        }
    }
    KC_UNROLL for (int m = 0; m < M; m++) {
        real_of<V>* to = out + m * stride;
        store<V>(to, sum[m]), store<V>(to + apart, first[m]), store<V>(to + 2 * apart, second[m]);
        store<V>(to + 3 * apart, other[m]), store<V>(to + 4 * apart, slope[m]);
    }
}

}  // namespace kc
