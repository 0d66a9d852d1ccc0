// The reference traversal: plain descent through packed nodes, block by block. It judges every other engine, so it is
// kept simple. Compiling it for wider instruction sets gains nothing: its loads depend on each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ensemble.hpp"
#include "row_blocks.hpp"
#include "rows.hpp"
#include "sums.hpp"

namespace rankwood {

// One inner node; child < 0 is leaf ~child.
struct TraversalNode {
  double threshold;
  std::int32_t feature;
  std::int32_t left;
  std::int32_t right;
  std::int32_t missing_left;  // 0 or 1
};

// Where a document with value x goes from here: left when x <= threshold; a missing value where the split says.
// Bits instead of && and ||: a branch on data that is missing at random would be mispredicted.
template <class T>
inline std::int32_t next_of(const TraversalNode& node, T x) {
  const double value = x;  // exact, so float32 is compared without rounding the threshold
  const int left = static_cast<int>(value <= node.threshold) | (static_cast<int>(value != value) & node.missing_left);
  return left != 0 ? node.left : node.right;
}

// Whether an even number of the further thresholds of a set, which rise, lies below x.
inline bool even_below(std::span<const double> thresholds, double x) {
  return (std::lower_bound(thresholds.begin(), thresholds.end(), x) - thresholds.begin()) % 2 == 0;
}

// The leaf of one tree that each row reaches, where nodes may have sets: one row after the other.
//   IN  set_offsets  of the tree's nodes     others as below
template <class T>
void leaves_by_sets(const TraversalNode* nodes, const std::int64_t* set_offsets, const double* set_thresholds,
                    const T* rows, std::size_t row_stride, std::size_t n_rows, std::int32_t* leaf) {
  for (std::size_t row = 0; row < n_rows; ++row) {
    std::int32_t at = 0;
    do {
      const TraversalNode& node = nodes[at];
      const double x = rows[row * row_stride + static_cast<std::size_t>(node.feature)];
      const double* const first = set_thresholds + set_offsets[at];
      const double* const end = set_thresholds + set_offsets[at + 1];
      const bool beyond = x > node.threshold && first != end;  // what a missing value is not
      at = beyond && !even_below({first, end}, x) ? node.left : next_of(node, x);
    } while (at >= 0);
    leaf[row] = ~at;
  }
}

// The leaf of one tree that each row reaches.
//   IN  nodes  of the tree, at least one     IN  rows  n_rows rows, row_stride apart     OUT leaf  number in the tree
// Eight rows descend side by side, so that the loads of one hide behind those of the others; a row that has reached
// its leaf (a negative number) waits there.
template <class T>
void leaves_of_tree(const TraversalNode* nodes, const T* rows, std::size_t row_stride, std::size_t n_rows,
                    std::int32_t* leaf) {
  constexpr std::size_t lanes = 8;
  std::size_t row = 0;
  for (; row + lanes <= n_rows; row += lanes) {
    std::int32_t at[lanes] = {};
    std::int32_t all_at_leaves;
    do {
      all_at_leaves = -1;
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const TraversalNode& node = nodes[at[lane] < 0 ? 0 : at[lane]];
        const std::int32_t next =
            next_of(node, rows[(row + lane) * row_stride + static_cast<std::size_t>(node.feature)]);
        at[lane] = at[lane] < 0 ? at[lane] : next;
        all_at_leaves &= at[lane];
      }
    } while (all_at_leaves >= 0);
    for (std::size_t lane = 0; lane < lanes; ++lane) leaf[row + lane] = ~at[lane];
  }
  for (; row < n_rows; ++row) {
    std::int32_t at = 0;
    do {
      at = next_of(nodes[at], rows[row * row_stride + static_cast<std::size_t>(nodes[at].feature)]);
    } while (at >= 0);
    leaf[row] = ~at;
  }
}

class ReferenceTraversal {
 public:
  // `model` must have passed the checks of ensemble.hpp. Everything needed is copied.
  explicit ReferenceTraversal(const EnsembleView& model)
      : leaf_value_(model.leaf_value, model.leaf_value + model.n_leaves),
        node_offsets_(model.node_offsets, model.node_offsets + model.n_trees + 1),
        n_features_(static_cast<std::size_t>(model.n_features)) {
    nodes_.reserve(model.n_nodes);
    for (std::size_t i = 0; i < model.n_nodes; ++i) {
      nodes_.push_back({model.threshold[i], model.feature[i], model.left[i], model.right[i],
                        static_cast<std::int32_t>(model.missing_left[i] != 0)});
    }
    if (model.set_offsets == nullptr) return;
    const std::int64_t first = model.set_offsets[0];  // these may be some trees of many
    set_thresholds_.assign(model.set_thresholds + first, model.set_thresholds + model.set_offsets[model.n_nodes]);
    for (std::size_t i = 0; i <= model.n_nodes; ++i) set_offsets_.push_back(model.set_offsets[i] - first);
  }

  std::size_t n_trees() const { return node_offsets_.size() - 1; }
  std::size_t n_features() const { return n_features_; }
  std::size_t n_bytes() const {
    return nodes_.size() * sizeof nodes_[0] + leaf_value_.size() * sizeof leaf_value_[0] +
           (node_offsets_.size() + set_offsets_.size()) * sizeof node_offsets_[0] +
           set_thresholds_.size() * sizeof set_thresholds_[0];
  }

  // scores[row] = base + weight[0] * value[0] + weight[1] * value[1] + ..., added in double from left to right, so
  // the bits depend on nothing but the model and the row. In single precision see sums.hpp.
  template <class T>
  void score(const Rows<T>& rows, const double* tree_weights, double base, double* scores, bool single,
             int n_threads) const {
    std::fill_n(scores, rows.n_rows, base);
    add(rows, tree_weights, scores, single, n_threads);
  }

  // scores += the values of all trees: of trees that come after others, whose number is a multiple of kSumGroup,
  // `scores` holds the sums so far.
  template <class T>
  void add(const Rows<T>& rows, const double* tree_weights, double* scores, bool single, int n_threads) const {
    const auto add_block = [&](std::size_t first, std::size_t n_rows, const T* block, std::size_t stride) {
      std::int32_t leaf[block_rows];
      float group_sum[block_rows] = {};
      for (std::size_t tree = 0; tree < n_trees(); ++tree) {
        find_leaves(tree, block, stride, n_rows, leaf);
        const double* value = leaf_value_.data() + first_leaf(tree);
        const double weight = tree_weights[tree];
        if (!single) {
          for (std::size_t i = 0; i < n_rows; ++i) scores[first + i] += weight * value[leaf[i]];
          continue;
        }
        for (std::size_t i = 0; i < n_rows; ++i) group_sum[i] += static_cast<float>(weight * value[leaf[i]]);
        if ((tree + 1) % kSumGroup != 0 && tree + 1 != n_trees()) continue;
        for (std::size_t i = 0; i < n_rows; ++i) scores[first + i] += static_cast<double>(group_sum[i]);
        std::fill_n(group_sum, block_rows, 0.0f);
      }
    };
    for_each_row_block(rows, block_rows, n_threads, add_block);
  }

  // leaves[row * n_trees + tree] = number of the leaf inside its tree. The caller picks a type wide enough.
  template <class T, class Leaf>
  void leaves(const Rows<T>& rows, Leaf* leaves, int n_threads) const {
    const auto find_block = [&](std::size_t first, std::size_t n_rows, const T* block, std::size_t stride) {
      std::int32_t leaf[block_rows];
      for (std::size_t tree = 0; tree < n_trees(); ++tree) {
        find_leaves(tree, block, stride, n_rows, leaf);
        Leaf* out = leaves + first * n_trees() + tree;
        for (std::size_t i = 0; i < n_rows; ++i) out[i * n_trees()] = static_cast<Leaf>(leaf[i]);
      }
    };
    for_each_row_block(rows, block_rows, n_threads, find_block);
  }

 private:
  // A block's features and one tree stay in the first-level cache while the block visits the tree.
  static constexpr std::size_t block_rows = 64;

  std::size_t first_leaf(std::size_t tree) const { return static_cast<std::size_t>(node_offsets_[tree]) + tree; }

  template <class T>
  void find_leaves(std::size_t tree, const T* block, std::size_t stride, std::size_t n_rows, std::int32_t* leaf) const {
    if (node_offsets_[tree] == node_offsets_[tree + 1]) {
      std::fill_n(leaf, n_rows, 0);
      return;
    }
    const TraversalNode* nodes = nodes_.data() + node_offsets_[tree];
    if (set_offsets_.empty()) return leaves_of_tree(nodes, block, stride, n_rows, leaf);
    leaves_by_sets(nodes, set_offsets_.data() + node_offsets_[tree], set_thresholds_.data(), block, stride, n_rows,
                   leaf);
  }

  std::vector<TraversalNode> nodes_;
  std::vector<double> leaf_value_;
  std::vector<std::int64_t> node_offsets_;
  std::vector<std::int64_t> set_offsets_;  // empty where no node has a set
  std::vector<double> set_thresholds_;
  std::size_t n_features_;
};

}  // namespace rankwood
