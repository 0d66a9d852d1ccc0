// Codes of feature values: how many thresholds of a column lie below a value.
//
// Included by isa/table.inl, once per instruction set. A search compares the value with 16 thresholds at once and
// counts; the count says which 16 of the next level to look at. No loop and no branch depends on the value.
#include <cstddef>
#include <cstdint>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "score/kernels.hpp"
#include "score/unroll.hpp"

namespace rankwood::RANKWOOD_ISA_NS::scoring {
namespace {

#if defined(__AVX512BW__)
inline std::int32_t count_below(const float* t, float x) {
  const __mmask16 below = _mm512_cmp_ps_mask(_mm512_loadu_ps(t), _mm512_set1_ps(x), _CMP_LT_OQ);
  return __builtin_popcount(below);
}
inline std::int32_t count_below(const double* t, double x) {
  const __m512d value = _mm512_set1_pd(x);
  const __mmask8 a = _mm512_cmp_pd_mask(_mm512_loadu_pd(t), value, _CMP_LT_OQ);
  const __mmask8 b = _mm512_cmp_pd_mask(_mm512_loadu_pd(t + 8), value, _CMP_LT_OQ);
  return __builtin_popcount(static_cast<unsigned>(a) | static_cast<unsigned>(b) << 8);
}
#elif defined(__AVX2__)
inline std::int32_t count_below(const float* t, float x) {
  const __m256 value = _mm256_set1_ps(x);
  const __m256i a = _mm256_castps_si256(_mm256_cmp_ps(_mm256_loadu_ps(t), value, _CMP_LT_OQ));
  const __m256i b = _mm256_castps_si256(_mm256_cmp_ps(_mm256_loadu_ps(t + 8), value, _CMP_LT_OQ));
  const int below = _mm256_movemask_epi8(_mm256_packs_epi32(a, b));  // two bits each
  return static_cast<std::int32_t>(static_cast<unsigned>(__builtin_popcount(static_cast<unsigned>(below))) / 2);
}
inline std::int32_t count_below(const double* t, double x) {
  const __m256d value = _mm256_set1_pd(x);
  const auto below = [&](int i) {
    return _mm256_castpd_si256(_mm256_cmp_pd(_mm256_loadu_pd(t + i), value, _CMP_LT_OQ));
  };
  const __m256i a = _mm256_packs_epi32(below(0), below(4)), b = _mm256_packs_epi32(below(8), below(12));
  const int all = _mm256_movemask_epi8(_mm256_packs_epi16(a, b));  // two bits each
  return static_cast<std::int32_t>(static_cast<unsigned>(__builtin_popcount(static_cast<unsigned>(all))) / 2);
}
#elif defined(__SSE2__)
// The thresholds are sorted, so those below come first: their number is that of the lowest bit that is not set.
inline std::int32_t count_below(const float* t, float x) {
  const __m128 value = _mm_set1_ps(x);
  const auto below = [&](int i) { return _mm_castps_si128(_mm_cmplt_ps(_mm_loadu_ps(t + i), value)); };
  const __m128i a = _mm_packs_epi32(below(0), below(4)), b = _mm_packs_epi32(below(8), below(12));
  return __builtin_ctz(~static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(a, b))));
}
inline std::int32_t count_below(const double* t, double x) {
  const __m128d value = _mm_set1_pd(x);
  const auto below = [&](int i) {  // four numbers
    const __m128 a = _mm_castpd_ps(_mm_cmplt_pd(_mm_loadu_pd(t + i), value));
    const __m128 b = _mm_castpd_ps(_mm_cmplt_pd(_mm_loadu_pd(t + i + 2), value));
    return _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)));
  };
  const __m128i a = _mm_packs_epi32(below(0), below(4)), b = _mm_packs_epi32(below(8), below(12));
  return __builtin_ctz(~static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(a, b))));
}
#else
template <class T>
inline std::int32_t count_below(const T* t, T x) {
  std::int32_t count = 0;
  for (int i = 0; i < 16; ++i) count += static_cast<std::int32_t>(t[i] < x);
  return count;
}
#endif

// Levels is the number of levels, 0: as the table says. A missing value is below no threshold and gets code 0, unless
// NanCode says that it may have another.
template <int Levels, bool NanCode, class T>
inline std::int32_t code_of(const SearchTable<T>& column, T x) {
  const int n_levels = Levels != 0 ? Levels : column.n_levels;
  std::int32_t code = 0;
  for (int level = 0; level < n_levels; ++level) {
    code = 16 * code + count_below(column.level[level] + 16 * static_cast<std::ptrdiff_t>(code), x);
  }
  return NanCode && x != x ? column.nan_code : code;
}

template <int Offset, int Levels, bool NanCode, class T, class Code>
inline void quantise_column(const QuantiseTask<T>& task, const SearchTable<T>& given, Code* out) {
  const SearchTable<T> column = given;  // a copy that writing codes cannot change
  const T* x = task.rows + static_cast<std::ptrdiff_t>(column.feature) * task.feature_stride;
  const std::ptrdiff_t x_stride = task.row_stride;
  const std::size_t n_rows = task.n_rows, out_stride = task.code_row_stride;
  RANKWOOD_UNROLL_4 for (std::size_t row = 0; row < n_rows; ++row) {
    *out = static_cast<Code>(code_of<Levels, NanCode>(column, *x) + Offset);
    x += x_stride;
    out += out_stride;
  }
}

template <int Offset, class T, class Code>
void quantise(const QuantiseTask<T>& task, Code* codes) {
  for (std::size_t c = 0; c < task.n_columns; ++c) {
    const SearchTable<T>& column = task.columns[c];
    Code* out = codes + c * task.code_column_stride;
    const bool nan_code = column.nan_code != 0;
    if (column.n_levels == 1 && !nan_code) {
      quantise_column<Offset, 1, false>(task, column, out);
    } else if (column.n_levels == 1) {
      quantise_column<Offset, 1, true>(task, column, out);
    } else if (column.n_levels == 2 && !nan_code) {
      quantise_column<Offset, 2, false>(task, column, out);
    } else if (column.n_levels == 2) {
      quantise_column<Offset, 2, true>(task, column, out);
    } else {
      quantise_column<Offset, 0, true>(task, column, out);
    }
  }
}

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::scoring
