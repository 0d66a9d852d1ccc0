// The head of a ranking: the first k documents of a query by decreasing score, ties in document order.
//
// Included by isa/table.inl, once per instruction set. Almost no branch depends on the data:
//
//   1. Deal the scores over m >= k lanes, like cards, and keep the best of each lane. At least k documents reach
//      the k-th best lane, so nothing below it can be among the first k. For random scores little more than k
//      documents remain; for a list that is already sorted exactly k, and ties.
//   2. Sort what remains: runs of up to 64 documents by counting who beats whom, then merge the runs.
//
// Only comparisons, so every instruction set gives the same result.
#include <cstddef>
#include <cstdint>
#include <limits>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "isa/kernels.hpp"
#include "isa/vectors.inl"

namespace rankwood::RANKWOOD_ISA_NS::topk {
namespace {

constexpr std::size_t kStep = 16;        // documents per step of a vectorised loop
constexpr std::size_t kRun = 64;         // documents sorted by counting
constexpr std::size_t kMaxLanes = 256;   // beyond, finding the k-th best lane costs more than it saves
constexpr std::size_t kDocsPerLane = 3;  // with fewer, nearly everything remains: sort it all at once

template <class Score>
constexpr Score kBest = std::numeric_limits<Score>::infinity();

inline std::size_t round_up(std::size_t n) { return (n + kStep - 1) / kStep * kStep; }

// Position of the lowest bit that is set; there is one.
inline std::size_t lowest_bit(std::uint64_t bits) {
#if defined(__GNUC__)
  return static_cast<std::size_t>(__builtin_ctzll(bits));
#else
  std::size_t at = 0;
  for (; (bits & 1) == 0; bits >>= 1) ++at;
  return at;
#endif
}

// greater[i] = how many of the m values exceed value[i]; m is a multiple of kStep.
template <class Score>
inline void count_greater(const Score* value, std::size_t m, CountOf<Score>* greater) {
  using V = VectorOf<Score>;
  constexpr std::size_t n_vectors = 4 * V::width < kStep ? 4 : kStep / V::width;  // what registers can hold
  for (std::size_t block = 0; block < m; block += n_vectors * V::width) {
    typename V::Scores own[n_vectors];
    typename V::Counts count[n_vectors];
    for (std::size_t v = 0; v < n_vectors; ++v) {
      own[v] = V::load(value + block + v * V::width);
      count[v] = V::repeat(CountOf<Score>{0});
    }
    for (std::size_t j = 0; j < m; ++j) {
      const typename V::Scores other = V::repeat(value[j]);
      for (std::size_t v = 0; v < n_vectors; ++v) count[v] -= V::less(own[v], other);  // true is -1
    }
    for (std::size_t v = 0; v < n_vectors; ++v) V::store(greater + block + v * V::width, count[v]);
  }
}

// The k-th best of m values (a multiple of kStep): the least one that fewer than k exceed.
template <class Score>
inline Score kth_best(const Score* value, std::size_t m, std::size_t k) {
  using V = VectorOf<Score>;
  CountOf<Score> greater[kMaxLanes];
  count_greater(value, m, greater);
  const typename V::Counts limit = V::repeat(static_cast<CountOf<Score>>(k));
  typename V::Scores least = V::repeat(kBest<Score>);
  for (std::size_t i = 0; i < m; i += V::width) {
    const typename V::Scores here = V::load(value + i);
    least = V::select(V::less(V::load(greater + i), limit) & V::less(here, least), here, least);
  }
  Score parts[V::width];
  V::store(parts, least);
  for (std::size_t i = 1; i < V::width; ++i) parts[0] = parts[i] < parts[0] ? parts[i] : parts[0];
  return parts[0];
}

// A score that at least k of the n documents reach, close to the k-th best; n_lanes >= k, a multiple of kStep.
template <class Score>
Score reached_by_k(const Score* scores, std::size_t n, std::size_t k, std::size_t n_lanes) {
  using V = VectorOf<Score>;
  Score lane[kMaxLanes];
  for (std::size_t i = 0; i < n_lanes; ++i) lane[i] = -kBest<Score>;
  std::size_t row = 0;
  for (; row + n_lanes <= n; row += n_lanes) {
    for (std::size_t i = 0; i < n_lanes; i += V::width) {
      const typename V::Scores score = V::load(scores + row + i), best = V::load(lane + i);
      V::store(lane + i, V::select(V::less(best, score), score, best));
    }
  }
  for (std::size_t i = 0; row + i < n; ++i) lane[i] = scores[row + i] > lane[i] ? scores[row + i] : lane[i];
  return kth_best(lane, n_lanes, k);
}

// Bit i tells whether scores[i] >= least, for i in [0, n), n <= 64.
template <class Score>
inline std::uint64_t reached(const Score* scores, std::size_t n, Score least) {
  std::uint64_t bits = 0;
  std::size_t i = 0;
#if defined(__AVX2__)
  if constexpr (sizeof(Score) == sizeof(double)) {
    for (; i + 4 <= n; i += 4) {
      const __m256d mask = _mm256_cmp_pd(_mm256_loadu_pd(scores + i), _mm256_set1_pd(least), _CMP_GE_OQ);
      bits |= static_cast<std::uint64_t>(_mm256_movemask_pd(mask)) << i;
    }
  } else {
    for (; i + 8 <= n; i += 8) {
      const __m256 mask = _mm256_cmp_ps(_mm256_loadu_ps(scores + i), _mm256_set1_ps(least), _CMP_GE_OQ);
      bits |= static_cast<std::uint64_t>(_mm256_movemask_ps(mask)) << i;
    }
  }
#endif
  for (; i < n; ++i) bits |= static_cast<std::uint64_t>(scores[i] >= least) << i;
  return bits;
}

// Copy the documents that score `least` or more, in document order; returns how many.
template <class Score>
std::size_t keep_reached(const Score* scores, std::size_t n, Score least, const RankBuffer<Score>& to) {
  std::size_t kept = 0;
  for (std::size_t start = 0; start < n; start += 64) {
    std::uint64_t bits = reached(scores + start, n - start < 64 ? n - start : 64, least);
    for (; bits != 0; bits &= bits - 1) {
      const std::size_t doc = start + lowest_bit(bits);
      to.score[kept] = scores[doc];
      to.doc[kept++] = static_cast<std::uint32_t>(doc);
    }
  }
  return kept;
}

// Sort the n <= kRun documents from `begin` into the same places of `to`, best first, ties in the order given.
// Overwrites what follows them in `from`, up to a multiple of kStep.
template <class Score>
void sort_run(const RankBuffer<Score>& from, const RankBuffer<Score>& to, std::size_t begin, std::size_t n) {
  const std::size_t m = round_up(n);
  CountOf<Score> place[kRun];
  bool taken[kRun] = {};
  Score* score = from.score + begin;
  for (std::size_t i = n; i < m; ++i) score[i] = -kBest<Score>;
  count_greater(score, m, place);
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t at = static_cast<std::size_t>(place[i]);
    while (taken[at]) ++at;  // a tie: after those that came before
    taken[at] = true;
    to.score[begin + at] = score[i];
    to.doc[begin + at] = from.doc[begin + i];
  }
}

// Merge the sorted [begin, middle) and [middle, end) into the same places of `to`; the left one wins ties.
// From both ends at once: two chains of dependent steps that the CPU overlaps.
template <class Score>
void merge(const RankBuffer<Score>& from, const RankBuffer<Score>& to, std::size_t begin, std::size_t middle,
           std::size_t end) {
  std::size_t left = begin, right = middle, out = begin;             // next best of each side
  std::size_t last_left = middle, last_right = end, last_out = end;  // one past the next worst
  const auto put = [&](std::size_t at, std::size_t doc) {
    to.score[at] = from.score[doc];
    to.doc[at] = from.doc[doc];
  };
  const std::size_t shorter = middle - begin < end - middle ? middle - begin : end - middle;
  for (std::size_t i = 0; i < shorter; ++i) {  // neither side can run out yet
    const std::size_t take_right = from.score[right] > from.score[left];
    put(out++, left ^ ((left ^ right) & -take_right));  // a choice without a branch
    right += take_right;
    left += 1 - take_right;
    const std::size_t take_left = from.score[last_left - 1] < from.score[last_right - 1];
    last_left -= take_left;
    last_right -= 1 - take_left;
    put(--last_out, last_right ^ ((last_left ^ last_right) & -take_left));
  }
  while (left < last_left && right < last_right) put(out++, from.score[right] > from.score[left] ? right++ : left++);
  while (left < last_left) put(out++, left++);
  while (right < last_right) put(out++, right++);
}

// Sort n documents of `a`, best first, with the help of `b`; returns the one that holds the result.
template <class Score>
const RankBuffer<Score>* sort_all(const RankBuffer<Score>& a, const RankBuffer<Score>& b, std::size_t n) {
  const RankBuffer<Score>*from = &a, *to = &b;
  for (std::size_t begin = 0; begin < n; begin += kRun) {
    sort_run(*from, *to, begin, n - begin < kRun ? n - begin : kRun);
  }
  for (std::size_t width = kRun; width < n; width *= 2) {
    const RankBuffer<Score>* merged = from;
    from = to;
    to = merged;
    for (std::size_t begin = 0; begin < n; begin += 2 * width) {
      const std::size_t middle = begin + width < n ? begin + width : n;
      merge(*from, *to, begin, middle, middle + width < n ? middle + width : n);
    }
  }
  return to;
}

template <class Score>
bool any_nan(const Score* scores, std::size_t n) {
  using V = VectorOf<Score>;
  typename V::Counts ordered = V::repeat(CountOf<Score>{-1});
  std::size_t i = 0;
  for (; i + V::width <= n; i += V::width) ordered &= V::ordered(V::load(scores + i));
  CountOf<Score> parts[V::width];
  V::store(parts, ordered);
  bool nan = false;
  for (const CountOf<Score> part : parts) nan |= part == 0;
  for (; i < n; ++i) nan |= scores[i] != scores[i];
  return nan;
}

template <class Score>
const RankBuffer<Score>* top_k(const Score* scores, std::size_t n, std::size_t k, const RankBuffer<Score>& a,
                               const RankBuffer<Score>& b) {
  if (any_nan(scores, n)) return nullptr;
  const std::size_t n_lanes = round_up(k < kMaxLanes ? k + k / 3 : 2 * kMaxLanes);
  if (n > kRun && n_lanes <= kMaxLanes && n_lanes * kDocsPerLane <= n) {
    return sort_all(a, b, keep_reached(scores, n, reached_by_k(scores, n, k, n_lanes), a));
  }
  for (std::size_t i = 0; i < n; ++i) a.score[i] = scores[i];
  for (std::size_t i = 0; i < n; ++i) a.doc[i] = static_cast<std::uint32_t>(i);
  return sort_all(a, b, n);
}

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::topk
