// The kernels that exist once per instruction set, as a table of function pointers.
//
// Each kernel is written once, in a header that isa/baseline.cpp, isa/avx2.cpp and their like include inside
// their own namespace (RANKWOOD_ISA_NS). A kernel never names its target. Such headers use no standard templates
// with linkage (std::sort, std::vector): the linker would keep one copy for all instruction sets, possibly one that
// the CPU at hand cannot run. tools/check_isa_symbols.py looks for such copies. Kernels of scoring have tables of their
// own (isa/scoring, score/kernels.hpp), as librankwood has these alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankwood {

constexpr int kGroup = 16;  // features whose bins lie side by side in memory
constexpr int kBins = 256;  // entries of a histogram
constexpr int kOctet = 8;   // features of a group whose splits are searched side by side

// The best split of one feature of one node.
struct FeatureSplit {
  double gain;          // improvement over not splitting; -infinity when there is no valid split
  std::int32_t bin;     // values in bins <= bin go left
  bool missing_left;    // where a missing value goes
  double left_hessian;  // sum over those that go left, in units
};

struct SplitRules {
  double gradient_unit, hessian_unit;  // value of one step of the fixed-point sums: powers of two
  double l2;
  double min_hessian;      // smallest hessian sum of a child
  std::uint32_t min_docs;  // smallest number of documents of a child; checked where counts are given
};

// The histograms of an octet of features. Bin b of feature k is at [b * kGroup + k]: those of a group lie side by side.
struct OctetSums {
  const std::int64_t* packed;        // null: the sums are in doubles
  const double *gradient, *hessian;  // whole numbers
};
// Its features: bins for values, after which comes that of missing values where there may be some; 0 where a group has
// fewer features.
struct Octet {
  std::int64_t n_values[kOctet];
  bool has_missing[kOctet];
  std::size_t n_bins;  // the most that a feature has, that of missing values among them
  bool may_miss;       // whether some feature has missing values
};

// What the leaf values below a node are kept between, and how they must change from the left side of a split to the
// right one: 1 not fall, -1 not rise, 0 as they like.
struct ValueBounds {
  double lower, upper;
  double direction;
};

// Sums over the documents of a node, in units: whole numbers.
struct NodeSums {
  std::int64_t gradient = 0, hessian = 0;
  std::int64_t magnitude = 0;  // of gradients: the sum of what they are without their signs
};

// Which documents go left at a split.
struct Side {
  std::int32_t bin;      // those in bins <= bin,
  std::int32_t missing;  // but for this bin (-1: none),
  bool missing_left;     // which goes where this says
};
constexpr std::size_t kPartitionRoom = 16;

// Scores and documents side by side while they are sorted; room for a query, rounded up to a multiple of 16.
template <class Score>
struct RankBuffer {
  Score* score;
  std::uint32_t* doc;
};

struct SvmlightChunk;

// How a kernel that may take long, because one query can have any number of documents, learns that it is to give up.
struct Stop {
  bool (*asked)(void* context);
  void* context;
};
constexpr std::size_t kLookAfter = std::size_t{1} << 20;  // pairs of documents: about a millisecond

constexpr int kLanes = 8;  // documents of a query whose pairs are counted side by side

// What a pair of documents weighs (lambdas.inl).
enum class PairKind : std::uint8_t { discounts, swap, equal };

// One query, its documents in ranked order. Arrays of floats have room up to a multiple of kLanes and are aligned.
struct RankedQuery {
  std::size_t n;               // documents
  std::size_t n_top;           // pairs (i, j), j > i, are counted for ranks i < n_top; at most n - 1
  const double* ranked_score;  // descending, differences finite
  double sigma;
  PairKind kind;
  float* gain;                  // as PairGains has it (swap_weights.hpp)
  const float* discount;        // by rank; `lower` of SwapWeights for the kind swap
  const float *upper, *factor;  // by rank, for the kind swap
  float distance_offset;        // pairs are divided by this + sigma * the difference of scores; 0: they are not divided
  float *score, *score_rest, *exponential, *lambda_lost, *weight_won;  // scratch
  double *lambda, *weight;  // OUT, n entries; without the factors sigma and sigma^2
  Stop stop;
};

// A long query in parts (lambdas.hpp): ranks i in [first, last) with documents j, which come in chunks.
constexpr std::size_t kPairRows = 32;     // ranks i that share exponentials: as many as single precision may add up
constexpr std::size_t kPairChunk = 1024;  // documents j at a time: their arrays stay in the first-level cache
struct PairRows {
  std::size_t first, last;
  std::size_t start;  // documents j begin with the block of `first`; chunks are counted from there
  std::size_t ready;  // documents before it, those of the rows, have their exponentials
};
struct PairSums {
  double lambda, weight;  // of one rank i in one chunk
  double size;            // sum of |lambda|, if pairs are divided or equal
};

constexpr std::size_t kLineLanes = 8;  // arrays with one entry per weight have room for a multiple of it

// One query while the weight of one tree moves by each of several deltas (line_dcg.inl). Documents nearly by decreasing
// score: a head of the query that holds all that can ever be among the first n_top.
struct MovingQuery {
  std::size_t n;               // documents
  std::size_t n_top;           // those that count at a time; at most n
  double *score, *slope;       // of each document; used up
  std::uint32_t* doc;          // number in the query; used up
  double* gain;                // used up
  const double* delta;         // one per lane
  std::size_t n_lanes;         // deltas
  double least, most;          // of the deltas
  const double* discount;      // n_top entries
  double *low, *high, *reach;  // scratch: n entries
  double* at;                  // scratch: n * kLineRoom entries
  std::int64_t* rank;          // scratch: n * kLineRoom entries
  double* dcg;                 // OUT, one per lane
  Stop stop;
};
constexpr std::size_t kLineRoom = 40;  // weights worked on at a time, at most

// Trees whose scores are explained (explain/): documents stand side by side, and features count among those used.
constexpr std::size_t kExplainedRows = 8;
constexpr std::size_t kCoverPoints = 4;     // points of a walk through a tree, at most
constexpr std::size_t kCoverConstants = 5;  // per edge and point

struct ExplainedNode {
  double threshold;
  const double* further;  // thresholds of a set
  std::size_t n_further;
  std::int32_t feature;
  std::int32_t missing_left;  // -1 or 0
};

struct ExplainedEdge {
  std::int32_t node, is_left;  // whose split it belongs to, and which side
  std::int32_t above;          // the edge that leads to the node; -1: it is the root
  std::int32_t before;         // the nearest edge above that has the same feature; -1: there is none
  std::int32_t feature;
  std::int32_t place;       // of the feature among those of the path, in the order of the path
  std::int32_t depth;       // 1 below the root
  std::int32_t leaf;        // -1: it leads to an inner node
  std::int32_t n_closed;    // of a leaf: edges of its path, from below, that end with it
  std::int32_t n_distinct;  // of a leaf: features of its path
  double value;             // of a leaf
};

// One tree, weighed by cover (by_cover.inl). Constants are, for every edge and point t: the factor of its feature where
// a document meets the conditions, meets them down to the edge before, meets none (over that of the edge before, if
// there is one); and, times the weight of the point, (o - z) over the factor where it meets them and where not.
struct CoverTree {
  const ExplainedEdge* edges;
  std::size_t n_edges;
  const ExplainedNode* nodes;
  std::size_t n_nodes;
  const double* constants;
  std::size_t n_points;
};
struct CoverScratch {
  std::int64_t *left, *met;  // kExplainedRows per node, per edge
  double *products, *sums;   // kCoverPoints * kExplainedRows per level, the root's included
  std::int32_t* open;        // one per level
};

// One leaf of a tree, and the background (by_background.inl).
struct BackgroundPath {
  const std::uint64_t* patterns;  // n_patterns * n_words: which conditions of the path are met, one bit per feature
  const double* counts;           // documents of each pattern
  std::size_t n_patterns, n_words, n_features;
  const double* weights;  // [p * stride + n] is (p - 1)! n! / (p + n)!
  std::size_t stride;
};

struct Kernels {
  // topk.inl: sort at least the first k of n documents, best first, ties in document order. Returns the one of the
  // two buffers that holds them, or null when a score is NaN.
  const RankBuffer<double>* (*top_f64)(const double* scores, std::size_t n, std::size_t k, const RankBuffer<double>& a,
                                       const RankBuffer<double>& b);
  const RankBuffer<float>* (*top_f32)(const float* scores, std::size_t n, std::size_t k, const RankBuffer<float>& a,
                                      const RankBuffer<float>& b);
  // grades.inl: counts[g] = number of labels equal to g, for g in [0, 8); false when a label is anything else.
  bool (*count_grades)(const double* labels, std::size_t n, std::uint32_t* counts);

  std::size_t (*parse_svmlight_rows)(const SvmlightChunk& chunk);  // svmlight_rows.hpp

  // histogram.inl
  void (*accumulate)(const std::uint8_t* bins, const std::uint32_t* rows, std::size_t n, const std::int64_t* gh,
                     bool half, std::int64_t* out) noexcept;
  void (*widen)(const std::int64_t* packed, std::size_t n, double* gradient, double* hessian) noexcept;
  void (*add_packed)(std::int64_t* to, const std::int64_t* sums, std::size_t n_bins) noexcept;
  void (*add_wide)(double* to, const double* sums, std::size_t n_bins) noexcept;
  void (*subtract_packed)(std::int64_t* from, const std::int64_t* sums, std::size_t n_bins) noexcept;
  void (*subtract_wide)(double* from, const double* sums, std::size_t n_bins) noexcept;
  void (*best_splits)(const OctetSums& sums, const Octet& octet, const NodeSums& total, const SplitRules& rules,
                      FeatureSplit* best) noexcept;
  NodeSums (*gather_gradients)(const std::int64_t* gh, const std::uint32_t* rows, std::size_t n,
                               std::int64_t* out) noexcept;
  std::size_t (*partition)(const std::uint8_t* bins, const std::uint32_t* rows, std::size_t n, const Side& side,
                           std::uint32_t* left, std::uint32_t* right) noexcept;
  FeatureSplit (*best_split)(const double* gradient, const double* hessian, const std::uint32_t* counts,
                             std::int32_t n_values, bool has_missing, const NodeSums& total,
                             const SplitRules& rules) noexcept;
  FeatureSplit (*best_bounded_split)(const double* gradient, const double* hessian, const std::uint32_t* counts,
                                     std::int32_t n_values, bool has_missing, const NodeSums& total,
                                     const SplitRules& rules, const ValueBounds& bounds) noexcept;
  // lambdas.inl. pair_lambdas returns the sum of |lambda| of pairs, if divided or equal. The other three do the same in
  // parts, with the same bits: lambdas, weights and the padding of gains are 0 at first; for rows from 0 to n_top,
  // begin_rows; pairs_of_rows for runs of whole chunks, in any order, one entry of `sums` per chunk and row; end_rows
  // with all sums.
  double (*pair_lambdas)(const RankedQuery& query) noexcept;
  PairRows (*begin_rows)(const RankedQuery& query, std::size_t first) noexcept;
  void (*pairs_of_rows)(const RankedQuery& query, const PairRows& rows, std::size_t begin, std::size_t end,
                        PairSums* sums) noexcept;
  double (*end_rows)(const RankedQuery& query, const PairRows& rows, const PairSums* sums, std::size_t n_chunks,
                     double size) noexcept;
  void (*left_sums)(const std::int32_t* code, const std::int32_t* sum, std::size_t n,
                    std::int32_t* left) noexcept;       // left_sums.inl
  bool (*line_dcg)(const MovingQuery& query) noexcept;  // line_dcg.inl: false when dcg is the same everywhere
  void (*explain_by_cover)(const CoverTree& tree, const double* x, const CoverScratch& scratch,
                           double* contributions) noexcept;  // explain/by_cover.inl
  void (*explain_by_background)(const BackgroundPath& path, const std::uint64_t* met,
                                double* values) noexcept;  // explain/by_background.inl
};

// The table of the instruction set in use (isa/choice.hpp).
const Kernels& kernels();

}  // namespace rankwood
