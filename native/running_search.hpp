// The best split of one feature in one node, for labels and weights of any kind: documents are sorted by code and added
// up one by one, in double precision.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "radix_sort.hpp"
#include "split_search.hpp"

namespace rankwood {

// What is known of the documents of a tile, by place.
struct RunningData {
  std::vector<double> weight, label;
  std::vector<std::uint8_t> grade;  // class, where there are classes
};

// The left side of a split while documents join it. `Totals` is of the node.
class VarianceSide {
 public:
  struct Totals {
    double weight = 0.0, sum = 0.0;
    double centre = 0.0;  // labels are added up less this: smaller numbers are rounded less
  };
  VarianceSide(const Totals& totals, const RunningData& data) : totals_(totals), data_(data) {}
  void clear() { weight_ = sum_ = 0.0; }
  void add(std::uint32_t place) {
    weight_ += data_.weight[place];
    sum_ += data_.weight[place] * (data_.label[place] - totals_.centre);
  }
  double proxy() const {  // as VarianceSums has it
    const double d = totals_.weight * sum_ - totals_.sum * weight_;
    return d * d / (weight_ * (totals_.weight - weight_));
  }
  // With missing values on a third side: what setting them apart gains, and what dividing the others gains.
  double proxy(const VarianceSide& missing) const {
    const double weight = totals_.weight - missing.weight_, sum = totals_.sum - missing.sum_;
    const double d = weight * sum_ - sum * weight_;
    return missing.proxy() + d * d / (weight_ * (weight - weight_)) * (totals_.weight / weight);
  }

 private:
  const Totals& totals_;
  const RunningData& data_;
  double weight_ = 0.0, sum_ = 0.0;
};

class EntropySide {
 public:
  struct Totals {
    double weight = 0.0;
    std::vector<double> counts;
  };
  EntropySide(const Totals& totals, const RunningData& data)
      : totals_(totals), data_(data), counts_(totals.counts.size()) {}
  void clear() {
    weight_ = 0.0;
    counts_.assign(counts_.size(), 0.0);
  }
  void add(std::uint32_t place) {
    weight_ += data_.weight[place];
    counts_[data_.grade[place]] += data_.weight[place];
  }
  double proxy() const {  // as EntropySums has it
    double value = 0.0;
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      value += LogTable::compute(counts_[k]) + LogTable::compute(totals_.counts[k] - counts_[k]);
    }
    return value - (LogTable::compute(weight_) + LogTable::compute(totals_.weight - weight_));
  }
  double proxy(const EntropySide& missing) const {
    const double weight = totals_.weight - missing.weight_;
    double value = 0.0;
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      value += LogTable::compute(counts_[k]) + LogTable::compute(missing.counts_[k]) +
               LogTable::compute(totals_.counts[k] - missing.counts_[k] - counts_[k]);
    }
    return value -
           (LogTable::compute(weight_) + LogTable::compute(missing.weight_) + LogTable::compute(weight - weight_));
  }

 private:
  const Totals& totals_;
  const RunningData& data_;
  std::vector<double> counts_;
  double weight_ = 0.0;
};

class RunningSearch {
 public:
  void reserve(std::size_t n) {
    if (n <= keys_.size()) return;
    keys_.resize(n);
    sorted_.resize(n);
  }

  // Try all splits of a feature. False: its value is the same for all documents of the node.
  template <class Side, class Code>
  bool search(Side& left, const Column<Code>& column, const Docs& docs, std::uint32_t min_docs, FoundSplit& best) {
    const std::size_t n = docs.n;
    const std::uint32_t first = column[docs.place[0]];
    std::uint32_t differing = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t code = column[docs.place[i]];
      keys_[i] = static_cast<std::uint64_t>(code) << 32 | docs.place[i];  // places ascend: equal codes keep their order
      differing |= code ^ first;
    }
    if (differing == 0) return false;
    const std::uint64_t* key = keys_.data();
    if (n <= 24) {
      insertion_sort(keys_.data(), n);
    } else {
      key = radix_sort(keys_.data(), sorted_.data(), n, 32, std::bit_width(differing));
    }
    std::size_t n_values = n;
    while (column.may_miss && key[n_values - 1] >> 32 == column.missing) --n_values;
    const bool missing = n_values < n;
    if (missing && in_three_) {
      search_in_three(left, column.feature, key, n_values, n, min_docs, best);
      return true;
    }
    for (int pass = 0; pass < (missing ? 2 : 1); ++pass) {
      const bool missing_left = pass == 1;
      left.clear();
      for (std::size_t i = n_values; missing_left && i < n; ++i) left.add(static_cast<std::uint32_t>(key[i]));
      const std::size_t end =
          missing && !missing_left ? n_values : n_values - 1;  // all values may be left of the missing
      for (std::size_t i = 0; i < end; ++i) {
        left.add(static_cast<std::uint32_t>(key[i]));
        if (i + 1 < n_values && key[i] >> 32 == key[i + 1] >> 32) continue;
        const std::size_t n_left = i + 1 + (missing_left ? n - n_values : 0);
        if (n_left < min_docs || n - n_left < min_docs) continue;
        const double proxy = left.proxy();
        if (proxy > best.proxy) {
          best = {proxy, column.feature, static_cast<std::uint32_t>(key[i] >> 32), missing_left, missing};
        }
      }
    }
    return true;
  }

  // Try one split of a feature, its code and threshold given; missing values first on the right.
  template <class Side, class Code>
  void try_one(Side& left, const Column<Code>& column, const Docs& docs, std::uint32_t min_docs, FoundSplit given,
               FoundSplit& best) {
    for (int pass = 0; pass < (given.has_missing ? 2 : 1); ++pass) {
      const std::uint32_t also_left = pass == 1 ? column.missing : given.code;
      std::size_t n_left = 0;
      left.clear();
      for (std::size_t i = 0; i < docs.n; ++i) {
        const std::uint32_t code = column[docs.place[i]];
        if (code > given.code && code != also_left) continue;
        left.add(docs.place[i]);
        ++n_left;
      }
      if (n_left < min_docs || docs.n - n_left < min_docs) continue;
      given.proxy = left.proxy();
      given.missing_left = pass == 1;
      if (given.proxy > best.proxy) best = given;
    }
  }

  void split_in_three(bool wanted) { in_three_ = wanted; }

 private:
  // Splits of sorted documents whose last ones miss the value: these have a side of their own, and all others may be
  // on one side.
  template <class Side>
  void search_in_three(Side& left, std::int32_t feature, const std::uint64_t* key, std::size_t n_values, std::size_t n,
                       std::uint32_t min_docs, FoundSplit& best) {
    if (n - n_values < min_docs) return;
    Side missing = left;
    missing.clear();
    for (std::size_t i = n_values; i < n; ++i) missing.add(static_cast<std::uint32_t>(key[i]));
    left.clear();
    for (std::size_t i = 0; i < n_values; ++i) {
      left.add(static_cast<std::uint32_t>(key[i]));
      const bool all = i + 1 == n_values;
      if (!all && key[i] >> 32 == key[i + 1] >> 32) continue;
      if (i + 1 < min_docs || (!all && n_values - (i + 1) < min_docs)) continue;
      const double proxy = all ? left.proxy() : left.proxy(missing);
      if (proxy > best.proxy) {
        best = {proxy, feature, static_cast<std::uint32_t>(key[i] >> 32), false, true, !all};
      }
    }
  }

  bool in_three_ = false;
  std::vector<std::uint64_t> keys_, sorted_;
};

// The search of one node, as a criterion hands it on.
template <class Side>
struct SideSearch {
  RunningSearch& search;
  Side& left;
  const Docs& docs;
  std::uint32_t min_docs;

  template <class Code>
  bool operator()(const Column<Code>& column, FoundSplit& best) const {
    return search.search(left, column, docs, min_docs, best);
  }
  template <class Code>
  void at(const Column<Code>& column, const FoundSplit& given, FoundSplit& best) const {
    search.try_one(left, column, docs, min_docs, given, best);
  }
};

}  // namespace rankwood
