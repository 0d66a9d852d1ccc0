// Included by baseline.cpp, avx2.cpp and avx512.cpp, each with its own RANKWOOD_ISA_NS.
#include "isa/kernels.hpp"

namespace rankwood::RANKWOOD_ISA_NS {

#include "histogram.inl"
#include "lambdas.inl"

const Kernels table = {
    RANKWOOD_ISA_NAME,
    accumulate,
    best_split,
    pair_lambdas,
};

}  // namespace rankwood::RANKWOOD_ISA_NS
