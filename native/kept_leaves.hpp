// Scores of documents whose leaf in every tree is known: taking trees out of them and putting trees in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel.hpp"

namespace rankwood {

// One tree: the leaf of every document, in one byte or two, and the value of every leaf times the tree's weight.
struct WeightedTree {
  const std::uint8_t* narrow = nullptr;
  const std::uint16_t* wide = nullptr;
  std::vector<double> values;  // at least 256 when leaves are bytes, so that none is out of range
};

template <class Leaf>
inline void add_tree(const Leaf* leaf_of_row, const double* values, std::size_t begin, std::size_t end,
                     double* scores) {
  for (std::size_t i = begin; i < end; ++i) scores[i] += values[leaf_of_row[i]];
}

// scores[i] += values of the leaves of document i, tree by tree in the order given: the same bits whatever the blocks.
// A block of scores stays in the first cache while all trees are added to it.
inline void add_trees(const std::vector<WeightedTree>& trees, std::size_t n_rows, double* scores, int n_threads) {
  constexpr std::size_t kBlock = 2048;
  parallel_for((n_rows + kBlock - 1) / kBlock, n_threads, [&](std::size_t block) {
    const std::size_t begin = block * kBlock, end = std::min(n_rows, begin + kBlock);
    for (const WeightedTree& tree : trees) {
      if (tree.narrow != nullptr) {
        add_tree(tree.narrow, tree.values.data(), begin, end, scores);
      } else {
        add_tree(tree.wide, tree.values.data(), begin, end, scores);
      }
    }
  });
}

}  // namespace rankwood
