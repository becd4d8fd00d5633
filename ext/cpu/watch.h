// Interruption and progress of a call: the thread that made it asks Python every tenth of a second.
#pragma once

#include <atomic>
#include <chrono>

#include "kernelcore/config.h"

namespace kc {

// One call, shared by its threads. Thread 0 is the one that made it, and has a Python behind it.
class watched_call {
public:
    // Takes the GIL and the fraction of the work done; not zero: stop.
    using poll = int (*)(void* caller, double fraction);

    void begin(index_t total, poll ask, void* caller) {
        total_ = total;
        ask_ = ask;
        caller_ = caller;
        last_ = clock::now();
    }
    void done(index_t pieces) { done_.fetch_add(pieces, std::memory_order_relaxed); }
    bool goes_on() const { return !stopped_.load(std::memory_order_relaxed); }

    // Before a piece of work that is worth a look at the clock.
    bool goes_on(int thread) {
        if (thread == 0) look();
        return goes_on();
    }
    // Before one that may not be: `work` entries times operations, of a nanosecond or more each.
    bool after(int thread, index_t work) {
        if (thread == 0 && (work_ += work) >= 1 << 16) look();
        return goes_on();
    }

private:
    using clock = std::chrono::steady_clock;

    void look() {
        work_ = 0;
        const auto now = clock::now();
        if (!goes_on() || now - last_ < std::chrono::milliseconds(100)) return;
        const auto share = double(done_.load(std::memory_order_relaxed)) / double(total_);
        if (ask_(caller_, share < 1 ? share : 1)) stopped_.store(true, std::memory_order_relaxed);
        last_ = clock::now();
    }

    std::atomic<bool> stopped_{false};
    std::atomic<index_t> done_{0};
    index_t total_ = 1, work_ = 0;  // work_ and last_: of thread 0
    clock::time_point last_;
    poll ask_ = nullptr;
    void* caller_ = nullptr;
};

// A watch (kernelcore/host/watch.h) of one thread.
struct watcher {
    watched_call& call;
    int thread;
    bool after(index_t work) const { return call.after(thread, work); }
};

}  // namespace kc
