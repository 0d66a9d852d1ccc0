#define RANKWOOD_ISA_NS baseline
#include "isa/table.inl"
