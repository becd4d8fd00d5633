# The host driver of thin products: loops over blocks of rows and strips of columns, nothing else.
# Included by one stub per CPU level; formulas are in ext/include, argument rules in _check.py.

from cython.parallel cimport parallel, prange

ctypedef long long index_t

ctypedef fused real_t:
    float
    double

cdef extern from "thin.h" namespace "kc" nogil:
    const index_t thin_strip
    const int thin_rows
    void thin_forward_native[T](const T*, index_t, index_t, index_t, const T*, int, T*)
    void thin_transposed_native[T](const T*, index_t, index_t, index_t, const T*, int, T*)

ROWS = thin_rows


def normal(
    const real_t[:, ::1] K,     # (n, m)
    const real_t[:, ::1] x,     # (r, m)
    real_t[:, ::1] y,           # (r, m): K'K x is added to it, a block of rows after the other
    real_t[:, ::1] t,           # (rows of a block, r): room for K x
    int n_threads,
):
    """Each row of K x, each strip of K't computed whole by one thread."""
    cdef index_t n = K.shape[0], m = K.shape[1], block = t.shape[0]
    cdef index_t b, i, rows
    cdef int r = <int> x.shape[0]
    if n == 0 or m == 0 or r == 0:
        return
    with nogil, parallel(num_threads=n_threads):
        for b in range((n + block - 1) // block):
            rows = min(block, n - b * block)
            for i in prange((rows + thin_rows - 1) // thin_rows, schedule="dynamic"):
                thin_forward_native(&K[b * block, 0], m, rows, i, &x[0, 0], r, &t[0, 0])
            for i in prange((m + thin_strip - 1) // thin_strip, schedule="dynamic"):
                thin_transposed_native(&K[b * block, 0], m, rows, i, &t[0, 0], r, &y[0, 0])


def transposed(
    const real_t[:, ::1] K,     # (n, m)
    const real_t[:, ::1] t,     # (n, r)
    real_t[:, ::1] y,           # (r, m): K't is added to it
    index_t block,              # rows that are summed by themselves
    int n_threads,
):
    cdef index_t n = K.shape[0], m = K.shape[1], b, i
    cdef int r = <int> t.shape[1]
    if n == 0 or m == 0 or r == 0:
        return
    for i in prange((m + thin_strip - 1) // thin_strip, nogil=True, schedule="dynamic",
                    num_threads=n_threads):
        for b in range((n + block - 1) // block):
            thin_transposed_native(&K[b * block, 0], m, min(block, n - b * block), i,
                                   &t[b * block, 0], r, &y[0, 0])
