// How leaf values are summed, the same in every engine and on every instruction set.
//
// Double: score = base + weight[0] * value[0] + weight[1] * value[1] + ..., in double, from left to right.
// Single: each weight * value is rounded to float; the values of trees 0 to 15 are added in float, from left to right,
// starting with 0, then those of trees 16 to 31, and so on; score = base + first sum + second sum + ..., in double.
#pragma once

#include <cstddef>

namespace rankwood {

constexpr std::size_t kSumGroup = 16;  // trees whose values are added in float

}  // namespace rankwood
