// Rankings of all documents of a query by score, in time linear in their number: by one thread, or by many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

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

// A score that can be ranked: infinite ones are brought into range; NaN, which no tree produces, ranks last.
inline double usable_score(double score) { return score > -kMaxScore ? std::min(score, kMaxScore) : -kMaxScore; }

// Ranks long queries by many threads: documents are dealt into parts that follow each other in the ranking, bounded by
// documents of a sample; then every part is ranked for itself.
class LongRanker {
 public:
  explicit LongRanker(std::size_t max_docs)
      : scores_(max_docs),
        part_(max_docs),
        documents_(max_docs),
        bucket_(max_docs),
        starts_(bucket_count(max_docs) + kMostParts),
        counts_(kMostParts * kMostParts) {}

  // OUT ranked: n documents, best first.
  void rank(const double* scores, std::size_t n, ThreadPool& pool, ScoredDocument* ranked) {
    const std::size_t n_parts = std::clamp<std::size_t>(n / kPart, 1, kMostParts);
    const std::size_t piece = (n + n_parts - 1) / n_parts;
    choose_bounds(scores, n, n_parts);
    pool.run(n_parts, [&](std::size_t p) {
      std::uint32_t count[kMostParts] = {};
      for (std::size_t i = p * piece; i < std::min(n, (p + 1) * piece); ++i) {
        part_[i] = part_of({usable_score(scores[i]), static_cast<std::uint32_t>(i)});
        ++count[part_[i]];
      }
      for (std::size_t part = 0; part < n_parts; ++part) counts_[part * n_parts + p] = count[part];
    });
    std::uint32_t before = 0;
    for (std::size_t part = 0; part < n_parts; ++part) {
      first_[part] = before;
      for (std::size_t p = 0; p < n_parts; ++p) {
        const std::uint32_t size = counts_[part * n_parts + p];
        counts_[part * n_parts + p] = before;
        before += size;
      }
    }
    first_[n_parts] = before;
    pool.run(n_parts, [&](std::size_t p) {
      std::uint32_t to[kMostParts];
      for (std::size_t part = 0; part < n_parts; ++part) to[part] = counts_[part * n_parts + p];
      for (std::size_t i = p * piece; i < std::min(n, (p + 1) * piece); ++i) {
        const std::uint32_t at = to[part_[i]]++;
        scores_[at] = usable_score(scores[i]);
        documents_[at] = static_cast<std::uint32_t>(i);
      }
    });
    pool.run(n_parts, [&](std::size_t part) {
      const std::size_t first = first_[part], size = first_[part + 1] - first;
      if (size == 0) return;
      rank_documents(scores_.data() + first, size, find_range(scores_.data() + first, size), bucket_.data() + first,
                     starts_.data() + 3 * first + part, ranked + first);
      for (std::size_t r = first; r < first + size; ++r) ranked[r].document = documents_[first + ranked[r].document];
    });
  }

 private:
  static constexpr std::size_t kPart = 2048;      // documents of a part, at least
  static constexpr std::size_t kMostParts = 256;  // a power of two
  static constexpr std::size_t kSampled = 4;      // documents of the sample per part

  // Part p begins with bound p - 1.
  void choose_bounds(const double* scores, std::size_t n, std::size_t n_parts) {
    const std::size_t n_sampled = n_parts * kSampled;
    sample_.clear();
    for (std::size_t k = 0; k < n_sampled; ++k) {
      const std::size_t i = k * n / n_sampled;
      sample_.push_back({usable_score(scores[i]), static_cast<std::uint32_t>(i)});
    }
    std::sort(sample_.begin(), sample_.end(), ranks_before);
    bounds_.clear();
    for (std::size_t part = 1; part < n_parts; ++part) bounds_.push_back(sample_[part * kSampled]);
    std::fill_n(bound_scores_, kMostParts, -2.0 * kMaxScore);  // no score is above those that are missing
    for (std::size_t b = 0; b < bounds_.size(); ++b) bound_scores_[b] = bounds_[b].score;
  }

  // The number of bounds that do not rank behind the document. By scores, without a branch; then, if need be, by
  // numbers of documents.
  std::uint32_t part_of(const ScoredDocument& document) const {
    std::size_t at = 0;
    for (std::size_t step = kMostParts / 2; step > 0; step /= 2) {
      at += bound_scores_[at + step - 1] > document.score ? step : 0;
    }
    if (at < bounds_.size() && bounds_[at].score == document.score) {
      const auto from = bounds_.begin() + static_cast<std::ptrdiff_t>(at);
      at = static_cast<std::size_t>(std::upper_bound(from, bounds_.end(), document, ranks_before) - bounds_.begin());
    }
    return static_cast<std::uint32_t>(at);
  }

  std::vector<double> scores_;
  std::vector<std::uint32_t> part_, documents_, bucket_, starts_, counts_;
  std::uint32_t first_[kMostParts + 1];
  std::vector<ScoredDocument> sample_, bounds_;
  double bound_scores_[kMostParts];
};

}  // namespace rankwood
