// Run independent tasks on a few threads that live only as long as the call, or on those of the training that is under
// way: nothing is started at import, nothing survives into a fork.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "interruption.hpp"
#include "pool.hpp"
#include "task_record.hpp"

namespace rankwood {

// Call task(i) once for every i in [0, n_tasks), on up to n_threads threads (the caller is one of them).
// Tasks are handed out in increasing order. The exception of the lowest-numbered failing task is rethrown,
// so that the error a user sees does not depend on the number of threads. When the work is interrupted no more tasks
// are handed out, and once those that run have ended it throws Interrupted, whatever else there was to throw. The
// caller's file and function name the region where tasks are recorded.
template <class Task>
void parallel_for(std::size_t n_tasks, int n_threads, const Task& task, const char* file = __builtin_FILE(),
                  const char* function = __builtin_FUNCTION()) {
  Interruption* const interruption = Interruption::current();
  if (interruption != nullptr) interruption->begin();
  const std::size_t n_workers = std::min<std::size_t>(n_tasks, n_threads > 1 ? static_cast<std::size_t>(n_threads) : 1);
  TaskRecord* const record = TaskRecord::current();
  if (n_workers > 1 && record != nullptr && !record->inside()) {
    return record->run(file, function, ThreadPool::ready(n_threads) == nullptr, n_workers, n_tasks, task);
  }
  if (n_workers <= 1 || record != nullptr) {
    for (std::size_t i = 0; i < n_tasks; ++i) {
      if (i > 0 && interruption != nullptr) interruption->check();
      task(i);
    }
    return;
  }
  std::atomic<std::size_t> next{0};
  std::mutex lock;
  std::size_t failed_task = n_tasks, n_finished = 0;
  std::exception_ptr failure;
  std::condition_variable finished;
  if (const std::shared_ptr<ThreadPool> pool = ThreadPool::ready(n_threads)) {
    std::atomic<std::size_t> first_failed{n_tasks};
    pool->run(n_tasks, [&](std::size_t i) {
      if (i > first_failed.load()) return;  // tasks below have begun
      try {
        task(i);
      } catch (const Interrupted&) {
        throw;
      } catch (...) {
        const std::lock_guard<std::mutex> guard(lock);
        if (i >= first_failed.load()) return;
        first_failed.store(i);
        failure = std::current_exception();
      }
    });
    if (failure) std::rethrow_exception(failure);
    return;
  }

  const auto work = [&] {
    const Interruption::Scope scope(interruption);
    for (std::size_t i = next.fetch_add(1); i < n_tasks; i = next.fetch_add(1)) {
      try {
        if (interruption != nullptr) interruption->check();
        task(i);
      } catch (...) {
        const std::lock_guard<std::mutex> guard(lock);
        if (i < failed_task) {
          failed_task = i;
          failure = std::current_exception();
        }
        next.store(n_tasks);  // hand out no more; tasks below i are already running
      }
    }
  };
  const auto help = [&] {
    work();
    const std::lock_guard<std::mutex> guard(lock);
    ++n_finished;
    finished.notify_one();
  };

  std::vector<std::thread> workers;
  workers.reserve(n_workers - 1);
  try {
    for (std::size_t w = 1; w < n_workers; ++w) workers.emplace_back(help);
  } catch (...) {  // no more threads to be had: the ones there are do the work
  }
  work();
  if (interruption != nullptr) {  // the caller is the one who asks: it must not sleep until all are done
    std::unique_lock<std::mutex> guard(lock);
    while (!finished.wait_for(guard, Interruption::kPause, [&] { return n_finished == workers.size(); })) {
      guard.unlock();
      interruption->ask();
      guard.lock();
    }
  }
  for (std::thread& worker : workers) worker.join();
  if (interruption != nullptr && interruption->stopped()) throw Interrupted{};
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rankwood
