// A model that was compiled to machine code elsewhere: functions over rows, called by blocks of rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "row_blocks.hpp"
#include "rows.hpp"

namespace rankwood {

// What the generated source exports (src/rankwood/engines/ifelse_template.h): 0 is success, all else lack of memory.
template <class T>
struct CompiledFunctions {
  int (*score)(const T* rows, std::size_t n_rows, std::size_t stride, int single, double* scores);
  int (*leaves)(const T* rows, std::size_t n_rows, std::size_t stride, std::int32_t* leaves);
};

class CompiledTrees {
 public:
  CompiledTrees(CompiledFunctions<float> of_floats, CompiledFunctions<double> of_doubles, std::size_t n_features,
                std::size_t n_trees)
      : of_floats_(of_floats), of_doubles_(of_doubles), n_features_(n_features), n_trees_(n_trees) {}

  std::size_t n_features() const { return n_features_; }
  std::size_t n_trees() const { return n_trees_; }

  template <class T>
  void score(const Rows<T>& rows, double* scores, bool single, int n_threads) const {
    const std::size_t block_rows = block_rows_for(rows.n_rows, n_features_, n_threads);
    const auto score_block = [&](std::size_t first, std::size_t n_rows, const T* block, std::size_t stride) {
      check(functions(block).score(block, n_rows, stride, single ? 1 : 0, scores + first));
    };
    for_each_row_block(rows, block_rows, n_threads, score_block);
  }

  // leaves[row * n_trees + tree] = number of the leaf inside its tree. The caller picks a type wide enough.
  template <class T, class Leaf>
  void leaves(const Rows<T>& rows, Leaf* leaves, int n_threads) const {
    const std::size_t block_rows = block_rows_for(rows.n_rows, n_features_ + n_trees_, n_threads);
    const auto find_block = [&](std::size_t first, std::size_t n_rows, const T* block, std::size_t stride) {
      std::vector<std::int32_t> found(n_rows * n_trees_);
      check(functions(block).leaves(block, n_rows, stride, found.data()));
      std::copy(found.begin(), found.end(), leaves + first * n_trees_);
    };
    for_each_row_block(rows, block_rows, n_threads, find_block);
  }

 private:
  // The code of a tree is loaded once per block, so blocks are as large as they can be while every thread gets some,
  // what is copied (`row_values` a row) stays small and nobody who wants to interrupt waits long.
  std::size_t block_rows_for(std::size_t n_rows, std::size_t row_values, int n_threads) const {
    constexpr std::size_t max_values = std::size_t{1} << 18, max_rows = 2048, min_rows = 16;
    constexpr std::size_t max_walks = std::size_t{1} << 23;  // of rows through trees: some tenths of a second
    const std::size_t shares = n_threads > 1 ? 4 * static_cast<std::size_t>(n_threads) : 1;
    const std::size_t fitting = std::clamp<std::size_t>(max_values / std::max<std::size_t>(1, row_values), 1, max_rows);
    const std::size_t quick = std::max(min_rows, max_walks / std::max<std::size_t>(1, n_trees_));
    return std::min({fitting, quick, std::max(min_rows, (n_rows + shares - 1) / shares)});
  }

  static void check(int status) {
    if (status != 0) throw std::bad_alloc();
  }

  const CompiledFunctions<float>& functions(const float*) const { return of_floats_; }
  const CompiledFunctions<double>& functions(const double*) const { return of_doubles_; }

  CompiledFunctions<float> of_floats_;
  CompiledFunctions<double> of_doubles_;
  std::size_t n_features_, n_trees_;
};

}  // namespace rankwood
