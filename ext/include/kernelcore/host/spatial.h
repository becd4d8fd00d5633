// The walk of spatial.h through a network: one image against `width` partners, one in each lane.
//
// A plane runs through the steps of a stage in two buffers. The first side is the one image, and the
// second is in lanes. A caller who wants it the other way round exchanges x and y in the maps: the
// arithmetic is symmetric, so that values stay the same. An image with itself has both in lanes.
#pragma once

#include "../spatial.h"
#include "plane.h"
#include "watch.h"

namespace kc {

// Images that differ from lane to lane, beside one that is the same in all (one_image).
template <class V>
struct lane_images {
    const real_of<V>*pixels, *tables;
    KC_HD V pixel(index_t k) const { return load<V>(pixels + k * value<V>::width); }
    KC_HD V table(index_t k) const { return load<V>(tables + k * value<V>::width); }
    KC_HD lane_images moved(index_t k) const { return {pixels, tables + k * value<V>::width}; }
};

// The first side, told apart at run time: for steps that take long anyway, and longer to compile.
template <class V>
struct any_image {
    const real_of<V>* tables;
    bool lanes;
    KC_HD any_image(const one_image<V>& x) : tables(x.tables), lanes(false) {}
    KC_HD any_image(const lane_images<V>& x) : tables(x.tables), lanes(true) {}
    KC_HD V table(index_t k) const {
        return lanes ? load<V>(tables + k * value<V>::width) : V(tables[k]);
    }
};

// Tables of a line of entries, as walk (program.h) wants them: number k at column at/width.
template <class Image, bool second>
struct tables_of {
    Image image;
    index_t at, positions, row;
    const column_place* places;
    KC_HD auto operator()(int k, index_t lane) const {
        using V = decltype(image.table(0));
        const column_place p = places[lane / value<V>::width];
        return image.table(at + k * positions + row + (second ? p.y : p.x));
    }
};

// The same where the columns are neighbours.
template <class Image>
struct neighbours_of {
    Image image;
    index_t positions;
    KC_HD auto operator()(int k, index_t lane) const {
        using V = decltype(image.table(0));
        return image.table(k * positions + lane / value<V>::width);
    }
};

// Tables at one position: number k.
template <class Image>
struct position_tables {
    const Image& image;
    index_t at, positions;
    KC_HD auto operator()(int k) const { return image.table(at + k * positions); }
};

// The numbers that take as much memory as the spots of a pooling.
template <class T>
KC_HD index_t spot_numbers(const spatial_job<T>& job) {
    return 4 * job.track_size * index_t(sizeof(pool_spot<T>) / sizeof(T));
}

template <class V, int parts>
KC_HD index_t spatial_scratch(const spatial_job<real_of<V>>& job) {
    const index_t entries = (2 + job.slots) * job.plane_size + 5 * job.line_size + job.store_size +
                            job.slab_size + (job.boxed ? 2 * (job.plane_size + job.line_size) : 0);
    return spot_numbers(job) + (job.pass_size + entries * parts) * value<V>::width;
}

// Rows begin .. end of the first plane: products of pixels. `fixed`: the number of channels where it
// is known.
template <class V, int parts, int fixed, class X, class Y>
KC_LOOP void multiply_pixels(const spatial_job<real_of<V>>& job, X x, Y y, const row_map& rows,
                             const column_map& columns, int begin, int end, real_of<V>* to) {
    constexpr index_t width = value<V>::width;
    const V scale(job.input_scale), add(job.input_add);
    const index_t channels = fixed ? fixed : job.channels, grid = job.pixel_columns;
    to += index_t(begin) * columns.outputs * parts * width;
    for (int i = begin; i < end; i++) {
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
template <class V, int parts, class X, class Y>
KC_HD void input_plane(const spatial_job<real_of<V>>& job, const X& x, const Y& y,
                       const row_map& rows, const column_map& columns, int begin, int end,
                       real_of<V>* plane) {
    if (job.channels == 3)
        multiply_pixels<V, parts, 3>(job, x, y, rows, columns, begin, end, plane);
    else if (job.channels == 1)
        multiply_pixels<V, parts, 1>(job, x, y, rows, columns, begin, end, plane);
    else
        multiply_pixels<V, parts, 0>(job, x, y, rows, columns, begin, end, plane);
}

// A step on one plane: from where, to where. `from` values per entry are read (1: K alone, and T is
// `start` K), `parts` are written.
template <class V>
struct plane_step {
    const plane_maps& maps;
    const spatial_step& step;
    const row_map& rows;
    const column_map& map;
    const real_of<V>* plane;
    index_t columns;  // of the plane
    const real_of<V>* zeros;
    real_of<V> start;
    int begin, end;  // rows to make
    real_of<V>* out;
};

// Sums over at most three rows and over three columns, the commonest windows; beyond both ends there
// are zeros, or the other end. What becomes of a sum is the business of `cell`, at column j of its row:
// cell(j, K, T, x, y), with tables of both sides that begin at the row. A store may alias whatever lies
// in memory, so that all which a row needs is held by value.
template <class V, int parts, int from, class Cell, class X, class Y>
KC_HD void sum_three(const plane_step<V>& p, X x, Y y, Cell& cell) {
    using T = real_of<V>;
    constexpr index_t width = value<V>::width, entry = from * width, second = (from - 1) * width;
    const bool circular = p.map.three == 2;
    const index_t grid = p.step.grid_columns, last = p.map.outputs - 1;
    const index_t stride = p.columns * entry, at = p.step.at, runs = p.map.runs;
    const int* sources = p.maps.row_sources;
    const column_run* first_run = p.maps.runs + p.map.run;
    const V start(p.start);
    const T *plane = p.plane, *zeros = p.zeros;
    const row_sum* row = p.maps.row_sums + p.rows.first + p.begin;
    for (const row_sum* end = row + (p.end - p.begin); row < end; row++) {
        const int* source = sources + row->first;
        const T* a = row->count > 0 ? plane + source[0] * stride : zeros;
        const T* b = row->count > 1 ? plane + source[1] * stride : zeros;
        const T* c = row->count > 2 ? plane + source[2] * stride : zeros;
        const auto sum = [=](index_t k) {
            return load<V>(a + k) + load<V>(b + k) + load<V>(c + k);
        };
        const index_t row_x = at + row->x * grid, row_y = at + row->y * grid;
        V k1 = sum(0), t1 = sum(second), k_end(T(0)), t_end(T(0)), k01 = k1, t01 = t1;
        if (circular) {
            k01 = sum(last * entry) + k1;
            t01 = sum(last * entry + second) + t1;
            k_end = k1;
            t_end = t1;
        }
        for (index_t r = 0; r < runs; r++) {
            const column_run run = first_run[r];
            const index_t first = run.out, beyond = first + run.count;
            const X u = x.moved(row_x + run.x - first);
            const Y v = y.moved(row_y + run.y - first);
            const auto place = [&](index_t j, V k, V t) {
                if constexpr (from < parts) t = start * k;
                cell(j, k, t, u, v);
            };
            for (index_t j = first; j < (beyond > last ? last : beyond); j++) {
                const V k2 = sum((j + 1) * entry), t2 = sum((j + 1) * entry + second);
                place(j, k01 + k2, t01 + t2);
                k01 = k1 + k2, k1 = k2;
                t01 = t1 + t2, t1 = t2;
            }
            if (beyond > last) place(last, k01 + k_end, t01 + t_end);
        }
        cell.end_row();
    }
}

// Where the results of a step go: to a plane, or added up, rows first.
template <class V, int parts>
struct to_plane {
    static constexpr index_t width = value<V>::width;
    real_of<V>* out;
    index_t row;
    KC_HD explicit to_plane(const plane_step<V>& p)
        : out(p.out + p.begin * p.map.outputs * parts * width),
          row(p.map.outputs * parts * width) {}
    KC_HD void operator()(index_t j, V k, V t) {
        store<V>(out + j * parts * width, k);
        if constexpr (parts == 2) store<V>(out + (j * parts + 1) * width, t);
    }
    KC_HD void end_row() { out += row; }
};
template <class V, int parts>
struct to_total {
    static constexpr index_t width = value<V>::width;
    V total_k, total_t, row_k, row_t;
    KC_HD explicit to_total(const plane_step<V>& p) : total_k(0), total_t(0), row_k(0), row_t(0) {
        if (p.begin == 0) return;
        total_k = load<V>(p.out);
        if constexpr (parts == 2) total_t = load<V>(p.out + width);
    }
    KC_HD void end_row() {
        total_k = total_k + row_k, row_k = V(0);
        if constexpr (parts == 2) total_t = total_t + row_t, row_t = V(0);
    }
    KC_HD void finish(real_of<V>* out) const {
        store<V>(out, total_k);
        if constexpr (parts == 2) store<V>(out + width, total_t);
    }
};

// What relu_three does: plain steps (is_plain), any others, or the sums of K and of kappa0 T.
enum class three { plain, general, total };

template <class V, int parts, three mode, bool positive>
struct relu_cell {
    static constexpr bool total = mode == three::total;
    const relu_step<V, parts, mode != three::general, positive> f;
    const index_t sd;
    choice<total, to_total<V, parts>, to_plane<V, parts>> to;
    template <class X, class Y>
    KC_HD void operator()(index_t j, V k, V t, const X& x, const Y& y) {
        const V inverse = x.table(j) * y.table(j);
        const V norm = x.table(j + sd) * y.table(j + sd);
        if constexpr (mode == three::general) {
            const values<V> now = f(k, t, inverse, norm);
            to(j, now.k, now.t);
            return;
        }
        const values<V> now = f.turn(k, inverse, norm);
        if constexpr (total) {
            to.row_k = to.row_k + now.k;
            if constexpr (parts == 2) to.row_t = fma(t, now.t, to.row_t);
        } else
            to(j, now.k, parts == 2 ? fma(t, now.t, now.k) : t);
    }
    KC_HD void end_row() { to.end_row(); }
};

template <class V, int parts, int from, three mode, bool positive, class X, class Y>
KC_LOOP void relu_three(const plane_step<V>& p, X x, Y y) {
    using cell_t = relu_cell<V, parts, mode, positive>;
    cell_t cell{decltype(cell_t::f)(p.step), p.step.positions, decltype(cell_t::to)(p)};
    sum_three<V, parts, from>(p, x, y, cell);
    if constexpr (cell_t::total) {
        if (p.end == p.rows.outputs)
            cell.to.total_t = fma(cell.f.add, cell.to.total_k, cell.f.slope * cell.to.total_t);
        cell.to.finish(p.out);
    }
}
template <class V, int parts, int from, three mode, class X, class Y>
KC_HD void relu_three(const plane_step<V>& p, const X& x, const Y& y) {
    if (from == parts && p.step.positive)
        relu_three<V, parts, from, mode, from == parts>(p, x, y);
    else
        relu_three<V, parts, from, mode, false>(p, x, y);
}
template <class V, int parts, int from, class X, class Y>
KC_HD void relu_three(const plane_step<V>& p, const X& x, const Y& y, bool total) {
    const spatial_step& s = p.step;
    if (total)
        relu_three<V, parts, from, three::total>(p, x, y);
    else if (is_plain(s, parts))
        relu_three<V, parts, from, three::plain>(p, x, y);
    else
        relu_three<V, parts, from, three::general>(p, x, y);
}

// An activation whose dual is a function of the covariance, with nothing else in the loop.
template <class V, int parts, class Dual>
struct covariance_cell {
    using T = real_of<V>;
    const Dual f;
    const V scale, bias, trained, add, snap;
    const index_t sd;
    to_plane<V, parts> to;
    KC_HD covariance_cell(const plane_step<V>& p, Dual dual)
        : f(dual),
          scale(T(p.step.scale)),
          bias(T(p.step.bias)),
          trained(T(p.step.trained)),
          add(T(p.step.add)),
          snap(T(p.step.snap)),
          sd(p.step.positions),
          to(p) {}
    template <class X, class Y>
    KC_HD void operator()(index_t j, V k, V t, const X& x, const Y& y) {
        const V covariance = fma(scale, k, bias);
        const dual<V> d = f(covariance, snap, position_tables<X>{x, j + 2 * sd, sd},
                            position_tables<Y>{y, j + 2 * sd, sd});
        if constexpr (parts == 2)
            t = fma(fma(scale, t, trained * covariance), d.slope, add * d.value);
        to(j, d.value, t);
    }
    KC_HD void end_row() { to.end_row(); }
};

// The same from a correlation. 1/sd lies before the tables of the activation.
template <class V, class Dual>
struct by_correlation {
    Dual f;
    template <class X, class Y>
    KC_HD dual<V> operator()(V k, V snap, const X& x, const Y& y) const {
        return f(snapped(k * (x(-2) * y(-2)), snap), x, y);
    }
};

template <class V, int parts, class Dual, class X, class Y>
KC_LOOP void covariance_three(const plane_step<V>& p, X x, Y y, Dual f) {
    covariance_cell<V, parts, Dual> cell(p, f);
    sum_three<V, parts, parts>(p, x, y, cell);
}
template <class V, int parts, class X, class Y>
KC_HD void covariance_three(const plane_step<V>& p, const X& x, const Y& y) {
    using T = real_of<V>;
    const op& o = p.step.act;
    if (o.code == op_erf)
        covariance_three<V, parts>(p, x, y, erf_of<V>{});
    else if (o.code == op_gelu)
        covariance_three<V, parts>(p, x, y, gelu_of<V>{});
    else if (o.code == op_sine)
        covariance_three<V, parts>(p, x, y, sine_of<V>{V(T(o.a)), V(T(o.b))});
    else if constexpr (is_single<V>) {
        const V q(T(o.a)), c0(T(o.b)), c1(T(o.c));
        if (o.c == 0)
            covariance_three<V, parts>(p, x, y,
                                       by_correlation<V, ramp<V, true, false>>{{q, c0, c1}});
        else if (o.b == 0)
            covariance_three<V, parts>(p, x, y,
                                       by_correlation<V, ramp<V, false, true>>{{q, c0, c1}});
        else
            covariance_three<V, parts>(p, x, y,
                                       by_correlation<V, ramp<V, true, true>>{{q, c0, c1}});
    }
}

// One output row after the patch sums of its rows: the three kinds of steps.
template <class V, int parts>
struct row_of_step {
    const spatial_job<real_of<V>>& job;
    const spatial_step& step;
    const column_map& map;
    any_image<V> x;
    lane_images<V> y;
    index_t row_x, row_y;  // first positions of the output row in both images
    const real_of<V>* line;
    real_of<V>* out;
    box_sums<real_of<V>> slots;  // of the line, where its windows are wide
    using T = real_of<V>;
    static constexpr index_t width = value<V>::width, entry = parts * width;

    // f(k, K, T) for all outputs k of a run: their sums over slots.
    template <class F>
    KC_HD void sums(const column_run& run, F f) const {
        constexpr index_t second = (parts - 1) * width;
        const index_t taps = map.taps, step = run.step;
        if (taps < least_box) {
            const T* from = line + run.slot * entry;
            for (int k = 0; k < run.count; k++, from += step * entry)
                f(k, sum_slots<V, parts>(from, taps), sum_slots<V, parts>(from + second, taps));
            return;
        }
        index_t phase = run.slot % taps;
        const T* end = slots.backward + run.slot * entry;
        const T* begin = slots.forward + (run.slot + taps - 1) * entry;
        for (int k = 0; k < run.count; k++, end += step * entry, begin += step * entry) {
            if (phase == 0)
                f(k, load<V>(end), load<V>(end + second));
            else
                f(k, load<V>(end) + load<V>(begin),
                  load<V>(end + second) + load<V>(begin + second));
            phase += step;
            while (phase >= taps) phase -= taps;
        }
    }

    KC_HD void linear() const {
        const linear_step<V, parts> f(step);
        for (int r = 0; r < map.runs; r++) {
            const column_run run = job.maps.runs[map.run + r];
            sums(run, [&](int k, V sum, V t) { f(sum, t, out + (run.out + k) * entry); });
        }
    }

    KC_HD void relu() const {
        if (x.lanes)
            relu(lane_images<V>{nullptr, x.tables}, y);
        else
            relu(one_image<V>{nullptr, x.tables}, y);
    }
    template <class X, class Y>
    KC_HD void relu(X x, Y y) const {
        if (step.positive)
            relu(relu_step<V, parts, false, true>(step), x, y);
        else
            relu(relu_step<V, parts, false, false>(step), x, y);
    }
    template <class F, class X, class Y>
    KC_LOOP void relu(F f, X x, Y y) const {
        const index_t sd = step.positions;
        for (int r = 0; r < map.runs; r++) {
            const column_run run = job.maps.runs[map.run + r];
            T* to = out + run.out * entry;
            index_t px = step.at + row_x + run.x, py = step.at + row_y + run.y;
            sums(run, [&](int, V k, V t) {
                const values<V> now =
                    f(k, t, x.table(px) * y.table(py), x.table(px + sd) * y.table(py + sd));
                store<V>(to, now.k);
                if constexpr (parts == 2) store<V>(to + width, now.t);
                to += entry;
                px += run.move;
                py += run.move;
            });
        }
    }

    // An activation in one pass: sums, correlation, the function (program.h), and back.
    template <class F>
    KC_HD void operator()(F f) const {
        const V scale(T(step.scale)), bias(T(step.bias)), trained(T(step.trained));
        const V snap(T(step.snap)), add(T(step.add));
        const index_t sd = step.positions;
        for (int r = 0; r < map.runs; r++) {
            const column_run run = job.maps.runs[map.run + r];
            T* to = out + run.out * entry;
            index_t px = step.at + row_x + run.x, py = step.at + row_y + run.y;
            sums(run, [&](int, V k, V t) {
                const V ix = x.table(px), iy = y.table(py);
                const V norm = x.table(px + sd) * y.table(py + sd);
                const V covariance = fma(scale, k, bias);
                const profile<V> p = f(correlated(covariance, ix, iy, snap),
                                       position_tables<any_image<V>>{x, px + 2 * sd, sd},
                                       position_tables<lane_images<V>>{y, py + 2 * sd, sd});
                if constexpr (parts == 2)
                    t = fma(scale, t, trained * covariance) * (ix * iy) * p.slope;
                write_entry<V, parts>(p.c.u, t, norm, add, to);
                to += entry;
                px += run.move;
                py += run.move;
            });
        }
    }

    // sum_orders with sides that are known, where the columns of a row are neighbours; in single
    // precision, where that shows. Else false.
    template <output want>
    KC_HD bool sum_neighbours(index_t length, const strip<T>& s) const {
        const column_run run = job.maps.runs[map.run];
        if (map.runs != 1 || run.move != 1 || x.lanes) return false;
        if constexpr (is_single<V>) {
            const index_t sd = step.positions, at = step.at + 2 * sd;
            const one_image<V> one{nullptr, x.tables};
            const neighbours_of<one_image<V>> first{one.moved(at + row_x + run.x), sd};
            const neighbours_of<lane_images<V>> second{y.moved(at + row_y + run.y), sd};
            const T* f = job.coefficients + step.act.coef;
            return sum_orders<V, want>(step.act, f, first, second, length, s);
        }
        return false;
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
        if (step.act.code >= 0 && !sum_neighbours<want>(length, s)) {
            const index_t at = step.at + 2 * step.positions;
            walk<V, want>({&step.act, 1, job.coefficients},
                          tables_of<any_image<V>, false>{x, at, step.positions, row_x, places},
                          tables_of<lane_images<V>, true>{y, at, step.positions, row_y, places},
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

// Whether a step on the plane of bundles i and j is one for relu_three, or for covariance_three.
KC_HD bool three_taps(const plane_maps& maps, const spatial_step& step, int i, int j) {
    return step.code == step_layer && maps.columns[step.columns + j].three &&
           maps.rows[step.rows + i].most <= 3;
}
KC_HD bool for_relu(const plane_maps& maps, const spatial_step& step, int i, int j) {
    return step.kind == kind_relu && three_taps(maps, step, i, j);
}
template <class T>
KC_HD bool for_covariance(const plane_maps& maps, const spatial_step& step, int i, int j) {
    const int code = step.act.code;
    const bool known =
        code == op_erf || code == op_gelu || code == op_sine || (same<T, float> && code == op_ramp);
    return step.kind == kind_general && known && three_taps(maps, step, i, j);
}

template <class V>
KC_HD plane_step<V> step_on(const spatial_job<real_of<V>>& job, const spatial_step& step, int i,
                            int j, const real_of<V>* plane, index_t plane_columns, int begin,
                            int end, real_of<V>* out, const real_of<V>* zeros) {
    return {job.maps,
            step,
            job.maps.rows[step.rows + i],
            job.maps.columns[step.columns + j],
            plane,
            plane_columns,
            zeros,
            job.input_add,
            begin,
            end,
            out};
}

// Rows begin .. end of such a step.
template <class V, int parts, class X, class Y>
KC_HD void run_three(const spatial_job<real_of<V>>& job, const spatial_step& step, const X& x,
                     const Y& y, int i, int j, const real_of<V>* plane, index_t plane_columns,
                     int begin, int end, real_of<V>* out, const real_of<V>* zeros, bool bare,
                     bool total) {
    const plane_step<V> p =
        step_on<V>(job, step, i, j, plane, plane_columns, begin, end, out, zeros);
    if (bare)
        relu_three<V, parts, 1>(p, x, y, total);
    else
        relu_three<V, parts, parts>(p, x, y, total);
}

// Any other step of the plane of bundles i and j, row by row.
template <class V, int parts>
KC_LOOP void run_rows(const spatial_job<real_of<V>>& job, const spatial_step& step, any_image<V> x,
                      lane_images<V> y, int i, int j, const real_of<V>* plane,
                      index_t plane_columns, real_of<V>* out, real_of<V>* line) {
    constexpr index_t entry = parts * value<V>::width;
    const row_map rows = job.maps.rows[step.rows + i];
    const column_map map = job.maps.columns[step.columns + j];
    real_of<V>* strips = line + job.line_size * entry;
    const index_t grid = step.grid_columns, stride = plane_columns * entry;
    using T = real_of<V>;
    T* boxes = line + 5 * job.line_size * entry;  // there where job.boxed
    const box_sums<T> blocks{boxes, boxes + job.plane_size * entry};
    boxes += 2 * job.plane_size * entry;
    const box_sums<T> slots{boxes, boxes + job.line_size * entry};
    if (rows.box) sum_blocks<V>(plane, rows.span, stride, rows.box, blocks);
    index_t used = 0;  // slots
    for (int r = 0; r < map.runs; r++) {
        const column_run run = job.maps.runs[map.run + r];
        const index_t beyond = run.slot + index_t(run.count - 1) * run.step + map.taps;
        used = beyond > used ? beyond : used;
    }
    const bool copies = clear_slots<V, parts>(job.maps, map, line);
    for (int r = 0; r < rows.outputs; r++, out += map.outputs * entry) {
        const row_sum row = job.maps.row_sums[rows.first + r];
        const row_of_step<V, parts> s{job,          step,         map,  x,   y,
                                      row.x * grid, row.y * grid, line, out, slots};
        if (rows.box)
            sum_rows<V, parts>(job.maps, map, row, blocks, rows.box, plane_columns, line);
        else
            sum_rows<V, parts>(job.maps, map, row, plane, plane_columns, line);
        if (copies) copy_slots<V, parts>(job.maps, map, line);
        if (map.taps >= least_box) sum_blocks<V>(line, used, entry, map.taps, slots);
        if (step.kind == kind_relu)
            s.relu();
        else if (step.kind == kind_linear)
            s.linear();
        else
            s.general(strips);
    }
}

// One step of the plane of bundles i and j. `bare`: the plane has K alone (plane_step); `total`: out
// gets the sum of all entries. Both are for steps of relu_three.
template <class V, int parts, class X, class Y>
KC_HD void run_step(const spatial_job<real_of<V>>& job, const spatial_step& step, const X& x,
                    const Y& y, int i, int j, const real_of<V>* plane, index_t plane_columns,
                    real_of<V>* out, real_of<V>* line, const real_of<V>* zeros, bool bare,
                    bool total) {
    const int rows = job.maps.rows[step.rows + i].outputs;
    if (for_relu(job.maps, step, i, j))
        run_three<V, parts>(job, step, x, y, i, j, plane, plane_columns, 0, rows, out, zeros, bare,
                            total);
    else if (for_covariance<real_of<V>>(job.maps, step, i, j))
        covariance_three<V, parts>(
            step_on<V>(job, step, i, j, plane, plane_columns, 0, rows, out, zeros), x, y);
    else
        run_rows<V, parts>(job, step, x, y, i, j, plane, plane_columns, out, line);
}

// A plane, or (bare) one of K alone, or (total) the sum of its entries.
template <class V>
struct plane_at {
    real_of<V>* plane;
    index_t rows, columns;
    bool bare, total;
};

// Whether the last step of a stage sums its entries, because a mean follows.
template <int parts, class T>
KC_HD bool ends_in_total(const spatial_job<T>& job, const spatial_stage& stage, int i, int j) {
    const spatial_step& step = job.steps[stage.step + stage.steps - 1];
    return stage.uniform && is_simple(step, parts) && for_relu(job.maps, step, i, j);
}

// Large planes run through all steps in bands of rows, each step a row behind the one before, so that
// what a step reads is still in the cache. Two buffers are enough: a row is written over the row of
// two steps before, which nobody reads any more.
constexpr index_t band_bytes = 1 << 15, large_bytes = 1 << 17;

template <class V, int parts>
KC_HD bool in_bands(const spatial_job<real_of<V>>& job, const spatial_stage& stage, int i, int j,
                    index_t rows, index_t columns) {
    if (rows * columns * parts * index_t(sizeof(V)) < large_bytes || stage.steps == 0) return false;
    for (int k = 0; k < stage.steps; k++) {
        const spatial_step& step = job.steps[stage.step + k];
        if (!for_relu(job.maps, step, i, j)) return false;
        const row_map map = job.maps.rows[step.rows + i];
        if (!map.near || map.outputs != rows) return false;
        if (job.maps.columns[step.columns + j].outputs != columns) return false;
    }
    return true;
}

// `now.plane` is null where the plane of a stage is still to be made, from pixels. `goal`: where the
// last step writes, or null for one of the buffers.
template <class V, int parts, class X, class Y>
KC_HD plane_at<V> run_bands(const spatial_job<real_of<V>>& job, const spatial_stage& stage,
                            const X& x, const Y& y, int i, int j, plane_at<V> now,
                            real_of<V>* buffers, real_of<V>* line, real_of<V>* goal) {
    using T = real_of<V>;
    constexpr index_t width = value<V>::width, entry = parts * width;
    const index_t rows = now.rows, columns = now.columns, count = stage.steps;
    const bool input = !now.plane, total = ends_in_total<parts>(job, stage, i, j);
    const T* zeros = line + 4 * job.line_size * entry;
    // Step k writes buffer k % 2. K alone takes the end of its buffer, where step 2 comes last.
    T* const both[2] = {buffers, buffers + job.plane_size * entry};
    if (input) now.plane = buffers + (parts - 1) * rows * columns * width;
    if (!goal) goal = both[count % 2];
    const index_t band = 1 + band_bytes / (columns * parts * index_t(sizeof(V)));
    const auto capped = [=](index_t row) { return int(row < rows ? (row > 0 ? row : 0) : rows); };
    for (index_t last = 0; last < rows; last += band)
        for (index_t k = 0; k <= count; k++) {
            const int begin = last == 0 ? 0 : capped(last + count - k);
            const int end = capped(last + band + count - k);
            if (k == 0 && input)
                input_plane<V, 1>(job, x, y, job.maps.rows[stage.rows + i],
                                  job.maps.columns[stage.columns + j], begin, end, now.plane);
            if (k == 0 || begin >= end) continue;
            run_three<V, parts>(job, job.steps[stage.step + k - 1], x, y, i, j,
                                k == 1 ? now.plane : both[(k - 1) % 2], columns, begin, end,
                                k == count ? goal : both[k % 2], zeros,
                                k == 1 && input && parts == 2, total && k == count);
        }
    return {goal, rows, columns, false, total};
}

// A plane through the steps of a stage; returns where it ended up: at `goal`, if there is one and the
// last step can write there.
template <class V, int parts, class X, class Y>
KC_HD plane_at<V> run_stage(const spatial_job<real_of<V>>& job, const spatial_stage& stage,
                            const X& x, const Y& y, int i, int j, plane_at<V> now,
                            real_of<V>* buffers, real_of<V>* line, real_of<V>* goal) {
    using T = real_of<V>;
    constexpr index_t entry = parts * value<V>::width;
    const index_t size = job.plane_size * entry;
    T* other = now.plane == buffers ? buffers + size : buffers;
    T* spare = other == buffers ? buffers + size : buffers;
    const T* zeros = line + 4 * job.line_size * entry;
    plane_at<V> saved[most_slots];
    int open = 0;
    for (int k = 0; k < stage.steps; k++) {
        const spatial_step& step = job.steps[stage.step + k];
        if (step.code == step_layer) {
            const bool total = k + 1 == stage.steps && ends_in_total<parts>(job, stage, i, j);
            if (k + 1 == stage.steps && goal) other = goal;
            run_step<V, parts>(job, step, x, y, i, j, now.plane, now.columns, other, line, zeros,
                               now.bare, total);
            now = {other, job.maps.rows[step.rows + i].outputs,
                   job.maps.columns[step.columns + j].outputs, false, total};
            other = spare;
            spare = now.plane;
        } else if (step.code == step_save) {
            T* keep = buffers + (2 + open) * size;
            copy_numbers<V>(now.plane, keep, now.rows * now.columns * entry);
            saved[open++] = {keep, now.rows, now.columns, false, false};
        } else if (step.code == step_swap) {
            plane_at<V>& top = saved[open - 1];
            const index_t most = now.rows * now.columns > top.rows * top.columns
                                     ? now.rows * now.columns
                                     : top.rows * top.columns;
            exchange<V>(now.plane, top.plane, most * entry);
            const plane_at<V> old = now;
            now = {old.plane, top.rows, top.columns, false, false};
            top = {top.plane, old.rows, old.columns, false, false};
        } else {
            const T* branch = saved[--open].plane;
            for (index_t at = 0; at < now.rows * now.columns * entry; at += value<V>::width)
                store<V>(now.plane + at, load<V>(now.plane + at) + load<V>(branch + at));
        }
    }
    return now;
}

// The kernel of an image with itself is symmetric: what a plane holds of (p, p') is what another one
// holds of (p', p). Bundles are in the order of their offsets, so that the last one mirrors the first.
// Whether the `count` bundles of an axis from `map` on do so; those of circular borders may not.
KC_HD bool rows_mirrored(const plane_maps& maps, int map, int count) {
    for (int i = 0; 2 * i < count; i++) {
        const row_map a = maps.rows[map + i], b = maps.rows[map + count - 1 - i];
        if (a.outputs != b.outputs) return false;
        for (int r = 0; r < a.outputs; r++) {
            const row_sum p = maps.row_sums[a.first + r], q = maps.row_sums[b.first + r];
            if (p.x != q.y || p.y != q.x) return false;
        }
    }
    return true;
}
KC_HD bool columns_mirrored(const plane_maps& maps, int map, int count) {
    for (int i = 0; 2 * i < count; i++) {
        const column_map a = maps.columns[map + i], b = maps.columns[map + count - 1 - i];
        if (a.outputs != b.outputs) return false;
        for (int c = 0; c < a.outputs; c++) {
            const column_place p = maps.places[a.place + c], q = maps.places[b.place + c];
            if (p.x != q.y || p.y != q.x) return false;
        }
    }
    return true;
}
// The first planes of a slab, from those of the one that mirrors it: the last become the first. `size`
// is that of a column of a plane.
template <class V>
KC_HD void mirror_slab(const int* columns, int bundles, int planes, index_t size,
                       const real_of<V>* from, real_of<V>* to) {
    for (int j = 0; j < bundles; j++) from += columns[j] * size;
    for (int j = 0; j < planes; j++, to += columns[j - 1] * size) {
        from -= columns[j] * size;
        copy_numbers<V>(from, to, columns[j] * size);
    }
}
// The planes of column bundle j of a stage, from those that mirror them.
template <class V, int parts>
KC_HD void mirror_planes(const spatial_job<real_of<V>>& job, const spatial_stage& stage, int j,
                         real_of<V>* store) {
    constexpr index_t entry = parts * value<V>::width;
    const index_t* at = job.maps.store_at + stage.places.at;
    const int last = stage.row_bundles * stage.places.bundles - 1;
    for (int i = 0; i < stage.row_bundles; i++) {
        const int plane = i * stage.places.bundles + j;
        const index_t size = index_t(job.maps.rows[stage.rows + i].outputs) *
                             job.maps.store_columns[stage.places.columns + j];
        copy_numbers<V>(store + at[last - plane] * entry, store + at[plane] * entry, size * entry);
    }
}
// The rows of a plane of bundle i at the end of a stage.
template <class T>
KC_HD index_t last_rows(const spatial_job<T>& job, const spatial_stage& stage, int i) {
    index_t rows = job.maps.rows[stage.rows + i].outputs;
    for (int k = 0; k < stage.steps; k++) {
        const spatial_step& step = job.steps[stage.step + k];
        if (step.code == step_layer) rows = job.maps.rows[step.rows + i].outputs;
    }
    return rows;
}
// Whether all of a stage does, and the beginning of the next one.
template <class T>
KC_HD bool is_mirrored(const spatial_job<T>& job, const spatial_stage& stage,
                       const spatial_stage& next) {
    const plane_maps& maps = job.maps;
    const int rows = stage.row_bundles, columns = stage.column_bundles;
    bool all = rows_mirrored(maps, stage.rows, rows) &&
               columns_mirrored(maps, stage.columns, columns) &&
               rows_mirrored(maps, next.rows, next.row_bundles) &&
               columns_mirrored(maps, next.columns, next.column_bundles);
    for (int k = 0; all && k < stage.steps; k++) {
        const spatial_step& step = job.steps[stage.step + k];
        all = step.code != step_layer || (rows_mirrored(maps, step.rows, rows) &&
                                          columns_mirrored(maps, step.columns, columns));
    }
    return all;
}

// One side against the other, of which one at least is in lanes: the entries of the last stage, at the
// returned place, or null where the watch (watch.h) stopped it between two planes. `halves`: of an
// image with itself, where planes mirror each other, half of them, and sums may be rounded otherwise.
template <class V, int parts, class X, class Y, class Watch>
KC_HD const real_of<V>* run_pair(const spatial_job<real_of<V>>& job, const X& x, const Y& y,
                                 real_of<V>* scratch, Watch& watch, bool halves = false) {
    using T = real_of<V>;
    constexpr index_t width = value<V>::width, entry = parts * width;
    const pool_room<V> room{reinterpret_cast<pool_spot<T>*>(scratch), job.track_size,
                            scratch + spot_numbers(job)};
    T* stores = room.numbers + job.pass_size * width;
    T* buffers = stores + job.store_size * entry;
    T* slab = buffers + (2 + job.slots) * job.plane_size * entry;
    T* line = slab + job.slab_size * entry;
    for (index_t at = 0; at < job.line_size * entry; at += width)
        store<V>(line + 4 * job.line_size * entry + at, V(T(0)));
    for (int s = 0; s + 1 < job.stage_count; s++) {
        const spatial_stage &stage = job.stages[s], &next = job.stages[s + 1];
        T* to = stores + next.store * entry;
        T* middle = stores + stage.middle * entry;
        index_t all = 0;  // columns of the next stage
        for (int j = 0; stage.overlaps && j < next.places.bundles; j++)
            all += job.maps.store_columns[next.places.columns + j];
        if (!stage.overlaps)
            for (index_t at = 0; at < (next.store_size + next.places.lost) * entry; at += width)
                store<V>(to + at, V(T(0)));
        const bool mirrored = halves && stage.overlaps && is_mirrored(job, stage, next);
        const int bundles = next.places.bundles;
        const int half = mirrored && stage.row_pools >= 0 ? (bundles + 1) / 2 : bundles;
        T* source = nullptr;  // a slab, and then those before it
        for (int i = 0; i < stage.row_bundles; i++) {
            const row_map rows = job.maps.rows[stage.rows + i];
            if (mirrored && 2 * i >= stage.row_bundles) {
                const index_t size = last_rows(job, stage, i) * entry;
                source -= size * all;
                mirror_slab<V>(job.maps.store_columns + next.places.columns, bundles, half, size,
                               source, middle);
                middle += size * all;
                continue;
            }
            source = middle;
            // A step must not write over the plane that it reads.
            T *goal = stage.slab ? slab : middle, *const first = goal;
            const bool direct = stage.overlaps && (stage.slab || s == 0);
            index_t slab_rows = 0;
            for (int j = 0; j < stage.column_bundles; j++) {
                const column_map columns = job.maps.columns[stage.columns + j];
                if (!watch.after((1 + stage.steps) * index_t(rows.outputs) * columns.outputs))
                    return nullptr;
                plane_at<V> now{buffers, rows.outputs, columns.outputs, false, false};
                if (s > 0)
                    now.plane =
                        stores +
                        (stage.store +
                         job.maps.store_at[stage.places.at + i * stage.places.bundles + j]) *
                            entry;
                if (in_bands<V, parts>(job, stage, i, j, now.rows, now.columns)) {
                    if (s == 0) now.plane = nullptr;
                    now = run_bands<V, parts>(job, stage, x, y, i, j, now, buffers, line,
                                              direct ? goal : nullptr);
                } else {
                    // T is input_add K there: a first step that can do so reads K alone.
                    now.bare = s == 0 && parts == 2 && stage.steps > 0 &&
                               for_relu(job.maps, job.steps[stage.step], i, j);
                    if (now.bare)
                        input_plane<V, 1>(job, x, y, rows, columns, 0, rows.outputs, now.plane);
                    else if (s == 0)
                        input_plane<V, parts>(job, x, y, rows, columns, 0, rows.outputs, now.plane);
                    now = run_stage<V, parts>(job, stage, x, y, i, j, now, buffers, line,
                                              direct ? goal : nullptr);
                }
                if (stage.overlaps) {
                    const index_t size = now.rows * now.columns * entry;
                    if (now.plane != goal) copy_numbers<V>(now.plane, goal, size);
                    goal += size;
                    slab_rows = now.rows;
                    continue;
                }
                const pool_map row_pool = job.maps.pools[stage.row_pools + i];
                const pool_map column_pool = job.maps.pools[stage.column_pools + j];
                if (now.total)
                    pool_total<V, parts>(job.maps, row_pool, column_pool, now.plane, to,
                                         next.places);
                else
                    pool_plane<V, parts>(job.maps, row_pool, column_pool, now.plane, now.columns,
                                         line, to, next.places);
            }
            if (stage.overlaps && stage.column_pools >= 0)
                pool_columns<V, parts>(job.maps, job.maps.passes + stage.column_pools, first,
                                       slab_rows, middle, room);
            middle += slab_rows * all * entry;
            if (2 * i + 2 == stage.row_bundles) source = middle;
        }
        if (stage.overlaps && stage.row_pools >= 0)
            for (index_t j = 0, before = 0; j < bundles; j++) {
                const index_t columns = job.maps.store_columns[next.places.columns + j];
                if (j >= half) {
                    mirror_planes<V, parts>(job, next, int(j), to);
                    continue;
                }
                if (!watch.after(columns * (next.store_size / all))) return nullptr;
                pool_rows<V, parts>(job.maps, job.maps.passes + stage.row_pools,
                                    stores + stage.middle * entry, all, before, columns, to, room);
                before += columns;
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
