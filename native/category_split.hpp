// The best split of one feature of categories in one node: which of them part from all others.
//
// Categories are put in the order of their gradients over hessians, as LightGBM does (Fisher 1958: the best of all
// partitions is a cut of that order). Sets are the first ones of the order, or the last ones; all else is on the other
// side: rare categories, those that the node does not have, and missing values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "isa/kernels.hpp"

namespace rankwood {

struct CategoryRules {
  double smoothing = 0.0;  // added to hessians for the order; fewer documents than this: a category is rare
  double l2 = 0.0;         // added to hessians of both sides, besides the l2 of all splits
  std::size_t most = 32;   // categories of a set
};

// A set of bins, and what splitting it off gains.
//   IN  gradient, hessian  sums of n_values bins, then of missing values if has_missing
//   IN  counts   documents per bin in the same order, or null when no count is to be checked
//   IN  n_docs   documents of the node, by which hessians tell about how many a bin has
//   OUT left     1 for bins that go left, kBins of them; the set goes right
// Bins of categories lie between the first, of values below 0, and the last, of codes that are too large.
inline FeatureSplit best_set_split(const double* gradient, const double* hessian, const std::uint32_t* counts,
                                   std::size_t n_values, bool has_missing, const NodeSums& total, std::int64_t n_docs,
                                   const SplitRules& rules, const ValueBounds& bounds, const CategoryRules& how,
                                   std::vector<std::uint8_t>& left) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  FeatureSplit best{kNone, -1, false, 0.0};
  const double g_unit = rules.gradient_unit, h_unit = rules.hessian_unit;
  const double total_gradient = static_cast<double>(total.gradient), total_hessian = static_cast<double>(total.hessian);
  const auto fall = [&](double g, double d) {  // of the loss, by the value that bounds allow
    const double value = std::min(std::max(g / d, bounds.lower), bounds.upper);
    return (2.0 * g - d * value) * value;
  };
  std::vector<std::size_t> order;
  std::uint32_t all_docs = 0;
  const double docs_per_hessian = static_cast<double>(n_docs) / total_hessian;
  for (std::size_t b = 0; b < n_values + (has_missing ? 1 : 0); ++b) {
    if (counts) all_docs += counts[b];
    if (b > 0 && b + 1 < n_values && hessian[b] > 0.0 && hessian[b] * docs_per_hessian >= how.smoothing)
      order.push_back(b);
  }
  const auto ratio = [&](std::size_t b) { return gradient[b] * g_unit / (hessian[b] * h_unit + how.smoothing); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ratio(a) < ratio(b); });
  const double parent = fall(total_gradient * g_unit, total_hessian * h_unit + rules.l2);
  const std::size_t n_most = std::min(how.most, (order.size() + 1) / 2);
  std::size_t best_size = 0;
  bool best_is_last = false;
  double best_hessian = 0.0;
  for (const bool last : {false, true}) {
    double g = 0.0, h = 0.0;
    std::uint32_t docs = 0;
    for (std::size_t k = 0; k < n_most; ++k) {
      const std::size_t b = order[last ? order.size() - 1 - k : k];
      g += gradient[b];
      h += hessian[b];
      if (counts) docs += counts[b];
      const double inside = h * h_unit, outside = (total_hessian - h) * h_unit;
      if (!(inside >= rules.min_hessian && outside >= rules.min_hessian)) continue;
      if (counts && (docs < rules.min_docs || all_docs - docs < rules.min_docs)) continue;
      const double l2 = rules.l2 + how.l2;
      const double gain = fall(g * g_unit, inside + l2) + fall((total_gradient - g) * g_unit, outside + l2) - parent;
      if (gain > best.gain && outside > 0.0) {
        best.gain = gain;
        best_size = k + 1;
        best_is_last = last;
        best_hessian = h;
      }
    }
  }
  if (best_size == 0) return best;
  left.assign(kBins, 1);
  for (std::size_t k = 0; k < best_size; ++k) left[order[best_is_last ? order.size() - 1 - k : k]] = 0;
  best.missing_left = true;
  best.left_hessian = total_hessian - best_hessian;
  return best;
}

}  // namespace rankwood
