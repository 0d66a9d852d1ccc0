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
#include "score/search.inl"
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
void quantise_by_value(const QuantiseTask<T>& task, const SearchTable<T>& column, Code* out) {
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

#if defined(__SSE2__)
constexpr std::size_t kManyRows = kValues / 2;  // from which on they are searched together
constexpr std::size_t kFeatures = 4;            // that are brought together at a time

// Values of up to kWidth rows, feature by feature, as float32 numbers.
struct Gathered {
  alignas(64) float values[kFeatures * kWidth] = {};
};

// Features [feature, feature + kFeatures) of rows whose features lie side by side.
template <class T>
inline void gather_four(const QuantiseTask<T>& task, std::ptrdiff_t feature, Gathered& to) {
  const T* from = task.rows + feature;
  std::size_t row = 0;
  for (; row + kValues <= task.n_rows; row += kValues) {
    transpose_four(from + static_cast<std::ptrdiff_t>(row) * task.row_stride, task.row_stride, to.values + row);
  }
  for (; row < task.n_rows; ++row) {
    const T* x = from + static_cast<std::ptrdiff_t>(row) * task.row_stride;
    for (std::size_t f = 0; f < kFeatures; ++f) to.values[f * kWidth + row] = round_up(x[f]);
  }
}

template <class T>
inline void gather_one(const QuantiseTask<T>& task, std::ptrdiff_t feature, Gathered& to) {
  const T* from = task.rows + feature * task.feature_stride;
  std::size_t row = 0;
  if (task.row_stride == 1) {
    for (; row + 4 <= task.n_rows; row += 4) _mm_storeu_ps(to.values + row, load_four(from + row));
  }
  for (; row < task.n_rows; ++row) {
    to.values[row] = round_up(from[static_cast<std::ptrdiff_t>(row) * task.row_stride]);
  }
}

template <int Offset, class T, class Code>
inline void write_codes(const QuantiseTask<T>& task, Bytes codes, Code* out) {
  if constexpr (sizeof(Code) == 1) {
    const Bytes shifted = codes ^ repeat(static_cast<std::int8_t>(Offset));  // 0 or -128
    if (task.code_row_stride == 1 && task.n_rows == kWidth) return store(out, shifted);
  }
  alignas(64) std::uint8_t each[kWidth];
  store(each, codes);
  for (std::size_t row = 0; row < task.n_rows; ++row) {
    out[row * task.code_row_stride] = static_cast<Code>(each[row] + Offset);
  }
}

// A column of up to kWidth rows whose values have been brought together at x.
template <int Offset, class T, class Code>
inline void quantise_at_once(const QuantiseTask<T>& task, const SearchTable<T>& column, const float* x, Code* out) {
  std::uint64_t doubtful = 0;
  if (sizeof(T) == sizeof(float) || !column.rounded) {
    return write_codes<Offset>(task, codes_at_once<false>(column, x, task.n_rows, doubtful), out);
  }
  write_codes<Offset>(task, codes_at_once<true>(column, x, task.n_rows, doubtful), out);
  const T* from = task.rows + column.feature * task.feature_stride;
  for (; doubtful != 0; doubtful &= doubtful - 1) {
    const auto row = static_cast<std::size_t>(__builtin_ctzll(doubtful));
    if (row >= task.n_rows) return;
    const T value = from[static_cast<std::ptrdiff_t>(row) * task.row_stride];
    out[row * task.code_row_stride] = static_cast<Code>(code_of<0, true>(column, value) + Offset);
  }
}

// Up to kWidth rows. Columns stand in the order of their features.
template <int Offset, class T, class Code>
void quantise_block(const QuantiseTask<T>& task, Code* codes) {
  Gathered gathered;
  const bool by_four = task.feature_stride == 1 && task.n_features >= kFeatures;
  const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(task.n_features - kFeatures);
  std::ptrdiff_t first = -static_cast<std::ptrdiff_t>(kFeatures);  // of the features at hand
  for (std::size_t c = 0; c < task.n_columns; ++c) {
    const SearchTable<T>& column = task.columns[c];
    Code* out = codes + c * task.code_column_stride;
    if (!is_searched_at_once(column)) {
      quantise_by_value<Offset>(task, column, out);
      continue;
    }
    const float* x = gathered.values;
    if (by_four) {
      if (column.feature >= first + static_cast<std::ptrdiff_t>(kFeatures)) {
        first = column.feature < last ? column.feature : last;
        gather_four(task, first, gathered);
      }
      x += (column.feature - first) * static_cast<std::ptrdiff_t>(kWidth);
    } else if (column.feature != first) {
      first = column.feature;
      gather_one(task, first, gathered);
    }
    quantise_at_once<Offset>(task, column, x, out);
  }
}
#endif

template <int Offset, class T, class Code>
void quantise(const QuantiseTask<T>& task, Code* codes) {
#if defined(__SSE2__)
  if (task.n_rows >= kManyRows) {
    QuantiseTask<T> block = task;
    for (std::size_t row = 0; row < task.n_rows; row += kWidth) {
      block.rows = task.rows + static_cast<std::ptrdiff_t>(row) * task.row_stride;
      block.n_rows = task.n_rows - row < kWidth ? task.n_rows - row : kWidth;
      quantise_block<Offset>(block, codes + row * task.code_row_stride);
    }
    return;
  }
#endif
  for (std::size_t c = 0; c < task.n_columns; ++c) {
    quantise_by_value<Offset>(task, task.columns[c], codes + c * task.code_column_stride);
  }
}

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::scoring
