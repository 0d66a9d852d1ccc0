// Small trees side by side, 64 nodes at a time, for documents that come alone (hops.inl).
//
// A pack has the nodes of one or several trees, the roots first: bytes for column, code, left and right child of each.
// A child is the number of a leaf in its tree, or with kHopNode set the place of a node in the pack. A tree of one leaf
// takes the place of a node, both children of which are the leaf. No pack has trees of two groups of kSumGroup trees,
// so that scoring can stop and go on between groups.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "aligned.hpp"
#include "ensemble.hpp"
#include "score/kernels.hpp"
#include "score/quantise.hpp"
#include "sums.hpp"

namespace rankwood {

static_assert(kSumGroup == HopPack::kMaxTrees);

class HopTrees {
 public:
  static bool fit(const EnsembleView& model, const Quantiser& quantiser) {
    if (quantiser.n_columns() > HopPack::kMaxColumns) return false;
    for (std::size_t tree = 0; tree < model.n_trees; ++tree) {
      if (model.nodes_of(tree) > HopPack::kNodes) return false;
    }
    return true;
  }

  HopTrees(const EnsembleView& model, const Quantised& quantised)
      : model_(&model), codes_(&quantised.nodes), n_columns_(quantised.quantiser->n_columns()) {
    for (std::size_t first = 0, end; first < model.n_trees; first = end) {
      if (first % kSumGroup == 0) group_.push_back({packs_.size(), 0});
      end = first;
      std::size_t n_places = 0;
      const std::size_t most = first / kSumGroup * kSumGroup + kSumGroup;
      while (end < std::min(most, model.n_trees) && n_places + places_of(end) <= HopPack::kNodes) {
        n_places += places_of(end++);
      }
      const std::size_t depth = std::max<std::size_t>(1, add_pack(first, end));
      group_.back().n_rounds = std::max(group_.back().n_rounds, static_cast<int>(std::bit_width(depth - 1)));
    }
    group_.push_back({packs_.size(), 0});
    model_ = nullptr;
    codes_ = nullptr;
  }

  std::size_t n_bytes() const {
    return packs_.size() * sizeof packs_[0] + n_trees_.size() + group_.size() * sizeof group_[0];
  }

  // The trees from first to end, both multiples of kSumGroup or the end.
  HopTask task(std::size_t first, std::size_t end) const {
    const std::size_t first_group = first / kSumGroup, end_group = (end + kSumGroup - 1) / kSumGroup;
    const std::size_t pack = group_[first_group].first_pack, n_packs = group_[end_group].first_pack - pack;
    int n_rounds = 0;
    for (std::size_t g = first_group; g < end_group; ++g) n_rounds = std::max(n_rounds, group_[g].n_rounds);
    return {packs_.data() + pack, n_trees_.data() + pack, n_packs, n_columns_, n_rounds};
  }

 private:
  std::size_t places_of(std::size_t tree) const { return std::max<std::size_t>(1, model_->nodes_of(tree)); }

  // Trees as one pack. Returns the length of the longest path.
  std::size_t add_pack(std::size_t first, std::size_t end) {
    HopPack pack = {};
    std::size_t n_places = end - first, depth = 0;
    for (std::size_t tree = first; tree < end; ++tree) {
      const std::size_t first_node = model_->first_node(tree), n_nodes = model_->nodes_of(tree);
      if (n_nodes == 0) continue;  // leaf 0, as the memory says
      place_.assign(n_nodes, 0);
      level_.assign(n_nodes, 1);
      place_[0] = static_cast<std::uint8_t>(tree - first);
      order_.assign(1, 0);
      for (std::size_t i = 0; i < order_.size(); ++i) {
        const std::size_t node = order_[i], at = place_[node];
        const auto child = [&](std::int32_t number) {
          if (number < 0) return static_cast<std::uint8_t>(~number);
          const auto below = static_cast<std::size_t>(number);
          level_[below] = level_[node] + 1;
          order_.push_back(below);
          place_[below] = static_cast<std::uint8_t>(n_places++);
          return static_cast<std::uint8_t>(kHopNode | place_[below]);
        };
        pack.column[at] = static_cast<std::uint8_t>(codes_->column[first_node + node]);
        pack.code[at] = static_cast<std::uint8_t>(codes_->code[first_node + node]);
        pack.left[at] = child(model_->left[first_node + node]);
        pack.right[at] = child(model_->right[first_node + node]);
        depth = std::max(depth, level_[node]);
      }
    }
    packs_.push_back(pack);
    n_trees_.push_back(static_cast<std::uint8_t>(end - first));
    return depth;
  }

  const EnsembleView* model_;  // while packs are made
  const NodeCodes* codes_;
  std::size_t n_columns_;
  AlignedVector<HopPack> packs_;
  std::vector<std::uint8_t> n_trees_;  // of each pack
  struct Group {                       // of kSumGroup trees
    std::size_t first_pack;
    int n_rounds;  // that the longest path takes
  };
  std::vector<Group> group_;         // and the end
  std::vector<std::uint8_t> place_;  // of the tree at hand, by node
  std::vector<std::size_t> level_, order_;
};

}  // namespace rankwood
