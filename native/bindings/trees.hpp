// Trees and feature rows as Python hands them over.
#pragma once

#include <span>

#include "bindings/bindings.hpp"
#include "ensemble.hpp"
#include "rows.hpp"

namespace rankwood {

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;  // any memory order

template <class T>
std::span<const T> span_of(const In<T>& array) {
  return {array.data(), array.shape(0)};
}

// The arrays as a view whose lengths and offsets agree.
inline EnsembleView view_of(const In<std::int32_t>& feature, const In<double>& threshold, const In<std::int32_t>& left,
                            const In<std::int32_t>& right, const In<std::uint8_t>& missing_left,
                            const In<double>& leaf_value, const In<std::int64_t>& node_offsets,
                            const In<std::int64_t>& set_offsets, const In<double>& set_thresholds,
                            std::int32_t n_features) {
  return view_of_arrays(span_of(feature), span_of(threshold), span_of(left), span_of(right), span_of(missing_left),
                        span_of(leaf_value), span_of(node_offsets), span_of(set_offsets), span_of(set_thresholds),
                        n_features);
}

template <class T>
Rows<T> rows_of(const Matrix<T>& X, std::size_t n_features) {
  require(X.shape(1) == n_features, "X must have one column per feature");
  return {X.data(), X.shape(0), X.shape(1), X.stride(0), X.stride(1)};
}

}  // namespace rankwood
