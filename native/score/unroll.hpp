// Loops that the compiler unrolls: all of a short one of known length, or four turns of a long one.
#pragma once

#if defined(__clang__)
#define RANKWOOD_UNROLL _Pragma("unroll")
#define RANKWOOD_UNROLL_4 _Pragma("unroll 4")
#elif defined(__GNUC__)
#define RANKWOOD_UNROLL _Pragma("GCC unroll 16")
#define RANKWOOD_UNROLL_4 _Pragma("GCC unroll 4")
#else
#define RANKWOOD_UNROLL
#define RANKWOOD_UNROLL_4
#endif
