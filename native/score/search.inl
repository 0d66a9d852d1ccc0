// The number of thresholds below each of up to kWidth values of one column, at once.
//
// Few thresholds are compared one by one. More are searched by halves: a step compares every value with the threshold
// in the middle of what is left of its range, and writes a bit; the thresholds of a step stand in registers, where the
// bits so far look one up. The first step's bit is the lowest, so that a path of s bits is a number below 2^s and an
// index, and a code is its path read backwards.
#pragma once

#include <cstddef>
#include <cstdint>

#include "score/kernels.hpp"
#include "score/values.inl"

namespace rankwood::RANKWOOD_ISA_NS::scoring {
namespace {

// Up to kMaxEach thresholds are compared one by one. A search of s steps pays from kFewestRows[s] rows on; what has
// more steps or fewer rows is searched value by value (quantise.inl). As measured on Zen 4 (benchmarks/codes.py).
#if defined(__AVX512BW__)
constexpr int kMaxEach = 6;
constexpr std::size_t kFewestRows[] = {6, 6, 6, 9, 10, 7, 8, 9, 12};
#elif defined(__AVX2__)
constexpr int kMaxEach = 8;
constexpr std::size_t kFewestRows[] = {5, 5, 5, 5, 5, 5, 8, 12, 28};
#elif defined(__SSE2__)
constexpr int kMaxEach = 7;
constexpr std::size_t kFewestRows[] = {4, 4, 4, 4};
#elif defined(RANKWOOD_NEON)  // not measured: as AVX2; steps beyond would take look-ups of more than 32 numbers
constexpr int kMaxEach = 8;
constexpr std::size_t kFewestRows[] = {5, 5, 5, 5, 5, 5, 8};
#endif

#if defined(RANKWOOD_HAS_VALUES)
constexpr std::size_t kManySteps = sizeof kFewestRows / sizeof kFewestRows[0];
static_assert(kManySteps <= StepTable::kMaxSteps + 1);

inline bool is_searched_at_once(const StepTable& column, std::size_t n_rows) {
  const auto steps = static_cast<std::size_t>(column.n_steps);
  return steps < kManySteps && n_rows >= kFewestRows[steps] && (kHasLookup || column.n_thresholds <= kMaxEach);
}

// V vectors of values on their way. Where thresholds were rounded down and values up, the largest threshold below a
// value must be known (Nearest).
template <int V, bool Nearest>
struct Search {
  Values x[V];
  Paths path[4];
  Values nearest[V];

  explicit Search(const float* from) {
    RANKWOOD_UNROLL for (int v = 0; v < V; ++v) x[v] = load_values(from + v * kValues);
    RANKWOOD_UNROLL for (int v = 0; v < 4; ++v) path[v] = no_paths();
    if (Nearest) RANKWOOD_UNROLL for (int v = 0; v < V; ++v) nearest[v] = repeat_value(__builtin_nanf(""));
  }

  void compare(int v, Values threshold, std::int32_t number) {
    const Mask is_below = below(threshold, x[v]);
    path[v] = add_where(is_below, path[v], number);
    if (Nearest) nearest[v] = choose(is_below, threshold, nearest[v]);
  }

  void replace_missing(std::int32_t nan_path) {
    RANKWOOD_UNROLL for (int v = 0; v < V; ++v) path[v] = choose(missing(x[v]), repeat_path(nan_path), path[v]);
  }

  // Bit i: for value i the rounded numbers may not tell whether the nearest threshold is below it. That takes a value
  // between two float32 numbers with a threshold between the same two. (One step down from 0 is NaN, near nothing: no
  // other number is rounded up to it.)
  std::uint64_t doubtful() const {
    std::uint64_t bits = 0;
    RANKWOOD_UNROLL for (int v = 0; v < V; ++v) {
      bits |= bits_of(equal(nearest[v], one_step_down(x[v]))) << (v * static_cast<int>(kValues));
    }
    return bits;
  }
};
#endif

#if defined(RANKWOOD_HAS_LOOKUP)
// Number of a table that a path of Bits bits points to.
template <int Bits>
inline Values lookup(const float* table, Paths paths) {
  if constexpr (Bits <= kLookupBits) {
    return lookup_few<Bits>(table, paths);
  } else {
    return choose(has_bit(paths, Bits - 1), lookup<Bits - 1>(table + (1 << (Bits - 1)), paths),
                  lookup<Bits - 1>(table, paths));
  }
}

template <int Step, int Steps, int V, bool Nearest>
inline void take_steps(const float* steps, Search<V, Nearest>& search) {
  RANKWOOD_UNROLL for (int v = 0; v < V; ++v) {
    const Values threshold =
        Step == 0 ? repeat_value(steps[0]) : lookup<Step>(steps + step_offset(Step), search.path[v]);
    search.compare(v, threshold, 1 << Step);
  }
  if constexpr (Step + 1 < Steps) take_steps<Step + 1, Steps>(steps, search);
}

struct Reversed {
  std::uint8_t byte[256];
  // A path of s bits backwards: low[s][its bits 0-3] + high[s][its bits 4-7].
  std::uint8_t low[9][16], high[9][16];
};
constexpr Reversed make_reversed() {
  Reversed r = {};
  for (int i = 0; i < 256; ++i) {
    for (int bit = 0; bit < 8; ++bit) r.byte[i] = static_cast<std::uint8_t>(r.byte[i] | (i >> bit & 1) << (7 - bit));
  }
  for (int s = 0; s <= 8; ++s) {
    for (int i = 0; i < 16; ++i) {
      r.low[s][i] = static_cast<std::uint8_t>(r.byte[i] >> (8 - s));
      r.high[s][i] = static_cast<std::uint8_t>(r.byte[i << 4] >> (8 - s));
    }
  }
  return r;
}
constexpr Reversed kReversed = make_reversed();

template <int Steps>
inline Bytes reverse(Bytes paths) {
  const Bytes nibble = repeat(15);
  const Bytes low = lookup16(table16(kReversed.low[Steps]), paths & nibble);
  if constexpr (Steps <= 4) return low;
  const Bytes shifted = (Bytes)((UnsignedBytes)paths >> 4);
  return low | lookup16(table16(kReversed.high[Steps]), shifted);
}

template <int Steps, int V, bool Nearest>
inline Bytes search_by_steps(const float* steps, std::int32_t nan_code, Search<V, Nearest>& search) {
  take_steps<0, Steps>(steps, search);
  if (nan_code != 0) search.replace_missing(kReversed.byte[nan_code] >> (8 - Steps));
  return reverse<Steps>(narrow(search.path));
}
#endif

#if defined(RANKWOOD_HAS_VALUES)
// The codes of V vectors of values; bit i of `doubtful`: code i may be wrong. Not inlined: amid the caller's variables
// the tables of the last steps would not stay in registers.
template <int V, bool Nearest>
__attribute__((noinline)) Bytes codes_at_once(const StepTable& column, std::int32_t nan_code, const float* x,
                                              std::uint64_t& doubtful) {
  Search<V, Nearest> search(x);
  const auto done = [&](Bytes codes) {
    if (Nearest) doubtful = search.doubtful();
    return codes;
  };
#if defined(RANKWOOD_HAS_LOOKUP)
  if (column.n_thresholds > kMaxEach) {
    const float* steps = column.steps;
    switch (column.n_steps) {
      case 3:
        return done(search_by_steps<3>(steps, nan_code, search));
      case 4:
        return done(search_by_steps<4>(steps, nan_code, search));
      case 5:
        return done(search_by_steps<5>(steps, nan_code, search));
      case 6:
        return done(search_by_steps<6>(steps, nan_code, search));
      case 7:
        return done(search_by_steps<7>(steps, nan_code, search));
      default:
        return done(search_by_steps<8>(steps, nan_code, search));
    }
  }
#endif
  for (std::int32_t i = 0; i < column.n_thresholds; ++i) {
    const Values threshold = repeat_value(column.singles[i]);
    RANKWOOD_UNROLL for (int v = 0; v < V; ++v) search.compare(v, threshold, 1);
  }
  if (nan_code != 0) search.replace_missing(nan_code);
  return done(narrow(search.path));
}

template <bool Nearest>
Bytes codes_at_once(const StepTable& column, std::int32_t nan_code, const float* x, std::size_t n,
                    std::uint64_t& doubtful) {
  if (n <= kValues) return codes_at_once<1, Nearest>(column, nan_code, x, doubtful);
  if (n <= 2 * kValues) return codes_at_once<2, Nearest>(column, nan_code, x, doubtful);
  return codes_at_once<4, Nearest>(column, nan_code, x, doubtful);
}
#endif

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::scoring
