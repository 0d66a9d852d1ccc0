// The best split of one feature in one node, for criteria that pack their sums (packed_criteria.hpp).
//
// Three ways to the sums of all left sides, one result: a node of few documents compares all pairs (left_sums.inl); where
// there are no more codes than documents, sums are gathered code by code; else documents are sorted by code.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "isa/kernels.hpp"
#include "packed_criteria.hpp"
#include "radix_sort.hpp"
#include "split_search.hpp"

namespace rankwood {

class PackedSearch {
 public:
  // Make room for nodes of up to n documents.
  void reserve(std::size_t n) {
    if (n <= room_) return;
    room_ = n;
    keys_.resize(n + kAround);
    sorted_.resize(n + kAround);
    codes_.resize(n + 1);
    docs_.resize(n + 1);
    proxy_.resize(n + 1);
    left_.resize((n + 1) * kMaxWords);
    gathered_.resize(2 * n * kMaxWords);
  }

  // Come to a node: what its features share.
  template <class Stats>
  void enter(const Stats& stats, const Item* items, std::size_t n, std::uint32_t min_docs) {
    small_ = min_docs <= 1 && n <= Stats::kSmallDocs && stats.fits_small();
    if constexpr (Stats::kSmallWords > 0) {
      if (!small_) return;
      for (std::size_t word = 0; word < Stats::kSmallWords; ++word) {
        for (std::size_t i = 0; i < n; ++i) small_sum_[word][i] = Stats::small(items[i].payload, word);
        std::memset(small_sum_[word] + n, 0, kSmallBlock * sizeof **small_sum_);
      }
    }
  }

  // Try all splits of a feature. False: its value is the same for all documents of the node.
  template <class Stats, class Code>
  bool search(const Stats& stats, const Column<Code>& column, const Item* items, std::size_t n, std::uint32_t min_docs,
              FoundSplit& best) {
    if (small_ && !column.may_miss) return search_pairs(stats, column, items, n, best);
    const std::uint32_t first = column.codes[items[0].place];
    std::uint32_t differing = 0;
    std::uint32_t* keys = keys_.data() + 1;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t code = column.codes[items[i].place];
      keys[i] = code << 16 | items[i].payload;
      differing |= code ^ first;
    }
    if (differing == 0) return false;
    const int bits = std::bit_width(differing);
    const std::size_t n_codes = std::size_t{1} << bits;
    Candidates<Stats> found = n_codes <= 2 * n && min_docs <= 1 ? gather<Stats>(keys, n, n_codes, column)
                                                                : sort<Stats>(keys, n, bits, column, min_docs);
    found.min_docs = min_docs;
    found.n_docs = static_cast<std::uint32_t>(n);
    choose(stats, column.feature, found, best);
    return true;
  }

 private:
  static constexpr std::size_t kAround = 4;  // entries before and after keys that may be looked at
  static constexpr std::size_t kMaxWords = 4;
  static constexpr std::size_t kMaxSmallWords = 2;
  static constexpr std::size_t kMaxSmallDocs = 64;
  static constexpr std::size_t kSmallBlock = 16;

  // Splits worth a look: sum of the left side without missing values, last code and number of documents on the left.
  // With missing values, the last one has all values on the left.
  template <class Stats>
  struct Candidates {
    typename Stats::Sum* left;
    std::size_t n;
    typename Stats::Sum missing{};
    std::uint32_t missing_docs = 0;
    std::uint32_t min_docs = 1, n_docs = 0;
  };

  template <class Stats>
  typename Stats::Sum* sums(std::vector<std::uint64_t>& words) {
    static_assert(sizeof(typename Stats::Sum) <= kMaxWords * sizeof(std::uint64_t));
    return reinterpret_cast<typename Stats::Sum*>(words.data());
  }

  template <class Stats, class Code>
  Candidates<Stats> gather(const std::uint32_t* keys, std::size_t n, std::size_t n_codes, const Column<Code>& column) {
    using Sum = typename Stats::Sum;
    Sum* by_code = sums<Stats>(gathered_);
    const std::uint32_t mask = static_cast<std::uint32_t>(n_codes - 1);
    std::memset(static_cast<void*>(by_code), 0, n_codes * sizeof(Sum));
    for (std::size_t i = 0; i < n; ++i) by_code[keys[i] >> 16 & mask] += Stats::of(static_cast<std::uint16_t>(keys[i]));
    const std::uint32_t above = (keys[0] >> 16) & ~mask;  // the bits that all codes share
    Candidates<Stats> found{sums<Stats>(left_), 0};
    std::size_t end = n_codes;
    if (column.may_miss && above == (column.missing & ~mask)) {
      found.missing = by_code[column.missing & mask];
      end = column.missing & mask;
    }
    Sum sum{};
    const Sum nothing{};
    for (std::size_t c = 0; c < end; ++c) {
      sum += by_code[c];
      found.left[found.n] = sum;
      codes_[found.n] = static_cast<std::uint16_t>(above | c);
      found.n += !(by_code[c] == nothing);
    }
    found.missing_docs = !(found.missing == nothing);
    if (found.missing_docs == 0) --found.n;  // the right side would be empty
    return found;
  }

  template <class Stats, class Code>
  Candidates<Stats> sort(std::uint32_t* keys, std::size_t n, int bits, const Column<Code>& column,
                         std::uint32_t min_docs) {
    using Sum = typename Stats::Sum;
    std::uint32_t* key = radix_sort(keys, sorted_.data() + 1, n, 16, bits);
    key[-1] = key[n] = key[n + 1] = 0xffffffffu;
    Candidates<Stats> found{sums<Stats>(left_), 0};
    std::size_t n_values = n;
    if (column.may_miss) {
      for (; key[n_values - 1] >> 16 == column.missing; --n_values) {
        found.missing += Stats::of(static_cast<std::uint16_t>(key[n_values - 1]));
      }
      found.missing_docs = static_cast<std::uint32_t>(n - n_values);
    }
    // A split between documents of the same grade is never better than both of those around their run (the gain is a
    // convex function of where in the run one cuts), unless a side would then have too few documents. Documents of equal
    // code may have several grades: there every split counts.
    Sum sum{};
    const bool all = min_docs > 1;
    for (std::size_t i = 0; i + 1 < n_values; ++i) {
      sum += Stats::of(static_cast<std::uint16_t>(key[i]));
      const std::uint32_t code = key[i] >> 16, next = key[i + 1] >> 16;
      const bool counts = ((key[i] ^ key[i + 1]) & 0xffu) != 0 || key[i - 1] >> 16 == code || key[i + 2] >> 16 == next;
      found.left[found.n] = sum;
      codes_[found.n] = static_cast<std::uint16_t>(code);
      docs_[found.n] = static_cast<std::uint32_t>(i + 1);
      found.n += (code != next) & (counts | all);
    }
    if (found.missing_docs > 0) {
      sum += Stats::of(static_cast<std::uint16_t>(key[n_values - 1]));
      found.left[found.n] = sum;
      codes_[found.n] = static_cast<std::uint16_t>(key[n_values - 1] >> 16);
      docs_[found.n++] = static_cast<std::uint32_t>(n_values);
    }
    return found;
  }

  template <class Stats>
  void choose(const Stats& stats, std::int32_t feature, const Candidates<Stats>& found, FoundSplit& best) {
    for (int pass = 0; pass < (found.missing_docs > 0 ? 2 : 1); ++pass) {
      const bool missing_left = pass == 1;
      const std::size_t n = found.n - (missing_left ? 1 : 0);
      stats.proxies(found.left, n, missing_left ? found.missing : typename Stats::Sum{}, proxy_.data());
      for (std::size_t i = 0; i < n; ++i) {
        if (!(proxy_[i] > best.proxy)) continue;
        if (found.min_docs > 1) {
          const std::uint32_t docs = docs_[i] + (missing_left ? found.missing_docs : 0);
          if (docs < found.min_docs || found.n_docs - docs < found.min_docs) continue;
        }
        best = {proxy_[i], feature, codes_[i], missing_left, found.missing_docs > 0};
      }
    }
  }

  template <class Stats, class Code>
  bool search_pairs(const Stats& stats, const Column<Code>& column, const Item* items, std::size_t n, FoundSplit& best) {
    if constexpr (Stats::kSmallWords > 0) {
      static_assert(Stats::kSmallDocs <= kMaxSmallDocs && Stats::kSmallWords <= kMaxSmallWords);
      std::int32_t differing = 0;
      for (std::size_t i = 0; i < n; ++i) {
        small_code_[i] = static_cast<std::int32_t>(column.codes[items[i].place]);
        differing |= small_code_[i] ^ small_code_[0];
      }
      if (differing == 0) return false;
      for (std::size_t i = n; i < n + kSmallBlock; ++i) small_code_[i] = 0;
      for (std::size_t word = 0; word < Stats::kSmallWords; ++word) {
        kernels().left_sums(small_code_, small_sum_[word], n, small_left_[word]);
      }
      typename Stats::Sum* left = sums<Stats>(left_);
      for (std::size_t i = 0; i < n; ++i) {
        std::uint32_t small[Stats::kSmallWords];
        for (std::size_t word = 0; word < Stats::kSmallWords; ++word) small[word] = small_left_[word][i];
        left[i] = Stats::widen(small);
      }
      stats.proxies(left, n, typename Stats::Sum{}, proxy_.data());
      const double before = best.proxy;
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t code = static_cast<std::uint32_t>(small_code_[i]);
        if (proxy_[i] > best.proxy || (proxy_[i] == best.proxy && proxy_[i] > before && code < best.code)) {
          best = {proxy_[i], column.feature, code, false, false};
        }
      }
    }
    return true;
  }

  std::size_t room_ = 0;
  std::vector<std::uint32_t> keys_, sorted_, docs_;
  std::vector<std::uint16_t> codes_;
  std::vector<double> proxy_;
  std::vector<std::uint64_t> left_, gathered_;  // as Stats::Sum
  bool small_ = false;
  alignas(64) std::int32_t small_code_[kMaxSmallDocs + kSmallBlock];
  alignas(64) std::uint32_t small_sum_[kMaxSmallWords][kMaxSmallDocs + kSmallBlock];
  alignas(64) std::uint32_t small_left_[kMaxSmallWords][kMaxSmallDocs + kSmallBlock];
};

}  // namespace rankwood
