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

// One input, from its tables: h > 0, e^(-h^2/2), e^(min(h, 2)^2/2), Q(h).
template <class V>
struct beyond_kink {
    V h, end, lift, mass;
};

// What the edge of one input adds to a pair: its sector, and e as above.
template <class V>
struct kink_edge {
    V sector, mass;
};

template <class V>
KC_HD kink_edge<V> make_edge(const beyond_kink<V>& k, V g, V corner) {
    using T = real_of<V>;
    const V half(T(0.5)), two(T(2)), zero(0), root_2pi(T(0.39894228040143268));
    const V y = abs(g), lesser = minimum(k.h, y);
    const V beyond = corner * mills(y) * root_2pi;  // e^(-h^2/2) Q(|g|)
    const auto outer = two < lesser;
    V part = inner_sector(minimum(lesser, two), maximum(k.h, y));
    if (any(outer)) part = select(outer, outer_sector(k.h, y), part);
    const V far = k.lift * fma(corner, part, beyond * (k.mass - half));
    const V inner = select(y <= k.h, fma(-k.end, part, half * k.mass), far);
    const V sector = select(outer, corner * part, inner);
    const auto behind = g < zero;
    return {select(behind, k.mass - sector, sector),
            root_2pi * select(behind, k.end - beyond, beyond)};
}

// mean: what tables say of E[phi phi] besides K and the tails; rise: the same of d/dK, without
// jumps, and jump: with them.
template <class V>
KC_HD dual<V> ramp(const pair<V>& p, V sd_i, V sd_j, const beyond_kink<V>& i,
                   const beyond_kink<V>& j, V mean, V rise, V jump, V q, V c0, V c1) {
    using T = real_of<V>;
    const V one(1), two(T(2)), quarter(T(0.25)), most(T(40)), least(-most);
    const V u = p.rho.u, delta = p.rho.delta;
    const V apart = sqrt(delta * (two - delta));
    const V room = one / maximum(apart, V(T(is_single<V> ? 1e-18 : 1e-140)));
    // h_j - u h_i = (h_j -+ h_i) +- delta h_i: to the last place if h_i and h_j are.
    const V side = with_sign(one, u), shift = side * delta;
    const V gi = maximum(minimum(fma(shift, i.h, j.h - side * i.h) * room, most), least);
    const V gj = maximum(minimum(fma(shift, j.h, i.h - side * j.h) * room, most), least);
    // Both sums of squares are the same but for rounding.
    const V corner = exp(-quarter * (fma(i.h, i.h, gi * gi) + fma(j.h, j.h, gj * gj)));
    const kink_edge<V> ei = make_edge(i, gi, corner), ej = make_edge(j, gj, corner);
    const V both = ei.sector + ej.sector;
    const V first =
        (sd_i * fma(u, ej.mass, ei.mass) + sd_j * fma(u, ei.mass, ej.mass)) - two * q * both;
    const V product =
        p.r * (fma(fma(i.h, j.h, u), both, apart * (corner * V(T(0.15915494309189535)))) -
               (j.h * ei.mass + i.h * ej.mass));
    const V tails = fma(c0 * c0, both, c1 * fma(c0, first, c1 * product));
    return {mean + fma(p.k, jump, tails), fma(c1 * c1, both, rise)};
}

}  // namespace kc
