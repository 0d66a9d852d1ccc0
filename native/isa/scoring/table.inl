// Included by baseline.cpp, avx2.cpp and their like beside it, each with its own RANKWOOD_ISA_NS.
#include "isa/choice.hpp"
#include "score/bitslice.inl"
#include "score/hops.inl"
#include "score/kernels.hpp"
#include "score/leaf_values.inl"
#include "score/move_codes.inl"
#include "score/pairs.inl"
#include "score/quantise.inl"

namespace rankwood::RANKWOOD_ISA_NS {

extern const ScoringKernels scoring_table;
const ScoringKernels scoring_table = {
    scoring::kWidth,      scoring::kHasLookup,     scoring::quantise<-128>, scoring::quantise<-128>,
    scoring::quantise<0>, scoring::quantise<0>,    scoring::quantise<0>,    scoring::quantise<0>,
    scoring::kHop,        scoring::find_leaves,    scoring::kFindFew,       scoring::add_f32,
    scoring::add_f64,     scoring::kOrder32.order, scoring::kOrder64.order, scoring::kMoveWidth,
    scoring::move_codes,
};

}  // namespace rankwood::RANKWOOD_ISA_NS
