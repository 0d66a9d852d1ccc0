// Which engine is faster for how many documents: bitslice from some batch on, traverse below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "isa/choice.hpp"
#include "score/kernels.hpp"

namespace rankwood {

constexpr std::size_t kNoBatch = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kMaxBitsliceLeaves = 8192;  // of a tree

// The smallest batch for which bitslice was faster than traverse, by leaves per tree (mean) up to the number given, on
// each instruction set. For larger trees traverse is faster whatever the batch.
struct BatchChoice {
  std::size_t leaves, rows;
};
inline std::vector<BatchChoice> batch_choices(std::size_t most_leaves) {
  if (std::strcmp(active_isa(), "avx512") == 0) {
    if (most_leaves <= HopPack::kNodes + 1) {  // traverse has its packs of small trees
      return {{8, 9}, {16, 14}, {most_leaves, 18}};
    }
    return {{16, 3}, {32, 4}, {64, 6}, {128, 10}, {256, 24}, {512, 40}};
  }
  if (std::strcmp(active_isa(), "avx2") == 0) {
    return {{8, 2}, {16, 3}, {32, 4}, {64, 6}, {128, 9}, {256, 24}, {512, 90}};
  }
  if (std::strcmp(active_isa(), "neon") == 0) {  // not measured
    return {{16, 5}, {32, 8}, {64, 11}, {128, 20}, {256, 28}, {512, 90}};
  }
  return {{8, 8}, {16, 10}, {32, 14}, {64, 36}};
}

// The smallest batch for which bitslice is taken; kNoBatch: none is large enough.
inline std::size_t smallest_bitslice_batch(std::size_t n_trees, std::size_t n_leaves, std::size_t most_leaves) {
  if (most_leaves > kMaxBitsliceLeaves) return kNoBatch;
  for (const BatchChoice& choice : batch_choices(most_leaves)) {
    if (n_leaves <= choice.leaves * n_trees) return choice.rows;
  }
  return kNoBatch;
}

}  // namespace rankwood
