// Histograms of gradients, compiled once per instruction set.
//
// A histogram entry packs two sums of fixed-point numbers into 64 bits: the gradient, signed, in the upper half and
// the hessian, never negative, in the lower. One addition updates both. The scales are chosen per tree so that neither
// sum can leave its half (see grower.hpp), so the upper half never sees a carry that it should not.

// Add n documents of a node to the histograms of one group of kGroup features.
//   IN  bins  bins of the group, kGroup bytes a document      IN  rows  documents of the node
//   IN  gh    packed gradient and hessian, in the order of rows
//   OUT out   kGroup histograms of kBins entries, zeroed by the caller
static void accumulate(const std::uint8_t* bins, const std::uint32_t* rows, std::size_t n, const std::int64_t* gh,
                       std::int64_t* out) noexcept {
  constexpr std::size_t kAhead = 24;  // rows of a small node lie far apart: fetch them in time
  const auto add = [&](std::size_t i) {
    const std::uint8_t* row = bins + static_cast<std::size_t>(rows[i]) * kGroup;
    const std::int64_t value = gh[i];
    std::uint64_t words[2];
    __builtin_memcpy(words, row, sizeof words);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      out[k * kBins + static_cast<std::uint8_t>(words[0] >> (8 * k))] += value;
      out[(k + 8) * kBins + static_cast<std::uint8_t>(words[1] >> (8 * k))] += value;
    }
  };
  std::size_t i = 0;
  for (; i + kAhead < n; ++i) {
    __builtin_prefetch(bins + static_cast<std::size_t>(rows[i + kAhead]) * kGroup);
    add(i);
  }
  for (; i < n; ++i) add(i);
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

// Gain of every split whose left side sums to left[i].
static void gains_of(const std::int64_t* left, std::size_t n, std::int64_t total, const SplitRules& rules,
                     double* gain) {
  constexpr double kNone = -__builtin_huge_val();
  const double g_unit = rules.gradient_unit, h_unit = rules.hessian_unit, l2 = rules.l2, floor = rules.min_hessian;
  const double g = gradient_of(total) * g_unit, h = hessian_of(total) * h_unit;
  const double parent = g * g / (h + l2);
  for (std::size_t i = 0; i < n; ++i) {
    const double gl = gradient_of(left[i]) * g_unit, gr = gradient_of(total - left[i]) * g_unit;
    const double hl = hessian_of(left[i]) * h_unit, hr = hessian_of(total - left[i]) * h_unit;
    const double dl = hl + l2, dr = hr + l2;
    const double value = (gl * gl * dr + gr * gr * dl) / (dl * dr) - parent;  // one division for two quotients
    gain[i] = hl >= floor ? value : kNone;
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
//   IN  histogram  n_values entries for values in ascending order, then one for missing values if has_missing
//   IN  counts     documents per bin in the same order, or null when no count is to be checked
//   IN  total      sum over the node
// Equal gains go to the lower bin, and to missing values on the right.
static FeatureSplit best_split(const std::int64_t* histogram, const std::uint32_t* counts, std::int32_t n_values,
                               bool has_missing, std::int64_t total, const SplitRules& rules) noexcept {
  constexpr double kNone = -__builtin_huge_val();
  FeatureSplit best{kNone, -1, false};
  const std::int64_t missing = has_missing ? histogram[n_values] : 0;
  const std::uint32_t missing_docs = has_missing && counts ? counts[n_values] : 0;

  // Splits behind an empty bin equal those before it, and the lower bin wins: only bins that hold something are looked
  // at. In a small node these are few.
  std::int32_t bin[kBins + 8];
  std::int64_t left[kBins + 8];
  std::uint32_t left_docs[kBins];
  std::size_t n = 0;
  std::int64_t running = 0;
  std::uint32_t running_docs = 0;
  for (std::int32_t b = 0; b < n_values; ++b) {
    const std::int64_t entry = histogram[b];
    running += entry;
    bin[n] = b;
    left[n] = running;
    if (counts) left_docs[n] = running_docs += counts[b];
    n += entry != 0 || (counts && counts[b] != 0);
  }
  const std::uint32_t n_docs = running_docs + missing_docs;

  double gain[kBins + 8];
  // With missing values a second pass sends them left; the last bin alone against them is a split of the first pass.
  const bool both_ways = missing != 0 || missing_docs != 0;
  for (int pass = 0; pass < (both_ways ? 2 : 1); ++pass) {
    const bool missing_right = pass == 0;
    const std::size_t n_splits = n - (n > 0 && !(both_ways && missing_right) ? 1 : 0);
    if (!missing_right) {
      for (std::size_t i = 0; i < n_splits; ++i) left[i] += missing;
    }
    gains_of(left, n_splits, total, rules, gain);
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
      best = {top, bin[i], !missing_right};
      if (!both_ways) {  // no missing value here: one that comes later follows the heavier child
        best.missing_left = hessian_of(left[i]) > hessian_of(total - left[i]);
      }
    }
  }
  return best;
}
