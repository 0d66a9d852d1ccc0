// Which instruction set runs: asked of the CPU once, overridden by RANKWOOD_ISA.
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "isa/kernels.hpp"

namespace rankwood {
namespace {

struct Candidate {
  const Kernels* table;
  bool (*runs_here)();
};

bool always() { return true; }

#if defined(RANKWOOD_X86)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}
bool has_avx512() {
#if defined(RANKWOOD_EMULATE_AVX512)
  return has_avx2();
#endif
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi");
}
#endif

// Best first.
const Candidate candidates[] = {
#if defined(RANKWOOD_X86)
    {&avx512::table, has_avx512},
    {&avx2::table, has_avx2},
#endif
    {&baseline::table, always},
};

std::string join_names(bool runnable_only) {
  std::string names;
  for (const Candidate& candidate : candidates) {
    if (runnable_only && !candidate.runs_here()) continue;
    if (!names.empty()) names += ", ";
    names += candidate.table->name;
  }
  return names;
}

const Kernels& choose() {
  const char* forced = std::getenv("RANKWOOD_ISA");
  const bool is_forced = forced != nullptr && *forced != '\0';
  for (const Candidate& candidate : candidates) {
    if (is_forced && std::strcmp(forced, candidate.table->name) != 0) continue;
    if (candidate.runs_here()) return *candidate.table;
    if (is_forced) {
      throw std::invalid_argument("RANKWOOD_ISA=" + std::string(forced) +
                                  ": this CPU cannot run it; it can run: " + join_names(true));
    }
  }
  throw std::invalid_argument("RANKWOOD_ISA=" + std::string(forced) +
                              ": no such instruction set; this build knows: " + join_names(false));
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = choose();  // a throw leaves it unset: the next call asks again
  return chosen;
}

const char* const* available_isas() {
  static const struct Names {
    const char* name[sizeof(candidates) / sizeof(candidates[0]) + 1] = {};
    Names() {
      std::size_t n = 0;
      for (const Candidate& candidate : candidates) {
        if (candidate.runs_here()) name[n++] = candidate.table->name;
      }
    }
  } names;
  return names.name;
}

}  // namespace rankwood
