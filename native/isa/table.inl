// Included by baseline.cpp, avx2.cpp, avx512.cpp and neon.cpp, each with its own RANKWOOD_ISA_NS.
#include "grades.inl"
#include "isa/kernels.hpp"
#include "line_dcg.inl"
#include "svmlight_rows.hpp"
#include "topk.inl"

namespace rankwood::RANKWOOD_ISA_NS {

#include "explain/by_background.inl"
#include "explain/by_cover.inl"
#include "histogram.inl"
#include "lambdas.inl"
#include "left_sums.inl"

extern const Kernels table;
const Kernels table = {
    topk::top_k<double>,
    topk::top_k<float>,
    grades::count_grades,
    parse_svmlight_rows,
    accumulate,
    widen,
    add_octets<std::int64_t>,
    add_octets<double>,
    subtract_octets<std::int64_t>,
    subtract_octets<double>,
    best_splits,
    gather_gradients,
    partition,
    best_split,
    best_bounded_split,
    pair_lambdas,
    begin_rows,
    pairs_of_rows,
    end_rows,
    left_sums,
    lines::line_dcg,
    explain_by_cover,
    explain_by_background,
};

}  // namespace rankwood::RANKWOOD_ISA_NS
