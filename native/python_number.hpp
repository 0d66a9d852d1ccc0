// Numbers as Python writes them.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace rankwood {

inline std::string python_number(std::int64_t value) { return std::to_string(value); }

// repr(value): the shortest decimal that is read as this number.
inline std::string python_number(double value) {
  if (std::isnan(value)) return "nan";
  std::string text = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return text + "inf";
  char shortest[64];
  const auto end = std::to_chars(shortest, shortest + sizeof shortest, std::abs(value), std::chars_format::scientific);
  std::string digits;
  int exponent = 0;
  for (const char* c = shortest; c != end.ptr; ++c) {
    if (*c == 'e') {
      std::from_chars(c[1] == '+' ? c + 2 : c + 1, end.ptr, exponent);
      break;
    }
    if (*c != '.') digits += *c;
  }
  const auto n_digits = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    char power[16];
    std::snprintf(power, sizeof power, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    return text + digits.substr(0, 1) + (n_digits > 1 ? "." + digits.substr(1) : "") + power;
  }
  if (exponent < 0) return text + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (n_digits <= exponent + 1) {
    return text + digits + std::string(static_cast<std::size_t>(exponent + 1 - n_digits), '0') + ".0";
  }
  return text + digits.substr(0, static_cast<std::size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<std::size_t>(exponent) + 1);
}

// value.hex(), of a finite number.
inline std::string python_hex(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const int biased = static_cast<int>(bits >> 52 & 0x7ff);
  const char* sign = bits >> 63 != 0 ? "-" : "";
  if (biased == 0 && fraction == 0) return std::string(sign) + "0x0.0p+0";
  char text[40];
  std::snprintf(text, sizeof text, "%s0x%d.%013llxp%+d", sign, biased == 0 ? 0 : 1,
                static_cast<unsigned long long>(fraction), biased == 0 ? -1022 : biased - 1023);
  return text;
}

}  // namespace rankwood
