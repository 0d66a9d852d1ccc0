// Short vectors of scores, as wide as the registers of the instruction set that is being compiled: the vector
// extension of GCC and Clang, single numbers elsewhere. A mask is -1 (true) or 0 in every place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rankwood::RANKWOOD_ISA_NS {
namespace {

#if defined(__GNUC__)
#if defined(__AVX512F__)
#define RANKWOOD_VECTOR __attribute__((vector_size(64)))
#elif defined(__AVX2__)
#define RANKWOOD_VECTOR __attribute__((vector_size(32)))
#else
#define RANKWOOD_VECTOR __attribute__((vector_size(16)))
#endif
#else
#define RANKWOOD_VECTOR
#endif
typedef double Doubles RANKWOOD_VECTOR;
typedef float Floats RANKWOOD_VECTOR;
typedef std::int64_t Int64s RANKWOOD_VECTOR;
typedef std::int32_t Int32s RANKWOOD_VECTOR;
typedef std::uint32_t Uint32s RANKWOOD_VECTOR;
typedef std::uint64_t Bits RANKWOOD_VECTOR;
#undef RANKWOOD_VECTOR

// Scores and, as wide, the counts and masks that go with them.
template <class Score, class ScoreVector, class CountType, class CountVector>
struct Vectors {
  using Scores = ScoreVector;
  using Count = CountType;
  using Counts = CountVector;
  static constexpr std::size_t width = sizeof(Scores) / sizeof(Score);

  template <class Vector, class Number>
  static Vector read(const Number* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  static Scores load(const Score* from) { return read<Scores>(from); }
  static Counts load(const Count* from) { return read<Counts>(from); }
  static void store(Score* to, Scores v) { std::memcpy(to, &v, sizeof v); }
  static void store(Count* to, Counts v) { std::memcpy(to, &v, sizeof v); }
#if defined(__GNUC__)
  static Scores repeat(Score value) { return value - Scores{}; }
  static Counts repeat(Count value) { return value - Counts{}; }
  template <class Vector>
  static Counts less(Vector a, Vector b) {
    return a < b;
  }
  static Counts ordered(Scores v) { return v == v; }  // not NaN
  static Scores select(Counts mask, Scores a, Scores b) { return mask ? a : b; }
#else
  static Scores repeat(Score value) { return value; }
  static Counts repeat(Count value) { return value; }
  template <class Vector>
  static Counts less(Vector a, Vector b) {
    return -static_cast<Counts>(a < b);
  }
  static Counts ordered(Scores v) { return -static_cast<Counts>(v == v); }
  static Scores select(Counts mask, Scores a, Scores b) { return mask ? a : b; }
#endif
};

template <class Score>
struct VectorChoice;
template <>
struct VectorChoice<double> {
  using type = Vectors<double, Doubles, std::int64_t, Int64s>;
};
template <>
struct VectorChoice<float> {
  using type = Vectors<float, Floats, std::int32_t, Int32s>;
};
template <class Score>
using VectorOf = typename VectorChoice<Score>::type;
template <class Score>
using CountOf = typename VectorOf<Score>::Count;

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS
