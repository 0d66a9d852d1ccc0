// The kernels that exist once per instruction set, as a table of function pointers.
//
// Each kernel is written once, in a header that isa/baseline.cpp, isa/avx2.cpp and isa/avx512.cpp include inside
// their own namespace (RANKWOOD_ISA_NS). A kernel never names its target. Such headers use no standard templates
// with linkage (std::sort, std::vector): the linker would keep one copy for all instruction sets, possibly one that
// the CPU at hand cannot run. tools/check_isa_symbols.py looks for such copies.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankwood {

struct SvmlightChunk;

struct Kernels {
  const char* name;
  std::size_t (*parse_svmlight_rows)(const SvmlightChunk& chunk);  // svmlight_rows.hpp
};

// The table in use: the best one the CPU can run, or the one that the environment variable RANKWOOD_ISA names.
// Throws std::invalid_argument when that one is unknown or the CPU cannot run it.
const Kernels& kernels();

// The instruction sets of this build that this CPU can run, best first, as a null-terminated list of names.
const char* const* available_isas();

namespace baseline {
extern const Kernels table;
}
#if defined(RANKWOOD_X86)
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}
#endif

}  // namespace rankwood
