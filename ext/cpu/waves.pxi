# The host driver of random Fourier features: loops over rows, and nothing else.
# Included by one stub per CPU level. Formulas are in ext/include, argument rules in _check.py.

include "types.pxi"
include "watch.pxi"

cdef extern from "waves.h" namespace "kc" nogil:
    void cosines_and_sines_native[T](const T*, index_t, T, T*, T*)
    void shifted_cosines_native[T](T*, const T*, index_t, T)


def cosines_and_sines(
    real_t[:, ::1] z,      # (n, 2m): products on the left; then cosines, and sines on the right
    double scale,
    watch=None,
):
    cdef index_t i, m = z.shape[1] // 2
    if m == 0:
        return
    cdef Watch eye = Watch(watch, z.shape[0])
    with nogil:
        for i in range(z.shape[0]):
            if not eye.call.after(0, m):
                break
            cosines_and_sines_native(&z[i, 0], m, <real_t> scale, &z[i, 0], &z[i, m])
            eye.call.done(1)
    eye.finish()


def shifted_cosines(
    real_t[:, ::1] z,      # (n, m): products; then cosines
    const real_t[::1] phase,  # (m,)
    double scale,
    watch=None,
):
    cdef index_t i, m = z.shape[1]
    if m == 0:
        return
    cdef Watch eye = Watch(watch, z.shape[0])
    with nogil:
        for i in range(z.shape[0]):
            if not eye.call.after(0, m):
                break
            shifted_cosines_native(&z[i, 0], &phase[0], m, <real_t> scale)
            eye.call.done(1)
    eye.finish()
