// The walk of spatial.h through a network: one image against `width` partners, one in each lane.
//
// A plane runs through the steps of a stage in two buffers. The tables of x are those of one image,
// the tables of y are in lanes.
#pragma once

#include "../spatial.h"
#include "plane.h"
#include "watch.h"

namespace kc {

// The image whose numbers are the same in all lanes, and images that differ from lane to lane.
template <class V>
struct one_image {
    const real_of<V>*pixels, *tables;
    KC_HD V pixel(index_t k) const { return V(pixels[k]); }
    KC_HD V table(index_t k) const { return V(tables[k]); }
    KC_HD one_image moved(index_t k) const { return {pixels, tables + k}; }
};
template <class V>
struct lane_images {
    const real_of<V>*pixels, *tables;
    KC_HD V pixel(index_t k) const { return load<V>(pixels + k * value<V>::width); }
    KC_HD V table(index_t k) const { return load<V>(tables + k * value<V>::width); }
    KC_HD lane_images moved(index_t k) const { return {pixels, tables + k * value<V>::width}; }
};

// Tables of a line of entries, as walk (program.h) wants them: number k at column at/width.
template <class V, class Image, bool second>
struct tables_of {
    const Image& image;
    index_t at, positions, row;
    const column_place* places;
    KC_HD V operator()(int k, index_t lane) const {
        const column_place p = places[lane / value<V>::width];
        return image.table(at + k * positions + row + (second ? p.y : p.x));
    }
};

// Tables at one position: number k.
template <class V, class Image>
struct position_tables {
    const Image& image;
    index_t at, positions;
    KC_HD V operator()(int k) const { return image.table(at + k * positions); }
};

template <class V, int parts>
KC_HD index_t spatial_scratch(const spatial_job<real_of<V>>& job) {
    const index_t entries = (2 + job.slots) * job.plane_size + 5 * job.line_size + job.store_size;
    return entries * parts * value<V>::width;
}

// The first plane: products of pixels. `fixed`: the number of channels where it is known.
template <class V, int parts, int fixed, class Image>
KC_LOOP void multiply_pixels(const spatial_job<real_of<V>>& job, Image x, lane_images<V> y,
                             const row_map& rows, const column_map& columns, real_of<V>* to) {
    constexpr index_t width = value<V>::width;
    const V scale(job.input_scale), add(job.input_add);
    const index_t channels = fixed ? fixed : job.channels, grid = job.pixel_columns;
    for (int i = 0; i < rows.outputs; i++) {
        const row_sum row = job.maps.row_sums[rows.first + i];
        for (int r = 0; r < columns.runs; r++) {
            const column_run run = job.maps.runs[columns.run + r];
            index_t px = (row.x * grid + run.x) * channels, py = (row.y * grid + run.y) * channels;
            for (int k = 0; k < run.count; k++) {
                const V covariance = multiply_channels<V>(x, px, y, py, channels) * scale;
                store<V>(to, covariance);
                if constexpr (parts == 2) store<V>(to + width, add * covariance);
                to += parts * width;
                px += run.move * channels;
                py += run.move * channels;
            }
        }
    }
}
template <class V, int parts, class Image>
KC_HD void input_plane(const spatial_job<real_of<V>>& job, const Image& x, const lane_images<V>& y,
                       const row_map& rows, const column_map& columns, real_of<V>* plane) {
    if (job.channels == 3)
        multiply_pixels<V, parts, 3>(job, x, y, rows, columns, plane);
    else if (job.channels == 1)
        multiply_pixels<V, parts, 1>(job, x, y, rows, columns, plane);
    else
        multiply_pixels<V, parts, 0>(job, x, y, rows, columns, plane);
}

// The commonest step, with nothing else in the loop: ReLU of sums over at most three rows and over
// three columns; beyond both ends zeros, or the other end.
template <class V, int parts, bool level, class Image>
KC_LOOP void relu_three(const plane_maps& maps, const spatial_step& step, Image x, lane_images<V> y,
                        const row_map& rows, const column_map& map, const real_of<V>* plane,
                        index_t plane_columns, const real_of<V>* zeros, real_of<V>* out) {
    using T = real_of<V>;
    constexpr index_t width = value<V>::width, entry = parts * width, second = (parts - 1) * width;
    const relu_step<V, parts, true, level> f(step);
    const bool circular = maps.copies[map.copy].from >= 0;
    const index_t grid = step.grid_columns, sd = step.positions, last = map.outputs - 1;
    const index_t stride = plane_columns * entry;
    const row_sum* row = maps.row_sums + rows.first;
    for (const row_sum* end = row + rows.outputs; row < end; row++) {
        const int* from = maps.row_sources + row->first;
        const T* a = row->count > 0 ? plane + from[0] * stride : zeros;
        const T* b = row->count > 1 ? plane + from[1] * stride : zeros;
        const T* c = row->count > 2 ? plane + from[2] * stride : zeros;
        const auto sum = [=](index_t at) {
            return load<V>(a + at) + load<V>(b + at) + load<V>(c + at);
        };
        V k0(T(0)), t0(T(0)), k_end(T(0)), t_end(T(0)), k1 = sum(0), t1 = sum(second);
        if (circular) {
            k0 = sum(last * entry);
            t0 = sum(last * entry + second);
            k_end = k1;
            t_end = t1;
        }
        for (int r = 0; r < map.runs; r++) {
            const column_run run = maps.runs[map.run + r];
            const index_t first = run.out, beyond = first + run.count;
            const Image u = x.moved(step.at + row->x * grid + run.x - first);
            const lane_images<V> v = y.moved(step.at + row->y * grid + run.y - first);
            for (index_t j = first; j < (beyond > last ? last : beyond); j++) {
                const V k2 = sum((j + 1) * entry), t2 = sum((j + 1) * entry + second);
                f(k0 + k1 + k2, t0 + t1 + t2, u.table(j) * v.table(j),
                  u.table(j + sd) * v.table(j + sd), out + j * entry);
                k0 = k1, k1 = k2;
                t0 = t1, t1 = t2;
            }
            if (beyond > last)
                f(k0 + k1 + k_end, t0 + t1 + t_end, u.table(last) * v.table(last),
                  u.table(last + sd) * v.table(last + sd), out + last * entry);
        }
        out += (last + 1) * entry;
    }
}

// One output row after the patch sums of its rows: the three kinds of steps.
template <class V, int parts, class Image>
struct row_of_step {
    const spatial_job<real_of<V>>& job;
    const spatial_step& step;
    const column_map& map;
    const Image& x;
    const lane_images<V>& y;
    index_t row_x, row_y;  // first positions of the output row in both images
    const real_of<V>* line;
    real_of<V>* out;
    using T = real_of<V>;
    static constexpr index_t width = value<V>::width, entry = parts * width;

    KC_HD void linear() const {
        const linear_step<V, parts> f(step);
        for (int r = 0; r < map.runs; r++) {
            const column_run run = job.maps.runs[map.run + r];
            for (int k = 0; k < run.count; k++) {
                const T* from = line + (run.slot + index_t(k) * run.step) * entry;
                f(sum_slots<V, parts>(from, map.taps),
                  sum_slots<V, parts>(from + (parts - 1) * width, map.taps),
                  out + (run.out + k) * entry);
            }
        }
    }

    template <bool simple>
    KC_HD void relu_row() const {
        const relu_step<V, parts, simple, false> f(step);
        const int taps = map.taps;
        const index_t sd = step.positions;
        for (int r = 0; r < map.runs; r++) {
            const column_run run = job.maps.runs[map.run + r];
            const T* from = line + run.slot * entry;
            T* to = out + run.out * entry;
            index_t px = step.at + row_x + run.x, py = step.at + row_y + run.y;
            for (int k = 0; k < run.count; k++) {
                f(sum_slots<V, parts>(from, taps),
                  sum_slots<V, parts>(from + (parts - 1) * width, taps), x.table(px) * y.table(py),
                  x.table(px + sd) * y.table(py + sd), to);
                from += run.step * entry;
                to += entry;
                px += run.move;
                py += run.move;
            }
        }
    }

    // An activation in one pass: sums, correlation, the function (program.h), and back.
    template <class F>
    KC_HD void operator()(F f) const {
        using Y = lane_images<V>;
        const V scale(T(step.scale)), bias(T(step.bias)), trained(T(step.trained));
        const V snap(T(step.snap)), add(T(step.add));
        const index_t sd = step.positions;
        for (int r = 0; r < map.runs; r++) {
            const column_run run = job.maps.runs[map.run + r];
            const T* from = line + run.slot * entry;
            T* to = out + run.out * entry;
            index_t px = step.at + row_x + run.x, py = step.at + row_y + run.y;
            for (int k = 0; k < run.count; k++) {
                const V ix = x.table(px), iy = y.table(py);
                const V norm = x.table(px + sd) * y.table(py + sd);
                const V covariance = fma(scale, sum_slots<V, parts>(from, map.taps), bias);
                const profile<V> p = f(correlated(covariance, ix, iy, snap),
                                       position_tables<V, Image>{x, px + 2 * sd, sd},
                                       position_tables<V, Y>{y, py + 2 * sd, sd});
                V t = norm;
                if constexpr (parts == 2) {
                    const V sum = sum_slots<V, parts>(from + width, map.taps);
                    t = fma(scale, sum, trained * covariance) * (ix * iy) * p.slope;
                }
                write_entry<V, parts>(p.c.u, t, norm, add, to);
                from += run.step * entry;
                to += entry;
                px += run.move;
                py += run.move;
            }
        }
    }

    KC_HD void general(T* strips) const {
        constexpr output want = parts == 2 ? output::tangent : output::covariance;
        if (step.act.code >= 0 &&
            activate<V, want>(step.act, job.coefficients + step.act.coef, *this))
            return;
        linear();
        const index_t length = map.outputs * width, sd = step.positions;
        const strip<T> s{strips, strips + length, strips + 2 * length};
        const column_place* places = job.maps.places + map.place;
        const V snap(T(step.snap)), add(T(step.add));
        for (int j = 0; j < map.outputs; j++) {
            const T* from = out + j * entry;
            const V ix = x.table(step.at + row_x + places[j].x),
                    iy = y.table(step.at + row_y + places[j].y);
            const correlation<V> c = correlated(load<V>(from), ix, iy, snap);
            store<V>(s.u + j * width, c.u);
            store<V>(s.delta + j * width, c.delta);
            if constexpr (parts == 2) store<V>(s.t + j * width, load<V>(from + width) * (ix * iy));
        }
        if (step.act.code >= 0) {
            const index_t at = step.at + 2 * step.positions;
            walk<V, want>({&step.act, 1, job.coefficients},
                          tables_of<V, Image, false>{x, at, step.positions, row_x, places},
                          tables_of<V, lane_images<V>, true>{y, at, step.positions, row_y, places},
                          length, s, s.u);
        }
        for (int j = 0; j < map.outputs; j++) {
            const V norm = x.table(step.at + sd + row_x + places[j].x) *
                           y.table(step.at + sd + row_y + places[j].y);
            const V t = parts == 2 ? load<V>(s.t + j * width) : norm;
            write_entry<V, parts>(load<V>(s.u + j * width), t, norm, add, out + j * entry);
        }
    }
};

// Whether all outputs are sums of three neighbouring columns, with zeros or the other end beyond.
KC_HD bool three_taps(const plane_maps& maps, const row_map& rows, const column_map& map) {
    if (rows.most > 3 || map.outputs == 0 || map.taps != 3 || map.loads != 1 || map.copies != 2)
        return false;
    const column_load l = maps.loads[map.load];
    const column_copy* c = maps.copies + map.copy;
    const bool zeros = c[0].from < 0 && c[1].from < 0;
    const bool circular = c[0].from == map.outputs && c[1].from == 1;  // slots of the other ends
    if (l.from != 0 || l.slot != 1 || l.count != map.outputs || !(zeros || circular)) return false;
    for (int k = 0; k < map.runs; k++) {
        const column_run r = maps.runs[map.run + k];
        if (r.slot != r.out || r.step != 1 || r.move != 1) return false;
    }
    return true;
}

template <class V, int parts, class Image>
KC_HD void run_step(const spatial_job<real_of<V>>& job, const spatial_step& step, const Image& x,
                    const lane_images<V>& y, int row_bundle, int column_bundle,
                    const real_of<V>* plane, index_t plane_columns, real_of<V>* out,
                    real_of<V>* line, real_of<V>* strips, const real_of<V>* zeros) {
    constexpr index_t entry = parts * value<V>::width;
    const row_map rows = job.maps.rows[step.rows + row_bundle];
    const column_map map = job.maps.columns[step.columns + column_bundle];
    const bool simple = step.bias == 0 && (parts == 1 || step.trained == 0);
    if (simple && step.kind == kind_relu && three_taps(job.maps, rows, map)) {
        if (parts == 1 || step.slope == 1)
            relu_three<V, parts, true>(job.maps, step, x, y, rows, map, plane, plane_columns, zeros,
                                       out);
        else
            relu_three<V, parts, false>(job.maps, step, x, y, rows, map, plane, plane_columns,
                                        zeros, out);
        return;
    }
    const index_t grid = step.grid_columns;
    for (int i = 0; i < rows.outputs; i++, out += map.outputs * entry) {
        const row_sum row = job.maps.row_sums[rows.first + i];
        const row_of_step<V, parts, Image> r{job,          step,         map,  x,  y,
                                             row.x * grid, row.y * grid, line, out};
        sum_rows<V, parts>(job.maps, map, row, plane, plane_columns, line);
        if (step.kind == kind_relu)
            simple ? r.template relu_row<true>() : r.template relu_row<false>();
        else if (step.kind == kind_linear)
            r.linear();
        else
            r.general(strips);
    }
}

template <class V>
KC_HD void copy_numbers(const real_of<V>* from, real_of<V>* to, index_t length) {
    for (index_t at = 0; at < length; at += value<V>::width) store<V>(to + at, load<V>(from + at));
}

// A plane through the steps of a stage; returns where it ended up, and its columns.
template <class V>
struct plane_at {
    real_of<V>* plane;
    index_t rows, columns;
};

template <class V, int parts, class Image>
KC_HD plane_at<V> run_stage(const spatial_job<real_of<V>>& job, const spatial_stage& stage,
                            const Image& x, const lane_images<V>& y, int i, int j, plane_at<V> now,
                            real_of<V>* buffers, real_of<V>* line) {
    using T = real_of<V>;
    constexpr index_t entry = parts * value<V>::width;
    const index_t size = job.plane_size * entry;
    T* other = now.plane == buffers ? buffers + size : buffers;
    T* spare = other == buffers ? buffers + size : buffers;
    T* strips = line + job.line_size * entry;
    const T* zeros = strips + 3 * job.line_size * entry;
    plane_at<V> saved[most_slots];
    int open = 0;
    for (int k = 0; k < stage.steps; k++) {
        const spatial_step& step = job.steps[stage.step + k];
        if (step.code == step_layer) {
            run_step<V, parts>(job, step, x, y, i, j, now.plane, now.columns, other, line, strips,
                               zeros);
            now = {other, job.maps.rows[step.rows + i].outputs,
                   job.maps.columns[step.columns + j].outputs};
            other = spare;
            spare = now.plane;
        } else if (step.code == step_save) {
            T* keep = buffers + (2 + open) * size;
            copy_numbers<V>(now.plane, keep, now.rows * now.columns * entry);
            saved[open++] = {keep, now.rows, now.columns};
        } else if (step.code == step_swap) {
            plane_at<V>& top = saved[open - 1];
            const index_t most = now.rows * now.columns > top.rows * top.columns
                                     ? now.rows * now.columns
                                     : top.rows * top.columns;
            exchange<V>(now.plane, top.plane, most * entry);
            const plane_at<V> old = now;
            now = {old.plane, top.rows, top.columns};
            top = {top.plane, old.rows, old.columns};
        } else {
            const T* branch = saved[--open].plane;
            for (index_t at = 0; at < now.rows * now.columns * entry; at += value<V>::width)
                store<V>(now.plane + at, load<V>(now.plane + at) + load<V>(branch + at));
        }
    }
    return now;
}

// Image x against the images in the lanes of y: the entries of the last stage, at the returned place,
// or null where the watch (watch.h) stopped it between two planes.
template <class V, int parts, class Image, class Watch>
KC_HD const real_of<V>* run_pair(const spatial_job<real_of<V>>& job, const Image& x,
                                 const lane_images<V>& y, real_of<V>* scratch, Watch& watch) {
    using T = real_of<V>;
    constexpr index_t width = value<V>::width, entry = parts * width;
    T* stores = scratch;
    T* buffers = stores + job.store_size * entry;
    T* line = buffers + (2 + job.slots) * job.plane_size * entry;
    for (index_t at = 0; at < job.store_size * entry; at += width) store<V>(stores + at, V(T(0)));
    for (index_t at = 0; at < job.line_size * entry; at += width)
        store<V>(line + 4 * job.line_size * entry + at, V(T(0)));
    for (int s = 0; s + 1 < job.stage_count; s++) {
        const spatial_stage &stage = job.stages[s], &next = job.stages[s + 1];
        for (int i = 0; i < stage.row_bundles; i++) {
            const row_map rows = job.maps.rows[stage.rows + i];
            for (int j = 0; j < stage.column_bundles; j++) {
                const column_map columns = job.maps.columns[stage.columns + j];
                if (!watch.after((1 + stage.steps) * index_t(rows.outputs) * columns.outputs))
                    return nullptr;
                plane_at<V> now{buffers, rows.outputs, columns.outputs};
                if (s == 0)
                    input_plane<V, parts>(job, x, y, rows, columns, now.plane);
                else
                    now.plane =
                        stores +
                        (stage.store +
                         job.maps.store_at[stage.places.at + i * stage.places.bundles + j]) *
                            entry;
                now = run_stage<V, parts>(job, stage, x, y, i, j, now, buffers, line);
                pool_plane<V, parts>(job.maps, job.maps.pools[stage.row_pools + i],
                                     job.maps.pools[stage.column_pools + j], now.plane, now.columns,
                                     line, stores + next.store * entry, next.places);
            }
        }
        if (next.places.lost)
            for (index_t at = 0; at < next.store_size * entry; at += width) {
                T* place = stores + next.store * entry + at;
                store<V>(place, load<V>(place) + load<V>(place + next.places.lost * entry));
            }
    }
    return stores + job.stages[job.stage_count - 1].store * entry;
}

}  // namespace kc
