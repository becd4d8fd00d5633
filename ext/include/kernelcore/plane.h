// Offset planes: patch sums and pooling.
//
// Before a pooling, K[p, p'] only meets entries of the same offset p' - p. A plane holds the entries
// of one offset per axis (or of the few offsets that a circular border joins: a bundle) and runs
// through all layers by itself. Both axes are described by index maps, made once per network and
// image size; paddings, strides and borders are in the maps, and here there are none.
//
// An entry is `parts` values side by side: the covariance K, and the tangent kernel T when wanted.
#pragma once

#include "lanes.h"

namespace kc {

// ---- the maps

// Output row: positions in both images, and the rows of the old plane that it sums.
struct row_sum {
    int x, y, first, count;
};
struct row_map {
    int outputs, first;  // of row_sum
    int most;            // sources of a row
};

// Columns are gathered into a line of slots, with zeros and copies where the border asks for them, so
// that output k of a run is the sum of `taps` neighbouring slots from slot + k step on.
struct column_load {
    int from, slot, count;
};
struct column_copy {
    int from, slot;  // from < 0: zero
};
struct column_run {
    int out, count, slot, step;
    int x, y, move;  // positions of the first output in both images, and how far each next one is
};
struct column_place {
    int x, y;  // positions of an output in both images
};
struct column_map {
    int outputs, taps;
    int place;                                 // first column_place
    int load, loads, copy, copies, run, runs;  // first and number of each
};

// The end of a stage: what a plane adds to the planes of the next one, per axis.
struct pool_term {
    int from;
    float weight_float;
    double weight;
};
struct pool_cell {
    int out, first, count;  // of pool_term
};
struct pool_target {
    int bundle, first, count;  // of pool_cell
};
struct pool_map {
    int first, count;  // of pool_target
};

// All maps of a network, each kind in one array.
struct plane_maps {
    const row_map* rows;
    const row_sum* row_sums;
    const int* row_sources;
    const column_map* columns;
    const column_place* places;
    const column_load* loads;
    const column_copy* copies;
    const column_run* runs;
    const pool_map* pools;
    const pool_target* targets;
    const pool_cell* cells;
    const pool_term* terms;
    const index_t* store_at;
    const int* store_columns;
};

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

template <class V>
KC_HD V weight_of(const pool_term& t) {
    if constexpr (is_single<V>)
        return V(t.weight_float);
    else
        return V(t.weight);
}

// Where the planes of a stage lie: bundle (i, j) has store_at[at + i * bundles + j] entries before it
// and rows of store_columns[columns + j]. A sum over thousands of planes (a global mean) keeps what
// it rounds away in a second copy of itself, `lost` entries behind; 0: it does not.
struct plane_store {
    int at, columns, bundles, lost;
};

// sum += x, and the rounding error of it (Knuth's two-sum) to *lost.
template <class V>
KC_HD void add_exactly(real_of<V>* sum, real_of<V>* lost, V x) {
    const V old = load<V>(sum);
    const V now = old + x, back = now - old;
    store<V>(sum, now);
    store<V>(lost, load<V>(lost) + ((old - (now - back)) + (x - back)));
}

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
                    T* place = to + cell.out * entry;
                    KC_UNROLL for (int part = 0; part < parts; part++, place += width) {
                        if (places.lost)
                            add_exactly<V>(place, place + places.lost * entry, sum[part]);
                        else
                            store<V>(place, load<V>(place) + sum[part]);
                    }
                }
            }
        }
    }
}

}  // namespace kc
