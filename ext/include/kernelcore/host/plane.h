// Patch sums and pooling of offset planes (../plane.h), a line of entries at a time.
#pragma once

#include "../plane.h"

namespace kc {

// ---- patch sums

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
    for (int k = 0; k < map.copies; k++) {
        const column_copy c = maps.copies[map.copy + k];
        for (index_t at = 0; at < entry; at += width)
            store<V>(line + c.slot * entry + at,
                     c.from < 0 ? V(T(0)) : load<V>(line + c.from * entry + at));
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
                    const pool_term* terms = maps.terms + cell.first;
                    const T* from = line + terms[0].from * entry;
                    V sum[parts];
    KC_UNROLL for (int part = 0; part < parts; part++) sum[part] =
                        weight_of<V>(terms[0]) * load<V>(from + part * width);
                    for (int k = 1; k < cell.count; k++) {
                        from = line + terms[k].from * entry;
                        KC_UNROLL for (int part = 0; part < parts; part++) sum[part] =
                            fma(weight_of<V>(terms[k]), load<V>(from + part * width), sum[part]);
                    }
                    add_entry<V, parts>(sum, to + cell.out * entry, places);
                }
            }
        }
    }
}

}  // namespace kc
