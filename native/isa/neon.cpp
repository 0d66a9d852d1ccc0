#define RANKWOOD_ISA_NS neon
#define RANKWOOD_NEON 1
#include "isa/table.inl"
