// Development: what the parallel regions of a run consist of, so that its time on other numbers of cores can be
// computed.
//
// While a thread records, pool.hpp and parallel.hpp start no threads: they cut the work as for the number of threads
// that they are asked for, do all of it in the calling thread, and note how long every task takes. The time between two
// regions is serial, spent in a binding or in Python. Durations are processor time of the thread where the system tells
// it, so that other work on the machine does not count. Off, it costs one load per region.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>
#if __has_include(<unistd.h>)
#include <time.h>
#endif

#include "interruption.hpp"

namespace rankwood {

// One parallel region; times in seconds.
struct RecordedRegion {
  const char* file;           // where the region is
  const char* function;       // and in which function; both empty for what follows the last region
  std::size_t n_threads;      // that may work on it
  bool starts_threads;        // for this region only
  double start;               // since recording began, by the clock on the wall
  double python;              // serial time since the region before, outside and
  double native;              // inside of bindings;
  double native_here;         // the part of the latter within the binding that has this region
  std::vector<double> tasks;  // duration of each, in the order in which they are handed out
};

class TaskRecord {
 public:
  ~TaskRecord() { end(); }
  TaskRecord() = default;
  TaskRecord(const TaskRecord&) = delete;
  TaskRecord& operator=(const TaskRecord&) = delete;

  // That of the calling thread while it records, else null.
  static TaskRecord* current() {
    TaskRecord* const record = recording_.load(std::memory_order_relaxed);
    return record == nullptr || record->owner_ != std::this_thread::get_id() ? nullptr : record;
  }

  void begin() {
    began_ = Clock::now();
    last_ = processor_time();
    recording_.store(this);
  }
  bool running() const { return recording_.load() == this; }
  // By the thread that began; false in any other.
  bool end() {
    if (!running()) return true;
    if (current() == nullptr) return false;
    recording_.store(nullptr);
    pass(python_);
    regions_.push_back({"", "", 1, false, since_begin(), python_, native_, 0.0, {}});
    return true;
  }
  const std::vector<RecordedRegion>& regions() const { return regions_; }  // the last is what came after all of them

  bool inside() const { return inside_; }  // of a task: regions within it are part of it

  // The work of a binding, from here on: its serial time is not Python's.
  class Binding {
   public:
    Binding() : record_(current()) {
      if (record_ != nullptr && record_->n_bindings_++ == 0) record_->pass(record_->python_);
    }
    ~Binding() {
      if (record_ == nullptr || --record_->n_bindings_ > 0) return;
      record_->pass(record_->native_here_);
      record_->native_ += record_->native_here_;
      record_->native_here_ = 0.0;
    }
    Binding(const Binding&) = delete;
    Binding& operator=(const Binding&) = delete;

   private:
    TaskRecord* record_;
  };

  template <class Task>
  void run(const char* file, const char* function, bool starts_threads, std::size_t n_threads, std::size_t n_tasks,
           const Task& task) {
    pass(n_bindings_ > 0 ? native_here_ : python_);
    regions_.push_back({file, function, n_threads, starts_threads, since_begin(), python_, native_ + native_here_,
                        native_here_, std::vector<double>(n_tasks, 0.0)});
    python_ = native_ = native_here_ = 0.0;
    std::vector<double>& tasks = regions_.back().tasks;
    const Inside inside(inside_);
    last_ = processor_time();
    for (std::size_t i = 0; i < n_tasks; ++i) {
      if (i > 0) check_interruption();
      task(i);
      pass(tasks[i]);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Inside {
    explicit Inside(bool& flag) : flag(flag) { flag = true; }
    ~Inside() { flag = false; }
    bool& flag;
  };

  double since_begin() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  static double processor_time() {
#if defined(CLOCK_THREAD_CPUTIME_ID)
    timespec now;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0) {
      return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
    }
#endif
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  }
  void pass(double& sum) {
    const double now = processor_time();
    sum += now - last_;
    last_ = now;
  }

  static inline std::atomic<TaskRecord*> recording_{nullptr};

  const std::thread::id owner_ = std::this_thread::get_id();
  Clock::time_point began_;
  double last_ = 0.0;
  double python_ = 0.0, native_ = 0.0, native_here_ = 0.0;
  int n_bindings_ = 0;
  bool inside_ = false;
  std::vector<RecordedRegion> regions_;
};

}  // namespace rankwood
