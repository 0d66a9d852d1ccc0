// Long work that somebody may want to stop: the thread that started it asks now and then, all its helpers obey.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>

namespace rankwood {

class Interruption {
 public:
  // `ask` is called about ten times a second, by the thread that makes this object only: whether to stop.
  explicit Interruption(std::function<bool()> ask)
      : ask_(std::move(ask)), owner_(std::this_thread::get_id()), asked_(Clock::now()) {}

  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // Whether to stop; to be called from time to time, at least every few milliseconds.
  bool check() {
    if (!stopped() && ask_ && std::this_thread::get_id() == owner_ && Clock::now() - asked_ > kPause) {
      if (ask_()) stopped_.store(true, std::memory_order_relaxed);
      asked_ = Clock::now();
    }
    return stopped();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPause{100};

  std::function<bool()> ask_;
  std::thread::id owner_;
  Clock::time_point asked_;
  std::atomic<bool> stopped_{false};
};

}  // namespace rankwood
