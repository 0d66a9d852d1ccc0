#include "bindings/bindings.hpp"
#include "bindings/trees.hpp"
#include "explain/contributions.hpp"

namespace rankwood {
namespace {

Contributions contributions_to(const Out<double, 2>& values, std::size_t n_rows, std::size_t n_features) {
  require(values.shape(0) == n_rows && values.shape(1) == n_features,
          "values must have one row per document and one column per feature");
  return {values.data(), n_features};
}

template <class T>
void by_cover(const In<std::int32_t>& feature, const In<double>& threshold, const In<std::int32_t>& left,
              const In<std::int32_t>& right, const In<std::uint8_t>& missing_left, const In<double>& leaf_value,
              const In<std::int64_t>& node_offsets, const In<std::int64_t>& set_offsets,
              const In<double>& set_thresholds, std::int32_t n_features, const In<double>& tree_weights,
              const Matrix<T>& X, const Out<double, 2>& values, int n_threads, const In<double>& leaf_cover,
              const Out<double>& expected) {
  const EnsembleView model = view_of(feature, threshold, left, right, missing_left, leaf_value, node_offsets,
                                     set_offsets, set_thresholds, n_features);
  const Rows<T> rows = rows_of<T>(X, static_cast<std::size_t>(n_features));
  const Contributions out = contributions_to(values, rows.n_rows, rows.n_features);
  require(tree_weights.shape(0) == model.n_trees && expected.shape(0) == model.n_trees,
          "tree_weights and expected must have one entry per tree");
  require(leaf_cover.shape(0) == model.n_leaves, "leaf_cover must have one entry per leaf");
  unlocked([&] {
    std::vector<std::int32_t> depths(model.n_trees);
    check_trees(model, depths.data());
    contributions_by_cover(model, tree_weights.data(), leaf_cover.data(), depths.data(), rows, out, expected.data(),
                           n_threads);
  });
}

template <class T>
void by_background(const In<std::int32_t>& feature, const In<double>& threshold, const In<std::int32_t>& left,
                   const In<std::int32_t>& right, const In<std::uint8_t>& missing_left, const In<double>& leaf_value,
                   const In<std::int64_t>& node_offsets, const In<std::int64_t>& set_offsets,
                   const In<double>& set_thresholds, std::int32_t n_features, const In<double>& tree_weights,
                   const Matrix<T>& X, const Out<double, 2>& values, int n_threads, const Matrix<double>& background) {
  const EnsembleView model = view_of(feature, threshold, left, right, missing_left, leaf_value, node_offsets,
                                     set_offsets, set_thresholds, n_features);
  const Rows<T> rows = rows_of<T>(X, static_cast<std::size_t>(n_features));
  const Rows<double> others = rows_of<double>(background, static_cast<std::size_t>(n_features));
  const Contributions out = contributions_to(values, rows.n_rows, rows.n_features);
  require(tree_weights.shape(0) == model.n_trees, "tree_weights must have one entry per tree");
  require(others.n_rows > 0, "background must have rows");
  unlocked([&] {
    std::vector<std::int32_t> depths(model.n_trees);
    check_trees(model, depths.data());
    contributions_by_background(model, tree_weights.data(), others, rows, out, n_threads);
  });
}

template <class T>
void bind_rows_of(nb::module_& m) {
  const auto with_trees = [&](const char* name, auto function, auto... more) {
    m.def(name, function, nb::arg("feature").noconvert(), nb::arg("threshold").noconvert(), nb::arg("left").noconvert(),
          nb::arg("right").noconvert(), nb::arg("missing_left").noconvert(), nb::arg("leaf_value").noconvert(),
          nb::arg("node_offsets").noconvert(), nb::arg("set_offsets").noconvert(),
          nb::arg("set_thresholds").noconvert(), nb::arg("n_features"), nb::arg("tree_weights").noconvert(),
          nb::arg("X").noconvert(), nb::arg("values").noconvert(), nb::arg("n_threads"), more...);
  };
  with_trees("contributions_by_cover", &by_cover<T>, nb::arg("leaf_cover").noconvert(), nb::arg("expected").noconvert(),
             "Add to `values` what features contribute to the scores of the rows of X, weighed by cover.");
  with_trees("contributions_by_background", &by_background<T>, nb::arg("background").noconvert(),
             "Add to `values` what features contribute to the scores of the rows of X, against background rows.");
}

}  // namespace

void bind_explain(nb::module_& m) {
  bind_rows_of<float>(m);
  bind_rows_of<double>(m);
}

}  // namespace rankwood
