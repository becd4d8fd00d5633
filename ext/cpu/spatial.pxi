# The host driver of the spatial engine: loops over pairs of images, and nothing else.
# Included by one stub per CPU level. Formulas are in ext/include, argument rules in _check.py, and the
# records of the calls in engine/cpu/calls.py.

from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy

include "types.pxi"
include "watch.pxi"
include "records.pxi"

cdef extern from "spatial.h" namespace "kc" nogil:
    cdef cppclass plane_maps:
        pass
    cdef cppclass spatial_stage:
        pass
    cdef cppclass spatial_step:
        pass
    cdef cppclass spatial_job[T]:
        plane_maps maps
        const spatial_stage *stages
        int stage_count
        const spatial_step *steps
        const T *coefficients
        index_t channels, pixel_columns
        T input_scale, input_add
        index_t table_size, plane_size, line_size, store_size
        int slots, boxed
        index_t slab_size, pass_size, track_size
    cdef cppclass spatial_block[T]:
        const T *pixels, *tables, *lane_pixels, *lane_tables
        index_t size, i0, i1, j0, j1
        bint flipped
        destination[T] to
    cdef cppclass window_axis:
        const long long *at
        index_t outputs, taps
    void pixel_variances[T](const T*, index_t, index_t, double, double*)
    void window_variances[T](const T*, index_t, window_axis, window_axis, T, T, T*, T*)
    void norm_tables[T](const double*, index_t, double, double, double, T*, T*)
    void spatial_lanes[T](const T*, index_t, index_t, T*)
    const int float_width "kc::value<kc::native<float>>::width"
    const int double_width "kc::value<kc::native<double>>::width"
    index_t spatial_scratch_size[T](const spatial_job[T]&, int)
    index_t spatial_pieces[T](const spatial_block[T]&, index_t)
    void spatial_unit[T](const spatial_job[T]&, const spatial_block[T]&, index_t, index_t, T*,
                         watched_call&, int)
    void spatial_self[T](const spatial_job[T]&, const T*, const T*, index_t, index_t, int, bint,
                         index_t, T*, T*, watched_call&, int)

WIDTH = {"float32": float_width, "float64": double_width}
# Names of arrays of a plan, in the order of plane_maps, which has a pointer to each.
MAPS = ("rows", "row_sums", "row_sources", "columns", "places", "loads", "copies", "runs", "pools",
        "targets", "cells", "passes", "tracks", "items", "sums", "terms", "store_at",
        "store_columns")


cdef class Program:
    """A network lowered for images of one size: pointers into the arrays of its plan."""

    cdef object plan  # keeps the arrays alive
    cdef spatial_job[double] job
    cdef plane_maps flipped  # the same with x and y exchanged
    cdef bint halves

    def __init__(self, plan):
        cdef uintptr_t address[18]
        assert len(MAPS) == 18 and sizeof(address) == sizeof(plane_maps)
        for k, name in enumerate(MAPS):
            address[k] = getattr(plan, name).ctypes.data
        memcpy(&self.job.maps, address, sizeof(address))
        for name, array in plan.flipped.items():
            address[MAPS.index(name)] = array.ctypes.data
        memcpy(&self.flipped, address, sizeof(address))
        self.plan, self.halves = plan, plan.variances
        self.job.stages = <const spatial_stage *> <uintptr_t> plan.stages.ctypes.data
        self.job.stage_count, self.job.slots = len(plan.stages), plan.slots
        self.job.channels, self.job.pixel_columns = plan.channels, plan.pixel_columns
        self.job.plane_size, self.job.line_size = plan.plane_size, plan.line_size
        self.job.store_size, self.job.slab_size = plan.store_size, plan.slab_size
        self.job.pass_size, self.job.track_size = plan.pass_size, plan.track_size
        self.job.boxed = plan.boxed
        self.job.input_scale, self.job.input_add = plan.input_scale, plan.input_add


cdef int open_job(Program program, const unsigned char[::1] steps,
                  const real_t[::1] coefficients, index_t table_size,
                  spatial_job[real_t] *job) except -1:
    cdef spatial_job[double] *p = &program.job
    job.maps, job.stages, job.stage_count = p.maps, p.stages, p.stage_count
    job.channels, job.pixel_columns, job.slots = p.channels, p.pixel_columns, p.slots
    job.plane_size, job.line_size, job.store_size = p.plane_size, p.line_size, p.store_size
    job.slab_size, job.pass_size, job.track_size = p.slab_size, p.pass_size, p.track_size
    job.boxed = p.boxed
    job.input_scale, job.input_add = <real_t> p.input_scale, <real_t> p.input_add
    job.steps = <const spatial_step *> &steps[0] if steps.shape[0] > 0 else NULL
    job.coefficients, job.table_size = line(coefficients), table_size
    return 0


# ---- single images


def pixels(const real_t[:, ::1] x, index_t channels, double scale, double[:, ::1] out,
           int n_threads):
    """Write |x|^2 times scale at every position: (images, positions)."""
    cdef index_t i, n = x.shape[0]
    for i in prange(n, nogil=True, schedule="static", num_threads=n_threads):
        pixel_variances(&x[i, 0], out.shape[1], channels, scale, &out[i, 0])


def window(const double[:, :, ::1] a, const long long[:, ::1] rows, const long long[:, ::1] columns,
           double scale, double bias, double[:, :, ::1] out, double[:, ::1] line, int n_threads):
    """Write scale times the sums over windows, plus bias; line: (n_threads, columns of a)."""
    cdef window_axis y, x
    y.at, y.outputs, y.taps = &rows[0, 0], rows.shape[0], rows.shape[1]
    x.at, x.outputs, x.taps = &columns[0, 0], columns.shape[0], columns.shape[1]
    cdef index_t i, n = a.shape[0]
    for i in prange(n, nogil=True, schedule="static", num_threads=n_threads):
        window_variances(&a[i, 0, 0], a.shape[2], y, x, scale, bias, &line[threadid(), 0],
                         &out[i, 0, 0])


def norms(const double[:, ::1] variance, double factor, double gain, double largest,
          real_t[:, :, :] out, int n_threads):
    """Write factor/sd and sqrt(gain) sd: (images, 2, positions), positions side by side."""
    cdef index_t i, n = variance.shape[0]
    for i in prange(n, nogil=True, schedule="static", num_threads=n_threads):
        norm_tables(&variance[i, 0], variance.shape[1], factor, gain, largest, &out[i, 0, 0],
                    &out[i, 1, 0])


def lanes(const real_t[:, ::1] rows, real_t[:, :, ::1] out, int n_threads):
    """Turn (images, numbers) into (groups, numbers, lanes); zeros fill the last group."""
    cdef index_t g, groups = out.shape[0], width = out.shape[2], n = rows.shape[0]
    if rows.shape[1] == 0:
        return
    for g in prange(groups, nogil=True, schedule="static", num_threads=n_threads):
        spatial_lanes(&rows[g * width, 0], min(width, n - g * width), rows.shape[1], &out[g, 0, 0])


# ---- pairs


def scratch_size(Program program, const unsigned char[::1] steps, const real_t[::1] coefficients,
                 int parts):
    """Return the numbers of scratch per thread."""
    cdef spatial_job[real_t] job
    open_job(program, steps, coefficients, 0, &job)
    return spatial_scratch_size(job, parts)


cdef int open_network(network, spatial_job[real_t] *job) except -1:
    cdef Program program = network.program
    cdef const unsigned char[::1] steps = network.steps
    cdef const real_t[::1] coefficients = network.coefficients
    cdef index_t table_size = network.table_size
    return open_job(program, steps, coefficients, table_size, job)


cdef int open_block(singles, lanes, place, target, spatial_block[real_t] *block) except -1:
    cdef const real_t[:, ::1] pixels = singles.pixels, tables = singles.tables
    cdef const real_t[:, :, ::1] lane_pixels = lanes.pixels, lane_tables = lanes.tables
    open_target(target, &block.to)
    block.i0, block.j0, block.j1, block.flipped = place
    block.i1 = block.i0 + pixels.shape[0]
    block.pixels, block.lane_pixels = &pixels[0, 0], &lane_pixels[0, 0, 0]
    block.tables = matrix(tables)
    block.lane_tables = &lane_tables[0, 0, 0] if lane_tables.shape[1] > 0 else NULL
    block.size = pixels.shape[1]
    return 0


def gram(
    network,                    # Network
    singles,                    # Images, one by one
    lanes,                      # Images, in lanes
    place,                      # Place of the block in the target
    target,                     # Target
    real_t[:, ::1] scratch,     # (n_threads, scratch_size)
    watch=None,
):
    """Compute a block of a Gram matrix. One thread computes a whole entry."""
    cdef spatial_job[real_t] job
    cdef spatial_block[real_t] block
    open_network(network, &job)
    open_block(singles, lanes, place, target, &block)
    if block.flipped:
        job.maps = (<Program> network.program).flipped
    cdef int n_threads = <int> scratch.shape[0]
    cdef index_t images = len(singles.pixels), groups = len(lanes.pixels), q = -1
    cdef Watch eye = Watch(watch, spatial_pieces(block, groups), images * groups)
    cdef watched_call *call = &eye.call
    # Partners are in the outer loop: their tables are the larger ones, and stay in the cache.
    with nogil, parallel(num_threads=n_threads):
        q = call.next(-1)
        while q >= 0:
            spatial_unit(job, block, q % images, q // images, &scratch[threadid(), 0], call[0],
                         threadid())
            q = call.next(q)
        call.wait(threadid())
    eye.finish()


def selves(
    network,                    # Network
    images,                     # Images, in lanes
    int parts,
    real_t[:, :, ::1] out,      # (groups, entries * parts, lanes)
    real_t[:, ::1] scratch,     # (n_threads, scratch_size)
    watch=None,
):
    """Run every image with itself; write the entries of the last stage."""
    cdef spatial_job[real_t] job
    open_network(network, &job)
    cdef const real_t[:, :, ::1] pixels = images.pixels, tables = images.tables
    cdef const real_t *table = &tables[0, 0, 0] if tables.shape[1] > 0 else NULL
    cdef index_t groups = pixels.shape[0], size = pixels.shape[1], g = -1
    cdef index_t entries = out.shape[1] // parts
    cdef bint halves = (<Program> network.program).halves
    cdef int n_threads = <int> scratch.shape[0]
    cdef Watch eye = Watch(watch, groups, groups)
    cdef watched_call *call = &eye.call
    with nogil, parallel(num_threads=n_threads):
        g = call.next(-1)
        while g >= 0:
            spatial_self(job, &pixels[0, 0, 0], table, size, g, parts, halves, entries,
                         &scratch[threadid(), 0], &out[0, 0, 0], call[0], threadid())
            g = call.next(g)
        call.wait(threadid())
    eye.finish()
