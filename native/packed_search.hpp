// The best split of one feature in one node, for criteria that pack their sums (packed_criteria.hpp).
//
// Three ways to the sums of all left sides, one result: a node of few documents compares all pairs (left_sums.inl);
// where there are no more codes than documents, sums are gathered code by code; else documents are sorted by code.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
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
  void enter(const Stats& stats, const Docs& docs, std::uint32_t min_docs) {
    const std::size_t n = docs.n;
    small_ = min_docs <= 1 && n <= Stats::kSmallDocs && stats.fits_small();
    if constexpr (Stats::kSmallWords > 0) {
      if (!small_) return;
      for (std::size_t word = 0; word < Stats::kSmallWords; ++word) {
        for (std::size_t i = 0; i < n; ++i)
          small_sum_[word][i] = static_cast<std::int32_t>(Stats::small(docs.payload[i], word));
      }
    }
  }

  // Try all splits of a feature. False: its value is the same for all documents of the node.
  template <class Stats, class Code>
  bool search(const Stats& stats, const Column<Code>& column, const Docs& docs, std::uint32_t min_docs,
              FoundSplit& best) {
    const bool pairs = sizeof(Code) > 1 || docs.n < kGatherDocs;  // one byte has few codes to gather by
    if (small_ && pairs && !column.may_miss) return search_pairs(stats, column, docs, best);
    const std::size_t n = docs.n;
    const std::uint32_t first = column[docs.place[0]];
    std::uint32_t differing = 0;
    std::uint32_t* keys = keys_.data() + 1;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t code = column[docs.place[i]];
      keys[i] = code << 16 | docs.payload[i];
      differing |= code ^ first;
    }
    if (differing == 0) return false;
    const int bits = std::bit_width(differing);
    const std::size_t n_codes = std::size_t{1} << bits;
    if (n >= kCoarseDocs && bits > kCoarseBits && min_docs <= 1 && !column.may_miss) {
      search_coarsely(stats, column.feature, keys, n, bits, best);
      return true;
    }
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
  static constexpr std::size_t kCoarseDocs = 128;  // from which on it pays to look at intervals of codes first
  static constexpr int kCoarseBits = 8;
  static constexpr std::size_t kGatherDocs = 48;
  static constexpr std::size_t kMaxSmallDocs = 128;
  static constexpr std::size_t kSmallBlock = 32;

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
    // convex function of where in the run one cuts), unless a side would then have too few documents. Documents of
    // equal code may have several grades: there every split counts.
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

  // Many documents, many codes: first look at the splits between intervals of codes. What any split inside an interval
  // can reach at best is known; only the documents of those intervals that may hold a better split are sorted.
  template <class Stats>
  void search_coarsely(const Stats& stats, std::int32_t feature, std::uint32_t* keys, std::size_t n, int bits,
                       FoundSplit& best) {
    using Sum = typename Stats::Sum;
    const int coarse_bits = n < 1024 ? kCoarseBits - 2 : kCoarseBits, shift = 16 + bits - coarse_bits;
    const std::uint32_t mask = (1u << coarse_bits) - 1, n_intervals = mask + 1;
    Sum* part = sums<Stats>(gathered_);
    Sum* before = part + n_intervals;
    std::memset(static_cast<void*>(part), 0, n_intervals * sizeof(Sum));
    for (std::size_t i = 0; i < n; ++i) part[keys[i] >> shift & mask] += Stats::of(static_cast<std::uint16_t>(keys[i]));
    Sum sum{};
    const Sum nothing{};
    std::uint32_t last = 0;
    for (std::uint32_t k = 0; k < n_intervals; ++k) {
      before[k] = sum;
      sum += part[k];
      if (!(part[k] == nothing)) last = k;
    }
    // The splits behind all intervals but the last; those behind an empty interval equal the one before it.
    stats.proxies(before + 1, last, nothing, proxy_.data());
    FoundSplit own = best;
    const std::uint32_t above = keys[0] >> shift & ~mask;
    for (std::uint32_t k = 0; k < last; ++k) {
      if (!(proxy_[k] > own.proxy)) continue;
      own = {proxy_[k], feature, static_cast<std::uint32_t>(((std::uint64_t{above | k} + 1) << (shift - 16)) - 1)};
    }
    std::uint32_t n_promising = 0;
    for (std::uint32_t k = 0; k <= last; ++k) {
      const double bound = part[k] == nothing ? kNoSplit : stats.bound(before[k], part[k]);
      inside_[n_promising] = k;
      n_promising += bound + 1e-12 * std::fabs(bound) >= own.proxy;
    }
    if (n_promising > 0) search_inside(stats, feature, keys, n, bits, shift, mask, n_promising, before, own);
    if (own.proxy > best.proxy) best = own;
  }

  // The splits inside the promising intervals.
  template <class Stats>
  void search_inside(const Stats& stats, std::int32_t feature, std::uint32_t* keys, std::size_t n, int bits, int shift,
                     std::uint32_t mask, std::uint32_t n_promising, const typename Stats::Sum* before,
                     FoundSplit& best) {
    const std::size_t width = std::size_t{1} << (shift - 16);  // codes of an interval
    const std::size_t n_left = n_promising * width <= n
                                   ? gather_inside<Stats>(keys, n, shift, mask, n_promising, before)
                                   : sort_inside<Stats>(keys, n, bits, shift, mask, n_promising, before);
    stats.proxies(sums<Stats>(left_), n_left, typename Stats::Sum{}, proxy_.data());
    for (std::size_t i = 0; i < n_left; ++i) {  // of equal ones the lowest code wins
      if (proxy_[i] > best.proxy || (proxy_[i] == best.proxy && best.feature == feature && codes_[i] < best.code)) {
        best = {proxy_[i], feature, codes_[i]};
      }
    }
  }

  // Left sides and codes of these splits, sums being gathered code by code. Returns their number.
  template <class Stats>
  std::size_t gather_inside(const std::uint32_t* keys, std::size_t n, int shift, std::uint32_t mask,
                            std::uint32_t n_promising, const typename Stats::Sum* before) {
    using Sum = typename Stats::Sum;
    const std::size_t width = std::size_t{1} << (shift - 16), n_slots = n_promising + 1;  // one for all others
    if (fine_.size() < n_slots * width * kMaxWords) fine_.resize(n_slots * width * kMaxWords);
    Sum* by_code = sums<Stats>(fine_);
    std::memset(static_cast<void*>(by_code), 0, n_slots * width * sizeof(Sum));
    std::fill_n(slot_, mask + 1, static_cast<std::uint32_t>(n_promising * width));
    for (std::uint32_t p = 0; p < n_promising; ++p) slot_[inside_[p]] = static_cast<std::uint32_t>(p * width);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t slot = slot_[keys[i] >> shift & mask];
      by_code[slot + (keys[i] >> 16 & (width - 1))] += Stats::of(static_cast<std::uint16_t>(keys[i]));
    }
    const std::uint32_t above = keys[0] >> shift & ~mask;
    const Sum nothing{};
    Sum* left = sums<Stats>(left_);
    std::size_t n_left = 0;
    for (std::uint32_t p = 0; p < n_promising; ++p, by_code += width) {
      Sum sum = before[inside_[p]];
      for (std::size_t c = 0; c < width; ++c) {
        sum += by_code[c];
        left[n_left] = sum;
        codes_[n_left] = static_cast<std::uint16_t>((above | inside_[p]) << (shift - 16) | c);
        n_left += !(by_code[c] == nothing);
      }
      --n_left;  // the split behind the interval is known
    }
    return n_left;
  }

  // The same by sorting.
  template <class Stats>
  std::size_t sort_inside(std::uint32_t* keys, std::size_t n, int bits, int shift, std::uint32_t mask,
                          std::uint32_t n_promising, const typename Stats::Sum* before) {
    std::memset(slot_, 0, (mask + 1) * sizeof *slot_);
    for (std::uint32_t p = 0; p < n_promising; ++p) slot_[inside_[p]] = 1;
    std::size_t n_kept = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t key = keys[i];
      keys[n_kept] = key;
      n_kept += slot_[key >> shift & mask];
    }
    const std::uint32_t* key = radix_sort(keys, sorted_.data() + 1, n_kept, 16, bits);
    typename Stats::Sum* left = sums<Stats>(left_);
    typename Stats::Sum sum{};
    std::size_t n_left = 0;
    for (std::size_t i = 0; i + 1 < n_kept; ++i) {
      const std::uint32_t interval = key[i] >> shift;
      if (i == 0 || key[i - 1] >> shift != interval) sum = before[interval & mask];
      sum += Stats::of(static_cast<std::uint16_t>(key[i]));
      left[n_left] = sum;
      codes_[n_left] = static_cast<std::uint16_t>(key[i] >> 16);
      n_left += (key[i] >> 16 != key[i + 1] >> 16) & (key[i + 1] >> shift == interval);
    }
    return n_left;
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
  bool search_pairs(const Stats& stats, const Column<Code>& column, const Docs& docs, FoundSplit& best) {
    const std::size_t n = docs.n;
    if constexpr (Stats::kSmallWords > 0) {
      static_assert(Stats::kSmallDocs <= kMaxSmallDocs && Stats::kSmallWords <= kMaxSmallWords);
      std::int32_t differing = 0;
      for (std::size_t i = 0; i < n; ++i) {
        small_code_[i] = static_cast<std::int32_t>(column[docs.place[i]]);
        differing |= small_code_[i] ^ small_code_[0];
      }
      if (differing == 0) return false;
      for (std::size_t word = 0; word < Stats::kSmallWords; ++word) {
        kernels().left_sums(small_code_, small_sum_[word], n, small_left_[word]);
      }
      typename Stats::Sum* left = sums<Stats>(left_);
      for (std::size_t i = 0; i < n; ++i) {
        std::uint32_t small[Stats::kSmallWords];
        for (std::size_t word = 0; word < Stats::kSmallWords; ++word)
          small[word] = static_cast<std::uint32_t>(small_left_[word][i]);
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
  std::vector<std::uint64_t> left_, gathered_, fine_;  // as Stats::Sum
  bool small_ = false;
  std::uint32_t inside_[1 << kCoarseBits], slot_[1 << kCoarseBits];
  alignas(64) std::int32_t small_code_[kMaxSmallDocs + kSmallBlock] = {};
  alignas(64) std::int32_t small_sum_[kMaxSmallWords][kMaxSmallDocs + kSmallBlock] = {};
  alignas(64) std::int32_t small_left_[kMaxSmallWords][kMaxSmallDocs + kSmallBlock] = {};
};

}  // namespace rankwood
