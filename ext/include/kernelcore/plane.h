// Offset planes: which entries a network joins.
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

// Output row: positions in both images, and the rows of the old plane that it sums.
struct row_sum {
    int x, y, first, count;
};
struct row_map {
    int outputs, first;  // of row_sum
    int most;            // sources of a row
    int box, span;  // box > 0: sources are neighbours, at most `box`, among the first `span` rows;
                    // those of fewer begin or end with a block of `box` rows, or with the span
    int near;       // the sources of row r are among r - 1, r and r + 1
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
    int three;  // outputs are sums of three neighbours; beyond the ends zeros (1), the other end (2),
                // or beyond the ends of every run zeros (3), where planes are joined
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

// The same where windows overlap, in two passes on an axis: over the positions p of one image, from
// (p, p') to (q, p') for windows q, then over those of the other, to (q, q'). A track is what one
// pass makes of neighbours that differ in the summed position alone. An entry's place in memory is
// a A + b B + c C, with factors that its side of the pass knows (place_form in host/plane.h).
struct pool_item {
    int a, b, c;
};
// box > 0: the sum of items begin .. end of a track, all with the pass's weight, from sums over
// blocks of `box` positions: of those from `begin` to the end of its block (begin < 0: of none) and
// of those from the beginning of the block of `end` on (end beyond all items: of none). box = 0: of
// items begin .. end with the weights from `tap` on.
struct pool_sum {
    int a, b, c;
    int begin, end, tap;
};
struct pool_track {
    int item, items, sum, sums;  // first and number of each; sums by `end`
    int phase;                   // how many positions of its block are before the first item
};
struct pool_pass {
    int track, tracks, outputs, box, weight;  // the first pool_term of its weights
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
    const pool_pass* passes;
    const pool_track* tracks;
    const pool_item* items;
    const pool_sum* sums;
    const pool_term* terms;
    const index_t* store_at;
    const int* store_columns;
};

template <class V>
KC_HD V weight_of(const pool_term& t) {
    if constexpr (is_single<V>)
        return V(t.weight_float);
    else
        return V(t.weight);
}

// Where the planes of a stage lie: bundle (i, j) has store_at[at + i * bundles + j] entries before it
// and rows of store_columns[columns + j]. A sum over thousands of planes (a global mean) keeps what it
// rounds away in a second copy of itself, `lost` entries behind; 0: it does not.
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

}  // namespace kc
