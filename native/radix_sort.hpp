// Sorting by a few bits: what a full-depth tree does for every feature it tries at every node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rankwood {

// Sort n keys by the `bits` bits from `shift` up (at most 16), keeping the order of equal ones. Every pass is a
// counting sort by at most 8 bits. Returns the one of the two buffers that holds the result.
template <class Key>
Key* radix_sort(Key* keys, Key* buffer, std::size_t n, int shift, int bits) {
  const int n_passes = bits <= 8 ? 1 : 2;
  for (int pass = 0; pass < n_passes; ++pass) {
    const int digit_bits = n_passes == 1 ? bits : pass == 0 ? bits / 2 : bits - bits / 2;
    const std::uint32_t mask = (1u << digit_bits) - 1;
    std::uint32_t start[256];
    std::memset(start, 0, (std::size_t{mask} + 1) * sizeof *start);
    for (std::size_t i = 0; i < n; ++i) ++start[static_cast<std::uint32_t>(keys[i] >> shift) & mask];
    std::uint32_t sum = 0;
    for (std::uint32_t d = 0; d <= mask; ++d) {
      const std::uint32_t count = start[d];
      start[d] = sum;
      sum += count;
    }
    for (std::size_t i = 0; i < n; ++i) buffer[start[static_cast<std::uint32_t>(keys[i] >> shift) & mask]++] = keys[i];
    Key* const sorted = buffer;
    buffer = keys;
    keys = sorted;
    shift += digit_bits;
  }
  return keys;
}

// Few keys, by all their bits.
template <class Key>
void insertion_sort(Key* keys, std::size_t n) {
  for (std::size_t i = 1; i < n; ++i) {
    const Key key = keys[i];
    std::size_t at = i;
    for (; at > 0 && keys[at - 1] > key; --at) keys[at] = keys[at - 1];
    keys[at] = key;
  }
}

}  // namespace rankwood
