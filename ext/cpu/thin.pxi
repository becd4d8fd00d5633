# The host driver of thin products: loops over blocks of rows and strips of columns, nothing else.
# Included by one stub per CPU level. Formulas are in ext/include, argument rules in _check.py.

from cython.parallel cimport parallel, prange, threadid

include "types.pxi"
include "watch.pxi"

cdef extern from "thin.h" namespace "kc" nogil:
    const index_t thin_strip
    const int thin_rows
    void thin_forward_native[T](const T*, index_t, index_t, index_t, const T*, int, T*)
    void thin_transposed_native[T](const T*, index_t, index_t, index_t, index_t, const T*, int, T*,
                                   watched_call&, int)

ROWS = thin_rows


def normal(
    const real_t[:, ::1] K,     # (n, m)
    const real_t[:, ::1] x,     # (r, m)
    real_t[:, ::1] y,           # (r, m): K'K x is added to it, one block of rows after another
    real_t[:, ::1] t,           # (rows of a block, r): room for K x
    int n_threads,
    watch=None,
):
    """Add K'K x to y. One thread computes a whole row of K x, and a whole strip of K't."""
    cdef index_t n = K.shape[0], m = K.shape[1], block = t.shape[0]
    cdef index_t b = 0, i, rows = 0, blocks = (n + block - 1) // block
    cdef int r = <int> x.shape[0]
    if n == 0 or m == 0 or r == 0:
        return
    cdef Watch eye = Watch(watch, blocks)
    cdef watched_call *call = &eye.call
    with nogil, parallel(num_threads=n_threads):
        # No thread leaves this loop before the others: they meet at the end of each prange.
        for b in range(blocks):
            rows = min(block, n - b * block)
            call.goes_on(threadid())
            for i in prange((rows + thin_rows - 1) // thin_rows, schedule="dynamic"):
                if call.goes_on():
                    thin_forward_native(&K[b * block, 0], m, rows, i, &x[0, 0], r, &t[0, 0])
            for i in prange((m + thin_strip - 1) // thin_strip, schedule="dynamic"):
                if call.goes_on():
                    thin_transposed_native(&K[b * block, 0], m, rows, rows, i, &t[0, 0], r,
                                           &y[0, 0], call[0], threadid())
            if threadid() == 0:
                call.done(1)
    eye.finish()


def transposed(
    const real_t[:, ::1] K,     # (n, m)
    const real_t[:, ::1] t,     # (n, r)
    real_t[:, ::1] y,           # (r, m): K't is added to it
    index_t block,              # rows that are summed before they are added to y
    int n_threads,
    watch=None,
):
    """Add K't to y. One thread computes a whole strip."""
    cdef index_t n = K.shape[0], m = K.shape[1], strips = (m + thin_strip - 1) // thin_strip, i = -1
    cdef int r = <int> t.shape[1]
    if n == 0 or m == 0 or r == 0:
        return
    cdef Watch eye = Watch(watch, strips, strips)
    cdef watched_call *call = &eye.call
    with nogil, parallel(num_threads=n_threads):
        i = call.next(-1)
        while i >= 0:
            thin_transposed_native(&K[0, 0], m, n, block, i, &t[0, 0], r, &y[0, 0], call[0],
                                   threadid())
            call.done(1)
            i = call.next(i)
        call.wait(threadid())
    eye.finish()
