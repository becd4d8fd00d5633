// For programs that build on kernelcore: one dual, one pair of rows, one pair of images, one
// eigenvalue.
//
// What is declared in kc::api changes with KC_API_MAJOR only, and grows with KC_API_MINOR; all other
// headers may change in any release. T is float or double. Nothing is allocated, checked or raised;
// arguments are what Python would accept.
#pragma once

#include "../duals/kink.h"
#include "../entry.h"
#include "../norm.h"
#include "../pair.h"
#include "../spatial.h"

#define KC_API_MAJOR 1
#define KC_API_MINOR 0

namespace kc::api {

// E[phi phi] (value) and E[phi' phi'] (slope) of phi = ReLU, for centred Gaussians with variances a, c
// and covariance k: kc.Relu().dual(a, c, k).
template <class T>
struct expectations {
    T value, slope;
};
template <class T>
KC_HD expectations<T> relu_dual(T a, T c, T k) {
    const profile<T> p = relu(correlate(a, c, k));
    return {sqrt(a) * sqrt(c) * p.c.u / 2, p.slope / 2};
}

// The two kernels of a network at a pair of inputs.
template <class T>
struct kernels {
    T nngp, ntk;
};

// A pair on its way through a network of rows: correlation, tangent kernel over both standard
// deviations, and these.
template <class T>
struct pair_of_rows {
    correlation<T> rho;
    T t, sd_x, sd_y;

    KC_HD void dense(T w_std, T b_std) {
        const T x = sqrt(w_std * w_std * sd_x * sd_x + b_std * b_std);
        const T y = sqrt(w_std * w_std * sd_y * sd_y + b_std * b_std);
        const T over_x = x > 0 ? 1 / x : T(0), over_y = y > 0 ? 1 / y : T(0);
        const T p_x = w_std * sd_x * over_x, p_y = w_std * sd_y * over_y;
        if (b_std > 0)
            rho = mix(p_x, b_std * over_x, p_y, b_std * over_y, rho, correlation<T>{T(1), T(0)});
        t = fma(p_x * p_y, t, rho.u);
        sd_x = x, sd_y = y;
    }
    KC_HD void activate() {
        const profile<T> p = relu(rho);
        rho = p.c;
        t *= p.slope;
        sd_x *= T(0x1.6a09e667f3bcdp-1), sd_y *= T(0x1.6a09e667f3bcdp-1);  // 1/sqrt 2
    }
};

// x and y of d numbers through `depth` hidden ReLU layers: kc.presets.mlp(depth, w_std=w_std,
// b_std=b_std).kernels(X).
template <class T>
KC_HD kernels<T> relu_rows(const T* x, const T* y, index_t d, int depth, T w_std, T b_std) {
    const double norm_x = row_norm<T, double>(x, d), norm_y = row_norm<T, double>(y, d);
    const T over_x = norm_x > 0 ? T(1 / norm_x) : T(0), over_y = norm_y > 0 ? T(1 / norm_y) : T(0);
    T sum(0);
    for (index_t q = 0; q < d; q++) sum = fma(x[q] * over_x, y[q] * over_y, sum);
    correlation<T> rho = far_correlation(sum);
    if (rho.delta < near_threshold<T>)
        rho = near_correlation(chord<T>(x, over_x, y, over_y, d, sum < 0), sum < 0);
    if (!(norm_x > 0) && !(norm_y > 0)) rho = {T(1), T(0)};
    const double root = sqrt(double(d));
    pair_of_rows<T> now{rho, T(0), T(norm_x / root), T(norm_y / root)};
    now.dense(w_std, b_std);
    for (int layer = 0; layer < depth; layer++) {
        now.activate();
        now.dense(w_std, b_std);
    }
    return {now.sd_x * now.sd_y * now.rho.u, now.sd_x * now.sd_y * now.t};
}

// Images of height x width x channels, channels last, through `depth` times a convolution of
// filter x filter (odd, padding "same") and ReLU, then the mean over positions (`pool`:
// GlobalAvgPool, else Flatten), and a dense layer; all with these w_std and b_std.
template <class T>
struct relu_network {
    index_t height, width, channels;
    int filter, depth;
    T w_std, b_std;
    bool pool;

    // How many numbers of scratch a pair of images takes.
    KC_HD index_t scratch() const { return (2 * index_t(depth) + 4) * height * width; }

    KC_HD kernels<T> operator()(const T* x, const T* y, T* room) const {
        const index_t plane = height * width;
        T* const var_x = room;  // the variances before each activation, layer by layer
        T* const var_y = room + depth * plane;
        T *k = room + 2 * depth * plane, *t = k + plane, *k_next = t + plane,
          *t_next = k_next + plane;
        variances(x, var_x, k);
        variances(y, var_y, k);
        double sum_k = 0, sum_t = 0;
        const index_t down = pool ? height - 1 : 0, right = pool ? width - 1 : 0;
        for (index_t i = -down; i <= down; i++)
            for (index_t j = -right; j <= right; j++) {
                multiply(x, y, i, j, k);
                for (index_t p = 0; p < plane; p++) t[p] = T(0);
                for (int layer = 0; layer < depth; layer++) {
                    convolve(k, i, j, b_std * b_std, k_next);
                    convolve(t, i, j, T(0), t_next);
                    const T *a = var_x + layer * plane, *c = var_y + layer * plane;
                    each(i, j, [&](index_t p, index_t other) {
                        const T sx = sqrt(a[p]), sy = sqrt(c[other]);
                        const profile<T> f =
                            relu(correlated(k_next[p], inverse(sx), inverse(sy), snap()));
                        k[p] = sx * sy * f.c.u / 2;
                        t[p] = (t_next[p] + k_next[p]) * f.slope / 2;
                    });
                }
                each(i, j, [&](index_t p, index_t) { sum_k += k[p], sum_t += t[p]; });
            }
        const double over = 1 / (double(plane) * (pool ? double(plane) : 1.0));
        const T square = w_std * w_std, nngp = square * T(sum_k * over) + b_std * b_std;
        return {nngp, nngp + square * T(sum_t * over)};
    }

private:
    KC_HD static T inverse(T sd) { return sd > 0 ? 1 / sd : T(0); }
    // What rounding leaves of 1 - |u| where two patches are alike, as in spatial.h.
    KC_HD T snap() const {
        return T(is_single<T> ? 0x1p-24 : 0x1p-53) * T(8 + filter * filter + channels);
    }
    // Call f(p, p') for the positions p of x whose partner p' of y, at the offset (i, j), exists.
    template <class F>
    KC_HD void each(index_t i, index_t j, const F& f) const {
        for (index_t r = 0; r < height; r++)
            for (index_t c = 0; c < width; c++)
                if (r + i >= 0 && r + i < height && c + j >= 0 && c + j < width)
                    f(r * width + c, (r + i) * width + c + j);
    }
    // The products of pixels at an offset, and zero where there is no partner.
    KC_HD void multiply(const T* x, const T* y, index_t i, index_t j, T* k) const {
        for (index_t p = 0; p < height * width; p++) k[p] = T(0);
        each(i, j, [&](index_t p, index_t other) {
            T sum(0);
            for (index_t q = 0; q < channels; q++)
                sum = fma(x[p * channels + q], y[other * channels + q], sum);
            k[p] = sum / T(channels);
        });
    }
    // w_std^2 times the mean over a patch that both images see, and a bias where there is a partner.
    KC_HD void convolve(const T* from, index_t i, index_t j, T bias, T* to) const {
        const index_t reach = filter / 2;
        const T share = w_std * w_std / T(filter * filter);
        for (index_t p = 0; p < height * width; p++) to[p] = T(0);
        each(i, j, [&](index_t p, index_t) {
            const index_t r = p / width, c = p % width;
            T sum(0);
            for (index_t a = r - reach; a <= r + reach; a++)
                for (index_t b = c - reach; b <= c + reach; b++)
                    if (a >= 0 && a < height && b >= 0 && b < width) sum += from[a * width + b];
            to[p] = fma(share, sum, bias);
        });
    }
    // The variances of one image before each activation; those behind are half of them.
    KC_HD void variances(const T* x, T* var, T* k) const {
        const index_t plane = height * width;
        multiply(x, x, 0, 0, k);
        for (int layer = 0; layer < depth; layer++, var += plane) {
            convolve(k, 0, 0, b_std * b_std, var);
            for (index_t p = 0; p < plane; p++) k[p] = var[p] / 2;
        }
    }
};

// value 2^exponent, for numbers that no T holds.
template <class T>
struct scaled {
    T value;
    int exponent;
};

// The eigenvalue of degree k of sum_n a_n <x, y>^n, n < count, on the unit sphere of R^dim under the
// uniform measure: kc.spectrum.sphere(PowerSeries(a), dim, max_degree).eigenvalues[k]. It is the sum
// of a_n L_k(n) (gegenbauer.h), where L_k(k) = prod_(j <= k) j/(dim + 2j - 2) and
//     L_k(n + 2)/L_k(n) = (n + 1)(n + 2) / ((n + 2 - k)(n + k + dim)).
template <class T>
KC_HD scaled<T> eigenvalue(const T* a, index_t count, index_t dim, index_t k) {
    int exponent = 0, e;
    T scale(1), sum(0), ratio(1);
    for (index_t j = 1; j <= k; j++) {
        scale = split(scale * (T(j) / T(dim + 2 * j - 2)), &e);
        exponent += e;
    }
    for (index_t n = k; n < count; n += 2) {
        sum = fma(a[n], ratio, sum);
        ratio *= (T(n + 1) / T(n + 2 - k)) * (T(n + 2) / T(n + k + dim));
    }
    const T value = split(scale * sum, &e);
    return {value, sum == T(0) ? 0 : exponent + e};
}

}  // namespace kc::api
