// The two halves of engine bitslice: which leaf each document reaches, and the sum of the leaves' values.
//
// Included by isa/table.inl, once per instruction set. bitslice.hpp says how trees are cut up.
#include "score/bytes.inl"
#include "score/kernels.hpp"
#include "score/unroll.hpp"

namespace rankwood::RANKWOOD_ISA_NS::scoring {
namespace {

// Which documents go left. (The comparison this way round lets the codes come straight from memory.)
inline Choice goes_left(Bytes cut, const std::int8_t* codes) { return chosen(cut, load(codes)); }

// Everything below is for blocks of V vectors, known to the compiler: the loops over them have no branch left.

// The decisions of some nodes, a bit each, as a number.
template <int E>
inline Bytes decide(const Bytes* cut, const std::int8_t* const* codes, std::size_t at) {
  Bytes decisions = number_where(goes_left(cut[0], codes[0] + at), 1);
  for (int e = 1; e < E; ++e) {
    decisions = add_where(goes_left(cut[e], codes[e] + at), decisions, static_cast<std::int8_t>(1 << e));
  }
  return decisions;
}

// Clusters of E nodes. Where a table has only 16 places four decisions are looked up, a fifth and a sixth choose the
// table.
template <std::size_t V, int E>
inline void run_clusters(const Cluster<E>* clusters, std::uint32_t n, const BitsliceBlock& block) {
  constexpr std::size_t bytes = V * kWidth;
  constexpr int looked_up = E < kTableBits ? E : kTableBits, n_tables = 1 << (E - looked_up);
  for (std::uint32_t c = 0; c < n; ++c) {
    const Cluster<E>& cluster = clusters[c];
    const std::int8_t* codes[E];
    Bytes cut[E], table[n_tables];
    for (int e = 0; e < E; ++e) {
      codes[e] = block.codes + cluster.column[e] * bytes;
      cut[e] = repeat_four(cluster.cut[e].byte);
    }
    if constexpr (looked_up == 6) {
      table[0] = load(cluster.index);
    } else if constexpr (looked_up == 5) {
      table[0] = table32(cluster.index);
    } else {
      for (int t = 0; t < n_tables; ++t) table[t] = table16(cluster.index + 16 * t);
    }
    std::uint8_t* out = block.slots + cluster.slot * bytes;
    RANKWOOD_UNROLL for (std::size_t at = 0; at < bytes; at += kWidth) {
      const Bytes decisions = decide<looked_up>(cut, codes, at);
      Bytes found;
      if constexpr (looked_up > 4) {
        found = lookup64(table[0], decisions);
      } else {
        found = lookup16(table[0], decisions);
      }
      if constexpr (E - looked_up >= 1) {
        const Choice fifth = goes_left(cut[4], codes[4] + at);
        found = select(fifth, lookup16(table[1], decisions), found);
        if constexpr (E - looked_up == 2) {
          const Choice sixth = goes_left(cut[5], codes[5] + at);
          const Bytes other = select(fifth, lookup16(table[3], decisions), lookup16(table[2], decisions));
          found = select(sixth, other, found);
        }
      }
      store(out + at, found);
    }
  }
}

template <std::size_t V>
inline void run_upper(const UpperCluster* clusters, std::uint32_t n, const BitsliceBlock& block) {
  constexpr std::size_t bytes = V * kWidth;
  constexpr int E = UpperCluster::kNodes, C = UpperCluster::kBelow;
  for (std::uint32_t c = 0; c < n; ++c) {
    const UpperCluster& cluster = clusters[c];
    const std::int8_t* codes[E];
    Bytes cut[E];
    for (int e = 0; e < E; ++e) {
      codes[e] = block.codes + cluster.column[e] * bytes;
      cut[e] = repeat_four(cluster.cut[e].byte);
    }
    const Bytes index = table16(cluster.index), child = table16(cluster.child);
    const std::uint8_t* below[C];
    for (int i = 0; i < C; ++i) below[i] = block.slots + cluster.below[i] * bytes;
    std::uint8_t* out = block.slots + cluster.slot * bytes;
    RANKWOOD_UNROLL for (std::size_t at = 0; at < bytes; at += kWidth) {
      const Bytes decisions = decide<E>(cut, codes, at);
      Bytes which = lookup16(child, decisions);
      Bytes found = lookup16(index, decisions);
      for (int i = 0; i < C; ++i) {
        if (i > 0) which = twice(which);  // the next bit becomes the sign
        found = select_by_sign(which, load(below[i] + at), found);
      }
      store(out + at, found);
    }
  }
}

template <std::size_t V>
inline void run_single_nodes(const Cluster<1>* clusters, std::uint32_t n, const BitsliceBlock& block) {
  constexpr std::size_t bytes = V * kWidth;
  for (std::uint32_t c = 0; c < n; ++c) {
    const Cluster<1>& cluster = clusters[c];
    const std::int8_t* codes = block.codes + cluster.column[0] * bytes;
    const Bytes cut = repeat_four(cluster.cut[0].byte);
    const Bytes left = repeat(static_cast<std::int8_t>(cluster.index[0]));
    const Bytes right = repeat(static_cast<std::int8_t>(cluster.index[1]));
    std::uint8_t* out = block.slots + cluster.slot * bytes;
    RANKWOOD_UNROLL for (std::size_t at = 0; at < bytes; at += kWidth) {
      store(out + at, select(goes_left(cut, codes + at), left, right));
    }
  }
}

template <std::size_t V>
inline void run_joins(const Join* joins, std::uint32_t n, const BitsliceBlock& block) {
  constexpr std::size_t bytes = V * kWidth;
  // A constant is one vector long, and stays where it is while the other operand moves on. Which kind an operand is
  // cannot be predicted, so the address is computed, not chosen by a branch.
  const std::uintptr_t slots = reinterpret_cast<std::uintptr_t>(block.slots);
  const std::uintptr_t from_slots = reinterpret_cast<std::uintptr_t>(block.constants) - slots;
  const auto operand = [&](std::uint16_t number) {
    const std::uintptr_t is_constant = number >> 15, place = number & ~kConstant;
    const std::uintptr_t address = slots + place * bytes + is_constant * (from_slots - place * (bytes - kWidth));
    return reinterpret_cast<const std::uint8_t*>(address);
  };
  const auto step = [](std::uint16_t number) { return kWidth - (number >> 15) * kWidth; };
  for (std::uint32_t j = 0; j < n; ++j) {
    const Join join = joins[j];
    const std::int8_t* codes = block.codes + join.column * bytes;
    const Bytes cut = repeat_four(join.cut.byte);
    const std::uint8_t *left = operand(join.left), *right = operand(join.right);
    const std::size_t left_step = step(join.left), right_step = step(join.right);
    std::uint8_t* out = block.slots + join.slot * bytes;
    RANKWOOD_UNROLL for (std::size_t at = 0; at < bytes; at += kWidth) {
      store(out + at, select(goes_left(cut, codes + at), load(left), load(right)));
      left += left_step;
      right += right_step;
    }
  }
}

template <std::size_t V>
void find_leaves_of(const TreeGroup& group, const BitsliceBlock& block) {
  run_single_nodes<V>(group.cluster1, group.n_cluster1, block);
  run_clusters<V, 2>(group.cluster2, group.n_cluster2, block);
  run_clusters<V, 3>(group.cluster3, group.n_cluster3, block);
  run_clusters<V, 4>(group.cluster4, group.n_cluster4, block);
  run_clusters<V, 5>(group.cluster5, group.n_cluster5, block);
  run_clusters<V, 6>(group.cluster6, group.n_cluster6, block);
  run_upper<V>(group.upper, group.n_upper, block);
  run_joins<V>(group.join, group.n_join, block);
}

void find_leaves(const TreeGroup& group, const BitsliceBlock& block) {
  switch (block.n_vectors) {
    case 1:
      return find_leaves_of<1>(group, block);
    case 2:
      return find_leaves_of<2>(group, block);
    case 3:
      return find_leaves_of<3>(group, block);
    case 4:
      return find_leaves_of<4>(group, block);
    case 5:
      return find_leaves_of<5>(group, block);
    case 6:
      return find_leaves_of<6>(group, block);
    case 7:
      return find_leaves_of<7>(group, block);
    default:
      return find_leaves_of<8>(group, block);
  }
}

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::scoring
