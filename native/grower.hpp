// Grows one tree at a time over binned data. Which leaf is split next is the caller's decision (Python); what one
// split costs per document and bin is done here.
//
// Gradients become whole numbers of a unit, a power of two, once per tree. Sums of whole numbers do not depend on the
// order of additions: not on the number of threads, nor on which process of a group holds which documents. A histogram
// entry is added up in 32 + 32 bits (gradient, hessian) while documents stream by, for as long as nothing can leave its
// half, and then in two doubles, which are exact below 2^53:
//
//   documents of a node   | piece | piece | piece | ...     sums of magnitudes of a piece fit 32 bits
//   packed histogram         +=      +=      +=             one addition per value
//   wide histogram             +=      +=      +=           now and then
//
// A node whose sums all fit keeps packed ones; only the largest nodes are wide. Histograms of a group of features lie
// side by side, bin by bin, and splits of an octet of features are searched at once, one feature per lane.
//
// The unit gives about 2^15 steps to the mean magnitude, so pieces have some 2^16 documents, whatever the size of the
// data: a billion documents lose no precision.
//
// A group of processes goes step by step (open, divide, build, settle), and adds up counts and histograms in between;
// one process alone goes through the same steps at once (start, split).
//
// Constraints (constrain): a feature with a direction bounds the values of the leaves on both sides of its splits by
// the middle between the values of the two children; groups say which features may be met on one path. Costs (price)
// are taken from the gains of features; when they change while a tree grows, open leaves choose anew (reprice).
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

#include "aligned.hpp"
#include "binning.hpp"
#include "category_split.hpp"
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

// The largest gradient and hessian of the documents of a tree, by magnitude.
struct Extremes {
  double gradient = 0.0, hessian = 0.0;
};

// Sums of magnitudes, in units that follow from the extremes, and the number of documents.
struct Masses {
  std::int64_t gradient = 0, hessian = 0, n_docs = 0;
};

// Splits of every feature of a node that were found, and whether documents were counted for it.
struct FoundSplits {
  std::vector<FeatureSplit> splits;
  std::vector<std::uint8_t> checked;
  std::vector<std::vector<std::uint8_t>> left_bins;  // of features of categories: marks of the bins that go left
};

struct GrowerNode {
  std::size_t begin = 0, end = 0;  // its documents in rows_
  std::int64_t n_docs = 0;         // of all processes
  NodeSums sums;                   // over the documents of all processes
  std::int32_t histogram = -1;     // slot, or -1
  std::int32_t feature = -1;       // best split found
  std::int32_t bin = -1;
  bool missing_left = false;
  std::vector<std::uint8_t> left_bins;  // of a split of categories: marks of the bins that go left, instead of `bin`
  double gain = -std::numeric_limits<double>::infinity();
  std::size_t first_child = 0;                              // 0: not divided; the other child is the next
  FoundSplits found;                                        // while a split is to be chosen
  double lower = -std::numeric_limits<double>::infinity();  // of the values of leaves below it
  double upper = std::numeric_limits<double>::infinity();
  std::vector<std::uint8_t> groups;  // 1 for every group that has all features of its path; empty without groups
};

class TreeGrower {
 public:
  TreeGrower(const BinnedView& data, int n_threads)
      : data_(data), pool_(ThreadPool::shared(n_threads)), bin_offsets_{0} {
    if (data.n_rows > std::numeric_limits<std::uint32_t>::max()) throw std::invalid_argument("too many rows");
    for (std::size_t f = 0; f < data.n_features; ++f) bin_offsets_.push_back(bin_offsets_.back() + n_bins(f));
    describe_octets();
  }

  TreeGrower(const TreeGrower&) = delete;
  TreeGrower& operator=(const TreeGrower&) = delete;

  // ---- constraints, of all trees from the next one on

  // `directions`: 1, -1 or 0 per feature, or null; `groups`: per group, 1 for every feature of it.
  void constrain(const std::int8_t* directions, const std::uint8_t* groups, std::size_t n_groups) {
    directions_.clear();
    if (directions != nullptr) directions_.assign(directions, directions + data_.n_features);
    groups_.clear();
    for (std::size_t k = 0; k < n_groups; ++k, groups += data_.n_features) {
      groups_.emplace_back(groups, groups + data_.n_features);
    }
  }

  // Features whose bins are categories, marked by 1, and how they are split.
  void categorise(const std::uint8_t* marks, const CategoryRules& rules) {
    categorical_.assign(marks, marks + data_.n_features);
    category_rules_ = rules;
  }

  // What is taken from the gain of each feature; infinite where it must not be used.
  void price(const double* costs) { costs_.assign(costs, costs + data_.n_features); }

  // ---- one process alone

  // Other costs while a tree grows: its open leaves choose their best splits anew.
  void reprice(const double* costs) {
    price(costs);
    whole([&] {
      for (const std::size_t number : open_leaves()) choose_alone(number, true);
    });
  }

  // Begin a tree on the given rows (ascending; null: all), with one gradient and hessian per row of the data set.
  // `features` marks the features that may be split on.
  void start(const double* gradient, const double* hessian, const std::uint32_t* rows, std::size_t n,
             const std::uint8_t* features, const GrowerRules& rules, bool want_splits) {
    const Extremes extremes = take_rows(gradient, hessian, rows, n);
    open(gradient, hessian, extremes, weigh(gradient, hessian, extremes), features, rules);
    whole([&] {
      const Gathered gathered = gather(nodes_[0]);
      nodes_[0].sums = gathered.sums;
      if (!want_splits || !may_split(nodes_[0])) return;
      Pair root = root_pair();
      histogram(nodes_[0], gathered, place_of(nodes_[0], root.small_goes_on),
                [&](std::size_t octet, const OctetSums& sums) { receive(root, octet, sums); });
      choose_alone(0, true);
      give_up(nodes_[0]);
    });
  }

  // Split a node at its best split. Returns the number of the left child; the right child is the next.
  // With want_splits false the children are final and no time is spent on their histograms. `child_features`, when not
  // null, marks the features that the left child may be split on, then those of the right child.
  std::size_t split(std::size_t number, bool want_splits, const std::uint8_t* child_features) {
    const std::size_t n_left = divide(number);
    return whole([&] {
      Pair pair = pair_of(number, static_cast<std::int64_t>(n_left), want_splits, child_features);
      if (pair.goes_on()) {
        const Gathered gathered = gather(nodes_[pair.smaller]);
        add_up(pair, gathered.sums);
        histogram(nodes_[pair.smaller], gathered, place_of(nodes_[pair.smaller], pair.small_goes_on),
                  [&](std::size_t octet, const OctetSums& sums) { receive(pair, octet, sums); });
        choose_alone(pair.smaller, pair.small_goes_on);
        choose_alone(pair.larger, pair.large_goes_on);
      }
      close(number, pair);
      return nodes_[number].first_child;
    });
  }

  // ---- a process of a group

  // Take the rows of the next tree (ascending; null: all) and look at their gradients.
  Extremes take_rows(const double* gradient, const double* hessian, const std::uint32_t* rows, std::size_t n) {
    nodes_.clear();
    if (rows == nullptr) n = data_.n_rows;
    rows_.resize(n);
    has_all_rows_ = n == data_.n_rows;
    const std::size_t n_chunks = chunks_of(n);
    std::vector<Extremes> found(n_chunks);
    pool_->run(n_chunks, [&](std::size_t c) {
      const std::size_t begin = c * kChunk, end = std::min(n, begin + kChunk);
      for (std::size_t i = begin; i < end; ++i) rows_[i] = rows ? rows[i] : static_cast<std::uint32_t>(i);
      // Four of each at a time: one after the other they would wait for each other.
      double g[4] = {}, h[4] = {}, not_finite[4] = {};  // 0 * NaN and 0 * infinity are NaN
      const auto look = [&](std::size_t row, int k) {
        const double a = std::fabs(gradient[row]), b = hessian[row];
        g[k] = a > g[k] ? a : g[k];
        h[k] = b > h[k] ? b : h[k];
        not_finite[k] += 0.0 * a + 0.0 * b;
      };
      std::size_t i = begin;
      for (; rows == nullptr && i + 4 <= end; i += 4) {
        for (int k = 0; k < 4; ++k) look(i + static_cast<std::size_t>(k), k);
      }
      for (; i < end; ++i) {
        if (rows_[i] >= data_.n_rows) {
          not_finite[0] = std::numeric_limits<double>::quiet_NaN();
          break;
        }
        look(rows_[i], 0);
      }
      const bool finite = not_finite[0] + not_finite[1] + not_finite[2] + not_finite[3] == 0.0;
      found[c] = {finite ? *std::max_element(g, g + 4) : -1.0, *std::max_element(h, h + 4)};
    });
    Extremes extremes;
    for (const Extremes& one : found) {
      if (one.gradient < 0.0) throw std::invalid_argument("gradients must be finite, and rows those of the data");
      extremes.gradient = std::max(extremes.gradient, one.gradient);
      extremes.hessian = std::max(extremes.hessian, one.hessian);
    }
    return extremes;
  }

  // Sums of magnitudes over the rows taken. The extremes are those of all processes.
  Masses weigh(const double* gradient, const double* hessian, const Extremes& extremes) {
    const double g_scale = 1.0 / mass_unit(extremes.gradient), h_scale = 1.0 / mass_unit(extremes.hessian);
    const std::size_t n = rows_.size(), n_chunks = chunks_of(n);
    std::vector<Masses> found(n_chunks);
    pool_->run(n_chunks, [&](std::size_t c) {
      Masses masses;
      for (std::size_t i = c * kChunk; i < std::min(n, (c + 1) * kChunk); ++i) {
        masses.gradient += static_cast<std::int32_t>(std::fabs(gradient[rows_[i]]) * g_scale);
        masses.hessian += static_cast<std::int32_t>(hessian[rows_[i]] * h_scale);
      }
      found[c] = masses;
    });
    Masses masses;
    masses.n_docs = static_cast<std::int64_t>(n);
    for (const Masses& one : found) {
      masses.gradient += one.gradient;
      masses.hessian += one.hessian;
    }
    return masses;
  }

  // Begin a tree on the rows taken. Extremes and masses are those of all processes.
  void open(const double* gradient, const double* hessian, const Extremes& extremes, const Masses& masses,
            const std::uint8_t* features, const GrowerRules& rules) {
    rules_ = rules;
    extremes_ = extremes;
    features_.assign(features, features + data_.n_features);
    nodes_.clear();
    pairs_.clear();
    undecided_.clear();
    free_slots_.clear();
    n_slots_used_ = 0;
    gradient_unit_ = unit_for(masses.gradient, masses.n_docs, extremes.gradient, kGradientLimit, 30);
    hessian_unit_ = unit_for(masses.hessian, masses.n_docs, extremes.hessian, kHessianLimit, 31);
    const double g_scale = 1.0 / gradient_unit_, h_scale = 1.0 / hessian_unit_;
    gh_.resize(data_.n_rows);
    const std::size_t n = rows_.size(), n_chunks = chunks_of(n);
    pool_->run(n_chunks, [&](std::size_t c) {
      for (std::size_t i = c * kChunk; i < std::min(n, (c + 1) * kChunk); ++i) {
        const std::size_t row = rows_[i];
        const std::int64_t fixed_g = std::llrint(gradient[row] * g_scale);
        const std::int64_t fixed_h = std::llrint(hessian[row] * h_scale);
        gh_[row] = static_cast<std::int64_t>(static_cast<std::uint64_t>(fixed_g) << 32) + fixed_h;
      }
    });
    GrowerNode root;
    root.end = n;
    root.n_docs = masses.n_docs;
    root.groups.assign(groups_.size(), 1);
    nodes_.push_back(root);
  }

  // Sums over the rows of the root that this process has.
  NodeSums root_sums() {
    return whole([&] { return gather(nodes_[0]).sums; });
  }

  // The root gets the sums over all processes.
  void settle_root(const NodeSums& sums) { nodes_[0].sums = sums; }

  // Divide the documents of a node among two children. Returns how many documents of this process go left.
  std::size_t divide(std::size_t number) {
    if (number >= nodes_.size() || nodes_[number].feature < 0 || nodes_[number].first_child != 0) {
      throw std::invalid_argument("node has no split");
    }
    return whole([&] {
      const std::size_t first = nodes_.size();
      nodes_.resize(first + 2);
      GrowerNode& parent = nodes_[number];
      const std::size_t n_left = partition(parent);
      parent.first_child = first;
      nodes_[first].begin = parent.begin;
      nodes_[first].end = nodes_[first + 1].begin = parent.begin + n_left;
      nodes_[first + 1].end = parent.end;
      return n_left;
    });
  }

  // Numbers that `build` writes for a node: sums, then the histogram, packed where that is wide enough.
  std::size_t exchanged(std::size_t number) const {
    return kSums + bin_offsets_.back() * (fits(nodes_[number].sums) ? 1 : 2);
  }

  // The histogram of this process's documents in the root, or, when it is divided, in the smaller child of a node, of
  // which all processes together send `n_left` documents to the left. What follows is `settle`.
  void build(std::size_t number, std::int64_t n_left, const std::uint8_t* child_features, std::int64_t* out) {
    whole([&] {
      const bool is_root = nodes_[number].first_child == 0;
      pairs_.push_back(is_root ? root_pair() : pair_of(number, n_left, true, child_features));
      pairs_.back().parent = number;
      const Pair& pair = pairs_.back();
      if (!pair.goes_on()) {
        std::memset(out, 0, exchanged(number) * sizeof *out);
        return;
      }
      const bool packed = fits(nodes_[number].sums);
      std::int64_t* entries = out + kSums;
      const Gathered gathered = gather(nodes_[pair.smaller]);
      histogram(nodes_[pair.smaller], gathered, nullptr, [&](std::size_t octet, const OctetSums& sums) {
        for_features(octet, [&](std::size_t f, std::size_t k) {
          const std::size_t at = bin_offsets_[f], n = n_bins(f);
          for (std::size_t b = 0; b < n; ++b) {
            const WideSum sum = wide_sum(sums, b * kGroup + k);
            const std::int64_t gradient = static_cast<std::int64_t>(sum.gradient);
            const std::int64_t hessian = static_cast<std::int64_t>(sum.hessian);
            if (packed) {
              entries[at + b] = static_cast<std::int64_t>(static_cast<std::uint64_t>(gradient) << 32) + hessian;
            } else {
              entries[2 * at + b] = gradient;
              entries[2 * at + n + b] = hessian;
            }
          }
        });
      });
      out[0] = gathered.sums.gradient;
      out[1] = gathered.sums.hessian;
      out[2] = gathered.sums.magnitude;
    });
  }

  // Node number k of those that were built gets what all processes wrote, added up. Splits of its children are
  // searched; some may have to be checked (unchecked).
  void settle(std::size_t k, const std::int64_t* in) {
    whole([&] {
      Pair& pair = pairs_.at(k);
      const bool packed = fits(nodes_[pair.parent].sums), is_root = pair.smaller == pair.larger;
      if (!pair.goes_on()) {
        if (!is_root) close(pair.parent, pair);
        return;
      }
      if (!is_root) add_up(pair, {in[0], in[1], in[2]});
      if (pair.small_goes_on) undecided_.push_back(pair.smaller);
      if (pair.large_goes_on) undecided_.push_back(pair.larger);
      const std::int64_t* entries = in + kSums;
      run_octets([&](std::size_t octet) {
        GroupSums group;
        group.is_packed = packed;
        clear(group, octet);
        for_features(octet, [&](std::size_t f, std::size_t k) {
          const std::size_t at = bin_offsets_[f], n = n_bins(f), to = octet % 2 * kOctet + k;
          for (std::size_t b = 0; b < n; ++b) {
            if (packed) {
              group.packed[b * kGroup + to] = entries[at + b];
            } else {
              group.gradient[b * kGroup + to] = static_cast<double>(entries[2 * at + b]);
              group.hessian[b * kGroup + to] = static_cast<double>(entries[2 * at + n + b]);
            }
          }
        });
        receive(pair, octet, group.octet(octet));
      });
    });
  }

  // A node whose children are final: of its documents all processes together send `n_left` to the left.
  void conclude(std::size_t number, std::int64_t n_left) { close(number, pair_of(number, n_left, false, nullptr)); }

  // Other costs while a tree grows: the splits of open leaves have to be chosen anew (unchecked, settled).
  void reopen(const double* costs) {
    price(costs);
    undecided_ = open_leaves();
  }

  // A node whose best split has to be checked by counting documents, and the feature; none when all are chosen.
  struct Unchecked {
    std::size_t node;
    std::int32_t feature;
  };
  std::vector<Unchecked> unchecked() {
    std::vector<Unchecked> found;
    for (const std::size_t number : undecided_) {
      const std::int32_t feature = choose(nodes_[number]);
      if (feature >= 0) found.push_back({number, feature});
    }
    return found;
  }
  void recheck(const Unchecked& which, const std::uint32_t* counts) {
    GrowerNode& node = nodes_[which.node];
    if (node.histogram < 0 || node.found.splits.empty()) throw std::invalid_argument("node has no split to check");
    check(node, which.feature, counts);
  }
  // Documents of this process in a node, by the bin of a feature.
  void count(std::size_t number, std::int32_t feature, std::uint32_t* counts) {
    const std::size_t f = static_cast<std::size_t>(feature);
    const std::uint8_t* bins = data_.group(f / kGroup) + f % kGroup;
    const std::vector<Stretch> stretches = stretches_of(&number, 1);
    std::vector<std::uint32_t> parts(kBins * stretches.size());
    pool_run(stretches.size() > 1, stretches.size(), [&](std::size_t k) {
      std::uint32_t* part = parts.data() + kBins * k;
      for (std::size_t i = stretches[k].begin; i < stretches[k].end; ++i) ++part[bins[std::size_t{rows_[i]} * kGroup]];
    });
    std::memset(counts, 0, kBins * sizeof *counts);
    for (std::size_t k = 0; k < parts.size(); ++k) counts[k % kBins] += parts[k];
  }
  // All that was built is settled.
  void settled() {
    for (Pair& pair : pairs_) {
      if (pair.goes_on()) close(pair.parent, pair);
    }
    pairs_.clear();
    undecided_.clear();
  }

  // ---- leaves

  // Sums of gradients and hessians over the documents of some nodes, for their values: in steps of 2^-61 of what the
  // extremes are rounded up to, 31 bits and what is above them apart.
  //   OUT sums  four per node: gradient above, below; hessian above, below
  void sums(const std::size_t* numbers, std::size_t n, const double* gradient, const double* hessian,
            const Extremes& extremes, std::int64_t* sums) {
    const double g_scale = 1.0 / sum_unit(extremes.gradient), h_scale = 1.0 / sum_unit(extremes.hessian);
    const std::vector<Stretch> stretches = stretches_of(numbers, n);
    std::vector<std::int64_t> parts(4 * stretches.size());
    constexpr std::size_t kAhead = 32;
    pool_->run(stretches.size(), [&](std::size_t k) {
      const Stretch& stretch = stretches[k];
      std::int64_t* part = parts.data() + 4 * k;
      for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
        if (i + kAhead < stretch.end) {
          __builtin_prefetch(gradient + rows_[i + kAhead]);
          __builtin_prefetch(hessian + rows_[i + kAhead]);
        }
        const std::int64_t g = std::llrint(gradient[rows_[i]] * g_scale);
        const std::int64_t h = std::llrint(hessian[rows_[i]] * h_scale);
        part[0] += g >> 31;
        part[1] += g & 0x7fffffff;
        part[2] += h >> 31;
        part[3] += h & 0x7fffffff;
      }
    });
    std::fill_n(sums, 4 * n, 0);
    for (std::size_t k = 0; k < stretches.size(); ++k) {
      for (std::size_t j = 0; j < 4; ++j) sums[4 * stretches[k].leaf + j] += parts[4 * k + j];
    }
  }
  static double sum_unit(double largest) { return unit_below(largest, 61); }

  // Say for every document of some nodes (the leaves) which of them it is in.
  void mark(const std::size_t* numbers, std::size_t n, std::uint16_t* leaf_of_row) {
    const std::vector<Stretch> stretches = stretches_of(numbers, n);
    pool_->run(stretches.size(), [&](std::size_t k) {
      const std::uint16_t leaf = static_cast<std::uint16_t>(stretches[k].leaf);
      for (std::size_t i = stretches[k].begin; i < stretches[k].end; ++i) leaf_of_row[rows_[i]] = leaf;
    });
  }

  const std::vector<GrowerNode>& nodes() const { return nodes_; }
  const BinnedView& data() const { return data_; }
  const Extremes& extremes() const { return extremes_; }  // of the tree that grows
  double gradient_unit() const { return gradient_unit_; }
  double hessian_unit() const { return hessian_unit_; }
  std::size_t n_built() const { return pairs_.size(); }
  static constexpr std::size_t kSums = 3;  // gradient, hessian, magnitude of gradients

 private:
  static constexpr std::size_t kParallelUpdates = 40'000;  // below, waking a thread costs more than it gives
  static constexpr std::size_t kEntryUpdates = 4;          // that cost as much as one entry of a histogram, all told
  static constexpr std::size_t kParallelRows = 8192;
  static constexpr std::size_t kChunk = 4096;        // documents of a task that goes through all of them
  static constexpr std::size_t kPiece = 65'536;      // documents that a packed sum has room for, on average
  static constexpr std::size_t kRunRows = 8192;      // documents that are worth a histogram of their own
  static constexpr std::size_t kTasksPerThread = 6;  // so that all end at about the same time
  static constexpr std::int64_t kGradientLimit = 2147483646, kHessianLimit = 4294967294;

  std::size_t n_bins(std::size_t f) const { return static_cast<std::size_t>(data_.n_values[f]) + 1; }
  static std::size_t chunks_of(std::size_t n) { return (n + kChunk - 1) / kChunk; }

  // What is half done must not be gone on from: there is no tree until the next start.
  template <class Work>
  auto whole(const Work& work) -> decltype(work()) {
    try {
      return work();
    } catch (const Interrupted&) {
      nodes_.clear();
      pairs_.clear();
      undecided_.clear();
      throw;
    }
  }

  // ---- units

  // A power of two that `largest` is at most 2^bits times.
  static double unit_below(double largest, int bits) {
    if (!(largest > 0.0)) return 1.0;
    int exponent = 0;
    std::frexp(largest, &exponent);  // largest < 2^exponent
    return std::ldexp(1.0, std::max(exponent - bits, -1000));
  }
  static double mass_unit(double largest) { return unit_below(largest, 30); }

  // The smallest power of two by which the sum over an average piece stays within the limit, and every document fits.
  static double unit_for(std::int64_t mass, std::int64_t n_docs, double largest, std::int64_t limit, int bits) {
    if (!(largest > 0.0) || n_docs == 0) return 1.0;
    const double n = static_cast<double>(n_docs), in_piece = std::min(n, static_cast<double>(kPiece));
    const double total = (static_cast<double>(mass) + n) * mass_unit(largest);  // no less than the sum
    int exponent = 0;
    std::frexp(total * (in_piece / n) / (static_cast<double>(limit) - in_piece), &exponent);
    return std::max(std::ldexp(1.0, std::max(exponent, -1000)), unit_below(largest, bits));
  }

  static bool fits(const NodeSums& sums) { return sums.magnitude <= kGradientLimit && sums.hessian <= kHessianLimit; }

  // ---- nodes

  bool may_split(const GrowerNode& node) const { return node.n_docs >= 2 * std::int64_t{rules_.min_docs}; }

  // The two children of a node while their histograms come in; for the root, both are the root itself.
  struct Pair {
    std::size_t parent = 0, smaller = 0, larger = 0;
    bool small_goes_on = false, large_goes_on = false;
    std::vector<std::uint8_t> small_features, large_features;
    bool goes_on() const { return small_goes_on || large_goes_on; }
  };

  Pair root_pair() {
    Pair pair;
    pair.small_goes_on = may_split(nodes_[0]);
    if (pair.small_goes_on) nodes_[0].histogram = take_slot();
    prepare(nodes_[0]);
    pair.small_features = features_;
    keep_to_groups(nodes_[0], pair.small_features);
    return pair;
  }

  Pair pair_of(std::size_t number, std::int64_t n_left, bool want_splits, const std::uint8_t* child_features) {
    Pair pair;
    GrowerNode& parent = nodes_[number];
    const std::size_t left = parent.first_child, right = left + 1;
    nodes_[left].n_docs = n_left;
    nodes_[right].n_docs = parent.n_docs - n_left;
    pair.parent = number;
    const bool left_is_smaller = 2 * n_left <= parent.n_docs;
    pair.smaller = left_is_smaller ? left : right;
    pair.larger = left_is_smaller ? right : left;
    pair.small_goes_on = want_splits && may_split(nodes_[pair.smaller]);
    pair.large_goes_on = want_splits && may_split(nodes_[pair.larger]);
    if (!pair.goes_on()) return pair;
    // The larger child takes over the parent's histogram: parent minus smaller, in place.
    nodes_[pair.larger].histogram = parent.histogram;
    parent.histogram = -1;
    if (pair.small_goes_on) nodes_[pair.smaller].histogram = take_slot();
    prepare(nodes_[pair.smaller]);
    prepare(nodes_[pair.larger]);
    pair.small_features = pair.large_features = features_;
    if (child_features != nullptr) {
      auto& of_left = left_is_smaller ? pair.small_features : pair.large_features;
      auto& of_right = left_is_smaller ? pair.large_features : pair.small_features;
      of_left.assign(child_features, child_features + data_.n_features);
      of_right.assign(child_features + data_.n_features, child_features + 2 * data_.n_features);
    }
    if (!groups_.empty()) {
      pass_groups_on(parent, nodes_[left], nodes_[right]);
      keep_to_groups(nodes_[pair.smaller], pair.small_features);
      keep_to_groups(nodes_[pair.larger], pair.large_features);
    }
    return pair;
  }

  void prepare(GrowerNode& node) const {
    node.found.splits.assign(data_.n_features, {-std::numeric_limits<double>::infinity(), -1, false, 0.0});
    node.found.checked.assign(data_.n_features, 0);
    if (!categorical_.empty()) node.found.left_bins.resize(data_.n_features);
  }

  // Children may use the features of those groups that have all features of their path, the parent's among them.
  void pass_groups_on(const GrowerNode& parent, GrowerNode& left, GrowerNode& right) const {
    left.groups = parent.groups;
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      left.groups[k] &= groups_[k][static_cast<std::size_t>(parent.feature)];
    }
    right.groups = left.groups;
  }
  void keep_to_groups(const GrowerNode& node, std::vector<std::uint8_t>& features) const {
    if (groups_.empty()) return;
    for (std::size_t f = 0; f < features.size(); ++f) {
      std::uint8_t in_one = 0;
      for (std::size_t k = 0; k < groups_.size(); ++k) in_one |= node.groups[k] & groups_[k][f];
      features[f] &= in_one;
    }
  }

  // Values of leaves below the children stay between the parent's bounds; if the parent's feature has a direction, the
  // middle between the children's values parts them.
  void pass_bounds_on(const GrowerNode& parent, GrowerNode& left, GrowerNode& right) const {
    for (GrowerNode* child : {&left, &right}) {
      child->lower = parent.lower;
      child->upper = parent.upper;
    }
    const std::int8_t direction = directions_[static_cast<std::size_t>(parent.feature)];
    if (direction == 0) return;
    const double middle = 0.5 * (value_of(left) + value_of(right));
    (direction > 0 ? left : right).upper = middle;
    (direction > 0 ? right : left).lower = middle;
  }
  double value_of(const GrowerNode& node) const {
    const double hessian = static_cast<double>(node.sums.hessian) * hessian_unit_ + rules_.l2;
    const double value = static_cast<double>(node.sums.gradient) * gradient_unit_ / hessian;
    return std::min(std::max(value, node.lower), node.upper);
  }

  void add_up(const Pair& pair, const NodeSums& of_smaller) {
    const NodeSums& parent = nodes_[pair.parent].sums;
    nodes_[pair.smaller].sums = of_smaller;
    nodes_[pair.larger].sums = {parent.gradient - of_smaller.gradient, parent.hessian - of_smaller.hessian,
                                parent.magnitude - of_smaller.magnitude};
    if (directions_.empty()) return;
    const std::size_t left = std::min(pair.smaller, pair.larger);
    pass_bounds_on(nodes_[pair.parent], nodes_[left], nodes_[left + 1]);
  }

  void close(std::size_t number, const Pair& pair) {
    if (nodes_[number].first_child != 0) give_back(nodes_[number]);
    for (const std::size_t child : {pair.smaller, pair.larger}) give_up(nodes_[child]);
  }

  // A node whose split is chosen: room is given back if it will never be split, and if costs cannot change any more.
  void give_up(GrowerNode& node) {
    if (node.feature < 0 && !may_gain(node)) give_back(node);
    if (costs_.empty()) node.found = {};
  }
  // Whether some split gains if costs are left out.
  bool may_gain(const GrowerNode& node) const {
    if (costs_.empty()) return false;
    for (const FeatureSplit& split : node.found.splits) {
      if (split.gain > rules_.min_gain) return true;
    }
    return false;
  }
  // Leaves that may still be split: whose splits of all features are known.
  std::vector<std::size_t> open_leaves() const {
    std::vector<std::size_t> found;
    for (std::size_t number = 0; number < nodes_.size(); ++number) {
      if (nodes_[number].first_child == 0 && nodes_[number].histogram >= 0) found.push_back(number);
    }
    return found;
  }

  std::int32_t take_slot() {
    if (!free_slots_.empty()) {
      const std::int32_t number = free_slots_.back();
      free_slots_.pop_back();
      return number;
    }
    if (n_slots_used_ == slots_.size()) {
      slots_.emplace_back(2 * group_offsets_.back());
    }
    return static_cast<std::int32_t>(n_slots_used_++);
  }
  void give_back(GrowerNode& node) {
    node.found = {};
    if (node.histogram < 0) return;
    free_slots_.push_back(node.histogram);
    node.histogram = -1;
  }
  // The histograms of a node that are kept: group by group, packed if all sums of the node fit, or else in doubles,
  // gradients before hessians.
  double* wide_slot(const GrowerNode& node, std::size_t group) {
    return slots_[static_cast<std::size_t>(node.histogram)].data() + 2 * group_offsets_[group];
  }
  std::int64_t* packed_slot(const GrowerNode& node, std::size_t group) {
    return reinterpret_cast<std::int64_t*>(wide_slot(node, group));
  }
  OctetSums kept_sums(const GrowerNode& node, std::size_t octet) {
    const std::size_t group = octet / 2, at = octet % 2 * kOctet;
    if (fits(node.sums)) return {packed_slot(node, group) + at, nullptr, nullptr};
    const double* gradient = wide_slot(node, group) + at;
    return {nullptr, gradient, gradient + entries_of(group)};
  }
  // Where packed histograms of a node are kept; null where they are not, or do not fit.
  const GrowerNode* place_of(const GrowerNode& node, bool goes_on) const {
    return goes_on && fits(node.sums) ? &node : nullptr;
  }

  // ---- histograms

  // Histograms of one group of features, side by side: packed, or in doubles.
  struct GroupSums {
    bool is_packed;
    alignas(64) std::int64_t packed[kGroup * kBins];  // small enough to stay in the first-level cache
    alignas(64) double gradient[kGroup * kBins];
    alignas(64) double hessian[kGroup * kBins];
    OctetSums octet(std::size_t number) const {
      const std::size_t at = number % 2 * kOctet;
      if (is_packed) return {packed + at, nullptr, nullptr};
      return {nullptr, gradient + at, hessian + at};
    }
  };
  struct WideSum {
    double gradient, hessian;
  };
  static WideSum wide_sum(const OctetSums& sums, std::size_t at) {
    if (sums.packed == nullptr) return {sums.gradient[at], sums.hessian[at]};
    const std::int64_t sum = sums.packed[at];
    return {static_cast<double>(sum >> 32), static_cast<double>(sum & 0xffffffff)};
  }

  void describe_octets() {
    group_offsets_.assign(1, 0);
    octets_.assign((data_.n_features + kOctet - 1) / kOctet, Octet{});
    for (std::size_t o = 0; o < octets_.size(); ++o) {
      for_features(o, [&](std::size_t f, std::size_t k) {
        octets_[o].n_values[k] = data_.n_values[f];
        octets_[o].has_missing[k] = data_.has_missing[f] != 0;
        octets_[o].n_bins = std::max(octets_[o].n_bins, n_bins(f));
        octets_[o].may_miss |= data_.has_missing[f] != 0;
      });
    }
    for (std::size_t g = 0; g < data_.n_groups(); ++g) {
      std::size_t most = octets_[2 * g].n_bins;
      if (2 * g + 1 < octets_.size()) most = std::max(most, octets_[2 * g + 1].n_bins);
      group_offsets_.push_back(group_offsets_.back() + most * kGroup);
    }
  }
  std::size_t entries_of(std::size_t group) const { return group_offsets_[group + 1] - group_offsets_[group]; }
  // use(f, k) for every feature of an octet, the k-th of it.
  template <class Use>
  void for_features(std::size_t octet, const Use& use) const {
    for (std::size_t f = octet * kOctet; f < std::min(data_.n_features, (octet + 1) * kOctet); ++f) {
      use(f, f % kOctet);
    }
  }
  void clear(GroupSums& group, std::size_t octet) const {
    const std::size_t n = entries_of(octet / 2);
    if (group.is_packed) {
      std::memset(group.packed, 0, n * sizeof *group.packed);
    } else {
      std::memset(group.gradient, 0, n * sizeof *group.gradient);
      std::memset(group.hessian, 0, n * sizeof *group.hessian);
    }
  }

  // Gradients and hessians of the documents of a node, side by side, and their sums chunk by chunk.
  struct Gathered {
    const std::int64_t* gh;
    NodeSums sums;
  };
  Gathered gather(const GrowerNode& node) {
    const std::size_t n = node.end - node.begin, n_chunks = chunks_of(n);
    const bool in_place = has_all_rows_ && n == rows_.size();  // the rows in their own order
    if (!in_place) scratch(n);
    chunk_sums_.resize(n_chunks);
    std::int64_t* gathered = reinterpret_cast<std::int64_t*>(scratch_.data());
    pool_run(n >= kParallelRows, n_chunks, [&](std::size_t c) {
      const std::size_t begin = c * kChunk, size = std::min(kChunk, n - begin);
      chunk_sums_[c] = kernels().gather_gradients(gh_.data(), rows_.data() + node.begin + begin, size,
                                                  in_place ? nullptr : gathered + begin);
    });
    Gathered found{in_place ? gh_.data() : gathered, {}};
    for (const NodeSums& sums : chunk_sums_) {
      found.sums.gradient += sums.gradient;
      found.sums.hessian += sums.hessian;
      found.sums.magnitude += sums.magnitude;
    }
    return found;
  }

  // Histograms of a node's documents: take(octet, sums) once per octet of features, on any thread. If `to` is not null,
  // packed ones are made where those of that node are kept.
  template <class Take>
  void histogram(const GrowerNode& node, const Gathered& gathered, const GrowerNode* to, const Take& take) {
    const std::size_t n = node.end - node.begin, n_groups = data_.n_groups(), threads = pool_->size();
    std::size_t n_runs = (kTasksPerThread * threads + n_groups - 1) / n_groups;
    n_runs = threads == 1 ? 1 : std::max<std::size_t>(1, std::min(n_runs, n / kRunRows));
    if (n_runs == 1) {
      const bool alone = n * data_.n_features + kEntryUpdates * group_offsets_.back() < kParallelUpdates;
      pool_run(!alone, n_groups, [&](std::size_t g) {
        GroupSums group;
        std::int64_t* const packed = to != nullptr && fits(gathered.sums) ? packed_slot(*to, g) : group.packed;
        accumulate(g, node, gathered, 0, n, group, packed);
        for (std::size_t octet = 2 * g; octet < std::min(octets_.size(), 2 * g + 2); ++octet) {
          OctetSums sums = group.octet(octet);
          if (group.is_packed) sums.packed = packed + octet % 2 * kOctet;
          take(octet, sums);
        }
      });
      return;
    }
    if (partials_.size() < n_runs * n_groups) partials_.resize(n_runs * n_groups);
    for (auto& partial : partials_) {
      if (!partial) partial = std::make_unique<GroupSums>();
    }
    const std::size_t n_chunks = chunks_of(n);
    pool_->run(n_runs * n_groups, [&](std::size_t task) {
      const std::size_t g = task % n_groups, run = task / n_groups;
      GroupSums& group = *partials_[task];
      accumulate(g, node, gathered, run * n_chunks / n_runs * kChunk,
                 std::min(n, (run + 1) * n_chunks / n_runs * kChunk), group, group.packed);
    });
    run_octets([&](std::size_t octet) {
      const std::size_t g = octet / 2, at = octet % 2 * kOctet, size = octets_[octet].n_bins;
      GroupSums& total = *partials_[g];
      for (std::size_t run = 1; run < n_runs; ++run) {
        const GroupSums& part = *partials_[run * n_groups + g];
        if (total.is_packed) {
          kernels().add_packed(total.packed + at, part.packed + at, size);
        } else {
          kernels().add_wide(total.gradient + at, part.gradient + at, size);
          kernels().add_wide(total.hessian + at, part.hessian + at, size);
        }
      }
      take(octet, total.octet(octet));
    });
  }

  // Histograms of one group of features over some of a node's documents; `begin` is the first of a chunk. Packed ones
  // are made in `packed`.
  void accumulate(std::size_t g, const GrowerNode& node, const Gathered& gathered, std::size_t begin, std::size_t end,
                  GroupSums& group, std::int64_t* packed) const {
    const std::size_t n_entries = entries_of(g);
    const bool half = 2 * g + 1 == octets_.size();
    const std::uint32_t* rows = rows_.data() + node.begin;
    group.is_packed = fits(gathered.sums);
    if (group.is_packed) {
      std::memset(packed, 0, n_entries * sizeof *packed);
    } else {
      clear(group, 2 * g);
    }
    while (begin < end) {
      const std::size_t piece_end = end_of_piece(gathered, begin, end);
      if (!group.is_packed) std::memset(packed, 0, n_entries * sizeof *packed);
      constexpr std::size_t kLook = 131'072;  // documents: a few milliseconds
      for (std::size_t from = begin; from < piece_end; from += kLook) {
        if (from != 0) check_interruption();
        kernels().accumulate(data_.group(g), rows + from, std::min(kLook, piece_end - from), gathered.gh + from, half,
                             packed);
      }
      if (!group.is_packed) kernels().widen(packed, n_entries, group.gradient, group.hessian);
      begin = piece_end;
    }
  }

  // As far as packed sums from `begin` on are sure to fit: whole chunks, or single documents where a chunk is too much.
  std::size_t end_of_piece(const Gathered& gathered, std::size_t begin, std::size_t end) const {
    if (fits(gathered.sums)) return end;
    std::int64_t magnitude = 0, hessian = 0;
    while (begin < end) {
      if (begin % kChunk == 0) {
        const NodeSums& chunk = chunk_sums_[begin / kChunk];
        if (fits({0, hessian + chunk.hessian, magnitude + chunk.magnitude})) {
          magnitude += chunk.magnitude;
          hessian += chunk.hessian;
          begin = std::min(end, begin + kChunk);
          continue;
        }
        if (magnitude > 0 || hessian > 0) return begin;
      }
      const std::int64_t value = gathered.gh[begin];
      hessian += static_cast<std::uint32_t>(value);
      magnitude += std::abs(static_cast<std::int64_t>(value >> 32));
      if (!fits({0, hessian, magnitude})) return begin;
      ++begin;
    }
    return end;
  }

  // The histograms of an octet of features of the smaller child come in: they are kept, and the larger child's are the
  // rest. Both are searched.
  void receive(Pair& pair, std::size_t octet, const OctetSums& sums) {
    if (pair.small_goes_on) {
      GrowerNode& small = nodes_[pair.smaller];
      if (sums.packed == nullptr || sums.packed != kept_sums(small, octet).packed) keep(small, octet, sums);
      search(small, octet, pair.small_features);
    }
    if (pair.large_goes_on) {
      GrowerNode& large = nodes_[pair.larger];
      take_away(nodes_[pair.parent], large, octet, sums);
      search(large, octet, pair.large_features);
    }
  }

  // Packed sums of a node are as many as fit; doubles hold all.
  void keep(const GrowerNode& node, std::size_t octet, const OctetSums& sums) {
    const std::size_t group = octet / 2, place = octet % 2 * kOctet, n = octets_[octet].n_bins;
    if (!fits(node.sums)) {
      keep_wide(wide_slot(node, group) + place, entries_of(group), n, sums);
    } else {
      keep_packed(packed_slot(node, group) + place, n, sums);
    }
  }
  static void keep_wide(double* gradient, std::size_t to_hessian, std::size_t n_bins, const OctetSums& sums) {
    for (std::size_t b = 0; b < n_bins; ++b) {
      for (std::size_t k = 0; k < kOctet; ++k) {
        const WideSum sum = wide_sum(sums, b * kGroup + k);
        gradient[b * kGroup + k] = sum.gradient;
        gradient[b * kGroup + k + to_hessian] = sum.hessian;
      }
    }
  }
  // The sums may be where the packed ones are to be.
  static void keep_packed(std::int64_t* to, std::size_t n_bins, const OctetSums& sums) {
    for (std::size_t b = 0; b < n_bins; ++b, to += kGroup) {
      std::int64_t row[kOctet];
      for (std::size_t k = 0; k < kOctet; ++k) {
        if (sums.packed != nullptr) {
          row[k] = sums.packed[b * kGroup + k];
          continue;
        }
        const std::int64_t gradient = static_cast<std::int64_t>(sums.gradient[b * kGroup + k]);
        row[k] = static_cast<std::int64_t>(static_cast<std::uint64_t>(gradient) << 32) +
                 static_cast<std::int64_t>(sums.hessian[b * kGroup + k]);
      }
      std::memcpy(to, row, sizeof row);
    }
  }
  // The larger child, which has taken over the parent's histograms, gets what the smaller one leaves of them.
  void take_away(const GrowerNode& parent, const GrowerNode& large, std::size_t octet, const OctetSums& sums) {
    const std::size_t group = octet / 2, place = octet % 2 * kOctet, n = octets_[octet].n_bins;
    if (fits(parent.sums)) {  // and so do those of the smaller child
      return kernels().subtract_packed(packed_slot(large, group) + place, sums.packed, n);
    }
    double* const gradient = wide_slot(large, group) + place;
    double* const hessian = gradient + entries_of(group);
    if (sums.packed == nullptr) {
      kernels().subtract_wide(gradient, sums.gradient, n);
      kernels().subtract_wide(hessian, sums.hessian, n);
    } else {
      for (std::size_t b = 0; b < n; ++b) {
        for (std::size_t k = 0; k < kOctet; ++k) {
          const WideSum sum = wide_sum(sums, b * kGroup + k);
          gradient[b * kGroup + k] -= sum.gradient;
          hessian[b * kGroup + k] -= sum.hessian;
        }
      }
    }
    if (fits(large.sums)) keep_packed(packed_slot(large, group) + place, n, {nullptr, gradient, hessian});
  }

  // ---- splits

  SplitRules split_rules() const {
    return {gradient_unit_, hessian_unit_, rules_.l2,
            rules_.hessian_is_count ? std::max(rules_.min_hessian, static_cast<double>(rules_.min_docs))
                                    : rules_.min_hessian,
            rules_.min_docs};
  }

  void search(GrowerNode& node, std::size_t octet, const std::vector<std::uint8_t>& features) {
    const SplitRules rules = split_rules();
    FeatureSplit found[kOctet];
    bool searched = false;
    for_features(octet, [&](std::size_t f, std::size_t k) {
      if (!features[f] || data_.n_values[f] + data_.has_missing[f] < 2) return;
      if (!is_plain(node, f) || !(rules.min_hessian > 0.0)) {
        node.found.splits[f] = best_split(node, f, nullptr);
        return;
      }
      if (!searched) kernels().best_splits(kept_sums(node, octet), octets_[octet], node.sums, rules, found);
      searched = true;
      node.found.splits[f] = found[k];
    });
  }
  // Whether splits of a feature are "bin <= b", and leaf values are not bounded.
  bool is_plain(const GrowerNode& node, std::size_t f) const {
    if (!categorical_.empty() && categorical_[f]) return false;
    return directions_.empty() || (directions_[f] == 0 && std::isinf(node.lower) && std::isinf(node.upper));
  }
  FeatureSplit best_split(GrowerNode& node, std::size_t f, const std::uint32_t* counts) {
    const OctetSums sums = kept_sums(node, f / kOctet);
    double gradient[kBins], hessian[kBins];
    for (std::size_t b = 0; b < n_bins(f); ++b) {
      const WideSum sum = wide_sum(sums, b * kGroup + f % kOctet);
      gradient[b] = sum.gradient;
      hessian[b] = sum.hessian;
    }
    const bool has_missing = data_.has_missing[f] != 0;
    if (!categorical_.empty() && categorical_[f]) {
      return best_set_split(gradient, hessian, counts, static_cast<std::size_t>(data_.n_values[f]), has_missing,
                            node.sums, node.n_docs, split_rules(), {node.lower, node.upper, 0.0}, category_rules_,
                            node.found.left_bins[f]);
    }
    if (is_plain(node, f)) {
      return kernels().best_split(gradient, hessian, counts, data_.n_values[f], has_missing, node.sums, split_rules());
    }
    const ValueBounds bounds{node.lower, node.upper, static_cast<double>(directions_[f])};
    return kernels().best_bounded_split(gradient, hessian, counts, data_.n_values[f], has_missing, node.sums,
                                        split_rules(), bounds);
  }

  // Take the best feature. Histograms hold no document counts: where a minimum is asked for and hessians do not show
  // that both sides have it, the best feature's documents must be counted and its split searched again (check), until
  // the best one has been checked. Returns the feature to be checked, or -1.
  std::int32_t choose(GrowerNode& node) {
    const FoundSplits& found = node.found;
    const auto worth = [&](std::size_t f) { return found.splits[f].gain - (costs_.empty() ? 0.0 : costs_[f]); };
    node.feature = -1;
    node.gain = -std::numeric_limits<double>::infinity();
    if (found.splits.empty()) return -1;
    std::size_t best = 0;
    for (std::size_t f = 1; f < found.splits.size(); ++f) {
      if (worth(f) > worth(best)) best = f;
    }
    if (!(worth(best) > rules_.min_gain)) return -1;
    const FeatureSplit& split = found.splits[best];
    const double right_hessian = static_cast<double>(node.sums.hessian) - split.left_hessian;
    const double enough =
        rules_.min_docs * (std::ceil(extremes_.hessian / hessian_unit_) + 1.0);  // for fewest documents
    const bool sure = rules_.min_docs <= 1 || rules_.hessian_is_count || found.checked[best] ||
                      std::min(split.left_hessian, right_hessian) >= enough;
    if (!sure) return static_cast<std::int32_t>(best);
    node.feature = static_cast<std::int32_t>(best);
    node.bin = split.bin;
    node.missing_left = split.missing_left;
    node.left_bins = categorical_.empty() ? std::vector<std::uint8_t>() : found.left_bins[best];
    node.gain = worth(best);
    return -1;
  }
  void check(GrowerNode& node, std::int32_t feature, const std::uint32_t* counts) {
    const std::size_t f = static_cast<std::size_t>(feature);
    node.found.splits[f] = best_split(node, f, counts);
    node.found.checked[f] = 1;
  }
  void choose_alone(std::size_t number, bool goes_on) {
    if (!goes_on) return;
    for (std::int32_t feature; (feature = choose(nodes_[number])) >= 0;) {
      check_interruption();
      if (has_documents(nodes_[number], static_cast<std::size_t>(feature))) {
        nodes_[number].found.checked[static_cast<std::size_t>(feature)] = 1;
        continue;
      }
      std::uint32_t counts[kBins];
      count(number, feature, counts);
      check(nodes_[number], feature, counts);
    }
  }

  // Whether both sides of the split found for a feature have enough documents: as many are looked at as it takes to see
  // that. Then counting all would lead to the same split, if only it is sure which bins that search would look at.
  bool has_documents(const GrowerNode& node, std::size_t f) {
    const FeatureSplit& split = node.found.splits[f];
    if (!is_plain(node, f) || !(rules_.min_hessian > 0.0)) return false;
    const std::int32_t missing = data_.has_missing[f] ? data_.n_values[f] : -1;
    if (missing >= 0) {
      const WideSum sum =
          wide_sum(kept_sums(node, f / kOctet), static_cast<std::size_t>(missing) * kGroup + f % kOctet);
      if (sum.gradient == 0.0 && sum.hessian == 0.0) return false;
    }
    const std::uint8_t* bins = data_.group(f / kGroup) + f % kGroup;
    std::uint32_t n_left = 0, n_right = 0;
    for (std::size_t i = node.begin; i < node.end; ++i) {
      const std::int32_t bin = bins[std::size_t{rows_[i]} * kGroup];
      const bool left = bin == missing ? split.missing_left : bin <= split.bin;
      n_left += left;
      n_right += !left;
      if (std::min(n_left, n_right) >= rules_.min_docs) return true;
    }
    return false;
  }

  // ---- documents

  // Stable partition of a node's documents: those that go left first, each side in its old order. Returns how many.
  std::size_t partition(const GrowerNode& node) {
    const std::size_t f = static_cast<std::size_t>(node.feature), n = node.end - node.begin;
    if (n == 0) return 0;  // all documents of the node are with other processes
    const std::uint8_t* bins = data_.group(f / kGroup) + f % kGroup;
    const Side side{node.bin, data_.has_missing[f] ? data_.n_values[f] : -1, node.missing_left};
    std::uint32_t* rows = rows_.data() + node.begin;
    const auto divide = [&](const std::uint32_t* from, std::size_t size, std::uint32_t* left, std::uint32_t* right) {
      return node.left_bins.empty() ? kernels().partition(bins, from, size, side, left, right)
                                    : partition_by_set(bins, from, size, node.left_bins, left, right);
    };
    const std::size_t n_chunks =
        n < kParallelRows ? 1 : std::min<std::size_t>(kTasksPerThread * pool_->size(), n / kChunk);
    constexpr std::size_t kRoom = kPartitionRoom;  // what a kernel may write behind the last document
    scratch((n + 2 * kRoom * n_chunks) / (n_chunks == 1 ? 2 : 1) + 1);
    std::uint32_t* buffer = reinterpret_cast<std::uint32_t*>(scratch_.data());
    if (n_chunks == 1) {  // left ones stay where they are, right ones come behind them
      const std::size_t n_left = divide(rows, n, rows, buffer);
      std::memcpy(rows + n_left, buffer, (n - n_left) * sizeof *rows);
      return n_left;
    }
    const auto chunk_begin = [&](std::size_t c) { return c * n / n_chunks; };
    const auto left_of = [&](std::size_t c) { return buffer + chunk_begin(c) + c * kRoom; };
    const auto right_of = [&](std::size_t c) { return buffer + n + kRoom * n_chunks + chunk_begin(c) + c * kRoom; };
    left_counts_.assign(n_chunks, 0);
    pool_->run(n_chunks, [&](std::size_t c) {
      left_counts_[c] = divide(rows + chunk_begin(c), chunk_begin(c + 1) - chunk_begin(c), left_of(c), right_of(c));
    });
    std::vector<std::size_t> before(n_chunks + 1, 0);
    for (std::size_t c = 0; c < n_chunks; ++c) before[c + 1] = before[c] + left_counts_[c];
    pool_->run(n_chunks, [&](std::size_t c) {
      const std::size_t n_left = left_counts_[c], n_right = chunk_begin(c + 1) - chunk_begin(c) - n_left;
      std::memcpy(rows + before[c], left_of(c), n_left * sizeof *rows);
      std::memcpy(rows + before[n_chunks] + chunk_begin(c) - before[c], right_of(c), n_right * sizeof *rows);
    });
    return before[n_chunks];
  }

  // Those whose bins are marked go left; as the kernel of plain splits.
  static std::size_t partition_by_set(const std::uint8_t* bins, const std::uint32_t* rows, std::size_t n,
                                      const std::vector<std::uint8_t>& left_bins, std::uint32_t* left,
                                      std::uint32_t* right) {
    std::size_t n_left = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t row = rows[i];
      left[n_left] = row;
      right[i - n_left] = row;
      n_left += left_bins[bins[std::size_t{row} * kGroup]];
    }
    return n_left;
  }

  // Documents of nodes in stretches of bounded length.
  struct Stretch {
    std::size_t leaf, begin, end;
  };
  std::vector<Stretch> stretches_of(const std::size_t* numbers, std::size_t n) const {
    constexpr std::size_t kLength = 32'768;
    std::vector<Stretch> stretches;
    for (std::size_t leaf = 0; leaf < n; ++leaf) {
      const GrowerNode& node = nodes_[numbers[leaf]];
      for (std::size_t begin = node.begin; begin < node.end; begin += kLength) {
        stretches.push_back({leaf, begin, std::min(node.end, begin + kLength)});
      }
    }
    return stretches;
  }

  // Room for n documents, eight bytes each: their gradients while a histogram is built, rows while they are divided.
  void scratch(std::size_t n) {
    if (scratch_.size() < n) scratch_.resize(n);
  }

  // ---- tasks

  template <class Task>
  void pool_run(bool together, std::size_t n_tasks, const Task& task) {
    if (together) {
      pool_->run(n_tasks, task);
    } else {
      for (std::size_t k = 0; k < n_tasks; ++k) task(k);
    }
  }
  template <class Task>
  void run_octets(const Task& task) {
    pool_run(data_.n_features * kBins >= 2 * kParallelUpdates / kGroup, octets_.size(), task);
  }

  BinnedView data_;
  std::shared_ptr<ThreadPool> pool_;  // the training's
  GrowerRules rules_;
  std::vector<std::int8_t> directions_;            // of every feature; empty: none has one
  std::vector<std::vector<std::uint8_t>> groups_;  // features that may be met on one path
  std::vector<double> costs_;                      // of every feature; empty: none has one
  std::vector<std::uint8_t> categorical_;          // marks of features of categories; empty: none is
  CategoryRules category_rules_;
  Extremes extremes_;
  double gradient_unit_ = 1.0, hessian_unit_ = 1.0;
  std::vector<std::size_t> bin_offsets_;    // where the entries of each feature start in what a group exchanges,
  std::vector<std::size_t> group_offsets_;  // and those of each group of features in a kept histogram
  std::vector<Octet> octets_;
  std::vector<std::uint8_t> features_;
  HugeVector<std::uint32_t> rows_;
  bool has_all_rows_ = false;
  HugeVector<std::int64_t> gh_;  // of every row: gradient and hessian, packed
  HugeVector<std::int64_t> scratch_;
  std::vector<NodeSums> chunk_sums_;
  std::vector<GrowerNode> nodes_;
  std::vector<Pair> pairs_;
  std::vector<std::size_t> undecided_;  // nodes whose splits are searched, and not chosen yet
  std::vector<AlignedVector<double>> slots_;
  std::vector<std::int32_t> free_slots_;
  std::size_t n_slots_used_ = 0;
  std::vector<std::unique_ptr<GroupSums>> partials_;
  std::vector<std::size_t> left_counts_;
};

}  // namespace rankwood
