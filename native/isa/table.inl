// Included by baseline.cpp, avx2.cpp and avx512.cpp, each with its own RANKWOOD_ISA_NS.
#include "isa/kernels.hpp"
#include "svmlight_rows.hpp"

namespace rankwood::RANKWOOD_ISA_NS {

const Kernels table = {
    RANKWOOD_ISA_NAME,
    parse_svmlight_rows,
};

}  // namespace rankwood::RANKWOOD_ISA_NS
