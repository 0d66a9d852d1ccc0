#define RANKWOOD_ISA_NS avx512
#define RANKWOOD_ISA_NAME "avx512"
#include "isa/table.inl"
