// Codes of feature values: how many thresholds of a column lie below a value.
//
// Included by isa/table.inl, once per instruction set. Where there are enough rows, their values are brought together
// feature by feature and searched at once (search.inl). A few rows, and columns with too many thresholds for that, are
// searched value by value: a value is compared with 16 thresholds at once; their count says which 16 of the next level
// to look at. No loop and no branch depends on a value, but for float64 values that float32 numbers cannot tell from a
// threshold.
#include <cstddef>
#include <cstdint>

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
#elif defined(RANKWOOD_NEON)
inline std::int32_t count_below(const float* t, float x) {
  const float32x4_t value = vdupq_n_f32(x);
  const auto below = [&](int i) { return vreinterpretq_s32_u32(vcltq_f32(vld1q_f32(t + i), value)); };  // -1 or 0
  return -vaddvq_s32(vaddq_s32(vaddq_s32(below(0), below(4)), vaddq_s32(below(8), below(12))));
}
inline std::int32_t count_below(const double* t, double x) {
  const float64x2_t value = vdupq_n_f64(x);
  const auto below = [&](int i) {  // four numbers
    const auto two = [&](int j) { return vreinterpretq_s64_u64(vcltq_f64(vld1q_f64(t + j), value)); };
    return vaddq_s64(two(i), two(i + 2));
  };
  return -static_cast<std::int32_t>(
      vaddvq_s64(vaddq_s64(vaddq_s64(below(0), below(4)), vaddq_s64(below(8), below(12)))));
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
inline void quantise_by_value(const QuantiseTask<T>& task, const SearchTable<T>& column, Code* out) {
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

// What is read next, a bit of it with every column: all at once would be more than the processor keeps track of.
template <class T>
struct Ahead {
  static constexpr std::size_t kLine = 64 / sizeof(T);
  const T *at, *end;
  std::size_t n_lines;  // at a time

  explicit Ahead(const QuantiseTask<T>& task)
      : at(task.ahead),
        end(task.ahead_end),
        n_lines(static_cast<std::size_t>(end - at) / (kLine * (task.n_columns + 1)) + 1) {}
  void fetch() {
    for (std::size_t i = 0; i < n_lines && end - at > static_cast<std::ptrdiff_t>(kLine); ++i, at += kLine) {
#if defined(__GNUC__)
      __builtin_prefetch(at, 0, 2);  // into the second-level cache: the first has the rows at hand
#endif
    }
  }
};

#if defined(RANKWOOD_HAS_VALUES)
constexpr std::size_t kFeatures = 4;  // that are brought together at a time

// Values of up to kWidth rows, feature by feature, as float32 numbers. Places behind the last row hold any values.
template <class T>
struct Gathered {
  const T* row[kWidth];
  std::size_t n_vectors;
  alignas(64) float values[kFeatures * kWidth];

  explicit Gathered(const QuantiseTask<T>& task) : n_vectors((task.n_rows + kValues - 1) / kValues) {
    const T* at = task.rows;
    for (std::size_t i = 0; i < n_vectors * kValues; ++i) {
      row[i] = at;
      if (i + 1 < task.n_rows) at += task.row_stride;  // the last one fills its vector
    }
  }

  // Features [feature, feature + kFeatures) of rows whose features lie side by side.
  void take_four(std::ptrdiff_t feature) {
    for (std::size_t v = 0; v < n_vectors; ++v) {
      transpose_four(row + v * kValues, feature, values + v * kValues);
    }
  }

  void take_one(const QuantiseTask<T>& task, std::ptrdiff_t feature) {
    const std::ptrdiff_t at = feature * task.feature_stride;
    std::size_t i = 0;
    if (task.row_stride == 1) {
      for (; i + kValues <= task.n_rows; i += kValues) store_values(values + i, load_values(row[i] + at));
    }
    for (; i < n_vectors * kValues; ++i) values[i] = round_up(row[i][at]);
  }
};

// The codes of column c of up to kWidth rows whose values have been brought together at x.
template <class T>
inline Bytes search_column(const QuantiseTask<T>& task, std::size_t c, const float* x) {
  const StepTable& table = task.steps[c];
  const SearchTable<T>& column = task.columns[c];
  std::uint64_t doubtful = 0;
  if (sizeof(T) == sizeof(float) || !table.rounded) {
    return codes_at_once<false>(table, column.nan_code, x, task.n_rows, doubtful);
  }
  const Bytes codes = codes_at_once<true>(table, column.nan_code, x, task.n_rows, doubtful);
  if (doubtful == 0) return codes;
  std::uint8_t each[kWidth];
  store(each, codes);
  const T* from = task.rows + column.feature * task.feature_stride;
  for (; doubtful != 0; doubtful &= doubtful - 1) {
    const auto row = static_cast<std::size_t>(__builtin_ctzll(doubtful));
    if (row >= task.n_rows) break;
    const T value = from[static_cast<std::ptrdiff_t>(row) * task.row_stride];
    each[row] = static_cast<std::uint8_t>(code_of<0, true>(column, value));
  }
  return load(each);
}

// Codes on their way to memory. Where the columns of a row lie side by side, four of them go together.
template <int Offset, class T, class Code>
struct Writer {
  static constexpr std::size_t kColumns = 4;
  const QuantiseTask<T>& task;
  const bool by_four;
  std::size_t n_waiting = 0;
  Code* first = nullptr;  // where the waiting ones go
  Bytes waiting[kColumns];

  explicit Writer(const QuantiseTask<T>& t)
      : task(t), by_four(kHasLookup && sizeof(Code) == 1 && t.code_column_stride == 1 && t.code_row_stride > 1) {}

  void write(Bytes codes, Code* out) {
    const Bytes shifted = codes ^ repeat(static_cast<std::int8_t>(Offset));  // 0 or -128
    if (sizeof(Code) == 1 && task.code_room >= kWidth) return store(out, shifted);
    if (sizeof(Code) == 1 && task.code_room == kFewRows) {
      std::memcpy(out, &shifted, kWidth < kFewRows ? kWidth : kFewRows);
      return;
    }
    if (!by_four) return write_one(codes, out);
    if (n_waiting == 0) first = out;
    waiting[n_waiting++] = shifted;
    if (n_waiting == kColumns) write_four();
  }
  // What waits is for neighbours: to be called before a column is left out, and in the end.
  void flush() {
    for (std::size_t i = 0; i < n_waiting; ++i)
      write_one(waiting[i] ^ repeat(static_cast<std::int8_t>(Offset)), first + i);
    n_waiting = 0;
  }

 private:
  void write_one(Bytes codes, Code* out) {
    std::uint8_t each[kWidth];
    store(each, codes);
    for (std::size_t row = 0; row < task.n_rows; ++row) {
      out[row * task.code_row_stride] = static_cast<Code>(each[row] + Offset);
    }
  }

  void write_four() {
    std::uint32_t each[kWidth];  // the codes of a row
    interleave(waiting, each);
    for (std::size_t row = 0; row < task.n_rows; ++row) {
      const std::size_t at = (row >> 2 & 3) * (kWidth / 4) + (row >> 4 << 2) + (row & 3);
      std::memcpy(first + row * task.code_row_stride, each + at, sizeof each[0]);
    }
    n_waiting = 0;
  }
};

// The columns that are searched at once where there are n_rows rows, for up to kWidth of them. Columns stand in the
// order of their features.
template <int Offset, class T, class Code>
void quantise_block(const QuantiseTask<T>& task, std::size_t n_rows, Ahead<T>& ahead, Code* codes) {
  Gathered<T> gathered(task);
  Writer<Offset, T, Code> writer(task);
  const bool by_four = task.feature_stride == 1 && task.n_features >= kFeatures;
  const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(task.n_features - kFeatures);
  std::ptrdiff_t first = -static_cast<std::ptrdiff_t>(kFeatures);  // of the features at hand
  for (std::size_t c = 0; c < task.n_columns; ++c) {
    const SearchTable<T>& column = task.columns[c];
    Code* out = codes + c * task.code_column_stride;
    ahead.fetch();
    if (!is_searched_at_once(task.steps[c], n_rows)) {
      writer.flush();
      continue;
    }
    const float* x = gathered.values;
    if (by_four) {
      if (column.feature >= first + static_cast<std::ptrdiff_t>(kFeatures)) {
        first = column.feature < last ? column.feature : last;
        gathered.take_four(first);
      }
      x += (column.feature - first) * static_cast<std::ptrdiff_t>(kWidth);
    } else if (column.feature != first) {
      first = column.feature;
      gathered.take_one(task, first);
    }
    writer.write(search_column(task, c, x), out);
  }
  writer.flush();
}
#endif

template <int Offset, class T, class Code>
void quantise(const QuantiseTask<T>& task, Code* codes) {
  if (task.n_rows == 1) {  // where every step counts
    for (std::size_t c = 0; c < task.n_columns; ++c) {
      const SearchTable<T>& column = task.columns[c];
      const T x = task.rows[static_cast<std::ptrdiff_t>(column.feature) * task.feature_stride];
      codes[c * task.code_column_stride] = static_cast<Code>(code_of<0, true>(column, x) + Offset);
    }
    return;
  }
  Ahead<T> ahead(task);
#if defined(RANKWOOD_HAS_VALUES)
  // Codes that lie apart are put side by side where they are bytes and there are look-ups; else it does not pay.
  const bool writes_well = task.code_row_stride == 1 || (kHasLookup && sizeof(Code) == 1);
  const bool at_once = task.n_rows >= kFewestRows[0] && writes_well;
  if (at_once) {
    QuantiseTask<T> block = task;
    for (std::size_t row = 0; row < task.n_rows; row += kWidth) {
      block.rows = task.rows + static_cast<std::ptrdiff_t>(row) * task.row_stride;
      block.n_rows = task.n_rows - row < kWidth ? task.n_rows - row : kWidth;
      block.code_room = task.code_room > row ? task.code_room - row : 0;
      quantise_block<Offset>(block, task.n_rows, ahead, codes + row * task.code_row_stride);
    }
  }
  const auto is_done = [&](std::size_t c) { return at_once && is_searched_at_once(task.steps[c], task.n_rows); };
#else
  const auto is_done = [](std::size_t) { return false; };
#endif
  for (std::size_t c = 0; c < task.n_columns; ++c) {
    if (is_done(c)) continue;
    ahead.fetch();
    quantise_by_value<Offset>(task, task.columns[c], codes + c * task.code_column_stride);
  }
}

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::scoring
