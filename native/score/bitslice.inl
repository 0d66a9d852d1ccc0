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

// The decisions of some nodes, a bit each, as a number: bit e for node e.
template <int E>
inline Bytes decide(const Bytes* cut, const std::int8_t* const* codes, std::size_t at) {
#if defined(__AVX2__) && !defined(__AVX512BW__)
  // The mean of a number and a mask of all or no bits is the number one bit lower, with the mask as its highest bit.
  const auto goes = [&](int e) { return reinterpret_cast<__m256i>(goes_left(cut[e], codes[e] + at)); };
  __m256i decisions = _mm256_and_si256(goes(0), _mm256_set1_epi8(-128));
  for (int e = 1; e < E; ++e) decisions = _mm256_avg_epu8(decisions, goes(e));
  return reinterpret_cast<Bytes>(_mm256_srli_epi16(decisions, 8 - E));  // the lower bits are 0, those of neighbours too
#else
  Bytes decisions = number_where(goes_left(cut[0], codes[0] + at), 1);
  for (int e = 1; e < E; ++e) {
    decisions = add_where(goes_left(cut[e], codes[e] + at), decisions, static_cast<std::int8_t>(1 << e));
  }
  return decisions;
#endif
}

// Clusters of E nodes. Where a table has only 16 places four decisions are looked up, in a table for documents that go
// right at the fifth and the sixth node, and in one for each of the two with what changes where a document goes left.
// (No document meets both.)
template <std::size_t V, int E>
inline void run_clusters(const Cluster<E>* clusters, std::uint32_t n, const BitsliceBlock& block) {
  constexpr std::size_t bytes = V * kWidth;
  constexpr int looked_up = E < kTableBits ? E : kTableBits, more = E - looked_up;
  for (std::uint32_t c = 0; c < n; ++c) {
    const Cluster<E>& cluster = clusters[c];
    const std::int8_t* codes[E];
    Bytes cut[E], table, change[more + 1];
    for (int e = 0; e < E; ++e) {
      codes[e] = block.codes + cluster.column[e] * bytes;
      cut[e] = repeat_four(cluster.cut[e].byte);
    }
    if constexpr (looked_up == 6) {
      table = load(cluster.index);
    } else if constexpr (looked_up == 5) {
      table = table32(cluster.index);
    } else {
      table = table16(cluster.index);
      for (int i = 0; i < more; ++i) change[i] = table ^ table16(cluster.index + (16 << i));
    }
    std::uint8_t* out = block.slots + cluster.slot * bytes;
    RANKWOOD_UNROLL for (std::size_t at = 0; at < bytes; at += kWidth) {
      const Bytes decisions = decide<looked_up>(cut, codes, at);
      if constexpr (looked_up > 4) {
        store(out + at, lookup64(table, decisions));
      } else {
        Bytes found = lookup16(table, decisions);
        for (int i = 0; i < more; ++i) {
          found ^= lookup16(change[i], decisions) & number_where(goes_left(cut[4 + i], codes[4 + i] + at), -1);
        }
        store(out + at, found);
      }
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
    const Bytes index = table16(cluster.index);
    Bytes mask[C], which = table16(cluster.child);
    for (int i = 0; i < C; ++i, which = twice(which)) mask[i] = greater(Bytes{}, which);  // the next bit is the sign
    const std::uint8_t* below[C];
    for (int i = 0; i < C; ++i) below[i] = block.slots + cluster.below[i] * bytes;
    std::uint8_t* out = block.slots + cluster.slot * bytes;
    RANKWOOD_UNROLL for (std::size_t at = 0; at < bytes; at += kWidth) {
      const Bytes decisions = decide<E>(cut, codes, at);
      Bytes found = lookup16(index, decisions);
      for (int i = 0; i < C; ++i) found |= lookup16(mask[i], decisions) & load(below[i] + at);
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
