// Patch sums and pooling of offset planes (../plane.h), a line of entries at a time.
#pragma once

#include "../plane.h"

namespace kc {

// ---- patch sums

template <class V>
KC_HD void copy_numbers(const real_of<V>* from, real_of<V>* to, index_t length) {
    for (index_t at = 0; at < length; at += value<V>::width) store<V>(to + at, load<V>(from + at));
}

// The slots of a line that are zero or equal to others.
template <class V, int parts>
KC_HD void copy_slots(const plane_maps& maps, const column_map& map, real_of<V>* line) {
    constexpr index_t entry = parts * value<V>::width;
    for (int k = 0; k < map.copies; k++) {
        const column_copy c = maps.copies[map.copy + k];
        for (index_t at = 0; at < entry; at += value<V>::width)
            store<V>(line + c.slot * entry + at,
                     c.from < 0 ? V(real_of<V>(0)) : load<V>(line + c.from * entry + at));
    }
}

// line[slot] = sum over the output row's sources of column `from`, for every slot of the map.
template <class V, int parts>
KC_HD void sum_rows(const plane_maps& maps, const column_map& map, const row_sum& row,
                    const real_of<V>* plane, index_t columns, real_of<V>* line) {
    using T = real_of<V>;
    constexpr index_t width = value<V>::width, entry = parts * width;
    const int* sources = maps.row_sources + row.first;
    const index_t stride = columns * entry;
    for (int k = 0; k < map.loads; k++) {
        const column_load l = maps.loads[map.load + k];
        const T* from = plane + l.from * entry;
        T* to = line + l.slot * entry;
        const index_t length = l.count * entry;
        if (row.count == 3) {
            const T *a = from + sources[0] * stride, *b = from + sources[1] * stride,
                    *c = from + sources[2] * stride;
            for (index_t at = 0; at < length; at += width)
                store<V>(to + at, load<V>(a + at) + load<V>(b + at) + load<V>(c + at));
            continue;
        }
        for (index_t at = 0; at < length; at += width) {
            V sum(T(0));
            for (int s = 0; s < row.count; s++)
                sum = sum + load<V>(from + sources[s] * stride + at);
            store<V>(to + at, sum);
        }
    }
    copy_slots<V, parts>(maps, map, line);
}

// The sum of `taps` slots from `slot` on.
template <class V, int parts>
KC_HD V sum_slots(const real_of<V>* slot, int taps) {
    constexpr index_t entry = parts * value<V>::width;
    V sum = load<V>(slot);
    for (int k = 1; k < taps; k++) sum = sum + load<V>(slot + k * entry);
    return sum;
}

// Wide windows: sums of neighbours in three additions, whatever their number, and without
// differences (van Herk 1992, Gil and Werman 1993). In blocks of `box` items, `forward` sums from
// the first of the block on and `backward` from the last: a window of `box` items is the end of one
// block and the beginning of the next.
constexpr int least_box = 6;
template <class T>
struct box_sums {
    T *forward, *backward;
};
// The sums of items first .. last, a block, `strip` vectors from `at` on.
template <class V, int strip>
KC_HD void sum_block(const real_of<V>* items, index_t first, index_t last, index_t length,
                     const box_sums<real_of<V>>& to) {
    constexpr index_t width = value<V>::width;
    V up[strip], down[strip];
    for (index_t k = first; k <= last; k++) KC_UNROLL for (int i = 0; i < strip; i++) {
            const V item = load<V>(items + k * length + i * width);
            up[i] = k == first ? item : up[i] + item;
            store<V>(to.forward + k * length + i * width, up[i]);
        }
    for (index_t k = last; k >= first; k--)
        KC_UNROLL for (int i = 0; i < strip; i++) {
            const V item = load<V>(items + k * length + i * width);
            down[i] = k == last ? item : down[i] + item;
            store<V>(to.backward + k * length + i * width, down[i]);
        }
}
template <class V>
KC_LOOP void sum_blocks(const real_of<V>* items, index_t count, index_t length, index_t box,
                        box_sums<real_of<V>> to) {
    constexpr index_t width = value<V>::width;
    for (index_t first = 0; first < count; first += box) {
        const index_t last = (first + box < count ? first + box : count) - 1;
        index_t at = 0;
        for (; at + 4 * width <= length; at += 4 * width)
            sum_block<V, 4>(items + at, first, last, length, {to.forward + at, to.backward + at});
        for (; at < length; at += width)
            sum_block<V, 1>(items + at, first, last, length, {to.forward + at, to.backward + at});
    }
}

// The same as sum_rows, from sums over blocks of rows.
template <class V, int parts>
KC_HD void sum_rows(const plane_maps& maps, const column_map& map, const row_sum& row,
                    const box_sums<real_of<V>>& blocks, index_t box, index_t columns,
                    real_of<V>* line) {
    using T = real_of<V>;
    constexpr index_t width = value<V>::width, entry = parts * width;
    const index_t stride = columns * entry;
    const index_t lo = row.count ? maps.row_sources[row.first] : 0, hi = lo + row.count - 1;
    const T *end = blocks.backward + lo * stride, *begin = blocks.forward + hi * stride;
    const bool one = lo / box == hi / box;
    for (int k = 0; k < map.loads; k++) {
        const column_load l = maps.loads[map.load + k];
        T* to = line + l.slot * entry;
        const index_t first = l.from * entry, length = l.count * entry;
        if (row.count == 0)
            for (index_t at = 0; at < length; at += width) store<V>(to + at, V(T(0)));
        else if (one)
            copy_numbers<V>((lo % box ? end : begin) + first, to, length);
        else
            for (index_t at = 0; at < length; at += width)
                store<V>(to + at, load<V>(end + first + at) + load<V>(begin + first + at));
    }
    copy_slots<V, parts>(maps, map, line);
}

// ---- pooling

// to[0 .. length) = sum over terms of weight * row `from`.
template <class V>
KC_HD void weigh_rows(const pool_term* terms, int count, const real_of<V>* plane, index_t length,
                      real_of<V>* to) {
    using T = real_of<V>;
    constexpr index_t width = value<V>::width;
    const T *a = plane + terms[0].from * length, *b = plane + terms[count > 1].from * length;
    const V p = weight_of<V>(terms[0]), q = weight_of<V>(terms[count > 1]);
    if (count == 1)
        for (index_t at = 0; at < length; at += width) store<V>(to + at, p * load<V>(a + at));
    else
        for (index_t at = 0; at < length; at += width)
            store<V>(to + at, fma(q, load<V>(b + at), p * load<V>(a + at)));
    for (int k = 2; k < count; k++) {
        const T* c = plane + terms[k].from * length;
        const V r = weight_of<V>(terms[k]);
        for (index_t at = 0; at < length; at += width)
            store<V>(to + at, fma(r, load<V>(c + at), load<V>(to + at)));
    }
}

// sum = the sum over terms of weight * entry `from` of a line.
template <class V, int parts>
KC_HD void weigh_terms(const pool_term* terms, int count, const real_of<V>* line,
                       V (&sum)[parts]) {
    constexpr index_t width = value<V>::width, entry = parts * width;
    const real_of<V>* from = line + terms[0].from * entry;
    KC_UNROLL for (int part = 0; part < parts; part++) sum[part] =
        weight_of<V>(terms[0]) * load<V>(from + part * width);
    for (int k = 1; k < count; k++) {
        from = line + terms[k].from * entry;
        KC_UNROLL for (int part = 0; part < parts; part++) sum[part] =
            fma(weight_of<V>(terms[k]), load<V>(from + part * width), sum[part]);
    }
}

// Add to one entry of the next stage.
template <class V, int parts>
KC_HD void add_entry(const V (&sum)[parts], real_of<V>* place, const plane_store& places) {
    constexpr index_t width = value<V>::width, entry = parts * width;
    KC_UNROLL for (int part = 0; part < parts; part++, place += width) {
        if (places.lost)
            add_exactly<V>(place, place + places.lost * entry, sum[part]);
        else
            store<V>(place, load<V>(place) + sum[part]);
    }
}

// Add a plane whose entries have one weight and one target, given the sum of them.
template <class V, int parts>
KC_HD void pool_total(const plane_maps& maps, const pool_map& rows, const pool_map& columns,
                      const real_of<V>* total, real_of<V>* next, const plane_store& places) {
    constexpr index_t width = value<V>::width, entry = parts * width;
    if (rows.count == 0 || columns.count == 0) return;
    const pool_target row = maps.targets[rows.first], column = maps.targets[columns.first];
    const pool_cell row_cell = maps.cells[row.first], cell = maps.cells[column.first];
    const V weight =
        weight_of<V>(maps.terms[row_cell.first]) * weight_of<V>(maps.terms[cell.first]);
    const index_t at = maps.store_at[places.at + row.bundle * places.bundles + column.bundle] +
                       row_cell.out * index_t(maps.store_columns[places.columns + column.bundle]) +
                       cell.out;
    V sum[parts];
    KC_UNROLL for (int part = 0; part < parts; part++) sum[part] =
        weight * load<V>(total + part * width);
    add_entry<V, parts>(sum, next + at * entry, places);
}

// Add a plane into the planes of the next stage: rows first, into `line`, then columns.
template <class V, int parts>
KC_LOOP void pool_plane(const plane_maps& maps, const pool_map& rows, const pool_map& columns,
                        const real_of<V>* plane, index_t plane_columns, real_of<V>* line,
                        real_of<V>* next, const plane_store& places) {
    using T = real_of<V>;
    constexpr index_t width = value<V>::width, entry = parts * width;
    const index_t length = plane_columns * entry;
    for (int r = 0; r < rows.count; r++) {
        const pool_target row_target = maps.targets[rows.first + r];
        for (int i = 0; i < row_target.count; i++) {
            const pool_cell row_cell = maps.cells[row_target.first + i];
            weigh_rows<V>(maps.terms + row_cell.first, row_cell.count, plane, length, line);
            for (int c = 0; c < columns.count; c++) {
                const pool_target target = maps.targets[columns.first + c];
                const index_t* at_plane = maps.store_at + places.at;
                const int* widths = maps.store_columns + places.columns;
                T* to = next + (at_plane[row_target.bundle * places.bundles + target.bundle] +
                                row_cell.out * index_t(widths[target.bundle])) *
                                   entry;
                for (int j = 0; j < target.count; j++) {
                    const pool_cell cell = maps.cells[target.first + j];
                    V sum[parts];
                    weigh_terms<V, parts>(maps.terms + cell.first, cell.count, line, sum);
                    add_entry<V, parts>(sum, to + cell.out * entry, places);
                }
            }
        }
    }
}

// Poolings whose windows overlap, by axis and side (pool_pass). The planes of one row bundle make a
// slab: all its columns are pooled, some rows at a time, and written where the rows of all bundles
// are waiting for each other; then rows are pooled, some columns at a time. What lies between two
// passes stays in the cache.
constexpr int most_lines = 4;  // rows or columns that a pass takes at a time

// Where a pass finds entries, or puts them: those of the first line, and how far the next ones are.
template <class V>
struct place_form {
    real_of<V>* base;
    index_t a, b, c, next, next_b;
    template <class Place>
    KC_HD real_of<V>* at(const Place& p) const {
        return base + p.a * a + p.b * b + p.c * c;
    }
    template <class Place>
    KC_HD index_t line(const Place& p) const {
        return next + p.b * next_b;
    }
    KC_HD place_form moved(index_t lines) const {
        return {base + lines * next, a, b + lines * next_b, c, next, next_b};
    }
};

template <class V, int parts, int lines>
KC_LOOP void pool_tracks(const plane_maps& maps, const pool_pass& pass, place_form<V> from,
                         place_form<V> to, real_of<V>* back) {
    using T = real_of<V>;
    constexpr int strip = lines * parts;
    constexpr index_t width = value<V>::width;
    const V weight = weight_of<V>(maps.terms[pass.weight]);
    const index_t box = pass.box;
    const pool_track* tracks = maps.tracks + pass.track;
    for (const pool_track* end = tracks + pass.tracks; tracks < end; tracks++) {
        const pool_track track = *tracks;
        const pool_item* items = maps.items + track.item;
        const pool_sum *sum = maps.sums + track.sum, *last = sum + track.sums;
        V part[strip];
        if (box == 0) {
            for (; sum < last; sum++) {
                const pool_term* taps = maps.terms + sum->tap;
                KC_UNROLL for (int i = 0; i < strip; i++) part[i] = V(T(0));
                for (index_t k = sum->begin; k <= sum->end; k++, taps++) {
                    const T* x = from.at(items[k]);
                    const index_t line = from.line(items[k]);
                    KC_UNROLL for (int i = 0; i < strip; i++) part[i] =
                        fma(weight_of<V>(*taps),
                            load<V>(x + i / parts * line + i % parts * width), part[i]);
                }
                T* y = to.at(*sum);
                const index_t line = to.line(*sum);
                KC_UNROLL for (int i = 0; i < strip; i++)
                    store<V>(y + i / parts * line + i % parts * width, part[i]);
            }
            continue;
        }
        for (index_t first = -track.phase; first < track.items; first += box) {
            const index_t beyond = first + box < track.items ? first + box : track.items;
            KC_UNROLL for (int i = 0; i < strip; i++) part[i] = V(T(0));
            for (index_t k = beyond - 1; k > first && k >= 0; k--) {
                const T* x = from.at(items[k]);
                const index_t line = from.line(items[k]);
                KC_UNROLL for (int i = 0; i < strip; i++) {
                    part[i] = part[i] + load<V>(x + i / parts * line + i % parts * width);
                    store<V>(back + (k * strip + i) * width, part[i]);
                }
            }
            KC_UNROLL for (int i = 0; i < strip; i++) part[i] = V(T(0));
            for (index_t k = first < 0 ? 0 : first; k < beyond; k++) {
                const T* x = from.at(items[k]);
                const index_t line = from.line(items[k]);
                KC_UNROLL for (int i = 0; i < strip; i++) part[i] =
                    part[i] + load<V>(x + i / parts * line + i % parts * width);
                for (; sum < last && sum->end == k; sum++) {
                    T* y = to.at(*sum);
                    const index_t line = to.line(*sum);
                    const T* rest = back + sum->begin * strip * width;
                    if (sum->begin < 0)
                        KC_UNROLL for (int i = 0; i < strip; i++)
                            store<V>(y + i / parts * line + i % parts * width, weight * part[i]);
                    else
                        KC_UNROLL for (int i = 0; i < strip; i++)
                            store<V>(y + i / parts * line + i % parts * width,
                                     weight * (load<V>(rest + i * width) + part[i]));
                }
            }
        }
        for (; sum < last; sum++) {
            T* y = to.at(*sum);
            const index_t line = to.line(*sum);
            const T* rest = back + sum->begin * strip * width;
            KC_UNROLL for (int i = 0; i < strip; i++)
                store<V>(y + i / parts * line + i % parts * width,
                         weight * load<V>(rest + i * width));
        }
    }
}

// Both passes on `lines` lines: the places of the first one's items and of the second one's sums.
template <class V, int parts, int lines>
KC_HD void pool_lines(const plane_maps& maps, const pool_pass* passes, const place_form<V>& from,
                      const place_form<V>& to, real_of<V>* scratch) {
    constexpr index_t entry = parts * value<V>::width;
    const place_form<V> between{scratch, lines * entry, 0, 0, entry, 0};
    real_of<V>* back = scratch + passes[0].outputs * lines * entry;
    pool_tracks<V, parts, lines>(maps, passes[0], from, between, back);
    pool_tracks<V, parts, lines>(maps, passes[1], between, to, back);
}

template <class V, int parts>
KC_HD void pool_axis(const plane_maps& maps, const pool_pass* passes, const place_form<V>& from,
                     const place_form<V>& to, index_t lines, real_of<V>* scratch) {
    index_t k = 0;
    for (; k + most_lines <= lines; k += most_lines)
        pool_lines<V, parts, most_lines>(maps, passes, from.moved(k), to.moved(k), scratch);
    for (; k + 2 <= lines; k += 2)
        pool_lines<V, parts, 2>(maps, passes, from.moved(k), to.moved(k), scratch);
    for (; k < lines; k++)
        pool_lines<V, parts, 1>(maps, passes, from.moved(k), to.moved(k), scratch);
}

// The columns of a slab of `rows` rows, into as many rows of the next stage's columns.
template <class V, int parts>
KC_HD void pool_columns(const plane_maps& maps, const pool_pass* passes, real_of<V>* slab,
                        index_t rows, real_of<V>* to, real_of<V>* scratch) {
    constexpr index_t entry = parts * value<V>::width;
    pool_axis<V, parts>(maps, passes, {slab, rows * entry, 0, entry, 0, entry},
                        {to, rows * entry, 0, entry, 0, entry}, rows, scratch);
}

// The rows of all planes of one column bundle, which has `columns` of all columns and comes behind
// `before` of them.
template <class V, int parts>
KC_HD void pool_rows(const plane_maps& maps, const pool_pass* passes, real_of<V>* from, index_t all,
                     index_t before, index_t columns, real_of<V>* to, real_of<V>* scratch) {
    constexpr index_t entry = parts * value<V>::width;
    const place_form<V> form{from, all * entry, before * entry, columns * entry, entry, 0};
    place_form<V> target = form;
    target.base = to;
    pool_axis<V, parts>(maps, passes, form, target, columns, scratch);
}

}  // namespace kc
