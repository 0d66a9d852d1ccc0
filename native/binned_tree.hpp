// A grown tree over binned data: which leaf does every document reach?
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "isa/kernels.hpp"
#include "parallel.hpp"

namespace rankwood {

// An inner node: children >= 0 are inner nodes, < 0 is leaf ~child.
struct BinnedNode {
  const std::uint8_t* bins;   // of its feature: document i at bins[i * kGroup]
  std::int32_t child[2];      // right, left
  std::uint8_t bin;           // bins <= bin go left,
  std::uint8_t missing_bin;   // but for this one,
  std::uint8_t missing_left;  // which goes where this says
  const std::uint8_t* left_bins =
      nullptr;  // of a split of categories: marks of the bins that go left, missing among them
};

constexpr std::size_t kReachBlock = 4096;  // documents that go through a tree together

// The leaves of a block of documents, which are divided at every node as when a tree grows.
//   IN  first, n  the documents
inline void divide_among_leaves(const std::vector<BinnedNode>& nodes, std::size_t first, std::size_t n,
                                std::uint16_t* leaf_of_row) {
  struct Part {
    std::int32_t node;
    std::size_t begin, end;
  };
  std::uint32_t documents[kReachBlock + kPartitionRoom], right[kReachBlock + kPartitionRoom];
  for (std::size_t i = 0; i < n; ++i) documents[i] = static_cast<std::uint32_t>(i);
  std::vector<Part> open{{0, 0, n}};
  while (!open.empty()) {
    const Part part = open.back();
    open.pop_back();
    std::uint32_t* const rows = documents + part.begin;
    const std::size_t size = part.end - part.begin;
    if (part.node < 0) {
      const std::uint16_t leaf = static_cast<std::uint16_t>(~part.node);
      for (std::size_t i = 0; i < size; ++i) leaf_of_row[first + rows[i]] = leaf;
      continue;
    }
    const BinnedNode& node = nodes[static_cast<std::size_t>(part.node)];
    const Side side{node.bin, node.missing_bin, node.missing_left != 0};
    const std::size_t n_left = kernels().partition(node.bins + first * kGroup, rows, size, side, rows, right);
    std::memcpy(rows + n_left, right, (size - n_left) * sizeof *rows);
    if (n_left < size) open.push_back({node.child[0], part.begin + n_left, part.end});
    if (n_left > 0) open.push_back({node.child[1], part.begin, part.begin + n_left});
  }
}

// OUT leaf_of_row: number of the leaf of every document.
template <bool kHasSets>
inline void reach_leaves(const std::vector<BinnedNode>& nodes, std::size_t n_rows, std::uint16_t* leaf_of_row,
                         int n_threads) {
  constexpr std::size_t kBlock = kReachBlock;
  constexpr std::size_t kDocsPerNode = 16;  // so that parts of a block are worth being divided
  constexpr std::size_t kLanes = 8;         // documents that walk side by side: their loads overlap
  const BinnedNode* tree = nodes.data();
  const auto step = [tree](std::int32_t node, std::size_t row) {
    const BinnedNode& at = tree[node];
    const std::uint8_t bin = at.bins[row * kGroup];
    bool left = bin == at.missing_bin ? at.missing_left != 0 : bin <= at.bin;
    if constexpr (kHasSets) {
      if (at.left_bins != nullptr) left = at.left_bins[bin] != 0;
    }
    return at.child[left];
  };
  parallel_for((n_rows + kBlock - 1) / kBlock, n_threads, [&](std::size_t block) {
    const std::size_t end = std::min(n_rows, (block + 1) * kBlock);
    std::size_t row = block * kBlock;
    if (nodes.empty()) {
      for (; row < end; ++row) leaf_of_row[row] = 0;
      return;
    }
    if (!kHasSets && nodes.size() * kDocsPerNode <= end - row) {
      return divide_among_leaves(nodes, row, end - row, leaf_of_row);
    }
    for (; row + kLanes <= end; row += kLanes) {
      std::int32_t at[kLanes] = {};
      bool walking = true;
      while (walking) {
        walking = false;
        for (std::size_t k = 0; k < kLanes; ++k) {
          if (at[k] >= 0) {
            at[k] = step(at[k], row + k);
            walking |= at[k] >= 0;
          }
        }
      }
      for (std::size_t k = 0; k < kLanes; ++k) leaf_of_row[row + k] = static_cast<std::uint16_t>(~at[k]);
    }
    for (; row < end; ++row) {
      std::int32_t node = 0;
      while (node >= 0) node = step(node, row);
      leaf_of_row[row] = static_cast<std::uint16_t>(~node);
    }
  });
}

// Throws std::invalid_argument if one of the leaves of some rows is not below n_leaves.
inline void check_leaves(const std::uint16_t* leaf_of_row, std::size_t begin, std::size_t end, std::size_t n_leaves) {
  std::uint16_t largest = 0;
  for (std::size_t i = begin; i < end; ++i) largest = leaf_of_row[i] > largest ? leaf_of_row[i] : largest;
  if (begin < end && largest >= n_leaves) throw std::invalid_argument("leaf out of range");
}

// scores[i] += weight * values[leaf_of_row[i]]
inline void add_leaf_values(const std::uint16_t* leaf_of_row, std::size_t n_rows, const double* values,
                            std::size_t n_values, double weight, double* scores, int n_threads) {
  constexpr std::size_t kBlock = 16384;
  parallel_for((n_rows + kBlock - 1) / kBlock, n_threads, [&](std::size_t block) {
    const std::size_t begin = block * kBlock, end = std::min(n_rows, begin + kBlock);
    check_leaves(leaf_of_row, begin, end, n_values);
    for (std::size_t i = begin; i < end; ++i) scores[i] += weight * values[leaf_of_row[i]];
  });
}

}  // namespace rankwood
