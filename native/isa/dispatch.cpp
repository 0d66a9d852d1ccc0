// Which instruction set runs: asked of the CPU once, overridden by RANKWOOD_ISA.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "isa/choice.hpp"

#if defined(RANKWOOD_X86)
#include <cpuid.h>
#endif

namespace rankwood {
namespace {

// A feature of the CPU, by the name that it has in compiler flags (-mavx2), and where cpuid tells of it.
struct Feature {
  const char* name;
  unsigned leaf;
  enum { ebx, ecx, edx } word;
  unsigned bit;
};

// What a table is compiled for: every feature that its flags in native/CMakeLists.txt turn on, those included that
// others bring with them (tests/test_isa.py compares). Also the registers that the system must keep for each process.
struct Candidate {
  const char* name;
  std::vector<Feature> features;
  std::uint64_t registers;  // bits of XCR0
};

#if defined(RANKWOOD_X86)
const std::vector<Feature> avx2_features = {
    {"sse3", 1, Feature::ecx, 0},    {"ssse3", 1, Feature::ecx, 9},   {"sse4.1", 1, Feature::ecx, 19},
    {"sse4.2", 1, Feature::ecx, 20}, {"popcnt", 1, Feature::ecx, 23}, {"xsave", 1, Feature::ecx, 26},
    {"avx", 1, Feature::ecx, 28},    {"fma", 1, Feature::ecx, 12},    {"bmi", 7, Feature::ebx, 3},
    {"avx2", 7, Feature::ebx, 5},    {"bmi2", 7, Feature::ebx, 8},    {"lzcnt", 0x80000001, Feature::ecx, 5},
};
constexpr std::uint64_t kAvxRegisters = 0x6;  // XMM and YMM

#if defined(RANKWOOD_EMULATE_AVX512)
const std::vector<Feature> avx512_features = avx2_features;
constexpr std::uint64_t kAvx512Registers = kAvxRegisters;
#else
const std::vector<Feature> avx512_features = [] {
  std::vector<Feature> features = avx2_features;
  features.insert(features.end(), {{"f16c", 1, Feature::ecx, 29},
                                   {"avx512f", 7, Feature::ebx, 16},
                                   {"avx512dq", 7, Feature::ebx, 17},
                                   {"avx512bw", 7, Feature::ebx, 30},
                                   {"avx512vl", 7, Feature::ebx, 31},
                                   {"avx512vbmi", 7, Feature::ecx, 1}});
  return features;
}();
#if defined(__APPLE__)
constexpr std::uint64_t kAvx512Registers = kAvxRegisters;  // the others are kept from their first use on
#else
constexpr std::uint64_t kAvx512Registers = kAvxRegisters | 0xe0;  // masks, and both parts of ZMM
#endif
#endif

bool has(const Feature& feature) {
  unsigned eax = 0, words[3] = {};
  return __get_cpuid_count(feature.leaf, 0, &eax, &words[0], &words[1], &words[2]) != 0 &&
         (words[feature.word] >> feature.bit & 1) != 0;
}

std::uint64_t kept_registers() {
  if (!has({"osxsave", 1, Feature::ecx, 27})) return 0;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

bool runs_here(const Candidate& candidate) {
  return std::all_of(candidate.features.begin(), candidate.features.end(), has) &&
         (kept_registers() & candidate.registers) == candidate.registers;
}
#else
bool runs_here(const Candidate&) { return true; }
#endif

#if defined(RANKWOOD_X86)
const Candidate avx512 = {"avx512", avx512_features, kAvx512Registers};
const Candidate avx2 = {"avx2", avx2_features, kAvxRegisters};
#elif defined(RANKWOOD_AARCH64)
const Candidate neon = {"neon", {}, 0};  // part of the architecture
#endif
const Candidate baseline = {"baseline", {}, 0};

#define RANKWOOD_CANDIDATE(isa) isa,
const Candidate candidates[] = {RANKWOOD_ISAS(RANKWOOD_CANDIDATE)};

std::string join_names(bool runnable_only) {
  std::string names;
  for (const Candidate& candidate : candidates) {
    if (runnable_only && !runs_here(candidate)) continue;
    if (!names.empty()) names += ", ";
    names += candidate.name;
  }
  return names;
}

std::size_t choose() {
  const char* forced = std::getenv("RANKWOOD_ISA");
  const bool is_forced = forced != nullptr && *forced != '\0';
  for (const Candidate& candidate : candidates) {
    if (is_forced && std::strcmp(forced, candidate.name) != 0) continue;
    if (runs_here(candidate)) return static_cast<std::size_t>(&candidate - candidates);
    if (is_forced) {
      throw std::invalid_argument("RANKWOOD_ISA=" + std::string(forced) +
                                  ": this CPU cannot run it; it can run: " + join_names(true));
    }
  }
  throw std::invalid_argument("RANKWOOD_ISA=" + std::string(forced) +
                              ": no such instruction set; this build knows: " + join_names(false));
}

}  // namespace

std::size_t chosen_isa() {
  static const std::size_t chosen = choose();  // a throw leaves it unset: the next call asks again
  return chosen;
}

const char* active_isa() { return candidates[chosen_isa()].name; }

const char* const* available_isas() {
  static const struct Names {
    const char* name[sizeof(candidates) / sizeof(candidates[0]) + 1] = {};
    Names() {
      std::size_t n = 0;
      for (const Candidate& candidate : candidates) {
        if (runs_here(candidate)) name[n++] = candidate.name;
      }
    }
  } names;
  return names.name;
}

const char* needed_feature(const char* isa, std::size_t i) {
  for (const Candidate& candidate : candidates) {
    if (std::strcmp(isa, candidate.name) == 0 && i < candidate.features.size()) return candidate.features[i].name;
  }
  return nullptr;
}

}  // namespace rankwood
