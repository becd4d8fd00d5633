# The host driver of spectra: loops over jobs, and nothing else.
# Included by one stub per CPU level. Formulas are in ext/include, argument rules in _check.py, and the
# records of the calls in engine/cpu/calls.py.

from cython.parallel cimport parallel, threadid

include "types.pxi"
include "watch.pxi"

cdef extern from "gegenbauer.h" namespace "kc" nogil:
    cdef cppclass powers[T]:
        const T *n
        T *x, *exponent, *scale
        index_t count, watched
    cdef cppclass projection[T]:
        T sum
    index_t project_pieces(index_t, index_t, index_t)
    void project_native(const powers[double]&, index_t, index_t, index_t, index_t,
                        projection[double]*, watched_call&, int)
    void integrate_native(const double*, const double*, index_t, double, index_t, double*, double*,
                          watched_call&)
    void multiply_series "kc::multiply_series<kc::native<double>>"(
        const double*, const double*, index_t, double*)
    void c_inverse_root "kc::inverse_root<kc::native<double>>"(
        const double*, double, index_t, double*, double*)
    void shift_series(double*, index_t, double)
    const int width "kc::value<kc::native<double>>::width"

WIDTH = width


def project(
    terms,                          # Terms: (jobs, count), count a multiple of WIDTH
    dims,                           # q, p: of the sphere of R^q; results of R^p, p - q even
    const index_t[::1] first,       # (jobs,): 0 or 1
    const index_t[::1] watched,     # (jobs,)
    double[:, :, ::1] out,          # (jobs, degrees, 4): sum, size, watched, exponent
    int n_threads,
    watch=None,
):
    """Compute the sums of every job. One thread does a whole job."""
    cdef const double[:, ::1] n = terms.n
    cdef double[:, ::1] x = terms.x, exponent = terms.exponent, scale = terms.scale
    cdef index_t i = -1, q, p
    q, p = dims
    if out.shape[1] == 0 or n.shape[1] == 0:
        return
    cdef Watch eye = Watch(watch, n.shape[0] * project_pieces(q, p, out.shape[1]), n.shape[0])
    cdef watched_call *call = &eye.call
    with nogil, parallel(num_threads=n_threads):
        i = call.next(-1)
        while i >= 0:
            project_one(&n[i, 0], &x[i, 0], &exponent[i, 0], &scale[i, 0], n.shape[1], watched[i],
                        q, p, first[i], out.shape[1], &out[i, 0, 0], call, threadid())
            i = call.next(i)
        call.wait(threadid())
    eye.finish()


cdef void project_one(const double *n, double *x, double *exponent, double *scale, index_t count,
                      index_t watched, index_t q, index_t p, index_t first, index_t degrees,
                      double *out, watched_call *call, int thread) noexcept nogil:
    cdef powers[double] terms
    terms.n, terms.x, terms.exponent, terms.scale = n, x, exponent, scale
    terms.count, terms.watched = count, watched
    project_native(terms, q, p, first, degrees, <projection[double] *> out, call[0], thread)


def integrate(const double[::1] t, const double[::1] values, double p, double[::1] out,
              double[::1] scratch, watch=None):
    """Sum over nodes t, a multiple of WIDTH, for degrees below len(out); scratch has 2 len(t)."""
    cdef Watch eye = Watch(watch, out.shape[0])
    with nogil:
        integrate_native(&t[0], &values[0], t.shape[0], p, out.shape[0], &scratch[0], &out[0],
                         eye.call)
    eye.finish()


def multiply(const double[::1] a, const double[::1] b, double[::1] out):
    """Multiply power series of equal length."""
    with nogil:
        multiply_series(&a[0], &b[0], a.shape[0], &out[0])


def inverse_root(const double[::1] w, double d0, double[::1] out, double[::1] scratch):
    """Compute (1 - w)^(-1/2) for a power series w, d0 = 1 - w[0]; all have one length."""
    with nogil:
        c_inverse_root(&w[0], d0, w.shape[0], &out[0], &scratch[0])


def shift(double[::1] c, double x):
    """Expand the polynomial c about x, in place."""
    with nogil:
        shift_series(&c[0], c.shape[0], x)
