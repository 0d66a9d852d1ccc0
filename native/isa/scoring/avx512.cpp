#if defined(RANKWOOD_EMULATE_AVX512)  // for tests on a CPU that has none: the same source, with SIMDe's functions
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#define __AVX512F__ 1
#define __AVX512BW__ 1
#endif
#define RANKWOOD_ISA_NS avx512
#include "isa/scoring/table.inl"
