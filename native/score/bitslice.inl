// The two halves of engine bitslice: which leaf each document reaches, and the sum of the leaves' values.
//
// Included by isa/table.inl, once per instruction set. bitslice.hpp says how trees are cut up.
#include "score/bytes.inl"
#include "score/kernels.hpp"

namespace rankwood::RANKWOOD_ISA_NS::scoring {
namespace {

// -1 where a document goes left. (The comparison this way round lets the codes come straight from memory.)
inline Bytes goes_left(Bytes cut, const std::int8_t* codes) { return greater(cut, load(codes)); }

// Clusters of E nodes: the decisions, a bit each, make a number, and the number is looked up.
template <int E>
inline void run_clusters(const Cluster<E>* clusters, std::uint32_t n, const BitsliceBlock& block) {
  const std::size_t bytes = block.n_vectors * kWidth;
  for (std::uint32_t c = 0; c < n; ++c) {
    const Cluster<E>& cluster = clusters[c];
    const std::int8_t* codes[E];
    Bytes cut[E];
    for (int e = 0; e < E; ++e) {
      codes[e] = block.codes + cluster.column[e] * bytes;
      cut[e] = repeat(cluster.cut[e]);
    }
    const Bytes table = table16(cluster.index);
    std::uint8_t* out = block.slots + cluster.slot * bytes;
    for (std::size_t at = 0; at < bytes; at += kWidth) {
      Bytes decisions = goes_left(cut[0], codes[0] + at) & repeat(1);
      for (int e = 1; e < E; ++e) {
        decisions |= goes_left(cut[e], codes[e] + at) & repeat(static_cast<std::int8_t>(1 << e));
      }
      store(out + at, lookup16(table, decisions));
    }
  }
}

template <>
inline void run_clusters<1>(const Cluster<1>* clusters, std::uint32_t n, const BitsliceBlock& block) {
  const std::size_t bytes = block.n_vectors * kWidth;
  for (std::uint32_t c = 0; c < n; ++c) {
    const Cluster<1>& cluster = clusters[c];
    const std::int8_t* codes = block.codes + cluster.column[0] * bytes;
    const Bytes cut = repeat(cluster.cut[0]);
    const Bytes left = repeat(static_cast<std::int8_t>(cluster.index[0]));
    const Bytes right = repeat(static_cast<std::int8_t>(cluster.index[1]));
    std::uint8_t* out = block.slots + cluster.slot * bytes;
    for (std::size_t at = 0; at < bytes; at += kWidth) store(out + at, select(goes_left(cut, codes + at), left, right));
  }
}

inline void run_joins(const Join* joins, std::uint32_t n, const BitsliceBlock& block) {
  const std::size_t bytes = block.n_vectors * kWidth;
  // A constant is one vector long, and stays where it is while the other operand moves on.
  const auto operand = [&](std::uint16_t number) {
    return (number & kConstant) != 0 ? block.constants + (number & ~kConstant) * kWidth : block.slots + number * bytes;
  };
  const auto step = [](std::uint16_t number) { return (number & kConstant) != 0 ? std::size_t{0} : kWidth; };
  for (std::uint32_t j = 0; j < n; ++j) {
    const Join join = joins[j];
    const std::int8_t* codes = block.codes + join.column * bytes;
    const Bytes cut = repeat(join.cut);
    const std::uint8_t *left = operand(join.left), *right = operand(join.right);
    const std::size_t left_step = step(join.left), right_step = step(join.right);
    std::uint8_t* out = block.slots + join.slot * bytes;
    for (std::size_t at = 0; at < bytes; at += kWidth) {
      store(out + at, select(goes_left(cut, codes + at), load(left), load(right)));
      left += left_step;
      right += right_step;
    }
  }
}

void find_leaves(const TreeGroup& group, const BitsliceBlock& block) {
  run_clusters<1>(group.cluster1, group.n_cluster1, block);
  run_clusters<2>(group.cluster2, group.n_cluster2, block);
  run_clusters<3>(group.cluster3, group.n_cluster3, block);
  run_clusters<4>(group.cluster4, group.n_cluster4, block);
  run_joins(group.join, group.n_join, block);
}

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::scoring
