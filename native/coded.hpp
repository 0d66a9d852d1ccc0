// Feature values as codes, for full-depth trees: exact (a code for every distinct value, two bytes) or in bins (one
// byte), laid out as the bins of binning.hpp are. Of every code the smallest and the largest value are known, so that a
// threshold can lie midway between the values that a split really separates.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "binning.hpp"
#include "isa/kernels.hpp"

namespace rankwood {

constexpr int kMaxValueCodes = 65'535;  // one more is kept for missing values

template <class Code>
struct CodedView {
  const Code* codes;  // [n_groups][n_rows][kGroup]
  std::size_t n_rows, n_features;
  const std::uint8_t* has_missing;
  const std::int64_t* offsets;  // values of feature f have the codes 0 ... offsets[f + 1] - offsets[f] - 1,
  const float *low, *high;      // whose smallest and largest values are here from offsets[f] on

  std::uint32_t n_values(std::size_t f) const { return static_cast<std::uint32_t>(offsets[f + 1] - offsets[f]); }
  const Code* group(std::size_t g) const { return codes + g * n_rows * kGroup; }

  // Between the values of two codes; behind all values when the upper one is that of missing values.
  double threshold(std::size_t f, std::uint32_t lower, std::uint32_t upper) const {
    if (upper >= n_values(f)) return std::numeric_limits<double>::infinity();
    const float below = high[static_cast<std::size_t>(offsets[f]) + lower];
    const float above = low[static_cast<std::size_t>(offsets[f]) + upper];
    const double middle = static_cast<double>(below) / 2.0 + static_cast<double>(above) / 2.0;
    return std::isfinite(middle) ? middle : edge_between(below, above);
  }
};

}  // namespace rankwood
