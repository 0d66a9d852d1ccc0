// What the binding files share. A binding checks dtype, shape and contiguity and calls a kernel without the interpreter
// lock, by unlocked(); std::invalid_argument becomes ValueError.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "interruption.hpp"
#include "task_record.hpp"

namespace nb = nanobind;

namespace rankwood {

// C-contiguous arrays on the CPU; `In` is read-only. Types are never converted behind the caller's back.
template <class T, std::size_t Dims = 1>
using In = nb::ndarray<const T, nb::ndim<Dims>, nb::c_contig, nb::device::cpu>;
template <class T, std::size_t Dims = 1>
using Out = nb::ndarray<T, nb::ndim<Dims>, nb::c_contig, nb::device::cpu>;

// A vector as an array of numpy, without a copy.
template <class T>
using Numpy = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <class T>
Numpy<T> to_numpy(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  return Numpy<T>(kept->data(), {kept->size()}, owner);
}

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// A thread that asks for the interpreter lock when the interpreter is at its end never gets it. Since Python 3.14 it
// waits for ever; before, its stack is unwound, and at the first function that does not throw the whole process aborts.
// So such a thread is made to wait here, on its way up.
class EndOfThread {
 public:
  ~EndOfThread() {
    while (!passed_) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  void passed() { passed_ = true; }

 private:
  bool passed_ = false;
};

// Without the interpreter lock, as long as it lives.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() noexcept(false) {  // or compilers leave EndOfThread out
    EndOfThread end;
    PyEval_RestoreThread(state_);
    end.passed();
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// With it, where a thread has given it away.
class Locked {
 public:
  Locked() {
    EndOfThread end;
    state_ = PyGILState_Ensure();
    end.passed();
  }
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

// Whether a signal has come whose handler in Python raises, as that of Ctrl-C does. Python runs handlers in its main
// thread only: in any other there is nothing to ask for.
class Signals {
 public:
  // Asks; to be called without the interpreter lock.
  bool operator()();
  // What the handler raised, with the lock: the caller throws it.
  std::optional<nb::python_error>& raised() { return raised_; }

 private:
  std::optional<bool> in_main_thread_;
  std::optional<nb::python_error> raised_;
};

// Do long work without the interpreter lock; it is given up when a signal asks for it, and what that raises is thrown.
template <class Work>
void unlocked(const Work& work) {
  Signals signals;
  {
    const Unlocked without_lock;
    Interruption interruption(signals);
    const Interruption::Scope scope(&interruption);
    const TaskRecord::Binding binding;
    try {
      work();
    } catch (const Interrupted&) {
    }
  }
  if (signals.raised()) throw std::move(*signals.raised());
}

void bind_svmlight(nb::module_& m);
void bind_measures(nb::module_& m);
void bind_significance(nb::module_& m);
void bind_ensemble(nb::module_& m);
void bind_model_file(nb::module_& m);
void bind_engines(nb::module_& m);
void bind_compiled(nb::module_& m);
void bind_learner(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_forest(nb::module_& m);
void bind_pruning(nb::module_& m);
void bind_explain(nb::module_& m);
void bind_task_record(nb::module_& m);
void bind_serving(nb::module_& m);

}  // namespace rankwood
