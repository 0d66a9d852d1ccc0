// Development: record the tasks of parallel regions (benchmarks/scaling.py).
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <tuple>

#include "bindings/bindings.hpp"
#include "pool.hpp"
#include "task_record.hpp"

namespace rankwood {
namespace {

std::unique_ptr<TaskRecord> record;  // the last one; with the interpreter lock

void record_tasks(bool on) {
  if (on) {
    require(record == nullptr || !record->running(), "tasks are being recorded already");
    record = std::make_unique<TaskRecord>();
    record->begin();
  } else if (record != nullptr) {
    require(record->end(), "the thread that began to record tasks must end it");
  }
}

using Region = std::tuple<std::string, std::string, std::size_t, bool, double, double, double, double,
                          std::vector<double>>;  // as RecordedRegion

std::vector<Region> recorded_tasks() {
  std::vector<Region> all;
  if (record == nullptr) return all;
  require(!record->running(), "tasks are still being recorded");
  for (const RecordedRegion& r : record->regions()) {
    const std::string file(r.file), function(r.function);  // without folders, without arguments of templates
    all.emplace_back(file.substr(file.rfind('/') + 1), function.substr(0, function.find('<')), r.n_threads,
                     r.starts_threads, r.start, r.python, r.native, r.native_here, r.tasks);
  }
  return all;
}

// Seconds that a region of n_tasks tasks, which do nothing for task_seconds, takes on a pool: the least of many.
double region_seconds(int n_threads, std::size_t n_tasks, double task_seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  double least = 1e9;
  unlocked([&] {
    ThreadPool pool(n_threads);
    for (int i = 0; i < 1000; ++i) {
      const Clock::time_point start = Clock::now();
      pool.run(n_tasks, [&](std::size_t) {
        const Clock::time_point begin = Clock::now();
        while (since(begin) < task_seconds) {
        }
      });
      least = std::min(least, since(start));
    }
  });
  return least;
}

}  // namespace

void bind_task_record(nb::module_& m) {
  m.def("record_tasks", &record_tasks, nb::arg("on"),
        "Begin or end to record the parallel regions that this thread runs, which start no threads meanwhile.");
  m.def("recorded_tasks", &recorded_tasks,
        "Regions of the last recording: (file, function, threads, whether they are started for it, start, seconds of "
        "Python and of bindings before it, those of its own binding, seconds of every task); last, what came after.");
  m.def("region_seconds", &region_seconds, nb::arg("n_threads"), nb::arg("n_tasks"), nb::arg("task_seconds"),
        "Seconds that a region of tasks which do nothing for a while takes on a pool.");
}

}  // namespace rankwood
