// Random words by number: any word of any stream can be had without drawing the ones before it, so tasks on
// different threads use the same words whatever their number and order.
//
// Splitmix64 (Steele, Lea and Flood, OOPSLA 2014): word i of the stream that starts at `key` is mix(key + (i + 1) *
// gamma).
#pragma once

#include <cstdint>

namespace rankwood {

inline constexpr std::uint64_t splitmix_gamma = 0x9e3779b97f4a7c15u;

constexpr std::uint64_t splitmix(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Word i of the stream `key`.
constexpr std::uint64_t random_word(std::uint64_t key, std::uint64_t i) noexcept {
  return splitmix(key + (i + 1) * splitmix_gamma);
}

// Key of stream n of a seed.
constexpr std::uint64_t stream_key(std::uint64_t seed, std::uint64_t n) noexcept {
  return random_word(random_word(seed, 0), n);
}

// Two numbers in [0, n) from one word, for n < 2^32. Multiply and shift (Lemire 2019) without the rejection step:
// some numbers are likelier than others by a factor of at most 1 + n / 2^32.
struct IndexPair {
  std::uint32_t first, second;
};
constexpr IndexPair two_indices(std::uint64_t word, std::uint64_t n) noexcept {
  return {static_cast<std::uint32_t>(((word & 0xffffffffu) * n) >> 32),
          static_cast<std::uint32_t>(((word >> 32) * n) >> 32)};
}

}  // namespace rankwood
