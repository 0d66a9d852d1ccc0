// Feature rows as the caller has them.
#pragma once

#include <cstddef>

namespace rankwood {

// A matrix of features as it lies in memory; strides count elements and may be negative.
template <class T>
struct Rows {
  const T* data;
  std::size_t n_rows;
  std::size_t n_features;
  std::ptrdiff_t row_stride;
  std::ptrdiff_t feature_stride;
};

}  // namespace rankwood
