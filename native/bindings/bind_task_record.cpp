// Development: record the tasks of parallel regions (benchmarks/scaling.py).
#include <nanobind/stl/tuple.h>

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
    const std::string file(r.file);
    all.emplace_back(file.substr(file.rfind('/') + 1), r.function, r.n_threads, r.starts_threads, r.start, r.python,
                     r.native, r.native_here, r.tasks);
  }
  return all;
}

// Seconds that a region of n_tasks empty tasks takes on a pool of threads: the least of many.
double region_seconds(int n_threads, std::size_t n_tasks) {
  double least = 1.0;
  unlocked([&] {
    ThreadPool pool(n_threads);
    for (int i = 0; i < 2000; ++i) {
      const auto start = std::chrono::steady_clock::now();
      pool.run(n_tasks, [](std::size_t) {});
      least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
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
  m.def("region_seconds", &region_seconds, nb::arg("n_threads"), nb::arg("n_tasks"),
        "Seconds that a region of empty tasks takes on a pool.");
}

}  // namespace rankwood
