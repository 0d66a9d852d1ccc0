#define RANKWOOD_ISA_NS avx2
#define RANKWOOD_ISA_NAME "avx2"
#include "isa/table.inl"
