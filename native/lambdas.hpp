// LambdaMART's gradients: ranks the documents of every query and hands them to the kernel in lambdas.inl.
//
//   lambda_i = sum over pairs of +- sigma * rho * d,   w_i = sum over pairs of sigma^2 * rho * (1 - rho) * d,
//   d = |gain_i - gain_j| * |discount_i - discount_j| / ideal DCG
//
// over the pairs with different gains of which one document is ranked within the truncation level.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "interruption.hpp"
#include "isa/kernels.hpp"
#include "pool.hpp"

namespace rankwood {

struct ScoredDocument {
  double score;
  std::uint32_t document;
};

// Higher scores first, ties in document order: a total order, so the ranking does not depend on how it is found.
inline bool ranks_before(const ScoredDocument& a, const ScoredDocument& b) {
  return a.score > b.score || (a.score == b.score && a.document < b.document);
}

constexpr double kMaxScore = 1e300;  // differences stay finite

struct ScoreRange {
  double low, high;
  bool usable;  // all scores lie within kMaxScore
};

// Four of each at a time: one after the other they would wait for each other.
inline ScoreRange find_range(const double* scores, std::size_t n) {
  double low[4], high[4], not_finite[4] = {};  // 0 * NaN and 0 * infinity are NaN
  for (int k = 0; k < 4; ++k) low[k] = high[k] = scores[0];
  const auto look = [&](std::size_t i, int k) {
    low[k] = scores[i] < low[k] ? scores[i] : low[k];
    high[k] = scores[i] > high[k] ? scores[i] : high[k];
    not_finite[k] += 0.0 * scores[i];
  };
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int k = 0; k < 4; ++k) look(i + k, k);
  }
  for (; i < n; ++i) look(i, 0);
  ScoreRange range{std::min(std::min(low[0], low[1]), std::min(low[2], low[3])),
                   std::max(std::max(high[0], high[1]), std::max(high[2], high[3])), false};
  range.usable = range.low >= -kMaxScore && range.high <= kMaxScore &&
                 not_finite[0] + not_finite[1] + not_finite[2] + not_finite[3] == 0.0;
  return range;
}

inline std::size_t bucket_count(std::size_t n) { return 3 * n + 1; }

// Rank the n documents of a query: one pass into 3n buckets of equal width, then insertion. Linear in n for
// scores as they come; where one outlier squeezes the others into few buckets, an ordinary sort takes over.
//   IN       range   of the scores, usable
//   SCRATCH  bucket  n entries      SCRATCH  starts  bucket_count(n) entries
inline void rank_documents(const double* scores, std::size_t n, const ScoreRange& range, std::uint32_t* bucket,
                           std::uint32_t* starts, ScoredDocument* ranked) {
  const double low = range.low, high = range.high;
  const std::size_t n_buckets = bucket_count(n);
  const double per_unit =
      high > low ? std::min(static_cast<double>(n_buckets - 1) / (high - low), 1e300) : 0.0;  // never infinite
  std::memset(starts, 0, n_buckets * sizeof *starts);
  for (std::size_t i = 0; i < n; ++i) {
    bucket[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>((high - scores[i]) * per_unit));
  }
  for (std::size_t i = 0; i < n; ++i) ++starts[bucket[i]];
  std::uint32_t before = 0;
  for (std::size_t b = 0; b < n_buckets; ++b) {
    const std::uint32_t size = starts[b];
    starts[b] = before;
    before += size;
  }
  for (std::size_t i = 0; i < n; ++i) ranked[starts[bucket[i]]++] = {scores[i], static_cast<std::uint32_t>(i)};
  std::size_t budget = 8 * n;
  for (std::size_t r = 1; r < n; ++r) {
    if (ranked[r].score < ranked[r - 1].score) continue;  // nearly always
    const ScoredDocument moving = ranked[r];
    std::size_t to = r;
    for (; to > 0 && ranks_before(moving, ranked[to - 1]); --to) ranked[to] = ranked[to - 1];
    ranked[to] = moving;
    if (r - to > budget) return std::sort(ranked, ranked + n, ranks_before);
    budget -= r - to;
  }
}

struct LambdaRules {
  std::size_t truncation;  // pairs with both ranks beyond it do not count
  double sigma;
  bool normalize;      // divide pairs by 0.01 + |score difference|, scale a query by log2(1 + S) / S
  bool cut_discounts;  // the discount is 0 beyond the truncation level, so that d is the change of NDCG@truncation
};

// Aligned to cache lines, as the kernel's registers want it.
class AlignedFloats {
 public:
  explicit AlignedFloats(std::size_t n = 0)
      : data_(static_cast<float*>(::operator new(n * sizeof(float), std::align_val_t{kLine}))) {
    std::fill_n(data_.get(), n, 0.0f);
  }
  float* data() const { return data_.get(); }

 private:
  static constexpr std::size_t kLine = 64;
  struct Free {
    void operator()(float* memory) const { ::operator delete(memory, std::align_val_t{kLine}); }
  };
  std::unique_ptr<float, Free> data_;
};

// What one task needs to work on a query at a time, allocated beforehand: tasks must not throw.
class LambdaScratch {
 public:
  explicit LambdaScratch(std::size_t max_docs)
      : stride_((max_docs + 15) / 16 * 16),
        floats_(6 * stride_),
        doubles_(3 * stride_),
        bucket_(max_docs),
        starts_(bucket_count(max_docs)),
        ranked_(max_docs) {}

  const ScoredDocument* rank(const double* scores, std::size_t n) {
    ScoreRange range = find_range(scores, n);
    if (!range.usable) {  // infinite scores are brought into range; NaN, which no tree produces, ranks last
      for (std::size_t i = 0; i < n; ++i) {
        lambda()[i] = scores[i] > -kMaxScore ? std::min(scores[i], kMaxScore) : -kMaxScore;
      }
      scores = lambda();
      range = find_range(scores, n);
    }
    rank_documents(scores, n, range, bucket_.data(), starts_.data(), ranked_.data());
    return ranked_.data();
  }
  float* score() { return floats_.data(); }
  float* score_rest() { return floats_.data() + stride_; }
  float* gain() { return floats_.data() + 2 * stride_; }
  float* exponential() { return floats_.data() + 3 * stride_; }
  float* lambda_lost() { return floats_.data() + 4 * stride_; }
  float* weight_won() { return floats_.data() + 5 * stride_; }
  double* lambda() { return doubles_.data(); }
  double* weight() { return doubles_.data() + stride_; }
  double* ranked_score() { return doubles_.data() + 2 * stride_; }

 private:
  std::size_t stride_;
  AlignedFloats floats_;
  std::vector<double> doubles_;
  std::vector<std::uint32_t> bucket_, starts_;
  std::vector<ScoredDocument> ranked_;
};

class LambdaGradients {
 public:
  // Documents of query q are the rows offsets[q] to offsets[q + 1]. Gains are finite and not negative. Weights may be
  // null; they and the offsets must outlive this object.
  LambdaGradients(const double* gains, const std::int64_t* offsets, std::size_t n_queries, const double* weights,
                  const double* query_weights, const LambdaRules& rules, int n_threads)
      : offsets_(offsets), n_queries_(n_queries), weights_(weights), query_weights_(query_weights), rules_(rules) {
    std::size_t max_docs = 0;
    for (std::size_t q = 0; q < n_queries; ++q) max_docs = std::max(max_docs, size(q));
    if (max_docs > kMaxDocs) throw std::invalid_argument("a query has more than 2^29 documents");
    fill_discounts(max_docs);
    scale_gains(gains);
    divide_work(n_threads);
  }

  // gradient = lambda and hessian = w of every row. Bits do not depend on the number of threads.
  void compute(const double* scores, double* gradient, double* hessian, ThreadPool& pool) {
    const auto kernel = kernels().pair_lambdas;
    pool.run(scratch_.size(), [&](std::size_t task) {
      Interruption* const interruption = Interruption::current();
      for (std::size_t q = first_query_[task]; q < first_query_[task + 1]; ++q) {
        if (interruption != nullptr) interruption->check();
        compute_query(kernel, q, scores, gradient, hessian, scratch_[task]);
      }
    });
  }

 private:
  static constexpr std::size_t kMaxDocs = std::size_t{1} << 29;
  static constexpr double kSerialWork = 400'000;  // below, in pairs, waking a thread costs more than it gives

  std::size_t size(std::size_t q) const { return static_cast<std::size_t>(offsets_[q + 1] - offsets_[q]); }

  void fill_discounts(std::size_t max_docs) {
    discounts_ = AlignedFloats((max_docs + kLanes - 1) / kLanes * kLanes);
    const std::size_t n = rules_.cut_discounts ? std::min(rules_.truncation, max_docs) : max_docs;
    for (std::size_t r = 0; r < n; ++r) discounts_.data()[r] = static_cast<float>(discount(r));
  }
  static double discount(std::size_t rank) { return 1.0 / std::log2(static_cast<double>(rank) + 2.0); }

  // Gains as the kernel wants them: differences are all that counts, so from the query's lowest, and in units of the
  // ideal DCG. They lie in [0, 1]; all 0 where a query has no pairs.
  void scale_gains(const double* gains) {
    gains_.assign(static_cast<std::size_t>(offsets_[n_queries_]), 0.0f);
    has_pairs_.assign(n_queries_, 0);
    std::vector<double> best;
    for (std::size_t q = 0; q < n_queries_; ++q) {
      check_interruption();
      const std::size_t begin = static_cast<std::size_t>(offsets_[q]), n = size(q);
      if (n < 2) continue;
      best.assign(gains + begin, gains + begin + n);
      const double lowest = *std::min_element(best.begin(), best.end());
      const std::size_t n_top = std::min(n, rules_.truncation);
      std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(n_top), best.end(),
                        [](double a, double b) { return a > b; });
      if (best[0] == lowest) continue;
      double ideal = 0.0;  // in units of the highest gain, which may be near the largest double
      for (std::size_t r = 0; r < n_top; ++r) ideal += best[r] / best[0] * discount(r);
      has_pairs_[q] = 1;
      for (std::size_t i = begin; i < begin + n; ++i) {
        gains_[i] = static_cast<float>((gains[i] - lowest) / best[0] / ideal);
      }
    }
  }

  // Tasks of about equal work; few, since each has its scratch.
  void divide_work(int n_threads) {
    const auto work = [&](std::size_t q) {
      const double n = static_cast<double>(size(q));
      return has_pairs_[q] ? n * (30.0 + std::min(n, static_cast<double>(rules_.truncation))) : n;
    };
    double total = 0.0;
    for (std::size_t q = 0; q < n_queries_; ++q) total += work(q);
    const std::size_t n_tasks =
        n_threads > 1 && total > kSerialWork ? std::min<std::size_t>(8 * static_cast<std::size_t>(n_threads), 256) : 1;
    double done = 0.0;
    std::size_t max_docs = 0;
    first_query_.assign(1, 0);
    for (std::size_t q = 0; q < n_queries_; ++q) {
      done += work(q);
      max_docs = std::max(max_docs, size(q));
      const double share = total * static_cast<double>(first_query_.size()) / static_cast<double>(n_tasks);
      if (q + 1 == n_queries_ || done >= share) {
        first_query_.push_back(q + 1);
        scratch_.emplace_back(max_docs);
        max_docs = 0;
      }
    }
  }

  void compute_query(double (*kernel)(const RankedQuery&) noexcept, std::size_t q, const double* scores,
                     double* gradient, double* hessian, LambdaScratch& scratch) const {
    const std::size_t begin = static_cast<std::size_t>(offsets_[q]), n = size(q);
    if (!has_pairs_[q]) {
      std::fill_n(gradient + begin, n, 0.0);
      std::fill_n(hessian + begin, n, 0.0);
      return;
    }
    const ScoredDocument* ranked = scratch.rank(scores + begin, n);
    RankedQuery query = gather(ranked, begin, n, scratch);
    const double size = kernel(query);

    double factor = rules_.sigma;
    if (rules_.normalize) {
      factor *= rules_.sigma;  // distances between scores were multiplied by it too
      const double total = 2.0 * size * factor;
      if (total > 0.0) factor *= std::log2(1.0 + total) / total;
    }
    if (query_weights_ != nullptr) factor *= query_weights_[q];
    for (std::size_t r = 0; r < n; ++r) {
      const std::size_t row = begin + ranked[r].document;
      const double weight = weights_ != nullptr ? factor * weights_[row] : factor;
      gradient[row] = weight * query.lambda[r];
      hessian[row] = weight * rules_.sigma * query.weight[r];
    }
  }

  RankedQuery gather(const ScoredDocument* ranked, std::size_t begin, std::size_t n, LambdaScratch& scratch) const {
    double* score = scratch.ranked_score();
    float* gain = scratch.gain();
    for (std::size_t r = 0; r < n; ++r) {
      score[r] = ranked[r].score;
      gain[r] = gains_[begin + ranked[r].document];
    }
    std::size_t n_top = n - 1;  // ranks from which no later gain differs have no pairs
    while (n_top > 0 && gain[n_top - 1] == gain[n - 1]) --n_top;
    n_top = std::min(n_top, rules_.truncation);
    float distance_offset = 0.0f;
    if (rules_.normalize) {  // equal scores everywhere, as before the first tree: nothing to divide by
      const bool all_equal = score[0] == score[n - 1];
      distance_offset = static_cast<float>((all_equal ? 1.0 : 0.01) * rules_.sigma);
    }
    return {n,
            n_top,
            score,
            rules_.sigma,
            gain,
            discounts_.data(),
            distance_offset,
            scratch.score(),
            scratch.score_rest(),
            scratch.exponential(),
            scratch.lambda_lost(),
            scratch.weight_won(),
            scratch.lambda(),
            scratch.weight(),
            {is_interrupted, Interruption::current()}};
  }

  const std::int64_t* offsets_;
  std::size_t n_queries_;
  const double* weights_;
  const double* query_weights_;
  LambdaRules rules_;
  AlignedFloats discounts_;
  std::vector<float> gains_;
  std::vector<std::uint8_t> has_pairs_;
  std::vector<std::size_t> first_query_;
  std::vector<LambdaScratch> scratch_;
};

}  // namespace rankwood
