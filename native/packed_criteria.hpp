// Variance and entropy of grades: sums of small whole numbers, several of them packed into one word so that one
// addition adds a document.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "forest_target.hpp"
#include "split_search.hpp"

namespace rankwood {

// Sum of weights in the lower half of a word, sum of weight * grade in the upper. Neither may reach 2^31.
class VarianceSums {
 public:
  using Sum = std::uint64_t;
  static constexpr std::size_t kSmallWords = 1;
  static constexpr std::size_t kSmallDocs = 128;  // up to which comparing all pairs beats sorting

  // IN  sums over the node, its lowest and its highest grade
  VarianceSums(std::uint64_t weight, std::uint64_t sum, std::uint32_t lowest, std::uint32_t highest)
      : weight_(static_cast<double>(weight)),
        sum_(static_cast<double>(sum)),
        lowest_(lowest),
        highest_(highest),
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
  static Sum widen(const std::uint32_t* small) {
    return (*small & 0xffffu) | static_cast<std::uint64_t>(*small >> 16) << 32;
  }

  void proxies(const Sum* left, std::size_t n, Sum extra, double* proxy) const {
    for (std::size_t i = 0; i < n; ++i) proxy[i] = proxy_of(weight_in(left[i] + extra), sum_in(left[i] + extra));
  }

  // No split between the documents of `part`, in whatever order, has a higher proxy; `before` are those left of them
  // all. The proxy is convex in weight and sum, so it is largest at a corner of what is possible: all of the highest
  // grade come first and then all of the lowest, as many as make up the sum, or the other way round.
  double bound(Sum before, Sum part) const {
    const double w = weight_in(before), s = sum_in(before), part_w = weight_in(part);
    const double high = (sum_in(part) - lowest_ * part_w) / (highest_ - lowest_), low = part_w - high;
    const double high_first = proxy_of(w + high, s + highest_ * high), low_first = proxy_of(w + low, s + lowest_ * low);
    return high_first > low_first ? high_first : low_first;
  }

 private:
  static double weight_in(Sum sum) { return static_cast<double>(static_cast<std::int32_t>(sum)); }
  static double sum_in(Sum sum) { return static_cast<double>(static_cast<std::int32_t>(sum >> 32)); }

  // Weight w and sum s of the left side give D = W * s - S * w; D^2 / (w * (W - w)) is the gain times W, free of
  // cancellation: it is 0 exactly where the means are equal. (NaN where a side is empty.)
  double proxy_of(double w, double s) const {
    const double d = weight_ * s - sum_ * w;
    return d * d / (w * (weight_ - w));
  }

  double weight_, sum_, lowest_, highest_;
  bool fits_small_;
};

// Counts of classes in fields of Bits bits.
template <std::size_t Classes, int Bits>
struct ClassCounts {
  static constexpr std::size_t kFields = 64 / Bits;
  static constexpr std::size_t kWords = (Classes + kFields - 1) / kFields;
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << Bits) - 1;
  std::uint64_t word[kWords];

  std::uint32_t operator[](std::size_t k) const {
    return static_cast<std::uint32_t>(word[k / kFields] >> (k % kFields * Bits) & kMask);
  }
  void add(std::size_t k, std::uint64_t weight) {
    word[kWords == 1 ? 0 : k / kFields] += weight << (k % kFields * Bits);
  }
  ClassCounts& operator+=(const ClassCounts& other) {
    for (std::size_t i = 0; i < kWords; ++i) word[i] += other.word[i];
    return *this;
  }
  bool operator==(const ClassCounts& other) const = default;
};

template <std::size_t Classes, int Bits>
class EntropySums {
 public:
  using Sum = ClassCounts<Classes, Bits>;
  static constexpr std::size_t kSmallWords = Bits == 16 ? Sum::kWords : 0;
  static constexpr std::size_t kSmallDocs = 96;

  EntropySums(const std::uint32_t* counts, const LogTable& logs) : logs_(logs) {
    for (std::size_t k = 0; k < Classes; ++k) {
      counts_[k] = counts[k];
      weight_ += counts[k];
    }
  }

  static Sum of(std::uint16_t payload) {
    const std::size_t k = payload & 0xffu;
    const std::uint64_t weight = static_cast<std::uint64_t>(payload >> 8) << (k % Sum::kFields * Bits);
    Sum sum;
    for (std::size_t i = 0; i < Sum::kWords; ++i) sum.word[i] = Sum::kWords == 1 || k / Sum::kFields == i ? weight : 0;
    return sum;
  }

  // The same in 8 bits each.
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

  void proxies(const Sum* left, std::size_t n, const Sum& extra, double* proxy) const {
    for (std::size_t i = 0; i < n; ++i) {
      Sum both = left[i];
      both += extra;
      proxy[i] = proxy_of(both);
    }
  }

  // As VarianceSums has it: the corners have each class of `part` altogether on one side.
  double bound(const Sum& before, const Sum& part) const {
    Sum of_class[Classes];
    std::size_t n_present = 0;
    for (std::size_t k = 0; k < Classes; ++k) {
      if (const std::uint32_t count = part[k]) {
        of_class[n_present] = {};
        of_class[n_present++].add(k, count);
      }
    }
    double highest = kNoSplit;
    for (std::uint32_t some = 1; some + 1 < (1u << n_present); ++some) {
      Sum left = before;
      for (std::size_t k = 0; k < n_present; ++k) {
        if (some >> k & 1) left += of_class[k];
      }
      highest = std::max(highest, proxy_of(left));
    }
    return highest;
  }

 private:
  // -(W_left * entropy of the left side + W_right * entropy of the right side).
  double proxy_of(const Sum& left) const {
    std::uint32_t weight = 0;
    double value = 0.0;
    for (std::size_t k = 0; k < Classes; ++k) {
      const std::uint32_t count = left[k];
      weight += count;
      value += log(count) + log(counts_[k] - count);
    }
    return weight < weight_ ? value - (log(weight) + log(weight_ - weight)) : kNoSplit;
  }
  double log(std::uint32_t x) const { return Bits == 16 ? logs_.data()[x] : logs_.at(x); }

  std::uint32_t counts_[Classes] = {}, weight_ = 0;
  const LogTable& logs_;
};

}  // namespace rankwood
