// Histograms of gradients, compiled once per instruction set.
//
// A packed histogram entry holds two sums of whole numbers in 64 bits: the gradient, signed, in the upper half and the
// hessian, never negative, in the lower. One addition updates both. It is added to two doubles before either sum can
// leave its half (see grower.hpp), so the upper half never sees a carry that it should not.

// Add n documents of a node to the histograms of one group of kGroup features. Those of all features lie side by side,
// bin by bin: features are often alike, and then their entries are in the same cache line.
//   IN  bins  bins of the group, kGroup bytes a document      IN  rows  documents of the node
//   IN  gh    packed gradient and hessian, in the order of rows
//   IN  half  the group has kOctet features at most
//   OUT out   kBins times kGroup entries, zeroed by the caller
template <bool kHalf>
static void accumulate_features(const std::uint8_t* bins, const std::uint32_t* rows, std::size_t n,
                                const std::int64_t* gh, std::int64_t* out) noexcept {
  constexpr std::size_t kAhead = 48;  // rows of a small node lie far apart: fetch them in time
  constexpr int kRows = 4, kFeatures = kHalf ? kOctet : kGroup;
  const auto row_of = [&](std::size_t i) { return bins + static_cast<std::size_t>(rows[i]) * kGroup; };
  // One document after the other, feature by feature: stores to the same cache line follow each other, and are one.
  const auto add = [&](const std::uint8_t* row, std::int64_t value) {
#pragma GCC unroll 16
    for (int k = 0; k < kFeatures; ++k) out[k + kGroup * static_cast<std::size_t>(row[k])] += value;
  };
  std::size_t i = 0;
  for (; i + kAhead + kRows <= n; i += kRows) {
    const std::uint8_t* row[kRows];
    std::int64_t value[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      __builtin_prefetch(row_of(i + kAhead + static_cast<std::size_t>(r)));
      row[r] = row_of(i + static_cast<std::size_t>(r));
      value[r] = gh[i + static_cast<std::size_t>(r)];
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) add(row[r], value[r]);
  }
  for (; i < n; ++i) add(row_of(i), gh[i]);
}
static void accumulate(const std::uint8_t* bins, const std::uint32_t* rows, std::size_t n, const std::int64_t* gh,
                       bool half, std::int64_t* out) noexcept {
  (half ? accumulate_features<true> : accumulate_features<false>)(bins, rows, n, gh, out);
}

// Add or subtract the histograms of an octet of features.
template <class T>
static void add_octets(T* to, const T* sums, std::size_t n_bins) noexcept {
  for (std::size_t b = 0; b < n_bins; ++b, to += kGroup, sums += kGroup) {
    T sum[kOctet];
    for (int k = 0; k < kOctet; ++k) sum[k] = to[k] + sums[k];
    __builtin_memcpy(to, sum, sizeof sum);
  }
}
template <class T>
static void subtract_octets(T* from, const T* sums, std::size_t n_bins) noexcept {
  for (std::size_t b = 0; b < n_bins; ++b, from += kGroup, sums += kGroup) {
    T rest[kOctet];
    for (int k = 0; k < kOctet; ++k) rest[k] = from[k] - sums[k];
    __builtin_memcpy(from, rest, sizeof rest);
  }
}

// A packed sum as two doubles, by putting the halves into the mantissa of 2^52: exact, and in instructions that every
// vector unit has (there is no 64-bit arithmetic shift in AVX2).
static inline double double_of(std::uint64_t bits) {
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
static inline double gradient_of(std::int64_t sum) {
  constexpr std::uint64_t kMagic = 0x4330000080000000u;  // 2^52 + 2^31: adding flips the sign bit of the half
  return double_of((static_cast<std::uint64_t>(sum) >> 32) ^ kMagic) - 4503601774854144.0;
}
static inline double hessian_of(std::int64_t sum) {
  return double_of((static_cast<std::uint64_t>(sum) & 0xffffffffu) | 0x4330000000000000u) - 4503599627370496.0;
}

// The same side by side.
static inline VectorOf<double>::Scores gradients_of(Bits sum) {
  const Bits bits = (sum >> 32) ^ (Bits{} + 0x4330000080000000u);
  return VectorOf<double>::read<VectorOf<double>::Scores>(&bits) - 4503601774854144.0;
}
static inline VectorOf<double>::Scores hessians_of(Bits sum) {
  const Bits bits = (sum & (Bits{} + 0xffffffffu)) | (Bits{} + 0x4330000000000000u);
  return VectorOf<double>::read<VectorOf<double>::Scores>(&bits) - 4503599627370496.0;
}
static inline VectorOf<double>::Counts choose_counts(VectorOf<double>::Counts mask, VectorOf<double>::Counts a,
                                                     VectorOf<double>::Counts b) {
  return (mask & a) | (~mask & b);
}

// Add packed sums to wide ones.
static void widen(const std::int64_t* packed, std::size_t n, double* gradient, double* hessian) noexcept {
  for (std::size_t b = 0; b < n; ++b) {
    gradient[b] += gradient_of(packed[b]);
    hessian[b] += hessian_of(packed[b]);
  }
}

// Gradients and hessians of a node's documents, side by side, and their sums; at most 2^20 documents at a time.
//   OUT out  null: only the sums
static NodeSums gather_gradients(const std::int64_t* gh, const std::uint32_t* rows, std::size_t n,
                                 std::int64_t* out) noexcept {
  constexpr std::size_t kAhead = 64;
  NodeSums sums;
  const auto add = [&](std::size_t i) {
    const std::int64_t value = gh[rows[i]], gradient = value >> 32;
    if (out) out[i] = value;
    sums.gradient += gradient;
    sums.hessian += static_cast<std::int64_t>(static_cast<std::uint64_t>(value) & 0xffffffffu);
    sums.magnitude += gradient < 0 ? -gradient : gradient;
  };
  // Block by block, the next one but one fetched in time: vector instructions would have no room between prefetches.
  std::size_t i = 0;
  for (; i + 2 * kAhead <= n; i += kAhead) {
    for (std::size_t k = i + kAhead; k < i + 2 * kAhead; ++k) __builtin_prefetch(gh + rows[k]);
    for (std::size_t k = i; k < i + kAhead; ++k) add(k);
  }
  for (; i < n; ++i) add(i);
  return sums;
}

// Divide documents: those that go left, and the others, each in their old order. Returns how many go left.
//   IN  bins   of the feature: document i at bins[i * kGroup]
//   OUT left   may be rows; OUT right; both have kPartitionRoom entries more than they need
static std::size_t partition(const std::uint8_t* bins, const std::uint32_t* rows, std::size_t n, const Side& side,
                             std::uint32_t* left, std::uint32_t* right) noexcept {
  constexpr std::size_t kAhead = 128;
  const auto fetch = [&](std::size_t j) { __builtin_prefetch(bins + static_cast<std::size_t>(rows[j]) * kGroup); };
  std::size_t n_left = 0, i = 0;
#if defined(__AVX512F__) && defined(__AVX512BW__)
  const __m512i bin = _mm512_set1_epi32(side.bin), missing = _mm512_set1_epi32(side.missing);
  const __m512i low_byte = _mm512_set1_epi32(0xff);
  const __mmask16 missing_left = side.missing_left ? 0xffff : 0;
  // Four bytes are read where one is wanted, so the last documents are left to the loop below, as are rows whose places
  // have too many digits.
  const bool in_reach = n > 0 && rows[n - 1] < std::uint32_t{1} << 30;
  for (; in_reach && i + 32 <= n; i += 16) {
    if (i + kAhead + 16 <= n) {
      for (std::size_t k = i + kAhead; k < i + kAhead + 16; ++k) fetch(k);
    }
    const __m512i row = _mm512_loadu_si512(rows + i);
    const __m512i at = _mm512_add_epi32(row, row);  // in steps of eight bytes
    static_assert(kGroup == 16);
    const __m512i value = _mm512_and_si512(_mm512_i32gather_epi32(at, bins, 8), low_byte);
    const __mmask16 is_missing = _mm512_cmpeq_epi32_mask(value, missing);
    const __mmask16 below = _mm512_cmple_epi32_mask(value, bin);
    const __mmask16 goes_left = static_cast<__mmask16>((below & ~is_missing) | (is_missing & missing_left));
    _mm512_storeu_si512(left + n_left, _mm512_maskz_compress_epi32(goes_left, row));
    _mm512_storeu_si512(right + (i - n_left), _mm512_maskz_compress_epi32(static_cast<__mmask16>(~goes_left), row));
    n_left += static_cast<std::size_t>(__builtin_popcount(goes_left));
  }
#endif
  for (; i < n; ++i) {
    if (i + kAhead < n) fetch(i + kAhead);
    const std::uint32_t row = rows[i];
    const std::int32_t value = bins[static_cast<std::size_t>(row) * kGroup];
    const std::size_t goes_left = value == side.missing ? side.missing_left : value <= side.bin;
    left[n_left] = row;
    right[i - n_left] = row;
    n_left += goes_left;
  }
  return n_left;
}

// Gain of every split whose left side sums to left[i]; all sums are whole numbers below 2^53.
static void gains_of(const double* left_gradient, const double* left_hessian, std::size_t n, double total_gradient,
                     double total_hessian, const SplitRules& rules, double* gain) {
  constexpr double kNone = -__builtin_huge_val();
  const double g_unit = rules.gradient_unit, h_unit = rules.hessian_unit, l2 = rules.l2, floor = rules.min_hessian;
  const double g = total_gradient * g_unit, h = total_hessian * h_unit;
  const double parent = g * g / (h + l2);
  for (std::size_t i = 0; i < n; ++i) {
    const double gl = left_gradient[i] * g_unit, gr = (total_gradient - left_gradient[i]) * g_unit;
    const double hl = left_hessian[i] * h_unit, hr = (total_hessian - left_hessian[i]) * h_unit;
    const double dl = hl + l2, dr = hr + l2;
    const double value = (gl * gl * dr + gr * gr * dl) / (dl * dr) - parent;  // one division for two quotients
    gain[i] = hl >= floor ? value : kNone;
    gain[i] = hr >= floor ? gain[i] : kNone;
  }
}

// The same where leaf values must stay between bounds, and rise or fall from left to right if a direction is given:
// what the values as far as they may go gain, over the node's own value, kept between the same bounds.
static void bounded_gains_of(const double* left_gradient, const double* left_hessian, std::size_t n,
                             double total_gradient, double total_hessian, const SplitRules& rules,
                             const ValueBounds& bounds, double* gain) {
  constexpr double kNone = -__builtin_huge_val();
  const double g_unit = rules.gradient_unit, h_unit = rules.hessian_unit, l2 = rules.l2, floor = rules.min_hessian;
  const auto within = [&](double value) {
    value = value > bounds.lower ? value : bounds.lower;
    return value < bounds.upper ? value : bounds.upper;
  };
  const auto fall = [&](double g, double d, double value) { return (2.0 * g - d * value) * value; };  // of the loss
  const double g = total_gradient * g_unit, d = total_hessian * h_unit + l2;
  const double parent = fall(g, d, within(g / d)), direction = bounds.direction;
  for (std::size_t i = 0; i < n; ++i) {
    const double gl = left_gradient[i] * g_unit, gr = (total_gradient - left_gradient[i]) * g_unit;
    const double hl = left_hessian[i] * h_unit, hr = (total_hessian - left_hessian[i]) * h_unit;
    const double dl = hl + l2, dr = hr + l2;
    const double left = within(gl / dl), right = within(gr / dr);
    gain[i] = fall(gl, dl, left) + fall(gr, dr, right) - parent;
    gain[i] = direction * left <= direction * right ? gain[i] : kNone;
    gain[i] = hl >= floor ? gain[i] : kNone;
    gain[i] = hr >= floor ? gain[i] : kNone;
  }
}

// The largest of n gains; there is room for, and kNone in, a multiple of 8.
static double largest(const double* gain, std::size_t n) {
  double best[8];
  for (int k = 0; k < 8; ++k) best[k] = -__builtin_huge_val();
  for (std::size_t i = 0; i < n; i += 8) {
    for (int k = 0; k < 8; ++k) best[k] = gain[i + k] > best[k] ? gain[i + k] : best[k];
  }
  for (int k = 1; k < 8; ++k) best[0] = best[k] > best[0] ? best[k] : best[0];
  return best[0];
}

// Search the splits "bin <= b" of one feature.
//   IN  gradient, hessian  sums of n_values bins in ascending order, then of missing values if has_missing
//   IN  counts  documents per bin in the same order, or null when no count is to be checked
//   IN  total   sums over the node
//   IN  gains   gains(left gradients, left hessians, n, gain): gain of every split
// Equal gains go to the lower bin, and to missing values on the right.
template <class Gains>
static inline FeatureSplit search_splits(const double* gradient, const double* hessian, const std::uint32_t* counts,
                                         std::int32_t n_values, bool has_missing, const NodeSums& total,
                                         const SplitRules& rules, const Gains& gains) {
  constexpr double kNone = -__builtin_huge_val();
  FeatureSplit best{kNone, -1, false, 0.0};
  const double total_hessian = static_cast<double>(total.hessian);
  const double missing_gradient = has_missing ? gradient[n_values] : 0.0;
  const double missing_hessian = has_missing ? hessian[n_values] : 0.0;
  const std::uint32_t missing_docs = has_missing && counts ? counts[n_values] : 0;

  // Splits behind an empty bin equal those before it, and the lower bin wins: only bins that hold something are looked
  // at. In a small node these are few.
  std::int32_t bin[kBins + 8];
  double left_gradient[kBins + 8], left_hessian[kBins + 8];
  std::uint32_t left_docs[kBins];
  std::size_t n = 0;
  for (std::int32_t b = 0; b < n_values; ++b) {
    bin[n] = b;
    n += gradient[b] != 0.0 || hessian[b] != 0.0 || (counts && counts[b] != 0);
  }
  double running_gradient = 0.0, running_hessian = 0.0;
  std::uint32_t running_docs = 0;
  for (std::size_t i = 0; i < n; ++i) {
    left_gradient[i] = running_gradient += gradient[bin[i]];
    left_hessian[i] = running_hessian += hessian[bin[i]];
    if (counts) left_docs[i] = running_docs += counts[bin[i]];
  }
  const std::uint32_t n_docs = running_docs + missing_docs;

  double gain[kBins + 8];
  // With missing values a second pass sends them left; the last bin alone against them is a split of the first pass.
  const bool both_ways = missing_gradient != 0.0 || missing_hessian != 0.0 || missing_docs != 0;
  for (int pass = 0; pass < (both_ways ? 2 : 1); ++pass) {
    const bool missing_right = pass == 0;
    const std::size_t n_splits = n - (n > 0 && !(both_ways && missing_right) ? 1 : 0);
    if (!missing_right) {
      for (std::size_t i = 0; i < n_splits; ++i) left_gradient[i] += missing_gradient;
      for (std::size_t i = 0; i < n_splits; ++i) left_hessian[i] += missing_hessian;
    }
    gains(left_gradient, left_hessian, n_splits, gain);
    if (counts) {
      const std::uint32_t extra = missing_right ? 0 : missing_docs;
      for (std::size_t i = 0; i < n_splits; ++i) {
        const std::uint32_t docs = left_docs[i] + extra;
        if (docs < rules.min_docs || n_docs - docs < rules.min_docs) gain[i] = kNone;
      }
    }
    for (std::size_t i = n_splits; i < n_splits + 8; ++i) gain[i] = kNone;
    const double top = largest(gain, n_splits);
    if (top > best.gain) {
      std::size_t i = 0;
      while (gain[i] != top) ++i;
      best = {top, bin[i], !missing_right, left_hessian[i]};
      if (!both_ways) {  // no missing value here: one that comes later follows the heavier child
        best.missing_left = left_hessian[i] > total_hessian - left_hessian[i];
      }
    }
  }
  return best;
}

static FeatureSplit best_split(const double* gradient, const double* hessian, const std::uint32_t* counts,
                               std::int32_t n_values, bool has_missing, const NodeSums& total,
                               const SplitRules& rules) noexcept {
  const double total_gradient = static_cast<double>(total.gradient), total_hessian = static_cast<double>(total.hessian);
  return search_splits(gradient, hessian, counts, n_values, has_missing, total, rules,
                       [&](const double* left_gradient, const double* left_hessian, std::size_t n, double* gain) {
                         gains_of(left_gradient, left_hessian, n, total_gradient, total_hessian, rules, gain);
                       });
}

static FeatureSplit best_bounded_split(const double* gradient, const double* hessian, const std::uint32_t* counts,
                                       std::int32_t n_values, bool has_missing, const NodeSums& total,
                                       const SplitRules& rules, const ValueBounds& bounds) noexcept {
  const double total_gradient = static_cast<double>(total.gradient), total_hessian = static_cast<double>(total.hessian);
  return search_splits(gradient, hessian, counts, n_values, has_missing, total, rules,
                       [&](const double* left_gradient, const double* left_hessian, std::size_t n, double* gain) {
                         bounded_gains_of(left_gradient, left_hessian, n, total_gradient, total_hessian, rules, bounds,
                                          gain);
                       });
}

// The same as best_split for the features of an octet, one per lane, where no documents are counted and the smallest
// hessian sum of a child is above 0. Every bin is looked at, since splits beside an empty bin are equal and the lower
// one wins; a side without documents has too small a sum.
struct LaneSplits {
  VectorOf<double>::Scores gain, left_hessian;
  VectorOf<double>::Counts bin;
};
template <bool kPacked, bool kMayMiss>
static inline __attribute__((always_inline)) LaneSplits search_lanes(const OctetSums& sums, std::size_t lane,
                                                                     const Octet& octet, const double* missing_gradient,
                                                                     const double* missing_hessian,
                                                                     const NodeSums& total, const SplitRules& rules) {
  using V = VectorOf<double>;
  using Scores = V::Scores;
  using Counts = V::Counts;
  const double all_gradient = static_cast<double>(total.gradient), all_hessian = static_cast<double>(total.hessian);
  const double g = all_gradient * rules.gradient_unit, h = all_hessian * rules.hessian_unit;
  const Scores parent = V::repeat(g * g / (h + rules.l2)), none = V::repeat(-__builtin_huge_val());
  const Scores g_unit = V::repeat(rules.gradient_unit), h_unit = V::repeat(rules.hessian_unit);
  const Scores l2 = V::repeat(rules.l2), floor = V::repeat(rules.min_hessian);
  const Scores total_gradient = V::repeat(all_gradient), total_hessian = V::repeat(all_hessian);
  const Counts n_values = V::load(octet.n_values + lane);
  Bits sum{};
  Scores gradient{}, hessian{};
  LaneSplits best{none, Scores{}, V::repeat(std::int64_t{-1})};
  for (std::size_t b = 0; b < octet.n_bins; ++b) {
    const std::size_t at = b * kGroup + lane;
    if constexpr (kPacked) {
      sum += V::read<Bits>(sums.packed + at);
      gradient = gradients_of(sum);
      hessian = hessians_of(sum);
    } else {
      gradient += V::load(sums.gradient + at);
      hessian += V::load(sums.hessian + at);
    }
    Scores left_gradient = gradient, left_hessian = hessian;
    if constexpr (kMayMiss) {
      left_gradient += V::load(missing_gradient + lane);
      left_hessian += V::load(missing_hessian + lane);
    }
    const Scores gl = left_gradient * g_unit, gr = (total_gradient - left_gradient) * g_unit;
    const Scores hl = left_hessian * h_unit, hr = (total_hessian - left_hessian) * h_unit;
    const Scores dl = hl + l2, dr = hr + l2;
    Scores gain = (gl * gl * dr + gr * gr * dl) / (dl * dr) - parent;  // as in gains_of
    gain = V::select(V::less(hl, floor), none, gain);
    gain = V::select(V::less(hr, floor), none, gain);
    const Counts bin = V::repeat(static_cast<std::int64_t>(b));
    if constexpr (kMayMiss) gain = V::select(V::less(bin, n_values), gain, none);
    const Counts better = V::less(best.gain, gain);
    best.gain = V::select(better, gain, best.gain);
    best.left_hessian = V::select(better, left_hessian, best.left_hessian);
    best.bin = choose_counts(better, bin, best.bin);
  }
  return best;
}

template <bool kPacked>
static void best_splits_of(const OctetSums& sums, const Octet& octet, const NodeSums& total, const SplitRules& rules,
                           FeatureSplit* best) {
  using V = VectorOf<double>;
  const double total_hessian = static_cast<double>(total.hessian);
  alignas(64) double nothing[kOctet] = {}, gradient[kOctet] = {}, hessian[kOctet] = {};
  bool both_ways[kOctet] = {}, any_both_ways = false;
  for (int k = 0; octet.may_miss && k < kOctet; ++k) {
    if (!octet.has_missing[k]) continue;
    const std::size_t at = static_cast<std::size_t>(octet.n_values[k]) * kGroup + static_cast<std::size_t>(k);
    gradient[k] = kPacked ? gradient_of(sums.packed[at]) : sums.gradient[at];
    hessian[k] = kPacked ? hessian_of(sums.packed[at]) : sums.hessian[at];
    both_ways[k] = gradient[k] != 0.0 || hessian[k] != 0.0;
    any_both_ways = any_both_ways || both_ways[k];
  }
  double gain[kOctet], left_hessian[kOctet];
  std::int64_t bin[kOctet];
  const auto keep = [&](std::size_t lane, const LaneSplits& found) {
    V::store(gain + lane, found.gain);
    V::store(left_hessian + lane, found.left_hessian);
    V::store(bin + lane, found.bin);
  };
  for (std::size_t lane = 0; lane < kOctet; lane += V::width) {
    keep(lane, octet.may_miss ? search_lanes<kPacked, true>(sums, lane, octet, nothing, nothing, total, rules)
                              : search_lanes<kPacked, false>(sums, lane, octet, nothing, nothing, total, rules));
  }
  for (int k = 0; k < kOctet; ++k) {
    best[k] = {gain[k], static_cast<std::int32_t>(bin[k]), false, left_hessian[k]};
    if (bin[k] >= 0 && !both_ways[k]) best[k].missing_left = left_hessian[k] > total_hessian - left_hessian[k];
  }
  if (!any_both_ways) return;
  for (std::size_t lane = 0; lane < kOctet; lane += V::width) {
    keep(lane, search_lanes<kPacked, true>(sums, lane, octet, gradient, hessian, total, rules));
  }
  for (int k = 0; k < kOctet; ++k) {
    if (both_ways[k] && gain[k] > best[k].gain) {
      best[k] = {gain[k], static_cast<std::int32_t>(bin[k]), true, left_hessian[k]};
    }
  }
}

static void best_splits(const OctetSums& sums, const Octet& octet, const NodeSums& total, const SplitRules& rules,
                        FeatureSplit* best) noexcept {
  (sums.packed != nullptr ? best_splits_of<true> : best_splits_of<false>)(sums, octet, total, rules, best);
}
