// Numbers in text, read with correct rounding: the careful way, for every form that is allowed.
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <system_error>

#if !defined(__cpp_lib_to_chars) || __cpp_lib_to_chars < 201611L  // no from_chars for floats (libc++ before 20)
#define RANKWOOD_STRTOD 1
#endif
#if defined(RANKWOOD_STRTOD)
#include <locale.h>
#include <stdlib.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#endif

namespace rankwood {

#if defined(RANKWOOD_STRTOD)
// The number at the beginning of a text, with a point whatever the program's locale.
#if defined(_WIN32)
inline _locale_t c_locale() {
  static const _locale_t made = _create_locale(LC_ALL, "C");
  return made;
}
inline void strto(const char* text, char** stop, float& value) { value = _strtof_l(text, stop, c_locale()); }
inline void strto(const char* text, char** stop, double& value) { value = _strtod_l(text, stop, c_locale()); }
#else
inline locale_t c_locale() {
  static const locale_t made = newlocale(LC_ALL_MASK, "C", nullptr);
  return made;
}
inline void strto(const char* text, char** stop, float& value) { value = strtof_l(text, stop, c_locale()); }
inline void strto(const char* text, char** stop, double& value) { value = strtod_l(text, stop, c_locale()); }
#endif
#endif

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Does [first, last) spell `word` (given in lower case), whatever its case?
inline bool spells(const char* first, const char* last, const char* word) {
  for (; first != last && *word != '\0'; ++first, ++word) {
    const char lower = *first >= 'A' && *first <= 'Z' ? static_cast<char>(*first + ('a' - 'A')) : *first;
    if (lower != *word) return false;
  }
  return first == last && *word == '\0';
}

// A number too large or too small for its type, in the form that from_chars accepts: is it the large kind?
inline bool is_huge(const char* first, const char* last) {
  const auto saturating = [](long long value, char digit) {
    return value > 1'000'000'000 ? value : value * 10 + (digit - '0');
  };
  long long magnitude = 0;  // power of ten of the leading digit that is not zero
  bool after_point = false, found = false;
  const char* c = first;
  for (; c != last && *c != 'e' && *c != 'E'; ++c) {
    if (*c == '.') {
      after_point = true;
    } else if (found) {
      magnitude += !after_point;
    } else {
      found = *c != '0';
      magnitude -= after_point;
    }
  }
  if (c == last) return magnitude > 0;
  ++c;
  const bool negative = c != last && *c == '-';
  if (c != last && (*c == '-' || *c == '+')) ++c;
  long long exponent = 0;
  for (; c != last; ++c) exponent = saturating(exponent, *c);
  return magnitude + (negative ? -exponent : exponent) > 0;
}

// The unsigned number that is the whole of [first, last), rounded to nearest; false when it is none.
// Beyond the range of T lies infinity, below its smallest number 0.
template <class T>
bool parse_unsigned(const char* first, const char* last, T& value) {
#if defined(RANKWOOD_STRTOD)
  for (const char* c = first; c != last; ++c) {
    if (!is_digit(*c) && *c != '.' && *c != 'e' && *c != 'E' && *c != '+' && *c != '-') return false;
  }
  const std::string text(first, last);
  char* stop = nullptr;
  strto(text.c_str(), &stop, value);
  return stop == text.c_str() + text.size();
#else
  const auto [stop, error] = std::from_chars(first, last, value);
  if (stop != last) return false;
  if (error == std::errc::result_out_of_range) {
    value = is_huge(first, last) ? std::numeric_limits<T>::infinity() : T(0);
    return true;
  }
  return error == std::errc();
#endif
}

// The number that is the whole of [first, last): a decimal with optional sign and exponent, correctly rounded;
// inf or infinity; nan, na, null or ? for what is not known. Case does not matter. False when it is none of these.
template <class T>
bool parse_number(const char* first, const char* last, T& value) {
  const bool negative = first != last && *first == '-';
  if (first != last && (*first == '-' || *first == '+')) ++first;
  if (first == last) return false;
  if (is_digit(*first) || *first == '.') {
    if (!parse_unsigned(first, last, value)) return false;
  } else if (spells(first, last, "inf") || spells(first, last, "infinity")) {
    value = std::numeric_limits<T>::infinity();
  } else if (spells(first, last, "nan") || spells(first, last, "null") || spells(first, last, "na") ||
             spells(first, last, "?")) {
    value = std::numeric_limits<T>::quiet_NaN();
    return true;
  } else {
    return false;
  }
  if (negative) value = -value;
  return true;
}

}  // namespace rankwood
