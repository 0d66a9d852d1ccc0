#define RANKWOOD_ISA_NS avx2
#include "isa/table.inl"
