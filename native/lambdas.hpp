// LambdaMART's gradients: ranks the documents of every query and hands them to the kernel in lambdas.inl. Queries are
// shared out to threads; long ones come first, and all threads work on one of them together. Bits are the same either
// way, since the kernel adds up a chunk of documents at a time.
//
//   lambda_i = sum over pairs of +- sigma * rho * d,   w_i = sum over pairs of sigma^2 * rho * (1 - rho) * d,
//   d = |gain_i - gain_j| * |discount_i - discount_j| / ideal DCG
//
// over the pairs with different gains of which one document is ranked within the truncation level. So it is for NDCG;
// swap_weights.hpp has d of the other measures.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <vector>

#include "bucket_ranking.hpp"
#include "interruption.hpp"
#include "isa/kernels.hpp"
#include "pool.hpp"
#include "swap_weights.hpp"

namespace rankwood {

struct LambdaRules {
  std::size_t truncation;  // pairs with both ranks beyond it do not count
  double sigma;
  bool normalize;  // divide pairs by 0.01 + |score difference| unless all are equal, scale a query by log2(1 + S) / S
  bool cut_discounts;  // ranks beyond the truncation level count nothing, so that d is the change of the measure there
  PairMeasure measure;
  double largest_gain;  // of the whole data set, for ERR
};

// Tasks of consecutive queries, each with about `share` of the work: the first query of every task, and their number.
template <class Work>
std::vector<std::size_t> query_tasks(std::size_t n_queries, double share, const Work& work) {
  std::vector<std::size_t> first_query(1, 0);
  double open = 0.0;  // of the task that is being filled
  for (std::size_t q = 0; q < n_queries; ++q) {
    open += work(q);
    if (q + 1 < n_queries && open < share) continue;
    first_query.push_back(q + 1);
    open = 0.0;
  }
  return first_query;
}

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

// What work on one query at a time needs, allocated beforehand: tasks must not throw.
class LambdaScratch {
 public:
  explicit LambdaScratch(std::size_t max_docs)
      : stride_((max_docs + 15) / 16 * 16), floats_(9 * stride_), doubles_(3 * stride_), ranked_(max_docs) {}

  ScoredDocument* ranked() { return ranked_.data(); }
  float* score() { return floats_.data(); }
  float* score_rest() { return floats_.data() + stride_; }
  float* gain() { return floats_.data() + 2 * stride_; }
  float* exponential() { return floats_.data() + 3 * stride_; }
  float* lambda_lost() { return floats_.data() + 4 * stride_; }
  float* weight_won() { return floats_.data() + 5 * stride_; }
  SwapWeights swaps() {
    return {floats_.data() + 6 * stride_, floats_.data() + 7 * stride_, floats_.data() + 8 * stride_};
  }
  double* lambda() { return doubles_.data(); }
  double* weight() { return doubles_.data() + stride_; }
  double* ranked_score() { return doubles_.data() + 2 * stride_; }

 private:
  std::size_t stride_;
  AlignedFloats floats_;
  std::vector<double> doubles_;
  std::vector<ScoredDocument> ranked_;
};

// That of a task, which has a query to itself.
class TaskScratch : public LambdaScratch {
 public:
  explicit TaskScratch(std::size_t max_docs)
      : LambdaScratch(max_docs), bucket_(max_docs), starts_(bucket_count(max_docs)) {}

  // Inlined wherever it is called: out of line it is slower by some percent of all that LambdaGradients does.
  __attribute__((always_inline)) void rank(const double* scores, std::size_t n) {
    ScoreRange range = find_range(scores, n);
    if (!range.usable) {
      std::transform(scores, scores + n, lambda(), usable_score);
      scores = lambda();
      range = find_range(scores, n);
    }
    rank_documents(scores, n, range, bucket_.data(), starts_.data(), ranked());
  }

 private:
  std::vector<std::uint32_t> bucket_, starts_;
};

// That of a long query, which all threads work on.
struct LongScratch : LambdaScratch {
  LongScratch(std::size_t max_docs, std::size_t piece)
      : LambdaScratch(max_docs),
        ranker(max_docs),
        sums((max_docs / kPairChunk + 2) * kPairRows),
        n_top(max_docs / piece + 1) {}
  LongRanker ranker;
  std::vector<PairSums> sums;      // by chunk and row
  std::vector<std::size_t> n_top;  // by piece
};

// As many as threads; a task takes one that is free.
class TaskScratches {
 public:
  void make(std::size_t n, std::size_t max_docs) {
    for (std::size_t i = 0; i < n; ++i) free_.push_back(all_.emplace_back(new TaskScratch(max_docs)).get());
  }
  class Taken {
   public:
    explicit Taken(TaskScratches& from) : from_(from) {
      const std::lock_guard<std::mutex> guard(from_.lock_);
      scratch_ = from_.free_.back();
      from_.free_.pop_back();
    }
    ~Taken() {
      const std::lock_guard<std::mutex> guard(from_.lock_);
      from_.free_.push_back(scratch_);
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    TaskScratch& operator*() const { return *scratch_; }

   private:
    TaskScratches& from_;
    TaskScratch* scratch_;
  };

 private:
  std::mutex lock_;
  std::vector<std::unique_ptr<TaskScratch>> all_;
  std::vector<TaskScratch*> free_;
};

class LambdaGradients {
 public:
  // Documents of query q are the rows offsets[q] to offsets[q + 1]. Gains are finite and not negative. Weights may be
  // null; they and the offsets must outlive this object.
  LambdaGradients(const double* gains, const std::int64_t* offsets, std::size_t n_queries, const double* weights,
                  const double* query_weights, const LambdaRules& rules, int n_threads)
      : offsets_(offsets),
        n_queries_(n_queries),
        weights_(weights),
        query_weights_(query_weights),
        rules_(rules),
        gains_(rules.measure, rules.truncation, rules.largest_gain, gains, offsets, n_queries) {
    std::size_t max_docs = 0;
    for (std::size_t q = 0; q < n_queries; ++q) max_docs = std::max(max_docs, size(q));
    if (max_docs > kMaxDocs) throw std::invalid_argument("a query has more than 2^29 documents");
    fill_discounts(max_docs);
    divide_work(n_threads);
  }

  // gradient = lambda and hessian = w of every row. Bits do not depend on the number of threads.
  void compute(const double* scores, double* gradient, double* hessian, ThreadPool& pool) {
    for (const std::size_t q : long_queries_) compute_long(q, scores, gradient, hessian, pool);
    const auto kernel = kernels().pair_lambdas;
    pool.run(first_query_.size() - 1, [&](std::size_t task) {
      Interruption* const interruption = Interruption::current();
      const TaskScratches::Taken scratch(scratches_);
      for (std::size_t q = first_query_[task]; q < first_query_[task + 1]; ++q) {
        if (interruption != nullptr) interruption->check();
        if (!is_long(q)) compute_query(kernel, q, scores, gradient, hessian, *scratch);
      }
    });
  }

 private:
  static constexpr std::size_t kMaxDocs = std::size_t{1} << 29;
  static constexpr double kSerialWork = 400'000;         // below, in pairs, waking a thread costs more than it gives
  static constexpr double kTaskWork = 120'000;           // some 50 microseconds: no thread waits long for the last
  static constexpr std::size_t kLong = 16384;            // documents from which threads work on a query together,
  static constexpr std::size_t kPiece = 4 * kPairChunk;  // so many at a time

  bool is_long(std::size_t q) const { return long_.has_value() && gains_.has_pairs(q) && size(q) >= kLong; }
  std::size_t size(std::size_t q) const { return static_cast<std::size_t>(offsets_[q + 1] - offsets_[q]); }

  void fill_discounts(std::size_t max_docs) {
    discounts_ = AlignedFloats((max_docs + kLanes - 1) / kLanes * kLanes);
    const std::size_t n = rules_.cut_discounts ? std::min(rules_.truncation, max_docs) : max_docs;
    for (std::size_t r = 0; r < n; ++r) discounts_.data()[r] = static_cast<float>(rank_discount(r));
  }

  // Tasks of about equal work.
  void divide_work(int n_threads) {
    std::size_t longest = 0;
    for (std::size_t q = 0; q < n_queries_; ++q) longest = std::max(longest, gains_.has_pairs(q) ? size(q) : 0);
    if (n_threads > 1 && longest >= kLong) long_.emplace(longest, kPiece);
    const auto work = [&](std::size_t q) {
      const double n = static_cast<double>(size(q));
      return gains_.has_pairs(q) ? n * (30.0 + std::min(n, static_cast<double>(rules_.truncation))) : n;
    };
    double total = 0.0;
    std::size_t max_docs = 0;
    for (std::size_t q = 0; q < n_queries_; ++q) {
      if (is_long(q)) {
        long_queries_.push_back(q);
      } else {
        total += work(q);
        max_docs = std::max(max_docs, gains_.has_pairs(q) ? size(q) : 0);
      }
    }
    const auto left_over = [&](std::size_t q) { return is_long(q) ? 0.0 : work(q); };
    first_query_ = query_tasks(n_queries_, total > kSerialWork ? kTaskWork : kSerialWork, left_over);
    scratches_.make(std::min<std::size_t>(static_cast<std::size_t>(std::max(n_threads, 1)), first_query_.size()),
                    max_docs);
  }

  void compute_query(double (*kernel)(const RankedQuery&) noexcept, std::size_t q, const double* scores,
                     double* gradient, double* hessian, TaskScratch& scratch) const {
    const std::size_t begin = static_cast<std::size_t>(offsets_[q]), n = size(q);
    if (!gains_.has_pairs(q)) {
      std::fill_n(gradient + begin, n, 0.0);
      std::fill_n(hessian + begin, n, 0.0);
      return;
    }
    scratch.rank(scores + begin, n);
    gather(begin, 0, n, scratch);
    const RankedQuery query = ranked_query(n, ranks_with_pairs(0, n, scratch.gain()[n - 1], scratch), scratch);
    scatter(query, factor(q, kernel(query)), begin, 0, n, scratch.ranked(), gradient, hessian);
  }

  // All threads together.
  void compute_long(std::size_t q, const double* scores, double* gradient, double* hessian, ThreadPool& pool) {
    const std::size_t begin = static_cast<std::size_t>(offsets_[q]), n = size(q);
    LongScratch& scratch = *long_;
    ScoredDocument* ranked = scratch.ranked();
    scratch.ranker.rank(scores + begin, n, pool, ranked);

    const std::size_t n_pieces = (n + kPiece - 1) / kPiece;
    const float last_gain = gains_.data()[begin + ranked[n - 1].document];
    pool.run(n_pieces, [&](std::size_t p) {
      const std::size_t first = p * kPiece, last = std::min(n, first + kPiece);
      gather(begin, first, last, scratch);
      scratch.n_top[p] = ranks_with_pairs(first, last, last_gain, scratch);
      std::fill(scratch.lambda() + first, scratch.lambda() + last, 0.0);
      std::fill(scratch.weight() + first, scratch.weight() + last, 0.0);
    });
    std::size_t n_top = 0;
    for (std::size_t p = 0; p < n_pieces; ++p) n_top = std::max(n_top, scratch.n_top[p]);
    const RankedQuery query = ranked_query(n, n_top, scratch);
    const double total = add_long_pairs(query, scratch.sums.data(), pool);
    const double weight = factor(q, total);
    pool.run(n_pieces, [&](std::size_t p) {
      const std::size_t first = p * kPiece, last = std::min(n, first + kPiece);
      scatter(query, weight, begin, first, last, ranked, gradient, hessian);
    });
  }

  static double add_long_pairs(const RankedQuery& query, PairSums* sums, ThreadPool& pool) {
    const Kernels& table = kernels();
    const std::size_t n_padded = (query.n + kLanes - 1) / kLanes * kLanes;
    std::fill(query.gain + query.n, query.gain + n_padded, 0.0f);
    double total = 0.0;
    for (std::size_t first = 0; first < query.n_top;) {
      const PairRows rows = table.begin_rows(query, first);
      const std::size_t n_rows = rows.last - rows.first, n_docs = n_padded - rows.start;
      pool.run((n_docs + kPiece - 1) / kPiece, [&](std::size_t p) {
        const std::size_t from = rows.start + p * kPiece, to = std::min(n_padded, from + kPiece);
        table.pairs_of_rows(query, rows, from, to, sums + p * (kPiece / kPairChunk) * n_rows);
      });
      total = table.end_rows(query, rows, sums, (n_docs + kPairChunk - 1) / kPairChunk, total);
      first = rows.last;
    }
    return total;
  }

  // Scores and gains of the ranks [first, last).
  void gather(std::size_t begin, std::size_t first, std::size_t last, LambdaScratch& scratch) const {
    const ScoredDocument* ranked = scratch.ranked();
    double* score = scratch.ranked_score();
    float* gain = scratch.gain();
    for (std::size_t r = first; r < last; ++r) {
      score[r] = ranked[r].score;
      gain[r] = gains_.data()[begin + ranked[r].document];
    }
  }

  // How many ranks there are up to the last in [first, last) whose gain is not that of the last document: ranks from
  // which no later gain differs have no pairs. 0 when there is none.
  static std::size_t ranks_with_pairs(std::size_t first, std::size_t last, float last_gain, LambdaScratch& scratch) {
    const float* gain = scratch.gain();
    while (last > first && gain[last - 1] == last_gain) --last;
    return last > first ? last : 0;
  }

  RankedQuery ranked_query(std::size_t n, std::size_t n_top, LambdaScratch& scratch) const {
    const double* score = scratch.ranked_score();
    const SwapWeights swaps = scratch.swaps();
    const bool swap = kind() == PairKind::swap;
    if (swap) {
      const std::size_t depth = rules_.cut_discounts ? rules_.truncation : n;
      n_top = std::min(n_top, describe_swaps(rules_.measure, scratch.gain(), n, depth, scratch.lambda(), swaps));
      const std::size_t n_padded = (n + kLanes - 1) / kLanes * kLanes;
      std::fill(swaps.lower + n, swaps.lower + n_padded, 0.0f);
      std::fill_n(scratch.lambda(), n, 0.0);  // which was room for describe_swaps
    }
    float distance_offset = 0.0f;
    if (rules_.normalize &&
        rules_.measure !=
            PairMeasure::equal) {  // equal scores everywhere, as before the first tree: nothing to divide by
      const bool all_equal = score[0] == score[n - 1];
      distance_offset = static_cast<float>((all_equal ? 1.0 : 0.01) * rules_.sigma);
    }
    return {n,
            std::min(n_top, rules_.truncation),
            score,
            rules_.sigma,
            kind(),
            scratch.gain(),
            swap ? swaps.lower : discounts_.data(),
            swaps.upper,
            swaps.factor,
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

  PairKind kind() const {
    if (rules_.measure == PairMeasure::equal) return PairKind::equal;
    return rules_.measure == PairMeasure::ndcg ? PairKind::discounts : PairKind::swap;
  }

  // What the lambdas of a query are multiplied by; `size` is the sum of their magnitudes over pairs.
  double factor(std::size_t q, double size) const {
    double factor = rules_.sigma;
    if (rules_.normalize) {
      if (kind() != PairKind::equal) factor *= rules_.sigma;  // distances between scores were multiplied by it too
      const double total = 2.0 * size * factor;
      if (total > 0.0) factor *= std::log2(1.0 + total) / total;
    }
    return query_weights_ != nullptr ? factor * query_weights_[q] : factor;
  }

  // Gradients and hessians of the ranks [first, last).
  void scatter(const RankedQuery& query, double factor, std::size_t begin, std::size_t first, std::size_t last,
               const ScoredDocument* ranked, double* gradient, double* hessian) const {
    for (std::size_t r = first; r < last; ++r) {
      const std::size_t row = begin + ranked[r].document;
      const double weight = weights_ != nullptr ? factor * weights_[row] : factor;
      gradient[row] = weight * query.lambda[r];
      hessian[row] = weight * rules_.sigma * query.weight[r];
    }
  }

  const std::int64_t* offsets_;
  std::size_t n_queries_;
  const double* weights_;
  const double* query_weights_;
  LambdaRules rules_;
  AlignedFloats discounts_;  // of NDCG
  PairGains gains_;
  std::vector<std::size_t> first_query_, long_queries_;
  TaskScratches scratches_;
  std::optional<LongScratch> long_;
};

}  // namespace rankwood
