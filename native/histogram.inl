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

// Search the splits "bin <= b" of one feature.
//   IN  histogram  n_values entries for values in ascending order, then one for missing values if has_missing
//   IN  counts     documents per bin in the same order, or null when no count is to be checked
//   IN  total      sum over the node
// Equal gains go to the lower bin, and to missing values on the right.
static FeatureSplit best_split(const std::int64_t* histogram, const std::uint32_t* counts, std::int32_t n_values,
                               bool has_missing, std::int64_t total, const SplitRules& rules) noexcept {
  const auto gradient = [&](std::int64_t sum) {
    return static_cast<double>(static_cast<std::int32_t>(sum >> 32)) * rules.gradient_unit;
  };
  const auto hessian = [&](std::int64_t sum) {
    return static_cast<double>(static_cast<std::uint32_t>(sum)) * rules.hessian_unit;
  };
  constexpr double kNone = -__builtin_huge_val();
  FeatureSplit best{kNone, -1, false};
  const std::int64_t missing = has_missing ? histogram[n_values] : 0;
  const std::uint32_t missing_docs = has_missing && counts ? counts[n_values] : 0;
  std::uint32_t n_docs = missing_docs;
  if (counts) {
    for (std::int32_t b = 0; b < n_values; ++b) n_docs += counts[b];
  }
  const double parent = gradient(total) * gradient(total) / (hessian(total) + rules.l2);

  double gain[kBins];
  std::int64_t left_sum[kBins];
  // With missing values a second pass sends them left; the last bin alone against them is a split of the first pass.
  const bool both_ways = missing != 0 || missing_docs != 0;
  for (int pass = 0; pass < (both_ways ? 2 : 1); ++pass) {
    const std::int32_t n_splits = n_values - 1 + (both_ways && pass == 0 ? 1 : 0);
    std::int64_t running = pass == 0 ? 0 : missing;
    for (std::int32_t b = 0; b < n_splits; ++b) left_sum[b] = running += histogram[b];
    for (std::int32_t b = 0; b < n_splits; ++b) {
      const double gl = gradient(left_sum[b]), gr = gradient(total - left_sum[b]);
      const double hl = hessian(left_sum[b]), hr = hessian(total - left_sum[b]);
      const double dl = hl + rules.l2, dr = hr + rules.l2;
      const double value = (gl * gl * dr + gr * gr * dl) / (dl * dr) - parent;  // one division for two quotients
      gain[b] = (hl >= rules.min_hessian) & (hr >= rules.min_hessian) ? value : kNone;
    }
    if (counts) {
      std::uint32_t left_docs = pass == 0 ? 0 : missing_docs;
      for (std::int32_t b = 0; b < n_splits; ++b) {
        left_docs += counts[b];
        if (left_docs < rules.min_docs || n_docs - left_docs < rules.min_docs) gain[b] = kNone;
      }
    }
    for (std::int32_t b = 0; b < n_splits; ++b) {
      if (gain[b] > best.gain) best = {gain[b], b, pass == 1};
    }
  }
  if (!both_ways && best.bin >= 0) {  // no missing value here: one that comes later follows the heavier child
    std::int64_t left = 0;
    for (std::int32_t b = 0; b <= best.bin; ++b) left += histogram[b];
    best.missing_left = hessian(left) > hessian(total - left);
  }
  return best;
}
