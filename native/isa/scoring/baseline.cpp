#define RANKWOOD_ISA_NS baseline
#include "isa/scoring/table.inl"
