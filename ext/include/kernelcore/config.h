// The only file that knows which compiler it is.
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
#if !KC_DEVICE && defined(__GNUC__)
#define KC_VECTORS 1
#else
#define KC_VECTORS 0
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
