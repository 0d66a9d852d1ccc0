// Resampling of per-query differences: Fisher's randomisation test and the bootstrap of a mean.
//
// Differences are whole numbers (fixed point, chosen by the caller so that no sum overflows). Sums are exact then:
// they do not depend on the order of addition, and the caller can bound what rounding does to ties.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "interruption.hpp"
#include "parallel.hpp"
#include "random.hpp"

namespace rankwood {

// Permutations handled together; their sums stay in the first-level cache.
inline constexpr std::size_t permutations_per_block = 1024;
// Queries looked up at once: one byte of signs picks one of 256 sums.
inline constexpr std::size_t queries_per_group = 8;

struct SignFlips {
  const std::int64_t* magnitudes;  // |difference| of every query, their sum below 2^61
  std::size_t n_queries;
  std::uint64_t n_permutations;
  std::int64_t bound;  // count a permutation whose sum is at least this
  bool two_sided;      // or whose negated sum is
  bool enumerate;      // permutation p flips by the bits of p, else by random bits
  std::uint64_t seed;
};

// The sums of all subsets of up to 8 values: entry `bits` adds the values whose bit is set.
inline void subset_sums(const std::int64_t* values, std::size_t n, std::int64_t* sums) noexcept {
  sums[0] = 0;
  for (std::size_t k = 0, filled = 1; k < queries_per_group; ++k, filled *= 2) {
    const std::int64_t value = k < n ? values[k] : 0;
    for (std::size_t bits = 0; bits < filled; ++bits) sums[filled + bits] = sums[bits] + value;
  }
}

// Add one group of 8 queries to the n sums of a block whose first permutation is a multiple of 8: every random word
// holds the signs for 8 permutations.
inline void add_random_signs(const std::int64_t* subset, std::uint64_t key, std::uint64_t first, std::size_t n,
                             std::int64_t* sums) noexcept {
  for (std::size_t p = 0; p < n; p += 8) {
    const std::uint64_t word = random_word(key, (first + p) / 8);
    for (std::size_t j = 0; j < 8; ++j) sums[p + j] += subset[(word >> (8 * j)) & 255];
  }
}

inline void add_enumerated_signs(const std::int64_t* subset, std::size_t group, std::uint64_t first, std::size_t n,
                                 std::int64_t* sums) noexcept {
  for (std::size_t p = 0; p < n; ++p) sums[p] += subset[((first + p) >> (8 * group)) & 255];
}

// Among permutations [first, first + n): how many reach the bound.
inline std::uint64_t count_block(const SignFlips& test, std::int64_t total, std::uint64_t first, std::size_t n) {
  std::int64_t subset[256];
  std::int64_t kept[permutations_per_block] = {};  // sum of the differences that keep a plus
  const std::size_t n_whole_words = (n + 7) / 8 * 8;
  for (std::size_t start = 0, group = 0; start < test.n_queries; start += queries_per_group, ++group) {
    if (group % 64 == 63) check_interruption();
    subset_sums(test.magnitudes + start, std::min(queries_per_group, test.n_queries - start), subset);
    if (test.enumerate) {
      add_enumerated_signs(subset, group, first, n, kept);
    } else {
      add_random_signs(subset, stream_key(test.seed, group), first, n_whole_words, kept);
    }
  }
  std::uint64_t count = 0;
  for (std::size_t p = 0; p < n; ++p) {
    const std::int64_t sum = 2 * kept[p] - total;
    count += sum >= test.bound || (test.two_sided && -sum >= test.bound);
  }
  return count;
}

// How many of the permutations reach the bound. The sum of a permutation is
// sum_i s_i |d_i| with signs s_i: under the null hypothesis the sign of d_i is a coin toss already.
// Four Russians: 8 queries cost one table look-up per permutation.
inline std::uint64_t count_sign_flips(const SignFlips& test, int n_threads) {
  const std::int64_t total = std::accumulate(test.magnitudes, test.magnitudes + test.n_queries, std::int64_t{0});
  const std::size_t n_blocks =
      static_cast<std::size_t>((test.n_permutations + permutations_per_block - 1) / permutations_per_block);
  std::vector<std::uint64_t> counts(n_blocks, 0);
  parallel_for(n_blocks, n_threads, [&](std::size_t block) {
    const std::uint64_t first = std::uint64_t{block} * permutations_per_block;
    const auto n =
        static_cast<std::size_t>(std::min<std::uint64_t>(permutations_per_block, test.n_permutations - first));
    counts[block] = count_block(test, total, first, n);
  });
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

// Sums of bootstrap samples of n values (0 < n < 2^32, n * max |value| below 2^63), each with its own stream.
inline void bootstrap_sums(const std::int64_t* values, std::size_t n, std::uint64_t seed, std::size_t n_resamples,
                           int n_threads, std::int64_t* sums) {
  parallel_for(n_resamples, n_threads, [&](std::size_t resample) {
    const std::uint64_t key = stream_key(seed, resample);
    std::int64_t sum = 0;
    for (std::size_t word = 0; word < n / 2; ++word) {
      const IndexPair drawn = two_indices(random_word(key, word), n);
      sum += values[drawn.first] + values[drawn.second];
    }
    if (n % 2 == 1) sum += values[two_indices(random_word(key, n / 2), n).first];
    sums[resample] = sum;
  });
}

}  // namespace rankwood
