// How engine bitslice cuts trees up, once, when a model is prepared.
//
// A subtree of at most six inner nodes, as large as possible, is a cluster: its decisions make a number, which a table
// turns into the index of the leaf. The nodes above are gathered into upper clusters of at most four nodes, with at
// most four results of clusters below: a table says which of them, or which leaf. Where an instruction set has no such
// look-up, a cluster is one node, and each node above joins the results of its two sides, as one or two at the top of a
// tree do anyway. Either way the result of a tree is one byte per document: the index of its leaf, counted from left to
// right. A tree with more leaves than a byte can count becomes several units: each knows the leaves of a range, and
// leads everywhere else to one more index, whose value is zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ensemble.hpp"
#include "interruption.hpp"
#include "score/kernels.hpp"
#include "score/quantise.hpp"
#include "sums.hpp"

namespace rankwood {

// One tree, or a range of its leaves.
struct BitsliceUnit {
  std::uint32_t tree;
  std::uint16_t result;  // operand as in Join: where the index of the leaf is found
  std::uint16_t n_indices;
  std::size_t first_index;  // into leaf_of
};

// Trees that are worked on together. Slots are counted on from group to group, so that several groups may be taken as
// one, up to a group that starts with slot 0 again.
struct BitsliceGroup {
  std::uint32_t end[8];  // where clusters of 1 to 6 nodes, upper clusters and joins of this group end
  std::uint32_t unit_end;
  std::uint32_t first_slot, end_slot;
};

struct BitsliceTrees {
  std::vector<Cluster<1>> cluster1;
  std::vector<Cluster<2>> cluster2;
  std::vector<Cluster<3>> cluster3;
  std::vector<Cluster<4>> cluster4;
  std::vector<Cluster<5>> cluster5;
  std::vector<Cluster<6>> cluster6;
  std::vector<UpperCluster> upper;
  std::vector<Join> joins;
  std::vector<BitsliceUnit> units;
  std::vector<BitsliceGroup> groups;
  std::vector<std::int32_t> leaf_of;  // by unit and index: number of the leaf in its tree, -1 for another unit's leaf
  std::size_t max_slots = 0;          // of a group
};

class BitsliceBuilder {
 public:
  BitsliceBuilder(const EnsembleView& model, const NodeCodes& codes, bool has_lookup)
      : model_(model), codes_(codes), has_lookup_(has_lookup), cluster_nodes_(has_lookup ? kMaxClusterNodes : 1) {
    for (std::size_t tree = 0; tree < model.n_trees; ++tree) {
      check_interruption();
      if (tree % kSumGroup == 0) {  // so that sums can stop and go on here
        close_group();
        first_slot_ = end_slot_ = 0;
      }
      walk(tree);
      const std::size_t n_leaves = leaves_.size();
      const std::size_t range = n_leaves <= kMaxIndices ? kMaxIndices : kMaxIndices - 1;
      for (std::size_t first = 0; first < n_leaves; first += range) {
        add_unit(tree, first, std::min(n_leaves, first + range));
      }
    }
    close_group();
  }

  BitsliceTrees trees;

 private:
  // What results of a group may take together: while they are worked on they stay in the first-level cache.
  static constexpr std::uint32_t kGroupSlots = 32, kMaxSlots = 1024;
  static constexpr std::size_t kGroupUnits = 16;

  static constexpr std::int32_t kOutside = -1;
  struct Span {  // of a node: its leaves, counted from left to right, and its inner nodes inside the unit
    std::size_t first_leaf, end_leaf;
    int size;
  };

  std::size_t child(std::int32_t number) const { return first_node_ + static_cast<std::size_t>(number); }

  // Nodes of the tree, parents first, and its leaves from left to right.
  void walk(std::size_t tree) {
    first_node_ = model_.first_node(tree);
    const std::size_t n_nodes = model_.nodes_of(tree);
    spans_.assign(n_nodes, {});
    order_.clear();
    leaves_.clear();
    std::vector<std::int32_t> stack{n_nodes == 0 ? ~0 : 0};
    while (!stack.empty()) {
      const std::int32_t at = stack.back();
      stack.pop_back();
      if (at < 0) {
        leaves_.push_back(~at);
        continue;
      }
      order_.push_back(at);
      spans_[static_cast<std::size_t>(at)].first_leaf = leaves_.size();
      stack.push_back(model_.right[child(at)]);
      stack.push_back(model_.left[child(at)]);
    }
    leaf_place_.resize(leaves_.size());
    for (std::size_t i = 0; i < leaves_.size(); ++i) leaf_place_[static_cast<std::size_t>(leaves_[i])] = i;
    for (std::size_t i = order_.size(); i-- > 0;) {
      Span& span = spans_[static_cast<std::size_t>(order_[i])];
      const std::int32_t right = model_.right[child(order_[i])];
      span.end_leaf = right < 0 ? leaf_place_[static_cast<std::size_t>(~right)] + 1
                                : spans_[static_cast<std::size_t>(right)].end_leaf;
    }
  }

  void add_unit(std::size_t tree, std::size_t first, std::size_t end) {
    first_ = first;
    end_ = end;
    for (std::size_t i = order_.size(); i-- > 0;) {
      Span& span = spans_[static_cast<std::size_t>(order_[i])];
      span.size =
          is_live(span) ? 1 + size_of(model_.left[child(order_[i])]) + size_of(model_.right[child(order_[i])]) : 0;
    }
    if (!trees.units.empty() && (end_slot_ - first_slot_ >= kGroupSlots || n_units_ >= kGroupUnits)) close_group();
    BitsliceUnit unit = {};
    unit.tree = static_cast<std::uint32_t>(tree);
    unit.n_indices = static_cast<std::uint16_t>(end - first + (end - first < leaves_.size() ? 1 : 0));
    unit.first_index = trees.leaf_of.size();
    unit.result = order_.empty() ? kConstant : add_nodes();
    for (std::size_t i = first; i < end; ++i) trees.leaf_of.push_back(leaves_[i]);
    if (unit.n_indices > end - first) trees.leaf_of.push_back(kOutside);
    trees.units.push_back(unit);
    ++n_units_;
  }

  bool is_live(const Span& span) const { return span.first_leaf < end_ && span.end_leaf > first_; }
  int size_of(std::int32_t at) const { return at < 0 ? 0 : spans_[static_cast<std::size_t>(at)].size; }
  bool is_inner(std::int32_t at) const { return at >= 0 && size_of(at) > 0; }

  // The index to which a leaf, or a subtree outside the unit, leads.
  std::uint8_t index_of(std::int32_t at) const {
    const std::size_t place = at < 0 ? leaf_place_[static_cast<std::size_t>(~at)] : end_;
    return static_cast<std::uint8_t>(place >= first_ && place < end_ ? place - first_ : end_ - first_);
  }

  // All nodes of the unit, children before parents. Returns where the root's result is.
  std::uint16_t add_nodes() {
    operands_.assign(spans_.size(), 0);
    if (has_lookup_) {
      add_uppers();
    } else {
      for (std::size_t i = order_.size(); i-- > 0;) {
        if (is_upper(order_[i])) operands_[static_cast<std::size_t>(order_[i])] = add_join(order_[i]);
      }
    }
    return operand(0);
  }

  void add_uppers() {
    upper_.assign(spans_.size(), {});
    for (std::size_t i = order_.size(); i-- > 0;) {
      if (is_upper(order_[i])) grow_upper(order_[i]);
    }
    std::vector<bool> is_root(spans_.size(), false);  // those that no cluster above has taken
    is_root[0] = is_upper(0);
    for (const std::int32_t at : order_) {
      if (!is_root[static_cast<std::size_t>(at)]) continue;
      for (const std::int32_t below : upper_[static_cast<std::size_t>(at)].below) {
        is_root[static_cast<std::size_t>(below)] = is_upper(below);
      }
    }
    for (std::size_t i = order_.size(); i-- > 0;) {
      const std::size_t at = static_cast<std::size_t>(order_[i]);
      if (is_root[at]) operands_[at] = at == 0 ? add_top() : add_upper(order_[i]);
    }
  }

  // Where the result of a child, or of the root, is. A cluster is made when it is first asked for, which is once.
  std::uint16_t operand(std::int32_t at) {
    if (!is_inner(at)) return static_cast<std::uint16_t>(kConstant | index_of(at));
    return is_upper(at) ? operands_[static_cast<std::size_t>(at)] : add_cluster(at);
  }

  std::uint16_t add_join(std::int32_t at) {
    const std::size_t node = child(at);
    Join join = {};
    join.column = column_of(node);
    join.cut = cut_of(node);
    join.left = operand(model_.left[node]);
    join.right = operand(model_.right[node]);
    join.slot = (join.left & kConstant) == 0 ? join.left : join.right;
    trees.joins.push_back(join);
    return join.slot;
  }

  // The upper cluster whose highest node so far is `at`: `at` and the clusters of its children, as far as that fits.
  void grow_upper(std::int32_t at) {
    const std::int32_t left = model_.left[child(at)], right = model_.right[child(at)];
    const bool left_first = nodes_of(left) >= nodes_of(right);
    const std::int32_t larger = left_first ? left : right, smaller = left_first ? right : left;
    Upper grown;
    for (const auto& [take_larger, take_smaller] :
         {std::pair{true, true}, {true, false}, {false, true}, {false, false}}) {
      grown = {{at}, {}};
      take_larger ? take(grown, larger) : leave(grown, larger);
      take_smaller ? take(grown, smaller) : leave(grown, smaller);
      if (fits(grown)) break;
    }
    upper_[static_cast<std::size_t>(at)] = grown;
  }

  struct Upper {
    std::vector<std::int32_t> nodes;  // parents first
    std::vector<std::int32_t> below;  // roots of clusters
  };
  // Whether a node and all below it are too much for a cluster. One of six nodes has two that no document meets both.
  bool is_upper(std::int32_t at) const {
    return is_inner(at) && (size_of(at) > cluster_nodes_ || (size_of(at) == kMaxClusterNodes && is_chain(at)));
  }
  bool has_inner_child(std::int32_t at) const {
    return is_inner(model_.left[child(at)]) || is_inner(model_.right[child(at)]);
  }
  bool is_chain(std::int32_t at) const {
    while (is_inner(at)) {
      const std::int32_t left = model_.left[child(at)], right = model_.right[child(at)];
      if (is_inner(left) && is_inner(right)) return false;
      at = is_inner(left) ? left : right;
    }
    return true;
  }
  std::size_t nodes_of(std::int32_t at) const {
    return is_upper(at) ? upper_[static_cast<std::size_t>(at)].nodes.size() : 0;
  }
  static bool fits(const Upper& upper) {
    return upper.nodes.size() <= UpperCluster::kNodes && upper.below.size() <= UpperCluster::kBelow;
  }
  void take(Upper& upper, std::int32_t at) const {
    if (!is_upper(at)) return leave(upper, at);
    const Upper& taken = upper_[static_cast<std::size_t>(at)];
    upper.nodes.insert(upper.nodes.end(), taken.nodes.begin(), taken.nodes.end());
    upper.below.insert(upper.below.end(), taken.below.begin(), taken.below.end());
  }
  void leave(Upper& upper, std::int32_t at) const {
    if (is_inner(at)) upper.below.push_back(at);
  }

  // The cluster of the tree's root: with one or two nodes, joins are less work.
  std::uint16_t add_top() {
    const std::vector<std::int32_t>& nodes = upper_[0].nodes;
    if (nodes.size() > 2) return add_upper(0);
    for (std::size_t i = nodes.size(); i-- > 0;) operands_[static_cast<std::size_t>(nodes[i])] = add_join(nodes[i]);
    return operands_[0];
  }

  std::uint16_t add_upper(std::int32_t root) {
    const Upper& upper = upper_[static_cast<std::size_t>(root)];
    UpperCluster cluster = {};
    for (std::size_t i = 0; i < upper.below.size(); ++i) cluster.below[i] = operand(upper.below[i]);
    for (std::size_t i = upper.below.size(); i < UpperCluster::kBelow; ++i) cluster.below[i] = cluster.below[0];
    cluster.slot = cluster.below[0];
    for (std::size_t e = 0; e < UpperCluster::kNodes; ++e) {  // nodes too few are filled up: the tables ignore them
      const std::size_t node = child(upper.nodes[e < upper.nodes.size() ? e : 0]);
      cluster.column[e] = column_of(node);
      cluster.cut[e] = cut_of(node);
    }
    for (unsigned decisions = 0; decisions < 16; ++decisions) {
      const std::int32_t at = descend(upper.nodes, decisions);
      const auto below = std::find(upper.below.begin(), upper.below.end(), at) - upper.below.begin();
      if (is_inner(at)) {
        cluster.child[decisions] = static_cast<std::uint8_t>(0x80 >> below);
      } else {
        cluster.index[decisions] = index_of(at);
      }
    }
    trees.upper.push_back(cluster);
    return cluster.slot;
  }

  // Where decisions, bit e for node e, lead from the first of some connected nodes.
  std::int32_t descend(const std::vector<std::int32_t>& nodes, unsigned decisions) const {
    for (std::int32_t at = nodes[0];;) {
      const auto e = std::find(nodes.begin(), nodes.end(), at) - nodes.begin();
      if (at < 0 || e == static_cast<std::ptrdiff_t>(nodes.size())) return at;
      at = (decisions >> e & 1u) != 0 ? model_.left[child(at)] : model_.right[child(at)];
    }
  }

  std::uint16_t add_cluster(std::int32_t root) {
    std::vector<std::int32_t> nodes{root};  // parents first
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const std::int32_t next : {model_.left[child(nodes[i])], model_.right[child(nodes[i])]}) {
        if (is_inner(next)) nodes.push_back(next);
      }
    }
    std::stable_partition(nodes.begin(), nodes.end(), [&](std::int32_t at) { return has_inner_child(at); });
    const std::uint16_t slot = static_cast<std::uint16_t>(end_slot_++);
    switch (nodes.size()) {
      case 1: {
        Cluster<1> cluster = {};
        cluster.column[0] = column_of(child(root));
        cluster.cut[0] = cut_of(child(root));
        cluster.slot = slot;
        cluster.index[0] = index_of(model_.left[child(root)]);
        cluster.index[1] = index_of(model_.right[child(root)]);
        trees.cluster1.push_back(cluster);
        break;
      }
      case 2:
        trees.cluster2.push_back(make_cluster<2>(nodes, slot));
        break;
      case 3:
        trees.cluster3.push_back(make_cluster<3>(nodes, slot));
        break;
      case 4:
        trees.cluster4.push_back(make_cluster<4>(nodes, slot));
        break;
      case 5:
        trees.cluster5.push_back(make_cluster<5>(nodes, slot));
        break;
      default:
        trees.cluster6.push_back(make_cluster<6>(nodes, slot));
    }
    return slot;
  }

  template <int E>
  Cluster<E> make_cluster(const std::vector<std::int32_t>& nodes, std::uint16_t slot) const {
    Cluster<E> cluster = {};
    cluster.slot = slot;
    for (std::size_t e = 0; e < E; ++e) {
      cluster.column[e] = column_of(child(nodes[e]));
      cluster.cut[e] = cut_of(child(nodes[e]));
    }
    for (unsigned decisions = 0; decisions < 1u << E; ++decisions) {
      cluster.index[decisions] = index_of(descend(nodes, decisions));
    }
    return cluster;
  }

  std::uint16_t column_of(std::size_t node) const { return static_cast<std::uint16_t>(codes_.column[node]); }
  // A document goes left when its code is below the cut; both are offset by -128.
  Cut cut_of(std::size_t node) const {
    const auto cut = static_cast<std::int8_t>(codes_.code[node] + 1 - 128);
    return {{cut, cut, cut, cut}};
  }

  void close_group() {
    if (n_units_ == 0) return;
    BitsliceGroup group = {};
    group.end[0] = static_cast<std::uint32_t>(trees.cluster1.size());
    group.end[1] = static_cast<std::uint32_t>(trees.cluster2.size());
    group.end[2] = static_cast<std::uint32_t>(trees.cluster3.size());
    group.end[3] = static_cast<std::uint32_t>(trees.cluster4.size());
    group.end[4] = static_cast<std::uint32_t>(trees.cluster5.size());
    group.end[5] = static_cast<std::uint32_t>(trees.cluster6.size());
    group.end[6] = static_cast<std::uint32_t>(trees.upper.size());
    group.end[7] = static_cast<std::uint32_t>(trees.joins.size());
    group.unit_end = static_cast<std::uint32_t>(trees.units.size());
    group.first_slot = first_slot_;
    group.end_slot = end_slot_;
    trees.groups.push_back(group);
    trees.max_slots = std::max<std::size_t>(trees.max_slots, end_slot_ - first_slot_);
    if (end_slot_ >= kMaxSlots) end_slot_ = 0;
    first_slot_ = end_slot_;
    n_units_ = 0;
  }

  const EnsembleView& model_;
  const NodeCodes& codes_;
  bool has_lookup_;
  int cluster_nodes_;
  std::uint32_t first_slot_ = 0, end_slot_ = 0;  // of the group
  std::size_t n_units_ = 0;

  // Of the tree at hand.
  std::size_t first_node_ = 0;
  std::vector<std::int32_t> order_, leaves_;
  std::vector<std::size_t> leaf_place_;
  std::vector<Span> spans_;
  std::vector<std::uint16_t> operands_;
  std::vector<Upper> upper_;
  std::size_t first_ = 0, end_ = 0;  // leaves of the unit
};

}  // namespace rankwood
