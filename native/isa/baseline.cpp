#define RANKWOOD_ISA_NS baseline
#define RANKWOOD_ISA_NAME "baseline"
#include "isa/table.inl"
