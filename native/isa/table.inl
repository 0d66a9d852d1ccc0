// Included by baseline.cpp, avx2.cpp, avx512.cpp and neon.cpp, each with its own RANKWOOD_ISA_NS.
#include "grades.inl"
#include "isa/kernels.hpp"
#include "line_dcg.inl"
#include "score/bitslice.inl"
#include "score/leaf_values.inl"
#include "score/move_codes.inl"
#include "score/quantise.inl"
#include "svmlight_rows.hpp"
#include "topk.inl"

namespace rankwood::RANKWOOD_ISA_NS {

#include "histogram.inl"
#include "lambdas.inl"
#include "left_sums.inl"

const Kernels table = {
    RANKWOOD_ISA_NAME,
    topk::top_k<double>,
    topk::top_k<float>,
    grades::count_grades,
    parse_svmlight_rows,
    accumulate,
    widen,
    gather_gradients,
    partition,
    best_split,
    pair_lambdas,
    begin_rows,
    pairs_of_rows,
    end_rows,
    left_sums,
    lines::line_dcg,
    {
        scoring::kWidth,
        scoring::kHasLookup,
        scoring::quantise<-128>,
        scoring::quantise<-128>,
        scoring::quantise<0>,
        scoring::quantise<0>,
        scoring::quantise<0>,
        scoring::quantise<0>,
        scoring::find_leaves,
        scoring::add_f32,
        scoring::add_f64,
        scoring::kOrder32.order,
        scoring::kOrder64.order,
        scoring::kMoveWidth,
        scoring::move_codes,
    },
};

}  // namespace rankwood::RANKWOOD_ISA_NS
