// Feature values as codes, for full-depth trees: exact (a code for every distinct value, two bytes) or in bins (one
// byte), laid out as the bins of binning.hpp are. Of every code the smallest and the largest value are known, so that a
// threshold can lie midway between the values that a split really separates.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "binning.hpp"
#include "isa/kernels.hpp"
#include "radix_sort.hpp"

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

  // The place at a fraction in [0, 1) of the way from the values of one code to those of a larger one: the last code
  // below it, and the threshold; NaN where it would cut through the values of a code, all of which then stay below.
  std::pair<std::uint32_t, double> cut(std::size_t f, std::uint32_t first, std::uint32_t last, double fraction) const {
    const float* smallest = low + offsets[f];
    const float* largest = high + offsets[f];
    const double below = smallest[first], above = largest[last], nowhere = std::numeric_limits<double>::quiet_NaN();
    if (!std::isfinite(below) || !std::isfinite(above)) {  // no even way: any code is as good as any other
      return {first + static_cast<std::uint32_t>(fraction * (last - first)), nowhere};
    }
    const double at = std::min(below + fraction * (above - below), std::nextafter(above, below));
    std::uint32_t code = first;  // the largest one whose values start at or below; codes of bins may have no values
    if constexpr (sizeof(Code) == 1) {
      for (std::uint32_t c = first + 1; c < last; ++c) code = smallest[c] <= at ? c : code;
    } else {
      code += static_cast<std::uint32_t>(std::upper_bound(smallest + first + 1, smallest + last, at) - smallest -
                                         first - 1);
    }
    return {code, largest[code] <= at && at < smallest[last] ? at : nowhere};
  }
};

// Give every distinct value of a column its rank as code, and a missing value the code after the last. Returns the
// values in ascending order; -0 and 0 are one.
//   IN column   n values, at most kMaxValueCodes, `stride` floats apart      OUT codes  n of them, `code_stride` apart
inline std::vector<float> code_exactly(const float* column, std::size_t stride, std::size_t n, std::uint16_t* codes,
                                       std::size_t code_stride) {
  std::vector<std::uint64_t> keys, buffer;  // bits of the value, in an order that integers have, and the row
  for (std::size_t i = 0; i < n; ++i) {
    const float value = column[i * stride] + 0.0f;
    if (std::isnan(value)) continue;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    keys.push_back(static_cast<std::uint64_t>(bits >> 31 ? ~bits : bits | 0x80000000u) << 32 | i);
  }
  buffer.resize(keys.size());
  std::uint64_t* key = radix_sort(keys.data(), buffer.data(), keys.size(), 32, 16);
  key = radix_sort(key, key == keys.data() ? buffer.data() : keys.data(), keys.size(), 48, 16);
  std::vector<float> values;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const auto row = static_cast<std::size_t>(key[k] & 0xffffffffu);
    if (k == 0 || key[k] >> 32 != key[k - 1] >> 32) values.push_back(column[row * stride] + 0.0f);
    codes[row * code_stride] = static_cast<std::uint16_t>(values.size() - 1);
  }
  if (values.empty()) values.push_back(0.0f);  // no value at all: nothing to split
  for (std::size_t i = 0; i < n; ++i) {
    if (std::isnan(column[i * stride])) codes[i * code_stride] = static_cast<std::uint16_t>(values.size());
  }
  return values;
}

}  // namespace rankwood
