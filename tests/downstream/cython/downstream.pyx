# cython: language_level=3
"""A package in Cython on the headers of kernelcore."""

from kernelcore.api cimport (
    API_MAJOR, API_MINOR, eigenvalue, expectations, kernels, relu_dual, relu_network, relu_rows, scaled,
)

VERSION = (API_MAJOR, API_MINOR)


def dual(double a, double c, double k):
    cdef expectations[double] found = relu_dual[double](a, c, k)
    return found.value, found.slope


def rows(const double[::1] x, const double[::1] y, int depth, double w_std, double b_std):
    cdef kernels[double] found
    with nogil:
        found = relu_rows[double](&x[0], &y[0], x.shape[0], depth, w_std, b_std)
    return found.nngp, found.ntk


def images(
    const double[:, :, ::1] x, const double[:, :, ::1] y, int depth, double w_std, double b_std,
    bint pool, double[::1] room,
):
    cdef relu_network[double] network
    network.height, network.width, network.channels = x.shape[0], x.shape[1], x.shape[2]
    network.filter, network.depth, network.pool = 3, depth, pool
    network.w_std, network.b_std = w_std, b_std
    if room.shape[0] < network.scratch():
        raise ValueError(f"room must have {network.scratch()} numbers: got {room.shape[0]}")
    cdef kernels[double] found = network(&x[0, 0, 0], &y[0, 0, 0], &room[0])
    return found.nngp, found.ntk


def level(const double[::1] series, long long dim, long long degree):
    cdef scaled[double] found = eigenvalue[double](&series[0], series.shape[0], dim, degree)
    return found.value, found.exponent
