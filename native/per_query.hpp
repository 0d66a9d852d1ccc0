// Several measures of every query in one pass: each query is ranked once, as deep as its deepest measure looks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "interruption.hpp"
#include "measures.hpp"
#include "parallel.hpp"
#include "ranking.hpp"
#include "tied_measures.hpp"

namespace rankwood {

enum class Ties { order, average, docno };

// The rows of query q are order[offsets[q]:offsets[q + 1]], or offsets[q] to offsets[q + 1] when order is null.
template <class Score>
struct RankingData {
  const double* labels;
  const Score* scores;
  const std::int64_t* offsets;
  std::size_t n_queries;
  const std::int64_t* order;
  Ties ties;
  const std::uint32_t* docnos;  // for Ties::docno: docno_width code points per row, padded with zeros
  std::size_t docno_width;

  std::size_t size(std::size_t query) const { return static_cast<std::size_t>(offsets[query + 1] - offsets[query]); }
  std::size_t row(std::size_t query, std::size_t doc) const {
    const std::size_t at = static_cast<std::size_t>(offsets[query]) + doc;
    return order == nullptr ? at : static_cast<std::size_t>(order[at]);
  }
};

// Evaluates one query after the other; every thread has its own.
template <class Score>
class QueryEvaluator {
 public:
  // discounts: by DiscountKind, as deep as any measure looks.
  QueryEvaluator(const RankingData<Score>& data, const std::vector<MeasureSpec>& specs,
                 const std::vector<double> (&discounts)[2], std::size_t max_docs)
      : data_(data),
        specs_(specs),
        discounts_(discounts),
        kernels_(kernels()),
        by_score_(max_docs),
        by_label_(max_docs),
        label_buffer_(max_docs),
        score_buffer_(max_docs),
        ranked_(max_docs),
        ideal_(max_docs),
        gain_buffer_(max_docs) {}

  // out[m * n_queries + query] = measure m of the query. Throws MeasureFailure.
  void evaluate(std::size_t query, double* out) {
    load(query);
    find_ideal();
    rank(query);
    for (std::size_t m = 0; m < specs_.size(); ++m) {
      if (n_ >= kLongQuery) check_interruption();
      measure_ = m;
      out[m * data_.n_queries + query] = specs_[m].uses_gain() ? graded(specs_[m]) : binary(specs_[m]);
    }
  }

 private:
  static constexpr std::size_t kLongQuery = 16384;  // documents that take more than a few microseconds to measure

  [[noreturn]] void fail(MeasureProblem problem, std::size_t doc) const {
    throw MeasureFailure{problem, measure_, doc};
  }

  // Labels and scores in document order.
  void load(std::size_t query) {
    measure_ = 0;
    n_ = data_.size(query);
    labels_ = data_.labels + data_.offsets[query];
    scores_ = data_.scores + data_.offsets[query];
    if (data_.order != nullptr) {
      for (std::size_t i = 0; i < n_; ++i) {
        const std::size_t row = data_.row(query, i);
        label_buffer_[i] = data_.labels[row];
        score_buffer_[i] = data_.scores[row];
      }
      labels_ = label_buffer_.data();
      scores_ = score_buffer_.data();
    }
  }

  // The labels in decreasing order, as deep as nDCG looks (those of no worth may be missing), and the largest.
  void find_ideal() {
    std::size_t depth = 0;
    for (const MeasureSpec& spec : specs_) {
      if (spec.kind == MeasureKind::ndcg) depth = std::max(depth, spec.depth(n_));
    }
    n_ideal_ = 0;
    std::uint32_t counts[8];
    if (kernels_.count_grades(labels_, n_, counts)) {
      std::size_t largest = 7;
      while (largest > 0 && counts[largest] == 0) --largest;
      max_label_ = static_cast<double>(largest);
      for (std::size_t grade = largest; grade > 0 && n_ideal_ < depth; --grade) {
        const std::size_t end = std::min(depth, n_ideal_ + counts[grade]);
        while (n_ideal_ < end) ideal_[n_ideal_++] = static_cast<double>(grade);
      }
      return;
    }
    for (std::size_t i = 0; i < n_; ++i) {
      if (!std::isfinite(labels_[i])) fail(MeasureProblem::label_not_finite, i);
    }
    max_label_ = *std::max_element(labels_, labels_ + n_);
    if (depth == 0) return;
    const RankBuffer<double>* top = by_label_.top(labels_, n_, depth);
    std::copy(top->score, top->score + depth, ideal_.data());
    n_ideal_ = depth;
  }

  // The labels in rank order, as deep as any measure looks, and where runs of equal scores end if that matters.
  void rank(std::size_t query) {
    std::size_t depth = 0;
    for (const MeasureSpec& spec : specs_) depth = std::max(depth, spec.depth(n_));
    if (data_.ties != Ties::order) depth = n_;
    const RankBuffer<Score>* top = by_score_.top(scores_, n_, depth);
    if (top == nullptr) {
      const Score* nan = std::find_if(scores_, scores_ + n_, [](Score score) { return score != score; });
      fail(MeasureProblem::nan_score, static_cast<std::size_t>(nan - scores_));
    }
    runs_.clear();
    if (data_.ties != Ties::order) {
      for (std::size_t begin = 0, end; begin < n_; begin = end) {
        for (end = begin + 1; end < n_ && top->score[end] == top->score[begin];) ++end;
        if (data_.ties == Ties::docno) sort_by_docno(query, top->doc + begin, top->doc + end);
        runs_.push_back(end);
      }
    }
    for (std::size_t r = 0; r < depth; ++r) ranked_[r] = labels_[top->doc[r]];
  }

  // As trec_eval does: the larger document number first.
  void sort_by_docno(std::size_t query, std::uint32_t* begin, std::uint32_t* end) const {
    const std::size_t width = data_.docno_width;
    std::sort(begin, end, [&](std::uint32_t a, std::uint32_t b) {
      const std::uint32_t* docno_a = data_.docnos + data_.row(query, a) * width;
      const std::uint32_t* docno_b = data_.docnos + data_.row(query, b) * width;
      const auto [at_a, at_b] = std::mismatch(docno_a, docno_a + width, docno_b);
      return at_a == docno_a + width ? a < b : *at_a > *at_b;
    });
  }

  double graded(const MeasureSpec& spec) {
    check_labels(spec);
    const Gain gain(spec);
    const std::size_t depth = spec.depth(n_);
    const bool averaged = data_.ties == Ties::average;
    if (spec.kind == MeasureKind::err) {
      if (!(gain(max_label_) > 0.0)) return spec.empty;
      const double max_gain = std::exp2(spec.max_grade);
      return averaged ? tied_expected_reciprocal_rank(ranked_.data(), runs_, depth, gain, max_gain)
                      : expected_reciprocal_rank(ranked_.data(), depth, gain, max_gain);
    }
    const double* discount = discounts_[static_cast<int>(spec.discount)].data();
    const double ideal = spec.kind == MeasureKind::ndcg ? ideal_dcg(spec, gain, discount) : largest_gain(spec, gain);
    if (!(ideal > 0.0)) return spec.empty;
    if (spec.short_counts_zero && n_ < spec.cutoff) return 0.0;
    const double actual =
        averaged ? tied_weighted_sum(ranked_.data(), runs_, depth, gain, [&](std::size_t r) { return discount[r]; })
                 : dcg(ranked_.data(), depth, gain, discount);
    if (!std::isfinite(ideal) || !std::isfinite(actual)) fail(MeasureProblem::gain_overflow, largest_label());
    if (spec.kind == MeasureKind::dcg) return actual;
    return std::min(actual / ideal, 1.0);  // rounding may exceed it when gains are nearly equal
  }

  void check_labels(const MeasureSpec& spec) const {
    if (spec.kind == MeasureKind::err && max_label_ > spec.max_grade) {
      fail(MeasureProblem::above_max_grade, largest_label());
    }
    if (spec.gain == GainKind::exponential && max_label_ >= 1024.0) {
      fail(MeasureProblem::gain_overflow, largest_label());
    }
    if (spec.gain != GainKind::table) return;
    const double n_grades = static_cast<double>(spec.gains.size());
    for (std::size_t i = 0; i < n_; ++i) {
      if (labels_[i] >= n_grades || (labels_[i] >= 0.0 && labels_[i] != std::floor(labels_[i]))) {
        fail(MeasureProblem::no_gain, i);
      }
    }
  }

  double ideal_dcg(const MeasureSpec& spec, const Gain& gain, const double* discount) {
    const std::size_t depth = spec.depth(n_);
    if (spec.gain != GainKind::table) return dcg(ideal_.data(), std::min(depth, n_ideal_), gain, discount);
    std::transform(labels_, labels_ + n_, gain_buffer_.data(), gain);  // the largest label may not gain most
    const RankBuffer<double>* top = by_label_.top(gain_buffer_.data(), n_, depth);
    double sum = 0.0;
    for (std::size_t r = 0; r < depth; ++r) sum += top->score[r] * discount[r];
    return sum;
  }

  double largest_gain(const MeasureSpec& spec, const Gain& gain) const {
    if (spec.gain != GainKind::table) return gain(max_label_);
    double largest = 0.0;
    for (std::size_t i = 0; i < n_; ++i) largest = std::max(largest, gain(labels_[i]));
    return largest;
  }

  std::size_t largest_label() const {
    return static_cast<std::size_t>(std::max_element(labels_, labels_ + n_) - labels_);
  }

  double binary(const MeasureSpec& spec) const {
    const double n_relevant = count_relevant(labels_, n_, spec.relevant);
    if (n_relevant == 0.0) return spec.empty;
    const std::size_t depth = spec.depth(n_);
    const bool averaged = data_.ties == Ties::average;
    const double* ranked = ranked_.data();
    const auto is_relevant = [&](double label) { return label >= spec.relevant ? 1.0 : 0.0; };
    if (spec.kind == MeasureKind::ap) {
      const double sum = averaged ? tied_sum_of_precisions(ranked, runs_, depth, spec.relevant)
                                  : sum_of_precisions(ranked, depth, spec.relevant);
      const bool at_most = spec.ap_at_most_cutoff && spec.cutoff != 0;
      return sum / (at_most ? std::min(n_relevant, static_cast<double>(spec.cutoff)) : n_relevant);
    }
    if (spec.kind == MeasureKind::rr) {
      return averaged ? tied_reciprocal_rank(ranked, runs_, depth, spec.relevant)
                      : reciprocal_rank(ranked, depth, spec.relevant);
    }
    if (spec.kind == MeasureKind::rbp) {
      if (!averaged) return rank_biased_precision(ranked, depth, spec.relevant, spec.persistence);
      const auto reads = [&](std::size_t r) { return std::pow(spec.persistence, static_cast<double>(r)); };
      return (1.0 - spec.persistence) * tied_weighted_sum(ranked, runs_, depth, is_relevant, reads);
    }
    const double hits = averaged ? tied_weighted_sum(ranked, runs_, depth, is_relevant, [](std::size_t) { return 1.0; })
                                 : count_relevant(ranked, depth, spec.relevant);
    if (spec.kind == MeasureKind::recall) return hits / n_relevant;
    return hits / static_cast<double>(spec.cutoff == 0 || spec.precision_of_list ? depth : spec.cutoff);
  }

  const RankingData<Score>& data_;
  const std::vector<MeasureSpec>& specs_;
  const std::vector<double> (&discounts_)[2];
  const Kernels& kernels_;
  Ranker<Score> by_score_;
  Ranker<double> by_label_;
  std::vector<double> label_buffer_;
  std::vector<Score> score_buffer_;
  std::vector<double> ranked_, ideal_, gain_buffer_;
  Runs runs_;

  // The query at hand.
  std::size_t n_ = 0, n_ideal_ = 0, measure_ = 0;
  const double* labels_ = nullptr;
  const Score* scores_ = nullptr;
  double max_label_ = 0.0;
};

// Where to cut the queries into tasks of about docs_per_task documents; a query of as many has a task of its own.
inline std::vector<std::size_t> cut_queries(const std::int64_t* offsets, std::size_t n_queries,
                                            std::int64_t docs_per_task) {
  std::vector<std::size_t> cuts{0};
  for (std::size_t query = 0; query < n_queries; ++query) {
    const std::int64_t size = offsets[query + 1] - offsets[query];
    if (size >= docs_per_task && cuts.back() != query) cuts.push_back(query);
    if (offsets[query + 1] - offsets[cuts.back()] >= docs_per_task) cuts.push_back(query + 1);
  }
  if (cuts.back() != n_queries) cuts.push_back(n_queries);
  return cuts;
}

// Documents of the longest of the queries [begin, end).
inline std::size_t longest_query(const std::int64_t* offsets, std::size_t begin, std::size_t end) {
  std::int64_t longest = 0;
  for (std::size_t query = begin; query < end; ++query)
    longest = std::max(longest, offsets[query + 1] - offsets[query]);
  return static_cast<std::size_t>(longest);
}

// The order in which to hand out tasks, so that nobody waits for a long query at the end: those much larger than
// docs_per_task come first.
inline std::vector<std::size_t> largest_first(const std::vector<std::size_t>& cuts, const std::int64_t* offsets,
                                              std::int64_t docs_per_task) {
  std::vector<std::size_t> order(cuts.size() - 1);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size = [&](std::size_t task) { return (offsets[cuts[task + 1]] - offsets[cuts[task]]) / docs_per_task; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  return order;
}

// out[m * n_queries + q] = measure m of query q. A failure names the row; which one does not depend on n_threads.
template <class Score>
void evaluate_queries(const RankingData<Score>& data, const std::vector<MeasureSpec>& specs, int n_threads,
                      double* out) {
  constexpr std::int64_t docs_per_task = 16384;  // well above the cost of starting a thread
  const std::size_t max_docs = longest_query(data.offsets, 0, data.n_queries);
  std::size_t max_depth = 0;
  for (const MeasureSpec& spec : specs) max_depth = std::max(max_depth, spec.depth(max_docs));
  const std::vector<double> discounts[2] = {make_discounts(DiscountKind::log2, max_depth),
                                            make_discounts(DiscountKind::letor, max_depth)};
  const std::vector<std::size_t> cuts = cut_queries(data.offsets, data.n_queries, docs_per_task);
  const std::vector<std::size_t> order = largest_first(cuts, data.offsets, docs_per_task);
  parallel_for(order.size(), n_threads, [&](std::size_t i) {
    const std::size_t begin = cuts[order[i]], end = cuts[order[i] + 1];
    QueryEvaluator<Score> evaluator(data, specs, discounts, longest_query(data.offsets, begin, end));
    for (std::size_t query = begin; query < end; ++query) {
      try {
        evaluator.evaluate(query, out);
      } catch (MeasureFailure& failure) {
        failure.doc = data.row(query, failure.doc);
        throw;
      }
    }
  });
}

}  // namespace rankwood
