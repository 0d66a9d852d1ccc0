// A few threads kept for the length of one training run, for work that comes in many small portions: a tree asks for
// help twice per node, far too often to start threads each time. All that a thread makes for its training shares them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>
#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

#include "interruption.hpp"
#include "task_record.hpp"

namespace rankwood {

class ThreadPool {
 public:
  explicit ThreadPool(int n_threads) : asked_(n_threads > 1 ? n_threads : 1) {
    if (TaskRecord::current() != nullptr) return;
    for (int t = 1; t < n_threads; ++t) {
      try {
        workers_.emplace_back([this] { work(); });
      } catch (...) {  // no more threads to be had: the ones there are do the work
        break;
      }
    }
  }
  ~ThreadPool() {
    {
      const std::lock_guard<std::mutex> guard(lock_);
      stopping_ = true;
      epoch_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Threads that work; while tasks are recorded, those that would.
  int size() const { return TaskRecord::current() != nullptr ? asked_ : static_cast<int>(workers_.size()) + 1; }

  // Call task(i) once for every i in [0, n_tasks); the caller works too. Tasks must not throw, but for Interrupted:
  // when the work is interrupted, tasks that have not begun are left out, and it throws that. The caller's file and
  // function name the region where tasks are recorded.
  template <class Task>
  void run(std::size_t n_tasks, const Task& task, const char* file = __builtin_FILE(),
           const char* function = __builtin_FUNCTION()) {
    Interruption* const interruption = Interruption::current();
    if (interruption != nullptr) interruption->begin();
    if (TaskRecord* const record = TaskRecord::current(); record != nullptr && !record->inside()) {
      if (asked_ > 1 && n_tasks > 1) {
        return record->run(file, function, false, static_cast<std::size_t>(asked_), n_tasks, task);
      }
    }
    const Busy busy(busy_);
    if (workers_.empty() || n_tasks <= 1 || !busy.alone) {
      for (std::size_t i = 0; i < n_tasks; ++i) {
        if (i > 0 && interruption != nullptr) interruption->check();
        task(i);
      }
      return;
    }
    interruption_ = interruption;
    call_ = [](const void* context, std::size_t i) { (*static_cast<const Task*>(context))(i); };
    context_ = &task;
    pending_.store(n_tasks, std::memory_order_relaxed);
    ticket_.store(static_cast<std::uint64_t>(n_tasks) << 32, std::memory_order_release);
    {
      const std::lock_guard<std::mutex> guard(lock_);
      epoch_.fetch_add(1, std::memory_order_release);
    }
    if (sleeping_.load() > 0) wake_.notify_all();
    take_tasks();
    for (int spins = 0; pending_.load(std::memory_order_acquire) != 0; ++spins) {
      pause();
      if (spins <= kSpins) continue;
      std::this_thread::yield();
      if (interruption != nullptr) interruption->ask();
    }
    if (interruption != nullptr && interruption->stopped()) throw Interrupted{};
  }

  // The pool of so many threads that the calling thread has and that is free now, else null.
  static std::shared_ptr<ThreadPool> ready(int n_threads) {
    std::shared_ptr<ThreadPool> pool = kept_.lock();
    if (pool == nullptr || pool->asked_ != n_threads || pool->is_foreign() || pool->busy_.load()) pool.reset();
    return pool;
  }
  // The same, made if there is none. It lives as long as somebody holds it.
  static std::shared_ptr<ThreadPool> shared(int n_threads) {
    std::shared_ptr<ThreadPool> pool = ready(n_threads);
    if (pool == nullptr || (pool->workers_.empty() && n_threads > 1 && TaskRecord::current() == nullptr)) {
      kept_ = pool = std::make_shared<ThreadPool>(n_threads);
    }
    return pool;
  }

 private:
  // Whether the one who asks is the only one: a task that asks its own pool for help, or another thread that was handed
  // what works with this pool, has to work alone.
  struct Busy {
    explicit Busy(std::atomic<bool>& flag) : flag(flag), alone(!flag.exchange(true)) {}
    ~Busy() {
      if (alone) flag.store(false);
    }
    std::atomic<bool>& flag;
    const bool alone;
  };

  // Threads do not survive a fork.
  bool is_foreign() const {
#if __has_include(<unistd.h>)
    return getpid() != process_;
#else
    return false;
#endif
  }

  static constexpr int kSpins = 50'000;  // about half a millisecond: the next portion of a tree usually comes sooner

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  // The ticket holds the number of tasks and the next one. A worker that comes late, when the portion it was woken
  // for is done, finds no task left or takes one of the next portion; either is right, and nobody waits for it.
  void take_tasks() {
    for (;;) {
      const std::uint64_t ticket = ticket_.fetch_add(1, std::memory_order_acq_rel);
      const std::uint64_t task = ticket & 0xffffffffu;
      if (task >= ticket >> 32) return;
      run_task(static_cast<std::size_t>(task));
      pending_.fetch_sub(1, std::memory_order_release);
    }
  }

  void run_task(std::size_t task) {
    const Interruption::Scope scope(interruption_);
    try {
      check_interruption();
      call_(context_, task);
    } catch (const Interrupted&) {  // run() throws it again when no task is running any more
    }
  }

  void work() {
    std::size_t seen = 0;
    for (;;) {
      int spins = 0;
      while (epoch_.load(std::memory_order_acquire) == seen) {
        pause();
        if (++spins > kSpins) {
          std::unique_lock<std::mutex> guard(lock_);
          sleeping_.fetch_add(1);
          wake_.wait(guard, [&] { return epoch_.load(std::memory_order_acquire) != seen; });
          sleeping_.fetch_sub(1);
        }
      }
      seen = epoch_.load(std::memory_order_acquire);
      if (stopping_.load(std::memory_order_acquire)) return;
      take_tasks();
    }
  }

  static inline thread_local std::weak_ptr<ThreadPool> kept_;

  const int asked_;
#if __has_include(<unistd.h>)
  const pid_t process_ = getpid();
#endif
  std::atomic<bool> busy_{false};
  std::vector<std::thread> workers_;
  std::mutex lock_;
  std::condition_variable wake_;
  std::atomic<std::size_t> epoch_{0};
  std::atomic<int> sleeping_{0};
  std::atomic<std::size_t> pending_{0};
  std::atomic<std::uint64_t> ticket_{0};
  std::atomic<bool> stopping_{false};
  void (*call_)(const void*, std::size_t) = nullptr;
  const void* context_ = nullptr;
  Interruption* interruption_ = nullptr;
};

}  // namespace rankwood
