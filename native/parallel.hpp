// Run independent tasks on a few threads that live only as long as the call: nothing is started at import,
// nothing survives into a fork.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace rankwood {

// Call task(i) once for every i in [0, n_tasks), on up to n_threads threads (the caller is one of them).
// Tasks are handed out in increasing order. The exception of the lowest-numbered failing task is rethrown,
// so that the error a user sees does not depend on the number of threads.
template <class Task>
void parallel_for(std::size_t n_tasks, int n_threads, const Task& task) {
  const std::size_t n_workers = std::min<std::size_t>(n_tasks, n_threads > 1 ? static_cast<std::size_t>(n_threads) : 1);
  if (n_workers <= 1) {
    for (std::size_t i = 0; i < n_tasks; ++i) task(i);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::mutex failure_lock;
  std::size_t failed_task = n_tasks;
  std::exception_ptr failure;

  const auto work = [&] {
    for (std::size_t i = next.fetch_add(1); i < n_tasks; i = next.fetch_add(1)) {
      try {
        task(i);
      } catch (...) {
        const std::lock_guard<std::mutex> guard(failure_lock);
        if (i < failed_task) {
          failed_task = i;
          failure = std::current_exception();
        }
        next.store(n_tasks);  // hand out no more; tasks below i are already running
      }
    }
  };

  std::vector<std::thread> workers;
  workers.reserve(n_workers - 1);
  try {
    for (std::size_t w = 1; w < n_workers; ++w) workers.emplace_back(work);
  } catch (...) {  // no more threads to be had: the ones there are do the work
  }
  work();
  for (std::thread& worker : workers) worker.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rankwood
