// Scores of documents whose leaf in every tree is known: trees can be put in and taken out again, without a trace.
//
// In plain doubles (s + t) - t is not s, and documents that ought to have equal scores no longer do. Here a score is
// the exact sum of its trees' values, in two doubles: `scores` is that sum rounded once, `rests` what the rounding left
// over. Values are rounded to multiples of 2^-80 first, so sums below 2^24 fit into two doubles, and the order in which
// trees come and go does not matter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "binned_tree.hpp"
#include "parallel.hpp"

namespace rankwood {

// A double of 2^-28 or more is a multiple of 2^-80 already.
inline double rounded_for_sums(double value) {
  return std::abs(value) < 0x1p-28 ? std::nearbyint(value * 0x1p80) * 0x1p-80 : value;
}

// One tree: the leaf of every document, in one byte or two, and the value of every leaf times the tree's weight. Leaves
// of two bytes are looked at before they are used.
struct WeightedTree {
  const std::uint8_t* narrow = nullptr;
  const std::uint16_t* wide = nullptr;
  std::vector<double> values;  // rounded_for_sums; at least 256 when leaves are bytes, so that none is out of range
};

// score + rest += value, exactly as long as the rest fits (Knuth's two-sum).
inline void add_exactly(double value, double& score, double& rest) {
  const double sum = score + value, part = sum - score;
  rest += (score - (sum - part)) + (value - part);
  score = sum;
}

// score + rest - value, rounded once.
inline double without(double value, double score, double rest) {
  add_exactly(-value, score, rest);
  return score + rest;
}

template <class Leaf>
inline void add_tree(const Leaf* leaf_of_row, const double* values, std::size_t begin, std::size_t end, double* scores,
                     double* rests) {
  for (std::size_t i = begin; i < end; ++i) add_exactly(values[leaf_of_row[i]], scores[i], rests[i]);
}

// A block of scores stays in the first cache while all trees are added to it.
inline void add_trees(const std::vector<WeightedTree>& trees, std::size_t n_rows, double* scores, double* rests,
                      int n_threads) {
  constexpr std::size_t kBlock = 1024, kTask = 16 * kBlock;
  const auto add_block = [&](std::size_t begin, std::size_t end) {
    for (const WeightedTree& tree : trees) {
      if (tree.narrow != nullptr) {
        add_tree(tree.narrow, tree.values.data(), begin, end, scores, rests);
      } else {
        check_leaves(tree.wide, begin, end, tree.values.size());
        add_tree(tree.wide, tree.values.data(), begin, end, scores, rests);
      }
    }
    for (std::size_t i = begin; i < end; ++i) {  // so that the score is the sum, rounded, and the rest what is missing
      const double rest = rests[i];
      rests[i] = 0.0;
      add_exactly(rest, scores[i], rests[i]);
    }
  };
  parallel_for((n_rows + kTask - 1) / kTask, n_threads, [&](std::size_t task) {
    const std::size_t last = std::min(n_rows, (task + 1) * kTask);
    for (std::size_t begin = task * kTask; begin < last; begin += kBlock) {
      check_interruption();
      add_block(begin, std::min(last, begin + kBlock));
    }
  });
}

// One tree, as sums over its leaves see it: the leaf of every document, and where the two sums of every leaf go.
struct SummedTree {
  const std::uint8_t* narrow = nullptr;
  const std::uint16_t* wide = nullptr;
  std::size_t n_leaves = 0;
  std::int64_t* sums = nullptr;  // of x and of y, leaf after leaf
};

template <class Leaf>
inline void sum_tree(const Leaf* leaf_of_row, std::size_t n_rows, const std::int64_t* x, const std::int64_t* y,
                     std::int64_t* sums) {
  for (std::size_t i = 0; i < n_rows; ++i) {
    std::int64_t* of_leaf = sums + 2 * std::size_t{leaf_of_row[i]};
    of_leaf[0] += x[i];
    of_leaf[1] += y[i];
  }
}

// Sums of x and of y over the documents in every leaf: of whole numbers, so their order does not matter.
inline void sum_over_leaves(const std::vector<SummedTree>& trees, std::size_t n_rows, const std::int64_t* x,
                            const std::int64_t* y, int n_threads) {
  parallel_for(trees.size(), n_threads, [&](std::size_t t) {
    const SummedTree& tree = trees[t];
    std::vector<std::int64_t> sums(2 * std::max<std::size_t>(tree.n_leaves, 256));  // no byte is out of range
    if (tree.narrow != nullptr) {
      sum_tree(tree.narrow, n_rows, x, y, sums.data());
    } else {
      check_leaves(tree.wide, 0, n_rows, tree.n_leaves);
      sum_tree(tree.wide, n_rows, x, y, sums.data());
    }
    std::copy(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(2 * tree.n_leaves), tree.sums);
  });
}

}  // namespace rankwood
