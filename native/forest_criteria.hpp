// The criteria that full-depth trees are grown by, each in the two forms that forest_target.hpp speaks of. A criterion
// looks at one node at a time: `enter` adds up its documents, then its value, purity and splits can be asked for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "forest_target.hpp"
#include "packed_criteria.hpp"
#include "packed_search.hpp"
#include "running_search.hpp"
#include "split_search.hpp"

namespace rankwood {

// Documents of a sample, in the order of their places.
struct SampledDoc {
  std::uint32_t row;
  std::uint32_t times;
};

class PackedCriterion {
 public:
  static constexpr bool kRunning = false;  // whether splits can be drawn, or have three sides
  explicit PackedCriterion(const ForestTarget& target) : target_(target) {}

  void start(std::size_t n_docs) { search_.reserve(n_docs); }
  std::uint16_t payload(const SampledDoc& doc) const {
    const std::uint32_t weight = doc.times * static_cast<std::uint32_t>(target_.weight_of(doc.row));
    return static_cast<std::uint16_t>(weight << 8 | target_.grade_of(doc.row));
  }
  // A part of the documents gets new places: nothing to do, they carry what is needed with them.
  void move(const Docs&) {}
  void move_back() {}

 protected:
  const ForestTarget& target_;
  PackedSearch search_;
};

class PackedVariance : public PackedCriterion {
 public:
  PackedVariance(const ForestTarget& target, const LogTable&) : PackedCriterion(target) {}

  void enter(const Docs& docs) {
    weight_ = sum_ = squares_ = 0;
    lowest_ = 255;
    highest_ = 0;
    for (std::size_t i = 0; i < docs.n; ++i) {
      const std::uint32_t weight = docs.payload[i] >> 8, grade = docs.payload[i] & 0xffu;
      weight_ += weight;
      sum_ += weight * grade;
      squares_ += weight * grade * grade;
      lowest_ = std::min(lowest_, grade);
      highest_ = std::max(highest_, grade);
    }
  }
  bool pure() const { return lowest_ == highest_; }
  double weight() const { return static_cast<double>(weight_); }
  double value() const { return (target_.centre() * weight() + static_cast<double>(sum_)) / weight(); }
  double floor() const { return 0.0; }
  double ceiling() const {  // what two pure sides have, exactly
    const double sum = static_cast<double>(sum_);
    return weight() * static_cast<double>(squares_) - sum * sum;
  }
  double gain(double proxy) const { return proxy / weight(); }  // decrease of the sum of squares

  // Call try_features(search), where search(column, best) tries the splits of one feature.
  template <class TryFeatures>
  void search(const Docs& docs, std::uint32_t min_docs, const TryFeatures& try_features) {
    const VarianceSums stats(weight_, sum_, lowest_, highest_);
    search_.enter(stats, docs, min_docs);
    try_features(
        [&](const auto& column, FoundSplit& best) { return search_.search(stats, column, docs, min_docs, best); });
  }
  template <class Code>
  bool gains(const FoundSplit&, const Column<Code>&, const Docs&) const {
    return true;
  }

 private:
  std::uint64_t weight_ = 0, sum_ = 0, squares_ = 0;
  std::uint32_t lowest_ = 0, highest_ = 0;
};

class PackedEntropy : public PackedCriterion {
 public:
  PackedEntropy(const ForestTarget& target, const LogTable& logs) : PackedCriterion(target), logs_(logs) {}

  void enter(const Docs& docs) {
    std::fill(std::begin(counts_), std::end(counts_), 0u);
    for (std::size_t i = 0; i < docs.n; ++i) counts_[docs.payload[i] & 0xffu] += docs.payload[i] >> 8;
    weight_ = 0;
    parent_ = 0.0;
    n_present_ = 0;
    for (const std::uint32_t count : counts_) {
      weight_ += count;
      parent_ += logs_.at(count);
      n_present_ += count > 0;
    }
    parent_ -= logs_.at(weight_);
  }
  bool pure() const { return n_present_ == 1; }
  double weight() const { return weight_; }
  double value() const {
    double sum = 0.0;
    for (std::size_t k = 0; k < n_classes(); ++k) sum += counts_[k] * target_.classes()[k];
    return sum / weight();
  }
  double floor() const { return parent_; }
  double ceiling() const { return 0.0; }
  double gain(double proxy) const { return proxy - parent_; }  // bits, all documents together

  template <class TryFeatures>
  void search(const Docs& docs, std::uint32_t min_docs, const TryFeatures& try_features) {
    const auto with = [&](const auto& stats) {
      search_.enter(stats, docs, min_docs);
      try_features(
          [&](const auto& column, FoundSplit& best) { return search_.search(stats, column, docs, min_docs, best); });
    };
    if (weight_ >= 65'536) {
      with(EntropySums<kPackedClasses, 32>(counts_, logs_));
    } else if (n_classes() <= 2) {
      with(EntropySums<2, 16>(counts_, logs_));
    } else if (n_classes() <= 3) {
      with(EntropySums<3, 16>(counts_, logs_));
    } else if (n_classes() <= 5) {
      with(EntropySums<5, 16>(counts_, logs_));
    } else {
      with(EntropySums<kPackedClasses, 16>(counts_, logs_));
    }
  }

  // A gain so small may be rounding: does the left side have the classes in the very proportions of the node?
  template <class Code>
  bool gains(const FoundSplit& split, const Column<Code>& column, const Docs& docs) const {
    if (gain(split.proxy) > 1e-6 * weight()) return true;
    std::uint64_t left[kPackedClasses] = {}, left_weight = 0;
    for (std::size_t i = 0; i < docs.n; ++i) {
      const std::uint32_t code = column[docs.place[i]];
      const bool goes_left = code <= split.code || (split.missing_left && column.may_miss && code == column.missing);
      const std::uint32_t weight = goes_left ? docs.payload[i] >> 8 : 0;
      left[docs.payload[i] & 0xffu] += weight;
      left_weight += weight;
    }
    for (std::size_t k = 0; k < n_classes(); ++k) {
      if (left[k] * weight_ != counts_[k] * left_weight) return true;
    }
    return false;
  }

 private:
  std::size_t n_classes() const { return target_.classes().size(); }

  const LogTable& logs_;
  std::uint32_t counts_[kPackedClasses] = {}, weight_ = 0;
  std::size_t n_present_ = 0;
  double parent_ = 0.0;
};

class RunningCriterion {
 public:
  static constexpr bool kRunning = true;
  explicit RunningCriterion(const ForestTarget& target) : target_(target) {}

  void start(std::size_t n_docs) {
    search_.reserve(n_docs);
    all_.weight.clear();
    all_.label.clear();
    all_.grade.clear();
    data_ = &all_;
  }
  std::uint16_t payload(const SampledDoc& doc) {
    all_.weight.push_back(doc.times * target_.weight_of(doc.row));
    all_.label.push_back(target_.label_of(doc.row));
    if (target_.entropy()) all_.grade.push_back(target_.grade_of(doc.row));
    return 0;
  }
  // A part of the documents gets the places 0, 1, ...
  void move(const Docs& docs) {
    const std::size_t n = docs.n;
    part_.weight.resize(n);
    part_.label.resize(n);
    part_.grade.resize(target_.entropy() ? n : 0);
    for (std::size_t i = 0; i < docs.n; ++i) {
      const std::uint32_t place = docs.place[i];
      part_.weight[i] = all_.weight[place];
      part_.label[i] = all_.label[place];
      if (target_.entropy()) part_.grade[i] = all_.grade[place];
    }
    data_ = &part_;
  }
  void move_back() { data_ = &all_; }
  void split_in_three(bool wanted) { search_.split_in_three(wanted); }

  double weight() const { return weight_; }
  double value() const { return value_; }
  bool pure() const { return pure_; }

 protected:
  // Differences of this share of a node's impurity are rounding.
  static constexpr double kRounding = 1e-12;
  static constexpr double kNearly = 1e-9;  // short of two pure sides by this share: pure

  // Weight and mean label of a node; the label itself when it is the same for all.
  void add_up(const Docs& docs) {
    weight_ = 0.0;
    double sum = 0.0;
    const double first = data_->label[docs.place[0]];
    bool same = true;
    for (std::size_t i = 0; i < docs.n; ++i) {
      const double weight = data_->weight[docs.place[i]], label = data_->label[docs.place[i]];
      weight_ += weight;
      sum += weight * label;
      same = same && label == first;
    }
    value_ = same ? first : sum / weight_;
    pure_ = same;
  }

  const ForestTarget& target_;
  RunningSearch search_;
  RunningData all_, part_;
  const RunningData* data_ = &all_;
  double weight_ = 0.0, value_ = 0.0;
  bool pure_ = false;
};

class RunningVariance : public RunningCriterion {
 public:
  RunningVariance(const ForestTarget& target, const LogTable&) : RunningCriterion(target) {}

  void enter(const Docs& docs) {
    add_up(docs);
    totals_ = {0.0, 0.0, target_.centre()};
    squares_ = 0.0;
    for (std::size_t i = 0; i < docs.n; ++i) {
      const double weight = data_->weight[docs.place[i]], label = data_->label[docs.place[i]];
      totals_.weight += weight;
      totals_.sum += weight * (label - totals_.centre);
      squares_ += weight * (label - value_) * (label - value_);
    }
  }
  double floor() const { return kRounding * squares_ * weight_; }
  double ceiling() const { return (1.0 - kNearly) * weight_ * squares_; }
  double gain(double proxy) const { return proxy / weight_; }

  template <class TryFeatures>
  void search(const Docs& docs, std::uint32_t min_docs, const TryFeatures& try_features) {
    VarianceSide left(totals_, *data_);
    try_features(SideSearch<VarianceSide>{search_, left, docs, min_docs});
  }
  template <class Code>
  bool gains(const FoundSplit&, const Column<Code>&, const Docs&) const {
    return true;
  }

 private:
  VarianceSide::Totals totals_;
  double squares_ = 0.0;
};

class RunningEntropy : public RunningCriterion {
 public:
  RunningEntropy(const ForestTarget& target, const LogTable&) : RunningCriterion(target) {}

  void enter(const Docs& docs) {
    add_up(docs);
    totals_.weight = weight_;
    totals_.counts.assign(target_.classes().size(), 0.0);
    for (std::size_t i = 0; i < docs.n; ++i) {
      totals_.counts[data_->grade[docs.place[i]]] += data_->weight[docs.place[i]];
    }
    parent_ = -LogTable::compute(weight_);
    for (const double count : totals_.counts) parent_ += LogTable::compute(count);
  }
  double floor() const { return parent_ - kRounding * parent_; }  // the parent's is below 0
  double ceiling() const { return kNearly * parent_; }
  double gain(double proxy) const { return proxy - parent_; }

  template <class TryFeatures>
  void search(const Docs& docs, std::uint32_t min_docs, const TryFeatures& try_features) {
    EntropySide left(totals_, *data_);
    try_features(SideSearch<EntropySide>{search_, left, docs, min_docs});
  }
  template <class Code>
  bool gains(const FoundSplit&, const Column<Code>&, const Docs&) const {
    return true;
  }

 private:
  EntropySide::Totals totals_;
  double parent_ = 0.0;
};

}  // namespace rankwood
