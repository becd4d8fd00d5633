// Kernels of pairs of images on a device: a block of threads takes a pair through a network, plane by
// plane (plane.h), its threads side by side in a plane. The twin of ext/cpu/spatial.
//
// A plane runs through all steps of a stage without leaving the block: in shared memory, or in scratch
// where it does not fit. A block takes its planes in order, and what they add up to is summed in the
// same order whatever the schedule.
#include "device.h"
#include "kernelcore/entry.h"
#include "kernelcore/spatial.h"
#include "kernelcore/variances.h"

namespace kc {

constexpr int block_bits = 8, block_threads = 1 << block_bits;

// An entry, read and written at once.
template <class T, int parts>
struct alignas(parts * sizeof(T)) cell {
    T part[parts];
};

// Which pairs of images, and where their kernels go. Images of x are rows of the matrix.
template <class T>
struct spatial_pairs {
    const T *x_pixels, *x_tables, *y_pixels, *y_tables;
    index_t size;          // pixels per image
    index_t n, m, i0, j0;  // numbers of images, and where they begin in the matrix
    destination<T> to;
    T* selves;              // not null: (i, i) alone, and all entries of the last stage
    index_t entries;        // these, per pair
    T* scratch;             // of all blocks
    index_t scratch_cells;  // of one
    index_t between_cells;  // between two passes of a pooling
};

// Threads beside each other in a row of a plane: the logarithm of the power of two that holds it, at
// most 32.
__device__ int bits_of(int columns) {
    return (columns > 1) + (columns > 2) + (columns > 4) + (columns > 8) + (columns > 16);
}

// f(r, c) for all r < rows and c < columns, with no barrier in it: neighbours in a row go to
// neighbouring threads, and no thread divides.
template <class F>
__device__ void each(int rows, int columns, F f) {
    const int bits = bits_of(columns);
    for (int r = threadIdx.x >> bits; r < rows; r += block_threads >> bits)
        for (int c = threadIdx.x & ((1 << bits) - 1); c < columns; c += 1 << bits) f(r, c);
}

// Tables of an entry, for functions that ask with a lane or without (program.h).
template <class T>
struct entry_tables_of {
    one_image<T> image;
    index_t at, positions;
    __device__ T operator()(int k, index_t = 0) const { return image.table(at + k * positions); }
};

// Read at once.
struct alignas(16) whole_row : row_sum {};

template <class T, int parts, bool quick>
struct pair_walk {
    using entry = cell<T, parts>;
    const spatial_job<T>& job;
    one_image<T> x, y;
    entry *planes, *lines;           // shared memory, or scratch
    entry *stores, *slab, *between;  // scratch
    entry* partial;                  // one for each thread, in shared memory

    __device__ whole_row row_at(int k) const {
        return reinterpret_cast<const whole_row*>(job.maps.row_sums)[k];
    }

    // ---- patch sums

    // Line r: the sums over the sources of output row r, in all slots.
    __device__ void gather(const row_map& rows, const column_map& map, const entry* plane,
                           int columns) const {
        const int stride = int(job.line_size);
        for (int k = 0; k < map.loads; k++) {
            const column_load l = job.maps.loads[map.load + k];
            each(rows.outputs, l.count, [&](int r, int c) {
                const whole_row row = row_at(rows.first + r);
                const int* sources = job.maps.row_sources + row.first;
                entry sum{};
                for (int s = 0; s < row.count; s++) {
                    const entry e = plane[sources[s] * columns + l.from + c];
        KC_UNROLL for (int p = 0; p < parts; p++) sum.part[p] = sum.part[p] + e.part[p];
                }
                lines[r * stride + l.slot + c] = sum;
            });
        }
        bool copied = false;
        for (int k = 0; k < map.copies; k++) copied |= job.maps.copies[map.copy + k].from >= 0;
        each(rows.outputs, map.copies, [&](int r, int k) {
            const column_copy c = job.maps.copies[map.copy + k];
            if (c.from < 0) lines[r * stride + c.slot] = entry{};
        });
        __syncthreads();
        if (!copied) return;
        each(rows.outputs, map.copies, [&](int r, int k) {
            const column_copy c = job.maps.copies[map.copy + k];
            if (c.from >= 0) lines[r * stride + c.slot] = lines[r * stride + c.from];
        });
        __syncthreads();
    }

    // ---- a step

    // f(K, T, positions in both tables, place) for all outputs of a step, from their patch sums.
    template <class F>
    __device__ void outputs(const spatial_step& step, const row_map& rows, const column_map& map,
                            entry* out, F f) const {
        const int stride = int(job.line_size);
        for (int q = 0; q < map.runs; q++) {
            const column_run run = job.maps.runs[map.run + q];
            each(rows.outputs, run.count, [&](int r, int k) {
                const whole_row row = row_at(rows.first + r);
                const entry* slot = lines + r * stride + run.slot + k * run.step;
                entry sum = slot[0];
                for (int tap = 1; tap < map.taps; tap++)
                    KC_UNROLL for (int p = 0; p < parts; p++)
                        sum.part[p] = sum.part[p] + slot[tap].part[p];
                const index_t px = step.at + index_t(row.x) * step.grid_columns + run.x + k * run.move;
                const index_t py = step.at + index_t(row.y) * step.grid_columns + run.y + k * run.move;
                f(sum.part[0], sum.part[parts - 1], px, py,
                  out[r * map.outputs + run.out + k].part);
            });
        }
    }

    // An entry after ReLU, from its patch sums.
    template <bool plain, bool positive>
    __device__ static entry turned(const relu_step<T, parts, plain, positive>& f, T k, T t, T inverse,
                                   T norm) {
        values<T> now;
        if constexpr (plain) {
            now = f.turn(k, inverse, norm);
            now.t = fma(t, now.t, now.k);
        } else {
            now = f(k, t, inverse, norm);
        }
        entry to;
        KC_UNROLL for (int p = 0; p < parts; p++) to.part[p] = p ? now.t : now.k;
        return to;
    }
    template <bool plain, bool positive>
    __device__ void relu_lines(const spatial_step& step, const row_map& rows, const column_map& map,
                               entry* out) const {
        const relu_step<T, parts, plain, positive> f(step);
        const index_t sd = step.positions;
        outputs(step, rows, map, out, [&](T k, T t, index_t px, index_t py, T* to) {
            const T inverse = x.table(px) * y.table(py);
            const T norm = x.table(px + sd) * y.table(py + sd);
            const entry now = turned(f, k, t, inverse, norm);
            KC_UNROLL for (int p = 0; p < parts; p++) to[p] = now.part[p];
        });
    }

    // The same for sums over three rows and three columns, the commonest windows: straight from the
    // plane, in the order of the lines. A thread has some rows of a column, with all that it looks up
    // for them on its way at once. Beyond the first and the last row there are zeros, which `partial`
    // holds meanwhile.
    static constexpr int ahead = 2;
    __device__ static bool has_three(const row_map& rows, const column_map& map, int before) {
        return map.three && map.runs <= 2 && map.outputs <= block_threads && rows.near &&
               rows.outputs == before;
    }
    template <bool positive>
    __device__ void relu_three(const spatial_step& step, const row_map& rows, const column_map& map,
                               const entry* plane, entry* out) const {
        const int columns = map.outputs, last = columns - 1, grid = step.grid_columns;
        const int bits = bits_of(columns), groups = block_threads >> bits;
        const int share = (rows.outputs + groups - 1) >> (block_bits - bits);
        const int begin = (threadIdx.x >> bits) * share;
        if (begin >= rows.outputs) return;
        const int end = begin + share < rows.outputs ? begin + share : rows.outputs;
        const unsigned beyond = end < rows.outputs ? end + 1 : rows.outputs;
        const relu_step<T, parts, true, positive> f(step);
        const bool circular = map.three == 2, cut = map.three == 3;
        const T *x_inverse = x.tables + step.at, *y_inverse = y.tables + step.at;
        const int sd = int(step.positions);
        KC_KEEP(x_inverse);
        KC_KEEP(y_inverse);
        const column_run head = job.maps.runs[map.run], tail = job.maps.runs[map.run + map.runs - 1];
        const auto* row_sums = reinterpret_cast<const whole_row*>(job.maps.row_sums + rows.first);
        KC_KEEP(row_sums);
        for (int c = threadIdx.x & ((1 << bits) - 1); c <= last; c += 1 << bits) {
            const bool first = c < tail.out;
            const int k = c - (first ? head.out : tail.out);
            const int at_x = (first ? head.x : tail.x) + k * (first ? head.move : tail.move);
            const int at_y = (first ? head.y : tail.y) + k * (first ? head.move : tail.move);
            const bool inner_left = circular || c > (cut && !first ? tail.out : 0);
            const bool inner_right = circular || c < (cut && first ? tail.out - 1 : last);
            const int left = c > 0 ? c - 1 : circular ? last : 0;
            const int right = c < last ? c + 1 : circular ? 0 : last;
            for (int r = begin; r < end; r += ahead) {
                whole_row row[ahead];
                entry e[ahead + 2][3];
                T inverse[ahead], norm[ahead];
                bool whole = true;  // a row may be cut off from its neighbours
                KC_UNROLL for (int q = 0; q < ahead; q++) {
                    const int at = r + q < end ? r + q : r;
                    row[q] = row_sums[unsigned(at)];
                    whole &= row[q].count == 1 + (at > 0) + (at + 1 < rows.outputs);
                }
                KC_UNROLL for (int q = 0; q < ahead; q++) {
                    const unsigned px = row[q].x * grid + at_x, py = row[q].y * grid + at_y;
                    inverse[q] = x_inverse[px] * y_inverse[py];
                    norm[q] = x_inverse[px + sd] * y_inverse[py + sd];
                }
                KC_UNROLL for (int q = 0; q < ahead + 2; q++) {
                    const int from = r + q - 1;
                    const entry* line = unsigned(from) < beyond ? plane + from * columns : partial;
                    e[q][0] = line[left], e[q][1] = line[c], e[q][2] = line[right];
                }
                KC_UNROLL for (int q = 0; q < ahead; q++) {
                    if (r + q >= end) break;
                    entry sum[3], all;
                    KC_UNROLL for (int p = 0; p < parts; p++)
                        KC_UNROLL for (int l = 0; l < 3; l++) sum[l].part[p] =
                            e[q][l].part[p] + e[q + 1][l].part[p] + e[q + 2][l].part[p];
                    if (!whole) sum_sources(row[q], plane, columns, left, c, right, sum);
                    KC_UNROLL for (int p = 0; p < parts; p++) all.part[p] =
                        (inner_left ? sum[0].part[p] : T(0)) + sum[1].part[p] +
                        (inner_right ? sum[2].part[p] : T(0));
                    out[(r + q) * columns + c] =
                        turned(f, all.part[0], all.part[parts - 1], inverse[q], norm[q]);
                }
            }
        }
    }
    __device__ void sum_sources(const row_sum& row, const entry* plane, int columns, int left, int c,
                                int right, entry* sum) const {
        KC_UNROLL for (int l = 0; l < 3; l++) sum[l] = entry{};
        for (int s = 0; s < row.count; s++) {
            const entry* line = plane + job.maps.row_sources[row.first + s] * columns;
            KC_UNROLL for (int p = 0; p < parts; p++) {
                sum[0].part[p] = sum[0].part[p] + line[left].part[p];
                sum[1].part[p] = sum[1].part[p] + line[c].part[p];
                sum[2].part[p] = sum[2].part[p] + line[right].part[p];
            }
        }
    }

    // An activation that program.h hands over as a function of correlations.
    struct by_function {
        const pair_walk& walk;
        const spatial_step& step;
        const row_map& rows;
        const column_map& map;
        entry* out;
        template <class F>
        __device__ void operator()(F f) const {
            walk.general(step, rows, map, out,
                         [&](correlation<T> c, T t, index_t px, index_t py) {
                             using tables = entry_tables_of<T>;
                             const profile<T> p = f(c, tables{walk.x, px, step.positions},
                                                    tables{walk.y, py, step.positions});
                             return values<T>{p.c.u, t * p.slope};
                         });
        }
    };

    // f(correlation, t, where the activation's tables begin) gives both after the activation.
    template <class F>
    __device__ void general(const spatial_step& step, const row_map& rows, const column_map& map,
                            entry* out, F f) const {
        const T scale(step.scale), bias(step.bias), trained(step.trained), snap(step.snap);
        const T add(step.add);
        const index_t sd = step.positions;
        outputs(step, rows, map, out, [&](T k, T t, index_t px, index_t py, T* to) {
            const T ix = x.table(px), iy = y.table(py);
            const T norm = x.table(px + sd) * y.table(py + sd);
            const T covariance = fma(scale, k, bias);
            const T tangent = fma(scale, t, trained * covariance) * (ix * iy);
            const values<T> now =
                f(correlated(covariance, ix, iy, snap), tangent, px + 2 * sd, py + 2 * sd);
            write_entry<T, parts>(now.k, now.t, norm, add, to);
        });
    }
    __device__ void general(const spatial_step& step, const row_map& rows, const column_map& map,
                            entry* out) const {
        constexpr output want = parts == 2 ? output::tangent : output::covariance;
        const op& o = step.act;
        const T* coefficients = job.coefficients + o.coef;
        if (o.code >= 0 &&
            activate<T, want>(o, coefficients, by_function{*this, step, rows, map, out}))
            return;
        general(step, rows, map, out, [&](correlation<T> c, T t, index_t px, index_t py) {
            if (o.code >= 0)
                sum_orders<T, want>(o, coefficients, entry_tables_of<T>{x, px, step.positions},
                                    entry_tables_of<T>{y, py, step.positions}, 1,
                                    {&c.u, &c.delta, &t});
            return values<T>{c.u, t};
        });
    }

    template <bool plain, bool positive>
    __device__ void relu(const spatial_step& step, const row_map& rows, const column_map& map,
                         const entry* plane, int before, int columns, entry* out) const {
        if constexpr (plain && quick)
            if (has_three(rows, map, before))
                return relu_three<positive>(step, rows, map, plane, out);
        gather(rows, map, plane, columns);
        relu_lines<plain, positive>(step, rows, map, out);
    }

    // Steps and maps are held by value: a store may alias them.
    __device__ void layer(const spatial_step step, const row_map rows, const column_map map,
                          const entry* plane, int before, int columns, entry* out) const {
        if (step.kind == kind_linear) {
            gather(rows, map, plane, columns);
            const linear_step<T, parts> f(step);
            outputs(step, rows, map, out,
                    [&](T k, T t, index_t, index_t, T* to) { f(k, t, to); });
        } else if (step.kind == kind_general) {
            gather(rows, map, plane, columns);
            general(step, rows, map, out);
        } else if (is_plain(step, parts)) {
            if (step.positive)
                relu<true, true>(step, rows, map, plane, before, columns, out);
            else
                relu<true, false>(step, rows, map, plane, before, columns, out);
        } else if (step.positive) {
            relu<false, true>(step, rows, map, plane, before, columns, out);
        } else {
            relu<false, false>(step, rows, map, plane, before, columns, out);
        }
        __syncthreads();
    }

    // ---- a stage

    __device__ void input(const row_map& rows, const column_map& columns) const {
        for (int q = 0; q < columns.runs; q++) {
            const column_run run = job.maps.runs[columns.run + q];
            each(rows.outputs, run.count, [&](int r, int k) {
                const row_sum row = job.maps.row_sums[rows.first + r];
                const index_t px = row.x * job.pixel_columns + run.x + k * run.move;
                const index_t py = row.y * job.pixel_columns + run.y + k * run.move;
                const T covariance = multiply_channels<T>(x, px * job.channels, y,
                                                          py * job.channels, job.channels) *
                                     job.input_scale;
                T* to = planes[r * columns.outputs + run.out + k].part;
                to[0] = covariance;
                if constexpr (parts == 2) to[1] = job.input_add * covariance;
            });
        }
    }
    __device__ void copy(const entry* from, entry* to, index_t count) const {
        for (index_t k = threadIdx.x; k < count; k += block_threads) to[k] = from[k];
    }

    struct plane_at {
        entry* plane;
        int rows, columns;
    };
    // The first plane, which is in the first buffer, through all steps.
    __device__ plane_at run_stage(const spatial_stage& stage, int i, int j, int rows,
                                  int columns) const {
        const index_t size = job.plane_size;
        plane_at now{planes, rows, columns}, saved[most_slots];
        int open = 0, other = 1;
        for (int k = 0; k < stage.steps; k++) {
            const spatial_step& step = job.steps[stage.step + k];
            if (step.code == step_layer) {
                const row_map& map = job.maps.rows[step.rows + i];
                const column_map& across = job.maps.columns[step.columns + j];
                entry* to = planes + other * size;
                layer(step, map, across, now.plane, now.rows, now.columns, to);
                now = {to, map.outputs, across.outputs};
                other = 1 - other;
                continue;
            }
            if (step.code == step_save) {
                saved[open] = {planes + (2 + open) * size, now.rows, now.columns};
                copy(now.plane, saved[open++].plane, now.rows * now.columns);
            } else if (step.code == step_swap) {
                plane_at& top = saved[open - 1];
                const int count = now.rows * now.columns, other_count = top.rows * top.columns;
                for (int e = threadIdx.x; e < count || e < other_count; e += block_threads) {
                    const entry old = now.plane[e];
                    now.plane[e] = top.plane[e];
                    top.plane[e] = old;
                }
                const plane_at old = now;
                now = {old.plane, top.rows, top.columns};
                top = {top.plane, old.rows, old.columns};
            } else {
                const entry* branch = saved[--open].plane;
                for (int e = threadIdx.x; e < now.rows * now.columns; e += block_threads)
                    KC_UNROLL for (int p = 0; p < parts; p++)
                        now.plane[e].part[p] = now.plane[e].part[p] + branch[e].part[p];
            }
            __syncthreads();
        }
        return now;
    }

    // ---- its end

    __device__ void add(const entry& sum, entry* place, const plane_store& places) const {
        KC_UNROLL for (int p = 0; p < parts; p++) {
            if (places.lost)
                add_exactly<T>(place->part + p, place[places.lost].part + p, sum.part[p]);
            else
                place->part[p] = place->part[p] + sum.part[p];
        }
    }
    __device__ entry* place_of(entry* next, const plane_store& places, const pool_target& row,
                               const pool_cell& row_cell, const pool_target& column,
                               const pool_cell& cell) const {
        const index_t plane = job.maps.store_at[places.at + row.bundle * places.bundles +
                                                column.bundle];
        const int columns = job.maps.store_columns[places.columns + column.bundle];
        return next + plane + row_cell.out * columns + cell.out;
    }

    // All entries of a plane have one weight and one target.
    __device__ void pool_total(const pool_map& rows, const pool_map& columns, const plane_at& now,
                               entry* next, const plane_store& places) const {
        if (rows.count == 0 || columns.count == 0) return;
        entry sum{};
        for (int e = threadIdx.x; e < now.rows * now.columns; e += block_threads)
            KC_UNROLL for (int p = 0; p < parts; p++)
                sum.part[p] = sum.part[p] + now.plane[e].part[p];
        partial[threadIdx.x] = sum;
        __syncthreads();
        for (int half = block_threads / 2; half > 0; half /= 2) {
            if (threadIdx.x < half)
                KC_UNROLL for (int p = 0; p < parts; p++) partial[threadIdx.x].part[p] =
                    partial[threadIdx.x].part[p] + partial[threadIdx.x + half].part[p];
            __syncthreads();
        }
        if (threadIdx.x > 0) return;
        const pool_target row = job.maps.targets[rows.first];
        const pool_target column = job.maps.targets[columns.first];
        const pool_cell row_cell = job.maps.cells[row.first], cell = job.maps.cells[column.first];
        const T weight = weight_of<T>(job.maps.terms[row_cell.first]) *
                         weight_of<T>(job.maps.terms[cell.first]);
        sum = partial[0];
        KC_UNROLL for (int p = 0; p < parts; p++) sum.part[p] = weight * sum.part[p];
        add(sum, place_of(next, places, row, row_cell, column, cell), places);
    }

    // Rows first, then columns: an entry of the next stage for each thread.
    __device__ void pool_plane(const pool_map& rows, const pool_map& columns, const plane_at& now,
                               entry* next, const plane_store& places) const {
        const pool_term* terms = job.maps.terms;
        for (int r = 0; r < rows.count; r++)
            for (int c = 0; c < columns.count; c++) {
                const pool_target row = job.maps.targets[rows.first + r];
                const pool_target column = job.maps.targets[columns.first + c];
                each(row.count, column.count, [&](int i, int j) {
                    const pool_cell down = job.maps.cells[row.first + i];
                    const pool_cell across = job.maps.cells[column.first + j];
                    entry sum{};
                    for (int l = 0; l < across.count; l++) {
                        const pool_term& outer = terms[across.first + l];
                        entry line{};
                        for (int k = 0; k < down.count; k++) {
                            const pool_term& inner = terms[down.first + k];
                            const entry e = now.plane[inner.from * now.columns + outer.from];
                            KC_UNROLL for (int p = 0; p < parts; p++) line.part[p] =
                                fma(weight_of<T>(inner), e.part[p], line.part[p]);
                        }
                        KC_UNROLL for (int p = 0; p < parts; p++)
                            sum.part[p] = fma(weight_of<T>(outer), line.part[p], sum.part[p]);
                    }
                    add(sum, place_of(next, places, row, down, column, across), places);
                });
            }
    }

    // Where a pass of a pooling with overlapping windows finds line k of an item, or puts it.
    struct form {
        entry* base;
        index_t a, b, c, next, next_b;
        template <class Place>
        __device__ entry& at(const Place& p, int k) const {
            return base[p.a * a + p.b * b + p.c * c + k * (next + p.b * next_b)];
        }
    };
    // A sum over neighbours of a track for each thread.
    __device__ void pool_pass_of(const pool_pass& pass, int count, const form& from,
                                 const form& to) const {
        const pool_term* weights = job.maps.terms + pass.weight;
        for (int q = 0; q < pass.tracks; q++) {
            const pool_track track = job.maps.tracks[pass.track + q];
            const pool_item* items = job.maps.items + track.item;
            each(track.sums, count, [&](int s, int line) {
                const pool_sum what = job.maps.sums[track.sum + s];
                int first = what.begin, last = what.end;
                if (pass.box && first < 0)
                    first = (last + track.phase) / pass.box * pass.box - track.phase;
                if (pass.box && last >= track.items)
                    last = ((first + track.phase) / pass.box + 1) * pass.box - track.phase - 1;
                first = first < 0 ? 0 : first;
                last = last < track.items ? last : track.items - 1;
                entry sum{};
                for (int k = first; k <= last; k++) {
                    const T weight =
                        weight_of<T>(pass.box ? *weights : job.maps.terms[what.tap + k - first]);
                    const entry e = from.at(items[k], line);
                    KC_UNROLL for (int p = 0; p < parts; p++)
                        sum.part[p] = fma(weight, e.part[p], sum.part[p]);
                }
                to.at(what, line) = sum;
            });
        }
        __syncthreads();
    }
    __device__ void pool_axis(const pool_pass* passes, int count, const form& from,
                              const form& to) const {
        const form middle{between, count, 0, 0, 1, 0};
        pool_pass_of(passes[0], count, from, middle);
        pool_pass_of(passes[1], count, middle, to);
    }

    // ---- all stages

    __device__ const entry* run() const {
        for (int s = 0; s + 1 < job.stage_count; s++) {
            const spatial_stage &stage = job.stages[s], &next = job.stages[s + 1];
            entry *to = stores + next.store, *middle = stores + stage.middle;
            index_t all = 0;  // columns of the next stage
            for (int j = 0; stage.overlaps && j < next.places.bundles; j++)
                all += job.maps.store_columns[next.places.columns + j];
            for (index_t e = threadIdx.x;
                 !stage.overlaps && e < next.store_size + next.places.lost; e += block_threads)
                to[e] = entry{};
            __syncthreads();
            for (int i = 0; i < stage.row_bundles; i++) {
                const row_map& rows = job.maps.rows[stage.rows + i];
                entry *goal = stage.slab ? slab : middle, *const first = goal;
                int slab_rows = 0;
                for (int j = 0; j < stage.column_bundles; j++) {
                    const column_map& columns = job.maps.columns[stage.columns + j];
                    if (s == 0)
                        input(rows, columns);
                    else
                        copy(stores + stage.store +
                                 job.maps.store_at[stage.places.at + i * stage.places.bundles + j],
                             planes, rows.outputs * columns.outputs);
                    partial[threadIdx.x] = entry{};
                    __syncthreads();
                    const plane_at now = run_stage(stage, i, j, rows.outputs, columns.outputs);
                    if (stage.overlaps) {
                        copy(now.plane, goal, now.rows * now.columns);
                        goal += now.rows * now.columns;
                        slab_rows = now.rows;
                    } else {
                        const pool_map& row_pool = job.maps.pools[stage.row_pools + i];
                        const pool_map& column_pool = job.maps.pools[stage.column_pools + j];
                        if (stage.uniform)
                            pool_total(row_pool, column_pool, now, to, next.places);
                        else
                            pool_plane(row_pool, column_pool, now, to, next.places);
                    }
                    __syncthreads();
                }
                if (stage.overlaps && stage.column_pools >= 0)
                    pool_axis(job.maps.passes + stage.column_pools, slab_rows,
                              form{first, slab_rows, 0, 1, 0, 1},
                              form{middle, slab_rows, 0, 1, 0, 1});
                middle += slab_rows * all;
            }
            index_t before = 0;
            for (int j = 0; stage.overlaps && stage.row_pools >= 0 && j < next.places.bundles; j++) {
                const int columns = job.maps.store_columns[next.places.columns + j];
                pool_axis(job.maps.passes + stage.row_pools, columns,
                          form{stores + stage.middle, all, before, columns, 1, 0},
                          form{to, all, before, columns, 1, 0});
                before += columns;
            }
            for (index_t e = threadIdx.x; next.places.lost && e < next.store_size;
                 e += block_threads)
                KC_UNROLL for (int p = 0; p < parts; p++)
                    to[e].part[p] = to[e].part[p] + to[e + next.places.lost].part[p];
            __syncthreads();
        }
        return stores + job.stages[job.stage_count - 1].store;
    }
};

// What became of image i of x and image j of y.
template <class T, int parts>
__device__ void finish_pair(const spatial_pairs<T>& pairs, index_t i, index_t j,
                            const cell<T, parts>* result) {
    if (pairs.selves) {
        T* to = pairs.selves + i * pairs.entries * parts;
        for (index_t k = threadIdx.x; k < pairs.entries * parts; k += block_threads)
            to[k] = result[k / parts].part[k % parts];
        return;
    }
    if (threadIdx.x > 0) return;
    const destination<T>& to = pairs.to;
    const index_t row = pairs.i0 + i, column = pairs.j0 + j;
    KC_UNROLL for (int p = 0; p < parts; p++) {
        T* out = p ? to.t : to.k;
        if (!out) continue;
        const T value = result[0].part[p] * to.factor;
        put(to.combine, out + row * to.stride + column, value);
        if (to.symmetric && row != column) put(to.combine, out + column * to.stride + row, value);
    }
}

// All pairs, block by block. `fast`: where the planes of a block are, and then its lines.
template <class T, int parts, bool quick>
__device__ void run_pairs(const spatial_job<T>& job, const spatial_pairs<T>& pairs,
                          cell<T, parts>* scratch, cell<T, parts>* fast) {
    __shared__ cell<T, parts> partial[block_threads];
    const index_t m = pairs.selves ? 1 : pairs.m;
    for (index_t q = blockIdx.x; q < pairs.n * m; q += gridDim.x) {
        const index_t i = q / m, j = pairs.selves ? i : q % m;
        if (pairs.to.symmetric && pairs.j0 + j < pairs.i0 + i) continue;
        const one_image<T> x{pairs.x_pixels + i * pairs.size, pairs.x_tables + i * job.table_size};
        const one_image<T> y{pairs.y_pixels + j * pairs.size, pairs.y_tables + j * job.table_size};
        cell<T, parts>*slab = scratch + job.store_size, *between = slab + job.slab_size;
        const pair_walk<T, parts, quick> walk{job,     x,
                                       y,       fast,
                                       fast + (2 + job.slots) * job.plane_size,
                                       scratch, slab,
                                       between, partial};
        finish_pair<T, parts>(pairs, i, j, walk.run());
        __syncthreads();
    }
}
template <class T, int parts>
__device__ cell<T, parts>* scratch_of(const spatial_pairs<T>& pairs) {
    return reinterpret_cast<cell<T, parts>*>(pairs.scratch) + blockIdx.x * pairs.scratch_cells;
}
// Planes in shared memory.
template <class T, int parts>
__device__ void run_shared(const spatial_job<T>& job, const spatial_pairs<T>& pairs) {
    KC_SHARED_BYTES(bytes);
    run_pairs<T, parts, true>(job, pairs, scratch_of<T, parts>(pairs),
                        reinterpret_cast<cell<T, parts>*>(bytes));
}
// Planes in scratch, behind all else.
template <class T, int parts>
__device__ void run_large(const spatial_job<T>& job, const spatial_pairs<T>& pairs) {
    cell<T, parts>* scratch = scratch_of<T, parts>(pairs);
    run_pairs<T, parts, false>(job, pairs, scratch,
                        scratch + job.store_size + job.slab_size + pairs.between_cells);
}

// The variance at position k of all images.
template <class T>
__device__ void pixel_of(const T* x, index_t count, index_t channels, double scale, double* out) {
    const index_t k = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (k < count) out[k] = pixel_variance(x + k * channels, channels, scale);
}

}  // namespace kc

// K alone, or K and T; in shared memory, or large planes in scratch. `blocks`: that are to fit on a
// multiprocessor, which leaves a thread as many registers as it needs.
#define KC_WALK(name, T, parts, run, blocks)                                                     \
    extern "C" __global__ void __launch_bounds__(256, blocks)                                    \
        name(kc::spatial_job<T> job, kc::spatial_pairs<T> pairs) {                               \
        if constexpr (KC_WANTS >> (parts - 1) & 1) kc::run<T, parts>(job, pairs);                \
    }
#define KC_SPATIAL(real, T, blocks)                                                              \
    KC_WALK(spatial_covariance_##real, T, 1, run_shared, blocks)                                 \
    KC_WALK(spatial_tangent_##real, T, 2, run_shared, blocks)                                    \
    KC_WALK(spatial_covariance_large_##real, T, 1, run_large, 1)                                 \
    KC_WALK(spatial_tangent_large_##real, T, 2, run_large, 1)                                    \
    extern "C" __global__ void spatial_pixels_##real(                                            \
        const T* x, kc::index_t count, kc::index_t channels, double scale, double* out) {        \
        kc::pixel_of(x, count, channels, scale, out);                                            \
    }
#if KC_REALS & 1
KC_SPATIAL(f32, float, 2)
#endif
#if KC_REALS & 2
KC_SPATIAL(f64, double, 1)
#endif
