// Interruption and progress of a call: the thread that made it asks Python every tenth of a second.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "kernelcore/config.h"

namespace kc {

// One call, shared by its threads. Thread 0 made it, and alone may ask Python.
class watched_call {
public:
    // Takes the GIL, is told the fraction of the work done, and returns nonzero to stop.
    using poll = int (*)(void* caller, double fraction);

    void begin(index_t total, index_t pieces, poll ask, void* caller) {
        total_ = total;
        ask_ = ask;
        caller_ = caller;
        last_ = clock::now();
        deal(pieces);
    }
    void done(index_t work) { done_.fetch_add(work, std::memory_order_relaxed); }
    // Rows [i0, i1) against columns [j0, j1), in a symmetric matrix without those below the diagonal.
    void done(index_t i0, index_t i1, index_t j0, index_t j1, bool symmetric) {
        index_t work = 0;
        for (index_t i = i0; i < i1; i++) {
            const index_t first = symmetric && i > j0 ? i : j0;
            if (first < j1) work += j1 - first;
        }
        done(work);
    }
    bool goes_on() const { return !stopped_.load(std::memory_order_relaxed); }

    // Called before work that is long enough for a look at the clock.
    bool goes_on(int thread) {
        if (thread == 0) look();
        return goes_on();
    }
    // Called before work that may be shorter: `work` is entries times operations, of a nanosecond or
    // more each.
    bool after(int thread, index_t work) {
        if (thread == 0 && (work_ += work) >= 1 << 16) look();
        return goes_on();
    }

    // Begins a parallel region, in pieces that threads take one by one. OpenMP's own schedules end in
    // a barrier, where thread 0 would sleep while another thread works on a long piece.
    void deal(index_t pieces) {
        pieces_ = pieces;
        next_.store(0, std::memory_order_relaxed);
        ended_.store(0, std::memory_order_relaxed);
    }
    // Returns a piece to do, or -1, to a thread that has done piece `last`; -1 if it has done none.
    index_t next(index_t last) {
        if (last >= 0 && ended_.fetch_add(1) + 1 == pieces_) {
            const std::lock_guard<std::mutex> lock(mutex_);
            over_.notify_one();
        }
        const index_t piece = goes_on() ? next_.fetch_add(1, std::memory_order_relaxed) : pieces_;
        return piece < pieces_ ? piece : -1;
    }
    // Called at the end of the region; a short wait is spent awake.
    void wait(int thread) {
        if (thread != 0) return;
        const auto over = [this] { return !goes_on() || ended_.load() >= pieces_; };
        for (const auto since = clock::now(); !over();) {
            if (clock::now() - since < std::chrono::microseconds(200)) {
                std::this_thread::yield();
                continue;
            }
            std::unique_lock<std::mutex> lock(mutex_);
            over_.wait_for(lock, interval, over);
            lock.unlock();
            look();
        }
    }

private:
    using clock = std::chrono::steady_clock;
    static constexpr auto interval = std::chrono::milliseconds(100);

    void look() {
        work_ = 0;
        if (!goes_on() || clock::now() - last_ < interval) return;
        const auto share = double(done_.load(std::memory_order_relaxed)) / double(total_);
        if (ask_(caller_, share < 1 ? share : 1)) stopped_.store(true, std::memory_order_relaxed);
        last_ = clock::now();
    }

    std::atomic<bool> stopped_{false};
    std::atomic<index_t> done_{0}, next_{0}, ended_{0};
    std::mutex mutex_;
    std::condition_variable over_;
    index_t total_ = 1, pieces_ = 0;
    index_t work_ = 0;  // of thread 0 since its last look, which was at last_
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
