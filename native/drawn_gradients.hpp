// Gradients of the losses that draw random numbers: XE-NDCG and the smoothed pairwise loss.
//
// Numbers belong to (seed, draw, query): the draw is the number of the round, the query is counted over all processes.
// So they do not depend on threads, on who holds which query, nor on what was computed before.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "interruption.hpp"
#include "lambdas.hpp"
#include "pool.hpp"
#include "random.hpp"
#include "swap_weights.hpp"

namespace rankwood {

// The queries of one process, and where its random numbers come from. Weights may be null.
struct DrawnQueries {
  const std::int64_t* offsets;
  std::size_t n_queries;
  const double *weights, *query_weights;
  std::uint64_t seed;
  std::uint64_t first_query;  // number among all of that of this process

  std::size_t begin(std::size_t q) const { return static_cast<std::size_t>(offsets[q]); }
  std::size_t size(std::size_t q) const { return static_cast<std::size_t>(offsets[q + 1] - offsets[q]); }
  std::size_t longest() const {
    std::size_t n = 0;
    for (std::size_t q = 0; q < n_queries; ++q) n = std::max(n, size(q));
    return n;
  }
  std::uint64_t key(std::uint64_t draw, std::size_t q) const {
    return stream_key(stream_key(seed, draw), first_query + q);
  }
  // Multiplies what was found for a query by weights.
  void weigh(std::size_t q, double factor, double* gradient, double* hessian) const {
    if (query_weights != nullptr) factor *= query_weights[q];
    for (std::size_t i = begin(q), end = i + size(q); i < end; ++i) {
      const double weight = weights != nullptr ? factor * weights[i] : factor;
      gradient[i] *= weight;
      hessian[i] *= weight;
    }
  }
};

// A number in [0, 1), a multiple of 2^-53.
inline double random_fraction(std::uint64_t key, std::uint64_t i) {
  return static_cast<double>(random_word(key, i) >> 11) * 0x1p-53;
}

// XE-NDCG (Bruch 2021): cross entropy of the distributions that scores and labels stand for,
//
//   rho = softmax(scores),   phi_i = (gain_i + 1 - random_i) / sum of these over the query.
//
// Besides the gradient of the first order, phi - rho, the approximation has two terms that come of the inverse of the
// Hessian, and rho (1 - rho) for the second derivative, as in LightGBM's rank_xendcg.
class CrossEntropyGradients {
 public:
  // Gains are finite and not negative; they and what `queries` points to must outlive this object.
  CrossEntropyGradients(const double* gains, const DrawnQueries& queries) : gains_(gains), queries_(queries) {
    first_query_ =
        query_tasks(queries.n_queries, kTaskDocs, [&](std::size_t q) { return static_cast<double>(queries.size(q)); });
  }

  void compute(const double* scores, std::uint64_t draw, double* gradient, double* hessian, ThreadPool& pool) const {
    pool.run(first_query_.size() - 1, [&](std::size_t task) {
      Interruption* const interruption = Interruption::current();
      for (std::size_t q = first_query_[task]; q < first_query_[task + 1]; ++q) {
        if (interruption != nullptr) interruption->check();
        const std::size_t begin = queries_.begin(q), n = queries_.size(q);
        if (n < 2) {
          std::fill_n(gradient + begin, n, 0.0);
          std::fill_n(hessian + begin, n, 0.0);
          continue;
        }
        of_query(gains_ + begin, scores + begin, n, queries_.key(draw, q), gradient + begin, hessian + begin);
        queries_.weigh(q, 1.0, gradient, hessian);
      }
    });
  }

 private:
  static constexpr double kTaskDocs = 4000.0;
  static constexpr double kLeast = 1e-15;  // of 1 - rho where it divides: one score may be far above all others

  static void of_query(const double* gains, const double* scores, std::size_t n, std::uint64_t key, double* gradient,
                       double* hessian) {
    double top = usable_score(scores[0]), total = 0.0, mass = 0.0;
    for (std::size_t i = 1; i < n; ++i) top = std::max(top, usable_score(scores[i]));
    const double largest = *std::max_element(gains, gains + n);
    const double unit = largest > 1.0 ? 1.0 / largest : 1.0;  // gains may be near the largest double
    for (std::size_t i = 0; i < n; ++i) {
      hessian[i] = std::exp(usable_score(scores[i]) - top);
      total += hessian[i];
      gradient[i] = gains[i] * unit + (1.0 - random_fraction(key, i)) * unit;
      mass += gradient[i];
    }
    double first = 0.0;  // sum of the first-order terms over 1 - rho, which are all that the second order needs
    for (std::size_t i = 0; i < n; ++i) {
      const double rho = hessian[i] = hessian[i] / total;
      gradient[i] = gradient[i] / mass - rho;
      first += gradient[i] / rest(rho);
    }
    double second = 0.0;
    for (std::size_t i = 0; i < n; ++i) second += second_order(gradient[i], hessian[i], first) / rest(hessian[i]);
    for (std::size_t i = 0; i < n; ++i) {
      const double rho = hessian[i], term = second_order(gradient[i], rho, first);
      gradient[i] += term + rho * (second - term / rest(rho));
      hessian[i] = rho * (1.0 - rho);
    }
  }
  static double rest(double rho) { return std::max(1.0 - rho, kLeast); }
  static double second_order(double gradient, double rho, double first) { return rho * (first - gradient / rest(rho)); }

  const double* gains_;
  DrawnQueries queries_;
  std::vector<std::size_t> first_query_;
};

struct StochasticRules {
  std::size_t truncation;  // neighbours with both ranks beyond it do not count
  double sigma;
  bool normalize;      // scale a query by log2(1 + S) / S
  bool cut_discounts;  // ranks beyond the truncation level count nothing
  PairMeasure measure;
  double largest_gain;     // of the whole data set, for ERR
  std::size_t n_rankings;  // drawn at a time
  double noise;            // scale of the logistic noise
};

// The smoothed pairwise loss, after CatBoost's YetiRank and YetiLoss (Gulin et al. 2011, Lyzhin et al. 2023). Several
// rankings are drawn by adding logistic noise to the scores. The pairs are the neighbours in these rankings, weighed by
// what their exchange does to the measure there; their loss is logistic in the scores without noise.
class StochasticGradients {
 public:
  // As LambdaGradients: gains need not outlive this object, what `queries` points to must.
  StochasticGradients(const double* gains, const DrawnQueries& queries, const StochasticRules& rules, int n_threads)
      : queries_(queries),
        rules_(rules),
        gains_(rules.measure, rules.truncation, rules.largest_gain, gains, queries.offsets, queries.n_queries) {
    const std::size_t longest = queries.longest();
    if (longest > kMaxDocs) throw std::invalid_argument("a query has more than 2^29 documents");
    const double per_task = kTaskDocs / static_cast<double>(rules.n_rankings);
    first_query_ = query_tasks(queries.n_queries, per_task, [&](std::size_t q) {
      return gains_.has_pairs(q) ? static_cast<double>(queries.size(q)) : 1.0;
    });
    scratches_.make(std::min(static_cast<std::size_t>(std::max(n_threads, 1)), first_query_.size()), longest);
  }

  void compute(const double* scores, std::uint64_t draw, double* gradient, double* hessian, ThreadPool& pool) {
    pool.run(first_query_.size() - 1, [&](std::size_t task) {
      Interruption* const interruption = Interruption::current();
      const TaskScratches::Taken scratch(scratches_);
      for (std::size_t q = first_query_[task]; q < first_query_[task + 1]; ++q) {
        const std::size_t begin = queries_.begin(q), n = queries_.size(q);
        std::fill_n(gradient + begin, n, 0.0);
        std::fill_n(hessian + begin, n, 0.0);
        if (!gains_.has_pairs(q)) continue;
        double total = 0.0;
        for (std::size_t ranking = 0; ranking < rules_.n_rankings; ++ranking) {
          if (interruption != nullptr) interruption->check();
          draw_ranking(scores + begin, n, queries_.key(draw, q), ranking, *scratch);
          total +=
              add_neighbours(scores + begin, gains_.data() + begin, n, *scratch, gradient + begin, hessian + begin);
        }
        queries_.weigh(q, factor(total), gradient, hessian);
      }
    });
  }

 private:
  static constexpr std::size_t kMaxDocs = std::size_t{1} << 29;
  static constexpr double kTaskDocs = 8000.0;

  void draw_ranking(const double* scores, std::size_t n, std::uint64_t key, std::size_t ranking,
                    TaskScratch& scratch) const {
    double* const noisy = scratch.ranked_score();
    for (std::size_t i = 0; i < n; ++i) {
      const double u = static_cast<double>(random_word(key, ranking * n + i) >> 12) * 0x1p-52 + 0x1p-53;  // in (0, 1)
      noisy[i] = usable_score(scores[i]) + rules_.noise * std::log(u / (1.0 - u));
    }
    scratch.rank(noisy, n);
  }

  // Returns the sum of the lambdas of this ranking, without the factor sigma.
  double add_neighbours(const double* scores, const float* gains, std::size_t n, TaskScratch& scratch, double* gradient,
                        double* hessian) const {
    const ScoredDocument* const ranked = scratch.ranked();
    float* const gain = scratch.gain();
    for (std::size_t r = 0; r < n; ++r) gain[r] = gains[ranked[r].document];
    const SwapWeights swaps = scratch.swaps();
    const std::size_t depth = rules_.cut_discounts ? rules_.truncation : n;
    const std::size_t last = describe_swaps(rules_.measure, gain, n, depth, scratch.lambda(), swaps);
    double total = 0.0;
    for (std::size_t r = 0; r < std::min({last, rules_.truncation, n - 1}); ++r) {
      if (gain[r] == gain[r + 1]) continue;
      const double fall = static_cast<double>(swaps.upper[r]) - static_cast<double>(swaps.lower[r + 1]);
      const double apart = std::abs(static_cast<double>(gain[r]) - static_cast<double>(gain[r + 1]));
      const double d = apart * static_cast<double>(swaps.factor[r]) * std::max(fall, 0.0);
      const bool in_order = gain[r] > gain[r + 1];
      const std::size_t better = ranked[in_order ? r : r + 1].document, worse = ranked[in_order ? r + 1 : r].document;
      const double distance = usable_score(scores[better]) - usable_score(scores[worse]);
      const double rho = 1.0 / (1.0 + std::exp(rules_.sigma * distance)), lambda = rho * d;
      gradient[better] += lambda;
      gradient[worse] -= lambda;
      hessian[better] += rules_.sigma * lambda * (1.0 - rho);
      hessian[worse] += rules_.sigma * lambda * (1.0 - rho);
      total += lambda;
    }
    return total;
  }

  // What the sums over all rankings are multiplied by.
  double factor(double total) const {
    const double mean = rules_.sigma / static_cast<double>(rules_.n_rankings), size = 2.0 * mean * total;
    return rules_.normalize && size > 0.0 ? mean * std::log2(1.0 + size) / size : mean;
  }

  DrawnQueries queries_;
  StochasticRules rules_;
  PairGains gains_;
  std::vector<std::size_t> first_query_;
  TaskScratches scratches_;
};

}  // namespace rankwood
