// Outputs of all trees for all documents, kept as leaf numbers: a byte or two each instead of eight.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "exact_sum.hpp"
#include "interruption.hpp"
#include "kept_leaves.hpp"
#include "parallel.hpp"

namespace rankwood {

// Trees whose leaves are looked up together: their chains of additions do not wait for each other.
constexpr std::size_t kTreesTogether = 4;

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
  std::vector<std::size_t> there;
  for (std::size_t t = 0; t < outputs.n_trees; ++t) {
    if (weights[t] != 0.0) there.push_back(t);
  }
  parallel_for((outputs.n_docs + block - 1) / block, n_threads, [&](std::size_t task) {
    const std::size_t begin = task * block, end = std::min(begin + block, outputs.n_docs);
    std::fill(scores + begin, scores + end, base);
    if (rests != nullptr) std::fill(rests + begin, rests + end, 0.0);
    std::size_t next = 0;
    for (; rests == nullptr && next + kTreesTogether <= there.size(); next += kTreesTogether) {
      check_interruption();
      const Code* codes[kTreesTogether];
      const double* values[kTreesTogether];
      for (std::size_t k = 0; k < kTreesTogether; ++k) {
        codes[k] = outputs.of_tree(there[next + k]);
        values[k] = weighted.data() + outputs.first_leaf(there[next + k]);
      }
      for (std::size_t d = begin; d < end; ++d) {
        double score = scores[d];
        for (std::size_t k = 0; k < kTreesTogether; ++k) score += values[k][codes[k][d]];
        scores[d] = score;
      }
    }
    for (; next < there.size(); ++next) {
      check_interruption();
      const Code* codes = outputs.of_tree(there[next]);
      const double* values = weighted.data() + outputs.first_leaf(there[next]);
      if (rests != nullptr) {
        add_tree(codes, values, begin, end, scores, rests);
      } else {
        for (std::size_t d = begin; d < end; ++d) scores[d] += values[codes[d]];
      }
    }
  });
}

// sums[t] = output[t][0] / totals[0] + output[t][1] / totals[1] + ..., not rounded (ExactSum), so that neither the
// numbers of leaves nor the order of documents show in it.
template <class Code>
void share_sums(const TreeOutputs<Code>& outputs, const double* totals, int n_threads, std::int64_t* sums) {
  parallel_for(outputs.n_trees, n_threads, [&](std::size_t tree) {
    const Code* codes = outputs.of_tree(tree);
    const double* values = outputs.values + outputs.first_leaf(tree);
    ExactSum sum;
    for (std::size_t d = 0; d < outputs.n_docs; ++d) sum.add(values[codes[d]] / totals[d]);
    sum.write(sums + tree * ExactSum::kWidth);
  });
}

// Call add(k, code, d) for every document d and tree trees[first + k] of a few trees, document by document: sums of a
// tree are added in the order of documents.
template <class Code, class Add>
void scatter_codes(const TreeOutputs<Code>& outputs, const std::int64_t* trees, std::size_t n, const Add& add) {
  const Code* codes[kTreesTogether];
  for (std::size_t k = 0; k < n; ++k) codes[k] = outputs.of_tree(static_cast<std::size_t>(trees[k]));
  if (n == kTreesTogether) {
    for (std::size_t d = 0; d < outputs.n_docs; ++d) {
      for (std::size_t k = 0; k < kTreesTogether; ++k) add(k, codes[k][d], d);
    }
    return;
  }
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t d = 0; d < outputs.n_docs; ++d) add(k, codes[k][d], d);
  }
}

// sums[leaf] = sum of x[d] over the documents d in each leaf of the trees named; other entries stay as they are. Sums
// are of whole numbers, so their order does not matter.
template <class Code>
void leaf_sums(const TreeOutputs<Code>& outputs, const std::int64_t* trees, std::size_t n, const std::int64_t* x,
               int n_threads, std::int64_t* sums) {
  parallel_for((n + kTreesTogether - 1) / kTreesTogether, n_threads, [&](std::size_t task) {
    const std::size_t begin = task * kTreesTogether, end = std::min(begin + kTreesTogether, n);
    std::int64_t* of_leaf[kTreesTogether];
    for (std::size_t i = begin; i < end; ++i) {
      const auto tree = static_cast<std::size_t>(trees[i]);
      of_leaf[i - begin] = sums + outputs.first_leaf(tree);
      std::fill(of_leaf[i - begin], of_leaf[i - begin] + outputs.n_leaves(tree), std::int64_t{0});
    }
    scatter_codes(outputs, trees + begin, end - begin,
                  [&](std::size_t k, Code code, std::size_t d) { of_leaf[k][code] += x[d]; });
  });
}

// The same of two numbers per document, side by side: both cost little more than one.
template <class Code>
void leaf_pair_sums(const TreeOutputs<Code>& outputs, const std::int64_t* trees, std::size_t n, const std::int64_t* x,
                    const std::int64_t* y, int n_threads, std::int64_t* x_sums, std::int64_t* y_sums) {
  struct Pair {
    std::int64_t x = 0, y = 0;
  };
  parallel_for((n + kTreesTogether - 1) / kTreesTogether, n_threads, [&](std::size_t task) {
    const std::size_t begin = task * kTreesTogether, end = std::min(begin + kTreesTogether, n);
    std::vector<Pair> sums[kTreesTogether];
    Pair* of_leaf[kTreesTogether];
    for (std::size_t i = begin; i < end; ++i) {
      sums[i - begin].resize(outputs.n_leaves(static_cast<std::size_t>(trees[i])));
      of_leaf[i - begin] = sums[i - begin].data();
    }
    scatter_codes(outputs, trees + begin, end - begin, [&](std::size_t k, Code code, std::size_t d) {
      Pair& pair = of_leaf[k][code];
      pair.x += x[d];
      pair.y += y[d];
    });
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t first = outputs.first_leaf(static_cast<std::size_t>(trees[i]));
      for (std::size_t leaf = 0; leaf < sums[i - begin].size(); ++leaf) {
        x_sums[first + leaf] = of_leaf[i - begin][leaf].x;
        y_sums[first + leaf] = of_leaf[i - begin][leaf].y;
      }
    }
  });
}

}  // namespace rankwood
