# cython: language_level=3
"""The C++ API for Cython; kernelcore/host/api.h says what each name is.

Modules that cimport it are compiled as C++17, with ``kernelcore.get_include()`` among their
include_dirs.
"""

cdef extern from "kernelcore/host/api.h" nogil:
    const int API_MAJOR "KC_API_MAJOR"
    const int API_MINOR "KC_API_MINOR"

cdef extern from "kernelcore/host/api.h" namespace "kc::api" nogil:
    cdef cppclass expectations[T]:
        T value, slope

    cdef cppclass kernels[T]:
        T nngp, ntk

    cdef cppclass scaled[T]:
        T value
        int exponent

    cdef cppclass relu_network[T]:
        long long height, width, channels
        int filter, depth
        T w_std, b_std
        bint pool
        long long scratch()
        kernels[T] operator()(const T *x, const T *y, T *room)

    expectations[T] relu_dual[T](T a, T c, T k)
    kernels[T] relu_rows[T](const T *x, const T *y, long long d, int depth, T w_std, T b_std)
    scaled[T] eigenvalue[T](const T *a, long long count, long long dim, long long k)
