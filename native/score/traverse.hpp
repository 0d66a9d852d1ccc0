// Engine traverse: documents walk down the trees, eight paths side by side.
//
// For a few documents, and for trees with more leaves than other engines can hold. Feature values become small
// numbers first (quantise.hpp), so a step compares integers and is exact for every input; traverse_trees.hpp says how
// trees lie in memory, traverse_walk.hpp how they are walked. Where an instruction set can look at all nodes of a small
// tree at once, nobody walks: hop_trees.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "parallel.hpp"
#include "rows.hpp"
#include "score/hop_trees.hpp"
#include "score/pause.hpp"
#include "score/quantise.hpp"
#include "score/traverse_trees.hpp"
#include "score/traverse_walk.hpp"
#include "sums.hpp"

namespace rankwood {

// Memory that one thread works in: codes of up to n_rows documents, of a byte or two each.
class TraverseScratch {
 public:
  TraverseScratch(std::size_t n_rows, std::size_t n_columns)
      : codes_(new std::uint16_t[n_rows * n_columns + 1]), sums_(new float[n_rows]), paths_(new TraversePaths) {}

  template <class Code>
  Code* codes() {
    return reinterpret_cast<Code*>(codes_.get());
  }
  float* sums() { return sums_.get(); }
  TraversePaths* paths() { return paths_.get(); }

 private:
  std::unique_ptr<std::uint16_t[]> codes_;
  std::unique_ptr<float[]> sums_;
  std::unique_ptr<TraversePaths> paths_;
};

// The engine with nodes of four Fields.
template <class Field>
class TraverseWith {
 public:
  using Code = std::conditional_t<sizeof(Field) == 1, std::uint8_t, std::uint16_t>;
  static constexpr std::size_t kMaxColumns = std::numeric_limits<Field>::max();
  static constexpr std::size_t kMaxNodes = TraverseBuilder<Field>::kMaxNodes;  // of a tree

  TraverseWith(const EnsembleView& model, const Quantised& quantised, const double* tree_weights)
      : kernel_(scoring_kernels()), quantiser_(quantised.quantiser), n_trees_(model.n_trees) {
    if (sizeof(Field) == 1 && kernel_.hop != nullptr && HopTrees::fit(model, *quantiser_)) {
      hops_.emplace(model, quantised);
    } else {
      trees_ = TraverseBuilder<Field>(model, quantised.nodes).trees;
    }
    first_leaf_.reserve(n_trees_ + 1);
    for (std::size_t tree = 0; tree <= n_trees_; ++tree) first_leaf_.push_back(model.first_leaf(tree));
    values64_.reserve(model.n_leaves);
    for (std::size_t tree = 0; tree < n_trees_; ++tree) {
      const double* leaf_value = model.leaf_value + model.first_leaf(tree);
      for (std::size_t i = 0; i <= model.nodes_of(tree); ++i) values64_.push_back(tree_weights[tree] * leaf_value[i]);
    }
    values32_.assign(values64_.begin(), values64_.end());
    first_steps_ = std::clamp(static_cast<int>(trees_.usual_depth + 0.5), 3, 32);
    more_steps_ = std::max(3, first_steps_ / 3);
  }

  const Quantiser& quantiser() const { return *quantiser_; }
  std::size_t n_bytes() const {
    return quantiser_->n_bytes() + trees_.n_bytes() + (hops_ ? hops_->n_bytes() : 0) +
           first_leaf_.size() * sizeof first_leaf_[0] + values32_.size() * sizeof values32_[0] +
           values64_.size() * sizeof values64_[0];
  }

  // Codes of the rows [first, first + n).
  template <class T>
  void quantise(const Rows<T>& rows, std::size_t first, std::size_t n, TraverseScratch& scratch) const noexcept {
    Code* const codes = scratch.codes<Code>();
    codes[0] = 0;  // a model without thresholds: what leaves look at
    quantiser_->quantise(rows, first, n, codes, 1, quantiser_->n_columns());
  }

  // From here on there are only these documents, in rising order.
  void keep(const std::vector<std::uint32_t>& kept, TraverseScratch& scratch) const noexcept {
    Code* const codes = scratch.codes<Code>();
    const std::size_t stride = quantiser_->n_columns();
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (kept[i] != i) std::copy_n(codes + kept[i] * stride, stride, codes + i * stride);
    }
  }

  // scores += the values of the trees from first_tree to end_tree, both multiples of kSumGroup or the end, for the
  // documents whose codes there are.
  template <class Pause>
  void add(std::size_t n_rows, std::size_t first_tree, std::size_t end_tree, double* scores, bool single,
           TraverseScratch& scratch, Pause pause) const noexcept(kNeverStops<Pause>) {
    if (!single) {
      for_each_tile(n_rows, first_tree, end_tree, values64_.data(), scratch, pause,
                    [&](const auto& tile, std::size_t row) { sum_doubles(tile, end_tree, scores + row); });
      return;
    }
    float* const sums = scratch.sums();
    std::fill_n(sums, n_rows, 0.0f);
    for_each_tile(n_rows, first_tree, end_tree, values32_.data(), scratch, pause,
                  [&](const auto& tile, std::size_t row) { sum_singles(tile, end_tree, sums + row, scores + row); });
  }

  template <class Leaf>
  void leaves(std::size_t n_rows, Leaf* leaves, TraverseScratch& scratch) const {
    for_each_tile(n_rows, 0, n_trees_, values32_.data(), scratch, MayStop{}, [&](const auto& tile, std::size_t row) {
      for (std::size_t tree = tile.first_tree; tree < end_of(tile, n_trees_); ++tree) {
        Leaf* out = leaves + row * n_trees_ + tree;
        for (std::size_t i = 0; i < tile.n_rows; ++i) out[i * n_trees_] = static_cast<Leaf>(leaf_of(tile, tree, i));
      }
    });
  }

 private:
  using Tile = TraverseTile<Field, Code>;
  struct HopTile {  // of one document
    std::size_t first_tree, n_trees;
    static constexpr std::size_t n_rows = 1;
    std::uint8_t* leaf;
  };
  static constexpr std::size_t kHopTrees = 32;         // at a time: their packs stay in the first-level cache
  static constexpr std::size_t kEnoughToFetch = 64;    // rows that reach most of a tree: the whole of it is fetched
  static constexpr std::size_t kMaxFetchedLines = 16;  // at a time

  // Call task(tile with the leaves, its first row) for all rows and trees, the trees of a row in order.
  template <class Value, class Pause, class Task>
  void for_each_tile(std::size_t n_rows, std::size_t first_tree, std::size_t end_tree, const Value* values,
                     TraverseScratch& scratch, Pause pause, const Task& task) const noexcept(kNeverStops<Pause>) {
    if (hops_) return for_each_hop(n_rows, first_tree, end_tree, scratch, pause, task);
    const std::size_t tile_rows = std::min(n_rows, TraversePaths::kMaxPaths / kPaths);
    const std::size_t tile_trees = TraversePaths::kMaxPaths / tile_rows / kPaths * kPaths;
    Tile tile;
    tile.trees = &trees_;
    tile.stride = quantiser_->n_columns();
    tile.first_steps = first_steps_;
    tile.more_steps = more_steps_;
    tile.paths = scratch.paths();
    for (std::size_t tree = first_tree; tree < end_tree; tree += tile_trees) {
      if (tree != first_tree) pause();
      tile.first_tree = tree;
      tile.n_trees = std::min(tile_trees, (end_tree - tree + kPaths - 1) / kPaths * kPaths);
      if (n_rows >= kEnoughToFetch) {
        const std::size_t next = std::min(tree + tile_trees, end_tree), end = std::min(next + tile_trees, end_tree);
        const std::size_t n_fetches = n_rows * tile.n_trees / kPaths;
        tile.nodes_ahead =
            ahead(trees_.nodes.data() + trees_.root[next], trees_.nodes.data() + trees_.root[end], n_fetches);
        tile.values_ahead = ahead(values + first_leaf_[next], values + first_leaf_[end], n_fetches);
      }
      for (std::size_t row = 0; row < n_rows; row += tile_rows) {
        tile.codes = scratch.codes<Code>() + row * tile.stride;
        tile.n_rows = std::min(tile_rows, n_rows - row);
        tile.walk();
        task(tile, row);
      }
    }
  }

  // The same, where there are packs: a document in some trees at a time.
  template <class Pause, class Task>
  void for_each_hop(std::size_t n_rows, std::size_t first_tree, std::size_t end_tree, TraverseScratch& scratch,
                    Pause pause, const Task& task) const noexcept(kNeverStops<Pause>) {
    HopTile tile = {};
    tile.leaf = scratch.paths()->small_leaf;
    for (std::size_t tree = first_tree; tree < end_tree; tree += kHopTrees) {
      if (tree != first_tree) pause();
      tile.first_tree = tree;
      tile.n_trees = std::min(kHopTrees, end_tree - tree);
      const HopTask hops = hops_->task(tree, tree + tile.n_trees);
      for (std::size_t row = 0; row < n_rows; ++row) {
        kernel_.hop(hops, scratch.codes<std::uint8_t>() + row * hops.n_columns, tile.leaf);
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

  template <class AnyTile>
  static std::size_t end_of(const AnyTile& tile, std::size_t end_tree) {
    return std::min(tile.first_tree + tile.n_trees, end_tree);
  }
  static std::size_t leaf_of(const Tile& tile, std::size_t tree, std::size_t row) {
    return tile.paths->leaf[(tree - tile.first_tree) * tile.n_rows + row];
  }
  static std::size_t leaf_of(const HopTile& tile, std::size_t tree, std::size_t) {
    return tile.leaf[tree - tile.first_tree];
  }

  template <class AnyTile>
  void sum_doubles(const AnyTile& tile, std::size_t end_tree, double* scores) const {
    const std::size_t end = end_of(tile, end_tree);
    for (std::size_t row = 0; row < tile.n_rows; ++row) {
      double sum = scores[row];
      for (std::size_t tree = tile.first_tree; tree < end; ++tree) {
        sum += values64_[first_leaf_[tree] + leaf_of(tile, tree, row)];
      }
      scores[row] = sum;
    }
  }

  // `sums` keeps what a group of trees has so far.
  template <class AnyTile>
  void sum_singles(const AnyTile& tile, std::size_t end_tree, float* sums, double* scores) const {
    for (std::size_t tree = tile.first_tree, end; tree < end_of(tile, end_tree); tree = end) {
      end = std::min(end_of(tile, end_tree), (tree / kSumGroup + 1) * kSumGroup);
      const bool is_whole = end % kSumGroup == 0 || end == n_trees_;
      for (std::size_t row = 0; row < tile.n_rows; ++row) {
        float sum = sums[row];
        for (std::size_t t = tree; t < end; ++t) sum += values32_[first_leaf_[t] + leaf_of(tile, t, row)];
        if (is_whole) {
          scores[row] += static_cast<double>(sum);
          sum = 0.0f;
        }
        sums[row] = sum;
      }
    }
  }

  const ScoringKernels& kernel_;
  std::shared_ptr<const Quantiser> quantiser_;
  std::optional<HopTrees> hops_;         // small trees, where the instruction set has what it takes
  TraverseTrees<Field> trees_;           // else
  std::vector<std::size_t> first_leaf_;  // by tree: the place of its leaf 0 among the leaves of all trees
  std::vector<float> values32_;
  std::vector<double> values64_;
  std::size_t n_trees_;
  int first_steps_ = 0, more_steps_ = 0;
};

class Traverse {
 public:
  // `model` must have passed the checks of ensemble.hpp. Everything needed is copied.
  Traverse(const EnsembleView& model, const double* tree_weights, double base)
      : Traverse(model, Quantised(model, 255), tree_weights, base) {}
  // `bytes`: codes of up to 255, which are kept where they do.
  Traverse(const EnsembleView& model, const Quantised& bytes, const double* tree_weights, double base)
      : with_(choose(model, bytes, tree_weights)),
        n_features_(static_cast<std::size_t>(model.n_features)),
        n_trees_(model.n_trees),
        base_(base) {}

  std::size_t n_features() const { return n_features_; }
  std::size_t n_trees() const { return n_trees_; }
  double base() const { return base_; }
  const Quantiser& quantiser() const {
    return *std::visit([](const auto& with) { return &with->quantiser(); }, with_);
  }
  std::size_t n_bytes() const {  // that of the quantiser, which may be shared, included
    return std::visit([](const auto& with) { return with->n_bytes(); }, with_);
  }

  // Memory that one thread works in, for batches of up to n_rows documents; of a larger batch, a block at a time.
  class Scratch : public TraverseScratch {
   public:
    Scratch(const Traverse& engine, std::size_t n_rows)
        : TraverseScratch(std::min(n_rows, engine.block_rows()), engine.quantiser().n_columns()) {}
  };

  template <class T>
  void score(const Rows<T>& rows, double* scores, bool single, int n_threads) const {
    for_each_block(rows, n_threads, [&](std::size_t first, std::size_t end, Scratch& scratch) {
      score_rows(rows, first, end, scores, single, scratch, MayStop{});
    });
  }
  // The same on this thread alone, which allocates nothing.
  template <class T>
  void score(const Rows<T>& rows, double* scores, bool single, Scratch& scratch) const noexcept {
    for (std::size_t first = 0, end; first < rows.n_rows; first = end) {
      end = std::min(rows.n_rows, first + block_rows());
      score_rows(rows, first, end, scores, single, scratch, GoOn{});
    }
  }

  // Documents that go through the trees part by part, as in Bitslice.
  class Batch;

  // leaves[row * n_trees + tree] = number of the leaf inside its tree. The caller picks a type wide enough.
  template <class T, class Leaf>
  void leaves(const Rows<T>& rows, Leaf* leaves, int n_threads) const {
    for_each_block(rows, n_threads, [&](std::size_t first, std::size_t end, Scratch& scratch) {
      visit([&](const auto& with) {
        with.quantise(rows, first, end - first, scratch);
        with.leaves(end - first, leaves + first * n_trees_, scratch);
      });
    });
  }

 private:
  template <class Field>
  using With = std::unique_ptr<const TraverseWith<Field>>;
  using AnyField = std::variant<With<std::uint8_t>, With<std::uint16_t>, With<std::uint32_t>>;

  static constexpr std::size_t kBlockBytes = std::size_t{2} << 20;  // codes of the rows that go through all trees
  static constexpr std::size_t kMaxBlockRows = 4096, kMinBlockRows = 16;

  // The smallest nodes that hold the model.
  static AnyField choose(const EnsembleView& model, const Quantised& bytes, const double* tree_weights) {
    std::size_t largest = 0;
    for (std::size_t tree = 0; tree < model.n_trees; ++tree) largest = std::max(largest, model.nodes_of(tree));
    if (largest <= TraverseWith<std::uint8_t>::kMaxNodes &&
        bytes.quantiser->n_columns() <= TraverseWith<std::uint8_t>::kMaxColumns) {
      return std::make_unique<const TraverseWith<std::uint8_t>>(model, bytes, tree_weights);
    }
    const Quantised words(model, 65535);
    if (largest <= TraverseWith<std::uint16_t>::kMaxNodes &&
        words.quantiser->n_columns() <= TraverseWith<std::uint16_t>::kMaxColumns) {
      return std::make_unique<const TraverseWith<std::uint16_t>>(model, words, tree_weights);
    }
    return std::make_unique<const TraverseWith<std::uint32_t>>(model, words, tree_weights);
  }

  // As std::visit, which may throw.
  template <class Task>
  void visit(const Task& task) const {
    if (const auto* const bytes = std::get_if<0>(&with_)) return task(**bytes);
    if (const auto* const words = std::get_if<1>(&with_)) return task(**words);
    task(**std::get_if<2>(&with_));
  }

  std::size_t block_rows() const {
    const std::size_t row_bytes = sizeof(std::uint16_t) * (quantiser().n_columns() + 1);
    return std::clamp(kBlockBytes / row_bytes, kMinBlockRows, kMaxBlockRows);
  }

  // Call task(first row, end, scratch) for every block of rows.
  template <class T, class Task>
  void for_each_block(const Rows<T>& rows, int n_threads, const Task& task) const {
    std::size_t n_blocks = (rows.n_rows + block_rows() - 1) / block_rows();
    if (n_threads > 1) {  // as much work for every thread
      const auto threads = static_cast<std::size_t>(n_threads);
      const std::size_t rounded = (n_blocks + threads - 1) / threads * threads;
      n_blocks = std::max(n_blocks, std::min(rounded, rows.n_rows / kMinBlockRows));
    }
    parallel_for(n_blocks, n_threads, [&](std::size_t block) {
      const std::size_t first = rows.n_rows * block / n_blocks, end = rows.n_rows * (block + 1) / n_blocks;
      Scratch scratch(*this, end - first);
      task(first, end, scratch);
    });
  }

  // Of one block.
  template <class T, class Pause>
  void score_rows(const Rows<T>& rows, std::size_t first, std::size_t end, double* scores, bool single,
                  Scratch& scratch, Pause pause) const noexcept(kNeverStops<Pause>) {
    std::fill(scores + first, scores + end, base_);
    visit([&](const auto& with) {
      with.quantise(rows, first, end - first, scratch);
      with.add(end - first, 0, n_trees_, scores + first, single, scratch, pause);
    });
  }

  AnyField with_;
  std::size_t n_features_, n_trees_;
  double base_;
};

class Traverse::Batch {
 public:
  // Of up to max_rows documents: all memory is taken here.
  Batch(const Traverse& engine, std::size_t max_rows)
      : engine_(engine), scratch_(max_rows, engine.quantiser().n_columns()) {}

  template <class T>
  void start(const Rows<T>& rows) noexcept {
    n_rows_ = rows.n_rows;
    engine_.visit([&](const auto& with) { with.quantise(rows, 0, n_rows_, scratch_); });
  }
  template <class Pause>
  void add(std::size_t first_tree, std::size_t end_tree, double* scores, bool single,
           Pause pause) noexcept(kNeverStops<Pause>) {
    if (n_rows_ == 0) return;
    engine_.visit([&](const auto& with) { with.add(n_rows_, first_tree, end_tree, scores, single, scratch_, pause); });
  }
  void keep(const std::vector<std::uint32_t>& kept) noexcept {
    engine_.visit([&](const auto& with) { with.keep(kept, scratch_); });
    n_rows_ = kept.size();
  }

 private:
  const Traverse& engine_;
  TraverseScratch scratch_;
  std::size_t n_rows_ = 0;
};

}  // namespace rankwood
