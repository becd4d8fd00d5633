// The normal distribution of one and of two variables, scaled so that nothing under- or overflows.
//
// One variable: mills(x) = exp(x^2/2) int_x^inf exp(-y^2/2) dy, from which
//     e^E Q(g) = e^(E - g^2/2) mills(g) / sqrt(2 pi)  for g >= 0,  Q(g) = P(z > g).
// Two variables, z in the plane: a quadrant {z.n_1 > h_1, z.n_2 > h_2}, n_1.n_2 = u, is seen from
// the origin as two sectors, each between an edge and the ray to the corner (Owen 1956). The edge
// at distance h begins at its corner y = g_1 = (h_2 - u h_1) / sqrt(1 - u^2), and
//     P(sector) = (1/2 pi) int_g^inf e^(-h^2/2 - y^2/2) h / (h^2 + y^2) dy.
// The poles +-i h make that integral hard as it stands. As Patefield & Tandy (2000) do, integrate
// what is short instead: [0, g] if g <= h, and for h < g the sector reflected in its ray, [0, h]
// with poles +-i g; the rest is elementary. That subtracts, and costs exp(min(g, h)^2/2) relative
// to the density at the corner; so where both exceed 2 the integral is taken as it stands.
// Results are e^A P: callers give the exponents already added up, each without cancellation.
// Error of the integrals 1e-16 and 3e-16 (double), 2e-8 and 4e-9 (float), relative to the larger
// of e^A P(sector) and the density at the corner.
#pragma once

#include "elementary.h"

namespace kc {

// mills(x) for x >= 0: (1 + x) mills(x) is a polynomial in (x - q)/(x + q) (Shepherd & Laframboise
// 1981, for erfc), relative error of the polynomial 1.8e-17 (double, q = 5), 3.9e-8 (float, q = 4).
template <class V>
KC_HD V mills(V x) {
    using T = real_of<V>;
    const V q(T(is_single<V> ? 4 : 5)), one(1);
    const V room = x + q, next = one + x, over = one / (room * next);
    const V t = (x - q) * (next * over);
    V f;
    if constexpr (is_single<V>)
        f = horner(t, 1.183261905f, -0.2423993148f, 0.03509257944f, 0.07168322155f, -0.08071634538f,
                   0.04500103989f, -0.01250234556f, -0.000816737194f, 0.001666879458f,
                   -0.000125307637f, -0.0001456131328f);
    else
        f = horner(t, 1.156848628291894582, -0.2294875382521131594, 0.0777815988687376876,
                   0.0250721793016388, -0.06617760077909630569, 0.06150504584018649837,
                   -0.03802659218584138512, 0.01634823128102938602, -0.004201290329187317464,
                   0.00001953063837075484687, 0.0004570439235795882718, -0.0001343742785569572744,
                   -0.00002480583845207846583, 0.000022709612708805585, -1.763323923606090385e-7,
                   -3.277287632432253495e-6, 3.205431661644296606e-7, 4.919962322448835614e-7,
                   -6.588974463956613762e-8, -7.75852017132400314e-8, 9.092476019424838963e-9,
                   1.103207088269503467e-8, -7.073898367719428773e-10, -9.564832457051415976e-10);
    return f * (room * over);
}

// A half-line y > g with density e^E e^(-y^2/2) / sqrt(2 pi) along it.
template <class V>
struct half_line {
    V g;
    V full;    // e^E, the mass of the whole line
    V beyond;  // e^E Q(|g|)
    V mass;    // e^E Q(g)
};

// end = e^(E - g^2/2).
template <class V>
KC_HD half_line<V> make_half_line(V g, V exponent, V end) {
    using T = real_of<V>;
    const V full = exp(exponent);
    const V beyond = end * mills(abs(g)) * V(T(0.39894228040143268));
    return {g, full, beyond, select(g < V(0), full - beyond, beyond)};
}

// (1/2 pi) int_lo^hi e^((lo^2 - y^2)/2) pole / (pole^2 + y^2) dy by Gauss and Legendre, n nodes:
// x and 1 - x for each x of the table.
template <int n, class V>
KC_HD V sector_rule(V lo, V hi, V pole) {
    using T = real_of<V>;
    static_assert(n == 8 || n == 12 || n == 18, "the rules tabled");
    constexpr int first = n == 8 ? 0 : n == 12 ? 4 : 10;
    constexpr double node[] = {
        0.019855071751231884,  0.10166676129318663,  0.23723379504183551,  // 8
        0.4082826787521751,                                                //
        0.0092196828766403747, 0.047941371814762572, 0.11504866290284766,  // 12
        0.20634102285669128,   0.3160842505009099,   0.43738329574426554,  //
        0.0042174157895345266, 0.022088025214301122, 0.05369876675122213,  // 18
        0.098147520513738442,  0.1541564784698234,   0.22011458446302623,  //
        0.29412441926857868,   0.37405688715424725,  0.45761249347913235};
    constexpr double weight[] = {
        0.05061426814518813,  0.11119051722668724,  0.15685332293894364,   // 8
        0.18134189168918099,                                               //
        0.023587668193255914, 0.053469662997659215, 0.080039164271673113,  // 12
        0.10158371336153296,  0.1167462682691774,   0.12457352290670139,   //
        0.010808006763241655, 0.024857274447484898, 0.038212865127444528,  // 18
        0.050471022053143583, 0.06127760335573923,  0.070321457335325326,  //
        0.077342337563132622, 0.082138241872916361, 0.084571191481571796};
    const V one(1), half(T(0.5)), inverse = one / pole, span = hi - lo;
    V sum(0);
    for (int k = first; k < first + n / 2; k++) {
        const V step = span * V(T(node[k]));
        const V y0 = lo + step, y1 = hi - step;
        const V x0 = y0 * inverse, x1 = y1 * inverse;
        const exp_parts<V> e0 = split_exp(half * (lo - y0) * (lo + y0));
        const exp_parts<V> e1 = split_exp(half * (lo - y1) * (lo + y1));
        const V s0 = exp2i(e0.n), s1 = exp2i(e1.n);  // exponents lie in [-40, 0]
        const V d0 = fma(x0, x0, one), d1 = fma(x1, x1, one);
        const V f0 = fma(s0, e0.fraction, s0), f1 = fma(s1, e1.fraction, s1);
        const V both = fma(f0, d1, f1 * d0) / (d0 * d1);
        sum = fma(V(T(weight[k])), both, sum);
    }
    return sum * span * inverse * V(T(0.15915494309189535));
}

// (1/2 pi) int_0^near e^(-y^2/2) far / (far^2 + y^2) dy for near <= 2, near <= far. In float it is a
// polynomial in near^2 and a^2, a = near/far, over one in a^2, which has poles near those of the rule.
template <class V>
KC_HD V inner_sector(V near, V far) {
    if constexpr (is_single<V>) {
        const V a = near / maximum(far, V(1e-30f));
        return a * sector_ratio(near * near, a * a);
    } else
        return sector_rule<12>(V(0), near, far);
}

// (1/2 pi) int_g^inf e^((g^2 - y^2)/2) h / (h^2 + y^2) dy for g, h >= 2.
template <class V>
KC_HD V outer_sector(V h, V g) {
    using T = real_of<V>;
    const V reach(T(is_single<V> ? 34 : 74));  // up to where the integrand is e^-17, e^-37
    const V end = g + reach / (sqrt(fma(g, g, reach)) + g);
    return sector_rule<is_single<V> ? 8 : 18>(g, end, h);
}

// e^A P(sector) with the sign of h. corner = e^(A - (h^2 + g^2)/2); the edge has E = A - h^2/2.
// h and g as seen here (quadrant), which edge.g is to rounding.
template <class V>
KC_HD V sector(V h, V g, const half_line<V>& edge, V corner) {
    using T = real_of<V>;
    const V half(T(0.5)), two(T(2)), zero(0);
    const V q = abs(h), y = abs(g), lesser = minimum(q, y);
    const auto outer = two < lesser;
    const V m = mills(q) * V(T(0.39894228040143268));
    const V short_side = minimum(lesser, two);
    // Each lane by its own rule, whatever its neighbours need: values depend on their pair alone.
    V part = inner_sector(short_side, maximum(q, y));
    if (any(outer)) part = select(outer, outer_sector(q, y), part);
    const V lift = exp(half * short_side * short_side), scale = corner * lift;
    const V inner = select(y <= q, scale * fma(half, m, -part),
                           fma(scale, part, edge.beyond * fma(-half, lift, m)));
    const V beyond = select(outer, corner * part, inner);
    return with_sign(select(g < zero, fma(edge.full, m, -beyond), beyond), h);
}

// e^A P(z.n_1 > h_1, z.n_2 > h_2); u and apart are the cosine and sine between n_1 and n_2.
template <class V>
KC_HD V quadrant(V h1, V h2, const half_line<V>& edge1, const half_line<V>& edge2, V u, V apart,
                 V corner, V exponent) {
    using T = real_of<V>;
    const V zero(0), one(1), tiny(T(1e-20));
    // A corner close to the origin is seen at angles that mean little, but whose sum is fixed: take
    // the second edge's distances from the first's. One on the origin is moved out, between both.
    const auto at_origin = abs(h1) + abs(edge1.g) < tiny;
    const V f1 = select(at_origin, tiny * (one + u + apart), h1);
    const V g1 = select(at_origin, tiny * (one - u + apart), edge1.g);
    const auto close = fma(f1, f1, g1 * g1) < one;
    const V f2 = select(close, fma(u, f1, apart * g1), h2);
    const V g2 = select(close, fma(apart, f1, -u * g1), edge2.g);
    // Signed sectors, and the plane where the origin lies inside, counted so that a distance f that
    // should be zero may have either sign. g = 0 is a limit from f's side if u = 1, from above if
    // u = -1.
    const V nothing = select(u < zero, zero, V(T(1e-35)));
    const V negative1 = select(f1 < zero, one, zero), negative2 = select(f2 < zero, one, zero);
    const V behind1 = select(g1 < negative1 * nothing, one, zero);
    const V behind2 = select(g2 < negative2 * nothing, one, zero);
    const V planes = fma(behind1, negative1, fma(behind2, negative2, -behind1 * behind2));
    const V sum = sector(f1, g1, edge1, corner) + sector(f2, g2, edge2, corner);
    return select(planes == zero, sum, fma(planes, exp(exponent), sum));
}

}  // namespace kc
