// Ranking measures of one query, from the labels of its documents in rank order.
//
// Which of the many conventions a measure follows is part of its specification; nothing here has an opinion.
// evaluation/conventions.py holds the presets. Sums run in rank order, so that a perfect ranking's DCG has the very
// bits of the ideal DCG.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rankwood {

enum class MeasureKind { ndcg, dcg, err, ap, rr, precision, recall, rbp };
enum class GainKind { exponential, linear, table };
enum class DiscountKind { log2, letor };

struct MeasureSpec {
  MeasureKind kind = MeasureKind::ndcg;
  std::size_t cutoff = 0;  // 0: the whole list
  GainKind gain = GainKind::exponential;
  std::vector<double> gains;  // of the grades 0, 1, ..., for GainKind::table
  DiscountKind discount = DiscountKind::log2;
  double relevant = 1.0;           // least label of a relevant document (AP, RR, P, R, RBP)
  double max_grade = 4.0;          // ERR
  double persistence = 0.8;        // RBP
  double empty = 0.0;              // value of a query without relevant documents; NaN: left out
  bool short_counts_zero = false;  // (n)DCG@k of fewer than k documents is 0
  bool ap_at_most_cutoff = false;  // AP@k divides by min(R, k), not by R, the number of relevant documents
  bool precision_of_list = false;  // P@k divides by min(k, n), not by k

  bool uses_gain() const { return kind == MeasureKind::ndcg || kind == MeasureKind::dcg || kind == MeasureKind::err; }
  std::size_t depth(std::size_t n) const { return cutoff == 0 ? n : std::min(cutoff, n); }
};

// Why a measure cannot be computed; the caller knows the row's number and the measure's name.
enum class MeasureProblem { nan_score, label_not_finite, gain_overflow, no_gain, above_max_grade };
struct MeasureFailure {
  MeasureProblem problem;
  std::size_t measure;
  std::size_t doc;  // in the query; after evaluate_queries the row
};

// What a label is worth. Negative labels (spam) are worth nothing.
class Gain {
 public:
  explicit Gain(const MeasureSpec& spec) : kind_(spec.gain), table_(spec.gains.data()) {}

  // For a table the label must be negative or one of its grades. Zero takes the same path as any whole label:
  // whether a document is relevant is what a branch cannot predict.
  double operator()(double label) const {
    if (!(label >= 0.0)) return 0.0;
    if (kind_ == GainKind::linear) return label;
    if (kind_ == GainKind::table) return table_[static_cast<std::size_t>(label)];
    if (label < 64.0) {
      const std::size_t whole = static_cast<std::size_t>(label);
      if (static_cast<double>(whole) == label) return whole_gains[whole];
    }
    return std::exp2(label) - 1.0;
  }

 private:
  static constexpr std::array<double, 64> whole_gains = [] {
    std::array<double, 64> gains{};
    double power = 1.0;
    for (double& gain : gains) {
      gain = power - 1.0;
      power *= 2.0;
    }
    return gains;
  }();

  GainKind kind_;
  const double* table_;
};

// discount[r] of the document at place r (from 0): 1 / log2(r + 2), or LETOR's 1, 1, 1 / log2(3), 1 / log2(4), ...
inline std::vector<double> make_discounts(DiscountKind kind, std::size_t depth) {
  std::vector<double> discounts(depth);
  for (std::size_t r = 0; r < depth; ++r) {
    const double rank = static_cast<double>(r + 1);
    discounts[r] = 1.0 / std::log2(kind == DiscountKind::log2 ? rank + 1.0 : std::max(rank, 2.0));
  }
  return discounts;
}

// The measures below take the labels of the first `depth` documents in rank order.

inline double dcg(const double* labels, std::size_t depth, const Gain& gain, const double* discount) {
  double sum = 0.0;
  for (std::size_t r = 0; r < depth; ++r) sum += gain(labels[r]) * discount[r];
  return sum;
}

// Expected reciprocal rank (Chapelle et al. 2009): the user stops at a document with probability R.
inline double expected_reciprocal_rank(const double* labels, std::size_t depth, const Gain& gain, double max_gain) {
  double sum = 0.0, going_on = 1.0;
  for (std::size_t r = 0; r < depth; ++r) {
    const double stop = gain(labels[r]) / max_gain;
    sum += going_on * stop / static_cast<double>(r + 1);
    going_on *= 1.0 - stop;
  }
  return sum;
}

// Sum of the precisions at the ranks of relevant documents; average precision before it is divided.
inline double sum_of_precisions(const double* labels, std::size_t depth, double relevant) {
  static constexpr double as_number[2] = {0.0, 1.0};  // by table: compilers make a branch of anything else
  double sum = 0.0, hits = 0.0;
  for (std::size_t r = 0; r < depth; ++r) {
    const double hit = as_number[labels[r] >= relevant];
    hits += hit;
    sum += hit * (hits / static_cast<double>(r + 1));
  }
  return sum;
}

inline double reciprocal_rank(const double* labels, std::size_t depth, double relevant) {
  for (std::size_t r = 0; r < depth; ++r) {
    if (labels[r] >= relevant) return 1.0 / static_cast<double>(r + 1);
  }
  return 0.0;
}

inline double count_relevant(const double* labels, std::size_t n, double relevant) {
  std::size_t hits = 0;
  for (std::size_t i = 0; i < n; ++i) hits += labels[i] >= relevant;
  return static_cast<double>(hits);
}

// Rank-biased precision (Moffat & Zobel 2008) with binary relevance.
inline double rank_biased_precision(const double* labels, std::size_t depth, double relevant, double persistence) {
  double sum = 0.0, reads = 1.0;
  for (std::size_t r = 0; r < depth; ++r) {
    if (labels[r] >= relevant) sum += reads;
    reads *= persistence;
  }
  return (1.0 - persistence) * sum;
}

}  // namespace rankwood
