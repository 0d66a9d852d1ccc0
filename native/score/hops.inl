// Which leaves of some trees does one document reach? All nodes of up to 64 at once, a byte per node.
//
// Included by isa/table.inl, once per instruction set; only those with look-ups of 64 bytes have it. hop_trees.hpp says
// how trees lie side by side. The columns of all nodes look their codes up, one comparison decides all nodes, and every
// node points to one of its children. Then pointers leap: where a node's child is a node itself, the pointer becomes
// the child's. After r rounds a pointer has gone 2^r levels down, or to a leaf.
#pragma once

#include <cstddef>
#include <cstdint>

#include "score/bytes.inl"
#include "score/kernels.hpp"
#include "score/unroll.hpp"

namespace rankwood::RANKWOOD_ISA_NS::scoring {
namespace {

#if defined(__AVX512BW__)
// Codes of a document, up to 64 in each of Tables registers, looked up by column. What is read behind the last of them
// is never looked up.
template <int Tables>
struct CodeTable {
  __m512i part[Tables];
  explicit CodeTable(const std::uint8_t* codes) {
    for (int i = 0; i < Tables; ++i) part[i] = _mm512_loadu_si512(codes + 64 * i);
  }
  __m512i operator()(__m512i columns) const {
    if constexpr (Tables == 1) return _mm512_permutexvar_epi8(columns, part[0]);
    if constexpr (Tables >= 2) {
      const __m512i low = _mm512_permutex2var_epi8(part[0], columns, part[1]);
      if constexpr (Tables == 2) return low;
      if constexpr (Tables == 3) {
        return _mm512_mask_permutexvar_epi8(low, _mm512_movepi8_mask(columns), columns, part[2]);
      }
      if constexpr (Tables == 4) {
        const __m512i high = _mm512_permutex2var_epi8(part[2], columns, part[3]);
        return _mm512_mask_blend_epi8(_mm512_movepi8_mask(columns), low, high);
      }
    }
  }
};

template <int Tables, int Rounds>
void find_by_hops(const HopTask& task, const std::uint8_t* codes, std::uint8_t* leaf) {
  const CodeTable<Tables> table(codes);
  const HopPack* const end = task.packs + task.n_packs;
  const std::uint8_t* n_trees = task.n_trees;
  for (const HopPack* pack = task.packs; pack != end; ++pack) {
    const __m512i code = table(_mm512_load_si512(pack->column));
    const __mmask64 right = _mm512_cmpgt_epu8_mask(code, _mm512_load_si512(pack->code));
    __m512i next = _mm512_mask_blend_epi8(right, _mm512_load_si512(pack->left), _mm512_load_si512(pack->right));
    RANKWOOD_UNROLL for (int round = 0; round < Rounds; ++round) {  // a look-up takes the lowest six bits
      next = _mm512_mask_permutexvar_epi8(next, _mm512_movepi8_mask(next), next, next);
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(leaf), _mm512_castsi512_si128(next));
    leaf += *n_trees++;
  }
}

template <int Tables>
void find_by_hops(const HopTask& task, const std::uint8_t* codes, std::uint8_t* leaf) {
  switch (task.n_rounds) {
    case 0:
    case 1:
    case 2:
      return find_by_hops<Tables, 2>(task, codes, leaf);
    case 3:
      return find_by_hops<Tables, 3>(task, codes, leaf);
    case 4:
      return find_by_hops<Tables, 4>(task, codes, leaf);
    case 5:
      return find_by_hops<Tables, 5>(task, codes, leaf);
    default:
      return find_by_hops<Tables, 6>(task, codes, leaf);
  }
}

void hop(const HopTask& task, const std::uint8_t* codes, std::uint8_t* leaf) {
  switch ((task.n_columns + 63) / 64) {
    case 0:
    case 1:
      return find_by_hops<1>(task, codes, leaf);
    case 2:
      return find_by_hops<2>(task, codes, leaf);
    case 3:
      return find_by_hops<3>(task, codes, leaf);
    default:
      return find_by_hops<4>(task, codes, leaf);
  }
}
constexpr auto kHop = &hop;
#else
constexpr void (*kHop)(const HopTask&, const std::uint8_t*, std::uint8_t*) = nullptr;
#endif

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::scoring
