// Outputs of all trees for all documents, kept as leaf numbers: a byte or two each instead of eight.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "interruption.hpp"
#include "kept_leaves.hpp"
#include "parallel.hpp"

namespace rankwood {

// codes[t * n_docs + d] is the leaf of tree t that document d reaches; its value is values[leaf_offsets[t] + code].
template <class Code>
struct TreeOutputs {
  const Code* codes;
  std::size_t n_trees, n_docs;
  const double* values;
  const std::int64_t* leaf_offsets;  // n_trees + 1 entries

  const Code* of_tree(std::size_t tree) const { return codes + tree * n_docs; }
  std::size_t first_leaf(std::size_t tree) const { return static_cast<std::size_t>(leaf_offsets[tree]); }
  std::size_t n_leaves(std::size_t tree) const { return first_leaf(tree + 1) - first_leaf(tree); }
};

// Throw std::invalid_argument unless every code is a leaf of its tree: what comes after does not look again.
template <class Code>
void check_codes(const TreeOutputs<Code>& outputs, int n_threads) {
  parallel_for(outputs.n_trees, n_threads, [&](std::size_t tree) {
    const Code* codes = outputs.of_tree(tree);
    Code largest = 0;
    for (std::size_t d = 0; d < outputs.n_docs; ++d) largest = std::max(largest, codes[d]);
    if (outputs.n_docs != 0 && largest >= outputs.n_leaves(tree)) {
      throw std::invalid_argument("tree " + std::to_string(tree) + " has no leaf " + std::to_string(largest));
    }
  });
}

// scores[d] = base + weights[0] * output[0][d] + weights[1] * output[1][d] + ..., in double, from left to right, as
// the engines add. Trees of weight 0 are not looked at. rests[d], unless null: what these additions left over, exactly
// as long as it fits into a double; values are taken as they are, of whatever scale, to get the engines' scores.
template <class Code>
void add_outputs(const TreeOutputs<Code>& outputs, const double* weights, double base, int n_threads, double* scores,
                 double* rests) {
  constexpr std::size_t block = 8192;  // documents whose scores stay in the cache while trees are added
  std::vector<double> weighted(outputs.first_leaf(outputs.n_trees));
  for (std::size_t t = 0; t < outputs.n_trees; ++t) {
    for (std::size_t leaf = outputs.first_leaf(t); leaf < outputs.first_leaf(t + 1); ++leaf) {
      weighted[leaf] = weights[t] * outputs.values[leaf];
    }
  }
  parallel_for((outputs.n_docs + block - 1) / block, n_threads, [&](std::size_t task) {
    const std::size_t begin = task * block, end = std::min(begin + block, outputs.n_docs);
    std::fill(scores + begin, scores + end, base);
    if (rests != nullptr) std::fill(rests + begin, rests + end, 0.0);
    for (std::size_t t = 0; t < outputs.n_trees; ++t) {
      check_interruption();
      if (weights[t] == 0.0) continue;
      const Code* codes = outputs.of_tree(t);
      const double* values = weighted.data() + outputs.first_leaf(t);
      if (rests != nullptr) {
        add_tree(codes, values, begin, end, scores, rests);
      } else {
        for (std::size_t d = begin; d < end; ++d) scores[d] += values[codes[d]];
      }
    }
  });
}

// sums[t] = output[t][0] / totals[0] + output[t][1] / totals[1] + ..., added exactly, so that neither the numbers of
// leaves nor the order of documents show in it.
template <class Code>
void share_sums(const TreeOutputs<Code>& outputs, const double* totals, int n_threads, double* sums) {
  constexpr std::size_t n_lanes = 8;  // sums that need not wait for each other
  parallel_for(outputs.n_trees, n_threads, [&](std::size_t tree) {
    const Code* codes = outputs.of_tree(tree);
    const double* values = outputs.values + outputs.first_leaf(tree);
    double sum[n_lanes + 1] = {}, rest[n_lanes + 1] = {};
    for (std::size_t begin = 0; begin < outputs.n_docs; begin += n_lanes) {
      const std::size_t n = std::min(n_lanes, outputs.n_docs - begin);
      for (std::size_t k = 0; k < n; ++k) {
        add_exactly(values[codes[begin + k]] / totals[begin + k], sum[k], rest[k]);
      }
    }
    for (std::size_t k = 0; k < n_lanes; ++k) {
      add_exactly(sum[k], sum[n_lanes], rest[n_lanes]);
      rest[n_lanes] += rest[k];
    }
    sums[tree] = sum[n_lanes] + rest[n_lanes];
  });
}

// sums[leaf] = sum of x[d] over the documents d in each leaf of the trees named; other entries stay as they are.
template <class Code>
void leaf_sums(const TreeOutputs<Code>& outputs, const std::int64_t* trees, std::size_t n, const double* x,
               int n_threads, double* sums) {
  parallel_for(n, n_threads, [&](std::size_t i) {
    const auto tree = static_cast<std::size_t>(trees[i]);
    double* of_leaf = sums + outputs.first_leaf(tree);
    const Code* codes = outputs.of_tree(tree);
    std::fill(of_leaf, of_leaf + outputs.n_leaves(tree), 0.0);
    for (std::size_t d = 0; d < outputs.n_docs; ++d) of_leaf[codes[d]] += x[d];
  });
}

}  // namespace rankwood
