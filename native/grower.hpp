// Grows one tree at a time over binned data. Which leaf is split next is the caller's decision (Python); what one
// split costs per document and bin is done here.
//
// Gradients are turned into fixed-point integers once per tree, so that sums do not depend on the order of additions
// and therefore not on the number of threads. The unit is a power of two, as small as the 32 bits of a sum allow: the
// sum of all magnitudes is an upper bound for the sum over any node.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "binning.hpp"
#include "interruption.hpp"
#include "isa/kernels.hpp"
#include "pool.hpp"

namespace rankwood {

struct BinnedView {
  const std::uint8_t* bins;  // [n_groups][n_rows][kGroup]
  std::size_t n_rows;
  std::size_t n_features;
  const std::int32_t* n_values;  // bins for values, per feature
  const std::uint8_t* has_missing;

  std::size_t n_groups() const { return (n_features + kGroup - 1) / kGroup; }
  const std::uint8_t* group(std::size_t g) const { return bins + g * n_rows * kGroup; }
};

struct GrowerRules {
  double l2 = 0.0;
  double min_hessian = 1e-3;
  double min_gain = 0.0;
  std::uint32_t min_docs = 1;
  bool hessian_is_count = false;  // every hessian is 1: the sums are document counts
};

struct GrowerNode {
  std::size_t begin = 0, end = 0;  // its documents in rows_
  std::int64_t total = 0;          // packed fixed-point sums
  std::int32_t histogram = -1;     // slot, or -1
  std::int32_t feature = -1;       // best split found
  std::int32_t bin = -1;
  bool missing_left = false;
  double gain = -std::numeric_limits<double>::infinity();
};

class TreeGrower {
 public:
  TreeGrower(const BinnedView& data, int n_threads) : data_(data), pool_(n_threads), bin_offsets_{0} {
    if (data.n_rows > std::numeric_limits<std::uint32_t>::max()) throw std::invalid_argument("too many rows");
    for (std::size_t f = 0; f < data.n_features; ++f) {
      bin_offsets_.push_back(bin_offsets_.back() + static_cast<std::size_t>(data.n_values[f]) + 1);
    }
  }

  // Begin a tree on the given rows (ascending), with one gradient and hessian per row of the data set.
  // `features` marks the features that may be split on.
  void start(const double* gradient, const double* hessian, const std::uint32_t* rows, std::size_t n,
             const std::uint8_t* features, const GrowerRules& rules, bool want_splits) try {
    rules_ = rules;
    features_.assign(features, features + data_.n_features);
    splits_.resize(data_.n_features);
    splits_of_larger_.resize(data_.n_features);
    rows_.assign(rows, rows + n);
    row_buffer_.resize(n);
    gh_.resize(n);
    gh_buffer_.resize(n);
    nodes_.clear();
    free_slots_.clear();
    n_slots_used_ = 0;
    quantise(gradient, hessian);
    GrowerNode root;
    root.end = n;
    for (const std::int64_t value : gh_) root.total += value;
    nodes_.push_back(root);
    if (may_split(nodes_[0]) && want_splits) {
      nodes_[0].histogram = take_slot();
      std::int64_t* histogram = slot(nodes_[0].histogram);
      const GrowerNode& node = nodes_[0];
      run_groups(node.end - node.begin, [&](std::size_t g) {
        GroupHistogram group;
        build(g, node, group);
        keep(g, group, histogram);
        search(g, node, histogram, features_.data(), splits_);
      });
      choose(nodes_[0], splits_);
    }
  } catch (const Interrupted&) {
    give_up();
    throw;
  }

  // Split a node at its best split. Returns the number of the left child; the right child is the next.
  // With want_splits false the children are final and no time is spent on their histograms. `child_features`, when not
  // null, marks the features that the left child may be split on, then those of the right child.
  std::size_t split(std::size_t number, bool want_splits, const std::uint8_t* child_features) try {
    if (number >= nodes_.size() || nodes_[number].feature < 0) throw std::invalid_argument("node has no split");
    const std::size_t first = nodes_.size();
    nodes_.resize(first + 2);
    GrowerNode& parent = nodes_[number];
    GrowerNode& left = nodes_[first];
    GrowerNode& right = nodes_[first + 1];
    const std::size_t middle = partition(parent);
    left.begin = parent.begin;
    left.end = right.begin = middle;
    right.end = parent.end;
    GrowerNode& smaller = left.end - left.begin <= right.end - right.begin ? left : right;
    GrowerNode& larger = &smaller == &left ? right : left;
    for (std::size_t i = smaller.begin; i < smaller.end; ++i) smaller.total += gh_[i];
    larger.total = parent.total - smaller.total;
    const std::uint8_t* of_left = child_features ? child_features : features_.data();
    const std::uint8_t* of_right = child_features ? child_features + data_.n_features : features_.data();
    const std::uint8_t* small_features = &smaller == &left ? of_left : of_right;
    const std::uint8_t* large_features = &smaller == &left ? of_right : of_left;
    const bool small_goes_on = want_splits && may_split(smaller), large_goes_on = want_splits && may_split(larger);
    if (large_goes_on || small_goes_on) {
      // The larger child takes over the parent's histogram: parent minus smaller, in place.
      larger.histogram = parent.histogram;
      smaller.histogram = take_slot();
      std::int64_t* small_histogram = slot(smaller.histogram);
      std::int64_t* large_histogram = slot(larger.histogram);
      run_groups(smaller.end - smaller.begin, [&](std::size_t g) {
        GroupHistogram group;
        build(g, smaller, group);
        if (small_goes_on) {
          keep(g, group, small_histogram);
          search(g, smaller, small_histogram, small_features, splits_);
        }
        if (large_goes_on) {
          subtract(g, group, large_histogram);
          search(g, larger, large_histogram, large_features, splits_of_larger_);
        }
      });
      if (small_goes_on) choose(smaller, splits_);
      if (large_goes_on) choose(larger, splits_of_larger_);
      if (smaller.feature < 0) give_back(smaller);
      if (larger.feature < 0) give_back(larger);
    } else {
      give_back(parent);
    }
    parent.histogram = -1;
    return first;
  } catch (const Interrupted&) {
    give_up();
    throw;
  }

  // Sums of unrounded gradients and hessians over the documents of some nodes, for their values.
  void sums(const std::size_t* numbers, std::size_t n, const double* gradient, const double* hessian, double* g_sums,
            double* h_sums) {
    pool_.run(n, [&](std::size_t k) {
      const GrowerNode& node = nodes_[numbers[k]];
      double g = 0.0, h = 0.0;
      for (std::size_t i = node.begin; i < node.end; ++i) {
        g += gradient[rows_[i]];
        h += hessian[rows_[i]];
      }
      g_sums[k] = g;
      h_sums[k] = h;
    });
  }

  // Say for every document of some nodes (the leaves) which of them it is in.
  void mark(const std::size_t* numbers, std::size_t n, std::uint16_t* leaf_of_row) {
    pool_.run(n, [&](std::size_t k) {
      const GrowerNode& node = nodes_[numbers[k]];
      for (std::size_t i = node.begin; i < node.end; ++i) leaf_of_row[rows_[i]] = static_cast<std::uint16_t>(k);
    });
  }

  const std::vector<GrowerNode>& nodes() const { return nodes_; }
  const BinnedView& data() const { return data_; }

 private:
  using Splits = std::vector<FeatureSplit>;
  static constexpr std::size_t kParallelUpdates = 40'000;  // below, waking a thread costs more than it gives
  static constexpr std::size_t kParallelRows = 16'384;

  // What is half done must not be gone on from: there is no tree until the next start.
  void give_up() { nodes_.clear(); }

  template <class Task>
  void run_groups(std::size_t n_docs, const Task& task) {
    const std::size_t n_groups = data_.n_groups();
    if (n_docs * data_.n_features < kParallelUpdates && n_groups * kBins * kGroup < 4 * kParallelUpdates) {
      for (std::size_t g = 0; g < n_groups; ++g) task(g);
    } else {
      pool_.run(n_groups, task);
    }
  }

  // A chunk of rows per task, whatever the number of threads: sums of doubles are added chunk by chunk.
  static constexpr std::size_t kChunk = 8192;
  void quantise(const double* gradient, const double* hessian) {
    const std::size_t n = rows_.size(), n_chunks = (n + kChunk - 1) / kChunk;
    chunk_sums_.assign(2 * n_chunks, 0.0);
    pool_.run(n_chunks, [&](std::size_t c) {
      double g = 0.0, h = 0.0;
      for (std::size_t i = c * kChunk; i < std::min(n, (c + 1) * kChunk); ++i) {
        g += std::fabs(gradient[rows_[i]]);
        h += hessian[rows_[i]];
      }
      chunk_sums_[2 * c] = g;
      chunk_sums_[2 * c + 1] = h;
    });
    double g = 0.0, h = 0.0;
    for (std::size_t c = 0; c < n_chunks; ++c) {
      g += chunk_sums_[2 * c];
      h += chunk_sums_[2 * c + 1];
    }
    if (!std::isfinite(g) || !std::isfinite(h)) throw std::invalid_argument("gradients must be finite");
    // Rounding adds at most half a unit per document.
    gradient_unit_ = unit_for(g, 2147483646.0 - static_cast<double>(n));
    hessian_unit_ = unit_for(h, 4294967294.0 - static_cast<double>(n));
    const double g_scale = 1.0 / gradient_unit_, h_scale = 1.0 / hessian_unit_;
    pool_.run(n_chunks, [&](std::size_t c) {
      for (std::size_t i = c * kChunk; i < std::min(n, (c + 1) * kChunk); ++i) {
        const std::int64_t fixed_g = static_cast<std::int64_t>(std::nearbyint(gradient[rows_[i]] * g_scale));
        const std::int64_t fixed_h = static_cast<std::int64_t>(std::nearbyint(hessian[rows_[i]] * h_scale));
        gh_[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(fixed_g) << 32) + fixed_h;
      }
    });
  }

  // The smallest power of two u with total / u <= limit.
  static double unit_for(double total, double limit) {
    if (!(total > 0.0)) return 1.0;
    int exponent = 0;
    std::frexp(total / limit, &exponent);  // total / limit < 2^exponent
    return std::ldexp(1.0, std::max(exponent, -1000));
  }

  bool may_split(const GrowerNode& node) const { return node.end - node.begin >= 2 * std::size_t{rules_.min_docs}; }

  std::int32_t take_slot() {
    if (!free_slots_.empty()) {
      const std::int32_t number = free_slots_.back();
      free_slots_.pop_back();
      return number;
    }
    if (n_slots_used_ == slots_.size()) {
      slots_.push_back(std::make_unique<std::int64_t[]>(bin_offsets_.back()));
    }
    return static_cast<std::int32_t>(n_slots_used_++);
  }
  void give_back(GrowerNode& node) {
    if (node.histogram >= 0) free_slots_.push_back(node.histogram);
    node.histogram = -1;
  }
  std::int64_t* slot(std::int32_t number) { return slots_[static_cast<std::size_t>(number)].get(); }

  // Histograms of one group of features over a node's documents, kBins entries each: small enough to stay in the
  // first-level cache while documents stream by.
  struct GroupHistogram {
    alignas(64) std::int64_t entries[kGroup * kBins];
  };
  void build(std::size_t g, const GrowerNode& node, GroupHistogram& histogram) const {
    constexpr std::size_t kPiece = 131'072;  // documents: a few milliseconds
    std::memset(&histogram, 0, sizeof histogram);
    for (std::size_t begin = node.begin; begin < node.end; begin += kPiece) {
      if (begin != node.begin) check_interruption();
      kernels().accumulate(data_.group(g), rows_.data() + begin, std::min(kPiece, node.end - begin), gh_.data() + begin,
                           histogram.entries);
    }
  }

  // Keep a node's histogram, without the bins that its features do not have.
  void keep(std::size_t g, const GroupHistogram& histogram, std::int64_t* slot) const {
    for (std::size_t f = g * kGroup; f < group_end(g); ++f) {
      std::memcpy(slot + bin_offsets_[f], histogram.entries + f % kGroup * kBins,
                  (bin_offsets_[f + 1] - bin_offsets_[f]) * sizeof *slot);
    }
  }
  void subtract(std::size_t g, const GroupHistogram& histogram, std::int64_t* slot) const {
    for (std::size_t f = g * kGroup; f < group_end(g); ++f) {
      std::int64_t* from = slot + bin_offsets_[f];
      const std::int64_t* take = histogram.entries + f % kGroup * kBins;
      const std::size_t n = bin_offsets_[f + 1] - bin_offsets_[f];
      for (std::size_t b = 0; b < n; ++b) from[b] -= take[b];
    }
  }
  std::size_t group_end(std::size_t g) const { return std::min(data_.n_features, (g + 1) * kGroup); }

  SplitRules split_rules() const {
    return {gradient_unit_, hessian_unit_, rules_.l2,
            rules_.hessian_is_count ? std::max(rules_.min_hessian, static_cast<double>(rules_.min_docs))
                                    : rules_.min_hessian,
            rules_.min_docs};
  }

  void search(std::size_t g, const GrowerNode& node, const std::int64_t* histogram, const std::uint8_t* features,
              Splits& splits) const {
    const SplitRules rules = split_rules();
    for (std::size_t f = g * kGroup; f < group_end(g); ++f) {
      splits[f].gain = -std::numeric_limits<double>::infinity();
      splits[f].bin = -1;
      if (!features[f] || data_.n_values[f] + data_.has_missing[f] < 2) continue;
      splits[f] = kernels().best_split(histogram + bin_offsets_[f], nullptr, data_.n_values[f],
                                       data_.has_missing[f] != 0, node.total, rules);
    }
  }

  // Take the best feature. Histograms hold no document counts: where a minimum is asked for, the best feature's
  // documents are counted and its split searched again, until the best one has been checked.
  void choose(GrowerNode& node, Splits& splits) {
    const bool check = rules_.min_docs > 1 && !rules_.hessian_is_count;
    checked_.assign(data_.n_features, 0);
    for (;;) {
      std::size_t best = 0;
      for (std::size_t f = 1; f < splits.size(); ++f) {
        if (splits[f].gain > splits[best].gain) best = f;
      }
      if (splits.empty() || !(splits[best].gain > rules_.min_gain)) return;
      if (!check || checked_[best]) {
        node.feature = static_cast<std::int32_t>(best);
        node.bin = splits[best].bin;
        node.missing_left = splits[best].missing_left;
        node.gain = splits[best].gain;
        return;
      }
      check_interruption();
      count(node, best);
      splits[best] = kernels().best_split(slot(node.histogram) + bin_offsets_[best], counts_, data_.n_values[best],
                                          data_.has_missing[best] != 0, node.total, split_rules());
      checked_[best] = 1;
    }
  }

  void count(const GrowerNode& node, std::size_t f) {
    std::memset(counts_, 0, sizeof counts_);
    const std::uint8_t* bins = data_.group(f / kGroup) + f % kGroup;
    for (std::size_t i = node.begin; i < node.end; ++i) ++counts_[bins[std::size_t{rows_[i]} * kGroup]];
  }

  // Stable partition of a node's documents: those that go left first, each side in its old order.
  std::size_t partition(const GrowerNode& node) {
    const std::size_t f = static_cast<std::size_t>(node.feature), n = node.end - node.begin;
    const std::uint8_t* bins = data_.group(f / kGroup) + f % kGroup;
    const std::int32_t missing_bin = data_.n_values[f];
    std::uint8_t goes_left[kBins];
    for (std::int32_t b = 0; b < kBins; ++b) {
      goes_left[b] = b == missing_bin && data_.has_missing[f] ? node.missing_left : b <= node.bin;
    }
    const std::size_t n_chunks = n < kParallelRows ? 1 : std::min<std::size_t>(4 * pool_.size(), n / 4096);
    left_counts_.assign(n_chunks, 0);
    std::uint32_t* rows = rows_.data() + node.begin;
    std::int64_t* gh = gh_.data() + node.begin;
    const auto chunk_begin = [&](std::size_t c) { return c * n / n_chunks; };
    // Each chunk: left documents move to its front, right documents go to the same place of the buffers.
    pool_.run(n_chunks, [&](std::size_t c) {
      std::size_t to_left = chunk_begin(c), to_right = 0;
      std::uint32_t* right_rows = row_buffer_.data() + chunk_begin(c);
      std::int64_t* right_gh = gh_buffer_.data() + chunk_begin(c);
      for (std::size_t i = chunk_begin(c); i < chunk_begin(c + 1); ++i) {
        const std::uint32_t row = rows[i];
        const std::int64_t value = gh[i];
        const std::size_t left = goes_left[bins[std::size_t{row} * kGroup]];
        rows[to_left] = row;
        gh[to_left] = value;
        right_rows[to_right] = row;
        right_gh[to_right] = value;
        to_left += left;
        to_right += 1 - left;
      }
      left_counts_[c] = to_left - chunk_begin(c);
    });
    std::size_t n_left = left_counts_[0];
    for (std::size_t c = 1; c < n_chunks; ++c) {  // close the gaps between the chunks' left parts
      std::memmove(rows + n_left, rows + chunk_begin(c), left_counts_[c] * sizeof *rows);
      std::memmove(gh + n_left, gh + chunk_begin(c), left_counts_[c] * sizeof *gh);
      n_left += left_counts_[c];
    }
    std::size_t to = n_left;
    for (std::size_t c = 0; c < n_chunks; ++c) {
      const std::size_t n_right = chunk_begin(c + 1) - chunk_begin(c) - left_counts_[c];
      std::memcpy(rows + to, row_buffer_.data() + chunk_begin(c), n_right * sizeof *rows);
      std::memcpy(gh + to, gh_buffer_.data() + chunk_begin(c), n_right * sizeof *gh);
      to += n_right;
    }
    return node.begin + n_left;
  }

  BinnedView data_;
  ThreadPool pool_;
  GrowerRules rules_;
  double gradient_unit_ = 1.0, hessian_unit_ = 1.0;
  std::vector<std::size_t> bin_offsets_;  // where the entries of each feature start in a kept histogram
  std::vector<std::uint8_t> features_, checked_;
  std::vector<std::uint32_t> rows_, row_buffer_;
  std::vector<std::int64_t> gh_, gh_buffer_;
  std::vector<GrowerNode> nodes_;
  std::vector<std::unique_ptr<std::int64_t[]>> slots_;
  std::vector<std::int32_t> free_slots_;
  std::size_t n_slots_used_ = 0;
  Splits splits_, splits_of_larger_;
  std::vector<double> chunk_sums_;
  std::vector<std::size_t> left_counts_;
  std::uint32_t counts_[kBins];
};

}  // namespace rankwood
