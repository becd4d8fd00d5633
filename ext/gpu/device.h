// What drivers are compiled for, and the one word of theirs that a host compiler cannot be taught by a
// macro of CUDA's own name.
#pragma once

// A program is known when its driver is compiled, and so is what it needs; by default that is all.
// Bits: float, double; a covariance, a tangent kernel; what is summed (reduction in product.h). The
// operations are KC_OPS in program.h.
#if !defined(KC_REALS)
#define KC_REALS 3
#endif
#if !defined(KC_WANTS)
#define KC_WANTS 3
#endif
#if !defined(KC_KINDS)
#define KC_KINDS 15
#endif

// Declares the dynamic shared memory of a block, as bytes: KC_SHARED_BYTES(name);
#if !defined(KC_SHARED_BYTES)
#define KC_SHARED_BYTES(name) extern __shared__ __align__(16) unsigned char name[]
#endif

// A pointer that is kept as it is: a compiler would otherwise add up where it came from anew for each
// number that it reads.
#if defined(__CUDACC_RTC__)
#define KC_KEEP(pointer) asm("" : "+l"(pointer))
#else
#define KC_KEEP(pointer)
#endif
