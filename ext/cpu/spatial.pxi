# The host driver of the spatial engine: loops over pairs of images, and nothing else.
# Included by one stub per CPU level; formulas are in ext/include, argument rules in _check.py, the
# records that come in are those of engine/cpu/calls.py.

from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport uintptr_t

include "types.pxi"
include "watch.pxi"

cdef extern from "spatial.h" namespace "kc" nogil:
    cdef cppclass row_map:
        pass
    cdef cppclass row_sum:
        pass
    cdef cppclass column_map:
        pass
    cdef cppclass column_place:
        pass
    cdef cppclass column_load:
        pass
    cdef cppclass column_copy:
        pass
    cdef cppclass column_run:
        pass
    cdef cppclass pool_map:
        pass
    cdef cppclass pool_target:
        pass
    cdef cppclass pool_cell:
        pass
    cdef cppclass pool_term:
        pass
    cdef cppclass spatial_stage:
        pass
    cdef cppclass spatial_step:
        pass
    cdef cppclass plane_maps:
        const row_map *rows
        const row_sum *row_sums
        const int *row_sources
        const column_map *columns
        const column_place *places
        const column_load *loads
        const column_copy *copies
        const column_run *runs
        const pool_map *pools
        const pool_target *targets
        const pool_cell *cells
        const pool_term *terms
        const index_t *store_at
        const int *store_columns
    cdef cppclass spatial_job[T]:
        plane_maps maps
        const spatial_stage *stages
        int stage_count
        const spatial_step *steps
        const T *coefficients
        index_t channels, pixel_columns
        T input_scale, input_add
        index_t table_size, plane_size, line_size, store_size
        int slots
    cdef cppclass spatial_block[T]:
        const T *x_pixels
        const T *x_tables
        const T *y_pixels
        const T *y_tables
        index_t pixels, i0, i1, j0, j1
        T *k_out
        T *t_out
        index_t out_stride
        T factor
        int combine
        bint symmetric
    cdef cppclass window_axis:
        const long long *at
        index_t outputs, taps
    void pixel_variances[T](const T*, index_t, index_t, double, double*)
    void window_variances[T](const T*, index_t, window_axis, window_axis, T, T, T*, T*)
    void norm_tables[T](const double*, index_t, double, double, double, T*, T*)
    void spatial_lanes[T](const T*, index_t, index_t, T*)
    int spatial_width[T](const T*)
    index_t spatial_scratch_size[T](const spatial_job[T]&, int)
    index_t spatial_pieces[T](const spatial_block[T]&, index_t)
    void spatial_unit[T](const spatial_job[T]&, const spatial_block[T]&, index_t, index_t, T*,
                         watched_call&, int)
    void spatial_self[T](const spatial_job[T]&, const T*, const T*, index_t, index_t, int, index_t,
                         T*, T*, watched_call&, int)

WIDTH = {"float32": spatial_width(<const float *> NULL),
         "float64": spatial_width(<const double *> NULL)}
SIZES = {
    "rows": sizeof(row_map), "row_sums": sizeof(row_sum), "columns": sizeof(column_map),
    "places": sizeof(column_place), "loads": sizeof(column_load), "copies": sizeof(column_copy),
    "runs": sizeof(column_run), "pools": sizeof(pool_map), "targets": sizeof(pool_target),
    "cells": sizeof(pool_cell), "terms": sizeof(pool_term), "stages": sizeof(spatial_stage),
    "steps": sizeof(spatial_step),
}


cdef class Program:
    """A network lowered for images of one size: pointers into the arrays of its plan."""

    cdef object plan  # keeps the arrays alive
    cdef plane_maps maps
    cdef const spatial_stage *stages
    cdef int stage_count, slots
    cdef index_t channels, pixel_columns, plane_size, line_size, store_size
    cdef double input_scale, input_add

    def __init__(self, plan):
        self.plan = plan
        self.maps.rows = <const row_map *> address(plan.rows)
        self.maps.row_sums = <const row_sum *> address(plan.row_sums)
        self.maps.row_sources = <const int *> address(plan.row_sources)
        self.maps.columns = <const column_map *> address(plan.columns)
        self.maps.places = <const column_place *> address(plan.places)
        self.maps.loads = <const column_load *> address(plan.loads)
        self.maps.copies = <const column_copy *> address(plan.copies)
        self.maps.runs = <const column_run *> address(plan.runs)
        self.maps.pools = <const pool_map *> address(plan.pools)
        self.maps.targets = <const pool_target *> address(plan.targets)
        self.maps.cells = <const pool_cell *> address(plan.cells)
        self.maps.terms = <const pool_term *> address(plan.terms)
        self.maps.store_at = <const index_t *> address(plan.store_at)
        self.maps.store_columns = <const int *> address(plan.store_columns)
        self.stages = <const spatial_stage *> address(plan.stages)
        self.stage_count = len(plan.stages)
        self.slots = plan.slots
        self.channels, self.pixel_columns = plan.channels, plan.pixel_columns
        self.plane_size, self.line_size = plan.plane_size, plan.line_size
        self.store_size = plan.store_size
        self.input_scale, self.input_add = plan.input_scale, plan.input_add


cdef uintptr_t address(array):
    return array.ctypes.data


cdef int open_job(Program p, const unsigned char[::1] steps, const real_t[::1] coefficients,
                  index_t table_size, spatial_job[real_t] *job) except -1:
    job.maps = p.maps
    job.stages = p.stages
    job.steps = <const spatial_step *> &steps[0] if steps.shape[0] > 0 else NULL
    job.stage_count, job.slots = p.stage_count, p.slots
    job.channels, job.pixel_columns = p.channels, p.pixel_columns
    job.table_size, job.plane_size = table_size, p.plane_size
    job.line_size, job.store_size = p.line_size, p.store_size
    job.input_scale, job.input_add = <real_t> p.input_scale, <real_t> p.input_add
    job.coefficients = &coefficients[0] if coefficients.shape[0] > 0 else NULL
    return 0


# ---- single images


def pixels(const real_t[:, ::1] x, index_t channels, double scale, double[:, ::1] out,
           int n_threads):
    """|x|^2 times scale at every position: (images, positions)."""
    cdef index_t i, n = x.shape[0]
    for i in prange(n, nogil=True, schedule="static", num_threads=n_threads):
        pixel_variances(&x[i, 0], out.shape[1], channels, scale, &out[i, 0])


def window(const double[:, :, ::1] a, const long long[:, ::1] rows, const long long[:, ::1] columns,
           double scale, double bias, double[:, :, ::1] out, double[:, ::1] line, int n_threads):
    """scale times the sums over windows, plus bias; line: (n_threads, columns of a)."""
    cdef window_axis y, x
    y.at, y.outputs, y.taps = &rows[0, 0], rows.shape[0], rows.shape[1]
    x.at, x.outputs, x.taps = &columns[0, 0], columns.shape[0], columns.shape[1]
    cdef index_t i, n = a.shape[0]
    for i in prange(n, nogil=True, schedule="static", num_threads=n_threads):
        window_variances(&a[i, 0, 0], a.shape[2], y, x, scale, bias, &line[threadid(), 0],
                         &out[i, 0, 0])


def norms(const double[:, ::1] variance, double factor, double gain, double largest,
          real_t[:, :, ::1] out, int n_threads):
    """factor/sd and sqrt(gain) sd: (images, 2, positions)."""
    cdef index_t i, n = variance.shape[0]
    for i in prange(n, nogil=True, schedule="static", num_threads=n_threads):
        norm_tables(&variance[i, 0], variance.shape[1], factor, gain, largest, &out[i, 0, 0],
                    &out[i, 1, 0])


def lanes(const real_t[:, ::1] rows, real_t[:, :, ::1] out, int n_threads):
    """(images, numbers) into (groups, numbers, lanes); zeros fill the last group."""
    cdef index_t g, groups = out.shape[0], width = out.shape[2], n = rows.shape[0]
    if rows.shape[1] == 0:
        return
    for g in prange(groups, nogil=True, schedule="static", num_threads=n_threads):
        spatial_lanes(&rows[g * width, 0], min(width, n - g * width), rows.shape[1], &out[g, 0, 0])


# ---- pairs


def scratch_size(Program program, const unsigned char[::1] steps, const real_t[::1] coefficients,
                 int parts):
    """Numbers of scratch per thread."""
    cdef spatial_job[real_t] job
    open_job(program, steps, coefficients, 0, &job)
    return spatial_scratch_size(job, parts)


cdef int open_network(network, spatial_job[real_t] *job) except -1:
    cdef Program program = network.program
    cdef const unsigned char[::1] steps = network.steps
    cdef const real_t[::1] coefficients = network.coefficients
    cdef index_t table_size = network.table_size
    return open_job(program, steps, coefficients, table_size, job)


cdef int open_block(x, y, place, target, spatial_block[real_t] *block) except -1:
    cdef const real_t[:, ::1] x_pixels = x.pixels, x_tables = x.tables
    cdef const real_t[:, :, ::1] y_pixels = y.pixels, y_tables = y.tables
    cdef real_t[:, ::1] k = target.k, t = target.t
    block.i0, block.j0, block.j1 = place
    block.i1 = block.i0 + x_pixels.shape[0]
    block.x_pixels, block.y_pixels = &x_pixels[0, 0], &y_pixels[0, 0, 0]
    block.x_tables = &x_tables[0, 0] if x_tables.shape[1] > 0 else NULL
    block.y_tables = &y_tables[0, 0, 0] if y_tables.shape[1] > 0 else NULL
    block.pixels = x_pixels.shape[1]
    block.k_out = &k[0, 0] if k is not None else NULL
    block.t_out = &t[0, 0] if t is not None else NULL
    block.out_stride = k.shape[1] if k is not None else t.shape[1]
    block.factor, block.combine, block.symmetric = target.factor, target.combine, target.symmetric
    return 0


def gram(
    network,                    # Network
    x,                          # Images, one by one
    y,                          # Images, in lanes
    place,                      # i0, j0, j1: rows i0 .. and columns j0 .. j1 of the target
    target,                     # Target
    real_t[:, ::1] scratch,     # (n_threads, scratch_size)
    watch=None,
):
    """A block of a Gram matrix, each entry computed whole by one thread."""
    cdef spatial_job[real_t] job
    cdef spatial_block[real_t] block
    open_network(network, &job)
    open_block(x, y, place, target, &block)
    cdef int n_threads = <int> scratch.shape[0]
    cdef index_t images = len(x.pixels), groups = len(y.pixels), q = -1
    cdef Watch eye = Watch(watch, spatial_pieces(block, groups))
    cdef watched_call *call = &eye.call
    # Partners in the outer loop: their tables are the larger ones, and stay in the cache.
    call.deal(images * groups)
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
    """Every image with itself: the entries of the last stage."""
    cdef spatial_job[real_t] job
    open_network(network, &job)
    cdef const real_t[:, :, ::1] pixels = images.pixels, tables = images.tables
    cdef const real_t *table = &tables[0, 0, 0] if tables.shape[1] > 0 else NULL
    cdef index_t groups = pixels.shape[0], size = pixels.shape[1], g = -1
    cdef index_t entries = out.shape[1] // parts
    cdef int n_threads = <int> scratch.shape[0]
    cdef Watch eye = Watch(watch, groups)
    cdef watched_call *call = &eye.call
    call.deal(groups)
    with nogil, parallel(num_threads=n_threads):
        g = call.next(-1)
        while g >= 0:
            spatial_self(job, &pixels[0, 0, 0], table, size, g, parts, entries,
                         &scratch[threadid(), 0], &out[0, 0, 0], call[0], threadid())
            g = call.next(g)
        call.wait(threadid())
    eye.finish()
