// Engine bitslice: a block of documents goes through the trees together, one byte per document and feature.
//
// Values become codes of a byte (quantise.hpp), so one instruction compares 16, 32 or 64 documents with a threshold.
// All nodes of a tree are decided, whether a document meets them or not: no branch, no gather, nothing to mispredict.
// bitslice_trees.hpp says how the decisions become the index of a leaf, leaf_values.inl how the values are added. Up to
// 16 documents take half the width where that helps (bitslice_pairs.hpp).
// The work goes tree by tree; nothing is kept from one tree to the next but the sums.
//
// One tree of seven nodes and eight leaves for four documents of a block, where there are look-ups (AVX2, AVX-512):
//
//            A                        document      d0   d1   d2   d3  ...  a byte each, 8 vectors of 32 or 64
//         /     \       codes of B's column         12   90    7   31       number of thresholds below the value
//       B         E     goes left at B, cut > code   1    0    1    1       bit 0
//      / \       / \    goes left at C               1    1    0    1       bit 1
//     C   D     F   G   goes left at D               0    1    0    1       bit 2
//    / \ / \   / \ / \  decisions, bits 2 1 0       011  110  001  111
//    0 1 2 3   4 5 6 7
//                       table of cluster BCD         0    2    1    0       its 16 bytes: leaf by decisions
//    clusters:          table of cluster EFG         4    5    7    6       the same for the other subtree
//      BCD, EFG         goes left at A               1    0    1    0       the upper cluster's table: which
//    upper cluster:     index of the leaf            0    5    1    6       result below holds
//      A
//                       plane 0, byte 0 of values   x0   x5   x1   x6       each plane is a table of bytes by leaf:
//                       plane 1, byte 1             y0   y5   y1   y6       4 planes for float, 8 for double
//                       ...
//                       interleaved: the values     v0   v5   v1   v6       added to the sums of the documents
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "aligned.hpp"
#include "parallel.hpp"
#include "rows.hpp"
#include "score/bitslice_pairs.hpp"
#include "score/bitslice_trees.hpp"
#include "score/kernels.hpp"
#include "score/pause.hpp"
#include "score/quantise.hpp"
#include "sums.hpp"

namespace rankwood {

class Bitslice {
 public:
  static constexpr std::size_t kMaxColumns = 65536;

  // `model` must have passed the checks of ensemble.hpp. Everything needed is copied.
  Bitslice(const EnsembleView& model, const double* tree_weights, double base)
      : Bitslice(model, Quantised(model, 255), tree_weights, base) {}
  Bitslice(const EnsembleView& model, const Quantised& quantised, const double* tree_weights, double base)
      : kernel_(scoring_kernels()),
        quantiser_(quantised.quantiser),
        trees_(BitsliceBuilder(model, quantised.nodes, kernel_.has_lookup).trees),
        n_features_(static_cast<std::size_t>(model.n_features)),
        n_trees_(model.n_trees),
        base_(base) {
    if (quantiser_->n_columns() > kMaxColumns) {
      throw std::invalid_argument("the model has too many distinct thresholds for engine 'bitslice'");
    }
    if (kernel_.find_few != nullptr && quantiser_->n_columns() <= BitslicePairs::kMaxColumns) pairs_.emplace(trees_);
    for (const BitsliceUnit& unit : trees_.units) add_values(model, unit, tree_weights[unit.tree]);
    planes32_.resize(planes32_.size() + 64);  // a look-up may read that far
    planes64_.resize(planes64_.size() + 64);
    constants_.resize(kMaxIndices * kernel_.vector_bytes);
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      constants_[i] = static_cast<std::uint8_t>(i / kernel_.vector_bytes);
    }
  }

  std::size_t n_features() const { return n_features_; }
  std::size_t n_trees() const { return n_trees_; }
  double base() const { return base_; }
  std::size_t vector_rows() const { return kernel_.vector_bytes; }  // documents that are worked on at once
  const Quantiser& quantiser() const { return *quantiser_; }
  std::size_t n_bytes() const {  // that of the quantiser, which may be shared, included
    return bytes(trees_.cluster1) + bytes(trees_.cluster2) + bytes(trees_.cluster3) + bytes(trees_.cluster4) +
           bytes(trees_.cluster5) + bytes(trees_.cluster6) + bytes(trees_.upper) + bytes(trees_.joins) +
           bytes(trees_.units) + bytes(trees_.groups) + bytes(trees_.leaf_of) + bytes(values_) + bytes(values32_) +
           bytes(values64_) + bytes(planes32_) + bytes(planes64_) + bytes(constants_) +
           (pairs_ ? pairs_->n_bytes() : 0) + quantiser_->n_bytes();
  }

  // Memory that one thread works in, for batches of up to n_rows documents; of a larger batch, a block at a time.
  class Scratch {
   public:
    Scratch(const Bitslice& engine, std::size_t n_rows);

   private:
    friend class Bitslice;
    AlignedVector<std::int8_t> codes_;
    AlignedVector<std::uint8_t> slots_;
    AlignedVector<std::uint8_t> constant_;  // the indices of a tree that is a single leaf
    AlignedVector<float> sums_;
    AlignedVector<double> totals_;
  };

  template <class T>
  void score(const Rows<T>& rows, double* scores, bool single, int n_threads) const {
    for_each_run(rows, n_threads, [&](std::size_t first, std::size_t end, Scratch& scratch) {
      score_rows(rows, first, end, scores, single, scratch, MayStop{});
    });
  }
  // The same on this thread alone, which allocates nothing.
  template <class T>
  void score(const Rows<T>& rows, double* scores, bool single, Scratch& scratch) const noexcept {
    score_rows(rows, 0, rows.n_rows, scores, single, scratch, GoOn{});
  }

  // Documents that go through the trees part by part, and become fewer between two parts. Their codes are made once.
  class Batch;

  // leaves[row * n_trees + tree] = number of the leaf inside its tree. The caller picks a type wide enough.
  template <class T, class Leaf>
  void leaves(const Rows<T>& rows, Leaf* leaves, int n_threads) const {
    for_each_run(rows, n_threads, [&](std::size_t begin, std::size_t end, Scratch& scratch) {
      for_each_block(rows, begin, end, scratch, MayStop{}, [&](std::size_t first, const Block& block) {
        for_each_unit(block, 0, trees_.groups.size(),
                      [&](const BitsliceUnit& unit, std::size_t, const std::uint8_t* indices) {
                        const std::int32_t* leaf_of = trees_.leaf_of.data() + unit.first_index;
                        Leaf* out = leaves + first * n_trees_ + unit.tree;
                        for (std::size_t i = 0; i < block.n_rows; ++i, out += n_trees_) {
                          const std::int32_t leaf = leaf_of[indices[i]];
                          if (leaf >= 0) *out = static_cast<Leaf>(leaf);
                        }
                      });
      });
    });
  }

 private:
  static constexpr std::size_t kBlockVectors = 8;   // the codes of a block stay in the nearest caches
  static constexpr std::size_t kSlotVectors = 256;  // and what groups that are taken as one find out

  template <class Vector>
  static std::size_t bytes(const Vector& vector) {
    return vector.size() * sizeof vector[0];
  }

  struct UnitValues {
    std::uint32_t padded;
    std::size_t values, planes32, planes64;  // where they start
  };

  struct Block {                 // of documents that go through the trees together
    std::size_t n_rows, padded;  // places for documents: whole vectors, or kFewRows
    const std::int8_t* codes;
    Scratch& scratch;
  };

  // The values of a unit's leaves, with the tree's weight, as numbers and byte by byte (leaf_values.inl).
  void add_values(const EnsembleView& model, const BitsliceUnit& unit, double weight) {
    std::size_t padded = 16;
    while (padded < unit.n_indices) padded *= 2;
    values_.push_back({static_cast<std::uint32_t>(padded), values32_.size(), planes32_.size(), planes64_.size()});
    const double* leaf_value = model.leaf_value + model.first_leaf(unit.tree);
    std::vector<double> doubles(padded, -0.0);  // adding it changes nothing, not even the sign of a zero
    for (std::size_t i = 0; i < unit.n_indices; ++i) {
      const std::int32_t leaf = trees_.leaf_of[unit.first_index + i];
      if (leaf >= 0) doubles[i] = weight * leaf_value[leaf];
    }
    const std::vector<float> singles(doubles.begin(), doubles.end());
    values64_.insert(values64_.end(), doubles.begin(), doubles.end());
    values32_.insert(values32_.end(), singles.begin(), singles.end());
    append_planes(doubles, planes64_);
    append_planes(singles, planes32_);
  }

  template <class Value>
  static void append_planes(const std::vector<Value>& values, std::vector<std::uint8_t>& planes) {
    const std::size_t first = planes.size(), padded = values.size();
    planes.resize(first + sizeof(Value) * padded);
    for (std::size_t i = 0; i < padded; ++i) {
      std::uint8_t number[sizeof(Value)];
      std::memcpy(number, &values[i], sizeof(Value));
      for (std::size_t p = 0; p < sizeof(Value); ++p) planes[first + p * padded + i] = number[p];
    }
  }

  std::size_t block_rows() const { return kBlockVectors * kernel_.vector_bytes; }
  std::size_t vectors(std::size_t n_rows) const { return (n_rows + kernel_.vector_bytes - 1) / kernel_.vector_bytes; }

  // Call task(first row, end, scratch) for all rows, in a few runs of whole blocks per thread: each run has memory of
  // its own, and no thread waits long for the last one.
  template <class T, class Task>
  void for_each_run(const Rows<T>& rows, int n_threads, const Task& task) const {
    const std::size_t n_blocks = (rows.n_rows + block_rows() - 1) / block_rows();
    const std::size_t n_runs = n_threads > 1 ? std::min(n_blocks, static_cast<std::size_t>(n_threads) * 8) : 1;
    parallel_for(n_blocks == 0 ? 0 : n_runs, n_threads, [&](std::size_t run) {
      Scratch scratch(*this, rows.n_rows);
      task(n_blocks * run / n_runs * block_rows(), std::min(rows.n_rows, n_blocks * (run + 1) / n_runs * block_rows()),
           scratch);
    });
  }

  // Call task(first row, block) for the blocks of the rows [begin, end).
  template <class T, class Pause, class Task>
  void for_each_block(const Rows<T>& rows, std::size_t begin, std::size_t end, Scratch& scratch, Pause pause,
                      const Task& task) const noexcept(kNeverStops<Pause>) {
    for (std::size_t first = begin; first < end; first += block_rows()) {
      if (first != begin) pause();
      const std::size_t n = std::min(block_rows(), end - first);
      const std::size_t padded = pairs_ && n <= kFewRows ? kFewRows : vectors(n) * kernel_.vector_bytes;
      quantiser_->quantise(rows, first, n, scratch.codes_.data(), padded, 1);
      task(first, Block{n, padded, scratch.codes_.data(), scratch});
    }
  }

  template <class T, class Pause>
  void score_rows(const Rows<T>& rows, std::size_t begin, std::size_t end, double* scores, bool single,
                  Scratch& scratch, Pause pause) const noexcept(kNeverStops<Pause>) {
    std::fill(scores + begin, scores + end, base_);
    for_each_block(rows, begin, end, scratch, pause, [&](std::size_t first, const Block& block) {
      add_groups(block, 0, trees_.groups.size(), scores + first, single);
    });
  }

  // The group after the last one of the first `n_trees` trees, which are all or a multiple of kSumGroup.
  std::size_t groups_of(std::size_t n_trees) const {
    std::size_t end = 0;
    while (end < trees_.groups.size() && trees_.units[trees_.groups[end].unit_end - 1].tree < n_trees) ++end;
    return end;
  }

  // scores[i] += the values of the trees of some groups, for the documents of a block, in the order of sums.hpp. The
  // first of the trees is a multiple of kSumGroup.
  void add_groups(const Block& block, std::size_t first_group, std::size_t end_group, double* scores,
                  bool single) const noexcept {
    const std::size_t width = kernel_.vector_bytes, n = block.n_rows;
    if (n <= kFewRows && block.padded >= kFewRows) return add_few(block, first_group, end_group, scores, single);
    const std::uint8_t* order = single ? kernel_.order_f32 : kernel_.order_f64;
    const auto for_each_total = [&](const auto& task) {  // and the score that it belongs to
      for (std::size_t first = 0; first < n; first += width) {
        double* totals = block.scratch.totals_.data() + first;
        for (std::size_t lane = 0; lane < width; ++lane) {
          if (first + width <= n || first + order[lane] < n) task(totals[lane], scores[first + order[lane]]);
        }
      }
    };
    for_each_total([](double& total, double& score) { total = score; });
    if (single) {
      sum_singles(block, first_group, end_group);
    } else {
      sum_doubles(block, first_group, end_group);
    }
    for_each_total([](double& total, double& score) { score = total; });
  }

  // The same for a few documents, one by one: planes are for whole vectors. Four at a time, whoever the last ones are.
  void add_few(const Block& block, std::size_t first_group, std::size_t end_group, double* scores, bool single) const {
    const std::size_t n = block.n_rows;
    double totals[kFewRows] = {};
    std::copy_n(scores, n, totals);
    const auto add_all = [&](const auto* values, const std::uint8_t* indices, auto* sums) {
      for (std::size_t i = 0; i < n; i += 4) {
        for (std::size_t j = i; j < i + 4; ++j) sums[j] += values[indices[j]];
      }
    };
    float sums[kFewRows] = {};
    std::uint32_t sum_group = 0;
    const auto flush = [&] {
      for (std::size_t i = 0; i < n; ++i) totals[i] += static_cast<double>(sums[i]);
      std::fill_n(sums, kFewRows, 0.0f);
    };
    for_each_unit(block, first_group, end_group,
                  [&](const BitsliceUnit& unit, std::size_t u, const std::uint8_t* indices) {
                    const std::size_t at = values_[u].values;
                    if (!single) return add_all(values64_.data() + at, indices, totals);
                    if (unit.tree / kSumGroup != sum_group) flush();
                    sum_group = unit.tree / kSumGroup;
                    add_all(values32_.data() + at, indices, sums);
                  });
    if (single) flush();
    std::copy_n(totals, n, scores);
  }

  // Call task(unit, its number, the indices of the block's documents) for every unit of some groups, in order.
  template <class Task>
  void for_each_unit(const Block& block, std::size_t first_group, std::size_t end_group, const Task& task) const {
    BitsliceGroup start = first_group == 0 ? BitsliceGroup{} : trees_.groups[first_group - 1];
    for (std::size_t g = first_group; g < end_group;) {
      std::uint8_t* slots = block.scratch.slots_.data();
      const std::size_t n_vectors = block.padded / kernel_.vector_bytes;  // 0: half of one
      if (n_vectors == 0) {
        g = find_few(g, start, block);
      } else {
        slots -= trees_.groups[g].first_slot * block.padded;
        g = end_of_run(g, end_group, n_vectors);
        kernel_.find_leaves(between(start, trees_.groups[g - 1]), {block.codes, n_vectors, slots, constants_.data()});
      }
      const BitsliceGroup& end = trees_.groups[g - 1];
      for (std::size_t u = start.unit_end; u < end.unit_end; ++u) {
        const BitsliceUnit& unit = trees_.units[u];
        const bool is_leaf = (unit.result & kConstant) != 0;  // of index 0, as the memory of `constant_` is
        task(unit, u, is_leaf ? block.scratch.constant_.data() : slots + unit.result * block.padded);
      }
      start = end;
    }
  }

  // The leaves of a few documents in the groups from `first` on that are taken together. Returns the group behind them.
  std::size_t find_few(std::size_t first, const BitsliceGroup& start, const Block& block) const {
    const std::size_t run = pairs_->run_of(first), end = pairs_->group_end(run);
    PairGroup group = (*pairs_)[run];
    group.join = trees_.joins.data() + start.end[7];
    group.n_join = trees_.groups[end - 1].end[7] - start.end[7];
    kernel_.find_few(group, block.codes, block.scratch.slots_.data());
    return end;
  }

  // The group behind those that are taken as one from `first` on: the fewer vectors, the more groups.
  std::size_t end_of_run(std::size_t first, std::size_t end_group, std::size_t n_vectors) const {
    const auto fits = [&](const BitsliceGroup& group) {
      return group.first_slot != 0 && (group.end_slot - trees_.groups[first].first_slot) * n_vectors <= kSlotVectors;
    };
    std::size_t end = first + 1;
    while (end < end_group && fits(trees_.groups[end])) ++end;
    return end;
  }

  TreeGroup between(const BitsliceGroup& start, const BitsliceGroup& end) const {
    const auto n = [&](int kind) { return end.end[kind] - start.end[kind]; };
    return {trees_.cluster1.data() + start.end[0],
            trees_.cluster2.data() + start.end[1],
            trees_.cluster3.data() + start.end[2],
            trees_.cluster4.data() + start.end[3],
            trees_.cluster5.data() + start.end[4],
            trees_.cluster6.data() + start.end[5],
            trees_.upper.data() + start.end[6],
            trees_.joins.data() + start.end[7],
            n(0),
            n(1),
            n(2),
            n(3),
            n(4),
            n(5),
            n(6),
            n(7)};
  }

  void sum_doubles(const Block& block, std::size_t first_group, std::size_t end_group) const {
    for_each_unit(block, first_group, end_group, [&](const BitsliceUnit&, std::size_t u, const std::uint8_t* indices) {
      const UnitValues& at = values_[u];
      kernel_.add_f64(indices, block.padded / kernel_.vector_bytes, values64_.data() + at.values,
                      planes64_.data() + at.planes64, at.padded, block.scratch.totals_.data());
    });
  }

  void sum_singles(const Block& block, std::size_t first_group, std::size_t end_group) const {
    const std::size_t padded = block.padded;
    float* const sums = block.scratch.sums_.data();
    double* const totals = block.scratch.totals_.data();
    std::fill_n(sums, padded, 0.0f);
    const std::size_t first_unit = first_group == 0 ? 0 : trees_.groups[first_group - 1].unit_end;
    std::size_t sum_group = first_unit < trees_.units.size() ? trees_.units[first_unit].tree / kSumGroup : 0;
    const auto flush = [&] {
      for (std::size_t i = 0; i < padded; ++i) totals[i] += static_cast<double>(sums[i]);
      std::fill_n(sums, padded, 0.0f);
    };
    for_each_unit(block, first_group, end_group,
                  [&](const BitsliceUnit& unit, std::size_t u, const std::uint8_t* indices) {
                    if (unit.tree / kSumGroup != sum_group) {
                      flush();
                      sum_group = unit.tree / kSumGroup;
                    }
                    const UnitValues& at = values_[u];
                    kernel_.add_f32(indices, padded / kernel_.vector_bytes, values32_.data() + at.values,
                                    planes32_.data() + at.planes32, at.padded, sums);
                  });
    flush();
  }

  const ScoringKernels& kernel_;
  std::shared_ptr<const Quantiser> quantiser_;
  BitsliceTrees trees_;
  std::optional<BitslicePairs> pairs_;  // for few documents, where the instruction set has what it takes
  std::vector<UnitValues> values_;
  std::vector<float> values32_;
  std::vector<double> values64_;
  std::vector<std::uint8_t> planes32_, planes64_;
  AlignedVector<std::uint8_t> constants_;
  std::size_t n_features_, n_trees_;
  double base_;
};

inline Bitslice::Scratch::Scratch(const Bitslice& engine, std::size_t n_rows) {
  const std::size_t padded = engine.vectors(std::min(n_rows, engine.block_rows())) * engine.kernel_.vector_bytes;
  codes_.resize(engine.quantiser_->n_columns() * padded);
  slots_.resize(std::max(kSlotVectors * engine.kernel_.vector_bytes, engine.trees_.max_slots * padded));
  if (engine.pairs_) slots_.resize(std::max(slots_.size(), engine.pairs_->max_slots() * kFewRows));
  constant_.resize(padded);
  sums_.resize(padded);
  totals_.resize(padded);
}

class Bitslice::Batch {
 public:
  // Of up to max_rows documents: all memory is taken here.
  Batch(const Bitslice& engine, std::size_t max_rows)
      : engine_(engine), codes_(n_bytes(max_rows)), moved_(n_bytes(max_rows)), scratch_(engine, max_rows) {
    moves_.reserve(max_rows / engine.kernel_.move_width + max_rows / block_rows() + 2);
  }

  // Begin with the rows of other documents.
  template <class T>
  void start(const Rows<T>& rows) noexcept {
    n_rows_ = rows.n_rows;
    for (std::size_t first = 0; first < n_rows_; first += block_rows()) {
      const std::size_t n = rows_of_block(first, n_rows_);
      engine_.quantiser_->quantise(rows, first, n, codes_.data() + place(first), stride(first, n_rows_), 1);
    }
  }

  // scores[i] += the values of the trees from first_tree to end_tree, both multiples of kSumGroup or the end.
  template <class Pause>
  void add(std::size_t first_tree, std::size_t end_tree, double* scores, bool single,
           Pause pause) noexcept(kNeverStops<Pause>) {
    const std::size_t first_group = engine_.groups_of(first_tree), end_group = engine_.groups_of(end_tree);
    for (std::size_t first = 0; first < n_rows_; first += block_rows()) {
      pause();
      const std::size_t n = rows_of_block(first, n_rows_);
      const Block block{n, stride(first, n_rows_), codes_.data() + place(first), scratch_};
      engine_.add_groups(block, first_group, end_group, scores + first, single);
    }
  }

  // From here on there are only these documents, in rising order.
  void keep(const std::vector<std::uint32_t>& kept) noexcept {
    if (kept.size() == n_rows_) return;
    const std::size_t width = engine_.kernel_.move_width, n_before = n_rows_;
    moves_.clear();
    moved_.swap(codes_);
    n_rows_ = kept.size();
    for (std::size_t i = 0; i < kept.size();) {
      const std::size_t from = kept[i] / width * width;  // a vector never straddles two blocks
      const std::size_t end = std::min(kept.size(), i / block_rows() * block_rows() + block_rows());
      CodeMove move = {
          moved_.data() + place(from), stride(from, n_before), codes_.data() + place(i), stride(i, n_rows_), 0, {}};
      for (; i < end && kept[i] < from + width; ++i)
        move.index[move.count++] = static_cast<std::uint8_t>(kept[i] - from);
      moves_.push_back(move);
    }
    engine_.kernel_.move_codes(moves_.data(), moves_.size(), engine_.quantiser_->n_columns());
  }

 private:
  // Blocks stand one after the other, each with the codes of a column side by side, and room for a vector behind it.
  std::size_t block_rows() const { return engine_.block_rows(); }
  std::size_t rows_of_block(std::size_t row, std::size_t n_rows) const {
    return std::min(block_rows(), n_rows - row / block_rows() * block_rows());
  }
  std::size_t stride(std::size_t row, std::size_t n_rows) const {
    return engine_.vectors(rows_of_block(row, n_rows)) * engine_.kernel_.vector_bytes;
  }
  std::size_t place(std::size_t row) const {
    const std::size_t n_columns = engine_.quantiser_->n_columns();
    return row / block_rows() * (n_columns * block_rows() + 64) + row % block_rows();
  }
  std::size_t n_bytes(std::size_t n_rows) const {
    const std::size_t last = n_rows == 0 ? 0 : (n_rows - 1) / block_rows() * block_rows();
    return place(last) + engine_.quantiser_->n_columns() * stride(last, n_rows) + 64;
  }

  const Bitslice& engine_;
  std::size_t n_rows_ = 0;
  AlignedVector<std::int8_t> codes_, moved_;
  std::vector<CodeMove> moves_;
  Scratch scratch_;
};

}  // namespace rankwood
