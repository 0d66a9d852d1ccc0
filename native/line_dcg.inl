// DCG of one query at many weights of one tree, compiled once per instruction set.
//
// As the weight moves by delta, the score of a document moves along a line: score + delta * slope. Documents whose
// whole range lies below the ranges of the best cannot be counted; of the others, only those whose ranges overlap can
// change places. A lane of a vector is one weight: for each overlapping pair the lanes count who is in front of whom,
// which gives the rank of every document at every weight without sorting. Sums run in rank order, as dcg() adds them.
// Rounding is monotone, so a line's score at any delta lies between its scores at the outermost ones: nothing that is
// left out could have been counted.
#include "isa/kernels.hpp"
#include "isa/vectors.inl"

namespace rankwood::RANKWOOD_ISA_NS::lines {
namespace {

using V = VectorOf<double>;
constexpr std::size_t kMostVectors = 5;  // of lanes, what registers can hold; 20 weights with AVX2

inline double smaller(double a, double b) { return b < a ? b : a; }
inline double larger(double a, double b) { return b > a ? b : a; }

// The n_top-th largest of q.low: so many documents never fall below it. Lows fall with i but for few, so that keeping
// the largest in order costs little. Uses q.reach.
inline double find_bound(const MovingQuery& q) {
  double* largest = q.reach;
  for (std::size_t i = 0; i < q.n; ++i) {
    std::size_t at = i < q.n_top ? i : q.n_top;
    const double low = q.low[i];
    if (at == q.n_top && !(low > largest[--at])) continue;
    for (; at > 0 && largest[at - 1] < low; --at) largest[at] = largest[at - 1];
    largest[at] = low;
  }
  return largest[q.n_top - 1];
}

// Keep, in place, the documents that may be counted; returns how many. Needs the ranges of all.
inline std::size_t keep_reachable(const MovingQuery& q) {
  const double bound = find_bound(q);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < q.n; ++i) {
    q.score[kept] = q.score[i];
    q.slope[kept] = q.slope[i];
    q.doc[kept] = q.doc[i];
    q.gain[kept] = q.gain[i];
    q.low[kept] = q.low[i];
    q.high[kept] = q.high[i];
    kept += q.high[i] >= bound;
  }
  return kept;
}

// Whether to give up, looked for when so many pairs have been compared; counts them anew then.
inline bool gives_up(const MovingQuery& q, std::size_t& n_pairs) {
  if (n_pairs < kLookAfter) return false;
  n_pairs = 0;
  return q.stop.asked(q.stop.context);
}

// q.reach[i] = the largest of high[i], high[i + 1], ...: once it is below low[i], no later document can pass i.
// Returns whether two documents of different gain may change places; no, too, when it is to give up.
inline bool find_reach(const MovingQuery& q, std::size_t n) {
  std::size_t n_pairs = 0;  // since the last look
  double reach = q.high[n - 1];
  for (std::size_t i = n; i-- > 0;) {
    reach = larger(reach, q.high[i]);
    q.reach[i] = reach;
  }
  for (std::size_t i = 0; i + 1 < n; ++i) {
    std::size_t j = i + 1;
    for (; j < n && q.reach[j] >= q.low[i]; ++j) {
      if (q.high[j] >= q.low[i] && q.gain[i] != q.gain[j]) return true;
    }
    if (gives_up(q, n_pairs += j - i)) return false;
  }
  return false;
}

// Ranks at n_vectors vectors of weights, from lane `first` on. q.at and q.rank: kMostVectors vectors per document.
// False: it has given up.
template <std::size_t n_vectors>
inline bool count_ranks(const MovingQuery& q, std::size_t n, std::size_t first) {
  constexpr std::size_t stride = n_vectors * V::width;
  V::Scores delta[n_vectors];
  for (std::size_t v = 0; v < n_vectors; ++v) delta[v] = V::load(q.delta + first + v * V::width);
  for (std::size_t i = 0; i < n; ++i) {
    const V::Scores score = V::repeat(q.score[i]), slope = V::repeat(q.slope[i]);
    for (std::size_t v = 0; v < n_vectors; ++v) {
      V::store(q.at + i * stride + v * V::width, score + delta[v] * slope);
      V::store(q.rank + i * stride + v * V::width, V::repeat(static_cast<std::int64_t>(i)));
    }
  }
  std::size_t n_pairs = 0;  // since the last look
  for (std::size_t i = 0; i + 1 < n; ++i) {
    V::Scores own[n_vectors];
    V::Counts rank[n_vectors];
    for (std::size_t v = 0; v < n_vectors; ++v) {
      own[v] = V::load(q.at + i * stride + v * V::width);
      rank[v] = V::load(q.rank + i * stride + v * V::width);
    }
    std::size_t j = i + 1;
    for (; j < n && q.reach[j] >= q.low[i]; ++j) {
      if (q.high[j] < q.low[i]) continue;
      const V::Counts wins_tie = V::repeat(-static_cast<std::int64_t>(q.doc[j] < q.doc[i]));
      for (std::size_t v = 0; v < n_vectors; ++v) {
        const V::Scores other = V::load(q.at + j * stride + v * V::width);
        const V::Counts above = V::less(own[v], other), below = V::less(other, own[v]);
        const V::Counts passes = above | (~below & wins_tie);  // -1 where j is in front of i
        rank[v] -= passes;
        std::int64_t* other_rank = q.rank + j * stride + v * V::width;
        V::store(other_rank, V::load(other_rank) + passes);
      }
    }
    for (std::size_t v = 0; v < n_vectors; ++v) V::store(q.rank + i * stride + v * V::width, rank[v]);
    if (gives_up(q, n_pairs += n_vectors * (j - i))) return false;
  }
  return true;
}

template <std::size_t n_vectors>
inline void sum_gains(const MovingQuery& q, std::size_t n, std::size_t first) {
  constexpr std::size_t stride = n_vectors * V::width;
  double* gain_at = q.at;  // the scores have done their work
  for (std::size_t i = 0; i < q.n_top * stride; ++i) gain_at[i] = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    if (q.gain[i] == 0.0) continue;
    const std::int64_t* rank = q.rank + i * stride;
    for (std::size_t lane = 0; lane < stride; ++lane) {
      gain_at[static_cast<std::size_t>(rank[lane]) * stride + lane] = q.gain[i];
    }
  }
  for (std::size_t v = 0; v < n_vectors; ++v) {
    V::Scores sum = V::repeat(0.0);
    for (std::size_t r = 0; r < q.n_top; ++r) {
      sum += V::load(gain_at + r * stride + v * V::width) * V::repeat(q.discount[r]);
    }
    V::store(q.dcg + first + v * V::width, sum);
  }
}

template <std::size_t n_vectors>
inline void evaluate(const MovingQuery& q, std::size_t n, std::size_t first) {
  if (count_ranks<n_vectors>(q, n, first)) sum_gains<n_vectors>(q, n, first);
}

// Fill q.dcg, and whatever stands beyond q.n_lanes up to a multiple of kLineLanes; false: it is the same everywhere,
// and only the first is filled.
bool line_dcg(const MovingQuery& q) noexcept {
  for (std::size_t i = 0; i < q.n; ++i) {
    const double a = q.score[i] + q.least * q.slope[i], b = q.score[i] + q.most * q.slope[i];
    q.low[i] = smaller(a, b);
    q.high[i] = larger(a, b);
  }
  const std::size_t n = keep_reachable(q);
  if (!find_reach(q, n)) {  // who is in front of whom is settled, but for documents of equal gain
    double dcg = 0.0;
    for (std::size_t r = 0; r < q.n_top; ++r) dcg += q.gain[r] * q.discount[r];
    q.dcg[0] = dcg;
    return false;
  }
  const std::size_t n_vectors = (q.n_lanes + V::width - 1) / V::width;
  std::size_t done = 0;
  for (; n_vectors - done >= kMostVectors; done += kMostVectors) evaluate<kMostVectors>(q, n, done * V::width);
  switch (n_vectors - done) {
    case 1:
      evaluate<1>(q, n, done * V::width);
      break;
    case 2:
      evaluate<2>(q, n, done * V::width);
      break;
    case 3:
      evaluate<3>(q, n, done * V::width);
      break;
    case 4:
      evaluate<4>(q, n, done * V::width);
      break;
    default:
      break;
  }
  return true;
}

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::lines
