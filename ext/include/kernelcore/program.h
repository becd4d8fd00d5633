// A network, lowered: the operations that a strip of entries goes through.
#pragma once

#include "duals/bent.h"
#include "duals/bump.h"
#include "duals/erf.h"
#include "duals/exponential.h"
#include "duals/gelu.h"
#include "duals/kink.h"
#include "duals/one_kink.h"
#include "duals/profile.h"
#include "duals/ramp.h"
#include "duals/rectified_power.h"
#include "duals/series.h"
#include "duals/sine.h"
#include "duals/step.h"
#include "radial.h"

namespace kc {

enum opcode : int {
    // layers
    op_trained = 0,  // t <- t + u: a trained Dense without bias
    op_bias = 1,     // Dense with bias; table: shares of weight and bias in the new sd
    op_save = 2,     // open a residual connection
    op_swap = 3,     // branch done, run the shortcut
    op_merge = 4,    // close it; table: shares of the current and of the saved part
    // homogeneous activations, u and delta only
    op_relu = 5,
    op_leaky_relu = 6,  // a = share, b = rest, c = fold (kink.h)
    op_step = 7,
    op_sign = 8,
    op_rectified_power = 9,  // n
    // activations of the variances; table: sd, 1/sd_new, sd/sd_new, and what else is said
    op_erf = 10,          // and sd/sqrt A, 1/2A, 1/sqrt A for A = sd^2 + 1/2
    op_gelu = 11,         // and sd/sqrt A, 1/A, 1/sqrt A, sqrt A, 1 - sd/sqrt A for A = sd^2 + 1
    op_sine = 12,         // a = weight of sin sin, b = of cos cos; and exp(-sd^2/2)
    op_exponential = 13,  // a = factor
    op_bump = 14,         // a = shift^2
    op_polynomial = 15,   // (a k + b)^n, k = sd_i sd_j u
    op_series = 16,  // table: n coefficients over sd_new; a = 1: of few orders, b: of one parity
                     // (series.h)
    // distances: a whole kernel
    op_exponential_of = 17,  // a = scale
    op_laplacian = 18,       // a = scale
    op_matern = 19,          // a = scale, n = p, coef
    op_cauchy = 20,
    // of the variances, like op_erf
    op_one_kink = 21,  // coef: k, p0, p1, p2, m0, m1, m2 (one_kink.h)
    // homogeneous maps, u and delta only (profile.h)
    op_exponential_profile = 22,  // a = 1/s^2
    op_power_profile = 23,        // n pairs of coefficients, as many of the gap
    op_chebyshev_profile = 24,    // n coefficients, as many of the slope and of the gap
    // plain sums: a whole kernel, or its beginning
    op_cosine = 25,        // a = scale: a correlation of what is one up to rounding
    op_power_of = 26,      // a = scale, n coefficients
    op_chebyshev_of = 27,  // likewise
    // of the variances
    op_bent = 28,  // coef: those of op_one_kink and of bent.h; and what bent.h looks up
    op_ramp = 29,  // a = q, b = c0, c = c1; and h, e^(-h^2/2), Q(h), shares of mean, rise and jump,
                   // and in float the coefficients of near_series (ramp.h)
    // of a distance
    op_matern_of = 30,  // a = scale of the square, coef (radial.h)
};

// The operations that are compiled, as bits: all, unless a program is known by then. A kernel with all
// of them would have neither the registers of one with few nor be compiled in seconds.
#if !defined(KC_OPS)
#define KC_OPS ~0ull
#endif
template <opcode code>
inline constexpr bool has = (KC_OPS >> code & 1) != 0;

// Residual connections inside each other, at most, where memory for them is fixed.
constexpr int most_slots = 16;

struct op {
    int code;
    int n;
    int table;  // first row of its table
    int coef;   // first of its coefficients
    double a, b, c;
    double add;  // 1: a trained Dense without bias follows and is done here, t <- slope t + u
};

template <class T>
struct operations {
    const op* ops;
    int count;
    const T* coefficients;
};

// Row tables of the strip's own row (one number for all lanes), and of the columns.
template <class V>
struct row_of {
    const real_of<V>* table;
    index_t stride;
    KC_HD V operator()(int k, index_t) const { return V(table[k * stride]); }
};
template <class V>
struct column_of {
    const real_of<V>* table;
    index_t stride;
    KC_HD V operator()(int k, index_t at) const { return load<V>(table + k * stride + at); }
};

// The state of a strip: three arrays of its length.
template <class T>
struct strip {
    T *u, *delta, *t;
};

// What a walk leaves behind: correlations, correlations and tangents, or (raw) E[phi phi] and
// E[phi' phi'] of a single activation, not normalised.
enum class output { covariance, tangent, raw };

template <class V, output want>
KC_HD void write(const strip<real_of<V>>& s, index_t at, correlation<V> c, V slope, V add) {
    store<V>(s.u + at, c.u);
    store<V>(s.delta + at, c.delta);
    if constexpr (want == output::raw) store<V>(s.t + at, slope);
    if constexpr (want == output::tangent)
        store<V>(s.t + at, fma(load<V>(s.t + at), slope, add * c.u));
}

template <class V>
KC_HD correlation<V> read(const strip<real_of<V>>& s, index_t at) {
    return {load<V>(s.u + at), load<V>(s.delta + at)};
}

// The tables of one operation at one entry.
template <class V, class Tables>
struct entry_tables {
    const Tables& tables;
    int first;
    index_t at;
    KC_HD V operator()(int k) const { return tables(first + k, at); }
};

// A function of correlations along a strip: f maps a correlation and the tables of its two sides to
// a profile<V>.
template <class V, output want, class Rows, class Columns>
struct along_strip {
    const strip<real_of<V>>& s;
    index_t length;
    V add;
    const Rows& x;
    const Columns& y;
    int table;
    template <class F>
    KC_HD void operator()(F f) const {
        for (index_t at = 0; at < length; at += value<V>::width) {
            const profile<V> p = f(read<V>(s, at), entry_tables<V, Rows>{x, table, at},
                                   entry_tables<V, Columns>{y, table, at});
            write<V, want>(s, at, p.c, p.slope, add);
        }
    }
};

// The profile of a dual: divided by the new standard deviations, unless it is wanted raw.
template <class V, output want, class X, class Y>
KC_HD profile<V> normalised(const dual<V>& d, const X& x, const Y& y) {
    if constexpr (want == output::raw)
        return {{d.value, d.value}, d.slope};
    else
        return {plain(d.value * (x(1) * y(1))), d.slope * (x(2) * y(2))};
}

// The same of a dual that reads tables itself, and that is to be part of the loop whatever its size.
template <class V, output want, class Dual>
struct of_tables {
    Dual f;
    template <class X, class Y>
    KC_HD profile<V> operator()(const correlation<V>& r, const X& x, const Y& y) const {
        return normalised<V, want>(f(r, x, y), x, y);
    }
};

// A Hermite series along a strip, M vectors of entries at a time.
template <class V, output want, parity of, class Rows, class Columns>
struct sums_of_series {
    const strip<real_of<V>>& s;
    V add;
    const Rows& x;
    const Columns& y;
    const op& o;
    template <int M>
    KC_HD void run(index_t at) const {
        constexpr index_t width = value<V>::width;
        constexpr int least = ladder_first<V, of>, octave = ladder_octave<V, of>;
        const hermite_series<V, want != output::covariance, of, M, Rows, Columns> f{x, y, at,
                                                                                    o.table};
        correlation<V> rho[M];
        jet<V> sums[M];
        KC_UNROLL for (int m = 0; m < M; m++) rho[m] = read<V>(s, at + m * width);
        const bool more = o.a != 0 && o.n > least;
        f.first(more ? least : o.n, rho, sums);
        if (more) f.octaves((o.n - least) / octave, rho, sums);
        KC_UNROLL for (int m = 0; m < M; m++) {
            const V u = sums[m].value;
            write<V, want>(s, at + m * width,
                           want == output::raw ? correlation<V>{u, u} : plain(u), sums[m].slope,
                           add);
        }
    }
    KC_HD void operator()(index_t length) const {
        constexpr index_t width = value<V>::width;
        index_t at = 0;
        for (; at + 3 * width <= length; at += 3 * width) run<3>(at);
        for (; at < length; at += width) run<1>(at);
    }
};

// The same for bent.h, and one_kink.h where a standard deviation is beyond its range.
template <class V, output want, class Rows, class Columns>
struct sums_of_bent {
    using T = real_of<V>;
    static constexpr index_t width = value<V>::width;
    const strip<T>& s;
    V add;
    const Rows& x;
    const Columns& y;
    const op& o;
    const T* f;
    const bent_shape<T> shape{f + 7};

    KC_HD V largest(index_t at) const { return maximum(x(o.table, at), y(o.table, at)); }

    template <int M>
    KC_HD void run(index_t at) const {
        V most = largest(at);
        KC_UNROLL for (int m = 1; m < M; m++) most = maximum(most, largest(at + m * width));
        if (any(V(shape.top) < most)) {
            for (int m = 0; m < M; m++) run_far(at + m * width);
            return;
        }
        correlation<V> rho[M];
        dual<V> d[M];
        KC_UNROLL for (int m = 0; m < M; m++) rho[m] = read<V>(s, at + m * width);
        bent_sums<V, M, Rows, Columns>{x, y, at, o.table, shape}(rho, d);
        const strip<T> to = s;
        const Rows i = x;
        const Columns j = y;
        const int table = o.table;
        KC_UNROLL for (int m = 0; m < M; m++) finish(to, at + m * width, add, i, j, table, d[m]);
    }
    KC_HD void operator()(index_t length) const {
        index_t at = 0;
        for (; at + 4 * width <= length; at += 4 * width) run<4>(at);
        for (; at < length; at += width) run<1>(at);
    }
    KC_LOOP void run_far(index_t at) const {
        const correlation<V> rho[1] = {read<V>(s, at)};
        dual<V> d[1];
        bent_sums<V, 1, Rows, Columns>{x, y, at, o.table, shape}(rho, d);
        const V si = x(o.table, at), sj = y(o.table, at);
        const kink_shape<V> k{V(f[0]), V(f[1]), V(f[2]), V(f[3]), V(f[4]), V(f[5]), V(f[6])};
        const dual<V> far = one_kink(make_pair(si, sj, rho[0]), si, sj, k);
        const auto large = V(shape.top) < maximum(si, sj);
        d[0] = {select(large, far.value, d[0].value), select(large, far.slope, d[0].slope)};
        finish(s, at, add, x, y, o.table, d[0]);
    }
    // All by value: what a store might change would be read again after each.
    static KC_HD void finish(strip<T> s, index_t at, V add, Rows x, Columns y, int table,
                             const dual<V>& d) {
        const profile<V> made = normalised<V, want>(d, entry_tables<V, Rows>{x, table, at},
                                                    entry_tables<V, Columns>{y, table, at});
        write<V, want>(s, at, made.c, made.slope, add);
    }
};

// f maps the reduced sum to the kernel.
template <class V, opcode code, class F>
KC_HD void radial(const strip<real_of<V>>& s, index_t length, F f) {
    for (index_t at = 0; has<code> && at < length; at += value<V>::width)
        store<V>(s.u + at, f(load<V>(s.u + at)));
}

template <class V>
KC_HD void exchange(real_of<V>* p, real_of<V>* q, index_t length) {
    for (index_t at = 0; at < length; at += value<V>::width) {
        const V x = load<V>(p + at);
        store<V>(p + at, load<V>(q + at));
        store<V>(q + at, x);
    }
}

template <class V>
KC_HD V power(V x, int n) {
    V p(1);
    for (; n > 0; n >>= 1) {
        if (n & 1) p = p * x;
        x = x * x;
    }
    return p;
}

// The dual of some activations: from a correlation, or from a covariance whose rounding is `snap`, and
// tables of both sides.
template <class V, bool is_gelu>
struct noisy_of {
    template <class X, class Y>
    KC_HD dual<V> at(const bounded<V>& v, V share, const X& x, const Y& y) const {
        if constexpr (is_gelu)
            return gelu(v, share, x(4), y(4), x(7), y(7), x(6) * y(6));
        else
            return erf(v, share, x(4), y(4), x(5) * y(5));
    }
    template <class X, class Y>
    KC_HD dual<V> operator()(correlation<V> r, const X& x, const Y& y) const {
        const V share = x(3) * y(3);
        return at(bound_by(share, r), share, x, y);
    }
    template <class X, class Y>
    KC_HD dual<V> operator()(V k, V snap, const X& x, const Y& y) const {
        const V share = x(3) * y(3);
        return at(bound_by(share, k * (x(5) * y(5)), snap), share, x, y);
    }
};
template <class V>
using erf_of = noisy_of<V, false>;
template <class V>
using gelu_of = noisy_of<V, true>;
template <class V>
struct sine_of {
    V sin2, cos2;
    template <class X, class Y>
    KC_HD dual<V> at(const bounded<V>& k, V si, V sj, const X& x, const Y& y) const {
        return sine(k.k, k.gap, si, sj, x(3) * y(3), sin2, cos2);
    }
    template <class X, class Y>
    KC_HD dual<V> operator()(correlation<V> r, const X& x, const Y& y) const {
        const V si = x(0), sj = y(0);
        return at(bound_by(si * sj, r), si, sj, x, y);
    }
    template <class X, class Y>
    KC_HD dual<V> operator()(V k, V snap, const X& x, const Y& y) const {
        const V si = x(0), sj = y(0);
        return at(bound_by(si * sj, k, snap), si, sj, x, y);
    }
};

// Hand a function to `visit`, if its operation is compiled.
template <class V, opcode code, class Visit, class F>
KC_HD bool hand(const Visit& visit, const F& f) {
    if constexpr (has<code>) visit(f);
    return true;
}

// Hand the function of an activation to `visit`, which walks through entries (along_strip; rows of
// an image): what the operation decides is decided before. False for any other operation.
template <class V, output want, class Visit>
KC_HD bool activate(const op& o, const real_of<V>* f, const Visit& visit) {
    using T = real_of<V>;
    const V a(T(o.a)), b(T(o.b)), c(T(o.c));
    const auto pairs = [&](auto g) {
        return [=](correlation<V> r, const auto& x, const auto& y) {
            const V si = x(0), sj = y(0);
            return normalised<V, want>(g(make_pair(si, sj, r), si, sj), x, y);
        };
    };
    const auto step_of = [](correlation<V> r, const auto&, const auto&) {
        return profile<V>{step(r), V(0)};
    };
    const auto relu_of = [](correlation<V> r, const auto&, const auto&) { return relu(r); };
    switch (o.code) {
        case op_relu: return hand<V, op_relu>(visit, relu_of);
        case op_leaky_relu:
            return hand<V, op_leaky_relu>(visit, [=](correlation<V> r, const auto&, const auto&) {
                return leaky_relu(r, a, b, c);
            });
        case op_step: return hand<V, op_step>(visit, step_of);
        case op_sign:
            return hand<V, op_sign>(visit, [](correlation<V> r, const auto&, const auto&) {
                return profile<V>{sign(r), V(0)};
            });
        case op_rectified_power:
            switch (o.n) {
                case 0: return hand<V, op_rectified_power>(visit, step_of);
                case 1: return hand<V, op_rectified_power>(visit, relu_of);
                case 2:
                    return hand<V, op_rectified_power>(
                        visit, [](correlation<V> r, const auto&, const auto&) {
                            return rectified_square(r);
                        });
                case 3:
                    return hand<V, op_rectified_power>(
                        visit, [](correlation<V> r, const auto&, const auto&) {
                            return rectified_cube(r);
                        });
                default: {
                    const power_series<T> value(o.n), slope(o.n - 1);
                    return hand<V, op_rectified_power>(
                        visit, [&](correlation<V> r, const auto&, const auto&) {
                            return rectified_power(value, slope, r);
                        });
                }
            }
        case op_exponential_profile:
            return hand<V, op_exponential_profile>(
                visit, [=](correlation<V> r, const auto&, const auto&) {
                    return exponential_profile(r, a);
                });
        case op_power_profile:
            return hand<V, op_power_profile>(visit, [=](correlation<V> r, const auto&, const auto&) {
                return power_profile(r, f, o.n);
            });
        case op_chebyshev_profile:
            return hand<V, op_chebyshev_profile>(
                visit, [=](correlation<V> r, const auto&, const auto&) {
                    return chebyshev_profile(r, f, o.n);
                });
        case op_erf: return hand<V, op_erf>(visit, of_tables<V, want, erf_of<V>>{{}});
        case op_gelu: return hand<V, op_gelu>(visit, of_tables<V, want, gelu_of<V>>{{}});
        case op_sine: return hand<V, op_sine>(visit, of_tables<V, want, sine_of<V>>{{a, b}});
        case op_exponential:
            return hand<V, op_exponential>(
                visit, pairs([=](const pair<V>& p, V, V) { return exponential(p, a); }));
        case op_bump:
            return hand<V, op_bump>(visit, pairs([=](const pair<V>& p, V, V) { return bump(p, a); }));
        case op_polynomial:
            return hand<V, op_polynomial>(visit, pairs([=](const pair<V>& p, V, V) {
                return dual<V>{power(fma(a, p.k, b), o.n), V(0)};
            }));
        case op_one_kink: {
            const kink_shape<V> shape{V(f[0]), V(f[1]), V(f[2]), V(f[3]),
                                      V(f[4]), V(f[5]), V(f[6])};
            return hand<V, op_one_kink>(visit, pairs([=](const pair<V>& p, V si, V sj) {
                return one_kink(p, si, sj, shape);
            }));
        }
        case op_ramp:
            if (o.c == 0)
                return hand<V, op_ramp>(visit, of_tables<V, want, ramp<V, true, false>>{{a, b, c}});
            if (o.b == 0)
                return hand<V, op_ramp>(visit, of_tables<V, want, ramp<V, false, true>>{{a, b, c}});
            return hand<V, op_ramp>(visit, of_tables<V, want, ramp<V, true, true>>{{a, b, c}});
        default: return false;
    }
}

// The activations that sum many orders along a strip, some vectors of entries at a time. False for any
// other operation.
template <class V, output want, class Rows, class Columns>
KC_HD bool sum_orders(const op& o, const real_of<V>* f, const Rows& x, const Columns& y,
                      index_t length, const strip<real_of<V>>& s) {
    const V add{real_of<V>(o.add)};
    if (o.code == op_bent) {
        if constexpr (has<op_bent>) sums_of_bent<V, want, Rows, Columns>{s, add, x, y, o, f}(length);
        return true;
    }
    if (o.code != op_series) return false;
    if constexpr (has<op_series>) switch (parity(int(o.b))) {
            case parity::none:
                sums_of_series<V, want, parity::none, Rows, Columns>{s, add, x, y, o}(length);
                break;
            case parity::even:
                sums_of_series<V, want, parity::even, Rows, Columns>{s, add, x, y, o}(length);
                break;
            case parity::odd:
                sums_of_series<V, want, parity::odd, Rows, Columns>{s, add, x, y, o}(length);
                break;
        }
    return true;
}

// Run the program on a strip. Lanes past the end of the data hold finite junk that nobody reads.
// saved: three arrays of the strip's length per open residual connection.
template <class V, output want, class Rows, class Columns>
KC_HD void walk(operations<real_of<V>> program, const Rows& x, const Columns& y, index_t length,
                strip<real_of<V>> s, real_of<V>* saved) {
    using T = real_of<V>;
    const V one(1), zero(0);
    constexpr int width = value<V>::width;
    constexpr bool tangent = want == output::tangent;
    for (int k = 0; k < program.count; k++) {
        const op o = program.ops[k];
        const V a(T(o.a)), add(T(o.add));
        const T* f = program.coefficients + o.coef;
        const along_strip<V, want, Rows, Columns> visit{s, length, add, x, y, o.table};
        if (activate<V, want>(o, f, visit) || sum_orders<V, want>(o, f, x, y, length, s)) continue;
        switch (o.code) {
            case op_trained:
                for (index_t at = 0; at < length; at += width)
                    store<V>(s.t + at, load<V>(s.t + at) + load<V>(s.u + at));
                break;
            case op_bias:
                for (index_t at = 0; at < length; at += width) {
                    const V pi = x(o.table, at), pj = y(o.table, at);
                    const correlation<V> flat{one, zero};
                    const correlation<V> m =
                        mix(pi, x(o.table + 1, at), pj, y(o.table + 1, at), read<V>(s, at), flat);
                    write<V, want>(s, at, m, pi * pj, add);
                }
                break;
            case op_save:
                for (index_t at = 0; at < length; at += width) {
                    store<V>(saved + at, load<V>(s.u + at));
                    store<V>(saved + length + at, load<V>(s.delta + at));
                    if (tangent) store<V>(saved + 2 * length + at, load<V>(s.t + at));
                }
                saved += 3 * length;
                break;
            case op_swap:
                exchange<V>(s.u, saved - 3 * length, length);
                exchange<V>(s.delta, saved - 2 * length, length);
                if (tangent) exchange<V>(s.t, saved - length, length);
                break;
            case op_merge:
                saved -= 3 * length;
                for (index_t at = 0; at < length; at += width) {
                    const strip<T> branch{saved, saved + length, saved + 2 * length};
                    const V pi = x(o.table, at), pj = y(o.table, at);
                    const V qi = x(o.table + 1, at), qj = y(o.table + 1, at);
                    const correlation<V> m =
                        mix(pi, qi, pj, qj, read<V>(s, at), read<V>(branch, at));
                    store<V>(s.u + at, m.u);
                    store<V>(s.delta + at, m.delta);
                    if (tangent)
                        store<V>(s.t + at,
                                 fma(pi * pj, load<V>(s.t + at), qi * qj * load<V>(branch.t + at)));
                }
                break;
            case op_exponential_of:
                radial<V, op_exponential_of>(s, length, [=](V sum) { return exponential_of(sum, a); });
                break;
            case op_laplacian:
                radial<V, op_laplacian>(s, length, [=](V sum) { return laplacian(sum, a); });
                break;
            case op_matern:
                radial<V, op_matern>(s, length, [=](V sum) { return matern(sum, a, f, o.n); });
                break;
            case op_matern_of:
                radial<V, op_matern_of>(s, length, [=](V sum) { return matern_of(sum, a, f); });
                break;
            case op_cauchy:
                radial<V, op_cauchy>(s, length, [](V sum) { return cauchy(sum); });
                break;
            case op_cosine:
                for (index_t at = 0; at < length; at += width) {
                    const correlation<V> r = cosine(load<V>(s.u + at), a);
                    store<V>(s.u + at, r.u);
                    store<V>(s.delta + at, r.delta);
                }
                break;
            case op_power_of: {
                index_t at = 0;
                for (; has<op_power_of> && at + 4 * width <= length; at += 4 * width)
                    power_of<V, 4>(s.u + at, a, f, o.n);
                for (; has<op_power_of> && at < length; at += width)
                    power_of<V, 1>(s.u + at, a, f, o.n);
                break;
            }
            case op_chebyshev_of: {
                index_t at = 0;
                for (; has<op_chebyshev_of> && at + 4 * width <= length; at += 4 * width)
                    chebyshev_of<V, 4>(s.u + at, a, f, o.n);
                for (; has<op_chebyshev_of> && at < length; at += width)
                    chebyshev_of<V, 1>(s.u + at, a, f, o.n);
                break;
            }
        }
    }
}

}  // namespace kc
