// Leaf values moved as little as needed so that scores never fall where a feature rises (or never rise).
//
// A tree is monotone in a feature if at every split on it no value on the lower side exceeds one on the upper side.
// From the leaves up, at every split that breaks this, a value parts both sides: what is above it on the lower side, or
// below it on the upper side, becomes that value. Cutting a whole subtree off at one value keeps what holds inside it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "ensemble.hpp"
#include "interruption.hpp"
#include "node_merging.hpp"

namespace rankwood {

// A value of one side, and what it weighs.
struct SideValue {
  double value, weight;
  bool lower_side;
};

// The value that parts two sides at the least weighted sum of squared changes. `values` are those of the lower side
// that exceed the least of the upper one, and those of the upper side that are below the largest of the lower one.
inline double parting_value(std::vector<SideValue>& values) {
  std::stable_sort(values.begin(), values.end(),
                   [](const SideValue& a, const SideValue& b) { return a.value < b.value; });
  const std::size_t n = values.size();
  // Values of the lower side from i on, which come down to what parts: their weights, and weights times values.
  std::vector<std::pair<double, double>> above(n + 1, {0.0, 0.0});
  for (std::size_t i = n; i-- > 0;) {
    const double weight = values[i].lower_side ? values[i].weight : 0.0;
    above[i] = {above[i + 1].first + weight, above[i + 1].second + weight * values[i].value};
  }
  double weight = 0.0, sum = 0.0;  // of the upper side up to i, which go up
  for (std::size_t i = 0; i + 1 < n; ++i) {
    if (!values[i].lower_side) {
      weight += values[i].weight;
      sum += values[i].weight * values[i].value;
    }
    const double from = values[i].value, to = values[i + 1].value, total = weight + above[i + 1].first;
    const double mean = total > 0.0 ? (sum + above[i + 1].second) / total : 0.5 * (from + to);
    if (mean <= to) return std::max(mean, from);
  }
  return values[n - 1].value;
}

// Change the leaf values of all trees of a model. Per feature, directions has 1 where scores must not fall as it rises,
// -1 where they must not rise, else 0. The weights are those of the leaves, not negative.
inline void project_monotone(const EnsembleView& model, const std::int8_t* directions, const double* weights,
                             double* values) {
  struct Range {
    std::size_t begin, end;  // of the leaves below a node, in `leaves`
  };
  std::vector<std::size_t> leaves, size;
  std::vector<Range> ranges;
  std::vector<SideValue> crossing;
  for (std::size_t t = 0; t < model.n_trees; ++t) {
    check_interruption(t);
    const std::size_t first_node = model.first_node(t), first_leaf = model.first_leaf(t), n_nodes = model.nodes_of(t);
    if (n_nodes == 0) continue;
    const std::vector<std::int32_t> order = parents_first(model, t);
    size.assign(n_nodes, 0);
    const auto size_of = [&](std::int32_t child) { return child < 0 ? 1 : size[static_cast<std::size_t>(child)]; };
    for (std::size_t i = n_nodes; i-- > 0;) {
      const std::size_t node = first_node + static_cast<std::size_t>(order[i]);
      size[static_cast<std::size_t>(order[i])] = size_of(model.left[node]) + size_of(model.right[node]);
    }
    ranges.assign(n_nodes, {0, n_nodes + 1});
    leaves.assign(n_nodes + 1, 0);
    for (const std::int32_t number : order) {
      const std::size_t node = first_node + static_cast<std::size_t>(number);
      const Range range = ranges[static_cast<std::size_t>(number)];
      const std::size_t middle = range.begin + size_of(model.left[node]);
      const auto place = [&](std::int32_t child, Range at) {
        if (child >= 0) {
          ranges[static_cast<std::size_t>(child)] = at;
        } else {
          leaves[at.begin] = first_leaf + static_cast<std::size_t>(~child);
        }
      };
      place(model.left[node], {range.begin, middle});
      place(model.right[node], {middle, range.end});
    }
    for (std::size_t i = n_nodes; i-- > 0;) {
      const std::size_t node = first_node + static_cast<std::size_t>(order[i]);
      const std::int8_t direction = directions[model.feature[node]];
      if (direction == 0) continue;
      const Range range = ranges[static_cast<std::size_t>(order[i])];
      const std::size_t middle = range.begin + size_of(model.left[node]);
      const Range left{range.begin, middle}, right{middle, range.end};
      const Range low = direction > 0 ? left : right, high = direction > 0 ? right : left;
      double largest = -std::numeric_limits<double>::infinity(), least = std::numeric_limits<double>::infinity();
      for (std::size_t k = low.begin; k < low.end; ++k) largest = std::max(largest, values[leaves[k]]);
      for (std::size_t k = high.begin; k < high.end; ++k) least = std::min(least, values[leaves[k]]);
      if (largest <= least) continue;
      crossing.clear();
      for (std::size_t k = low.begin; k < low.end; ++k) {
        if (values[leaves[k]] > least) crossing.push_back({values[leaves[k]], weights[leaves[k]], true});
      }
      for (std::size_t k = high.begin; k < high.end; ++k) {
        if (values[leaves[k]] < largest) crossing.push_back({values[leaves[k]], weights[leaves[k]], false});
      }
      const double parting = parting_value(crossing);
      for (std::size_t k = low.begin; k < low.end; ++k) {
        values[leaves[k]] = std::min(values[leaves[k]], parting);
      }
      for (std::size_t k = high.begin; k < high.end; ++k) {
        values[leaves[k]] = std::max(values[leaves[k]], parting);
      }
    }
  }
}

}  // namespace rankwood
