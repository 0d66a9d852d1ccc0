// Decimal numbers of up to 15 characters with no exponent, "0", "-34.946501": nearly everything in ranking data.
// No branch depends on the text. Compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif
#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

namespace rankwood::RANKWOOD_ISA_NS {

// +-10^k, and its inverse rounded.
struct DecimalScale {
  double divisor, inverse;
};

struct DecimalScales {
  DecimalScale scale[2][16];  // [negative][k]

  constexpr DecimalScales() : scale{} {
    constexpr double kInverse[16] = {1e0,  1e-1, 1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,
                                     1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15};
    double power = 1.0;
    for (int k = 0; k < 16; ++k, power *= 10.0) {
      scale[0][k] = {power, kInverse[k]};
      scale[1][k] = {-power, -kInverse[k]};
    }
  }
};
inline constexpr DecimalScales kDecimalScales;

// The number is digits / scale->divisor, both exact: digits < 10^15. Or it is not ok.
struct ShortDecimal {
  std::int64_t digits;
  const DecimalScale* scale;
  bool ok;

  // The nearest double: there is one rounding only.
  double as_double() const { return static_cast<double>(digits) / scale->divisor; }

  // The nearest float, or false when that takes more care. The product is within 1.5 units in the last place of the
  // number, and casting it to float goes wrong only if a midpoint between two floats (low 29 bits: 1 and 28 zeros)
  // lies between the two.
  bool as_float(float& value) const {
    const double product = static_cast<double>(digits) * scale->inverse;
    std::uint64_t bits;
    std::memcpy(&bits, &product, sizeof bits);
    const bool near_midpoint = (bits & 0x1fffffff) - 0x0ffffffc < 8;
    value = static_cast<float>(product);
    return ok & !near_midpoint;
  }
};

inline std::uint64_t load_word(const char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

// Number of zeros below the lowest bit that is set; there is one. (std::countr_zero is a template with linkage.)
inline unsigned trailing_zeros(std::uint64_t word) {
#if defined(_MSC_VER) && !defined(__clang__)
  unsigned long place;
  _BitScanForward64(&place, word);
  return place;
#else
  return static_cast<unsigned>(__builtin_ctzll(word));
#endif
}

#if defined(__SSE4_1__)

// How to read a token of a given form: where its digits go, right-aligned, and what they are scaled by.
struct alignas(32) DecimalForm {
  std::uint8_t from[16];  // source byte of every digit; 0x80 for a leading zero
  DecimalScale scale;
};

struct DecimalForms {
  DecimalForm form[512];  // at [starts with a minus][size][place of the point; size when there is none]

  static constexpr unsigned place(unsigned minus, unsigned size, unsigned point) {
    return minus * 256 + size * 16 + point;
  }

  constexpr DecimalForms() : form{} {
    for (unsigned i = 0; i < 512; ++i) form[i] = make(i / 256, i / 16 % 16, i % 16);
  }

  static constexpr DecimalForm make(unsigned minus, unsigned size, unsigned point) {
    DecimalForm form{};
    unsigned to = 16;
    for (unsigned i = size; i > minus; --i) {
      if (i - 1 != point) form.from[--to] = static_cast<std::uint8_t>(i - 1);
    }
    if (to == 16) form.from[--to] = 0;  // no digit at all: picks a character that is none either
    while (to > 0) form.from[--to] = 0x80;
    form.scale = kDecimalScales.scale[minus][point < size ? size - 1 - point : 0];
    return form;
  }
};
alignas(64) inline constexpr DecimalForms kDecimalForms;

class ShortDecimalParser {
 public:
  ShortDecimalParser() {
    // Else the compiler builds these constants anew for every number.
    asm volatile("" : "+x"(point_), "+x"(zero_), "+x"(nine_), "+x"(tens_), "+x"(hundreds_), "+x"(myriads_));
    asm volatile("" : "+r"(forms_));
  }

  // The number in the `size` characters at `text`. Reads 16 of them.
  ShortDecimal operator()(const char* text, std::size_t size) const {
    const __m128i chars = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
    const unsigned points = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(chars, point_)));
    const unsigned small_size = static_cast<unsigned>(size) & 15;
    const unsigned point = static_cast<unsigned>(__builtin_ctz(points | (1u << small_size)));
    const DecimalForm& form = forms_[DecimalForms::place(*text == '-', small_size, point)];
    const __m128i digits =
        _mm_shuffle_epi8(_mm_sub_epi8(chars, zero_), _mm_load_si128(reinterpret_cast<const __m128i*>(form.from)));
    const bool all_digits = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(digits, nine_), digits)) == 0xffff;
    __m128i sum = _mm_maddubs_epi16(digits, tens_);  // pairs of digits, then fours, then eights
    sum = _mm_madd_epi16(sum, hundreds_);
    sum = _mm_madd_epi16(_mm_packus_epi32(sum, sum), myriads_);
    const auto eights = static_cast<std::uint64_t>(_mm_cvtsi128_si64(sum));
    const std::uint64_t value = (eights & 0xffffffff) * 100'000'000 + (eights >> 32);
    return {static_cast<std::int64_t>(value), &form.scale, all_digits && size < 16};
  }

 private:
  __m128i point_ = _mm_set1_epi8('.'), zero_ = _mm_set1_epi8('0'), nine_ = _mm_set1_epi8(9);
  __m128i tens_ = _mm_set1_epi16(10 | 1 << 8);
  __m128i hundreds_ = _mm_set1_epi32(100 | 1 << 16), myriads_ = _mm_set1_epi32(10'000 | 1 << 16);
  const DecimalForm* forms_ = kDecimalForms.form;
};

#else

// Without a byte shuffle: eight characters in a word, those of the token at its end. Little-endian words only;
// elsewhere a plain loop.
class ShortDecimalParser {
 public:
  // The number in the `size` characters at `text`. Reads up to 16 characters before their end.
  ShortDecimal operator()(const char* text, std::size_t size) const {
    const bool minus = *text == '-';
    text += minus;
    size -= minus;
    if (size - 1 >= 15) return {0, &kDecimalScales.scale[0][0], false};
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return by_loop(text, size, minus);
#else
    const char* end = text + size;
    std::uint64_t low = load_word(end - 8) ^ kZeros;
    std::uint64_t high = 0;
    if (size <= 8) {
      low &= ~std::uint64_t{0} << (64 - 8 * size);
    } else {
      high = (load_word(end - 16) ^ kZeros) & (~std::uint64_t{0} << (128 - 8 * size));
    }
    const std::uint64_t low_point = find_point(low), high_point = find_point(high);
    unsigned decimals = 0;
    if (low_point != 0) {
      const unsigned place = trailing_zeros(low_point) / 8;
      low = without_byte(low, place) | high >> 56;
      high <<= 8;
      decimals = 7 - place;
    } else if (high_point != 0) {
      const unsigned place = trailing_zeros(high_point) / 8;
      high = without_byte(high, place);
      decimals = 15 - place;
    }
    const bool only_point = size == 1 && low_point != 0;
    const bool all_digits = ((low | (low + kOver9) | high | (high + kOver9)) & kTopBits) == 0;
    const std::uint64_t value = eight_digits(high) * 100'000'000 + eight_digits(low);
    return result(value, decimals, minus, all_digits && !only_point);
#endif
  }

 private:
  static constexpr std::uint64_t kOnes = 0x0101010101010101, kTopBits = kOnes << 7;
  static constexpr std::uint64_t kZeros = kOnes * '0', kPoints = kOnes * ('.' ^ '0'), kOver9 = kOnes * (0x80 - 10);

  static ShortDecimal result(std::uint64_t value, unsigned decimals, bool minus, bool ok) {
    return {static_cast<std::int64_t>(value), &kDecimalScales.scale[minus][decimals], ok};
  }

  // A word whose lowest set bit marks the first point (bits above it may be wrong), or 0.
  static std::uint64_t find_point(std::uint64_t word) {
    const std::uint64_t differs = word ^ kPoints;
    return (differs - kOnes) & ~differs & kTopBits;
  }

  // The bytes before `place` move up by one; a zero comes in.
  static std::uint64_t without_byte(std::uint64_t word, unsigned place) {
    const std::uint64_t before = (std::uint64_t{1} << (8 * place)) - 1;
    return (word & before) << 8 | (word & ~(before << 8 | 0xff));
  }

  // Eight digits, the first in the lowest byte.
  static std::uint64_t eight_digits(std::uint64_t word) {
    constexpr std::uint64_t kMask = 0x000000ff000000ff;
    word = word * 10 + (word >> 8);
    const std::uint64_t first = (word & kMask) * (100 + (std::uint64_t{1'000'000} << 32));
    const std::uint64_t second = ((word >> 16) & kMask) * (1 + (std::uint64_t{10'000} << 32));
    return (first + second) >> 32;
  }

  static ShortDecimal by_loop(const char* text, std::size_t size, bool minus) {
    std::uint64_t value = 0;
    std::size_t n_points = 0, point = size;
    bool ok = true;
    for (std::size_t i = 0; i < size; ++i) {
      if (text[i] == '.') {
        point = i;
        ++n_points;
      } else {
        ok = ok && text[i] >= '0' && text[i] <= '9';
        value = value * 10 + static_cast<std::uint64_t>(text[i] - '0');
      }
    }
    const std::size_t decimals = point < size ? size - 1 - point : 0;
    return result(value, static_cast<unsigned>(decimals), minus, ok && n_points <= 1 && size > n_points);
  }
};

#endif

}  // namespace rankwood::RANKWOOD_ISA_NS
