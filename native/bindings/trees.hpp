// Trees and feature rows as Python hands them over.
#pragma once

#include "bindings/bindings.hpp"
#include "ensemble.hpp"
#include "rows.hpp"

namespace rankwood {

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;  // any memory order

// The arrays as a view whose lengths and offsets agree.
inline EnsembleView view_of(const In<std::int32_t>& feature, const In<double>& threshold, const In<std::int32_t>& left,
                            const In<std::int32_t>& right, const In<std::uint8_t>& missing_left,
                            const In<double>& leaf_value, const In<std::int64_t>& node_offsets,
                            std::int32_t n_features) {
  EnsembleView model{};
  model.feature = feature.data();
  model.threshold = threshold.data();
  model.left = left.data();
  model.right = right.data();
  model.missing_left = missing_left.data();
  model.leaf_value = leaf_value.data();
  model.node_offsets = node_offsets.data();
  model.n_nodes = feature.shape(0);
  model.n_leaves = leaf_value.shape(0);
  model.n_trees = node_offsets.shape(0) - 1;
  model.n_features = n_features;
  require(node_offsets.shape(0) > 0, "node_offsets must have one entry per tree and one more");
  require(threshold.shape(0) == model.n_nodes && left.shape(0) == model.n_nodes && right.shape(0) == model.n_nodes &&
              missing_left.shape(0) == model.n_nodes,
          "feature, threshold, left, right and missing_left must have one entry per inner node");
  require(n_features >= 0, "n_features must not be negative");
  check_offsets(model);
  return model;
}

template <class T>
Rows<T> rows_of(const Matrix<T>& X, std::size_t n_features) {
  require(X.shape(1) == n_features, "X must have one column per feature");
  return {X.data(), X.shape(0), X.shape(1), X.stride(0), X.stride(1)};
}

}  // namespace rankwood
