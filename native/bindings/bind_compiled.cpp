#include "bindings/bindings.hpp"
#include "compiled.hpp"

namespace rankwood {
namespace {

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;  // any memory order

// Addresses of functions in a library that the caller loaded and keeps loaded.
template <class T>
CompiledFunctions<T> functions_at(std::uintptr_t score, std::uintptr_t leaves) {
  require(score != 0 && leaves != 0, "a function has no address");
  CompiledFunctions<T> functions{};
  functions.score = reinterpret_cast<decltype(functions.score)>(score);
  functions.leaves = reinterpret_cast<decltype(functions.leaves)>(leaves);
  return functions;
}

void make_trees(CompiledTrees* self, std::uintptr_t score_f32, std::uintptr_t score_f64, std::uintptr_t leaves_f32,
                std::uintptr_t leaves_f64, std::size_t n_features, std::size_t n_trees) {
  new (self) CompiledTrees(functions_at<float>(score_f32, leaves_f32), functions_at<double>(score_f64, leaves_f64),
                           n_features, n_trees);
}

template <class T>
Rows<T> rows_of(const Matrix<T>& X, const CompiledTrees& trees) {
  require(X.shape(1) == trees.n_features(), "X must have one column per feature");
  return {X.data(), X.shape(0), X.shape(1), X.stride(0), X.stride(1)};
}

template <class T>
void score(const CompiledTrees& self, const Matrix<T>& X, const Out<double>& scores, bool single, int n_threads) {
  const Rows<T> rows = rows_of<T>(X, self);
  require(scores.shape(0) == rows.n_rows, "scores must have one entry per row");
  unlocked([&] { self.score(rows, scores.data(), single, n_threads); });
}

template <class T, class Leaf>
void leaves(const CompiledTrees& self, const Matrix<T>& X, const Out<Leaf, 2>& leaves, int n_threads) {
  const Rows<T> rows = rows_of<T>(X, self);
  require(leaves.shape(0) == rows.n_rows && leaves.shape(1) == self.n_trees(),
          "leaves must have one row per document and one column per tree");
  unlocked([&] { self.leaves(rows, leaves.data(), n_threads); });
}

template <class T>
void bind_rows_of(nb::class_<CompiledTrees>& trees) {
  const auto X = nb::arg("X").noconvert();
  const auto out = nb::arg("leaves").noconvert();
  trees.def("score", &score<T>, X, nb::arg("scores").noconvert(), nb::arg("single"), nb::arg("n_threads"));
  trees.def("leaves", &leaves<T, std::uint8_t>, X, out, nb::arg("n_threads"));
  trees.def("leaves", &leaves<T, std::uint16_t>, X, out, nb::arg("n_threads"));
  trees.def("leaves", &leaves<T, std::uint32_t>, X, out, nb::arg("n_threads"));
}

}  // namespace

void bind_compiled(nb::module_& m) {
  nb::class_<CompiledTrees> trees(m, "CompiledTrees", "Functions of a library that was compiled for one model.");
  trees.def("__init__", &make_trees, nb::arg("score_f32"), nb::arg("score_f64"), nb::arg("leaves_f32"),
            nb::arg("leaves_f64"), nb::arg("n_features"), nb::arg("n_trees"));
  bind_rows_of<float>(trees);
  bind_rows_of<double>(trees);
}

}  // namespace rankwood
