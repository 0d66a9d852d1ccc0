// What the scoring engines ask of an instruction set: records that both sides know, and the table's entries.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankwood {

// Where one column of codes comes from: a feature, and the sorted thresholds to count. The thresholds are padded with
// +infinity to a multiple of 16, by at least one; a higher level holds the last of each 16 of the level below. So a
// search looks at 16 numbers per level.
template <class T>
struct SearchTable {
  static constexpr int kMaxLevels = 5;  // 16^5 thresholds
  std::int32_t feature;
  std::int32_t nan_code;  // code of a missing value
  std::int32_t n_levels;
  const T* level[kMaxLevels];  // the highest first: 16 numbers
};

// The thresholds of a column rounded down to float32, for a search of many values at once (search.inl). Step s of such
// a search has 2^s numbers, from step_offset(s) on: where the bits 0 to s - 1 of a path say which of the 2^s ranges a
// value is in, bit 0 as the first decision, steps[step_offset(s) + path] is the threshold in the range's middle.
struct StepTable {
  static constexpr int kMaxSteps = 8;
  std::int32_t n_thresholds;
  std::int32_t n_steps;  // 2^n_steps is above n_thresholds
  bool rounded;          // whether a threshold is not a float32 number
  const float* singles;  // sorted
  const float* steps;    // null when n_steps > kMaxSteps
};

// The numbers of a step fill whole registers.
constexpr std::size_t step_offset(int step) {
  std::size_t at = 0;
  for (int s = 0; s < step; ++s) at += s < 4 ? 16 : std::size_t{1} << s;
  return at;
}

// Codes of some rows: code = number of the column's thresholds below the value.
template <class T>
struct QuantiseTask {
  const SearchTable<T>* columns;
  const StepTable* steps;  // of the same columns
  std::size_t n_columns;
  const T* rows;
  std::ptrdiff_t row_stride, feature_stride;  // in elements
  std::size_t n_rows, n_features;
  const T *ahead, *ahead_end;                       // what is read next, to be fetched meanwhile
  std::size_t code_column_stride, code_row_stride;  // in codes
  std::size_t code_room;  // codes of a column that lie side by side from the first row on; what they are behind the
                          // last row does not matter
};

// bitslice_trees.hpp says what these mean.
constexpr int kMaxClusterNodes = 6;
constexpr std::size_t kMaxIndices = 256;
constexpr std::uint16_t kConstant = 0x8000;

// A code with which those of documents are compared, four times: so many bytes are quickly put in every place.
struct Cut {
  std::int8_t byte[4];
};

// A subtree of E nodes. Bit e of a number d says whether a document goes left at node e; index[d] is its leaf.
template <int E>
struct Cluster {
  std::uint16_t column[E];
  Cut cut[E];
  std::uint16_t slot;  // where the result goes
  std::uint8_t index[E == 1 ? 2 : E <= 4 ? 16 : 1 << E];
};

// Connected nodes above clusters, with what lies below: leaves, and up to four results that exist already.
// index[d] is the leaf reached; where child[d] has bit 7, 6, 5 or 4, it is the result in below[0], [1], [2] or [3].
struct UpperCluster {
  static constexpr int kNodes = 4, kBelow = 4;
  std::uint16_t column[kNodes];
  Cut cut[kNodes];
  std::uint16_t below[kBelow];
  std::uint16_t slot;
  std::uint8_t index[16], child[16];
};

// One node above clusters, where there is no look-up or little to look up. An operand is a slot, or with kConstant set
// an index itself.
struct Join {
  std::uint16_t column;
  Cut cut;
  std::uint16_t left, right, slot;
};

// Trees that are worked on together. Clusters come first, in any order, then the others, in theirs.
struct TreeGroup {
  const Cluster<1>* cluster1;
  const Cluster<2>* cluster2;
  const Cluster<3>* cluster3;
  const Cluster<4>* cluster4;
  const Cluster<5>* cluster5;
  const Cluster<6>* cluster6;
  const UpperCluster* upper;
  const Join* join;
  std::uint32_t n_cluster1, n_cluster2, n_cluster3, n_cluster4, n_cluster5, n_cluster6, n_upper, n_join;
};

// Two clusters side by side, for a few documents: bitslice_pairs.hpp. What has two places in front is [cluster][...].
constexpr std::size_t kFewRows = 16;
template <int E>
struct NodePairs {
  std::uint16_t codes[E][2];  // where those of a node's column start
  std::int8_t cut[E <= 4 ? 4 : 8][2];
};
template <int E>
struct ClusterPair {
  static constexpr int kTables = E <= 4 ? 1 : E - 3;
  NodePairs<E> nodes;
  std::uint16_t slot[2];               // where results start
  std::uint8_t index[kTables][2][16];  // by the first four decisions; what the fifth and the sixth change, if left
};
struct UpperPair {
  NodePairs<UpperCluster::kNodes> nodes;
  std::uint16_t below[UpperCluster::kBelow][2], slot[2];
  std::uint8_t index[2][16], child[2][16];
};
struct PairGroup {
  const ClusterPair<1>* pair1;
  const ClusterPair<2>* pair2;
  const ClusterPair<3>* pair3;
  const ClusterPair<4>* pair4;
  const ClusterPair<5>* pair5;
  const ClusterPair<6>* pair6;
  const UpperPair* upper;
  const Join* join;
  std::uint32_t n_pair1, n_pair2, n_pair3, n_pair4, n_pair5, n_pair6, n_upper, n_join;
};

struct BitsliceBlock {
  const std::int8_t* codes;       // [column][vector][lane], offset by -128
  std::size_t n_vectors;          // of kernel.vector_bytes documents each
  std::uint8_t* slots;            // [slot][vector][lane]
  const std::uint8_t* constants;  // [index][lane]
};

// Nodes of one or several trees side by side: hop_trees.hpp says what they mean.
constexpr std::uint8_t kHopNode = 0x80;
struct HopPack {
  static constexpr std::size_t kNodes = 64, kMaxTrees = 16, kMaxColumns = 256;
  alignas(64) std::uint8_t column[kNodes];
  std::uint8_t code[kNodes], left[kNodes], right[kNodes];  // right when the document's code is above
};
struct HopTask {
  const HopPack* packs;
  const std::uint8_t* n_trees;  // of each pack
  std::size_t n_packs, n_columns;
  int n_rounds;
};

// Codes of up to 64 documents side by side, some of which stay: to[i] = from[index[i]] for i < count, in every column.
// As many bytes as are read may be written, whatever the count.
struct CodeMove {
  const std::int8_t* from;
  std::size_t from_stride;  // between columns, in bytes
  std::int8_t* to;
  std::size_t to_stride;
  std::size_t count;
  std::uint8_t index[64];
};

struct ScoringKernels {
  std::size_t vector_bytes;  // documents side by side
  bool has_lookup;           // whether clusters may have more than one node, and there are upper clusters

  // quantise.inl; signed codes are offset by -128
  void (*quantise_f32_i8)(const QuantiseTask<float>& task, std::int8_t* codes);
  void (*quantise_f64_i8)(const QuantiseTask<double>& task, std::int8_t* codes);
  void (*quantise_f32_u8)(const QuantiseTask<float>& task, std::uint8_t* codes);
  void (*quantise_f64_u8)(const QuantiseTask<double>& task, std::uint8_t* codes);
  void (*quantise_f32_u16)(const QuantiseTask<float>& task, std::uint16_t* codes);
  void (*quantise_f64_u16)(const QuantiseTask<double>& task, std::uint16_t* codes);

  // hops.inl; null where there is no such. OUT leaf: one per tree, and room for 15 more.
  void (*hop)(const HopTask& task, const std::uint8_t* codes, std::uint8_t* leaf);

  // bitslice.inl
  void (*find_leaves)(const TreeGroup& group, const BitsliceBlock& block);
  // pairs.inl; null where there is no such. Codes [column][16 documents], slots [slot][16].
  void (*find_few)(const PairGroup& group, const std::int8_t* codes, std::uint8_t* slots);
  // leaf_values.inl: sums += value of each document's index. Planes are padded to 16, 32, 64, 128 or 256 indices.
  void (*add_f32)(const std::uint8_t* indices, std::size_t n_vectors, const float* values, const std::uint8_t* planes,
                  std::size_t padded, float* sums);
  void (*add_f64)(const std::uint8_t* indices, std::size_t n_vectors, const double* values, const std::uint8_t* planes,
                  std::size_t padded, double* sums);
  const std::uint8_t* order_f32;  // sums[i] of a vector belong to its document order[i]
  const std::uint8_t* order_f64;
  // move_codes.inl: the moves of a column in the order given, then those of the next column
  std::size_t move_width;  // documents that a move reads
  void (*move_codes)(const CodeMove* moves, std::size_t n_moves, std::size_t n_columns);
};

// The table of the instruction set in use (isa/choice.hpp).
const ScoringKernels& scoring_kernels();

}  // namespace rankwood
