// Clusters two by two, for batches of a few documents (pairs.inl).
//
// Where a register holds twice as many documents as there are, one half of it works on one cluster and the other half
// on another of as many nodes: half the instructions. The trees of a run of groups (BitsliceGroup) are taken together.
// Upper clusters go by height: two that stand equally high above the clusters do not ask for each other's result. One
// that is left over is its own partner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "score/bitslice_trees.hpp"
#include "score/kernels.hpp"

namespace rankwood {

class BitslicePairs {
 public:
  static constexpr std::size_t kMaxColumns = 65536 / kFewRows;

  explicit BitslicePairs(const BitsliceTrees& trees) {
    BitsliceGroup start = {};
    for (std::size_t g = 0; g < trees.groups.size(); ++g) {
      const BitsliceGroup& group = trees.groups[g];
      if (g + 1 < trees.groups.size() && trees.groups[g + 1].first_slot != 0) continue;
      add<1>(trees.cluster1, start, group);
      add<2>(trees.cluster2, start, group);
      add<3>(trees.cluster3, start, group);
      add<4>(trees.cluster4, start, group);
      add<5>(trees.cluster5, start, group);
      add<6>(trees.cluster6, start, group);
      add_upper(trees.upper, start, group);
      max_slots_ = std::max<std::size_t>(max_slots_, group.end_slot);
      runs_.push_back({{size<1>(), size<2>(), size<3>(), size<4>(), size<5>(), size<6>(), size_of(upper_)}, g + 1});
      start = group;
    }
  }

  std::size_t max_slots() const { return max_slots_; }
  std::size_t n_bytes() const {
    return std::apply([](const auto&... pairs) { return (... + (pairs.size() * sizeof pairs[0])); }, pairs_) +
           upper_.size() * sizeof upper_[0] + runs_.size() * sizeof runs_[0];
  }

  // The run that starts with a group, and the group after its last one.
  std::size_t run_of(std::size_t group) const {
    const auto is_before = [](const Run& run, std::size_t g) { return run.group_end <= g; };
    return static_cast<std::size_t>(std::lower_bound(runs_.begin(), runs_.end(), group, is_before) - runs_.begin());
  }
  std::size_t group_end(std::size_t run) const { return runs_[run].group_end; }

  PairGroup operator[](std::size_t run) const {
    const Run start = run == 0 ? Run{} : runs_[run - 1];
    const auto n = [&](std::size_t kind) { return runs_[run].end[kind] - start.end[kind]; };
    return {std::get<0>(pairs_).data() + start.end[0],
            std::get<1>(pairs_).data() + start.end[1],
            std::get<2>(pairs_).data() + start.end[2],
            std::get<3>(pairs_).data() + start.end[3],
            std::get<4>(pairs_).data() + start.end[4],
            std::get<5>(pairs_).data() + start.end[5],
            upper_.data() + start.end[6],
            nullptr,
            n(0),
            n(1),
            n(2),
            n(3),
            n(4),
            n(5),
            n(6),
            0};
  }

 private:
  struct Run {
    std::uint32_t end[7];  // of pairs of clusters of 1 to 6 nodes, and of upper ones
    std::size_t group_end;
  };

  template <class Vector>
  static std::uint32_t size_of(const Vector& vector) {
    return static_cast<std::uint32_t>(vector.size());
  }
  template <int E>
  std::uint32_t size() const {
    return size_of(std::get<E - 1>(pairs_));
  }
  static std::uint16_t place(std::uint16_t number) { return static_cast<std::uint16_t>(number * kFewRows); }

  template <int E, class AnyCluster>
  static void set_nodes(NodePairs<E>& nodes, int which, const AnyCluster& cluster) {
    for (int e = 0; e < E; ++e) {
      nodes.codes[e][which] = place(cluster.column[e]);
      nodes.cut[e][which] = cluster.cut[e].byte[0];
    }
  }

  template <int E>
  void add(const std::vector<Cluster<E>>& clusters, const BitsliceGroup& start, const BitsliceGroup& end) {
    for (std::uint32_t c = start.end[E - 1]; c < end.end[E - 1]; c += 2) {
      ClusterPair<E> pair = {};
      for (int which = 0; which < 2; ++which) {
        const Cluster<E>& cluster = clusters[std::min(c + static_cast<std::uint32_t>(which), end.end[E - 1] - 1)];
        set_nodes(pair.nodes, which, cluster);
        pair.slot[which] = place(cluster.slot);
        for (int d = 0; d < 16; ++d) {
          if constexpr (E == 1) {
            pair.index[0][which][d] = cluster.index[1 - d % 2];
          } else {
            pair.index[0][which][d] = cluster.index[d];
            for (int t = 1; t < pair.kTables; ++t) {
              pair.index[t][which][d] = cluster.index[d] ^ cluster.index[(8 << t) + d];
            }
          }
        }
      }
      std::get<E - 1>(pairs_).push_back(pair);
    }
  }

  void add_upper(const std::vector<UpperCluster>& clusters, const BitsliceGroup& start, const BitsliceGroup& end) {
    height_.assign(end.end_slot, 0);
    levels_.clear();
    for (std::uint32_t c = start.end[6]; c < end.end[6]; ++c) {
      std::size_t height = 0;
      for (const std::uint16_t below : clusters[c].below) height = std::max(height, height_[below]);
      height_[clusters[c].slot] = height + 1;
      if (levels_.size() <= height) levels_.resize(height + 1);
      levels_[height].push_back(&clusters[c]);
    }
    for (const auto& level : levels_) {
      for (std::size_t i = 0; i < level.size(); i += 2) add_upper(*level[i], *level[std::min(i + 1, level.size() - 1)]);
    }
  }

  void add_upper(const UpperCluster& first, const UpperCluster& second) {
    UpperPair pair = {};
    for (int which = 0; which < 2; ++which) {
      const UpperCluster& cluster = which == 0 ? first : second;
      set_nodes(pair.nodes, which, cluster);
      for (int b = 0; b < UpperCluster::kBelow; ++b) pair.below[b][which] = place(cluster.below[b]);
      pair.slot[which] = place(cluster.slot);
      std::copy_n(cluster.index, 16, pair.index[which]);
      std::copy_n(cluster.child, 16, pair.child[which]);
    }
    upper_.push_back(pair);
  }

  std::tuple<std::vector<ClusterPair<1>>, std::vector<ClusterPair<2>>, std::vector<ClusterPair<3>>,
             std::vector<ClusterPair<4>>, std::vector<ClusterPair<5>>, std::vector<ClusterPair<6>>>
      pairs_;
  std::vector<UpperPair> upper_;
  std::vector<Run> runs_;
  std::size_t max_slots_ = 0;
  std::vector<std::size_t> height_;                       // by slot: of the result that is there, while pairs are made
  std::vector<std::vector<const UpperCluster*>> levels_;  // by height
};

}  // namespace rankwood
