// What inner nodes are worth, and trees made smaller by merging sibling leaves that say nearly the same.
//
// A node that parts m documents of mean value a from n of mean value b accounts for a sum of squares of
// m n / (m + n) (a - b)^2 of the scores: what is lost when both sides get their common mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "ensemble.hpp"
#include "interruption.hpp"

namespace rankwood {

// Documents below a node or in a leaf, and the mean of their values.
struct Share {
  double count = 0.0, mean = 0.0;
};

inline double parted(const Share& a, const Share& b) {
  const double n = a.count + b.count, apart = a.mean - b.mean;
  return n > 0.0 ? a.count * b.count / n * apart * apart : 0.0;
}

// Without documents the plain mean.
inline Share joined(const Share& a, const Share& b) {
  const double n = a.count + b.count;
  return {n, n > 0.0 ? (a.count * a.mean + b.count * b.mean) / n : 0.5 * (a.mean + b.mean)};
}

// Nodes of one tree such that children come after their parents.
inline std::vector<std::int32_t> parents_first(const EnsembleView& model, std::size_t tree) {
  std::vector<std::int32_t> order;
  if (model.nodes_of(tree) == 0) return order;
  const std::size_t first = model.first_node(tree);
  order.push_back(0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t node = first + static_cast<std::size_t>(order[i]);
    for (const std::int32_t child : {model.left[node], model.right[node]}) {
      if (child >= 0) order.push_back(child);
    }
  }
  return order;
}

// For every inner node: OUT importance  the sum of squares that it accounts for, by leaf values times the tree's
// weight; OUT right_is_heavier  1 where more documents go right than left. counts: documents of every leaf.
inline void node_importance(const EnsembleView& model, const double* tree_weights, const double* counts,
                            double* importance, std::uint8_t* right_is_heavier) {
  std::vector<Share> shares;
  for (std::size_t t = 0; t < model.n_trees; ++t) {
    check_interruption(t);
    const std::size_t first_node = model.first_node(t), first_leaf = model.first_leaf(t);
    shares.assign(model.nodes_of(t), Share{});
    const auto share_of = [&](std::int32_t child) {
      if (child >= 0) return shares[static_cast<std::size_t>(child)];
      const std::size_t leaf = first_leaf + static_cast<std::size_t>(~child);
      return Share{counts[leaf], model.leaf_value[leaf]};
    };
    const std::vector<std::int32_t> order = parents_first(model, t);
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::size_t node = first_node + static_cast<std::size_t>(order[i]);
      const Share left = share_of(model.left[node]), right = share_of(model.right[node]);
      shares[static_cast<std::size_t>(order[i])] = joined(left, right);
      importance[node] = tree_weights[t] * tree_weights[t] * parted(left, right);
      right_is_heavier[node] = right.count > left.count ? 1 : 0;
    }
  }
}

// Merge the cheapest pair of sibling leaves, then the next, until `n_leaves` remain or every tree is a leaf; pairs that
// were merged may be merged again. OUT instead  for every inner node itself, or ~k for the new leaf that it became: k
// counts the model's leaves first, then the new ones. Returns the values of the new leaves. Equal pairs in order of
// their nodes.
inline std::vector<double> merge_leaves(const EnsembleView& model, const double* tree_weights, const double* counts,
                                        std::size_t n_leaves, std::int64_t* instead) {
  struct Place {
    std::int32_t parent;
    std::size_t tree;
  };
  std::vector<Place> places(model.n_nodes);
  std::vector<Share> leaves(model.n_leaves);
  for (std::size_t leaf = 0; leaf < model.n_leaves; ++leaf) leaves[leaf] = {counts[leaf], model.leaf_value[leaf]};
  for (std::size_t t = 0; t < model.n_trees; ++t) {
    const std::size_t first = model.first_node(t);
    if (model.nodes_of(t) > 0) places[first].parent = -1;
    for (std::size_t i = 0; i < model.nodes_of(t); ++i) {
      places[first + i].tree = t;
      instead[first + i] = static_cast<std::int64_t>(first + i);
      for (const std::int32_t child : {model.left[first + i], model.right[first + i]}) {
        if (child >= 0) places[first + static_cast<std::size_t>(child)].parent = static_cast<std::int32_t>(i);
      }
    }
  }
  // The leaf that a child is by now, or -1.
  const auto leaf_at = [&](std::size_t tree, std::int32_t child) -> std::int64_t {
    if (child < 0) return static_cast<std::int64_t>(model.first_leaf(tree)) + ~child;
    const std::int64_t there = instead[model.first_node(tree) + static_cast<std::size_t>(child)];
    return there < 0 ? ~there : -1;
  };
  using Offer = std::pair<double, std::size_t>;
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> queue;
  const auto offer = [&](std::size_t node) {
    const std::size_t tree = places[node].tree;
    const std::int64_t a = leaf_at(tree, model.left[node]), b = leaf_at(tree, model.right[node]);
    if (a < 0 || b < 0) return;
    const double cost = parted(leaves[static_cast<std::size_t>(a)], leaves[static_cast<std::size_t>(b)]);
    queue.emplace(tree_weights[tree] * tree_weights[tree] * cost, node);
  };
  for (std::size_t node = 0; node < model.n_nodes; ++node) offer(node);
  std::vector<double> values;
  for (std::size_t n_left = model.n_leaves; n_left > n_leaves && !queue.empty(); --n_left) {
    check_interruption(n_left);
    const std::size_t node = queue.top().second, tree = places[node].tree;
    queue.pop();
    const auto a = static_cast<std::size_t>(leaf_at(tree, model.left[node]));
    const auto b = static_cast<std::size_t>(leaf_at(tree, model.right[node]));
    const Share merged = joined(leaves[a], leaves[b]);
    instead[node] = ~static_cast<std::int64_t>(leaves.size());
    leaves.push_back(merged);
    values.push_back(merged.mean);
    if (places[node].parent >= 0) offer(model.first_node(tree) + static_cast<std::size_t>(places[node].parent));
  }
  return values;
}

}  // namespace rankwood
