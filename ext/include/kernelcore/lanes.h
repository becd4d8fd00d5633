// The value type of all formulas: N entries side by side, or one.
//
// A formula is a template over V. On a CPU V is lanes<T, N>, a vector register; on a GPU thread,
// and with compilers that have no vectors of their own, it is float or double itself. Everything
// a formula may call besides + - * / and comparisons is declared here for both.
#pragma once

#include "config.h"

namespace kc {

// ---- one lane
template <class V>
struct value {
    using real = V;
    static constexpr int width = 1;
};
template <class V>
using real_of = typename value<V>::real;
template <class A, class B>
inline constexpr bool same = false;
template <class A>
inline constexpr bool same<A, A> = true;
template <class V>
inline constexpr bool is_single = same<real_of<V>, float>;
template <bool, class A, class B>
struct choice_of {
    using type = A;
};
template <class A, class B>
struct choice_of<false, A, B> {
    using type = B;
};
template <bool first, class A, class B>
using choice = typename choice_of<first, A, B>::type;

KC_HD float select(bool m, float a, float b) { return m ? a : b; }
KC_HD double select(bool m, double a, double b) { return m ? a : b; }
KC_HD bool any(bool m) { return m; }
// a where x is negative, -0 included, else b: by the sign bit alone.
KC_HD float select_negative(float x, float a, float b) { return is_negative(x) ? a : b; }
KC_HD double select_negative(double x, double a, double b) { return is_negative(x) ? a : b; }

// ---- many lanes
#if KC_VECTORS
template <class T, int N>
struct vector_types;
template <int N>
struct vector_types<float, N> {
    typedef float real __attribute__((vector_size(N * 4)));
    typedef int mask __attribute__((vector_size(N * 4)));
};
template <int N>
struct vector_types<double, N> {
    typedef double real __attribute__((vector_size(N * 8)));
    typedef long long mask __attribute__((vector_size(N * 8)));
};

template <class T, int N>
struct mask {
    typename vector_types<T, N>::mask m;
};

template <class T, int N>
struct lanes {
    using vec = typename vector_types<T, N>::real;
    vec v;
    lanes() = default;
    KC_HD lanes(vec x) : v(x) {}
    KC_HD explicit lanes(T x) : v(x - vec{}) {}
    KC_HD friend lanes operator+(lanes a, lanes b) { return lanes(a.v + b.v); }
    KC_HD friend lanes operator-(lanes a, lanes b) { return lanes(a.v - b.v); }
    KC_HD friend lanes operator*(lanes a, lanes b) { return lanes(a.v * b.v); }
    KC_HD friend lanes operator/(lanes a, lanes b) { return lanes(a.v / b.v); }
    KC_HD friend lanes operator-(lanes a) { return lanes(-a.v); }
    KC_HD friend mask<T, N> operator<(lanes a, lanes b) { return {a.v < b.v}; }
    KC_HD friend mask<T, N> operator<=(lanes a, lanes b) { return {a.v <= b.v}; }
    KC_HD friend mask<T, N> operator==(lanes a, lanes b) { return {a.v == b.v}; }
};

template <class T, int N>
struct value<lanes<T, N>> {
    using real = T;
    static constexpr int width = N;
};

template <class T, int N>
KC_HD lanes<T, N> select(mask<T, N> m, lanes<T, N> a, lanes<T, N> b) {
    return lanes<T, N>(m.m ? a.v : b.v);
}
template <class T, int N>
KC_HD lanes<T, N> select_negative(lanes<T, N> x, lanes<T, N> a, lanes<T, N> b) {
    return lanes<T, N>(vector_blend<typename vector_types<T, N>::mask>(x.v, a.v, b.v));
}
template <class T, int N>
KC_HD bool any(mask<T, N> m) {
    return vector_any(m.m);
}
template <class T, int N>
KC_HD lanes<T, N> abs(lanes<T, N> x) {
    using bits = typename vector_types<T, N>::mask;
    return lanes<T, N>(
        (typename lanes<T, N>::vec)((bits)x.v & ~(bits)(T(-0.0) - typename lanes<T, N>::vec{})));
}
template <class T, int N>
KC_HD lanes<T, N> sqrt(lanes<T, N> x) {
    return lanes<T, N>(vector_sqrt(x.v));
}
template <class T, int N>
KC_HD lanes<T, N> fma(lanes<T, N> a, lanes<T, N> b, lanes<T, N> c) {
    return lanes<T, N>(vector_fma(a.v, b.v, c.v));
}
// The nearest integer, for |x| < 2^(mantissa bits - 2): adding `big` pushes the fraction out.
template <class T, int N>
KC_HD lanes<T, N> round(lanes<T, N> x) {
    const lanes<T, N> big(T(same<T, float> ? 0x1.8p23 : 0x1.8p52));
    return (x + big) - big;
}
// 2^n for an integer n that a normal number can hold, by writing the exponent's bits.
template <int N>
KC_HD lanes<float, N> exp2i(lanes<float, N> n) {
    using types = vector_types<float, N>;
    const typename types::mask bits = __builtin_convertvector(n.v, typename types::mask);
    return lanes<float, N>((typename types::real)((bits + 127) << 23));
}
template <int N>
KC_HD lanes<double, N> exp2i(lanes<double, N> n) {
    using types = vector_types<double, N>;
    // Adding 2^52 + 2^51 leaves the integer in the low bits: no conversion to 64 bits is needed.
    const typename types::mask bits = (typename types::mask)(n.v + 0x1.8p52);
    return lanes<double, N>((typename types::real)((bits + 1023) << 52));
}
// x = m 2^e with m in [1, 2), for a normal x > 0.
template <int N>
KC_HD lanes<float, N> split(lanes<float, N> x, lanes<float, N>* e) {
    using types = vector_types<float, N>;
    const typename types::mask bits = (typename types::mask)x.v;
    *e = lanes<float, N>(__builtin_convertvector((bits >> 23) - 127, typename types::real));
    return lanes<float, N>((typename types::real)((bits & 0x7fffff) | 0x3f800000));
}
template <int N>
KC_HD lanes<double, N> split(lanes<double, N> x, lanes<double, N>* e) {
    using types = vector_types<double, N>;
    const typename types::mask bits = (typename types::mask)x.v;
    // The exponent's bits under those of 2^52: no conversion from 64 bits is needed.
    const typename types::mask number = (bits >> 52) | 0x4330000000000000;
    *e = lanes<double, N>((typename types::real)number - (0x1p52 + 1023));
    return lanes<double, N>((typename types::real)((bits & 0xfffffffffffff) | 0x3ff0000000000000));
}
// Halves of two vectors, lane by lane: a0 b0 a1 b1 .., or the same of the upper halves.
template <bool upper, class T, int N>
KC_HD lanes<T, N> interleave(lanes<T, N> a, lanes<T, N> b) {
    lanes<T, N> x;
    constexpr int k = upper ? N / 2 : 0;
    if constexpr (N == 16)
        x.v = __builtin_shufflevector(a.v, b.v, k, k + 16, k + 1, k + 17, k + 2, k + 18, k + 3,
                                      k + 19, k + 4, k + 20, k + 5, k + 21, k + 6, k + 22, k + 7,
                                      k + 23);
    else if constexpr (N == 8)
        x.v =
            __builtin_shufflevector(a.v, b.v, k, k + 8, k + 1, k + 9, k + 2, k + 10, k + 3, k + 11);
    else if constexpr (N == 4)
        x.v = __builtin_shufflevector(a.v, b.v, k, k + 4, k + 1, k + 5);
    else
        for (int i = 0; i < N; i++) x.v[i] = i % 2 ? b.v[k + i / 2] : a.v[k + i / 2];
    return x;
}
// Rows into columns: interleaving row i with row i + N/2, log2 N times over.
template <class T, int N>
KC_HD void transpose(lanes<T, N> (&rows)[N]) {
    KC_UNROLL for (int pass = 1; pass < N; pass *= 2) {
        lanes<T, N> next[N];
        KC_UNROLL for (int i = 0; i < N / 2; i++) {
            next[2 * i] = interleave<false>(rows[i], rows[i + N / 2]);
            next[2 * i + 1] = interleave<true>(rows[i], rows[i + N / 2]);
        }
        KC_UNROLL for (int i = 0; i < N; i++) rows[i] = next[i];
    }
}
// The same for eight, where an instruction moves numbers within halves of a register only: by ones
// and by twos inside of the halves, then by halves.
template <class T>
KC_HD void transpose(lanes<T, 8> (&r)[8]) {
    lanes<T, 8> a[8], b[8];
    KC_UNROLL for (int i = 0; i < 8; i += 2) {
        a[i].v = __builtin_shufflevector(r[i].v, r[i + 1].v, 0, 8, 1, 9, 4, 12, 5, 13);
        a[i + 1].v = __builtin_shufflevector(r[i].v, r[i + 1].v, 2, 10, 3, 11, 6, 14, 7, 15);
    }
    KC_UNROLL for (int k = 0; k < 4; k++) {
        const int i = k / 2 * 4 + k % 2, j = k / 2 * 4 + k % 2 * 2;
        b[j].v = __builtin_shufflevector(a[i].v, a[i + 2].v, 0, 1, 8, 9, 4, 5, 12, 13);
        b[j + 1].v = __builtin_shufflevector(a[i].v, a[i + 2].v, 2, 3, 10, 11, 6, 7, 14, 15);
    }
    KC_UNROLL for (int i = 0; i < 4; i++) {
        r[i].v = __builtin_shufflevector(b[i].v, b[i + 4].v, 0, 1, 2, 3, 8, 9, 10, 11);
        r[i + 4].v = __builtin_shufflevector(b[i].v, b[i + 4].v, 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
// And for four numbers of eight bytes, of which two are in a half.
KC_HD void transpose(lanes<double, 4> (&r)[4]) {
    lanes<double, 4> a[4];
    KC_UNROLL for (int i = 0; i < 4; i += 2) {
        a[i].v = __builtin_shufflevector(r[i].v, r[i + 1].v, 0, 4, 2, 6);
        a[i + 1].v = __builtin_shufflevector(r[i].v, r[i + 1].v, 1, 5, 3, 7);
    }
    KC_UNROLL for (int i = 0; i < 2; i++) {
        r[i].v = __builtin_shufflevector(a[i].v, a[i + 2].v, 0, 1, 4, 5);
        r[i + 2].v = __builtin_shufflevector(a[i].v, a[i + 2].v, 2, 3, 6, 7);
    }
}
// Vectors of 64 bytes: first inside of their quarters, then the quarters themselves, which are a
// matrix of four by four. (An instruction that moves any number anywhere takes twice as long on some
// processors, and destroys what it reads.)
using quarters = lanes<double, 8>;
KC_HD quarters even_quarters(quarters x, quarters y) {
    return quarters(__builtin_shufflevector(x.v, y.v, 0, 1, 4, 5, 8, 9, 12, 13));
}
KC_HD quarters odd_quarters(quarters x, quarters y) {
    return quarters(__builtin_shufflevector(x.v, y.v, 2, 3, 6, 7, 10, 11, 14, 15));
}
KC_HD quarters first_of_pairs(quarters x, quarters y) {
    return quarters(__builtin_shufflevector(x.v, y.v, 0, 8, 2, 10, 4, 12, 6, 14));
}
KC_HD quarters second_of_pairs(quarters x, quarters y) {
    return quarters(__builtin_shufflevector(x.v, y.v, 1, 9, 3, 11, 5, 13, 7, 15));
}
// out[k stride] <- quarter k of a, b, c and d.
KC_HD void transpose_quarters(quarters a, quarters b, quarters c, quarters d, quarters* out,
                              int stride) {
    const quarters p = even_quarters(a, b), q = odd_quarters(a, b);
    const quarters r = even_quarters(c, d), s = odd_quarters(c, d);
    out[0] = even_quarters(p, r);
    out[stride] = even_quarters(q, s);
    out[2 * stride] = odd_quarters(p, r);
    out[3 * stride] = odd_quarters(q, s);
}
KC_HD void transpose(lanes<double, 8> (&r)[8]) {
    quarters a[8];
    KC_UNROLL for (int i = 0; i < 8; i += 2) {
        a[i] = first_of_pairs(r[i], r[i + 1]);
        a[i + 1] = second_of_pairs(r[i], r[i + 1]);
    }
    KC_UNROLL for (int k = 0; k < 2; k++)
        transpose_quarters(a[k], a[k + 2], a[k + 4], a[k + 6], r + k, 2);
}
KC_HD void transpose(lanes<float, 16> (&r)[16]) {
    using vec = typename quarters::vec;
    quarters a[16], b[16];
    KC_UNROLL for (int i = 0; i < 16; i += 2) {
        a[i] = quarters((vec)__builtin_shufflevector(r[i].v, r[i + 1].v, 0, 16, 1, 17, 4, 20, 5, 21,
                                                     8, 24, 9, 25, 12, 28, 13, 29));
        a[i + 1] = quarters((vec)__builtin_shufflevector(r[i].v, r[i + 1].v, 2, 18, 3, 19, 6, 22, 7,
                                                         23, 10, 26, 11, 27, 14, 30, 15, 31));
    }
    KC_UNROLL for (int i = 0; i < 16; i += 4)
        KC_UNROLL for (int k = 0; k < 2; k++) {
            b[i + 2 * k] = first_of_pairs(a[i + k], a[i + k + 2]);
            b[i + 2 * k + 1] = second_of_pairs(a[i + k], a[i + k + 2]);
        }
    KC_UNROLL for (int k = 0; k < 4; k++)
        transpose_quarters(b[k], b[k + 4], b[k + 8], b[k + 12], a + k, 4);
    KC_UNROLL for (int i = 0; i < 16; i++) r[i].v = (typename lanes<float, 16>::vec)a[i].v;
}
#endif  // KC_VECTORS
template <class V>
KC_HD void transpose(V (&)[1]) {}
// The sum over the lanes of each row, in a lane of its own.
template <class V, int N>
KC_HD V sum_each(V (&rows)[N]) {
    transpose(rows);
    V sum = rows[0];
    KC_UNROLL for (int r = 1; r < N; r++) sum = sum + rows[r];
    return sum;
}
#if KC_VECTORS
// The same with fewer moves: sums of pairs, and of what is next to each other after that.
KC_HD lanes<double, 4> sum_each(lanes<double, 4> (&r)[4]) {
    const auto pairs = [](lanes<double, 4> x, lanes<double, 4> y) {
        return __builtin_shufflevector(x.v, y.v, 0, 4, 2, 6) +
               __builtin_shufflevector(x.v, y.v, 1, 5, 3, 7);
    };
    const auto a = pairs(r[0], r[1]), b = pairs(r[2], r[3]);
    return lanes<double, 4>(__builtin_shufflevector(a, b, 0, 1, 4, 5) +
                            __builtin_shufflevector(a, b, 2, 3, 6, 7));
}
KC_HD quarters sum_each(quarters (&r)[8]) {
    quarters a[4];
    KC_UNROLL for (int i = 0; i < 4; i++)
        a[i] = first_of_pairs(r[2 * i], r[2 * i + 1]) + second_of_pairs(r[2 * i], r[2 * i + 1]);
    const quarters b = even_quarters(a[0], a[1]) + odd_quarters(a[0], a[1]);
    const quarters c = even_quarters(a[2], a[3]) + odd_quarters(a[2], a[3]);
    return even_quarters(b, c) + odd_quarters(b, c);
}
#endif

template <class T>
KC_HD T split(T x, T* e) {
    int n;
    const T m = split(x, &n);
    *e = T(n - 1);
    return m + m;
}

// The widest vector of the machine compiled for.
#if KC_VECTORS
template <class T>
using native = lanes<T, KC_REGISTER / sizeof(T)>;
#else
template <class T>
using native = T;
#endif

// ---- both
template <class V>
KC_HD V load(const real_of<V>* p) {
#if KC_VECTORS
    V x;
    __builtin_memcpy(&x, p, sizeof(V));
    return x;
#else
    return *p;
#endif
}
template <class V>
KC_HD void store(real_of<V>* p, V x) {
#if KC_VECTORS
    __builtin_memcpy(p, &x, sizeof(V));
#else
    *p = x;
#endif
}
// The sum of the lanes, in order.
template <class V>
KC_HD real_of<V> sum_lanes(V x) {
    constexpr int width = value<V>::width;
    real_of<V> lane[width], total(0);
    store<V>(lane, x);
    for (int i = 0; i < width; i++) total += lane[i];
    return total;
}
template <class V>
KC_HD V positive_part(V x) {
    return select(x < V(0), V(0), x);
}
template <class V>
KC_HD V minimum(V a, V b) {
    return select(a < b, a, b);
}
template <class V>
KC_HD V maximum(V a, V b) {
    return select(a < b, b, a);
}
// |x| with the sign of u (u = 0 counts as positive).
template <class V>
KC_HD V with_sign(V x, V u) {
    return select(u < V(0), -x, x);
}

// a b - p for p = a b rounded: the error of a product, exact (Dekker 1971 without fma).
template <class V>
KC_HD V product_error(V a, V b, V p) {
#if KC_FMA
    return fma(a, b, -p);
#else
    const V split(is_single<V> ? 4097 : 134217729);
    const V a_big = a * split, b_big = b * split;
    const V a1 = a_big - (a_big - a), b1 = b_big - (b_big - b);
    const V a2 = a - a1, b2 = b - b1;
    return ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
#endif
}

// c0 + x (c1 + x (c2 + ...)) as two chains in x^2 that run side by side.
template <class V, class... C>
KC_HD V horner_twice(V x, C... c) {
    using T = real_of<V>;
    constexpr int n = sizeof...(C);
    const T all[n] = {T(c)...};
    const V square = x * x;
    V even(all[(n - 1) / 2 * 2]), odd(all[n / 2 * 2 - 1]);
    KC_UNROLL for (int k = (n - 1) / 2 * 2 - 2; k >= 0; k -= 2) even = fma(even, square, V(all[k]));
    KC_UNROLL for (int k = n / 2 * 2 - 3; k >= 1; k -= 2) odd = fma(odd, square, V(all[k]));
    return fma(odd, x, even);
}

// The same as one chain, unless it is long.
template <class V, class... C>
KC_HD V horner(V x, C... c) {
    using T = real_of<V>;
    constexpr int n = sizeof...(C);
    if constexpr (n > 8)
        return horner_twice(x, c...);
    else {
        const T all[n] = {T(c)...};
        V sum(all[n - 1]);
        KC_UNROLL for (int k = n - 2; k >= 0; k--) sum = fma(sum, x, V(all[k]));
        return sum;
    }
}

}  // namespace kc
