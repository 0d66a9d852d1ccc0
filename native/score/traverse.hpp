// Engine traverse: documents walk down the trees, eight paths side by side.
//
// For a few documents, and for trees with more leaves than other engines can hold. Feature values become small
// numbers first (quantise.hpp), so a step compares integers and is exact for every input; traverse_trees.hpp says how
// trees lie in memory, traverse_walk.hpp how they are walked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "interruption.hpp"
#include "parallel.hpp"
#include "rows.hpp"
#include "score/quantise.hpp"
#include "score/traverse_trees.hpp"
#include "score/traverse_walk.hpp"
#include "sums.hpp"

namespace rankwood {

// The engine with nodes of four Fields.
template <class Field>
class TraverseWith {
 public:
  using Code = std::conditional_t<sizeof(Field) == 1, std::uint8_t, std::uint16_t>;
  static constexpr std::size_t kMaxColumns = std::numeric_limits<Field>::max();
  static constexpr std::size_t kMaxNodes = TraverseBuilder<Field>::kMaxNodes;  // of a tree

  TraverseWith(const EnsembleView& model, Quantiser&& quantiser, const double* tree_weights, double base)
      : quantiser_(std::move(quantiser)),
        trees_(TraverseBuilder<Field>(model, quantiser_).trees),
        n_trees_(model.n_trees),
        base_(base) {
    quantiser_.forget_nodes();
    values64_.reserve(model.n_leaves);
    for (std::size_t tree = 0; tree < n_trees_; ++tree) {
      const double* leaf_value = model.leaf_value + model.first_leaf(tree);
      for (std::size_t i = 0; i <= model.nodes_of(tree); ++i) values64_.push_back(tree_weights[tree] * leaf_value[i]);
    }
    values32_.assign(values64_.begin(), values64_.end());
    first_steps_ = std::clamp(static_cast<int>(trees_.usual_depth + 0.5), 3, 32);
    more_steps_ = std::max(3, first_steps_ / 3);
  }

  std::size_t n_bytes() const {
    return quantiser_.n_bytes() + trees_.n_bytes() + values32_.size() * sizeof values32_[0] +
           values64_.size() * sizeof values64_[0];
  }

  template <class T>
  void score(const Rows<T>& rows, double* scores, bool single, int n_threads) const {
    std::fill_n(scores, rows.n_rows, base_);
    add(rows, scores, single, n_threads);
  }

  // scores += the values of all trees: as in Bitslice.
  template <class T>
  void add(const Rows<T>& rows, double* scores, bool single, int n_threads) const {
    for_each_block(rows, n_threads, [&](std::size_t first, std::size_t n, const Code* codes) {
      add_block(codes, n, scores + first, single);
    });
  }

  // leaves[row * n_trees + tree] = number of the leaf inside its tree. The caller picks a type wide enough.
  template <class T, class Leaf>
  void leaves(const Rows<T>& rows, Leaf* leaves, int n_threads) const {
    for_each_block(rows, n_threads, [&](std::size_t first, std::size_t n, const Code* codes) {
      leaves_of_block(codes, n, leaves + first * n_trees_);
    });
  }

 private:
  using Tile = TraverseTile<Field, Code>;
  static constexpr std::size_t kBlockBytes = std::size_t{2} << 20;  // codes of the rows that go through all trees
  static constexpr std::size_t kMaxBlockRows = 4096, kMinBlockRows = 16;
  static constexpr std::size_t kEnoughToFetch = 64;    // rows that reach most of a tree: the whole of it is fetched
  static constexpr std::size_t kMaxFetchedLines = 16;  // at a time

  // Call task(first row, number of rows, their codes) for every block of rows.
  template <class T, class Task>
  void for_each_block(const Rows<T>& rows, int n_threads, const Task& task) const {
    const std::size_t stride = quantiser_.n_columns();
    const std::size_t most = std::clamp(kBlockBytes / (sizeof(Code) * (stride + 1)), kMinBlockRows, kMaxBlockRows);
    std::size_t n_blocks = (rows.n_rows + most - 1) / most;
    if (n_threads > 1) {  // as much work for every thread
      const auto threads = static_cast<std::size_t>(n_threads);
      const std::size_t rounded = (n_blocks + threads - 1) / threads * threads;
      n_blocks = std::max(n_blocks, std::min(rounded, rows.n_rows / kMinBlockRows));
    }
    parallel_for(n_blocks, n_threads, [&](std::size_t block) {
      const std::size_t first = rows.n_rows * block / n_blocks, end = rows.n_rows * (block + 1) / n_blocks;
      const std::unique_ptr<Code[]> codes(new Code[(end - first) * stride + 1]);
      codes[0] = 0;  // a model without thresholds: what leaves look at
      quantiser_.quantise(rows, first, end - first, codes.get(), 1, stride);
      task(first, end - first, codes.get());
    });
  }

  void add_block(const Code* codes, std::size_t n_rows, double* scores, bool single) const {
    if (!single) {
      for_each_tile(codes, n_rows, values64_.data(),
                    [&](const Tile& tile, std::size_t row) { sum_doubles(tile, scores + row); });
      return;
    }
    const std::unique_ptr<float[]> sums(new float[n_rows]());
    for_each_tile(codes, n_rows, values32_.data(),
                  [&](const Tile& tile, std::size_t row) { sum_singles(tile, sums.get() + row, scores + row); });
  }

  template <class Leaf>
  void leaves_of_block(const Code* codes, std::size_t n_rows, Leaf* leaves) const {
    for_each_tile(codes, n_rows, values32_.data(), [&](const Tile& tile, std::size_t row) {
      for (std::size_t tree = tile.first_tree; tree < end_of(tile); ++tree) {
        Leaf* out = leaves + row * n_trees_ + tree;
        for (std::size_t i = 0; i < tile.n_rows; ++i) out[i * n_trees_] = static_cast<Leaf>(leaf_of(tile, tree, i));
      }
    });
  }

  // Call task(tile with the leaves, its first row) for all rows and trees, the trees of a row in order.
  template <class Value, class Task>
  void for_each_tile(const Code* codes, std::size_t n_rows, const Value* values, const Task& task) const {
    const std::size_t tile_rows = std::min(n_rows, Tile::kMaxPaths / kPaths);
    const std::size_t tile_trees = Tile::kMaxPaths / tile_rows / kPaths * kPaths;
    Tile tile;
    tile.trees = &trees_;
    tile.stride = quantiser_.n_columns();
    tile.first_steps = first_steps_;
    tile.more_steps = more_steps_;
    for (std::size_t tree = 0; tree < n_trees_; tree += tile_trees) {
      if (tree != 0) check_interruption();
      tile.first_tree = tree;
      tile.n_trees = std::min(tile_trees, (n_trees_ - tree + kPaths - 1) / kPaths * kPaths);
      if (n_rows >= kEnoughToFetch) {
        const std::size_t next = std::min(tree + tile_trees, n_trees_), end = std::min(next + tile_trees, n_trees_);
        const std::size_t n_fetches = n_rows * tile.n_trees / kPaths;
        tile.nodes_ahead =
            ahead(trees_.nodes.data() + trees_.root[next], trees_.nodes.data() + trees_.root[end], n_fetches);
        tile.values_ahead = ahead(values + trees_.first_leaf[next], values + trees_.first_leaf[end], n_fetches);
      }
      for (std::size_t row = 0; row < n_rows; row += tile_rows) {
        tile.codes = codes + row * tile.stride;
        tile.n_rows = std::min(tile_rows, n_rows - row);
        tile.walk();
        task(tile, row);
      }
    }
  }

  template <class Item>
  static Ahead ahead(const Item* begin, const Item* end, std::size_t n_fetches) {
    if (end <= begin) return {};  // behind the last tree
    const std::size_t n_lines = static_cast<std::size_t>(end - begin) * sizeof(Item) / kCacheLine + 1;
    return {reinterpret_cast<const char*>(begin), reinterpret_cast<const char*>(end),
            std::min(kMaxFetchedLines, n_lines / n_fetches + 1)};
  }

  std::size_t end_of(const Tile& tile) const { return std::min(tile.first_tree + tile.n_trees, n_trees_); }
  static std::size_t leaf_of(const Tile& tile, std::size_t tree, std::size_t row) {
    return tile.leaf[(tree - tile.first_tree) * tile.n_rows + row];
  }

  void sum_doubles(const Tile& tile, double* scores) const {
    for (std::size_t row = 0; row < tile.n_rows; ++row) {
      double sum = scores[row];
      for (std::size_t tree = tile.first_tree; tree < end_of(tile); ++tree) {
        sum += values64_[trees_.first_leaf[tree] + leaf_of(tile, tree, row)];
      }
      scores[row] = sum;
    }
  }

  // `sums` keeps what a group of trees has so far.
  void sum_singles(const Tile& tile, float* sums, double* scores) const {
    for (std::size_t tree = tile.first_tree, end; tree < end_of(tile); tree = end) {
      end = std::min(end_of(tile), (tree / kSumGroup + 1) * kSumGroup);
      const bool is_whole = end % kSumGroup == 0 || end == n_trees_;
      for (std::size_t row = 0; row < tile.n_rows; ++row) {
        float sum = sums[row];
        for (std::size_t t = tree; t < end; ++t) sum += values32_[trees_.first_leaf[t] + leaf_of(tile, t, row)];
        if (is_whole) {
          scores[row] += static_cast<double>(sum);
          sum = 0.0f;
        }
        sums[row] = sum;
      }
    }
  }

  Quantiser quantiser_;
  TraverseTrees<Field> trees_;
  std::vector<float> values32_;
  std::vector<double> values64_;
  std::size_t n_trees_;
  double base_;
  int first_steps_, more_steps_;
};

class Traverse {
 public:
  // `model` must have passed the checks of ensemble.hpp. Everything needed is copied.
  Traverse(const EnsembleView& model, const double* tree_weights, double base)
      : with_(choose(model, tree_weights, base)),
        n_features_(static_cast<std::size_t>(model.n_features)),
        n_trees_(model.n_trees) {}

  std::size_t n_features() const { return n_features_; }
  std::size_t n_trees() const { return n_trees_; }
  std::size_t n_bytes() const {
    return std::visit([](const auto& with) { return with->n_bytes(); }, with_);
  }
  template <class T>
  void score(const Rows<T>& rows, double* scores, bool single, int n_threads) const {
    std::visit([&](const auto& with) { with->score(rows, scores, single, n_threads); }, with_);
  }
  template <class T>
  void add(const Rows<T>& rows, double* scores, bool single, int n_threads) const {
    std::visit([&](const auto& with) { with->add(rows, scores, single, n_threads); }, with_);
  }
  template <class T, class Leaf>
  void leaves(const Rows<T>& rows, Leaf* leaves, int n_threads) const {
    std::visit([&](const auto& with) { with->leaves(rows, leaves, n_threads); }, with_);
  }

 private:
  template <class Field>
  using With = std::unique_ptr<const TraverseWith<Field>>;
  using AnyField = std::variant<With<std::uint8_t>, With<std::uint16_t>, With<std::uint32_t>>;

  template <class Field>
  static AnyField make(const EnsembleView& model, Quantiser&& quantiser, const double* tree_weights, double base) {
    return std::make_unique<const TraverseWith<Field>>(model, std::move(quantiser), tree_weights, base);
  }

  // The smallest nodes that hold the model.
  static AnyField choose(const EnsembleView& model, const double* tree_weights, double base) {
    std::size_t largest = 0;
    for (std::size_t tree = 0; tree < model.n_trees; ++tree) largest = std::max(largest, model.nodes_of(tree));
    if (largest <= TraverseWith<std::uint8_t>::kMaxNodes) {
      Quantiser bytes(model, 255);
      if (bytes.n_columns() <= TraverseWith<std::uint8_t>::kMaxColumns) {
        return make<std::uint8_t>(model, std::move(bytes), tree_weights, base);
      }
    }
    Quantiser quantiser(model, 65535);
    if (largest <= TraverseWith<std::uint16_t>::kMaxNodes &&
        quantiser.n_columns() <= TraverseWith<std::uint16_t>::kMaxColumns) {
      return make<std::uint16_t>(model, std::move(quantiser), tree_weights, base);
    }
    return make<std::uint32_t>(model, std::move(quantiser), tree_weights, base);
  }

  AnyField with_;
  std::size_t n_features_, n_trees_;
};

}  // namespace rankwood
