// Projections on spherical harmonics on a device: a job for each thread. The twin of
// ext/cpu/gegenbauer.
#include "device.h"
#include "kernelcore/gegenbauer.h"

// From terms of the sphere of R^q to the sums at `degrees` degrees from first[i] on, of the sphere of
// R^p; (jobs, count) numbers of terms each, (jobs, degrees) results.
extern "C" __global__ void gegenbauer_project_f64(const double* n, double* x, double* exponent,
                                                  double* scale, kc::index_t jobs,
                                                  kc::index_t count, kc::index_t q, kc::index_t p,
                                                  const kc::index_t* first,
                                                  const kc::index_t* watched, kc::index_t degrees,
                                                  kc::projection<double>* out) {
    const kc::index_t i = kc::index_t(blockIdx.x) * blockDim.x + threadIdx.x, at = i * count;
    if (i >= jobs) return;
    const kc::powers<double> terms{n + at, x + at, exponent + at, scale + at, count, watched[i]};
    kc::raise_dimension<double>(terms, q, p, int(first[i]));
    kc::project<double>(terms, double(p), first[i], degrees, out + i * degrees);
}

// The sums over n nodes t of values times Legendre polynomials of R^p, for degrees below `degrees`.
extern "C" __global__ void gegenbauer_integrate_f64(const double* t, const double* values,
                                                    kc::index_t n, double p, kc::index_t degrees,
                                                    double* scratch, double* out) {
    if (blockIdx.x == 0 && threadIdx.x == 0)
        kc::integrate<double>(t, values, n, p, 0, degrees, scratch, scratch + n, out);
}
