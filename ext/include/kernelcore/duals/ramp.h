// Relu, LeakyRelu, Abs, Step, Sign with a shift, and what else is linear on both sides of a kink that
// is not at zero. As in one_kink.h phi is the formula of the side with zero, b0 + b1 x, plus a tail
//     c0 + c1 s,  s = turn x - q > 0,  q > 0,
// whose size bounds the error. With h = q / sd, g_i = (h_j - u h_i) / sqrt(1 - u^2), e_i the normal
// density at h_i times Q(g_i), L the quadrant beyond h_i and h_j (two sectors, normal.h) and d the
// density of both at its corner (Owen 1956; Tallis 1961),
//     E[1] = L,   E[s] = sd_i (e_i + u e_j) - q L,
//     E[s t] = sd_i sd_j ((u + h_i h_j) L - h_j e_i - h_i e_j + sqrt(1 - u^2) d).
// All else depends on one input alone and is in tables. Errors are those stated in one_kink.h; both
// orders of the inputs give the same bits.
#pragma once

#include "../normal.h"
#include "../pair.h"

namespace kc {

// One input, from its tables: h > 0, e^(-h^2/2), Q(h).
template <class V>
struct beyond_kink {
    V h, end, mass;
};

// What the edge of one input adds to a pair: its sector, and e as above.
template <class V>
struct kink_edge {
    V sector, mass;
};

template <class V>
KC_HD kink_edge<V> make_edge(const beyond_kink<V>& k, V g, V corner) {
    using T = real_of<V>;
    const V one(1), half(T(0.5)), two(T(2)), zero(0), root_2pi(T(0.39894228040143268));
    const V y = abs(g), lesser = minimum(k.h, y);
    const V beyond = corner * mills(y) * root_2pi;  // e^(-h^2/2) Q(|g|)
    const auto outer = two < lesser;
    V part = inner_sector(minimum(lesser, two), maximum(k.h, y));
    if (any(outer)) part = select(outer, outer_sector(k.h, y), part);
    const V lift = one / maximum(k.end, V(T(0.1353352832366127)));  // e^(min(h, 2)^2/2)
    const V far = lift * fma(corner, part, beyond * (k.mass - half));
    const V inner = select(y <= k.h, fma(-k.end, part, half * k.mass), far);
    const V sector = select(outer, corner * part, inner);
    const auto behind = g < zero;
    return {select(behind, k.mass - sector, sector),
            root_2pi * select(behind, k.end - beyond, beyond)};
}

// The quadrant beyond both kinks: L, e_i, e_j and d.
template <class V>
struct kink_corner {
    V both, mass_i, mass_j, density;
};

// Where its corner lies: g_i, g_j, their squares, and twice the square of its distance from the
// origin, r^2 = h_i^2 + g_i^2 = h_j^2 + g_j^2.
template <class V>
struct corner_place {
    V gi, gj, gi2, gj2, twice;
};

// apart = sqrt(apart2), apart2 = 1 - u^2 > 0. The squares need not wait for the root.
template <class V>
KC_HD corner_place<V> find_corner(const correlation<V>& rho, V hi, V hj, V apart, V apart2) {
    const V one(1), room = one / apart2;
    // h_j - u h_i = (h_j -+ h_i) +- delta h_i: to the last place if h_i and h_j are.
    const V side = with_sign(one, rho.u), shift = side * rho.delta;
    const V gap = fma(-side, hi, hj);
    const V ti = fma(shift, hi, gap), tj = fma(shift, hj, -(side * gap));
    const V gi2 = ti * ti * room, gj2 = tj * tj * room, root = apart * room;
    return {ti * root, tj * root, gi2, gj2, (hi * hi + hj * hj) + (gi2 + gj2)};
}

// A function of its own, so that the loop that rarely needs it keeps its registers.
template <class V>
KC_LOOP void any_corner(const corner_place<V>& at, const beyond_kink<V>& i, const beyond_kink<V>& j,
                        kink_corner<V>* found) {
    using T = real_of<V>;
    const V most(T(40)), least(-most);
    const V gi = maximum(minimum(at.gi, most), least), gj = maximum(minimum(at.gj, most), least);
    // Both sums of squares are the same but for rounding.
    const V corner = exp(V(T(-0.25)) * (fma(i.h, i.h, gi * gi) + fma(j.h, j.h, gj * gj)));
    const kink_edge<V> ei = make_edge(i, gi, corner), ej = make_edge(j, gj, corner);
    *found = {ei.sector + ej.sector, ei.mass, ej.mass, corner * V(T(0.15915494309189535))};
}

constexpr int near_terms = 7, near_first = 9;  // tables of near_corner

template <class V, class X>
KC_HD V near_series(V z, const X& x) {
    constexpr int last = near_first + near_terms - 1;
    static_assert(near_terms % 2 == 1, "the last power is even");
    const V square = z * z;
    V even = x(last), odd = x(last - 1);
    KC_UNROLL for (int k = last - 2; k >= near_first; k -= 2) even = fma(even, square, x(k));
    KC_UNROLL for (int k = last - 3; k >= near_first; k -= 2) odd = fma(odd, square, x(k));
    return fma(odd, z, even);
}

// r^2 <= near_square, in float. With 1/r^2 - (1 - e^(-r^2/2))/r^2 for e^(-r^2/2)/r^2 both sectors
// are angles, which add up to that of the quadrant, less integrals that are odd and entire in g:
// polynomials whose coefficients are tables (kinks.py). Those, Q(g) and d are in powers of
// near_square - g^2, or - r^2, whose coefficients are positive: nothing cancels but the sectors
// themselves, which costs 1/L <= 25 units of rounding.
template <class V, bool bend, class X, class Y>
KC_HD kink_corner<V> near_corner(const correlation<V>& rho, const corner_place<V>& at, V apart,
                                 const X& x, const Y& y) {
    using T = real_of<V>;
    const V one(1), zero(0), half(T(0.5)), middle(T(0.19947114020071635)), top = V(T(near_square));
    const V angle = apart * near_angle(rho.delta);
    const V wedge = select(rho.u < zero, angle - one, -angle);
    const V zi = top - at.gi2, zj = top - at.gj2;
    const V both = fma(half, wedge + (x(5) + y(5)),
                       at.gi * near_series(zi, x) + at.gj * near_series(zj, y));
    if constexpr (!bend) return {both, zero, zero, zero};
    return {both, x(4) * fma(-at.gi, near_line(zi), middle),
            y(4) * fma(-at.gj, near_line(zj), middle), near_density(fma(-half, at.twice, top))};
}

// From the tables of both inputs (program.h). jump: c0 is not 0; bend: c1 is not 0.
template <class V, bool jump, bool bend>
struct ramp {
    V q, c0, c1;

    template <class X, class Y>
    KC_HD dual<V> operator()(const correlation<V>& rho, const X& x, const Y& y) const {
        using T = real_of<V>;
        const V two(T(2)), u = rho.u, hi = x(3), hj = y(3);
        const V least = V(T(is_single<V> ? 1e-36 : 1e-280));  // instead of a zero
        const V apart2 = maximum(rho.delta * (two - rho.delta), least), apart = sqrt(apart2);
        const corner_place<V> at = find_corner(rho, hi, hj, apart, apart2);
        const kink_corner<V> c = corner(rho, at, apart, x, y);
        // What tables say of E[phi phi] besides K and the tails; of d/dK without and with jumps.
        const V mean = x(6) + y(6), rise = x(7) + y(7), all = jump ? x(8) + y(8) : rise;
        const V si = x(0), sj = y(0), r = si * sj;
        V value = fma(r * u, all, mean), slope = rise;
        if constexpr (jump) value = fma(c0 * c0, c.both, value);
        if constexpr (bend) {
            const V product = r * (fma(fma(hi, hj, u), c.both, apart * c.density) -
                                   (hj * c.mass_i + hi * c.mass_j));
            value = fma(c1 * c1, product, value);
            slope = fma(c1 * c1, c.both, slope);
        }
        if constexpr (jump && bend) {
            const V first = (si * fma(u, c.mass_j, c.mass_i) + sj * fma(u, c.mass_i, c.mass_j)) -
                            two * q * c.both;
            value = fma(c0 * c1, first, value);
        }
        return {value, slope};
    }

    // Each lane by its own rule, whatever its neighbours need.
    template <class X, class Y>
    KC_HD kink_corner<V> corner(const correlation<V>& rho, const corner_place<V>& at, V apart,
                                const X& x, const Y& y) const {
        using T = real_of<V>;
        if constexpr (is_single<V>) {
            const kink_corner<V> c = near_corner<V, bend>(rho, at, apart, x, y);
            const auto far = V(T(2 * near_square)) < at.twice;
            if (!any(far)) return c;
            const kink_corner<V> f = any_corner_of(at, x, y);
            return {select(far, f.both, c.both), select(far, f.mass_i, c.mass_i),
                    select(far, f.mass_j, c.mass_j), select(far, f.density, c.density)};
        } else
            return any_corner_of(at, x, y);
    }

    template <class X, class Y>
    static KC_HD kink_corner<V> any_corner_of(const corner_place<V> at, const X& x, const Y& y) {
        kink_corner<V> found;
        any_corner(at, {x(3), x(4), x(5)}, {y(3), y(4), y(5)}, &found);
        return found;
    }
};

}  // namespace kc
