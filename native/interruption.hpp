// Long work that somebody may want to stop: the thread that started it asks now and then, all its helpers obey.
//
// A binding makes an Interruption the current one of its thread; parallel.hpp and pool.hpp hand it on to their threads
// and look at it between two tasks. A task that may take longer than some milliseconds looks for itself, by
// check_interruption(). Work that is given up ends as Interrupted; what it was filling is then worth nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>

// Kept out of the loops that call it.
#if defined(_MSC_VER)
#define RANKWOOD_COLD __declspec(noinline)
#else
#define RANKWOOD_COLD __attribute__((noinline, cold))
#endif

namespace rankwood {

// Thrown where work is given up.
struct Interrupted {};

class Interruption {
 public:
  // asker() is called some twenty times a second, by the thread that makes this object only: whether to stop.
  template <class Asker>
  explicit Interruption(Asker& asker)
      : ask_([](void* context) { return (*static_cast<Asker*>(context))(); }),
        asker_(&asker),
        owner_(std::this_thread::get_id()) {}
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // How long the one who asks may be without doing so.
  static constexpr std::chrono::milliseconds kPause{40};

  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // Whether to stop; to be called by any thread of the work, every few milliseconds. Costs about as much as a call of
  // a function: while looks come thick and fast, most leave the clock alone.
  bool look() {
    if (stopped() || std::this_thread::get_id() != owner_) return stopped();
    if (--looks_left_ > 0) return false;
    looks_left_ = stride_;
    return ask();
  }
  void check() {
    if (look()) give_up();
  }

  // Other work begins, whose looks may be further apart.
  void begin() {
    if (std::this_thread::get_id() == owner_) stride_ = looks_left_ = 1;
  }

  // What look() does for the owner, when it has nothing else to do.
  RANKWOOD_COLD bool ask() {
    const Clock::time_point now = Clock::now();
    if (asked_ == Clock::time_point{}) asked_ = looked_ = now;
    const Clock::duration passed = now - std::exchange(looked_, now);
    if (passed < kSoon) {
      stride_ = std::min(2 * stride_, kMaxStride);
    } else if (passed > kLate) {
      stride_ = 1;
    }
    if (!stopped() && now - asked_ > kPause) {
      if (ask_(asker_)) stopped_.store(true, std::memory_order_relaxed);
      asked_ = Clock::now();
    }
    return stopped();
  }

  // That of the work which this thread does; null when nobody can stop it.
  static Interruption* current() { return current_; }

  class Scope {
   public:
    explicit Scope(Interruption* interruption) : outer_(std::exchange(current_, interruption)) {}
    ~Scope() { current_ = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Interruption* outer_;
  };

 private:
  using Clock = std::chrono::steady_clock;

  [[noreturn]] RANKWOOD_COLD static void give_up() { throw Interrupted{}; }

  static constexpr std::chrono::microseconds kSoon{50}, kLate{500};
  static constexpr int kMaxStride = 32;

  static inline constinit thread_local Interruption* current_ = nullptr;

  bool (*ask_)(void*);
  void* asker_;
  std::thread::id owner_;
  int stride_ = 1, looks_left_ = 1;
  Clock::time_point looked_{}, asked_{};
  std::atomic<bool> stopped_{false};
};

// Give up if somebody has asked for it.
inline void check_interruption() {
  if (Interruption* const interruption = Interruption::current()) interruption->check();
}

// The same in a loop over many small things: one look for as many as take a fraction of a millisecond.
inline void check_interruption(std::size_t i) {
  constexpr std::size_t kStep = 16384;
  if (i % kStep == 0) check_interruption();
}

// For kernels, which do not know this file: whether to stop. The context is an Interruption, or null.
inline bool is_interrupted(void* context) { return context != nullptr && static_cast<Interruption*>(context)->look(); }

}  // namespace rankwood
