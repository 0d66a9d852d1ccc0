// Every aarch64 CPU has NEON; the baseline is compiled without its intrinsics all the same, as the portable kernels.
#define RANKWOOD_ISA_NS neon
#define RANKWOOD_NEON 1
#include "isa/scoring/table.inl"
