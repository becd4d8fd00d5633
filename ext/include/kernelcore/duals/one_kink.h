// An activation with one kink,
//     phi(x) = p0 + p1 x + p2 e^x  for x > k,     phi(x) = m0 + m1 x + m2 e^x  for x < k:
// Elu and Selu with a shift, at large variances, and in double; ramp.h and bent.h have simpler cases.
//
// phi is one side's formula plus a tail beyond k. Turn the tail to the right, X = -x or x, and let
// q be where it begins, s = X - q, t = Y - q the distances into it, e = e^-s or e^-t:
//     tail = 1(s > 0) (c0 + c1 s + g e).
// Expectations over s, t > 0 reduce by Stein's E[X f] = a E[f_X] + K E[f_Y] to
//     E[1], E[1 e_j], E[e_i 1], E[e_i e_j]      (quadrants, the mean moved by the exponential)
// and to integrals along the edges s = 0 and t = 0: normal.h. Where a kink lies away from zero and
// there is no exponential, the tail is the side without zero: its size bounds the error.
//
// E[e_i e_j] and its like cancel to order a c when that is small. So if sd_i sd_j, and the smaller
// sd and |q| together, are at most 1/2, the smaller side's tail is its Taylor series
// c0 + g + (c1 - g) s + g s^2/2 - .., whose moments E[s^m f(Y)] follow from m = 0 by Stein's
// recurrence; errors grow with exp(|K| + |q|) there, and do not cancel.
//
// With D(v) = E[phi^2] at variance v (of phi' for the slope), variances 1e-4 .. 30 and |k| <= 3,
// errors are below 2e-14 sqrt(D D) in double and 5e-6 in float, and mostly below 2e-15 and 1e-6;
// small sd with c1 != g, as Selu has, is worst. Where D itself is small because phi or phi' nearly
// vanishes around zero (Relu or Elu shifted by -3), they are 1e-15 and 5e-7 relative to the size of
// the other side instead.
#pragma once

#include "../normal.h"
#include "../pair.h"

namespace kc {

// One shape for all lanes.
template <class V>
struct kink_shape {
    V k, p0, p1, p2, m0, m1, m2;
};

// The tail, and what it is added to.
template <class V>
struct tail_shape {
    V turn, q;     // X = turn x
    V b0, b1, b2;  // base, in x
    V c0, c1, g;   // tail, in s
};

template <class V>
KC_HD tail_shape<V> split_tail(const kink_shape<V>& f, bool bent) {
    using T = real_of<V>;
    const V zero(0), one(1);
    // A bent tail must be the left one: on the right e^x would cancel between base and tail.
    const auto right = bent ? one < zero : zero < f.k;
    const V turn = select(right, one, -one);
    const V d0 = turn * (f.p0 - f.m0), d1 = turn * (f.p1 - f.m1);
    const V g = bent ? (f.m2 - f.p2) * exp(f.k) : V(T(0));
    return {turn,
            turn * f.k,
            select(right, f.m0, f.p0),
            select(right, f.m1, f.p1),
            f.p2,
            fma(d1, f.k, d0),
            turn * d1,
            g};
}

// E[1], E[s], E[e] over s > 0 for one X of standard deviation sd; q = h sd away from its mean,
// end = e^(-h^2/2).
template <class V>
struct tail_means {
    V one, s, e, density;  // density at s = 0, times sd
};

template <class V>
KC_HD tail_means<V> single(V sd, V q, V h, V end, bool bent) {
    using T = real_of<V>;
    const V half(T(0.5)), zero(0);
    const half_line<V> plain = make_half_line(h, zero, end);
    const V density = end * V(T(0.39894228040143268));
    const V e = bent ? make_half_line(h + sd, fma(half * sd, sd, q), end).mass : zero;
    return {plain.mass, fma(sd, density, -q * plain.mass), e, density};
}

// q / sd, between -40 and 40: beyond, all is as at infinity, even in double.
template <class V>
KC_HD V in_units(V q, V sd) {
    using T = real_of<V>;
    return maximum(minimum(q / sd, V(T(40))), V(T(-40)));
}

template <class V>
KC_HD dual<V> one_kink(const pair<V>& p, V sd_i, V sd_j, const kink_shape<V>& f) {
    using T = real_of<V>;
    const V zero(0), one(1), half(T(0.5)), two(T(2)), inverse_2pi(T(0.15915494309189535));
    const V root_2pi(T(0.39894228040143268));
    const bool bent = any(zero < abs(f.m2 - f.p2)), exponential_base = any(zero < abs(f.p2));
    const tail_shape<V> w = split_tail(f, bent);
    const V q = w.q, c0 = w.c0, c1 = w.c1, g = w.g;

    // The smaller of the two is i from here on.
    const V si = minimum(sd_i, sd_j), sj = maximum(sd_i, sd_j);
    const V a = si * si, c = sj * sj, k = p.k, u = p.rho.u, delta = p.rho.delta;
    const V apart2 = delta * (two - delta), apart = sqrt(apart2);  // sin of the angle

    const V floor(T(is_single<V> ? 1e-18 : 1e-140));  // instead of a zero
    const V di = maximum(si, floor), dj = maximum(sj, floor);
    const V hi = in_units(q, di), hj = in_units(q, dj);
    // h_j - u h_i = (h_j -+ h_i) +- delta h_i: to the last place if h_i and h_j are.
    const V side = with_sign(one, u), shift = side * delta;
    const V room = maximum(apart, floor);
    const V gi = in_units(fma(shift, hi, hj - side * hi), room);
    const V gj = in_units(fma(shift, hj, hi - side * hj), room);
    const V corner = exp(-half * fma(hi, hi, gi * gi));

    // The edge s = 0 with e_j = e^-t along it or not; on it t has mean -ti and variance c apart^2.
    const V ti = fma(-u * hi, sj, q), tj = fma(-u * hj, si, q);
    half_line<V> edge_i[2], edge_j[2];
    edge_i[0] = make_half_line(gi, -half * hi * hi, corner);
    edge_j[0] = make_half_line(gj, -half * hj * hj, corner);
    const V on_i = edge_i[0].mass * root_2pi, on_j = edge_j[0].mass * root_2pi;

    const V extent = maximum(si + abs(q), si * sj);
    bool some_small = false, some_large = false;
    if (bent) {
        some_small = any(extent <= half);
        some_large = any(half < extent);
        edge_i[1] = make_half_line(fma(sj, apart, gi),
                                   fma(half * c, apart2, fma(-half * hi, hi, ti)), corner);
        edge_j[1] = make_half_line(fma(si, apart, gj),
                                   fma(half * a, apart2, fma(-half * hj, hj, tj)), corner);
    }

    // E[1], E[1 e_j], E[e_i 1], E[e_i e_j] over s, t > 0.
    V area[4] = {zero, zero, zero, zero};
    const int count = !bent ? 1 : some_large ? 4 : 2;
    for (int n = 0; n < count; n++) {
        const int ei = n / 2, ej = n % 2;
        const V a_i = V(T(ei)) * si, a_j = V(T(ej)) * sj;
        // a_i + u a_j as above: a difference that may vanish.
        const auto negative = u < zero;
        const V move_i = select(negative, fma(a_j, delta, a_i - a_j), fma(u, a_j, a_i));
        const V move_j = select(negative, fma(a_i, delta, a_j - a_i), fma(u, a_i, a_j));
        const V exponent = fma(half, fma(a_i, move_i, a_j * move_j), V(T(ei + ej)) * q);
        area[n] =
            quadrant(hi + move_i, hj + move_j, edge_i[ej], edge_j[ei], u, apart, corner, exponent);
    }

    // E[s], E[t], E[s t].
    const V both = area[0];
    const V first_i = fma(si, fma(u, on_j, on_i), -q * both);
    const V first_j = fma(sj, fma(u, on_i, on_j), -q * both);
    const V product_edge = fma(sj * apart, corner * inverse_2pi, -ti * on_i);
    const V product = fma(k, both, fma(si, product_edge, -q * first_j));
    V value = fma(c0 * c0, both, c1 * fma(c0, first_i + first_j, c1 * product));
    V slope = c1 * c1 * both;

    if (bent) {
        const V edge_e = edge_i[1].mass * root_2pi;
        if (some_large) {
            const V se = fma(si, fma(u, on_j, edge_e), -(q + k) * area[1]);
            const V es = fma(sj, fma(u, on_i, edge_j[1].mass * root_2pi), -(q + k) * area[2]);
            const V singles = area[1] + area[2];
            value = fma(g, fma(c0, singles, fma(c1, se + es, g * area[3])), value);
            slope = fma(g, fma(-c1, singles, g * area[3]), slope);
        }
        if (some_small) {
            // E[s^m / m! f(Y)] for f = 1, t, e_j, and for the density of t = 0 (times sd_j).
            V m1 = both, mt = first_j, me = area[1], md = on_j;
            V m1_last = zero, mt_last = zero, me_last = zero, md_last = zero;
            V edge_1 = si * on_i, edge_t = si * product_edge, edge_s = si * edge_e;
            V edge_d = si * apart * corner * inverse_2pi;
            V taylor_value = zero, taylor_slope = zero, sign = one;
            constexpr int terms = is_single<V> ? 12 : 24;
            for (int m = 0; m < terms; m++) {
                const V factor = m == 0 ? c0 + g : m == 1 ? c1 - g : g * sign;
                const V bend = m == 0 ? c1 - g : -g * sign;
                taylor_value = fma(factor, fma(c0, m1, fma(c1, mt, g * me)), taylor_value);
                taylor_slope = fma(bend, fma(c1, m1, -g * me), taylor_slope);
                const V over(T(1.0 / (m + 1)));
                const V next_1 = over * (fma(a, m1_last, fma(-q, m1, u * si * md)) + edge_1);
                const V next_t = over * (fma(a, mt_last, fma(-q, mt, k * m1)) + edge_t);
                const V next_e = over * (fma(a, me_last, fma(-(q + k), me, u * si * md)) + edge_s);
                const V next_d = over * (fma(a * apart2, md_last, -tj * md) + edge_d);
                m1_last = m1, mt_last = mt, me_last = me, md_last = md;
                m1 = next_1, mt = next_t, me = next_e, md = next_d;
                edge_1 = edge_t = edge_s = edge_d = zero;  // only s^0 has an edge
                sign = -sign;
            }
            const auto small = extent <= half;
            value = select(small, taylor_value, value);
            slope = select(small, taylor_slope, slope);
        }
    }

    // Base with tail, base with base.
    const tail_means<V> one_i = single(si, q, hi, edge_i[0].full, bent);
    const tail_means<V> one_j = single(sj, q, hj, edge_j[0].full, bent);
    const V sum_1 = one_i.one + one_j.one, sum_s = one_i.s + one_j.s, sum_e = one_i.e + one_j.e;
    const V mean = fma(c0, sum_1, fma(c1, sum_s, g * sum_e));
    const V rise = fma(c1, sum_1, -g * sum_e);
    const V jump = (c0 + g) * u * fma(si, one_j.density, sj * one_i.density);
    value = fma(w.b0, w.b0 + mean, fma(w.b1, fma(w.turn, fma(k, rise, jump), w.b1 * k), value));
    slope = fma(w.b1, fma(w.turn, rise, w.b1), slope);

    if (exponential_base) {
        // e^x moves the mean of y by K.
        const V qk = q - w.turn * k, fi = in_units(qk, di), fj = in_units(qk, dj);
        const tail_means<V> far_i = single(si, qk, fi, exp(-half * fi * fi), bent);
        const tail_means<V> far_j = single(sj, qk, fj, exp(-half * fj * fj), bent);
        const V grow_i = exp(half * a), grow_j = exp(half * c), grow = grow_i + grow_j;
        const V cross = w.b2 * exp(fma(half, a + c, k));
        const V far_1 = fma(grow_i, far_j.one, grow_j * far_i.one);
        const V far_s = fma(grow_i, far_j.s, grow_j * far_i.s);
        const V far_e = fma(grow_i, far_j.e, grow_j * far_i.e);
        const V far_mean = fma(c0, far_1, fma(c1, far_s, g * far_e));
        const V far_rise = fma(c1, far_1, -g * far_e);
        value = fma(w.b2, fma(grow, fma(w.b1, k, w.b0), cross + far_mean), value);
        slope = fma(w.b2, fma(w.b1, grow, fma(w.turn, far_rise, cross)), slope);
    }
    return {value, slope};
}

}  // namespace kc
