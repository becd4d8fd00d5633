// A host twin of the device: the few CUDA names that drivers use, so that the host compiler reads
// the very same .cu files, and a scheduler that runs the threads of a block in lock step.
//
// A thread is a fiber with a stack of its own. It runs until its next barrier, or its end, and then
// the next one does, in an order that the launch chooses; blocks run one after the other. What a
// kernel must not do ends the launch with a message: see wait, on_signal and the __ubsan functions.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdarg>
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

struct dim3 {
    unsigned x, y, z;
    size_t size() const { return size_t(x) * y * z; }
    dim3 at(size_t i) const { return {unsigned(i % x), unsigned(i / x % y), unsigned(i / x / y)}; }
};

// What twin.py fills in, and reads the last two fields of.
struct launch {
    dim3 grid, block;
    uint64_t shared_bytes;
    int32_t order;     // 0 ascending, 1 descending, else the seed of a new order at every barrier
    int32_t poison;    // what every byte of shared memory is at the start of a block
    int32_t at_start;  // the exact end of dynamic shared memory: its first byte, or its last
    uintptr_t fault;   // the address of an access out of bounds
    char message[1024];
};

// ---- fibers

#if defined(__x86_64__)
struct context {
    void* sp;
};
extern "C" __attribute__((visibility("hidden"))) void twin_switch(context* from, context* to);
asm(R"(
    .text
    .hidden twin_switch
    .globl twin_switch
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
    c.sp = top;
}
#else
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
    char* stack = nullptr;
    const char* file = nullptr;  // where it waits; nowhere: it has returned
    int line = 0;
};

// Memory between two inaccessible ranges, which are long because a stride may step over a page.
constexpr size_t page = 65536, guard = 1 << 20, stack_bytes = 4 * page;
inline char* guarded(size_t bytes) {
    void* all = mmap(nullptr, bytes + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    mprotect(static_cast<char*>(all) + guard, bytes, PROT_READ | PROT_WRITE);
    return static_cast<char*>(all) + guard;
}
inline void release(char* data, size_t bytes) { munmap(data - guard, bytes + 2 * guard); }

// ---- the one launch that is under way: twin.py sees to it that there is no other

struct machine {
    launch* run = nullptr;
    const char* kernel;
    std::function<void()> body;
    std::vector<fiber> fibers;
    fiber* current = nullptr;
    context scheduler;
    dim3 block, thread;
    unsigned char* shared;
};
inline machine the;
inline __attribute__((tls_model("global-dynamic"))) thread_local unsigned char first_shared;

inline std::string text(dim3 i) {
    return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
}
inline std::string text(const fiber& f) {
    const std::string who = "thread " + text(the.run->block.at(&f - the.fibers.data()));
    if (!f.file) return who + " has returned";
    const char* name = strrchr(f.file, '/');
    return who + " waits at " + (name ? name + 1 : f.file) + ":" + std::to_string(f.line);
}
inline void report(const std::string& what) {
    snprintf(the.run->message, sizeof the.run->message, "%s, block %s, %s", the.kernel,
             text(the.block).c_str(), what.c_str());
}
// Ends the launch, from inside a thread, whose stack is left as it is.
[[noreturn]] inline void fail(const std::string& what) {
    report("thread " + text(the.thread) + ": " + what);
    twin_switch(&the.current->place, &the.scheduler);
    __builtin_unreachable();
}

__attribute__((noinline)) inline void barrier(const char* file, int line) {
    the.current->file = file;
    the.current->line = line;
    twin_switch(&the.current->place, &the.scheduler);
}
inline void enter() {
    the.body();
    the.current->file = nullptr;
    twin_switch(&the.current->place, &the.scheduler);
}

// All static shared arrays are thread-local, and nothing else in this library is but one byte.
inline int poison_static(dl_phdr_info* info, size_t, void*) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const auto& part = info->dlpi_phdr[i];
        const auto* data = static_cast<unsigned char*>(info->dlpi_tls_data);
        if (part.p_type != PT_TLS || &first_shared < data || &first_shared >= data + part.p_memsz)
            continue;
        memset(info->dlpi_tls_data, the.run->poison, part.p_memsz);
        return 1;
    }
    return 0;
}

inline void arrange(std::vector<size_t>& order, std::mt19937& random) {
    std::iota(order.begin(), order.end(), 0);
    if (the.run->order == 1) std::reverse(order.begin(), order.end());
    if (the.run->order > 1) std::shuffle(order.begin(), order.end(), random);
}

// Runs one block; false: with a message.
inline bool run_block(std::vector<size_t>& order, std::mt19937& random) {
    first_shared = 0;  // so that this thread has its arrays
    if (!dl_iterate_phdr(poison_static, nullptr)) report("static shared memory is not found");
    memset(the.shared, the.run->poison, the.run->shared_bytes);
    for (size_t i = 0; i < order.size(); i++)
        prepare(the.fibers[i].place, the.fibers[i].stack, stack_bytes, enter);
    do {
        arrange(order, random);
        for (size_t i : order) {
            the.current = &the.fibers[i];
            the.thread = the.run->block.at(i);
            twin_switch(&the.scheduler, &the.current->place);
            if (*the.run->message) return false;
        }
        const fiber& a = the.fibers[0];
        for (size_t i = 1; i < order.size(); i++) {
            const fiber& b = the.fibers[i];
            if (!a.file == !b.file && (!a.file || (a.line == b.line && !strcmp(a.file, b.file))))
                continue;
            report(text(a) + ", but " + text(b) + ": divergent barrier");
            return false;
        }
    } while (the.fibers[0].file);
    return true;
}

inline void on_signal(int number, siginfo_t* info, void* state) {
    const char* address = static_cast<char*>(info->si_addr);
    if (number == SIGFPE) fail("division of an integer by zero");
    if (number == SIGILL) fail("a place that is never reached");
    const char* low = the.current->stack;
    if (address < low && address >= low - guard) fail("its stack is full");
    the.run->fault = reinterpret_cast<uintptr_t>(address);
    const char* what = "access";
#if defined(__x86_64__)
    what = static_cast<ucontext_t*>(state)->uc_mcontext.gregs[REG_ERR] & 2 ? "write" : "read";
#endif
    const unsigned char* at = static_cast<unsigned char*>(info->si_addr);
    const long long low_by = at - the.shared;
    const bool near = low_by > -(long long)(guard) && low_by < (long long)(guard + page);
    if (!near || !the.run->shared_bytes) fail(std::string(what) + " out of bounds");
    the.run->fault = 0;
    fail(std::string(what) + " out of bounds: byte " + std::to_string(low_by) + " of the " +
         std::to_string(the.run->shared_bytes) + " bytes of dynamic shared memory");
}

// As cuLaunchKernel takes them: args[i] is the address of argument i.
inline void run_grid(launch* run, const char* kernel, std::function<void()> body) {
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    struct sigaction old[4], mine = {};
    std::vector<char> signal_stack(page);
    stack_t old_stack, my_stack = {signal_stack.data(), 0, signal_stack.size()};
    sigaltstack(&my_stack, &old_stack);
    mine.sa_sigaction = on_signal;
    mine.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < 4; i++) sigaction(signals[i], &mine, &old[i]);

    the.run = run;
    the.kernel = kernel;
    the.body = std::move(body);
    const size_t room = (run->shared_bytes + page - 1) / page * page;
    char* shared = guarded(room);
    the.shared = reinterpret_cast<unsigned char*>(shared);
    if (!run->at_start) the.shared += room - run->shared_bytes;
    while (the.fibers.size() < run->block.size())
        the.fibers.emplace_back().stack = guarded(stack_bytes);
    std::mt19937 random(run->order);
    std::vector<size_t> blocks(run->grid.size()), threads(run->block.size());
    arrange(blocks, random);
    for (size_t i : blocks) {
        the.block = run->grid.at(i);
        if (!run_block(threads, random)) break;
    }
    release(shared, room);

    for (int i = 0; i < 4; i++) sigaction(signals[i], &old[i], nullptr);
    sigaltstack(&old_stack, nullptr);
}

template <class... A, size_t... I>
void call(launch* run, const char* name, void (*kernel)(A...), void** args,
          std::index_sequence<I...>) {
    run_grid(run, name, [=] { kernel(*static_cast<A*>(args[I])...); });
}
template <class... A>
void call(launch* run, const char* name, void (*kernel)(A...), void** args) {
    call(run, name, kernel, args, std::index_sequence_for<A...>{});
}
// One letter for what a parameter is, and its bytes: "p8 f4 i8 s64".
template <class... A>
std::string parameters(void (*)(A...)) {
    std::string all;
    ((all += std::is_pointer_v<A>          ? 'p'
             : std::is_floating_point_v<A> ? 'f'
             : std::is_integral_v<A>       ? 'i'
                                           : 's',
      all += std::to_string(sizeof(A)) + " "),
     ...);
    return all;
}

}  // namespace twin

#define TWIN_PUBLIC extern "C" __attribute__((visibility("default")))
#define TWIN_KERNEL(name)                                               \
    TWIN_PUBLIC void twin_launch_##name(twin::launch* run, void** args) { \
        twin::call(run, #name, name, args);                             \
    }                                                                   \
    TWIN_PUBLIC const char* twin_parameters_##name() {                  \
        static const std::string all = twin::parameters(name);          \
        return all.c_str();                                             \
    }

// What the compiler calls where an index is beyond an array that it sees (-fsanitize=bounds), and
// where a pointer is beyond what it points into (-fsanitize=object-size).
struct twin_place {
    const char* file;
    uint32_t line, column;
};
inline std::string twin_text(const twin_place& at) {
    const char* name = strrchr(at.file, '/');
    return std::string(name ? name + 1 : at.file) + ":" + std::to_string(at.line);
}
extern "C" inline __attribute__((used, noreturn)) void __ubsan_handle_out_of_bounds_abort(
    const twin_place* at, uintptr_t index) {
    twin::fail("index " + std::to_string(static_cast<intptr_t>(index)) +
               " is beyond an array, at " + twin_text(*at));
}
extern "C" inline __attribute__((used, noreturn)) void __ubsan_handle_type_mismatch_v1_abort(
    const twin_place* at, uintptr_t) {
    twin::fail("a pointer is beyond its array, at " + twin_text(*at));
}

// ---- CUDA's names

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ thread_local
#define KC_SHARED_BYTES(name) unsigned char* const name = twin::the.shared
#define blockIdx (static_cast<const twin::dim3&>(twin::the.block))
#define threadIdx (static_cast<const twin::dim3&>(twin::the.thread))
#define blockDim (static_cast<const twin::dim3&>(twin::the.run->block))
#define gridDim (static_cast<const twin::dim3&>(twin::the.run->grid))
// The compiler must neither keep shared memory in registers over a barrier nor move it past one.
#define __syncthreads()                     \
    do {                                    \
        asm volatile("" ::: "memory");      \
        twin::barrier(__FILE__, __LINE__);  \
        asm volatile("" ::: "memory");      \
    } while (0)
