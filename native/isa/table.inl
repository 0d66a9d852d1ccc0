// Included by baseline.cpp, avx2.cpp and avx512.cpp, each with its own RANKWOOD_ISA_NS.
#include "grades.inl"
#include "isa/kernels.hpp"
#include "svmlight_rows.hpp"
#include "topk.inl"

namespace rankwood::RANKWOOD_ISA_NS {

#include "histogram.inl"
#include "lambdas.inl"
#include "left_sums.inl"

const Kernels table = {
    RANKWOOD_ISA_NAME, topk::top_k<double>, topk::top_k<float>, grades::count_grades, parse_svmlight_rows, accumulate,
    best_split,        pair_lambdas,        left_sums,
};

}  // namespace rankwood::RANKWOOD_ISA_NS
