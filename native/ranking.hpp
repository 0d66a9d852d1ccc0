// Rankings of one query at a time: documents by decreasing score, as deep as the caller needs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "isa/kernels.hpp"

namespace rankwood {

// Holds the memory that ranking needs, so that a thread allocates once for all its queries.
template <class Score>
class Ranker {
 public:
  explicit Ranker(std::size_t max_docs)
      : kernels_(kernels()),
        scores_(2 * capacity(max_docs)),
        docs_(2 * capacity(max_docs)),
        a_{scores_.data(), docs_.data()},
        b_{scores_.data() + capacity(max_docs), docs_.data() + capacity(max_docs)} {}
  Ranker(const Ranker&) = delete;
  Ranker& operator=(const Ranker&) = delete;

  // The first min(k, n) documents (numbered from 0) and their scores, best first; ties keep document order.
  // Valid until the next call; null when a score is NaN. n is at most the max_docs of the constructor.
  const RankBuffer<Score>* top(const Score* scores, std::size_t n, std::size_t k) {
    if constexpr (std::is_same_v<Score, double>) {
      return kernels_.top_f64(scores, n, std::min(n, k), a_, b_);
    } else {
      return kernels_.top_f32(scores, n, std::min(n, k), a_, b_);
    }
  }

 private:
  static std::size_t capacity(std::size_t max_docs) { return (max_docs + 15) / 16 * 16; }

  const Kernels& kernels_;
  std::vector<Score> scores_;
  std::vector<std::uint32_t> docs_;
  RankBuffer<Score> a_, b_;
};

}  // namespace rankwood
