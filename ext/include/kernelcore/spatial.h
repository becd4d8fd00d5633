// The kernels of a pair of images: a network cut into stages, and what a step does to one entry.
//
// A network is cut into stages at its poolings. Within a stage every plane (plane.h) runs through all
// steps by itself; at its end it is added into the planes of the next stage, which is coarser. The
// last stage has no steps and holds the result: one entry, or what its maps ask for.
//
// Planes hold covariances K and tangent kernels T as they are. An activation needs correlations,
// u = K / (sd_x sd_y): standard deviations, and what else it needs of single images, come from tables
// over positions, made before. An entry is `parts` values side by side: K, and T when wanted.
#pragma once

#include "plane.h"
#include "program.h"

namespace kc {

enum step_code : int {
    step_layer = 0,  // patch sum, weights, activation
    step_save = 1,   // open a residual connection
    step_swap = 2,   // branch done, run the shortcut
    step_merge = 3,  // close it
};

enum step_kind : int {
    kind_linear = 0,   // no activation
    kind_relu = 1,     // scale, gain and units are in the tables, in `bias` and in `slope`
    kind_general = 2,  // any operation of program.h; act.code < 0: none, correlations to new norms
};

// K <- scale (sum K) + bias, T <- scale (sum T) + trained K. With an activation then: correlations,
// the operation, and back, K <- u sd_x sd_y, T <- t sd_x sd_y + add K.
struct spatial_step {
    int code, kind;
    int positive;       // K is not negative where the step begins: some ReLU came before
    int rows, columns;  // first of its maps; + bundle
    int grid_columns;   // of the output
    index_t positions;  // of the output
    index_t at;  // where its tables begin: 1/sd before, sd after, then those of act, by position
    double scale, bias, trained, add;
    double slope;  // relu: scale E[phi'^2] in units of the planes before and after
    double snap;   // 1 - |u| up to here is rounding
    op act;
};

struct spatial_stage {
    int step, steps;  // first and number
    int row_bundles, column_bundles;
    int rows, columns;            // first maps of its input; + bundle
    int row_pools, column_pools;  // first pool_map; + bundle. overlaps: two passes, -1 for none
    int uniform;                  // its end gives all entries of a plane one weight and one target
    int overlaps;                 // the windows at its end do: columns first, then rows
    int slab;                     // and columns are not pooled in place
    index_t store, store_size;  // where its input planes lie among all stores, and how many entries
    index_t middle;             // overlaps: and where those with pooled columns do
    plane_store places;
};

template <class T>
struct spatial_job {
    plane_maps maps;
    const spatial_stage* stages;
    int stage_count;
    const spatial_step* steps;
    const T* coefficients;
    index_t channels, pixel_columns;
    T input_scale, input_add;  // K <- input_scale <x, y>, T <- input_add K
    index_t table_size;        // numbers per image
    index_t plane_size;        // entries of the largest plane
    index_t line_size;         // entries of the longest line
    index_t store_size;        // entries of all stores
    int slots;                 // nested residual connections
    int boxed;                 // some windows are wide
    index_t slab_size;         // entries of a slab (host/plane.h), 0 without one
    index_t pass_size;         // vectors between two passes of a pooling
    index_t track_size;        // items or sums of a track of it
};

// An image whose numbers are the same in all lanes.
template <class V>
struct one_image {
    const real_of<V>*pixels, *tables;
    KC_HD V pixel(index_t k) const { return V(pixels[k]); }
    KC_HD V table(index_t k) const { return V(tables[k]); }
    KC_HD one_image moved(index_t k) const { return {pixels, tables + k}; }
};

// The products of the channels of two pixels.
template <class V, class X, class Y>
KC_HD V multiply_channels(const X& x, index_t px, const Y& y, index_t py, index_t channels) {
    V sum = x.pixel(px) * y.pixel(py);
    for (index_t c = 1; c < channels; c++) sum = fma(x.pixel(px + c), y.pixel(py + c), sum);
    return sum;
}

// An entry of a convolution, from its patch sums.
template <class V, int parts>
struct linear_step {
    using T = real_of<V>;
    V scale, bias, trained;
    KC_HD explicit linear_step(const spatial_step& s)
        : scale(T(s.scale)), bias(T(s.bias)), trained(T(s.trained)) {}
    KC_HD void operator()(V k, V t, T* to) const {
        const V covariance = fma(scale, k, bias);
        store<V>(to, covariance);
        if constexpr (parts == 2)
            store<V>(to + value<V>::width, fma(scale, t, trained * covariance));
    }
};

// Steps without a bias and without weights of their own to add to T; plain ones make of it
// kappa0 T + K.
KC_HD bool is_simple(const spatial_step& s, int parts) {
    return s.bias == 0 && (parts == 1 || s.trained == 0);
}
KC_HD bool is_plain(const spatial_step& s, int parts) {
    return is_simple(s, parts) && (parts == 1 || (s.slope == 1 && s.add == 1));
}

// K and T of an entry, or K and kappa0.
template <class V>
struct values {
    V k, t;
};

// An entry of a convolution and ReLU, from its patch sums. The tables have sqrt(scale)/sd and the new
// sd, and bias and trained are in units of scale. Planes may have units of their own, which are in
// the tables too (Builder in images.py). Constants are held by value: a store may alias a step.
// `simple`: no bias, T trained elsewhere; `positive`: K >= 0.
template <class V, int parts, bool simple, bool positive>
struct relu_step {
    using T = real_of<V>;
    V bias, trained, add, slope, snap;
    KC_HD explicit relu_step(const spatial_step& s)
        : bias(T(s.bias)),
          trained(T(s.trained)),
          add(T(s.add)),
          slope(T(s.slope)),
          snap(T(s.snap)) {}
    // K after the step, and kappa0.
    KC_HD values<V> turn(V k, V inverse, V norm) const {
        const V one(1), zero(0);
        if constexpr (positive) {
            const V gap = fma(-k, inverse, one);
            const V delta = select(gap <= snap, zero, gap);
            const kappas<V> f = acute_kappas(delta);
            return {fma(norm * delta, f.k1, norm), f.k0};
        } else {
            const V u = k * inverse;
            const V gap = one - abs(u);
            const kappas<V> f = near_kappas(u, select(gap <= snap, zero, gap));
            return {f.k1 * norm, f.k0};
        }
    }
    KC_HD values<V> operator()(V k, V t, V inverse, V norm) const {
        if constexpr (!simple) k = k + bias;
        const values<V> now = turn(k, inverse, norm);
        if constexpr (!simple) t = fma(trained, k, t);
        return {now.k, fma(add, now.k, t * (now.t * slope))};
    }
};

// u from u itself: within rounding of +-1 it is +-1.
template <class V>
KC_HD correlation<V> snapped(V u, V snap) {
    const V one(1);
    const V gap = one - abs(u);
    const V delta = select(gap <= snap, V(0), gap);
    return {with_sign(one - delta, u), delta};
}

// The correlation of a covariance, from 1/sd of both sides.
template <class V>
KC_HD correlation<V> correlated(V k, V inverse_x, V inverse_y, V snap) {
    const V one(1), zero(0);
    const correlation<V> c = snapped(k * (inverse_x * inverse_y), snap);
    const auto nulls = maximum(inverse_x, inverse_y) <= zero;  // two zero patches
    return {select(nulls, one, c.u), select(nulls, zero, c.delta)};
}

// And back: K = u sd_x sd_y, T = t sd_x sd_y + add K.
template <class V, int parts>
KC_HD void write_entry(V u, V t, V sd, V add, real_of<V>* to) {
    const V covariance = u * sd;
    store<V>(to, covariance);
    if constexpr (parts == 2) store<V>(to + value<V>::width, fma(add, covariance, t * sd));
}

}  // namespace kc
