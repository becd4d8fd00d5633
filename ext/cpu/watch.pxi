# Interruption and progress of all drivers that can take long.
#
#     cdef Watch eye = Watch(watch, total, pieces)
#     cdef watched_call *call = &eye.call
#     with nogil, parallel(num_threads=n_threads):
#         i = call.next(-1)
#         while i >= 0:
#             if call.goes_on(threadid()):
#                 ...
#                 call.done(work)
#             i = call.next(i)
#         call.wait(threadid())
#     eye.finish()
#
# ``watch``, a function of the fraction of the work done, or None, is called from the thread that
# called the driver, ten times a second, after signals. What it or a signal raises ends the work.

from cpython.exc cimport PyErr_CheckSignals

cdef extern from "watch.h" namespace "kc" nogil:
    cdef cppclass watched_call:
        void begin(index_t, index_t, int (*)(void *, double) noexcept nogil, void *)
        void done(index_t)
        bint goes_on()
        bint goes_on(int)
        bint after(int, index_t)
        void deal(index_t)
        index_t next(index_t)
        void wait(int)


cdef class Watch:
    """What a call of a driver asks in Python, and the error that ended the call."""

    cdef watched_call call
    cdef object watch, error

    def __cinit__(self, watch, index_t total, index_t pieces=0):
        self.watch = watch
        self.call.begin(total, pieces, ask, <void *> self)

    cdef int finish(self) except -1:
        """Raise the error that ended the work, if there is one."""
        if self.error is not None:
            raise self.error
        return 0


cdef int ask(void *caller, double fraction) noexcept with gil:
    cdef Watch eye = <Watch> caller
    try:
        PyErr_CheckSignals()
        if eye.watch is not None:
            eye.watch(fraction)
    except BaseException as error:
        eye.error = error
        return 1
    return 0
