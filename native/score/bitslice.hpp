// Engine bitslice: a block of documents goes through the trees together, one byte per document and feature.
//
// Values become codes of a byte (quantise.hpp), so one instruction compares 16, 32 or 64 documents with a threshold.
// All nodes of a tree are decided, whether a document meets them or not: no branch, no gather, nothing to mispredict.
// bitslice_trees.hpp says how the decisions become the index of a leaf, leaf_values.inl how the values are added.
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
#include <stdexcept>
#include <vector>

#include "aligned.hpp"
#include "interruption.hpp"
#include "parallel.hpp"
#include "rows.hpp"
#include "score/bitslice_trees.hpp"
#include "score/kernels.hpp"
#include "score/quantise.hpp"
#include "sums.hpp"

namespace rankwood {

class Bitslice {
 public:
  // `model` must have passed the checks of ensemble.hpp. Everything needed is copied.
  Bitslice(const EnsembleView& model, const double* tree_weights, double base)
      : kernel_(scoring_kernels()),
        quantiser_(model, 255),
        trees_(BitsliceBuilder(model, quantiser_, kernel_.has_lookup).trees),
        n_features_(static_cast<std::size_t>(model.n_features)),
        n_trees_(model.n_trees),
        base_(base) {
    if (quantiser_.n_columns() > kMaxColumns) {
      throw std::invalid_argument("the model has too many distinct thresholds for engine 'bitslice'");
    }
    quantiser_.forget_nodes();
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
  std::size_t n_bytes() const {
    return bytes(trees_.cluster1) + bytes(trees_.cluster2) + bytes(trees_.cluster3) + bytes(trees_.cluster4) +
           bytes(trees_.cluster5) + bytes(trees_.cluster6) + bytes(trees_.upper) + bytes(trees_.joins) +
           bytes(trees_.units) + bytes(trees_.groups) + bytes(trees_.leaf_of) + bytes(values_) + bytes(values32_) +
           bytes(values64_) + bytes(planes32_) + bytes(planes64_) + bytes(constants_) + quantiser_.n_bytes();
  }

  template <class T>
  void score(const Rows<T>& rows, double* scores, bool single, int n_threads) const {
    std::fill_n(scores, rows.n_rows, base_);
    add(rows, scores, single, n_threads);
  }

  // scores += the values of all trees, in the order of sums.hpp
  template <class T>
  void add(const Rows<T>& rows, double* scores, bool single, int n_threads) const {
    for_each_block(rows, n_threads, [&](std::size_t first, std::size_t n, Scratch& scratch) {
      add_groups(scratch, 0, trees_.groups.size(), scores + first, n, single);
    });
  }

  // Documents that go through the trees part by part, and become fewer between two parts. Their codes are made once.
  class Batch;

  // leaves[row * n_trees + tree] = number of the leaf inside its tree. The caller picks a type wide enough.
  template <class T, class Leaf>
  void leaves(const Rows<T>& rows, Leaf* leaves, int n_threads) const {
    for_each_block(rows, n_threads, [&](std::size_t first, std::size_t n, Scratch& scratch) {
      for_each_unit(scratch, [&](const BitsliceUnit& unit, std::size_t, const std::uint8_t* indices) {
        const std::int32_t* leaf_of = trees_.leaf_of.data() + unit.first_index;
        Leaf* out = leaves + first * n_trees_ + unit.tree;
        for (std::size_t i = 0; i < n; ++i, out += n_trees_) {
          const std::int32_t leaf = leaf_of[indices[i]];
          if (leaf >= 0) *out = static_cast<Leaf>(leaf);
        }
      });
    });
  }

 private:
  static constexpr std::size_t kMaxColumns = 65536;
  static constexpr std::size_t kBlockVectors = 8;  // the codes of a block stay in the nearest caches

  template <class Vector>
  static std::size_t bytes(const Vector& vector) {
    return vector.size() * sizeof vector[0];
  }

  struct UnitValues {
    std::uint32_t padded;
    std::size_t values, planes32, planes64;  // where they start
  };

  struct Scratch {
    std::size_t n_vectors = 0;
    const std::int8_t* codes = nullptr;
    AlignedVector<std::int8_t> own_codes;
    AlignedVector<std::uint8_t> slots;
    AlignedVector<std::uint8_t> constant;  // the indices of a tree that is a single leaf
    AlignedVector<float> sums;
    AlignedVector<double> totals;
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

  // Call task(first row, number of rows, scratch with their codes) for every block of rows.
  template <class T, class Task>
  void for_each_block(const Rows<T>& rows, int n_threads, const Task& task) const {
    const std::size_t width = kernel_.vector_bytes, block_rows = kBlockVectors * width;
    const std::size_t n_blocks = (rows.n_rows + block_rows - 1) / block_rows;
    // A few runs of blocks per thread: each run has memory of its own, and no thread waits long for the last one.
    const std::size_t n_runs = n_threads > 1 ? std::min(n_blocks, static_cast<std::size_t>(n_threads) * 8) : 1;
    parallel_for(n_blocks == 0 ? 0 : n_runs, n_threads, [&](std::size_t run) {
      Scratch scratch;
      for (std::size_t block = n_blocks * run / n_runs; block < n_blocks * (run + 1) / n_runs; ++block) {
        if (scratch.n_vectors != 0) check_interruption();
        const std::size_t first = block * block_rows, n = std::min(block_rows, rows.n_rows - first);
        const std::size_t padded = resize(scratch, n);
        scratch.own_codes.resize(quantiser_.n_columns() * padded);
        scratch.codes = scratch.own_codes.data();
        quantiser_.quantise(rows, first, n, scratch.own_codes.data(), padded, 1);
        task(first, n, scratch);
      }
    });
  }

  // Make room for a block of n documents; returns how many that is with those that fill the last vector up.
  std::size_t resize(Scratch& scratch, std::size_t n) const {
    scratch.n_vectors = (n + kernel_.vector_bytes - 1) / kernel_.vector_bytes;
    const std::size_t padded = scratch.n_vectors * kernel_.vector_bytes;
    scratch.slots.resize(trees_.max_slots * padded);
    scratch.constant.resize(padded);
    return padded;
  }

  // The group after the last one of the first `n_trees` trees, which are all or a multiple of kSumGroup.
  std::size_t groups_of(std::size_t n_trees) const {
    std::size_t end = 0;
    while (end < trees_.groups.size() && trees_.units[trees_.groups[end].unit_end - 1].tree < n_trees) ++end;
    return end;
  }

  // scores[i] += the values of the trees of some groups, for the n documents of a block. The first of the trees is a
  // multiple of kSumGroup.
  void add_groups(Scratch& scratch, std::size_t first_group, std::size_t end_group, double* scores, std::size_t n,
                  bool single) const {
    const std::size_t width = kernel_.vector_bytes;
    const std::uint8_t* order = single ? kernel_.order_f32 : kernel_.order_f64;
    const auto for_each_total = [&](const auto& task) {  // and the score that it belongs to
      for (std::size_t first = 0; first < n; first += width) {
        double* totals = scratch.totals.data() + first;
        for (std::size_t lane = 0; lane < width; ++lane) {
          if (first + width <= n || first + order[lane] < n) task(totals[lane], scores[first + order[lane]]);
        }
      }
    };
    scratch.totals.resize(scratch.n_vectors * width);
    for_each_total([](double& total, double& score) { total = score; });
    if (single) {
      sum_singles(scratch, first_group, end_group);
    } else {
      sum_doubles(scratch, first_group, end_group);
    }
    for_each_total([](double& total, double& score) { score = total; });
  }

  // Call task(unit, its number, the indices of the block's documents) for every unit of all groups, in order.
  template <class Task>
  void for_each_unit(Scratch& scratch, const Task& task) const {
    for_each_unit(scratch, 0, trees_.groups.size(), task);
  }
  template <class Task>
  void for_each_unit(Scratch& scratch, std::size_t first_group, std::size_t end_group, const Task& task) const {
    const std::size_t padded = scratch.n_vectors * kernel_.vector_bytes;
    const BitsliceBlock block{scratch.codes, scratch.n_vectors, scratch.slots.data(), constants_.data()};
    BitsliceGroup start = first_group == 0 ? BitsliceGroup{} : trees_.groups[first_group - 1];
    for (std::size_t g = first_group; g < end_group; ++g) {
      const BitsliceGroup& group = trees_.groups[g];
      kernel_.find_leaves(between(start, group), block);
      for (std::size_t u = start.unit_end; u < group.unit_end; ++u) {
        const BitsliceUnit& unit = trees_.units[u];
        const bool is_leaf = (unit.result & kConstant) != 0;  // of index 0, as the memory of `constant` is
        task(unit, u, is_leaf ? scratch.constant.data() : scratch.slots.data() + unit.result * padded);
      }
      start = group;
    }
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

  void sum_doubles(Scratch& scratch, std::size_t first_group, std::size_t end_group) const {
    for_each_unit(scratch, first_group, end_group,
                  [&](const BitsliceUnit&, std::size_t u, const std::uint8_t* indices) {
                    const UnitValues& at = values_[u];
                    kernel_.add_f64(indices, scratch.n_vectors, values64_.data() + at.values,
                                    planes64_.data() + at.planes64, at.padded, scratch.totals.data());
                  });
  }

  void sum_singles(Scratch& scratch, std::size_t first_group, std::size_t end_group) const {
    const std::size_t padded = scratch.n_vectors * kernel_.vector_bytes;
    scratch.sums.assign(padded, 0.0f);
    const std::size_t first_unit = first_group == 0 ? 0 : trees_.groups[first_group - 1].unit_end;
    std::size_t sum_group = first_unit < trees_.units.size() ? trees_.units[first_unit].tree / kSumGroup : 0;
    const auto flush = [&] {
      for (std::size_t i = 0; i < padded; ++i) scratch.totals[i] += static_cast<double>(scratch.sums[i]);
      std::fill(scratch.sums.begin(), scratch.sums.end(), 0.0f);
    };
    for_each_unit(scratch, first_group, end_group,
                  [&](const BitsliceUnit& unit, std::size_t u, const std::uint8_t* indices) {
                    if (unit.tree / kSumGroup != sum_group) {
                      flush();
                      sum_group = unit.tree / kSumGroup;
                    }
                    const UnitValues& at = values_[u];
                    kernel_.add_f32(indices, scratch.n_vectors, values32_.data() + at.values,
                                    planes32_.data() + at.planes32, at.padded, scratch.sums.data());
                  });
    flush();
  }

  const ScoringKernels& kernel_;
  Quantiser quantiser_;
  BitsliceTrees trees_;
  std::vector<UnitValues> values_;
  std::vector<float> values32_;
  std::vector<double> values64_;
  std::vector<std::uint8_t> planes32_, planes64_;
  AlignedVector<std::uint8_t> constants_;
  std::size_t n_features_, n_trees_;
  double base_;
};

class Bitslice::Batch {
 public:
  explicit Batch(const Bitslice& engine) : engine_(engine) {}

  // Begin with the rows of other documents; memory is kept.
  template <class T>
  void start(const Rows<T>& rows) {
    n_rows_ = rows.n_rows;
    make_room();
    for (std::size_t first = 0; first < n_rows_; first += block_rows()) {
      engine_.quantiser_.quantise(rows, first, rows_of_block(first), codes_.data() + place(first), stride(first), 1);
    }
  }

  // scores[i] += the values of the trees from first_tree to end_tree, both multiples of kSumGroup or the end.
  void add(std::size_t first_tree, std::size_t end_tree, double* scores, bool single) {
    const std::size_t first_group = engine_.groups_of(first_tree), end_group = engine_.groups_of(end_tree);
    for (std::size_t first = 0; first < n_rows_; first += block_rows()) {
      check_interruption();
      engine_.resize(scratch_, rows_of_block(first));
      scratch_.codes = codes_.data() + place(first);
      engine_.add_groups(scratch_, first_group, end_group, scores + first, rows_of_block(first), single);
    }
  }

  // From here on there are only these documents, in rising order.
  void keep(const std::vector<std::uint32_t>& kept) {
    if (kept.size() == n_rows_) return;
    const std::size_t width = engine_.kernel_.move_width;
    moves_.clear();
    moved_.swap(codes_);
    Batch before(engine_);
    before.n_rows_ = n_rows_;
    n_rows_ = kept.size();
    make_room();
    for (std::size_t i = 0; i < kept.size();) {
      const std::size_t from = kept[i] / width * width;  // a vector never straddles two blocks
      const std::size_t end = std::min(kept.size(), i / block_rows() * block_rows() + block_rows());
      CodeMove move = {
          moved_.data() + before.place(from), before.stride(from), codes_.data() + place(i), stride(i), 0, {}};
      for (; i < end && kept[i] < from + width; ++i)
        move.index[move.count++] = static_cast<std::uint8_t>(kept[i] - from);
      moves_.push_back(move);
    }
    engine_.kernel_.move_codes(moves_.data(), moves_.size(), engine_.quantiser_.n_columns());
  }

 private:
  // Blocks stand one after the other, each with the codes of a column side by side, and room for a vector behind it.
  std::size_t width() const { return engine_.kernel_.vector_bytes; }
  std::size_t block_rows() const { return kBlockVectors * width(); }
  std::size_t rows_of_block(std::size_t row) const {
    return std::min(block_rows(), n_rows_ - row / block_rows() * block_rows());
  }
  std::size_t stride(std::size_t row) const { return (rows_of_block(row) + width() - 1) / width() * width(); }
  std::size_t place(std::size_t row) const {
    const std::size_t n_columns = engine_.quantiser_.n_columns();
    return row / block_rows() * (n_columns * block_rows() + 64) + row % block_rows();
  }
  void make_room() {
    const std::size_t last = n_rows_ == 0 ? 0 : (n_rows_ - 1) / block_rows() * block_rows();
    const std::size_t n_bytes = place(last) + engine_.quantiser_.n_columns() * stride(last) + 64;
    if (codes_.size() < n_bytes) codes_.resize(n_bytes);  // growing fills it with zeros, which takes time
  }

  const Bitslice& engine_;
  std::size_t n_rows_ = 0;
  AlignedVector<std::int8_t> codes_, moved_;
  std::vector<CodeMove> moves_;
  Scratch scratch_;
};

}  // namespace rankwood
