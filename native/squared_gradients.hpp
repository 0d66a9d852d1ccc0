// Gradients of the squared error, whose pseudo-responses are residuals.
#pragma once

#include <algorithm>
#include <cstddef>

#include "parallel.hpp"

namespace rankwood {

// gradient = w (y - score), hessian = w for every row; w is 1 where weights are null.
inline void squared_gradients(const double* y, const double* weights, const double* scores, std::size_t n_rows,
                              double* gradient, double* hessian, int n_threads) {
  constexpr std::size_t kBlock = 32768;
  parallel_for((n_rows + kBlock - 1) / kBlock, n_threads, [&](std::size_t block) {
    const std::size_t begin = block * kBlock, end = std::min(n_rows, begin + kBlock);
    if (weights == nullptr) {
      for (std::size_t i = begin; i < end; ++i) gradient[i] = y[i] - scores[i];
      std::fill(hessian + begin, hessian + end, 1.0);
    } else {
      for (std::size_t i = begin; i < end; ++i) gradient[i] = (y[i] - scores[i]) * weights[i];
      std::copy(weights + begin, weights + end, hessian + begin);
    }
  });
}

}  // namespace rankwood
