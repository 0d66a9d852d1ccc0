// Which instruction set runs. Tables of kernels exist once for each; all of them are chosen by the same number.
#pragma once

#include <cstddef>

// Instruction sets that are built, best first: CALL(name of the namespace of their kernels).
#if defined(RANKWOOD_X86)
#define RANKWOOD_ISAS(CALL) CALL(avx512) CALL(avx2) CALL(baseline)
#elif defined(RANKWOOD_AARCH64)
#define RANKWOOD_ISAS(CALL) CALL(neon) CALL(baseline)
#else
#define RANKWOOD_ISAS(CALL) CALL(baseline)
#endif

namespace rankwood {

// Number of the instruction set in use: the best one the CPU can run, or the one that the environment variable
// RANKWOOD_ISA names. Throws std::invalid_argument when that one is unknown or the CPU cannot run it.
std::size_t chosen_isa();
const char* active_isa();  // its name

// The instruction sets of this build that this CPU can run, best first, as a null-terminated list of names.
const char* const* available_isas();

// Feature number i of the CPU that is asked for before the tables of this name are run; null after the last.
const char* needed_feature(const char* isa, std::size_t i);

}  // namespace rankwood
