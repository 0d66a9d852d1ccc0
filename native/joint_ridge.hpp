// All leaf values at once by least squares, over leaf numbers: min ||C(A v) - T||^2 + l2 ||v||^2.
//
// A has a row per document with a 1 for the leaf that it reaches in every tree, C takes from every score the mean of
// its query, T is what the scores should be, centred likewise. A is never formed: A v adds one value per tree, A' x
// adds every document's x to one leaf per tree. Conjugate gradients, preconditioned with 1 / (documents of the leaf +
// l2).
//
//     e = T - C A v                     residual of every document
//     r = A' e - l2 v                   how every leaf wants to move       (A' C = A' on what is centred)
//     p = M r + (rho / rho before) p    direction
//     v += a p,  e -= a C A p           a = rho / (|C A p|^2 + l2 |p|^2)
//
// Sums over documents do not depend on threads: those of leaves are of integers, those of scores are added block by
// block in order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "interruption.hpp"
#include "parallel.hpp"
#include "tree_outputs.hpp"

namespace rankwood {

// Numbers as integers of one unit, a power of two so small that the sum of all of them just fits into 63 bits: sums are
// exact, in any order. When one of the numbers is not finite, all are 0.
class FixedPoint {
 public:
  FixedPoint(const double* x, std::size_t n, int n_threads) : units_(n) {
    double largest = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      finite_ = finite_ && std::isfinite(x[i]);
      largest = std::max(largest, std::abs(x[i]));
    }
    if (!finite_) return;
    int exponent = 0, digits = 1;
    std::frexp(largest, &exponent);  // largest < 2^exponent
    while ((std::size_t{1} << digits) < n) ++digits;
    const int shift = std::min(62 - digits - exponent, 1000);  // beyond that even the largest is as good as 0
    const double scale = std::ldexp(1.0, shift);
    unit_ = std::ldexp(1.0, -shift);
    constexpr std::size_t block = 16384;
    parallel_for((n + block - 1) / block, n_threads, [&](std::size_t task) {
      const std::size_t end = std::min(n, (task + 1) * block);
      for (std::size_t i = task * block; i < end; ++i) {
        units_[i] = static_cast<std::int64_t>(std::nearbyint(x[i] * scale));
      }
    });
  }
  bool finite() const { return finite_; }
  const std::int64_t* units() const { return units_.data(); }
  double value(std::int64_t sum) const { return static_cast<double>(sum) * unit_; }

 private:
  std::vector<std::int64_t> units_;
  double unit_ = 1.0;
  bool finite_ = true;
};

// Queries in blocks of some thousand documents; one block where there are no queries to centre by.
class QueryBlocks {
 public:
  QueryBlocks(const std::int64_t* offsets, std::size_t n_queries, std::size_t n_docs) : offsets_(offsets) {
    constexpr std::size_t size = 4096;
    if (offsets == nullptr) {
      for (std::size_t begin = 0; begin < n_docs; begin += size) starts_.push_back(begin);
      starts_.push_back(n_docs);
      return;
    }
    starts_.push_back(0);
    for (std::size_t q = 0; q < n_queries; ++q) {
      if (document(q + 1) - document(starts_.back()) >= size) starts_.push_back(q + 1);
    }
    if (starts_.back() != n_queries) starts_.push_back(n_queries);
  }
  std::size_t size() const { return starts_.size() - 1; }
  std::size_t first(std::size_t block) const { return offsets_ ? document(starts_[block]) : starts_[block]; }
  // Take from x, which starts with the first document of the block, the mean of every query.
  void centre(std::size_t block, double* x) const {
    if (offsets_ == nullptr) return;
    const std::size_t start = first(block);
    for (std::size_t q = starts_[block]; q < starts_[block + 1]; ++q) {
      double* begin = x + (document(q) - start);
      double* end = x + (document(q + 1) - start);
      double sum = 0.0;
      for (const double* d = begin; d != end; ++d) sum += *d;
      const double mean = begin == end ? 0.0 : sum / static_cast<double>(end - begin);
      for (double* d = begin; d != end; ++d) *d -= mean;
    }
  }

 private:
  std::size_t document(std::size_t query) const { return static_cast<std::size_t>(offsets_[query]); }

  const std::int64_t* offsets_;
  std::vector<std::size_t> starts_;  // queries, or documents where there are no queries
};

// out[d] = sum of the values of the leaves that document d of the block reaches, centred; returns the sum of squares.
template <class Code>
double centred_outputs(const TreeOutputs<Code>& outputs, const std::int64_t* trees, std::size_t n,
                       const QueryBlocks& blocks, std::size_t block, const double* values, double* out) {
  const std::size_t begin = blocks.first(block), n_docs = blocks.first(block + 1) - begin;
  std::fill(out, out + n_docs, 0.0);
  std::size_t i = 0;
  for (; i + kTreesTogether <= n; i += kTreesTogether) {
    const Code* codes[kTreesTogether];
    const double* of_leaf[kTreesTogether];
    for (std::size_t k = 0; k < kTreesTogether; ++k) {
      const auto tree = static_cast<std::size_t>(trees[i + k]);
      codes[k] = outputs.of_tree(tree) + begin;
      of_leaf[k] = values + outputs.first_leaf(tree);
    }
    for (std::size_t d = 0; d < n_docs; ++d) {
      double sum = out[d];
      for (std::size_t k = 0; k < kTreesTogether; ++k) sum += of_leaf[k][codes[k][d]];
      out[d] = sum;
    }
  }
  for (; i < n; ++i) {
    const auto tree = static_cast<std::size_t>(trees[i]);
    const Code* codes = outputs.of_tree(tree) + begin;
    const double* of_leaf = values + outputs.first_leaf(tree);
    for (std::size_t d = 0; d < n_docs; ++d) out[d] += of_leaf[codes[d]];
  }
  blocks.centre(block, out);
  double squares = 0.0;
  for (std::size_t d = 0; d < n_docs; ++d) squares += out[d] * out[d];
  return squares;
}

// Squares this small beside others are what rounding left: to follow them would lead away from the solution.
constexpr double kNoise = 1e-24;

struct RidgeSettings {
  double l2;
  std::size_t iterations;
  double tolerance;  // ends when the preconditioned norm of the slope has fallen to this share of the first
};

// IN/OUT values: leaf values to start from, and those found; only leaves of the trees named. OUT residual: T - C A v.
// counts: documents of every leaf. offsets: null where scores are not centred.
template <class Code>
class JointRidge {
 public:
  JointRidge(const TreeOutputs<Code>& outputs, const std::int64_t* trees, std::size_t n, const std::int64_t* offsets,
             std::size_t n_queries, const double* counts, int n_threads)
      : outputs_(outputs),
        trees_(trees),
        n_(n),
        counts_(counts),
        n_threads_(n_threads),
        blocks_(offsets, n_queries, outputs.n_docs),
        sums_(outputs.first_leaf(outputs.n_trees)),
        slope_(sums_.size()),
        direction_(sums_.size()),
        along_(outputs.n_docs),
        squares_(blocks_.size()) {}

  void solve(const double* target, const RidgeSettings& how, double* values, double* residual) {
    const double started = apply(values);
    double wanted = 0.0;
    for (std::size_t d = 0; d < outputs_.n_docs; ++d) {
      wanted += target[d] * target[d];
      residual[d] = target[d] - along_[d];
    }
    double steepness = slope(values, residual, how.l2);
    const double enough = std::max(how.tolerance * how.tolerance * steepness, kNoise * std::max(started, wanted));
    for_each_leaf([&](std::size_t leaf) { direction_[leaf] = slope_[leaf] / weight(leaf, how.l2); });
    for (std::size_t i = 0; i < how.iterations && steepness > enough; ++i) {
      check_interruption();
      double curvature = apply(direction_.data());
      double squares = 0.0, length = 0.0;
      for_each_leaf([&](std::size_t leaf) {
        const double square = direction_[leaf] * direction_[leaf];
        squares += square;
        length += weight(leaf, how.l2) * square;
      });
      curvature += how.l2 * squares;
      // A direction that changes next to no score, such as the same for a whole query, is made of rounding alone.
      if (!(curvature > kNoise * length) || !std::isfinite(curvature)) break;
      const double step = steepness / curvature;
      for_each_leaf([&](std::size_t leaf) { values[leaf] += step * direction_[leaf]; });
      for (std::size_t d = 0; d < outputs_.n_docs; ++d) residual[d] -= step * along_[d];
      const double before = std::exchange(steepness, slope(values, residual, how.l2));
      const double share = steepness / before;
      for_each_leaf(
          [&](std::size_t leaf) { direction_[leaf] = slope_[leaf] / weight(leaf, how.l2) + share * direction_[leaf]; });
    }
  }

 private:
  template <class Body>
  void for_each_leaf(const Body& body) const {
    for (std::size_t i = 0; i < n_; ++i) {
      const auto tree = static_cast<std::size_t>(trees_[i]);
      for (std::size_t leaf = outputs_.first_leaf(tree); leaf < outputs_.first_leaf(tree + 1); ++leaf) body(leaf);
    }
  }

  // A leaf without documents and without l2 has no slope either.
  double weight(std::size_t leaf, double l2) const { return std::max(counts_[leaf] + l2, 1e-300); }

  // along = C A values; returns its sum of squares.
  double apply(const double* values) {
    parallel_for(blocks_.size(), n_threads_, [&](std::size_t block) {
      squares_[block] =
          centred_outputs(outputs_, trees_, n_, blocks_, block, values, along_.data() + blocks_.first(block));
    });
    double sum = 0.0;
    for (const double squares : squares_) sum += squares;
    return sum;
  }

  // slope = A' residual - l2 values; returns slope . M slope, which is NaN, and ends it all, where sums overflowed.
  double slope(const double* values, const double* residual, double l2) {
    const FixedPoint fixed(residual, outputs_.n_docs, n_threads_);
    if (!fixed.finite()) return std::numeric_limits<double>::quiet_NaN();
    leaf_sums(outputs_, trees_, n_, fixed.units(), n_threads_, sums_.data());
    double steepness = 0.0;
    for_each_leaf([&](std::size_t leaf) {
      slope_[leaf] = fixed.value(sums_[leaf]) - l2 * values[leaf];
      steepness += slope_[leaf] * slope_[leaf] / weight(leaf, l2);
    });
    return steepness;
  }

  const TreeOutputs<Code>& outputs_;
  const std::int64_t* trees_;
  std::size_t n_;
  const double* counts_;
  int n_threads_;
  QueryBlocks blocks_;
  std::vector<std::int64_t> sums_;
  std::vector<double> slope_, direction_, along_, squares_;
};

// gains[i] = fall of the squared residual when tree trees[i] alone is added, every leaf at its ridge value: the sum
// over its leaves of (sum of residuals)^2 / (documents + l2).
template <class Code>
void tree_gains(const TreeOutputs<Code>& outputs, const std::int64_t* trees, std::size_t n, const double* residual,
                const double* counts, double l2, int n_threads, double* gains) {
  std::vector<std::int64_t> sums(outputs.first_leaf(outputs.n_trees));
  const FixedPoint fixed(residual, outputs.n_docs, n_threads);
  leaf_sums(outputs, trees, n, fixed.units(), n_threads, sums.data());
  for (std::size_t i = 0; i < n; ++i) {
    const auto tree = static_cast<std::size_t>(trees[i]);
    double gain = 0.0;
    for (std::size_t leaf = outputs.first_leaf(tree); leaf < outputs.first_leaf(tree + 1); ++leaf) {
      const double sum = fixed.value(sums[leaf]);
      gain += sum * sum / std::max(counts[leaf] + l2, 1e-300);
    }
    gains[i] = gain;
  }
}

}  // namespace rankwood
