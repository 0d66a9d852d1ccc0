// The model as flat arrays, and the one place that says which arrays are a model.
//
// Trees stand one after another; tree t owns the nodes [node_offsets[t], node_offsets[t + 1]). A tree with n inner
// nodes has n + 1 leaves, so its leaves start at node_offsets[t] + t and need no offsets of their own. Children are
// numbered inside the tree: child >= 0 is an inner node, child < 0 is leaf ~child. Node 0 is the root; a tree without
// inner nodes is its leaf 0. A document goes left when x <= threshold; a missing value (NaN) when missing_left.
//
// A split on a set, such as categories, has further thresholds, which rise: those of node i are set_thresholds from
// set_offsets[i] to set_offsets[i + 1]. A document goes left when an even number of its thresholds lies below x, so
//
//   thresholds        t0        t1        t2              the set (t0, t1] and (t2, infinity) goes right
//   -------left--------]--right--]--left--]----right--->  x
//
// and a split with one threshold is the same thing. Where no node has a set, there are no offsets.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "interruption.hpp"
#include "python_number.hpp"

namespace rankwood {

struct EnsembleView {
  const std::int32_t* feature;
  const double* threshold;
  const std::int32_t* left;
  const std::int32_t* right;
  const std::uint8_t* missing_left;
  const double* leaf_value;
  const std::int64_t* node_offsets;  // n_trees + 1 entries
  std::size_t n_nodes;
  std::size_t n_leaves;
  std::size_t n_trees;
  std::int32_t n_features;
  const std::int64_t* set_offsets = nullptr;  // n_nodes + 1 entries; null: no node has a set
  const double* set_thresholds = nullptr;

  bool has_set(std::size_t node) const { return set_offsets != nullptr && set_offsets[node] != set_offsets[node + 1]; }
  // The further thresholds of a node; it has some.
  std::span<const double> set_of(std::size_t node) const {
    return {set_thresholds + set_offsets[node], static_cast<std::size_t>(set_offsets[node + 1] - set_offsets[node])};
  }

  std::size_t first_node(std::size_t tree) const { return static_cast<std::size_t>(node_offsets[tree]); }
  std::size_t first_leaf(std::size_t tree) const { return static_cast<std::size_t>(node_offsets[tree]) + tree; }
  std::size_t nodes_of(std::size_t tree) const { return first_node(tree + 1) - first_node(tree); }
};

// Throw std::invalid_argument unless the offsets split the nodes and leaves into trees.
inline void check_offsets(const EnsembleView& model) {
  const auto fail = [](const std::string& what) { throw std::invalid_argument("node_offsets " + what); };
  if (model.node_offsets[0] != 0) fail("must start with 0, not " + std::to_string(model.node_offsets[0]));
  for (std::size_t t = 0; t < model.n_trees; ++t) {
    const std::int64_t begin = model.node_offsets[t], end = model.node_offsets[t + 1];
    // A leaf number as large as the number of nodes must fit a child entry.
    if (end < begin || end - begin > std::numeric_limits<std::int32_t>::max()) {
      fail("of tree " + std::to_string(t) + " go from " + std::to_string(begin) + " to " + std::to_string(end));
    }
  }
  if (static_cast<std::uint64_t>(model.node_offsets[model.n_trees]) != model.n_nodes) {
    fail("end with " + std::to_string(model.node_offsets[model.n_trees]) + " but there are " +
         std::to_string(model.n_nodes) + " nodes");
  }
  if (model.n_leaves != model.n_nodes + model.n_trees) {
    throw std::invalid_argument("leaf_value has " + std::to_string(model.n_leaves) + " entries but " +
                                std::to_string(model.n_trees) + " trees with " + std::to_string(model.n_nodes) +
                                " inner nodes have " + std::to_string(model.n_nodes + model.n_trees) + " leaves");
  }
}

// Throw std::invalid_argument unless the offsets split the further thresholds of sets among the nodes.
inline void check_set_offsets(std::span<const std::int64_t> offsets, std::size_t n_nodes, std::size_t n_thresholds) {
  if (offsets.size() != n_nodes + 1) {
    throw std::invalid_argument("set_offsets must have one entry per inner node and one more (" +
                                std::to_string(n_nodes + 1) + "), got " + std::to_string(offsets.size()));
  }
  const bool rise = std::is_sorted(offsets.begin(), offsets.end());
  if (!rise || offsets.front() != 0 || static_cast<std::uint64_t>(offsets.back()) != n_thresholds) {
    throw std::invalid_argument("set_offsets must rise from 0 to the number of set_thresholds (" +
                                std::to_string(n_thresholds) + ")");
  }
}

// The arrays as a view; set_offsets may be empty. Throws std::invalid_argument unless their lengths and offsets agree.
inline EnsembleView view_of_arrays(std::span<const std::int32_t> feature, std::span<const double> threshold,
                                   std::span<const std::int32_t> left, std::span<const std::int32_t> right,
                                   std::span<const std::uint8_t> missing_left, std::span<const double> leaf_value,
                                   std::span<const std::int64_t> node_offsets,
                                   std::span<const std::int64_t> set_offsets, std::span<const double> set_thresholds,
                                   std::int32_t n_features) {
  const std::size_t n = feature.size();
  if (node_offsets.empty()) throw std::invalid_argument("node_offsets must have one entry per tree and one more");
  if (threshold.size() != n || left.size() != n || right.size() != n || missing_left.size() != n) {
    throw std::invalid_argument("feature, threshold, left, right and missing_left must have one entry per inner node");
  }
  if (n_features < 0) throw std::invalid_argument("n_features must not be negative");
  EnsembleView model{feature.data(),      threshold.data(),        left.data(),         right.data(),
                     missing_left.data(), leaf_value.data(),       node_offsets.data(), n,
                     leaf_value.size(),   node_offsets.size() - 1, n_features};
  check_offsets(model);
  if (!set_offsets.empty() || !set_thresholds.empty()) {
    check_set_offsets(set_offsets, n, set_thresholds.size());
    model.set_offsets = set_offsets.data();
    model.set_thresholds = set_thresholds.data();
  }
  return model;
}

// Walks trees from their roots with its own stack, so a chain of a million nodes is no deeper than any other tree.
class TreeChecker {
 public:
  explicit TreeChecker(const EnsembleView& model) : model_(model) {}

  // Throw std::invalid_argument unless every node and leaf of the tree is reached exactly once from its root, its
  // features exist and its thresholds compare. Returns the longest path, in splits: 0 for a lone leaf.
  std::int32_t check(std::size_t tree) {
    tree_ = tree;
    n_nodes_ = model_.nodes_of(tree);
    if (n_nodes_ == 0) return 0;
    depth_of_.assign(n_nodes_, -1);
    leaf_reached_.assign(n_nodes_ + 1, 0);
    pending_.assign(1, 0);
    depth_of_[0] = 0;
    std::size_t n_reached = 0;
    std::int32_t depth = 0;
    while (!pending_.empty()) {
      const auto node = static_cast<std::size_t>(pending_.back());
      pending_.pop_back();
      ++n_reached;
      check_split(node);
      visit_child(node, model_.left[model_.first_node(tree) + node]);
      visit_child(node, model_.right[model_.first_node(tree) + node]);
      depth = std::max(depth, depth_of_[node] + 1);
    }
    // n nodes have 2n children; n - 1 of them are nodes, so all n + 1 leaves were reached once all nodes were.
    if (n_reached != n_nodes_) {
      const auto orphan = std::find(depth_of_.begin(), depth_of_.end(), -1) - depth_of_.begin();
      fail(static_cast<std::size_t>(orphan), "no path from the root leads there");
    }
    return depth;
  }

 private:
  [[noreturn]] void fail(std::size_t node, const std::string& what) const {
    throw std::invalid_argument("tree " + std::to_string(tree_) + ", node " + std::to_string(node) + ": " + what);
  }

  void check_split(std::size_t node) const {
    const std::int32_t feature = model_.feature[model_.first_node(tree_) + node];
    if (feature < 0 || feature >= model_.n_features) {
      fail(node, "there is no feature " + std::to_string(feature) + ", the model has " +
                     std::to_string(model_.n_features) + " features, counted from 0");
    }
    double last = model_.threshold[model_.first_node(tree_) + node];
    if (std::isnan(last)) fail(node, "the threshold is NaN");
    if (!model_.has_set(model_.first_node(tree_) + node)) return;
    for (const double threshold : model_.set_of(model_.first_node(tree_) + node)) {
      if (!(threshold > last)) fail(node, "the thresholds of its set do not rise");
      last = threshold;
    }
    if (std::isinf(last)) fail(node, "the last threshold of its set is infinite, so that no value is above it");
  }

  void visit_child(std::size_t node, std::int32_t child) {
    const bool is_leaf = child < 0;
    const auto number = static_cast<std::size_t>(is_leaf ? ~child : child);
    const auto named = [&] { return std::string(is_leaf ? "leaf " : "node ") + std::to_string(number); };
    if (number >= n_nodes_ + (is_leaf ? 1 : 0)) {
      fail(node, named() + " does not exist in a tree of " + std::to_string(n_nodes_) + " inner nodes");
    }
    if (is_leaf ? leaf_reached_[number] != 0 : depth_of_[number] >= 0) {
      fail(node, named() + " is its child but already has another place in the tree");
    }
    if (is_leaf) {
      leaf_reached_[number] = 1;
    } else {
      depth_of_[number] = depth_of_[node] + 1;
      pending_.push_back(child);
    }
  }

  const EnsembleView& model_;
  std::size_t tree_ = 0, n_nodes_ = 0;
  std::vector<std::int32_t> depth_of_;  // -1 until the node is reached
  std::vector<std::uint8_t> leaf_reached_;
  std::vector<std::int32_t> pending_;  // nodes reached, whose children are still to be visited
};

// Check every tree of a model whose offsets were checked.   OUT depths  longest path of every tree, in splits
inline void check_trees(const EnsembleView& model, std::int32_t* depths) {
  TreeChecker checker(model);
  for (std::size_t t = 0; t < model.n_trees; ++t) {
    check_interruption();
    depths[t] = checker.check(t);
  }
}

// Throw std::invalid_argument unless every score is finite, whatever leaves a document reaches.
// Rounding is monotone, so a finite sum of the largest magnitudes, added in the order of scoring, bounds every score.
inline void check_sums(const EnsembleView& model, const double* tree_weights, double base) {
  if (!std::isfinite(base)) throw std::invalid_argument("base must be a finite number");
  double bound = std::abs(base);
  for (std::size_t t = 0; t < model.n_trees; ++t) {
    if (!std::isfinite(tree_weights[t])) {
      throw std::invalid_argument("the weight of tree " + std::to_string(t) + " is not a finite number");
    }
    const std::size_t first = model.first_leaf(t), n_leaves = model.nodes_of(t) + 1;
    double largest = 0.0;
    for (std::size_t leaf = 0; leaf < n_leaves; ++leaf) {
      const double value = model.leaf_value[first + leaf];
      if (!std::isfinite(value)) {
        throw std::invalid_argument("tree " + std::to_string(t) + ", leaf " + std::to_string(leaf) +
                                    ": the value is not a finite number");
      }
      largest = std::max(largest, std::abs(value));
    }
    bound += std::abs(tree_weights[t]) * largest;
  }
  if (!std::isfinite(bound)) {
    throw std::invalid_argument("leaf values and weights are so large that a score could overflow");
  }
}

// Throw std::invalid_argument unless a note of training, one entry per inner node or leaf, is there in full and has
// finite entries, none of them negative where `counts`.
template <class T>
void check_notes(const std::string& name, std::span<const T> notes, std::size_t n_expected, bool per_leaf,
                 bool counts) {
  if (notes.size() != n_expected) {
    throw std::invalid_argument(name + " must have one entry per " + (per_leaf ? "leaf (" : "inner node (") +
                                std::to_string(n_expected) + "), got " + std::to_string(notes.size()));
  }
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const bool fine = std::isfinite(static_cast<double>(notes[i])) && (!counts || notes[i] >= T(0));
    if (!fine) {
      throw std::invalid_argument(name + " of " + (per_leaf ? "leaf " : "node ") + std::to_string(i) + " is " +
                                  python_number(notes[i]));
    }
  }
}

// The largest value of a tree's leaves, without its sign.
inline double largest_leaf(const EnsembleView& model, std::size_t tree) {
  const double* values = model.leaf_value + model.first_leaf(tree);
  double largest = 0.0;
  for (std::size_t leaf = 0; leaf <= model.nodes_of(tree); ++leaf) largest = std::max(largest, std::abs(values[leaf]));
  return largest;
}

// Throw std::invalid_argument unless early exit with this last checkpoint suits the model.
inline void check_exit(const EnsembleView& model, const double* tree_weights, double base,
                       std::int64_t last_checkpoint) {
  constexpr double kLargestScore = 1e300;  // so that scores can be lowered many times
  if (static_cast<std::uint64_t>(last_checkpoint) >= model.n_trees) {
    throw std::invalid_argument("a checkpoint after " + std::to_string(last_checkpoint) +
                                " trees needs more: the model has " + std::to_string(model.n_trees));
  }
  double bound = std::abs(base);
  for (std::size_t t = 0; t < model.n_trees; ++t) bound += std::abs(tree_weights[t]) * largest_leaf(model, t);
  if (bound > kLargestScore) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", bound);
    throw std::invalid_argument(std::string("scores of this model may reach ") + text +
                                ": early exit takes up to 1e+300");
  }
}

// Whether float32 holds every weighted leaf value, and every sum of them, to full precision: nothing overflows, nothing
// vanishes. Models for which it does not are summed in double, whatever was asked for.
inline bool fits_single(const EnsembleView& model, const double* tree_weights) {
  constexpr double kLargest = 1e37, kSmallest = 1e-30;
  double sum = 0.0, largest = 0.0;
  for (std::size_t t = 0; t < model.n_trees; ++t) {
    const double most = std::abs(tree_weights[t]) * largest_leaf(model, t);
    sum += most;
    largest = std::max(largest, most);
  }
  return largest == 0.0 || (sum < kLargest && largest > kSmallest);
}

}  // namespace rankwood
