// Vectors of bytes, one byte per document, as wide as the registers of the instruction set that is being compiled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(RANKWOOD_NEON)  // isa/neon.cpp
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <immintrin.h>
#endif

// Vectors of feature values (values.inl), and look-ups by the bytes of a vector.
#if defined(__SSE2__) || defined(RANKWOOD_NEON)
#define RANKWOOD_HAS_VALUES 1
#endif
#if defined(__AVX2__) || defined(RANKWOOD_NEON)
#define RANKWOOD_HAS_LOOKUP 1
#endif

namespace rankwood::RANKWOOD_ISA_NS::scoring {
namespace {

#if !defined(__GNUC__)
#define RANKWOOD_BYTES  // one document at a time
#elif defined(__AVX512BW__)
#define RANKWOOD_BYTES __attribute__((vector_size(64)))
#elif defined(__AVX2__)
#define RANKWOOD_BYTES __attribute__((vector_size(32)))
#else
#define RANKWOOD_BYTES __attribute__((vector_size(16)))
#endif
typedef std::int8_t Bytes RANKWOOD_BYTES;
typedef std::uint8_t UnsignedBytes RANKWOOD_BYTES;
#undef RANKWOOD_BYTES
constexpr std::size_t kWidth = sizeof(Bytes);

inline Bytes load(const void* from) {
  Bytes v;
  std::memcpy(&v, from, kWidth);
  return v;
}
inline void store(void* to, Bytes v) { std::memcpy(to, &v, kWidth); }

#if defined(__GNUC__)
inline Bytes repeat(std::int8_t value) { return value - Bytes{}; }
inline Bytes greater(Bytes a, Bytes b) { return a > b; }  // -1 where it is, else 0
#else
inline Bytes repeat(std::int8_t value) { return value; }
inline Bytes greater(Bytes a, Bytes b) { return static_cast<Bytes>(a > b ? -1 : 0); }
#endif

// Whether each document of a vector goes one way: a register of masks where there are such, else -1 or 0 per document.
#if defined(__AVX512BW__)
typedef __mmask64 Choice;
inline Choice chosen(Bytes a, Bytes b) {  // where a > b
  return _mm512_cmpgt_epi8_mask(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b));
}
inline Bytes number_where(Choice choice, std::int8_t number) {  // else 0
  return reinterpret_cast<Bytes>(_mm512_maskz_mov_epi8(choice, _mm512_set1_epi8(number)));
}
inline Bytes add_where(Choice choice, Bytes v, std::int8_t number) {  // a bit that v has not
  const __m512i all = reinterpret_cast<__m512i>(v);
  return reinterpret_cast<Bytes>(_mm512_mask_add_epi8(all, choice, all, _mm512_set1_epi8(number)));
}
#else
typedef Bytes Choice;
inline Choice chosen(Bytes a, Bytes b) { return greater(a, b); }
inline Bytes number_where(Choice choice, std::int8_t number) { return static_cast<Bytes>(choice & repeat(number)); }
inline Bytes add_where(Choice choice, Bytes v, std::int8_t number) {
  return static_cast<Bytes>(v | (choice & repeat(number)));
}
#endif

// A byte that stands four times in memory, in every place: an instruction of its own where bytes have none.
inline Bytes repeat_four(const std::int8_t* four) {
#if defined(__AVX512BW__)
  std::int32_t all;
  std::memcpy(&all, four, sizeof all);
  return reinterpret_cast<Bytes>(_mm512_set1_epi32(all));
#elif defined(__AVX2__)
  std::int32_t all;
  std::memcpy(&all, four, sizeof all);
  return reinterpret_cast<Bytes>(_mm256_set1_epi32(all));
#else
  return repeat(*four);
#endif
}

// Every byte moved up by one bit.
inline Bytes twice(Bytes v) {
  const UnsignedBytes bits = (UnsignedBytes)v;  // where overflow is defined
  return (Bytes)(bits + bits);
}

// a where the mask is -1, b where it is 0.
inline Bytes select(Bytes mask, Bytes a, Bytes b) {
#if defined(__AVX512BW__)
  return reinterpret_cast<Bytes>(_mm512_mask_blend_epi8(_mm512_movepi8_mask(reinterpret_cast<__m512i>(mask)),
                                                        reinterpret_cast<__m512i>(b), reinterpret_cast<__m512i>(a)));
#elif defined(RANKWOOD_NEON)
  return reinterpret_cast<Bytes>(
      vbslq_u8(reinterpret_cast<uint8x16_t>(mask), reinterpret_cast<uint8x16_t>(a), reinterpret_cast<uint8x16_t>(b)));
#else
  return static_cast<Bytes>(b ^ ((a ^ b) & mask));  // where both are constant faster than AVX2's own instruction
#endif
}

#if defined(__AVX512BW__)
inline Bytes select(Choice choice, Bytes a, Bytes b) {
  return reinterpret_cast<Bytes>(
      _mm512_mask_blend_epi8(choice, reinterpret_cast<__m512i>(b), reinterpret_cast<__m512i>(a)));
}
#endif

// Whether there is a look-up of 16 bytes by index, for all documents of a vector at once.
#if defined(__AVX512BW__)
constexpr bool kHasLookup = true;
inline Bytes table16(const std::uint8_t* table) {
  return reinterpret_cast<Bytes>(_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table))));
}
inline Bytes lookup16(Bytes table, Bytes index) {
  return reinterpret_cast<Bytes>(
      _mm512_shuffle_epi8(reinterpret_cast<__m512i>(table), reinterpret_cast<__m512i>(index)));
}
// And of 32 or 64 bytes.
constexpr int kTableBits = 6;
inline Bytes table32(const std::uint8_t* table) {
  return reinterpret_cast<Bytes>(_mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(table))));
}
inline Bytes lookup64(Bytes table, Bytes index) {
  return reinterpret_cast<Bytes>(
      _mm512_permutexvar_epi8(reinterpret_cast<__m512i>(index), reinterpret_cast<__m512i>(table)));
}
#elif defined(__AVX2__)
constexpr bool kHasLookup = true;
inline Bytes table16(const std::uint8_t* table) {
  return reinterpret_cast<Bytes>(_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table))));
}
inline Bytes lookup16(Bytes table, Bytes index) {
  return reinterpret_cast<Bytes>(
      _mm256_shuffle_epi8(reinterpret_cast<__m256i>(table), reinterpret_cast<__m256i>(index)));
}
#elif defined(RANKWOOD_NEON)
constexpr bool kHasLookup = true;
inline Bytes table16(const std::uint8_t* table) { return load(table); }
inline Bytes lookup16(Bytes table, Bytes index) {
  return reinterpret_cast<Bytes>(vqtbl1q_u8(reinterpret_cast<uint8x16_t>(table), reinterpret_cast<uint8x16_t>(index)));
}
#else
constexpr bool kHasLookup = false;
inline Bytes table16(const std::uint8_t*) { return Bytes{}; }
inline Bytes lookup16(Bytes, Bytes index) { return index; }
#endif
#if !defined(__AVX512BW__)
constexpr int kTableBits = 4;
inline Bytes table32(const std::uint8_t*) { return Bytes{}; }
inline Bytes lookup64(Bytes, Bytes index) { return index; }
#endif

// The bytes, words or double words of a and b in turn, within each 16 bytes: of their lower or higher halves.
#if defined(__AVX512BW__)
typedef __m512i Word;
inline Word low8(Word a, Word b) { return _mm512_unpacklo_epi8(a, b); }
inline Word high8(Word a, Word b) { return _mm512_unpackhi_epi8(a, b); }
inline Word low16(Word a, Word b) { return _mm512_unpacklo_epi16(a, b); }
inline Word high16(Word a, Word b) { return _mm512_unpackhi_epi16(a, b); }
inline Word low32(Word a, Word b) { return _mm512_unpacklo_epi32(a, b); }
inline Word high32(Word a, Word b) { return _mm512_unpackhi_epi32(a, b); }
#elif defined(__AVX2__)
typedef __m256i Word;
inline Word low8(Word a, Word b) { return _mm256_unpacklo_epi8(a, b); }
inline Word high8(Word a, Word b) { return _mm256_unpackhi_epi8(a, b); }
inline Word low16(Word a, Word b) { return _mm256_unpacklo_epi16(a, b); }
inline Word high16(Word a, Word b) { return _mm256_unpackhi_epi16(a, b); }
inline Word low32(Word a, Word b) { return _mm256_unpacklo_epi32(a, b); }
inline Word high32(Word a, Word b) { return _mm256_unpackhi_epi32(a, b); }
#elif defined(RANKWOOD_NEON)
typedef uint8x16_t Word;
inline uint16x8_t words16(Word v) { return vreinterpretq_u16_u8(v); }
inline uint32x4_t words32(Word v) { return vreinterpretq_u32_u8(v); }
inline Word low8(Word a, Word b) { return vzip1q_u8(a, b); }
inline Word high8(Word a, Word b) { return vzip2q_u8(a, b); }
inline Word low16(Word a, Word b) { return vreinterpretq_u8_u16(vzip1q_u16(words16(a), words16(b))); }
inline Word high16(Word a, Word b) { return vreinterpretq_u8_u16(vzip2q_u16(words16(a), words16(b))); }
inline Word low32(Word a, Word b) { return vreinterpretq_u8_u32(vzip1q_u32(words32(a), words32(b))); }
inline Word high32(Word a, Word b) { return vreinterpretq_u8_u32(vzip2q_u32(words32(a), words32(b))); }
#endif

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::scoring
