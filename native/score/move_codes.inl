// Codes of the documents that are left, moved together: engine bitslice with early exit.
//
// Included by isa/table.inl, once per instruction set. Column after column, the codes that stay of some documents side
// by side are shuffled to the front and written behind those before them. Whole vectors are written: what a write has
// too much is written over by the next one, be it of the next column.
#include "score/bytes.inl"
#include "score/kernels.hpp"

namespace rankwood::RANKWOOD_ISA_NS::scoring {
namespace {

#if defined(__AVX512VBMI__)
constexpr std::size_t kMoveWidth = 64;
inline void move_column(const CodeMove& move, const std::int8_t* from, std::int8_t* to) {
  _mm512_storeu_si512(to, _mm512_permutexvar_epi8(_mm512_loadu_si512(move.index), _mm512_loadu_si512(from)));
}
#elif defined(__AVX2__)
constexpr std::size_t kMoveWidth = 16;
inline void move_column(const CodeMove& move, const std::int8_t* from, std::int8_t* to) {
  const __m128i index = _mm_loadu_si128(reinterpret_cast<const __m128i*>(move.index));
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(codes, index));
}
#elif defined(RANKWOOD_NEON)
constexpr std::size_t kMoveWidth = 16;
inline void move_column(const CodeMove& move, const std::int8_t* from, std::int8_t* to) {
  vst1q_s8(to, vqtbl1q_s8(vld1q_s8(from), vld1q_u8(move.index)));
}
#else
constexpr std::size_t kMoveWidth = kWidth;  // that divides every block, however narrow vectors are
inline void move_column(const CodeMove& move, const std::int8_t* from, std::int8_t* to) {
  for (std::size_t i = 0; i < move.count; ++i) to[i] = from[move.index[i]];
}
#endif

void move_codes(const CodeMove* moves, std::size_t n_moves, std::size_t n_columns) {
  for (std::size_t column = 0; column < n_columns; ++column) {
    for (std::size_t m = 0; m < n_moves; ++m) {
      const CodeMove& move = moves[m];
      move_column(move, move.from + column * move.from_stride, move.to + column * move.to_stride);
    }
  }
}

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::scoring
