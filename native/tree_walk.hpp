// Which leaf of one tree do documents reach? For trees that are used once and then put aside, while a forest grows.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rankwood {

class TreeWalk {
 public:
  // Children come after their parent, so that every walk ends.
  TreeWalk(const std::int32_t* feature, const double* threshold, const std::int32_t* left, const std::int32_t* right,
           const std::uint8_t* missing_left, std::size_t n_nodes)
      : nodes_(n_nodes) {
    for (std::size_t i = 0; i < n_nodes; ++i) {
      nodes_[i] = {float_at_most(threshold[i]), feature[i], {right[i], left[i]}, missing_left[i] != 0};
    }
  }

  // Call found(k, leaf) for document rows[k], k < n, of a matrix of float32 in C order.
  template <class Found>
  void run(const float* X, std::size_t n_features, const std::uint32_t* rows, std::size_t n, const Found& found) const {
    constexpr std::size_t kLanes = 8;  // documents that walk side by side: their loads overlap
    const auto row_of = [&](std::size_t k) { return X + std::size_t{rows[k]} * n_features; };
    const std::int32_t root = nodes_.empty() ? ~0 : 0;
    std::size_t k = 0;
    for (; k + kLanes <= n; k += kLanes) {
      std::int32_t at[kLanes];
      const float* row[kLanes];
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        at[lane] = root;
        row[lane] = row_of(k + lane);
      }
      for (bool walking = root >= 0; walking;) {
        walking = false;
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
          if (at[lane] >= 0) {
            at[lane] = step(at[lane], row[lane]);
            walking |= at[lane] >= 0;
          }
        }
      }
      for (std::size_t lane = 0; lane < kLanes; ++lane) found(k + lane, static_cast<std::size_t>(~at[lane]));
    }
    for (; k < n; ++k) {
      std::int32_t at = root;
      while (at >= 0) at = step(at, row_of(k));
      found(k, static_cast<std::size_t>(~at));
    }
  }

 private:
  struct Node {
    float threshold;
    std::int32_t feature;
    std::int32_t child[2];  // right, left
    bool missing_left;
  };

  std::int32_t step(std::int32_t number, const float* row) const {
    const Node& node = nodes_[static_cast<std::size_t>(number)];
    const float x = row[node.feature];
    return node.child[x <= node.threshold || (std::isnan(x) && node.missing_left)];
  }

  // The largest float that is not above a threshold: compares with floats as the threshold does.
  static float float_at_most(double threshold) {
    const auto rounded = static_cast<float>(threshold);
    if (static_cast<double>(rounded) <= threshold) return rounded;
    return std::nextafter(rounded, -std::numeric_limits<float>::infinity());
  }

  std::vector<Node> nodes_;
};

}  // namespace rankwood
