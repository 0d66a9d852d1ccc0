// Rows handed out to threads in blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "parallel.hpp"
#include "rows.hpp"

namespace rankwood {

// Call task(first row, number of rows, features, stride between rows) for every block of rows. Features of a row
// stand side by side: where they do not in memory (column-major, strided), the block is copied.
template <class T, class Task>
void for_each_row_block(const Rows<T>& rows, std::size_t block_rows, int n_threads, const Task& task) {
  const std::size_t n_blocks = (rows.n_rows + block_rows - 1) / block_rows;
  const bool in_place = rows.feature_stride == 1 && rows.row_stride >= 0;
  parallel_for(n_blocks, n_threads, [&](std::size_t b) {
    const std::size_t first = b * block_rows, n_rows = std::min(block_rows, rows.n_rows - first);
    const T* start = rows.data + static_cast<std::ptrdiff_t>(first) * rows.row_stride;
    if (in_place) return task(first, n_rows, start, static_cast<std::size_t>(rows.row_stride));
    std::vector<T> copy(n_rows * rows.n_features);
    for (std::size_t f = 0; f < rows.n_features; ++f) {
      const T* column = start + static_cast<std::ptrdiff_t>(f) * rows.feature_stride;
      for (std::size_t i = 0; i < n_rows; ++i) {
        copy[i * rows.n_features + f] = column[static_cast<std::ptrdiff_t>(i) * rows.row_stride];
      }
    }
    task(first, n_rows, copy.data(), rows.n_features);
  });
}

}  // namespace rankwood
