// The only file that knows which compiler it is, and which instructions the machine has.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define KC_DEVICE 1
#define KC_HD __host__ __device__ __forceinline__
#define KC_LOOP __host__ __device__ inline
#define KC_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define KC_DEVICE 0
#if defined(__SANITIZE_ADDRESS__)  // the debug build, which forced inlining makes five times longer
#define KC_HD inline
#else
#define KC_HD inline __attribute__((always_inline))
#endif
#define KC_LOOP __attribute__((noinline))
#define KC_UNROLL _Pragma("GCC unroll 16")
#else
#define KC_DEVICE 0
#define KC_HD inline
#define KC_LOOP inline
#define KC_UNROLL
#endif
// KC_LOOP: a function that is one hot loop and wants the registers to itself.

// KC_VECTORS: the compiler has vectors of its own (lanes.h); elsewhere a value is one lane.
// KC_REGISTER: bytes of the widest one of the machine compiled for.
#if !KC_DEVICE && defined(__GNUC__)
#define KC_VECTORS 1
#else
#define KC_VECTORS 0
#endif
#if KC_VECTORS && defined(__AVX__)
#define KC_REGISTER 32
#elif KC_VECTORS
#define KC_REGISTER 16
#endif

#if KC_VECTORS && defined(__SSE2__)
#include <immintrin.h>
#endif

#if !KC_DEVICE && !defined(__GNUC__)
#include <cmath>
#endif

namespace kc {

using index_t = long long;

// split: x = (a number of size in [1/2, 1)) 2^e.
#if KC_DEVICE
KC_HD float sqrt(float x) { return ::sqrtf(x); }
KC_HD double sqrt(double x) { return ::sqrt(x); }
KC_HD float abs(float x) { return ::fabsf(x); }
KC_HD double abs(double x) { return ::fabs(x); }
KC_HD float round(float x) { return ::rintf(x); }
KC_HD double round(double x) { return ::rint(x); }
KC_HD float exp2i(float n) { return ::ldexpf(1.0f, static_cast<int>(n)); }
KC_HD double exp2i(double n) { return ::ldexp(1.0, static_cast<int>(n)); }
KC_HD bool is_negative(float x) { return signbit(x); }
KC_HD bool is_negative(double x) { return signbit(x); }
KC_HD float split(float x, int* e) { return ::frexpf(x, e); }
KC_HD double split(double x, int* e) { return ::frexp(x, e); }
#elif defined(__GNUC__)
KC_HD float sqrt(float x) { return __builtin_sqrtf(x); }
KC_HD double sqrt(double x) { return __builtin_sqrt(x); }
KC_HD float abs(float x) { return __builtin_fabsf(x); }
KC_HD double abs(double x) { return __builtin_fabs(x); }
KC_HD float round(float x) { return __builtin_rintf(x); }
KC_HD double round(double x) { return __builtin_rint(x); }
KC_HD float exp2i(float n) { return __builtin_ldexpf(1.0f, static_cast<int>(n)); }
KC_HD double exp2i(double n) { return __builtin_ldexp(1.0, static_cast<int>(n)); }
KC_HD bool is_negative(float x) { return __builtin_signbit(x); }
KC_HD bool is_negative(double x) { return __builtin_signbit(x); }
KC_HD float split(float x, int* e) { return __builtin_frexpf(x, e); }
KC_HD double split(double x, int* e) { return __builtin_frexp(x, e); }
#else
KC_HD float sqrt(float x) { return std::sqrt(x); }
KC_HD double sqrt(double x) { return std::sqrt(x); }
KC_HD float abs(float x) { return std::fabs(x); }
KC_HD double abs(double x) { return std::fabs(x); }
KC_HD float round(float x) { return std::rint(x); }
KC_HD double round(double x) { return std::rint(x); }
KC_HD float exp2i(float n) { return std::ldexp(1.0f, static_cast<int>(n)); }
KC_HD double exp2i(double n) { return std::ldexp(1.0, static_cast<int>(n)); }
KC_HD bool is_negative(float x) { return std::signbit(x); }
KC_HD bool is_negative(double x) { return std::signbit(x); }
KC_HD float split(float x, int* e) { return std::frexp(x, e); }
KC_HD double split(double x, int* e) { return std::frexp(x, e); }
#endif

// a b + c, rounded once where the machine has the instruction, twice elsewhere (the compiler is
// told never to contract by itself, so that every fused operation is one that asks for it).
#if KC_DEVICE || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define KC_FMA 1
#else
#define KC_FMA 0
#endif
#if KC_DEVICE
KC_HD float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
KC_HD double fma(double a, double b, double c) { return ::fma(a, b, c); }
#elif KC_FMA
KC_HD float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
KC_HD double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
KC_HD float fma(float a, float b, float c) { return a * b + c; }
KC_HD double fma(double a, double b, double c) { return a * b + c; }
#endif

// What has an instruction but no operator of the compiler's vectors R, or masks of them.
#if KC_VECTORS
template <class R>
inline constexpr int vector_lanes = sizeof(R) / sizeof(R{}[0]);
template <class R, int bytes, int lanes>
inline constexpr bool vector_is = sizeof(R) == bytes && vector_lanes<R> == lanes;

template <class R>
KC_HD R vector_sqrt(R x) {
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
    static constexpr float epsilon = 0x1p-23f;
    static constexpr float exp_low = -104.0f, exp_high = 89.0f;  // beyond: 0 and infinity
};
template <>
struct limits<double> {
    static constexpr double epsilon = 0x1p-52;
    static constexpr double exp_low = -746.0, exp_high = 710.0;
};

}  // namespace kc
