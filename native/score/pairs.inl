// Which leaf does each of up to 16 documents reach? Two clusters at once, one in each half of a register.
//
// Included by isa/table.inl, once per instruction set; only those whose look-ups stay inside 16 bytes of 32 have it.
// bitslice_pairs.hpp says how clusters become pairs, bitslice.inl what is done with either of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "score/bytes.inl"
#include "score/kernels.hpp"
#include "score/unroll.hpp"

namespace rankwood::RANKWOOD_ISA_NS::scoring {
namespace {

#if defined(__AVX2__)
inline __m128i load_half(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
inline __m256i load_pair(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
inline __m256i load_halves(const void* a, const void* b) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(a)), load_half(b), 1);
}
inline void store_halves(__m256i v, std::uint8_t* a, std::uint8_t* b) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(a), _mm256_castsi256_si128(v));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(b), _mm256_extracti128_si256(v, 1));
}

// Nodes and the codes that they look at.
template <int E>
struct PairDecisions {
  const NodePairs<E>& nodes;
  const std::int8_t* codes;
  __m256i cuts;  // of all nodes, in either half

  PairDecisions(const NodePairs<E>& n, const std::int8_t* c) : nodes(n), codes(c) {
    if constexpr (sizeof nodes.cut == 8) {
      long long all;
      std::memcpy(&all, nodes.cut, sizeof all);
      cuts = _mm256_set1_epi64x(all);
    } else {
      cuts = _mm256_broadcastsi128_si256(load_half(nodes.cut));
    }
  }

  __m256i goes_left(int e) const {
    const __m256i which =
        _mm256_set_m128i(_mm_set1_epi8(static_cast<char>(2 * e + 1)), _mm_set1_epi8(static_cast<char>(2 * e)));
    const __m256i own = load_halves(codes + nodes.codes[e][0], codes + nodes.codes[e][1]);
    return _mm256_cmpgt_epi8(_mm256_shuffle_epi8(cuts, which), own);
  }
  // Of the first four, as in bitslice.inl.
  __m256i number() const {
    constexpr int n = E < 4 ? E : 4;
    __m256i decisions = _mm256_and_si256(goes_left(0), _mm256_set1_epi8(-128));
    RANKWOOD_UNROLL for (int e = 1; e < n; ++e) decisions = _mm256_avg_epu8(decisions, goes_left(e));
    return _mm256_srli_epi16(decisions, 8 - n);
  }
};

template <int E>
inline void run_pairs(const ClusterPair<E>* pairs, std::uint32_t n, const std::int8_t* codes, std::uint8_t* slots) {
  for (std::uint32_t i = 0; i < n; ++i) {
    const ClusterPair<E>& pair = pairs[i];
    const PairDecisions<E> decisions(pair.nodes, codes);
    const __m256i number = decisions.number();
    __m256i found = _mm256_shuffle_epi8(load_pair(pair.index[0]), number);
    RANKWOOD_UNROLL for (int e = 4; e < E; ++e) {
      const __m256i change = _mm256_shuffle_epi8(load_pair(pair.index[e - 3]), number);
      found = _mm256_xor_si256(found, _mm256_and_si256(change, decisions.goes_left(e)));
    }
    store_halves(found, slots + pair.slot[0], slots + pair.slot[1]);
  }
}

inline void run_upper_pairs(const UpperPair* pairs, std::uint32_t n, const std::int8_t* codes, std::uint8_t* slots) {
  for (std::uint32_t i = 0; i < n; ++i) {
    const UpperPair& pair = pairs[i];
    const __m256i number = PairDecisions<UpperCluster::kNodes>(pair.nodes, codes).number();
    __m256i which = _mm256_shuffle_epi8(load_pair(pair.child), number);
    __m256i found = _mm256_shuffle_epi8(load_pair(pair.index), number);
    RANKWOOD_UNROLL for (int b = 0; b < UpperCluster::kBelow; ++b) {
      const __m256i below = load_halves(slots + pair.below[b][0], slots + pair.below[b][1]);
      found = _mm256_blendv_epi8(found, below, which);
      which = _mm256_add_epi8(which, which);  // the next bit becomes the sign
    }
    store_halves(found, slots + pair.slot[0], slots + pair.slot[1]);
  }
}

inline void run_few_joins(const Join* joins, std::uint32_t n, const std::int8_t* codes, std::uint8_t* slots) {
  const auto operand = [&](std::uint16_t number) {
    if ((number & kConstant) != 0) return _mm_set1_epi8(static_cast<char>(number));
    return load_half(slots + number * kFewRows);
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    const Join& join = joins[i];
    const __m128i left = _mm_cmpgt_epi8(_mm_set1_epi8(join.cut.byte[0]), load_half(codes + join.column * kFewRows));
    const __m128i found = _mm_blendv_epi8(operand(join.right), operand(join.left), left);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(slots + join.slot * kFewRows), found);
  }
}

void find_few(const PairGroup& group, const std::int8_t* codes, std::uint8_t* slots) {
  run_pairs(group.pair1, group.n_pair1, codes, slots);
  run_pairs(group.pair2, group.n_pair2, codes, slots);
  run_pairs(group.pair3, group.n_pair3, codes, slots);
  run_pairs(group.pair4, group.n_pair4, codes, slots);
  run_pairs(group.pair5, group.n_pair5, codes, slots);
  run_pairs(group.pair6, group.n_pair6, codes, slots);
  run_upper_pairs(group.upper, group.n_upper, codes, slots);
  run_few_joins(group.join, group.n_join, codes, slots);
}
constexpr auto kFindFew = &find_few;
#else
constexpr void (*kFindFew)(const PairGroup&, const std::int8_t*, std::uint8_t*) = nullptr;
#endif

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::scoring
