// Quantile bins: a feature value becomes one byte, its bin; the edge between two bins is the threshold of a split.
//
// A feature with at most max_bins distinct values has a bin for each of them, so that the tree learner on top is exact
// CART. Other features get about equally full bins, found on a sample of rows; a value that fills a bin alone has one.
// An edge lies midway between two neighbouring values. Missing values have a bin of their own after the last.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "interruption.hpp"
#include "radix_sort.hpp"

namespace rankwood {

constexpr int kMaxValueBins = 255;  // one code is kept for missing values
constexpr std::size_t kSampleRows = 200'000;

// A threshold t with below <= t < above; both are float32 values, so their midpoint is exact in double. It is never
// -0.0: which of the two zeros a column has first must not tell.
inline double edge_between(float below, float above) {
  const double middle = static_cast<double>(below) + (static_cast<double>(above) - static_cast<double>(below)) / 2;
  if (std::isfinite(middle)) return middle;
  if (std::isfinite(below)) return below + 0.0;                                            // above is +infinity
  if (std::isfinite(above)) return std::nextafter(static_cast<double>(above), -HUGE_VAL);  // below is -infinity
  return 0.0;
}

// Sort numbers, none of them NaN: bits of floats, but for the sign, have the order of integers.
inline void sort_floats(std::vector<float>& values) {
  std::vector<std::uint32_t> keys(values.size()), buffer(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    keys[i] = bits >> 31 ? ~bits : bits | 0x80000000u;
  }
  std::uint32_t* key = radix_sort(keys.data(), buffer.data(), keys.size(), 0, 16);
  key = radix_sort(key, key == keys.data() ? buffer.data() : keys.data(), keys.size(), 16, 16);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::bit_cast<float>(key[i] >> 31 ? key[i] & 0x7fffffffu : ~key[i]);
  }
}

// Sort the distinct values of `values` (no NaN) and count them. -0.0 and 0.0 are one value.
struct ValueCount {
  float value;
  std::size_t count;
};
inline std::vector<ValueCount> count_values(std::vector<float>& values) {
  sort_floats(values);
  std::vector<ValueCount> counted;
  for (const float value : values) {
    if (counted.empty() || value != counted.back().value) counted.push_back({value, 0});
    ++counted.back().count;
  }
  return counted;
}

// Distinct values of a column, ascending, when there are at most `limit`; nullopt as soon as there are more.
inline std::optional<std::vector<float>> few_distinct(const float* column, std::size_t stride, std::size_t n,
                                                      std::size_t limit) {
  std::vector<float> distinct;  // sorted
  float last = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t i = 0; i < n; ++i) {
    check_interruption(i);
    const float value = column[i * stride];
    if (value == last || std::isnan(value)) continue;
    last = value;
    const auto at = std::lower_bound(distinct.begin(), distinct.end(), value);
    if (at != distinct.end() && *at == value) continue;
    if (distinct.size() == limit) return std::nullopt;
    distinct.insert(at, value);
  }
  return distinct;
}

// The same for any limit, by sorting.
inline std::optional<std::vector<float>> distinct_values(const float* column, std::size_t stride, std::size_t n,
                                                         std::size_t limit) {
  if (limit <= kMaxValueBins) return few_distinct(column, stride, n, limit);
  std::vector<float> values;
  for (std::size_t i = 0; i < n; ++i) {
    check_interruption(i);
    if (!std::isnan(column[i * stride])) values.push_back(column[i * stride]);
  }
  sort_floats(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.size() > limit) return std::nullopt;
  return values;
}

// Edges between all values of a feature that has a bin for each; they are ascending and distinct.
inline std::vector<double> edges_between(std::span<const float> values) {
  std::vector<double> edges;
  for (std::size_t i = 1; i < values.size(); ++i) edges.push_back(edge_between(values[i - 1], values[i]));
  return edges;
}

// Edges of about equally full bins, at most max_bins - 1, from a sample (no NaN) in any order, which is sorted here.
inline std::vector<double> quantile_edges(std::vector<float>& sample, int max_bins) {
  std::vector<double> edges;
  std::size_t n_left = sample.size();
  const std::vector<ValueCount> counted = count_values(sample);
  std::size_t bins_left = static_cast<std::size_t>(max_bins), in_bin = 0;
  for (std::size_t i = 0; i + 1 < counted.size() && bins_left > 1; ++i) {
    in_bin += counted[i].count;
    const std::size_t values_left = counted.size() - i - 1;
    // Close the bin when it is full, when the next value would fill one alone, or when each value can have its own.
    const double target = static_cast<double>(n_left) / static_cast<double>(bins_left);
    const bool full = static_cast<double>(in_bin) + 0.5 * static_cast<double>(counted[i + 1].count) >= target;
    if (full || values_left < bins_left) {
      edges.push_back(edge_between(counted[i].value, counted[i + 1].value));
      n_left -= in_bin;
      in_bin = 0;
      --bins_left;
    }
  }
  return edges;
}

// Row number i of a sample of n_sample rows that is spread evenly over n.
inline std::size_t sampled_row(std::size_t i, std::size_t n, std::size_t n_sample) {
  return static_cast<std::size_t>(static_cast<unsigned long long>(i) * n / n_sample);
}

// Edges of the bins of one feature: ascending, at most max_bins - 1 of them.
//   IN  column  first value; the next ones lie `stride` floats apart      IN  n  number of rows
inline std::vector<double> find_edges(const float* column, std::size_t stride, std::size_t n, int max_bins) {
  const auto distinct = distinct_values(column, stride, n, static_cast<std::size_t>(max_bins));
  if (distinct) return edges_between(*distinct);
  std::vector<float> sample;
  const std::size_t n_sample = std::min(n, kSampleRows);
  sample.reserve(n_sample);
  for (std::size_t i = 0; i < n_sample; ++i) {
    const float value = column[sampled_row(i, n, n_sample) * stride];
    if (!std::isnan(value)) sample.push_back(value);
  }
  return quantile_edges(sample, max_bins);
}

// Bin of a value: the number of edges below it. Branch-free binary search.
inline std::uint32_t bin_of(float value, const double* edges, std::size_t n_edges) {
  const double x = value;
  std::size_t low = 0, length = n_edges;
  while (length > 0) {
    const std::size_t half = length / 2;
    const bool above = edges[low + half] < x;
    low = above ? low + half + 1 : low;
    length = above ? length - half - 1 : half;
  }
  return static_cast<std::uint32_t>(low);
}

}  // namespace rankwood
