// Relu, LeakyRelu(s), Abs = LeakyRelu(-1): phi(x) = x for x > 0, s x for x < 0.
//
//     E[phi phi]   = sqrt(a c) (A kappa1(u) + B u),   A = (1-s)^2 / 2,  B = s,
//     E[phi' phi'] = A kappa0(u) + B                  (Cho & Saul 2009; A + B = (1+s^2)/2).
// With s0 = sqrt delta, theta/pi = s0 P(delta) for theta = arccos |u|, and
// g = kappa1(-|u|) = s0 delta R(delta):  kappa0 = theta/pi or 1 - theta/pi,  kappa1 = max(u, 0) + g.
// One root and two polynomials give both, with a small relative error at either end.
#pragma once

#include "../correlation.h"

namespace kc {

template <class V>
struct kappas {
    V k0, k1;  // kappa0(-|u|), kappa1(-|u|)
};

template <class V>
KC_HD kappas<V> far_kappas(V delta) {
    const V root = sqrt(delta);
    return {root * arccos_ratio(delta), root * delta * kappa1_ratio(delta)};
}

// A profile p of a homogeneous activation, normalised to p(1) = 1, and p'(u)/p(1).
template <class V>
struct profile {
    correlation<V> c;
    V slope;
};

template <class V>
KC_HD profile<V> relu(correlation<V> c) {
    const V one(1), zero(0);
    const kappas<V> k = far_kappas(c.delta);
    const auto negative = c.u < zero;
    return {{positive_part(c.u) + k.k1, select(negative, one, c.delta) - k.k1},
            select(negative, k.k0, one - k.k0)};
}

// kappa0 and kappa1 of a correlation given by its sign and by delta, where no new delta is needed:
// errors below 1.5e-7 in single precision, 2e-16 in double, apart from rounding.
template <class V>
KC_HD kappas<V> near_kappas(V sign, V delta) {
    const V one(1), zero(0);
    const ratios<V> r = short_ratios(delta);
    V root = sqrt(delta);
    if constexpr (!is_single<V>) root = root / r.below;
    const V angle = root * r.arccos;
    return {select_negative(sign, angle, one - angle),
            fma(root * delta, r.kappa1, select_negative(sign, zero, one - delta))};
}

// The same for u >= 0, where it takes less: kappa1 = 1 + delta k1, exactly 1 at delta = 0.
template <class V>
KC_HD kappas<V> acute_kappas(V delta) {
    const V one(1);
    const ratios<V> r = acute_ratios(delta);
    V root = sqrt(delta);
    if constexpr (!is_single<V>) root = root / r.below;
    return {fma(-root, r.arccos, one), fma(root, r.kappa1, -one)};
}

// share = A/(A+B) = (1-s)^2/(1+s^2), rest = B/(A+B) = 2s/(1+s^2), fold = 1 + rest = (1+s)^2/(1+s^2).
// The slope A kappa0 + B is fold/2 + share arcsin(u)/pi: for Abs it is odd in u, and right near 0.
template <class V>
KC_HD profile<V> leaky_relu(correlation<V> c, V share, V rest, V fold) {
    using T = real_of<V>;
    const V zero(0);
    const V g = sqrt(c.delta) * c.delta * kappa1_ratio(c.delta);
    const V u = fma(share, positive_part(c.u) + g, rest * c.u);
    // For u >= 0 the new correlation is u + share g. For u < 0 it is share g - rest |u| and has
    // either sign: 1 - |.| is share + rest delta + share g, or fold - rest delta - share g.
    const V move = fma(rest, c.delta, share * g);
    const V delta_negative = select(u < zero, share + move, fold - move);
    const V delta = select(c.u < zero, delta_negative, fma(-share, g, c.delta));
    const V angle = V(T(0.31830988618379067)) * arcsin(c.u, c.delta);
    return {{u, maximum(delta, zero)}, fma(share, angle, V(T(0.5)) * fold)};
}

}  // namespace kc
