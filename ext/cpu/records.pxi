# Records of engine/cpu/calls.py that several drivers are called with, as the structs of the headers.

cdef extern from "kernelcore/entry.h" namespace "kc" nogil:
    cdef cppclass destination[T]:
        T *k, *t
        index_t stride
        T factor
        int combine
        bint symmetric, transposed

cdef extern from "kernelcore/program.h" namespace "kc" nogil:
    cdef cppclass op:
        pass
    cdef cppclass operations[T]:
        const op *ops
        int count
        const T *coefficients


cdef inline const real_t *line(const real_t[::1] a) noexcept:
    return &a[0] if a.shape[0] > 0 else NULL


cdef inline const real_t *matrix(const real_t[:, ::1] a) noexcept:
    return &a[0, 0] if a.shape[0] > 0 and a.shape[1] > 0 else NULL


cdef int open_program(program, operations[real_t] *p) except -1:
    cdef const unsigned char[::1] ops = program.ops
    cdef const real_t[::1] coefficients = program.coefficients
    p.ops = <const op *> &ops[0] if ops.shape[0] > 0 else NULL
    p.count, p.coefficients = <int> (ops.shape[0] // sizeof(op)), line(coefficients)
    return 0


cdef int open_target(target, destination[real_t] *to) except -1:
    cdef real_t[:, ::1] k = target.k, t = target.t
    to.k = &k[0, 0] if k is not None else NULL
    to.t = &t[0, 0] if t is not None else NULL
    to.stride = k.shape[1] if k is not None else t.shape[1] if t is not None else 0
    to.factor, to.combine, to.symmetric = target.factor, target.combine, target.symmetric
    return 0
