// Patch sums and pooling of offset planes (../plane.h), a line of entries at a time.
#pragma once

#include "../plane.h"

namespace kc {

// ---- patch sums

template <class V>
KC_HD void copy_numbers(const real_of<V>* from, real_of<V>* to, index_t length) {
    for (index_t at = 0; at < length; at += value<V>::width) store<V>(to + at, load<V>(from + at));
}

// The slots of a line that are zero, in every row of a plane. Returns whether others are copies.
template <class V, int parts>
KC_HD bool clear_slots(const plane_maps& maps, const column_map& map, real_of<V>* line) {
    constexpr index_t entry = parts * value<V>::width;
    bool copies = false;
    for (int k = 0; k < map.copies; k++) {
        const column_copy c = maps.copies[map.copy + k];
        copies |= c.from >= 0;
        if (c.from >= 0) continue;
        for (index_t at = 0; at < entry; at += value<V>::width)
            store<V>(line + c.slot * entry + at, V(real_of<V>(0)));
    }
    return copies;
}
// Those that are equal to others.
template <class V, int parts>
KC_HD void copy_slots(const plane_maps& maps, const column_map& map, real_of<V>* line) {
    constexpr index_t entry = parts * value<V>::width;
    for (int k = 0; k < map.copies; k++) {
        const column_copy c = maps.copies[map.copy + k];
        if (c.from >= 0) copy_numbers<V>(line + c.from * entry, line + c.slot * entry, entry);
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
    KC_UNROLL for (int i = 0; i < strip; i++) up[i] = down[i] = V(real_of<V>(0));
    // Both at once: each sum waits for the one before.
    for (index_t k = first, j = last; k <= last; k++, j--)
        KC_UNROLL for (int i = 0; i < strip; i++) {
            const index_t at = k * length + i * width, back = j * length + i * width;
            up[i] = up[i] + load<V>(items + at);
            down[i] = down[i] + load<V>(items + back);
            store<V>(to.forward + at, up[i]);
            store<V>(to.backward + back, down[i]);
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
        for (; at + 2 * width <= length; at += 2 * width)
            sum_block<V, 2>(items + at, first, last, length, {to.forward + at, to.backward + at});
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
// slab, whose columns are pooled, some rows at a time, and written where the rows of all bundles wait
// for each other (mostly in place); then rows are pooled, some columns at a time. What lies between
// two passes stays in the cache.
constexpr int most_vectors = 8;  // that a pass sums at a time, of some rows or columns

// Where a pass finds an entry, or puts it: that of the first line, and how far the next ones are.
template <class T>
struct pool_spot {
    T* at;
    index_t line;
};
template <class V>
struct place_form {
    real_of<V>* base;
    index_t a, b, c, next, next_b;
    template <class Place>
    KC_HD pool_spot<real_of<V>> operator()(const Place& p) const {
        return {base + p.a * a + p.b * b + p.c * c, next + p.b * next_b};
    }
    KC_HD place_form moved(index_t lines) const {
        return {base + lines * next, a, b + lines * next_b, c, next, next_b};
    }
};

// Places that are looked up one by one, a track ahead, so that they are in the cache by then.
template <class V, int lines, class Place>
struct pool_ahead {
    place_form<V> form;
    const Place *place, *end;
    pool_spot<real_of<V>>* to;
    KC_HD void step() {
        const pool_spot<real_of<V>> spot = form(*place++);
        if (form.c)  // what is between two passes is near
            KC_UNROLL for (int i = 0; i < lines; i++) KC_PREFETCH(spot.at + i * spot.line);
        *to++ = spot;
    }
    KC_HD void step_on() {
        if (place < end) step();
    }
};

// A strip: `parts` vectors of each of `lines` lines.
template <class V, int parts, int lines>
struct pool_strip {
    using T = real_of<V>;
    static constexpr int count = parts * lines;
    static constexpr index_t width = value<V>::width;
    V part[count];
    KC_HD void clear() {
        KC_UNROLL for (int i = 0; i < count; i++) part[i] = V(T(0));
    }
    KC_HD void add(pool_spot<T> x) {
        KC_UNROLL for (int i = 0; i < count; i++) part[i] =
            part[i] + load<V>(x.at + i / parts * x.line + i % parts * width);
    }
    KC_HD void set(V weight, pool_spot<T> x) {
        KC_UNROLL for (int i = 0; i < count; i++) part[i] =
            weight * load<V>(x.at + i / parts * x.line + i % parts * width);
    }
    KC_HD void add(V weight, pool_spot<T> x) {
        KC_UNROLL for (int i = 0; i < count; i++) part[i] =
            fma(weight, load<V>(x.at + i / parts * x.line + i % parts * width), part[i]);
    }
    KC_HD void put(pool_spot<T> y) const {
        KC_UNROLL for (int i = 0; i < count; i++)
            store<V>(y.at + i / parts * y.line + i % parts * width, part[i]);
    }
};

template <class V, int parts, int lines>
KC_LOOP void pool_tracks(const plane_maps& maps, const pool_pass& pass, place_form<V> from,
                         place_form<V> to, pool_spot<real_of<V>>* spots, index_t most,
                         real_of<V>* back) {
    using T = real_of<V>;
    constexpr index_t width = value<V>::width, size = parts * lines * width;
    const index_t box = pass.box;
    const pool_term* weights = maps.terms + pass.weight;
    const V weight = weight_of<V>(*weights);
    const pool_track *track = maps.tracks + pass.track, *const end = track + pass.tracks;
    pool_ahead<V, lines, pool_item> items{from, maps.items + track->item,
                                          maps.items + track->item + track->items, spots};
    pool_ahead<V, lines, pool_sum> sums{to, maps.sums + track->sum,
                                        maps.sums + track->sum + track->sums, spots + most};
    for (pool_spot<T>*now = spots, *later = spots + 2 * most; track < end; track++) {
        while (items.place < items.end) items.step();
        while (sums.place < sums.end) sums.step();
        if (track + 1 < end) {  // they lie one after the other
            items.end += track[1].items, items.to = later;
            sums.end += track[1].sums, sums.to = later + most;
        }
        const pool_spot<T>*x = now, *y = now + most;
        later = now, now = items.to;
        const pool_sum *sum = maps.sums + track->sum, *last = sum + track->sums;
        const index_t count = track->items;
        pool_strip<V, parts, lines> up, rest;
        if (box == 0)
            for (; sum < last; sum++, y++) {
                const pool_term* tap = maps.terms + sum->tap;
                index_t k = sum->begin;
                up.set(weight_of<V>(*tap), x[k]);
                for (const index_t end = sum->end; k < end;)
                    up.add(weight_of<V>(*++tap), x[++k]);
                up.put(*y);
                items.step_on();
                sums.step_on();
            }
        for (index_t first = -track->phase; sum < last && first < count; first += box) {
            const index_t beyond = first + box < count ? first + box : count;
            rest.clear();
            for (index_t k = beyond - 1; k > first && k >= 0; k--) {
                rest.add(x[k]);
                rest.put({back + k * size, parts * width});
            }
            up.clear();
            for (index_t k = first < 0 ? 0 : first; k < beyond; k++) {
                up.add(x[k]);
                items.step_on();
                for (; sum < last && sum->end == k; sum++, y++) {
                    rest = up;
                    if (sum->begin >= 0) rest.add({back + sum->begin * size, parts * width});
                    KC_UNROLL for (int i = 0; i < parts * lines; i++) rest.part[i] =
                        weight * rest.part[i];
                    rest.put(*y);
                    sums.step_on();
                }
            }
        }
        for (; sum < last; sum++, y++) {
            rest.set(weight, {back + sum->begin * size, parts * width});
            rest.put(*y);
        }
    }
}

// Both passes on all lines, some at a time: the places of the first one's items and of the second
// one's sums. What is between them is in scratch.
template <class V>
struct pool_room {
    pool_spot<real_of<V>>* spots;  // four times `most`
    index_t most;                  // items or sums of a track
    real_of<V>* numbers;
};
template <class V, int parts, int lines>
KC_HD index_t pool_lines(const plane_maps& maps, const pool_pass* passes, const place_form<V>& from,
                         const place_form<V>& to, index_t first, index_t end,
                         const pool_room<V>& room) {
    constexpr index_t entry = parts * value<V>::width;
    const place_form<V> between{room.numbers, lines * entry, 0, 0, entry, 0};
    real_of<V>* back = room.numbers + passes[0].outputs * lines * entry;
    for (; first + lines <= end; first += lines) {
        pool_tracks<V, parts, lines>(maps, passes[0], from.moved(first), between, room.spots,
                                     room.most, back);
        pool_tracks<V, parts, lines>(maps, passes[1], between, to.moved(first), room.spots,
                                     room.most, back);
    }
    return first;
}
template <class V, int parts>
KC_HD void pool_axis(const plane_maps& maps, const pool_pass* passes, const place_form<V>& from,
                     const place_form<V>& to, index_t lines, const pool_room<V>& room) {
    constexpr int most = most_vectors / parts;
    index_t k = pool_lines<V, parts, most>(maps, passes, from, to, 0, lines, room);
    k = pool_lines<V, parts, most / 2>(maps, passes, from, to, k, lines, room);
    k = pool_lines<V, parts, most / 4>(maps, passes, from, to, k, lines, room);
    if (most > 4) pool_lines<V, parts, 1>(maps, passes, from, to, k, lines, room);
}

// The columns of a slab of `rows` rows, into as many rows of the next stage's columns.
template <class V, int parts>
KC_HD void pool_columns(const plane_maps& maps, const pool_pass* passes, real_of<V>* slab,
                        index_t rows, real_of<V>* to, const pool_room<V>& room) {
    constexpr index_t entry = parts * value<V>::width;
    pool_axis<V, parts>(maps, passes, {slab, rows * entry, 0, entry, 0, entry},
                        {to, rows * entry, 0, entry, 0, entry}, rows, room);
}

// The rows of all planes of one column bundle, which has `columns` of all columns and comes behind
// `before` of them.
template <class V, int parts>
KC_HD void pool_rows(const plane_maps& maps, const pool_pass* passes, real_of<V>* from, index_t all,
                     index_t before, index_t columns, real_of<V>* to, const pool_room<V>& room) {
    constexpr index_t entry = parts * value<V>::width;
    const place_form<V> form{from, all * entry, before * entry, columns * entry, entry, 0};
    place_form<V> target = form;
    target.base = to;
    pool_axis<V, parts>(maps, passes, form, target, columns, room);
}

}  // namespace kc
