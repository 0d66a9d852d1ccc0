// What the binding files share. A binding checks dtype, shape and contiguity, releases the interpreter lock and
// calls a kernel; std::invalid_argument becomes ValueError.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace nb = nanobind;

namespace rankwood {

// C-contiguous arrays on the CPU; `In` is read-only. Types are never converted behind the caller's back.
template <class T, std::size_t Dims = 1>
using In = nb::ndarray<const T, nb::ndim<Dims>, nb::c_contig, nb::device::cpu>;
template <class T, std::size_t Dims = 1>
using Out = nb::ndarray<T, nb::ndim<Dims>, nb::c_contig, nb::device::cpu>;

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

void bind_svmlight(nb::module_& m);
void bind_measures(nb::module_& m);
void bind_significance(nb::module_& m);
void bind_ensemble(nb::module_& m);
void bind_engines(nb::module_& m);
void bind_compiled(nb::module_& m);
void bind_learner(nb::module_& m);
void bind_losses(nb::module_& m);
void bind_forest(nb::module_& m);
void bind_pruning(nb::module_& m);

}  // namespace rankwood
