// The one word of the drivers that a host compiler cannot be taught by a macro of CUDA's own name.
#pragma once

// Declares the dynamic shared memory of a block, as bytes: KC_SHARED_BYTES(name);
#ifndef KC_SHARED_BYTES
#define KC_SHARED_BYTES(name) extern __shared__ __align__(16) unsigned char name[]
#endif
