// What the exchange of two documents of a ranking does to a measure, for all pairs at once.
//
// For ranks i < j, counted from 1, every measure here changes by
//
//   |gain_i - gain_j| * factor_i * (upper_i - lower_j)
//
// where upper, lower and factor depend on the ranking but not on the pair, so that n numbers of each serve all pairs:
//
//   NDCG  the discounts of the ranks, twice; the gain is over the ideal DCG
//   MAP   with c_r relevant documents up to rank r, T_r the sum of 1 / s over the relevant ranks s > r, and gains of 0
//   or
//         1 / relevant documents: upper_i = (c_i + [i not relevant]) / i + T_i, lower_j = c_j / j + T_(j-1)
//   MRR   f and s being the first two relevant ranks: upper_i = 1 / i for i <= f; lower_j = 1 / f if j is relevant,
//         max(1 / j, 1 / s) if not; no pair with i > f changes anything
//   ERR   with the probability P_r of coming to rank r, R_r of stopping there (the gain), and F_r the sum of P_s R_s /
//   s
//         over s > r: upper_i = P_(i+1) / i - F_i, lower_j = P_j / j - F_(j-1), factor_i = 1 / (1 - R_i)
//
// Sums run from the end, where the numbers are small: differences of far ranks keep their digits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "interruption.hpp"

namespace rankwood {

enum class PairMeasure : std::uint8_t { ndcg, map, mrr, err, equal };  // equal: every pair weighs 1

inline double rank_discount(std::size_t rank) { return 1.0 / std::log2(static_cast<double>(rank) + 2.0); }

// Gains of all documents as a measure counts them, single precision, and whether a query has pairs at all.
class PairGains {
 public:
  // Gains are finite and not negative. `largest` is the highest of the whole data set, of which this may be a part.
  PairGains(PairMeasure measure, std::size_t truncation, double largest, const double* gains,
            const std::int64_t* offsets, std::size_t n_queries)
      : gain_(static_cast<std::size_t>(offsets[n_queries]), 0.0f), has_pairs_(n_queries, 0) {
    std::vector<double> best;
    for (std::size_t q = 0; q < n_queries; ++q) {
      check_interruption();
      const std::size_t begin = static_cast<std::size_t>(offsets[q]);
      const std::size_t n = static_cast<std::size_t>(offsets[q + 1]) - begin;
      if (n < 2) continue;
      const double* const of_query = gains + begin;
      switch (measure) {
        case PairMeasure::ndcg:
          has_pairs_[q] = over_ideal_dcg(of_query, n, truncation, best, gain_.data() + begin);
          break;
        case PairMeasure::map:
        case PairMeasure::mrr:
          has_pairs_[q] = relevant_or_not(of_query, n, measure == PairMeasure::map, gain_.data() + begin);
          break;
        case PairMeasure::err:
          has_pairs_[q] = stopping(of_query, n, largest, gain_.data() + begin);
          break;
        case PairMeasure::equal:
          has_pairs_[q] = places(of_query, n, best, gain_.data() + begin);
      }
    }
  }

  const float* data() const { return gain_.data(); }
  bool has_pairs(std::size_t q) const { return has_pairs_[q] != 0; }

 private:
  static constexpr double kMostStopping = 1.0 - 0x1p-20;  // 1 - R is a divisor

  // Differences are all that counts, so from the query's lowest, and in units of the ideal DCG. They lie in [0, 1].
  static bool over_ideal_dcg(const double* gains, std::size_t n, std::size_t truncation, std::vector<double>& best,
                             float* out) {
    best.assign(gains, gains + n);
    const double lowest = *std::min_element(best.begin(), best.end());
    const std::size_t n_top = std::min(n, truncation);
    std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(n_top), best.end(),
                      [](double a, double b) { return a > b; });
    if (best[0] == lowest) return false;
    double ideal = 0.0;  // in units of the highest gain, which may be near the largest double
    for (std::size_t r = 0; r < n_top; ++r) ideal += best[r] / best[0] * rank_discount(r);
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>((gains[i] - lowest) / best[0] / ideal);
    return true;
  }

  static bool relevant_or_not(const double* gains, std::size_t n, bool mean, float* out) {
    const auto n_relevant = static_cast<std::size_t>(std::count_if(gains, gains + n, [](double g) { return g > 0.0; }));
    if (n_relevant == 0 || n_relevant == n) return false;
    const float one = mean ? static_cast<float>(1.0 / static_cast<double>(n_relevant)) : 1.0f;
    for (std::size_t i = 0; i < n; ++i) out[i] = gains[i] > 0.0 ? one : 0.0f;
    return true;
  }

  static bool stopping(const double* gains, std::size_t n, double largest, float* out) {
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = static_cast<float>(std::min(gains[i] / (1.0 + largest), kMostStopping));
    }
    return std::any_of(out, out + n, [&](float gain) { return gain != out[0]; });
  }

  // Which is larger is all that counts: the place of a gain among those of the query.
  static bool places(const double* gains, std::size_t n, std::vector<double>& different, float* out) {
    different.assign(gains, gains + n);
    std::sort(different.begin(), different.end());
    different.erase(std::unique(different.begin(), different.end()), different.end());
    for (std::size_t i = 0; i < n; ++i) {
      const auto place = std::lower_bound(different.begin(), different.end(), gains[i]) - different.begin();
      out[i] = static_cast<float>(place);
    }
    return different.size() > 1;
  }

  std::vector<float> gain_;
  std::vector<std::uint8_t> has_pairs_;
};

// Arrays by rank that a ranking is described with.
struct SwapWeights {
  float *upper, *lower, *factor;
};

// MAP: see above. Ranks from `depth` on count nothing.
inline void map_swaps(const float* gain, std::size_t n, std::size_t depth, const SwapWeights& out) {
  std::size_t n_relevant = 0;  // up to the rank at hand
  for (std::size_t r = 0; r < depth; ++r) n_relevant += gain[r] > 0.0f;
  double below = 0.0;
  for (std::size_t r = n; r-- > 0;) {
    out.factor[r] = 1.0f;
    if (r >= depth) {
      out.upper[r] = out.lower[r] = 0.0f;
      continue;
    }
    const double rank = static_cast<double>(r + 1), relevant = gain[r] > 0.0f ? 1.0 : 0.0;
    const double count = static_cast<double>(n_relevant);
    out.upper[r] = static_cast<float>((count + 1.0 - relevant) / rank + below);
    below += relevant / rank;
    out.lower[r] = static_cast<float>(count / rank + below);
    n_relevant -= gain[r] > 0.0f;
  }
}

// MRR: see above. Returns the number of ranks i that have pairs.
inline std::size_t mrr_swaps(const float* gain, std::size_t n, std::size_t depth, const SwapWeights& out) {
  const auto reciprocal = [&](std::size_t r) { return r < depth ? 1.0f / static_cast<float>(r + 1) : 0.0f; };
  const auto is_relevant = [](float g) { return g > 0.0f; };
  const auto first = static_cast<std::size_t>(std::find_if(gain, gain + n, is_relevant) - gain);
  const std::size_t after = std::min(first + 1, n);
  const auto second = static_cast<std::size_t>(std::find_if(gain + after, gain + n, is_relevant) - gain);
  for (std::size_t r = 0; r < n; ++r) {
    out.factor[r] = 1.0f;
    out.upper[r] = reciprocal(r);
    out.lower[r] = is_relevant(gain[r]) ? reciprocal(first) : std::max(reciprocal(r), reciprocal(second));
  }
  return after;
}

// ERR: see above. `room` has n entries.
inline void err_swaps(const float* gain, std::size_t n, std::size_t depth, double* room, const SwapWeights& out) {
  double coming = 1.0;
  for (std::size_t r = 0; r < depth; ++r) {
    room[r] = coming;
    coming *= 1.0 - static_cast<double>(gain[r]);
  }
  double below = 0.0;
  for (std::size_t r = n; r-- > 0;) {
    const double stop = static_cast<double>(gain[r]), rank = static_cast<double>(r + 1);
    out.factor[r] = static_cast<float>(1.0 / (1.0 - stop));
    if (r >= depth) {
      out.upper[r] = out.lower[r] = 0.0f;
      continue;
    }
    out.upper[r] = static_cast<float>(room[r] * (1.0 - stop) / rank - below);
    below += room[r] * stop / rank;
    out.lower[r] = static_cast<float>(room[r] / rank - below);
  }
}

// Describes a ranking of n documents whose gains are given by rank; returns the number of ranks i that have pairs.
// Ranks from `depth` on, if there are so many, count nothing to the measure. `room` is scratch for n numbers.
inline std::size_t describe_swaps(PairMeasure measure, const float* gain, std::size_t n, std::size_t depth,
                                  double* room, const SwapWeights& out) {
  depth = std::min(depth, n);
  switch (measure) {
    case PairMeasure::map:
      map_swaps(gain, n, depth, out);
      return n;
    case PairMeasure::mrr:
      return mrr_swaps(gain, n, depth, out);
    case PairMeasure::err:
      err_swaps(gain, n, depth, room, out);
      return n;
    default:
      for (std::size_t r = 0; r < n; ++r) {
        out.upper[r] = out.lower[r] = r < depth ? static_cast<float>(rank_discount(r)) : 0.0f;
        out.factor[r] = 1.0f;
      }
      return n;
  }
}

}  // namespace rankwood
