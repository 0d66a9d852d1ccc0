// The pairs of one query, compiled once per instruction set.
//
// For documents i ranked above j, with e = exp(score_j - score_i) <= 1 (scores already multiplied by sigma):
//
//   i better labelled: rho = 1 / (1 + exp(score_i - score_j)) = e / (1 + e)
//   j better labelled: rho = 1 / (1 + exp(score_j - score_i)) = 1 / (1 + e)
//   either way:        rho * (1 - rho) = e / (1 + e)^2
//
// The exponential of a difference is a quotient, so n exponentials serve 32 n pairs. With the signed
// z = (gain_i - gain_j) * (discount_i - discount_j), whose sign says who is better, b = z / (1 + e) and a = b * e, the
// signed lambda of i is a when z > 0 and b when z < 0: the smaller of the two, because e <= 1. So no pair branches.
//
// Other measures have other z (swap_weights.hpp): (gain_i - gain_j) * factor_i * (upper_i - lower_j), the last of which
// is never negative. Where all pairs are equal z is the sign of gain_i - gain_j.
//
// Sums run over 8 lanes in a fixed order, whatever a register holds, so every instruction set gives the same bits.

#if defined(__AVX__)
constexpr int kWidth = 8;  // floats in a register
#else
constexpr int kWidth = 4;  // 8 would be taken apart into single floats where two are compared
#endif
constexpr int kParts = kLanes / kWidth;
typedef float Part __attribute__((vector_size(4 * kWidth), may_alias));
typedef std::uint32_t PartBits __attribute__((vector_size(4 * kWidth), may_alias));

constexpr float kFar = 80.0f;   // exponentials stay above exp(-kFar), so that none is denormal
constexpr float kSpan = 16.0f;  // ranks that share exponentials are no further apart: pairs are exact up to a
                                // difference of kFar - kSpan, where rho is 1e-28

static inline Part& part(float* at, int p) { return reinterpret_cast<Part*>(at)[p]; }
static inline const Part& part(const float* at, int p) { return reinterpret_cast<const Part*>(at)[p]; }

// The 8 lanes of a sum, always in this order.
static inline double sum_lanes(const Part* parts) {
  typedef float Half __attribute__((vector_size(2 * kLanes)));
  Half half[2];
  __builtin_memcpy(half, parts, sizeof half);
  const Half sum = half[0] + half[1];
  return static_cast<double>((sum[0] + sum[2]) + (sum[1] + sum[3]));
}

// after[m] has 1 in the lanes after m, 0 in the others.
struct LaneMasks {
  alignas(4 * kLanes) float after[kLanes][kLanes];
};
static constexpr LaneMasks kMasks = [] {
  LaneMasks masks{};
  for (int m = 0; m < kLanes; ++m) {
    for (int lane = 0; lane < kLanes; ++lane) masks.after[m][lane] = lane > m ? 1.0f : 0.0f;
  }
  return masks;
}();

// Scores of [begin, end), whole blocks, relative to that of rank `first`, times sigma, as sums of two floats:
// differences keep about 48 bits. Ranks before `first` are never counted, but must not be infinite.
static void split_scores(const RankedQuery& q, std::size_t first, std::size_t begin, std::size_t end) {
  constexpr double kLowest = -1e30;
  const double top = q.ranked_score[first], sigma = q.sigma;
  const std::size_t last = end < q.n ? end : q.n;
  for (std::size_t r = begin; r < last; ++r) {
    const double x = sigma * (q.ranked_score[r] - top);
    const double above = x > kLowest ? x : kLowest;
    const double exact = above < 0.0 ? above : 0.0;
    q.score[r] = static_cast<float>(exact);
    q.score_rest[r] = static_cast<float>(exact - static_cast<double>(q.score[r]));
  }
  for (std::size_t r = q.n; r < end; ++r) {
    q.score[r] = q.score[q.n - 1];
    q.score_rest[r] = 0.0f;
  }
}

// exponential[j] = exp(score_j - score_first), once scores are split; 0 in the padding.
static void exponentials(const RankedQuery& q, std::size_t begin, std::size_t end) {
  for (std::size_t j = begin; j < end; j += kWidth) {
    const Part lowest = Part{} - kFar;
    Part x = part(q.score + j, 0);
    x = x > lowest ? x : lowest;
    // x = k ln 2 + r: adding 1.5 * 2^23 rounds k to an integer and leaves it in the low bits.
    const Part shifted = x * 1.44269504f + 12582912.0f;
    const Part k = shifted - 12582912.0f;
    const Part r = (x - k * 0.693145751953125f) - k * 1.42860682e-6f;  // ln 2; the first product is exact
    // Taylor's series; |r| < 0.35, so what is left out is below 6e-9.
    Part y = r * (1.0f / 5040) + 1.0f / 720;
    y = y * r + 1.0f / 120;
    y = y * r + 1.0f / 24;
    y = y * r + 1.0f / 6;
    y = y * r + 0.5f;
    y = y * r + 1.0f;
    y = y * r + 1.0f;
    part(q.exponential + j, 0) = (Part)((PartBits)y + ((PartBits)shifted << 23));
  }
  for (std::size_t j = q.n; j < end; ++j) q.exponential[j] = 0.0f;
}

// Lambdas and weights of the pairs (i, j), j in [begin, end), whole blocks: added to j in single precision, their sums
// for i are returned. Lanes j <= i of the first block count nothing.
//   kDivide  divide each pair by q.distance_offset + score_i - score_j
//   kKind    what z is
template <bool kDivide, PairKind kKind>
static inline __attribute__((always_inline)) PairSums add_pairs(const RankedQuery& q, std::size_t i, std::size_t begin,
                                                                std::size_t end) {
  constexpr bool kSize = kDivide || kKind == PairKind::equal;
  const float score = q.score[i], score_rest = q.score_rest[i], gain = q.gain[i];
  const float discount = kKind == PairKind::swap ? q.upper[i] : q.discount[i];
  const float factor = kKind == PairKind::swap ? q.factor[i] : 1.0f;
  const float inverse = 1.0f / q.exponential[i], distance_offset = q.distance_offset;
  const float *scores = q.score, *score_rests = q.score_rest, *gains = q.gain, *discounts = q.discount;
  const float* exponential = q.exponential;
  float *lambda_lost = q.lambda_lost, *weight_won = q.weight_won;
  Part lambda_i[kParts] = {}, weight_i[kParts] = {}, size[kParts] = {};
  const auto add = [&](std::size_t j, int p, const Part* counts) __attribute__((always_inline)) {
    const Part e = part(exponential + j, p) * inverse;
    const Part u = 1.0f + e;
    Part z = gain - part(gains + j, p);
    if constexpr (kKind == PairKind::equal) {
      const Part none = {}, one = none + 1.0f;
      z = z > none ? one : (z < none ? -one : none);
    } else if constexpr (kKind == PairKind::swap) {
      const Part none = {}, fall = discount - part(discounts + j, p);
      z = factor * z * (fall > none ? fall : none);
    } else {
      z = z * (discount - part(discounts + j, p));
    }
    Part t, distance = (score - part(scores + j, p)) + (score_rest - part(score_rests + j, p));
    if (counts != nullptr) {
      z = z * *counts;
      distance = distance * *counts;
    }
    if constexpr (kDivide) {
      const Part v = distance + distance_offset;
      const Part r = 1.0f / (u * v);  // one division for 1/u and 1/v
      t = r * v;
      z = z * (r * u);
    } else {
      t = 1.0f / u;
    }
    const Part b = z * t;
    const Part a = b * e;
    const Part lambda = a < b ? a : b;
    const Part weight = (Part)((PartBits)a & 0x7fffffffu) * t;
    lambda_i[p] += lambda;
    weight_i[p] += weight;
    if constexpr (kSize) size[p] += (Part)((PartBits)lambda & 0x7fffffffu);
    part(lambda_lost + j, p) += lambda;
    part(weight_won + j, p) += weight;
  };
  std::size_t j = begin;
  if (begin <= i) {
    for (int p = 0; p < kParts; ++p) add(j, p, &part(kMasks.after[i - begin], p));
    j += kLanes;
  }
  for (; j < end; j += kLanes) {
    for (int p = 0; p < kParts; ++p) add(j, p, nullptr);
  }
  return {sum_lanes(lambda_i), sum_lanes(weight_i), kSize ? sum_lanes(size) : 0.0};
}

// The end of the ranks, from `first` on, that share exponentials.
static std::size_t end_of_rows(const RankedQuery& q, std::size_t first) {
  std::size_t last = first + 1;
  while (last < q.n_top && last < first + kPairRows &&
         q.sigma * (q.ranked_score[first] - q.ranked_score[last]) < kSpan) {
    ++last;
  }
  return last;
}

// Lambdas and weights of ranks [begin, end), which were counted in single precision.
static void take_over(const RankedQuery& q, std::size_t begin, std::size_t end) {
  for (std::size_t j = begin; j < end; ++j) {
    q.lambda[j] -= static_cast<double>(q.lambda_lost[j]);
    q.weight[j] += static_cast<double>(q.weight_won[j]);
  }
}

template <bool kDivide, PairKind kKind>
static double add_all_pairs(const RankedQuery& q) {
  const std::size_t n_padded = (q.n + kLanes - 1) / kLanes * kLanes;
  double size = 0.0;
  std::size_t n_pairs = 0;  // since the last look
  for (std::size_t r = q.n; r < n_padded; ++r) q.gain[r] = 0.0f;
  for (std::size_t j = 0; j < q.n; ++j) q.lambda[j] = q.weight[j] = 0.0;
  for (std::size_t first = 0, last; first < q.n_top; first = last) {
    last = end_of_rows(q, first);
    const std::size_t start = first / kLanes * kLanes;
    split_scores(q, first, start, n_padded);
    exponentials(q, start, n_padded);
    for (std::size_t j = start; j < n_padded; ++j) q.lambda_lost[j] = q.weight_won[j] = 0.0f;
    for (std::size_t begin = start; begin < n_padded; begin += kPairChunk) {
      const std::size_t end = begin + kPairChunk < n_padded ? begin + kPairChunk : n_padded;
      for (std::size_t i = first; i < last; ++i) {
        const std::size_t next = (i + 1) / kLanes * kLanes;
        if (next >= end) continue;
        const PairSums sums = add_pairs<kDivide, kKind>(q, i, next > begin ? next : begin, end);
        q.lambda[i] += sums.lambda;
        q.weight[i] += sums.weight;
        size += sums.size;
      }
    }
    take_over(q, start, q.n);
    n_pairs += (last - first) * (n_padded - start);
    if (n_pairs >= kLookAfter) {
      n_pairs = 0;
      if (q.stop.asked(q.stop.context)) return size;
    }
  }
  return size;
}

template <PairKind kKind>
static double pairs_of_kind(const RankedQuery& q) {
  return q.distance_offset > 0.0f ? add_all_pairs<true, kKind>(q) : add_all_pairs<false, kKind>(q);
}

static double pair_lambdas(const RankedQuery& q) noexcept {
  switch (q.kind) {
    case PairKind::swap:
      return pairs_of_kind<PairKind::swap>(q);
    case PairKind::equal:
      return add_all_pairs<false, PairKind::equal>(q);
    default:
      return pairs_of_kind<PairKind::discounts>(q);
  }
}

// The same in parts, which may be worked on at the same time: what add_all_pairs does for some ranks i.
static PairRows begin_rows(const RankedQuery& q, std::size_t first) noexcept {
  const std::size_t n_padded = (q.n + kLanes - 1) / kLanes * kLanes;
  PairRows rows{first, end_of_rows(q, first), first / kLanes * kLanes, 0};
  rows.ready = (rows.last + kLanes - 1) / kLanes * kLanes;
  if (rows.ready > n_padded) rows.ready = n_padded;
  split_scores(q, first, rows.start, rows.ready);
  exponentials(q, rows.start, rows.ready);
  return rows;
}

template <bool kDivide, PairKind kKind>
static void add_part(const RankedQuery& q, const PairRows& rows, std::size_t begin, std::size_t end, PairSums* sums) {
  const std::size_t fresh = begin > rows.ready ? begin : rows.ready;
  if (fresh < end) {
    split_scores(q, rows.first, fresh, end);
    exponentials(q, fresh, end);
  }
  for (std::size_t j = begin; j < end; ++j) q.lambda_lost[j] = q.weight_won[j] = 0.0f;
  for (std::size_t chunk = begin; chunk < end; chunk += kPairChunk) {
    const std::size_t chunk_end = chunk + kPairChunk < end ? chunk + kPairChunk : end;
    for (std::size_t i = rows.first; i < rows.last; ++i) {
      const std::size_t next = (i + 1) / kLanes * kLanes;
      *sums++ = next < chunk_end ? add_pairs<kDivide, kKind>(q, i, next > chunk ? next : chunk, chunk_end) : PairSums{};
    }
  }
  take_over(q, begin > rows.last ? begin : rows.last, end < q.n ? end : q.n);
}

template <PairKind kKind>
static void part_of_kind(const RankedQuery& q, const PairRows& rows, std::size_t begin, std::size_t end,
                         PairSums* sums) {
  q.distance_offset > 0.0f ? add_part<true, kKind>(q, rows, begin, end, sums)
                           : add_part<false, kKind>(q, rows, begin, end, sums);
}

static void pairs_of_rows(const RankedQuery& q, const PairRows& rows, std::size_t begin, std::size_t end,
                          PairSums* sums) noexcept {
  switch (q.kind) {
    case PairKind::swap:
      return part_of_kind<PairKind::swap>(q, rows, begin, end, sums);
    case PairKind::equal:
      return add_part<false, PairKind::equal>(q, rows, begin, end, sums);
    default:
      return part_of_kind<PairKind::discounts>(q, rows, begin, end, sums);
  }
}

// Adds the sums of all chunks, in their order, to the ranks they are of; returns the sum of |lambda| continued.
static double end_rows(const RankedQuery& q, const PairRows& rows, const PairSums* sums, std::size_t n_chunks,
                       double size) noexcept {
  for (std::size_t chunk = 0; chunk < n_chunks; ++chunk) {
    for (std::size_t i = rows.first; i < rows.last; ++i, ++sums) {
      q.lambda[i] += sums->lambda;
      q.weight[i] += sums->weight;
      size += sums->size;
    }
  }
  take_over(q, rows.start, rows.last);
  return size;
}
