/* Vector multiply-adds per second and thread: FMAs where the compiler is told that the machine has
 * them. Sixteen registers hold twelve independent sums and both operands, enough for two units with a
 * latency of up to six cycles. Usage: fma_rate THREADS SECONDS. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __AVX512F__
enum { bytes = 64 };
#elif defined(__AVX__)
enum { bytes = 32 };
#else
enum { bytes = 16 };
#endif
typedef float vec __attribute__((vector_size(bytes)));

static double wanted;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

#define EACH(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)
#define START(k) vec a##k = b * k;
#define STEP(k) a##k = a##k * b + c;
#define KEEP(k) __asm__ volatile("" : "+x"(a##k));
#define SUM(k) +a##k[0]

static void* run(void* result) {
    const vec zero = {0}, b = zero + 0.75f, c = zero + 0.25f;
    EACH(START)
    const double start = now();
    double rate = 0, last = start;
    /* The best of short stretches: what else the machine does is not its limit. */
    while (last < start + wanted) {
        const long turns = 400000;
        for (long i = 0; i < turns; i++) {
            EACH(STEP)
            EACH(KEEP)
        }
        const double t = now();
        if (12 * turns / (t - last) > rate) rate = 12 * turns / (t - last);
        last = t;
    }
    *(double*)result = (0 EACH(SUM)) > 0 ? rate : 0;
    return 0;
}

int main(int argc, char** argv) {
    const int n = atoi(argv[1]);
    wanted = argc > 2 ? atof(argv[2]) : 0.2;
    pthread_t threads[64];
    double rates[64], least = 0;
    for (int k = 0; k < n; k++) pthread_create(threads + k, 0, run, rates + k);
    for (int k = 0; k < n; k++) {
        pthread_join(threads[k], 0);
        if (k == 0 || rates[k] < least) least = rates[k];
    }
    printf("%d %.6e\n", bytes, least);
    return 0;
}
