// Vectors of feature values, one float32 per document, as wide as the registers of the instruction set that is being
// compiled. x86 and NEON have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "score/bytes.inl"
#include "score/unroll.hpp"

namespace rankwood::RANKWOOD_ISA_NS::scoring {
namespace {

// The smallest float32 that is not below x; NaN stays one. For a float32 number t, t < x just when t < round_up(x).
inline float round_up(float x) { return x; }
inline float round_up(double x) {
  const float nearest = static_cast<float>(x);
  if (!(static_cast<double>(nearest) < x)) return nearest;
  std::int32_t bits = 0;
  std::memcpy(&bits, &nearest, sizeof bits);
  bits += bits < 0 ? -1 : 1;  // one step up; not from -0, to which no positive number is rounded
  float above = 0.0f;
  std::memcpy(&above, &bits, sizeof above);
  return above;
}

#if defined(__AVX512BW__)
typedef __m512 Values;
typedef __m512i Paths;  // 32 bits per value
typedef __mmask16 Mask;
inline Values load_values(const float* from) { return _mm512_loadu_ps(from); }
inline void store_values(float* to, Values v) { _mm512_storeu_ps(to, v); }
inline Values repeat_value(float value) { return _mm512_set1_ps(value); }
inline Paths no_paths() { return _mm512_setzero_si512(); }
inline Paths repeat_path(std::int32_t path) { return _mm512_set1_epi32(path); }
inline Mask below(Values a, Values b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline Mask equal(Values a, Values b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
inline Mask missing(Values x) { return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); }
inline std::uint64_t bits_of(Mask mask) { return mask; }
inline Values choose(Mask mask, Values a, Values b) { return _mm512_mask_blend_ps(mask, b, a); }
inline Paths choose(Mask mask, Paths a, Paths b) { return _mm512_mask_blend_epi32(mask, b, a); }
inline Paths add_where(Mask mask, Paths paths, std::int32_t number) {
  return _mm512_mask_add_epi32(paths, mask, paths, _mm512_set1_epi32(number));
}
inline Mask has_bit(Paths paths, int bit) { return _mm512_test_epi32_mask(paths, _mm512_set1_epi32(1 << bit)); }
inline Values one_step_down(Values x) {
  const Paths bits = _mm512_castps_si512(x), sign = _mm512_srai_epi32(bits, 31);
  return _mm512_castsi512_ps(_mm512_sub_epi32(bits, _mm512_or_si512(sign, _mm512_set1_epi32(1))));
}

// 2^Bits numbers are looked up by the lowest bits of paths.
constexpr int kLookupBits = 5;
template <int Bits>
inline Values lookup_few(const float* table, Paths paths) {
  if constexpr (Bits <= 4) return _mm512_permutexvar_ps(paths, _mm512_loadu_ps(table));
  return _mm512_permutex2var_ps(_mm512_loadu_ps(table), paths, _mm512_loadu_ps(table + 16));
}

// The lowest byte of every path, in the order of the documents.
inline Bytes narrow(const Paths* p) {
  const Paths a = _mm512_packus_epi32(p[0], p[1]), b = _mm512_packus_epi32(p[2], p[3]);
  const Paths order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return reinterpret_cast<Bytes>(_mm512_permutexvar_epi32(order, _mm512_packus_epi16(a, b)));
}
#elif defined(__AVX2__)
typedef __m256 Values;
typedef __m256i Paths;
typedef __m256 Mask;  // the highest bit of a place counts
inline Values load_values(const float* from) { return _mm256_loadu_ps(from); }
inline void store_values(float* to, Values v) { _mm256_storeu_ps(to, v); }
inline Values repeat_value(float value) { return _mm256_set1_ps(value); }
inline Paths no_paths() { return _mm256_setzero_si256(); }
inline Paths repeat_path(std::int32_t path) { return _mm256_set1_epi32(path); }
inline Mask below(Values a, Values b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
inline Mask equal(Values a, Values b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
inline Mask missing(Values x) { return _mm256_cmp_ps(x, x, _CMP_UNORD_Q); }
inline std::uint64_t bits_of(Mask mask) { return static_cast<unsigned>(_mm256_movemask_ps(mask)); }
inline Values choose(Mask mask, Values a, Values b) { return _mm256_blendv_ps(b, a, mask); }
inline Paths choose(Mask mask, Paths a, Paths b) {
  return _mm256_castps_si256(choose(mask, _mm256_castsi256_ps(a), _mm256_castsi256_ps(b)));
}
inline Paths add_where(Mask mask, Paths paths, std::int32_t number) {
  const Paths all = _mm256_castps_si256(mask);
  return number == 1 ? _mm256_sub_epi32(paths, all)
                     : _mm256_or_si256(paths, _mm256_and_si256(all, _mm256_set1_epi32(number)));
}
inline Mask has_bit(Paths paths, int bit) { return _mm256_castsi256_ps(_mm256_slli_epi32(paths, 31 - bit)); }
inline Values one_step_down(Values x) {
  const Paths bits = _mm256_castps_si256(x), sign = _mm256_srai_epi32(bits, 31);
  return _mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_or_si256(sign, _mm256_set1_epi32(1))));
}

constexpr int kLookupBits = 3;
template <int Bits>
inline Values lookup_few(const float* table, Paths paths) {
  return _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), paths);
}

inline Bytes narrow(const Paths* p) {
  const Paths a = _mm256_packus_epi32(p[0], p[1]), b = _mm256_packus_epi32(p[2], p[3]);
  const Paths order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return reinterpret_cast<Bytes>(_mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order));
}
#elif defined(__SSE2__)
typedef __m128 Values;
typedef __m128i Paths;
typedef __m128 Mask;
inline Values load_values(const float* from) { return _mm_loadu_ps(from); }
inline void store_values(float* to, Values v) { _mm_storeu_ps(to, v); }
inline Values repeat_value(float value) { return _mm_set1_ps(value); }
inline Paths no_paths() { return _mm_setzero_si128(); }
inline Paths repeat_path(std::int32_t path) { return _mm_set1_epi32(path); }
inline Mask below(Values a, Values b) { return _mm_cmplt_ps(a, b); }
inline Mask equal(Values a, Values b) { return _mm_cmpeq_ps(a, b); }
inline Mask missing(Values x) { return _mm_cmpunord_ps(x, x); }
inline std::uint64_t bits_of(Mask mask) { return static_cast<unsigned>(_mm_movemask_ps(mask)); }
inline Values choose(Mask mask, Values a, Values b) { return _mm_or_ps(_mm_and_ps(mask, a), _mm_andnot_ps(mask, b)); }
inline Paths choose(Mask mask, Paths a, Paths b) {
  return _mm_castps_si128(choose(mask, _mm_castsi128_ps(a), _mm_castsi128_ps(b)));
}
inline Paths add_where(Mask mask, Paths paths, std::int32_t) {  // 1: there are no other numbers without look-ups
  return _mm_sub_epi32(paths, _mm_castps_si128(mask));
}
inline Values one_step_down(Values x) {
  const Paths bits = _mm_castps_si128(x), sign = _mm_srai_epi32(bits, 31);
  return _mm_castsi128_ps(_mm_sub_epi32(bits, _mm_or_si128(sign, _mm_set1_epi32(1))));
}

inline Bytes narrow(const Paths* p) {
  return reinterpret_cast<Bytes>(_mm_packus_epi16(_mm_packs_epi32(p[0], p[1]), _mm_packs_epi32(p[2], p[3])));
}
#elif defined(RANKWOOD_NEON)
typedef float32x4_t Values;
typedef uint32x4_t Paths;
typedef uint32x4_t Mask;
inline Values load_values(const float* from) { return vld1q_f32(from); }
inline void store_values(float* to, Values v) { vst1q_f32(to, v); }
inline Values repeat_value(float value) { return vdupq_n_f32(value); }
inline Paths no_paths() { return vdupq_n_u32(0); }
inline Paths repeat_path(std::int32_t path) { return vdupq_n_u32(static_cast<std::uint32_t>(path)); }
inline Mask below(Values a, Values b) { return vcltq_f32(a, b); }
inline Mask equal(Values a, Values b) { return vceqq_f32(a, b); }
inline Mask missing(Values x) { return vmvnq_u32(vceqq_f32(x, x)); }
inline std::uint64_t bits_of(Mask mask) {
  const Mask bits = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(mask, bits));
}
inline Values choose(Mask mask, Values a, Values b) { return vbslq_f32(mask, a, b); }
inline Paths choose(Mask mask, Paths a, Paths b) { return vbslq_u32(mask, a, b); }
inline Paths add_where(Mask mask, Paths paths, std::int32_t number) {
  return number == 1 ? vsubq_u32(paths, mask) : vorrq_u32(paths, vandq_u32(mask, repeat_path(number)));
}
inline Mask has_bit(Paths paths, int bit) { return vtstq_u32(paths, repeat_path(1 << bit)); }
inline int32x4_t step_up(int32x4_t bits) { return vorrq_s32(vshrq_n_s32(bits, 31), vdupq_n_s32(1)); }  // 1 or -1
inline Values one_step_down(Values x) {
  const int32x4_t bits = vreinterpretq_s32_f32(x);
  return vreinterpretq_f32_s32(vsubq_s32(bits, step_up(bits)));
}

// Bytes are looked up: a path becomes the places of its number's four bytes.
constexpr int kLookupBits = 4;
template <int Bits>
inline Values lookup_few(const float* table, Paths paths) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(table);
  const Paths low = vandq_u32(paths, vdupq_n_u32((1 << Bits) - 1));
  const uint8x16_t at = vreinterpretq_u8_u32(vmlaq_n_u32(vdupq_n_u32(0x03020100), low, 0x04040404));
  if constexpr (Bits <= 2) return vreinterpretq_f32_u8(vqtbl1q_u8(vld1q_u8(bytes), at));
  if constexpr (Bits == 3) return vreinterpretq_f32_u8(vqtbl2q_u8(vld1q_u8_x2(bytes), at));
  return vreinterpretq_f32_u8(vqtbl4q_u8(vld1q_u8_x4(bytes), at));
}

inline Bytes narrow(const Paths* p) {
  const auto halves = [&](int i) {
    return vreinterpretq_u8_u16(vuzp1q_u16(vreinterpretq_u16_u32(p[i]), vreinterpretq_u16_u32(p[i + 1])));
  };
  return reinterpret_cast<Bytes>(vuzp1q_u8(halves(0), halves(2)));
}
#endif

#if defined(RANKWOOD_HAS_VALUES)
constexpr std::size_t kValues = sizeof(Values) / sizeof(float);
static_assert(4 * kValues == kWidth);

// Four values of a row, rounded up.
#if defined(RANKWOOD_NEON)
inline Values load_four(const float* from) { return vld1q_f32(from); }
inline Values load_four(const double* from) {
  const float64x2_t x = vld1q_f64(from), y = vld1q_f64(from + 2);
  const float32x2_t a = vcvt_f32_f64(x), b = vcvt_f32_f64(y);
  const uint64x2_t low = vcltq_f64(vcvt_f64_f32(a), x), high = vcltq_f64(vcvt_f64_f32(b), y);
  const Mask is_below = vuzp1q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high));
  const int32x4_t bits = vreinterpretq_s32_f32(vcombine_f32(a, b));
  return vreinterpretq_f32_s32(vaddq_s32(bits, vandq_s32(step_up(bits), vreinterpretq_s32_u32(is_below))));
}
#else
inline __m128 load_four(const float* from) { return _mm_loadu_ps(from); }
#endif
#if defined(__AVX2__)
inline __m128 load_four(const double* from) {
  const __m256d x = _mm256_loadu_pd(from);
  const __m128 nearest = _mm256_cvtpd_ps(x);
  const __m256 is_below = _mm256_castpd_ps(_mm256_cmp_pd(_mm256_cvtps_pd(nearest), x, _CMP_LT_OQ));
  const __m128 low = _mm256_castps256_ps128(is_below), high = _mm256_extractf128_ps(is_below, 1);
  const __m128i all = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
  const __m128i bits = _mm_castps_si128(nearest), sign = _mm_srai_epi32(bits, 31);
  const __m128i step = _mm_and_si128(all, _mm_or_si128(sign, _mm_set1_epi32(1)));
  return _mm_castsi128_ps(_mm_add_epi32(bits, step));
}
#elif defined(__SSE2__)
inline __m128 load_four(const double* from) {
  const __m128d x = _mm_loadu_pd(from), y = _mm_loadu_pd(from + 2);
  const __m128 a = _mm_cvtpd_ps(x), b = _mm_cvtpd_ps(y);
  const __m128 low = _mm_castpd_ps(_mm_cmplt_pd(_mm_cvtps_pd(a), x));
  const __m128 high = _mm_castpd_ps(_mm_cmplt_pd(_mm_cvtps_pd(b), y));
  const __m128i all = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
  const __m128i bits = _mm_castps_si128(_mm_movelh_ps(a, b)), sign = _mm_srai_epi32(bits, 31);
  const __m128i step = _mm_and_si128(all, _mm_or_si128(sign, _mm_set1_epi32(1)));
  return _mm_castsi128_ps(_mm_add_epi32(bits, step));
}
#endif

// Four values, from `at` on, of each of the rows 0, 4, 8 and 12, or as many of them as there is room for.
#if defined(__AVX512BW__)
template <class T>
inline Values load_fours(const T* const* row, std::ptrdiff_t at) {
  Values v = _mm512_castps128_ps512(load_four(row[0] + at));
  v = _mm512_insertf32x4(v, load_four(row[4] + at), 1);
  v = _mm512_insertf32x4(v, load_four(row[8] + at), 2);
  return _mm512_insertf32x4(v, load_four(row[12] + at), 3);
}
#if defined(RANKWOOD_EMULATE_AVX512)
inline Values load_values(const double* from) {
  const double* fours[] = {from,    nullptr,  nullptr, nullptr, from + 4, nullptr,  nullptr,
                           nullptr, from + 8, nullptr, nullptr, nullptr,  from + 12};
  return load_fours(fours, 0);
}
#else
inline Values round_up(__m512d low, __m512d high) {
  constexpr int up = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvt_roundpd_ps(low, up)), _mm512_cvt_roundpd_ps(high, up), 1);
}
inline Values load_fours(const double* const* row, std::ptrdiff_t at) {
  const auto two = [&](int a, int b) {
    const __m512d first = _mm512_castpd256_pd512(_mm256_loadu_pd(row[a] + at));
    return _mm512_insertf64x4(first, _mm256_loadu_pd(row[b] + at), 1);
  };
  return round_up(two(0, 4), two(8, 12));
}
inline Values load_values(const double* from) { return round_up(_mm512_loadu_pd(from), _mm512_loadu_pd(from + 8)); }

#endif
inline Values low32(Values a, Values b) { return _mm512_unpacklo_ps(a, b); }
inline Values high32(Values a, Values b) { return _mm512_unpackhi_ps(a, b); }
inline Values low64(Values a, Values b) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
inline Values high64(Values a, Values b) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
#elif defined(__AVX2__)
template <class T>
inline Values load_fours(const T* const* row, std::ptrdiff_t at) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(load_four(row[0] + at)), load_four(row[4] + at), 1);
}
inline Values load_values(const double* from) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(load_four(from)), load_four(from + 4), 1);
}
inline Values low32(Values a, Values b) { return _mm256_unpacklo_ps(a, b); }
inline Values high32(Values a, Values b) { return _mm256_unpackhi_ps(a, b); }
inline Values low64(Values a, Values b) {
  return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
}
inline Values high64(Values a, Values b) {
  return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
}
#else
template <class T>
inline Values load_fours(const T* const* row, std::ptrdiff_t at) {
  return load_four(row[0] + at);
}
inline Values load_values(const double* from) { return load_four(from); }
#if defined(RANKWOOD_NEON)
inline float64x2_t pairs(Values v) { return vreinterpretq_f64_f32(v); }
inline Values low32(Values a, Values b) { return vzip1q_f32(a, b); }
inline Values high32(Values a, Values b) { return vzip2q_f32(a, b); }
inline Values low64(Values a, Values b) { return vreinterpretq_f32_f64(vzip1q_f64(pairs(a), pairs(b))); }
inline Values high64(Values a, Values b) { return vreinterpretq_f32_f64(vzip2q_f64(pairs(a), pairs(b))); }
#else
inline Values low32(Values a, Values b) { return _mm_unpacklo_ps(a, b); }
inline Values high32(Values a, Values b) { return _mm_unpackhi_ps(a, b); }
inline Values low64(Values a, Values b) { return _mm_movelh_ps(a, b); }
inline Values high64(Values a, Values b) { return _mm_movehl_ps(b, a); }
#endif
#endif

// Four features of kValues rows, feature by feature: out[feature * kWidth + row]. Rows are taken so that only places
// within 16 bytes change.
template <class T>
inline void transpose_four(const T* const* row, std::ptrdiff_t feature, float* out) {
  const Values a = load_fours(row, feature), b = load_fours(row + 1, feature);
  const Values c = load_fours(row + 2, feature), d = load_fours(row + 3, feature);
  const Values ab = low32(a, b), cd = low32(c, d), ab2 = high32(a, b), cd2 = high32(c, d);
  store_values(out, low64(ab, cd));
  store_values(out + kWidth, high64(ab, cd));
  store_values(out + 2 * kWidth, low64(ab2, cd2));
  store_values(out + 3 * kWidth, high64(ab2, cd2));
}

// The bytes of four vectors, four by four. Row r is at (r / 4 mod 4) * kWidth / 4 + r / 16 * 4 + r mod 4.
inline void interleave(const Bytes* from, std::uint32_t* out) {
#if defined(RANKWOOD_HAS_LOOKUP)
  const auto word = [&](int i) { return reinterpret_cast<Word>(from[i]); };
  const Word low = low8(word(0), word(1)), high = high8(word(0), word(1));
  const Word low2 = low8(word(2), word(3)), high2 = high8(word(2), word(3));
  store(out, reinterpret_cast<Bytes>(low16(low, low2)));
  store(out + kValues, reinterpret_cast<Bytes>(high16(low, low2)));
  store(out + 2 * kValues, reinterpret_cast<Bytes>(low16(high, high2)));
  store(out + 3 * kValues, reinterpret_cast<Bytes>(high16(high, high2)));
#else
  (void)from;
  (void)out;
#endif
}
#endif

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::scoring
