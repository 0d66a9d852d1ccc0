// A sum of doubles that is not rounded: whoever adds up which part, and in what order, it is the same.
//
// A finite double is a whole multiple of 2^-1074. Here the sum is such a multiple, in digits of 32 bits, the lowest
// first; each has 64 bits, so that carries can wait. Settled sums may be added digit by digit.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace rankwood {

class ExactSum {
 public:
  static constexpr std::size_t kDigits = 67;
  static constexpr std::size_t kWidth = kDigits + 3;  // and how many numbers were added: finite, infinite, -infinite

  // NaN is left out.
  void add(double value) {
    constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1, kInfinite = 0x7ff;
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t exponent = (bits >> 52) & kInfinite;
    if (exponent == kInfinite) {
      if ((bits & kMantissa) == 0) ++n_[bits >> 63 ? 2 : 1];
      return;
    }
    const std::uint64_t mantissa = (bits & kMantissa) | (std::uint64_t{exponent != 0} << 52);
    const std::uint64_t place = exponent - (exponent != 0), shift = place & 31;
    const std::uint64_t low = mantissa << shift, high = (mantissa >> 1) >> (63 - shift);
    const auto sign = -static_cast<std::int64_t>(bits >> 63);
    const auto with_sign = [sign](std::uint64_t digit) { return (static_cast<std::int64_t>(digit) ^ sign) - sign; };
    std::int64_t* digit = digits_ + (place >> 5);
    digit[0] += with_sign(low & 0xffffffff);
    digit[1] += with_sign(low >> 32);
    digit[2] += with_sign(high);
    if ((++n_[0] & ((std::int64_t{1} << 30) - 1)) == 0) settle();
  }

  // Digits, each from 0 to below 2^32 but for the last, which has the sign; then the three counts.
  void write(std::int64_t* out) {
    settle();
    for (std::size_t i = 0; i < kDigits; ++i) out[i] = digits_[i];
    for (std::size_t i = 0; i < 3; ++i) out[kDigits + i] = n_[i];
  }

 private:
  void settle() {
    for (std::size_t i = 0; i + 1 < kDigits; ++i) {
      digits_[i + 1] += digits_[i] >> 32;
      digits_[i] &= 0xffffffff;
    }
  }

  std::int64_t digits_[kDigits] = {};
  std::int64_t n_[3] = {};
};

}  // namespace rankwood
