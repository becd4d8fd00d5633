// A host twin of the device: the few CUDA names that drivers use, so that the host compiler reads
// the very same .cu files, and a scheduler that runs the threads of a block in lock step.
//
// A thread is a fiber with a stack of its own. It runs until its next barrier, or its end, and then
// the next one does, in an order that the launch chooses; blocks run one after the other. What a
// kernel must not do ends the launch with a message: run_block, on_signal and __ubsan below.
#pragma once

#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace twin {

struct extent {
    unsigned x, y, z;
    size_t size() const { return size_t(x) * y * z; }
    extent at(size_t i) const {
        return {unsigned(i % x), unsigned(i / x % y), unsigned(i / x / y)};
    }
};

// What twin.py fills in; it reads the last four fields.
struct launch {
    extent grid, block;
    unsigned char* shared;  // dynamic shared memory
    uint64_t shared_bytes;
    int32_t order;      // 0 ascending, 1 descending, else the seed of a new order at every barrier
    int32_t poison;     // what every byte of shared memory is at the start of a block
    uint64_t turned;    // how many intervals between barriers have that order, blocks in theirs
    uint64_t phases;    // how many there were in all blocks
    const void* fault;  // the address of an access out of bounds
    char last[256];     // where the last of `turned` intervals is
    char message[1024];
};

constexpr uint64_t every_phase = -1;

// ---- fibers

#if defined(__x86_64__)
struct context {
    void* stack;
};
extern "C" __attribute__((visibility("hidden"))) void twin_switch(context* from, context* to);
asm(R"(
    .text
    .globl twin_switch
    .hidden twin_switch
twin_switch:
    pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
    movq %rsp, (%rdi)
    movq (%rsi), %rsp
    popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
    ret
)");
inline void prepare(context& c, char* stack, size_t bytes, void (*entry)()) {
    void** top = reinterpret_cast<void**>(stack + bytes) - 8;
    for (int i = 0; i < 8; i++) top[i] = nullptr;  // six registers, where to go, where from
    top[6] = reinterpret_cast<void*>(entry);
    c.stack = top;
}
#else  // the same, with two system calls in each switch
using context = ucontext_t;
inline void twin_switch(context* from, context* to) { swapcontext(from, to); }
inline void prepare(context& c, char* stack, size_t bytes, void (*entry)()) {
    getcontext(&c);
    c.uc_stack.ss_sp = stack;
    c.uc_stack.ss_size = bytes;
    makecontext(&c, entry, 0);
}
#endif

struct fiber {
    context place;
    char* stack;
    extent thread;
    const char* file;  // where it waits; nowhere: it has returned
    int line;
};

// The one launch that is under way: twin.py sees to it that there is no other.
struct machine {
    launch* run;
    const char* kernel;
    std::function<void()> body;
    std::vector<fiber> fibers;
    fiber* current;
    context scheduler;
    extent block, thread;
    unsigned char* arrays;  // all static shared arrays
    size_t array_bytes;
};
inline machine the;

// Stacks with one inaccessible page below each, which keeps them in different sets of a TLB, too.
constexpr size_t stack_bytes = 1 << 17;
inline void make_stacks(size_t count) {
    const size_t gap = sysconf(_SC_PAGESIZE), each = stack_bytes + gap, old = the.fibers.size();
    if (old >= count) return;
    if (old) munmap(the.fibers[0].stack - gap, old * each);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    auto* all = static_cast<char*>(mmap(nullptr, count * each, PROT_NONE, flags, -1, 0));
    the.fibers.resize(count);
    for (fiber& f : the.fibers) {
        f.stack = all + (&f - &the.fibers[0]) * each + gap;
        if (mprotect(f.stack, stack_bytes, PROT_READ | PROT_WRITE)) abort();
    }
}

// All static shared arrays are thread-local, and nothing else that this library defines is.
inline thread_local unsigned char first_array;
inline int find_arrays(dl_phdr_info* info, size_t, void*) {
    auto* data = static_cast<unsigned char*>(info->dlpi_tls_data);
    for (int i = 0; i < info->dlpi_phnum && data; i++) {
        const size_t bytes = info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
        if (&first_array < data || &first_array >= data + bytes) continue;
        the.arrays = data;
        the.array_bytes = bytes;
        return 1;
    }
    return 0;
}

// ---- faults

inline std::string text(extent i) {
    return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) +
           ")";
}
inline std::string text(const char* file, unsigned line) {
    const char* slash = strrchr(file, '/');
    return std::string(slash ? slash + 1 : file) + ":" + std::to_string(line);
}
inline std::string text(const fiber& f) {
    return "thread " + text(f.thread) +
           (f.file ? " waits at " + text(f.file, f.line) : " has returned");
}
inline void report(const std::string& what) {
    const std::string all = std::string(the.kernel) + ", block " + text(the.block) + ", " + what;
    snprintf(the.run->message, sizeof the.run->message, "%s", all.c_str());
}
inline void note_place(const fiber& f) {
    const std::string from = f.file ? "after " + text(f.file, f.line) : "from the start";
    snprintf(the.run->last, sizeof the.run->last, ", block %s, %s", text(the.block).c_str(),
             from.c_str());
}
// Ends the launch from inside a thread, whose stack is left as it is.
[[noreturn]] inline void fail(const std::string& what) {
    report("thread " + text(the.thread) + ": " + what);
    twin_switch(&the.current->place, &the.scheduler);
    __builtin_unreachable();
}

inline void on_signal(int number, siginfo_t* info, void* state) {
    if (number == SIGFPE) fail("division of an integer by zero");
    if (info->si_code == SI_KERNEL) fail("no address");
    auto* at = static_cast<char*>(info->si_addr);
    const char* stack = the.current->stack;
    if (at < stack && at >= stack - sysconf(_SC_PAGESIZE)) fail("its stack is full");
    const char* what = "access";
#if defined(__x86_64__)
    what = static_cast<ucontext_t*>(state)->uc_mcontext.gregs[REG_ERR] & 2 ? "write" : "read";
#endif
    the.run->fault = at;
    fail(std::string(what) + " out of bounds");
}

// ---- the scheduler

__attribute__((noinline)) inline void pause(const char* file, int line) {
    the.current->file = file;
    the.current->line = line;
    twin_switch(&the.current->place, &the.scheduler);
}
inline void enter() {
    the.body();
    pause(nullptr, 0);
}

// Ascending and descending together turn the order of any two threads round.
inline void arrange(std::vector<size_t>& order, std::mt19937& random, bool turned) {
    std::iota(order.begin(), order.end(), 0);
    if (turned && the.run->order == 1) std::reverse(order.begin(), order.end());
    if (turned && the.run->order > 1) std::shuffle(order.begin(), order.end(), random);
}

inline void run_block(std::vector<size_t>& order, std::mt19937& random) {
    memset(the.arrays, the.run->poison, the.array_bytes);
    memset(the.run->shared, the.run->poison, the.run->shared_bytes);
    for (size_t i = 0; i < order.size(); i++) {
        fiber& f = the.fibers[i];
        f.thread = the.run->block.at(i);
        f.file = nullptr;
        prepare(f.place, f.stack, stack_bytes - i % 61 * 64, enter);  // spread over a cache's sets
    }
    const fiber& a = the.fibers[0];
    do {
        if (++the.run->phases == the.run->turned) note_place(a);
        arrange(order, random, the.run->phases <= the.run->turned);
        for (size_t i : order) {
            the.current = &the.fibers[i];
            the.thread = the.current->thread;
            twin_switch(&the.scheduler, &the.current->place);
            if (*the.run->message) return;
        }
        for (size_t i = 1; i < order.size(); i++) {
            const fiber& b = the.fibers[i];
            if (a.line != b.line || (a.line && strcmp(a.file, b.file)))
                return report(text(a) + ", but " + text(b) + ": divergent barrier");
        }
    } while (a.file);
}

inline void run_grid(launch* run, const char* kernel, std::function<void()> body) {
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE};
    struct sigaction old[3], mine = {};
    std::vector<char> signal_stack(1 << 16);
    stack_t old_stack, my_stack = {signal_stack.data(), 0, signal_stack.size()};
    sigaltstack(&my_stack, &old_stack);
    mine.sa_sigaction = on_signal;
    mine.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // it does not return
    for (int i = 0; i < 3; i++) sigaction(signals[i], &mine, &old[i]);

    the.run = run;
    the.kernel = kernel;
    the.body = std::move(body);
    make_stacks(run->block.size());
    first_array = 0;  // so that this thread of the host has its arrays
    if (!dl_iterate_phdr(find_arrays, nullptr)) abort();
    std::mt19937 random(run->order), random_block(run->order);
    std::vector<size_t> blocks(run->grid.size()), threads(run->block.size());
    arrange(blocks, random_block, run->turned == every_phase);
    for (size_t i = 0; i < blocks.size() && !*run->message; i++) {
        the.block = run->grid.at(blocks[i]);
        run_block(threads, random);
    }

    for (int i = 0; i < 3; i++) sigaction(signals[i], &old[i], nullptr);
    sigaltstack(&old_stack, nullptr);
}

// As cuLaunchKernel has them: args[i] is the address of argument i.
template <class... A, size_t... I>
void call(launch* run, const char* name, void (*kernel)(A...), void** args,
          std::index_sequence<I...>) {
    run_grid(run, name, [=] { kernel(*static_cast<A*>(args[I])...); });
}
template <class... A>
void call(launch* run, const char* name, void (*kernel)(A...), void** args) {
    call(run, name, kernel, args, std::index_sequence_for<A...>{});
}
// A letter for the kind of each parameter, and its bytes: "p8 f4 i8 s64".
template <class A>
constexpr char kind = std::is_pointer_v<A>          ? 'p'
                      : std::is_floating_point_v<A> ? 'f'
                      : std::is_integral_v<A>       ? 'i'
                                                    : 's';
template <class... A>
std::string parameters(void (*)(A...)) {
    return ((kind<A> + std::to_string(sizeof(A)) + " ") + ... + "");
}
constexpr int first(int threads = 1024, int = 0) { return threads; }

// What the compiler hands to the functions below, as far as they read it.
struct location {
    const char* file;
    uint32_t line, column;
    const void* type;
    unsigned char log_alignment;  // of a pointer
};

}  // namespace twin

#define TWIN_PUBLIC extern "C" __attribute__((visibility("default")))
#define TWIN_KERNEL(name, ...)                                                 \
    TWIN_PUBLIC void twin_launch_##name(twin::launch* run, void** args) {      \
        twin::call(run, #name, name, args);                                    \
    }                                                                          \
    TWIN_PUBLIC int twin_threads_##name() { return twin::first(__VA_ARGS__); } \
    TWIN_PUBLIC const char* twin_parameters_##name() {                         \
        static const std::string all = twin::parameters(name);                 \
        return all.c_str();                                                    \
    }

#define TWIN_CALLED extern "C" __attribute__((used))
// The compiler calls these where an index is beyond an array that it sees (-fsanitize=bounds), and
// where a pointer is beyond the end of what it points into (object-size) or not aligned (alignment).
TWIN_CALLED void __ubsan_handle_out_of_bounds_abort(const twin::location* at, intptr_t index) {
    twin::fail("index " + std::to_string(index) + " is beyond an array, at " +
               twin::text(at->file, at->line));
}
TWIN_CALLED void __ubsan_handle_type_mismatch_v1_abort(const twin::location* at, uintptr_t p) {
    const bool aligned = p % (uintptr_t(1) << at->log_alignment) == 0;
    twin::fail((aligned ? "a pointer is beyond its array, at " : "a pointer is not aligned, at ") +
               twin::text(at->file, at->line));
}

// ---- CUDA's names

#define __global__ __attribute__((twin_kernel))  // two names for twin.py to find
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((twin_bounds(#__VA_ARGS__)))
#define __shared__ thread_local
#define KC_SHARED_BYTES(name) unsigned char* const name = twin::the.run->shared
#define blockIdx (twin::the.block)
#define threadIdx (twin::the.thread)
#define blockDim (twin::the.run->block)
#define gridDim (twin::the.run->grid)
// The compiler must not keep shared memory in registers over a barrier.
#define __syncthreads()                  \
    do {                                 \
        asm volatile("" ::: "memory");   \
        twin::pause(__FILE__, __LINE__); \
        asm volatile("" ::: "memory");   \
    } while (0)
