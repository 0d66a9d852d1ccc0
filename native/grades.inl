// How many documents of a query have each of the grades 0 to 7: enough to write down the ideal ranking.
//
// Included by isa/table.inl, once per instruction set. Eight counters of one byte share an integer: a document of
// grade g adds 2^(8 g) to it. Adding 2^52 leaves a small whole label, exactly, in the last bits of a double.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "isa/kernels.hpp"
#include "isa/vectors.inl"

namespace rankwood::RANKWOOD_ISA_NS::grades {
namespace {

// Counts labels into `sum`; `strange` becomes non-zero when one is not a whole number from 0 to 7.
// Number and Word are double and an unsigned integer, or vectors of them.
template <class Number, class Word>
inline void add_grades(Number label, Word& sum, Word& strange) {
  constexpr double two52 = 4503599627370496.0;
  constexpr std::uint64_t bits_of_two52 = 0x4330000000000000;
  const Number shifted = label + two52;
  const Number back = shifted - two52;
  Word grade, given, rounded;
  std::memcpy(&grade, &shifted, sizeof grade);
  std::memcpy(&given, &label, sizeof given);
  std::memcpy(&rounded, &back, sizeof rounded);
  grade ^= bits_of_two52;                       // what is left is the label, or far larger for anything else
  strange |= (grade >> 3) | (given ^ rounded);  // a fraction would have been rounded away
  sum += (Word{} + 1) << ((grade & 7) * 8);
}

// counts[g] = number of labels equal to g, for g in [0, 8). False, and counts of no use, when a label is not such.
bool count_grades(const double* labels, std::size_t n, std::uint32_t* counts) {
  constexpr std::size_t width = sizeof(Bits) / sizeof(std::uint64_t);
  constexpr std::size_t chunk = 248 * width;  // a counter ends at 255: 248, and up to 7 labels after the last vector
  for (std::size_t g = 0; g < 8; ++g) counts[g] = 0;
  for (std::size_t start = 0; start < n; start += chunk) {
    const std::size_t end = n - start < chunk ? n : start + chunk;
    Bits vector_sum = {}, vector_strange = {};
    std::size_t i = start;
    for (; i + width <= end; i += width) add_grades(VectorOf<double>::load(labels + i), vector_sum, vector_strange);
    std::uint64_t sum[width], strange[width];
    std::memcpy(sum, &vector_sum, sizeof sum);
    std::memcpy(strange, &vector_strange, sizeof strange);
    for (; i < end; ++i) add_grades(labels[i], sum[0], strange[0]);
    for (std::size_t j = 0; j < width; ++j) {
      if (strange[j] != 0) return false;
      for (std::size_t g = 0; g < 8; ++g) counts[g] += (sum[j] >> (8 * g)) & 0xff;
    }
  }
  return true;
}

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::grades
