// Eigenvalues on spheres, by powers of t and by nodes, and the power series they need.
//
// With P_k of degree k on the sphere of R^p, P_k(1) = 1, and t = <x, y> of uniform x and fixed y,
//     L_k(n) = E[t^n P_k(t)]
//            = Gamma(p/2) 2^-k n!/(n-k)! Gamma((n-k+1)/2) / (sqrt(pi) Gamma((n+k+p)/2))
// for even n - k, else zero (Rodrigues' formula and a Beta integral), so that
//     L_(k+2)(n) = L_k(n) (n - k)/(n + k + p),   L_1(n) = L_0(n + 1).
// The eigenvalue of sum a_n t^n is sum a_n L_k(n): where no a_n is negative nothing cancels.
#pragma once

#include "lanes.h"

namespace kc {

// 0, 1, 2, .. in the lanes.
template <class V>
KC_HD V counting() {
    constexpr int width = value<V>::width;
    real_of<V> lane[width];
    for (int i = 0; i < width; i++) lane[i] = real_of<V>(i);
    return load<V>(lane);
}

// What project works on: terms x_i 2^exponent_i at powers n_i. Their number is a multiple of the
// width, with zeros behind. A power has the parity of k, or is at least the largest k.
template <class T>
struct powers {
    const T* n;
    T* x;
    T* exponent;
    T* scale;  // scratch
    index_t count;
    index_t watched;  // the term whose share of the sum is wanted
};

// The results of project at one k, all divided by 2^exponent.
template <class T>
struct projection {
    T sum, size, watched, exponent;  // size: the sum of the sizes of the terms
};

// A step divides by less than 2^16 while n + k + p < 2^16 (n - k), so that between two changes of
// scale nothing underflows that counts.
template <class V>
constexpr int steps_per_scale = is_single<V> ? 4 : 32;

// Bring all terms to the scale of the largest. A term below the least power of two counts as zero: it
// cannot catch up before the next change of scale.
template <class T>
KC_HD T rescale(const powers<T>& terms) {
    constexpr T least = sizeof(T) == 4 ? -100 : -1000;
    T top = -1e30f;
    for (index_t i = 0; i < terms.count; i++) {
        if (terms.x[i] == 0) continue;
        int e;
        terms.x[i] = split(terms.x[i], &e);
        terms.exponent[i] += T(e);
        if (terms.exponent[i] > top) top = terms.exponent[i];
    }
    for (index_t i = 0; i < terms.count; i++) {
        const T below = terms.exponent[i] - top;
        terms.scale[i] = terms.x[i] == 0 || below < least ? T(0) : exp2i(below);
    }
    return top;
}

// Terms times L_0(n) of the sphere of R^p over that of R^q, p - q even: L_0(n) for R^(q+2) is that for
// R^q times q/(n + q). L_1(n) is L_0(n + 1): ahead is 1 then.
template <class V>
KC_LOOP void raise_dimension(const powers<real_of<V>>& terms, index_t q, index_t p, int ahead) {
    using T = real_of<V>;
    constexpr int width = value<V>::width;
    for (index_t step = 0; q < p; q += 2, step++) {
        if (step % steps_per_scale<V> == 0) rescale(terms);
        for (index_t i = 0; i < terms.count; i += width)
            store<V>(terms.x + i,
                     load<V>(terms.x + i) * (V(T(q)) / (load<V>(terms.n + i) + V(T(q + ahead)))));
    }
}

// From terms a_n L_k(n) at k = first: the sums at `degrees` values of k, first, first + 2, ..
template <class V>
KC_LOOP void project(const powers<real_of<V>>& terms, real_of<V> p, index_t first, index_t degrees,
                     projection<real_of<V>>* out) {
    using T = real_of<V>;
    constexpr int width = value<V>::width;
    T top(0);
    for (index_t j = 0; j < degrees; j++) {
        if (j % steps_per_scale<V> == 0) top = rescale(terms);
        const T k = T(first + 2 * j);
        const T watched = terms.x[terms.watched] * terms.scale[terms.watched];
        V sum(0), size(0);
        for (index_t i = 0; i < terms.count; i += width) {
            const V n = load<V>(terms.n + i), x = load<V>(terms.x + i);
            const V term = x * load<V>(terms.scale + i);
            sum = sum + term;
            size = size + abs(term);
            store<V>(terms.x + i, x * ((n - V(k)) / (n + V(k + p))));  // zero from k = n on
        }
        out[j] = {sum_lanes(sum), sum_lanes(size), watched, top};
    }
}

// out[k] = sum over i of values_i P_k(t_i) for first <= k < end; (k + p - 2) P_(k+1) =
// (2k + p - 2) t P_k - k P_(k-1). n is a multiple of the width, with zero values behind. last and
// now, n numbers each, are handed from one call to the call for the next degrees.
template <class V>
KC_LOOP void integrate(const real_of<V>* t, const real_of<V>* values, index_t n, real_of<V> p,
                       index_t first, index_t end, real_of<V>* last, real_of<V>* now,
                       real_of<V>* out) {
    using T = real_of<V>;
    constexpr int width = value<V>::width;
    if (first == 0)
        for (index_t i = 0; i < n; i++) last[i] = T(0), now[i] = T(1);
    for (index_t k = first; k < end; k++) {
        const T over = T(k) + p - 2;
        // At p = 2 the first step is 0/0: T_1 = t.
        const V a(k == 0 ? T(1) : (T(2 * k) + p - 2) / over), b(k == 0 ? T(0) : T(k) / over);
        V sum(0);
        for (index_t i = 0; i < n; i += width) {
            const V x = load<V>(now + i);
            sum = fma(load<V>(values + i), x, sum);
            const V next = fma(a * load<V>(t + i), x, -(b * load<V>(last + i)));
            store<V>(last + i, x);
            store<V>(now + i, next);
        }
        out[k] = sum_lanes(sum);
    }
}

// c = a b for power series of n coefficients, c apart from both.
template <class V>
KC_LOOP void multiply_series(const real_of<V>* a, const real_of<V>* b, index_t n, real_of<V>* c) {
    using T = real_of<V>;
    constexpr int width = value<V>::width;
    for (index_t m = 0; m < n; m++) c[m] = T(0);
    for (index_t i = 0; i < n; i++) {
        if (a[i] == 0) continue;  // keeps exact zeros exact
        const V factor(a[i]);
        index_t m = i;
        for (; m + width <= n; m += width)
            store<V>(c + m, fma(factor, load<V>(b + m - i), load<V>(c + m)));
        for (; m < n; m++) c[m] = fma(a[i], b[m - i], c[m]);
    }
}

// s = (1 - w)^(-1/2) for series of n coefficients, w[0] < 1: with d = 1 - w, d s' = w' s/2, so that
//     m d_0 s_m = sum over j = 1 .. m of w_j s_(m-j) (m - j/2),
// a sum of non-negative terms where w has no others. reversed: n numbers of scratch, for s backwards.
template <class V>
KC_LOOP void inverse_root(const real_of<V>* w, real_of<V> d0, index_t n, real_of<V>* s,
                          real_of<V>* reversed) {
    using T = real_of<V>;
    constexpr int width = value<V>::width;
    s[0] = T(1) / sqrt(d0);
    reversed[n - 1] = s[0];
    for (index_t m = 1; m < n; m++) {
        // s_(m-j) for j = 1 .. m, and two sums: of w_j s_(m-j) and of j w_j s_(m-j).
        const T* before = reversed + n - m;
        V plain(0), weighted(0);
        index_t j = 1;
        for (; j + width <= m + 1; j += width) {
            const V term = load<V>(w + j) * load<V>(before + j - 1);
            plain = plain + term;
            weighted = fma(term, V(T(j)) + counting<V>(), weighted);
        }
        T a = sum_lanes(plain), b = sum_lanes(weighted);
        for (; j <= m; j++) {
            const T term = w[j] * before[j - 1];
            a += term;
            b = fma(term, T(j), b);
        }
        s[m] = (a - b / T(2 * m)) / d0;
        reversed[n - 1 - m] = s[m];
    }
}

// c(u + x) from c(u), n coefficients in place.
template <class T>
KC_HD void shift_series(T* c, index_t n, T x) {
    for (index_t i = 0; i + 1 < n; i++)
        for (index_t j = n - 2; j >= i; j--) c[j] = fma(x, c[j + 1], c[j]);
}

}  // namespace kc
