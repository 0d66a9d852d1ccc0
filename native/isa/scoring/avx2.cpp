#define RANKWOOD_ISA_NS avx2
#include "isa/scoring/table.inl"
