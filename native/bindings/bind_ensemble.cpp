#include "bindings/bindings.hpp"
#include "bindings/trees.hpp"
#include "ensemble.hpp"
#include "traverse_reference.hpp"

namespace rankwood {
namespace {

void bind_check_trees(const Out<std::int32_t>& depths, const In<std::int32_t>& feature, const In<double>& threshold,
                      const In<std::int32_t>& left, const In<std::int32_t>& right, const In<std::uint8_t>& missing_left,
                      const In<double>& leaf_value, const In<std::int64_t>& node_offsets,
                      const In<std::int64_t>& set_offsets, const In<double>& set_thresholds, std::int32_t n_features) {
  const EnsembleView model = view_of(feature, threshold, left, right, missing_left, leaf_value, node_offsets,
                                     set_offsets, set_thresholds, n_features);
  require(depths.shape(0) == model.n_trees, "depths must have one entry per tree");
  unlocked([&] { check_trees(model, depths.data()); });
}

// Checks everything again before it copies: the kernel follows children and features without looking back.
void make_traversal(ReferenceTraversal* self, const In<std::int32_t>& feature, const In<double>& threshold,
                    const In<std::int32_t>& left, const In<std::int32_t>& right, const In<std::uint8_t>& missing_left,
                    const In<double>& leaf_value, const In<std::int64_t>& node_offsets,
                    const In<std::int64_t>& set_offsets, const In<double>& set_thresholds, std::int32_t n_features) {
  const EnsembleView model = view_of(feature, threshold, left, right, missing_left, leaf_value, node_offsets,
                                     set_offsets, set_thresholds, n_features);
  unlocked([&] {
    std::vector<std::int32_t> depths(model.n_trees);
    check_trees(model, depths.data());
    new (self) ReferenceTraversal(model);
  });
}

template <class T>
void score(const ReferenceTraversal& self, const Matrix<T>& X, const In<double>& tree_weights, double base,
           const Out<double>& scores, bool single, int n_threads) {
  const Rows<T> rows = rows_of<T>(X, self.n_features());
  require(tree_weights.shape(0) == self.n_trees(), "tree_weights must have one entry per tree");
  require(scores.shape(0) == rows.n_rows, "scores must have one entry per row");
  unlocked([&] { self.score(rows, tree_weights.data(), base, scores.data(), single, n_threads); });
}

template <class T, class Leaf>
void leaves(const ReferenceTraversal& self, const Matrix<T>& X, const Out<Leaf, 2>& leaves, int n_threads) {
  const Rows<T> rows = rows_of<T>(X, self.n_features());
  require(leaves.shape(0) == rows.n_rows && leaves.shape(1) == self.n_trees(),
          "leaves must have one row per document and one column per tree");
  unlocked([&] { self.leaves(rows, leaves.data(), n_threads); });
}

template <class T>
void bind_rows_of(nb::class_<ReferenceTraversal>& traversal) {
  const auto X = nb::arg("X").noconvert();
  const auto out = nb::arg("leaves").noconvert();
  traversal.def("score", &score<T>, X, nb::arg("tree_weights").noconvert(), nb::arg("base"),
                nb::arg("scores").noconvert(), nb::arg("single"), nb::arg("n_threads"));
  traversal.def("leaves", &leaves<T, std::uint8_t>, X, out, nb::arg("n_threads"));
  traversal.def("leaves", &leaves<T, std::uint16_t>, X, out, nb::arg("n_threads"));
  traversal.def("leaves", &leaves<T, std::uint32_t>, X, out, nb::arg("n_threads"));
}

}  // namespace

void bind_ensemble(nb::module_& m) {
  m.def("check_trees", &bind_check_trees, nb::arg("depths").noconvert(), nb::arg("feature").noconvert(),
        nb::arg("threshold").noconvert(), nb::arg("left").noconvert(), nb::arg("right").noconvert(),
        nb::arg("missing_left").noconvert(), nb::arg("leaf_value").noconvert(), nb::arg("node_offsets").noconvert(),
        nb::arg("set_offsets").noconvert(), nb::arg("set_thresholds").noconvert(), nb::arg("n_features"),
        "Raise ValueError unless the arrays are trees; fill in the depth of each.");

  nb::class_<ReferenceTraversal> traversal(m, "ReferenceTraversal", "Trees packed for the plain traversal.");
  traversal.def("__init__", &make_traversal, nb::arg("feature").noconvert(), nb::arg("threshold").noconvert(),
                nb::arg("left").noconvert(), nb::arg("right").noconvert(), nb::arg("missing_left").noconvert(),
                nb::arg("leaf_value").noconvert(), nb::arg("node_offsets").noconvert(),
                nb::arg("set_offsets").noconvert(), nb::arg("set_thresholds").noconvert(), nb::arg("n_features"));
  traversal.def_prop_ro("n_bytes", &ReferenceTraversal::n_bytes);
  bind_rows_of<float>(traversal);
  bind_rows_of<double>(traversal);
}

}  // namespace rankwood
