// The only file that knows which compiler it is, and which instructions the machine has.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define KC_DEVICE 1
#define KC_HD __host__ __device__ __forceinline__
#define KC_LOOP __host__ __device__ inline
#define KC_UNROLL _Pragma("unroll")
#define KC_ROLLED _Pragma("unroll 1")
#define KC_PREFETCH(place)
#elif defined(__GNUC__)
#define KC_DEVICE 0
#if defined(__SANITIZE_ADDRESS__)  // the debug build, which forced inlining makes five times longer
#define KC_HD inline
#else
#define KC_HD inline __attribute__((always_inline))
#endif
#define KC_LOOP __attribute__((noinline))
#define KC_UNROLL _Pragma("GCC unroll 16")
#define KC_ROLLED _Pragma("GCC unroll 1")
#define KC_PREFETCH(place) __builtin_prefetch(place)
#else
#define KC_DEVICE 0
#define KC_HD inline
#define KC_LOOP inline
#define KC_UNROLL
#define KC_ROLLED
#define KC_PREFETCH(place)
#endif
// KC_LOOP: a function that is one hot loop and wants the registers to itself.

// KC_VECTORS: the compiler has vectors of its own (lanes.h); elsewhere a value is one lane.
// KC_REGISTER: the bytes of the widest vector of the target machine, or of longer ones for a test,
// which compilers split. KC_MANY_REGISTERS: it has 32.
#if !KC_DEVICE && defined(__GNUC__)
#define KC_VECTORS 1
#else
#define KC_VECTORS 0
#endif
#if KC_VECTORS && !defined(KC_REGISTER)
#if defined(__AVX512DQ__)
#define KC_REGISTER 64
#elif defined(__AVX__)
#define KC_REGISTER 32
#else
#define KC_REGISTER 16
#endif
#endif
#if KC_VECTORS && defined(__AVX512DQ__)
#define KC_MANY_REGISTERS 1
#else
#define KC_MANY_REGISTERS 0
#endif

#if KC_VECTORS && defined(__SSE2__)
#include <immintrin.h>
#endif

#if !KC_DEVICE && !defined(__GNUC__)
#include <cmath>
#endif

namespace kc {

using index_t = long long;

// A function of the C library, as the compiler has it.
#if KC_DEVICE
#define KC_LIBRARY(name) ::name
#elif defined(__GNUC__)
#define KC_LIBRARY(name) __builtin_##name
#else
#define KC_LIBRARY(name) std::name
#endif
KC_HD float sqrt(float x) { return KC_LIBRARY(sqrtf)(x); }
KC_HD double sqrt(double x) { return KC_LIBRARY(sqrt)(x); }
KC_HD float abs(float x) { return KC_LIBRARY(fabsf)(x); }
KC_HD double abs(double x) { return KC_LIBRARY(fabs)(x); }
KC_HD float round(float x) { return KC_LIBRARY(rintf)(x); }
KC_HD double round(double x) { return KC_LIBRARY(rint)(x); }
KC_HD float exp2i(float n) { return KC_LIBRARY(ldexpf)(1.0f, static_cast<int>(n)); }
KC_HD double exp2i(double n) { return KC_LIBRARY(ldexp)(1.0, static_cast<int>(n)); }
KC_HD bool is_negative(float x) { return KC_LIBRARY(signbit)(x); }
KC_HD bool is_negative(double x) { return KC_LIBRARY(signbit)(x); }
// x = (a number of size in [1/2, 1)) 2^e.
KC_HD float split(float x, int* e) { return KC_LIBRARY(frexpf)(x, e); }
KC_HD double split(double x, int* e) { return KC_LIBRARY(frexp)(x, e); }

// a b + c, rounded once where the machine has the instruction, twice elsewhere. The compiler is told
// never to contract by itself, so every fused operation is one that the code asks for.
#if KC_DEVICE || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define KC_FMA 1
KC_HD float fma(float a, float b, float c) { return KC_LIBRARY(fmaf)(a, b, c); }
KC_HD double fma(double a, double b, double c) { return KC_LIBRARY(fma)(a, b, c); }
#else
#define KC_FMA 0
KC_HD float fma(float a, float b, float c) { return a * b + c; }
KC_HD double fma(double a, double b, double c) { return a * b + c; }
#endif
#undef KC_LIBRARY

// Operations on the compiler's vectors R, or on their masks, that have an instruction but no operator.
#if KC_VECTORS
template <class R>
inline constexpr int vector_lanes = sizeof(R) / sizeof(R{}[0]);
template <class R, int bytes, int lanes>
inline constexpr bool vector_is = sizeof(R) == bytes && vector_lanes<R> == lanes;

template <class R>
KC_HD R vector_sqrt(R x) {
#if defined(__AVX512DQ__)
    if constexpr (vector_is<R, 64, 16>) return _mm512_sqrt_ps(x);
    if constexpr (vector_is<R, 64, 8>) return _mm512_sqrt_pd(x);
#endif
#if defined(__AVX__)
    if constexpr (vector_is<R, 32, 8>) return _mm256_sqrt_ps(x);
    if constexpr (vector_is<R, 32, 4>) return _mm256_sqrt_pd(x);
#endif
#if defined(__SSE2__)
    if constexpr (vector_is<R, 16, 4>) return _mm_sqrt_ps(x);
    if constexpr (vector_is<R, 16, 2>) return _mm_sqrt_pd(x);
#endif
    for (int i = 0; i < vector_lanes<R>; i++) x[i] = sqrt(x[i]);
    return x;
}
template <class R>
KC_HD R vector_fma(R a, R b, R c) {
#if defined(__AVX512DQ__)
    if constexpr (vector_is<R, 64, 16>) return _mm512_fmadd_ps(a, b, c);
    if constexpr (vector_is<R, 64, 8>) return _mm512_fmadd_pd(a, b, c);
#endif
#if defined(__FMA__)
    if constexpr (vector_is<R, 32, 8>) return _mm256_fmadd_ps(a, b, c);
    if constexpr (vector_is<R, 32, 4>) return _mm256_fmadd_pd(a, b, c);
    if constexpr (vector_is<R, 16, 4>) return _mm_fmadd_ps(a, b, c);
    if constexpr (vector_is<R, 16, 2>) return _mm_fmadd_pd(a, b, c);
#endif
#if KC_FMA
    for (int i = 0; i < vector_lanes<R>; i++) c[i] = fma(a[i], b[i], c[i]);
    return c;
#else
    return a * b + c;
#endif
}
// a where the sign bit of x is set, else b; M has x's bits as integers.
template <class M, class R>
KC_HD R vector_blend(R x, R a, R b) {
#if defined(__AVX512DQ__)
    if constexpr (vector_is<R, 64, 16>)
        return _mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)x), b, a);
    if constexpr (vector_is<R, 64, 8>)
        return _mm512_mask_blend_pd(_mm512_movepi64_mask((__m512i)x), b, a);
#endif
#if defined(__AVX__)
    // In assembly, because compilers turn the intrinsic into a comparison and the same instruction.
    if constexpr (vector_is<R, 32, 8>) {
        asm("vblendvps %2, %1, %0, %0" : "+x"(b) : "x"(a), "x"(x));
        return b;
    }
    if constexpr (vector_is<R, 32, 4>) {
        asm("vblendvpd %2, %1, %0, %0" : "+x"(b) : "x"(a), "x"(x));
        return b;
    }
#endif
    return (M)x < 0 ? a : b;
}
template <class M>
KC_HD bool vector_any(M m) {
#if defined(__AVX512DQ__)
    if constexpr (sizeof(M) == 64) return _mm512_movepi32_mask((__m512i)m) != 0;
#endif
#if defined(__AVX__)
    if constexpr (sizeof(M) == 32) return _mm256_movemask_ps((__m256)m) != 0;
#endif
#if defined(__SSE2__)
    if constexpr (sizeof(M) == 16) return _mm_movemask_ps((__m128)m) != 0;
#endif
    bool found = false;
    for (int i = 0; i < vector_lanes<M>; i++) found |= m[i] != 0;
    return found;
}
#endif  // KC_VECTORS

template <class T>
struct limits;
template <>
struct limits<float> {
    static constexpr float epsilon = 0x1p-23f, largest = 0x1.fffffep127f;
    static constexpr float exp_low = -104.0f, exp_high = 89.0f;  // beyond: 0 and infinity
};
template <>
struct limits<double> {
    static constexpr double epsilon = 0x1p-52, largest = 0x1.fffffffffffffp1023;
    static constexpr double exp_low = -746.0, exp_high = 710.0;
};

}  // namespace kc
