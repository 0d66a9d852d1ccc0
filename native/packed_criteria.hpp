// Variance and entropy of grades: sums of small whole numbers, several of them packed into one word so that one addition
// adds a document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "forest_target.hpp"
#include "split_search.hpp"

namespace rankwood {

// Sum of weights in the lower half of a word, sum of weight * grade in the upper. Neither may reach 2^31.
class VarianceSums {
 public:
  using Sum = std::uint64_t;
  static constexpr std::size_t kSmallWords = 1;
  static constexpr std::size_t kSmallDocs = 64;  // up to which comparing all pairs beats sorting

  VarianceSums(std::uint64_t weight, std::uint64_t sum)
      : weight_(static_cast<double>(weight)),
        sum_(static_cast<double>(sum)),
        fits_small_(weight < 65'536 && sum < 65'536) {}

  static Sum of(std::uint16_t payload) {
    const std::uint64_t w = payload >> 8;
    return w | (w * (payload & 0xffu)) << 32;
  }

  // The same in 16 bits each, for nodes of few documents.
  bool fits_small() const { return fits_small_; }
  static std::uint32_t small(std::uint16_t payload, std::size_t) {
    const std::uint32_t w = payload >> 8;
    return w | (w * (payload & 0xffu)) << 16;
  }
  static Sum widen(const std::uint32_t* small) { return (*small & 0xffffu) | static_cast<std::uint64_t>(*small >> 16) << 32; }

  // Weight and sum of the left side give D = W * S_left - S * W_left; D^2 / (W_left * W_right) is the gain times W, free
  // of cancellation: it is 0 exactly where the means are equal. (NaN where a side is empty.)
  void proxies(const Sum* left, std::size_t n, Sum extra, double* proxy) const {
    for (std::size_t i = 0; i < n; ++i) {
      const Sum both = left[i] + extra;
      const double w = static_cast<double>(static_cast<std::int32_t>(both));
      const double s = static_cast<double>(static_cast<std::int32_t>(both >> 32));
      const double d = weight_ * s - sum_ * w;
      proxy[i] = d * d / (w * (weight_ - w));
    }
  }

 private:
  double weight_, sum_;
  bool fits_small_;
};

// Counts of classes in fields of kBits bits, in as many words as it takes.
template <std::size_t Words, int Bits>
struct ClassCounts {
  std::uint64_t word[Words];
  static constexpr std::size_t kFields = 64 / Bits;
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << Bits) - 1;

  std::uint32_t operator[](std::size_t k) const {
    return static_cast<std::uint32_t>(word[k / kFields] >> (k % kFields * Bits) & kMask);
  }
  void add(std::size_t k, std::uint64_t weight) { word[k / kFields] += weight << (k % kFields * Bits); }
  ClassCounts& operator+=(const ClassCounts& other) {
    for (std::size_t i = 0; i < Words; ++i) word[i] += other.word[i];
    return *this;
  }
  bool operator==(const ClassCounts& other) const = default;
};

template <std::size_t Words, int Bits>
class EntropySums {
 public:
  using Sum = ClassCounts<Words, Bits>;
  static constexpr std::size_t kSmallWords = Bits == 16 ? Words : 0;
  static constexpr std::size_t kSmallDocs = 40;

  EntropySums(const std::uint32_t* counts, std::size_t n_classes, const LogTable& logs)
      : n_classes_(n_classes), logs_(logs) {
    for (std::size_t k = 0; k < n_classes; ++k) {
      counts_[k] = counts[k];
      weight_ += counts[k];
    }
  }

  static Sum of(std::uint16_t payload) {
    Sum sum{};
    sum.add(payload & 0xffu, payload >> 8);
    return sum;
  }

  bool fits_small() const { return kSmallWords > 0 && weight_ < 256; }
  static std::uint32_t small(std::uint16_t payload, std::size_t word) {
    const std::uint32_t k = payload & 0xffu;
    return k / 4 == word ? static_cast<std::uint32_t>(payload >> 8) << (k % 4 * 8) : 0;
  }
  static Sum widen(const std::uint32_t* small) {
    Sum sum{};
    for (std::size_t i = 0; i < kSmallWords; ++i) {
      const std::uint64_t s = small[i];
      sum.word[i] = (s & 0xffu) | (s & 0xff00u) << 8 | (s & 0xff0000u) << 16 | (s & 0xff000000u) << 24;
    }
    return sum;
  }

  // -(W_left * entropy of the left side + W_right * entropy of the right side).
  void proxies(const Sum* left, std::size_t n, const Sum& extra, double* proxy) const {
    for (std::size_t i = 0; i < n; ++i) {
      Sum both = left[i];
      both += extra;
      std::uint32_t weight = 0;
      double value = 0.0;
      for (std::size_t k = 0; k < n_classes_; ++k) {
        const std::uint32_t count = both[k];
        weight += count;
        value += log(count) + log(counts_[k] - count);
      }
      proxy[i] = weight < weight_ ? value - (log(weight) + log(weight_ - weight)) : kNoSplit;
    }
  }

 private:
  double log(std::uint32_t x) const { return Bits == 16 ? logs_.data()[x] : logs_.at(x); }

  std::uint32_t counts_[kPackedClasses] = {}, weight_ = 0;
  std::size_t n_classes_;
  const LogTable& logs_;
};

}  // namespace rankwood
