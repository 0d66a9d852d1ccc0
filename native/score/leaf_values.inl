// sums += value of the leaf that each document reached: the second half of engine bitslice.
//
// Included by isa/table.inl, once per instruction set. The values of a tree stand byte by byte in planes: plane p
// holds byte p of every value, at planes[p * padded + index]. Looking an index up in each plane and interleaving the
// results gives the numbers themselves, without a gather; interleaving stays inside 16 bytes, so the documents of a
// vector come out in another order (order_f32, order_f64), in which their sums are kept.
#include "score/bytes.inl"
#include "score/kernels.hpp"

namespace rankwood::RANKWOOD_ISA_NS::scoring {
namespace {

#if defined(RANKWOOD_HAS_LOOKUP)
#if defined(__AVX512BW__)
inline void add(float* sums, Word values) {
  _mm512_storeu_ps(sums, _mm512_add_ps(_mm512_loadu_ps(sums), _mm512_castsi512_ps(values)));
}
inline void add(double* sums, Word values) {
  _mm512_storeu_pd(sums, _mm512_add_pd(_mm512_loadu_pd(sums), _mm512_castsi512_pd(values)));
}

// Planes of Padded bytes, looked up 64 or 128 at a time. Reads up to 64 bytes from the start of a plane.
template <int Padded>
struct Lookup {
  Word index;
  explicit Lookup(const std::uint8_t* indices) : index(_mm512_loadu_si512(indices)) {}
  Word operator()(const std::uint8_t* plane) const {
    const Word first = _mm512_loadu_si512(plane);
    if constexpr (Padded <= 64) return _mm512_permutexvar_epi8(index, first);
    if constexpr (Padded > 64) {
      const Word low = _mm512_permutex2var_epi8(first, index, _mm512_loadu_si512(plane + 64));
      if constexpr (Padded == 128) return low;
      const Word high =
          _mm512_permutex2var_epi8(_mm512_loadu_si512(plane + 128), index, _mm512_loadu_si512(plane + 192));
      return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
    }
  }
};
constexpr int kMaxLookup32 = 256, kMaxLookup64 = 256;
#elif defined(RANKWOOD_NEON)
inline void add(float* sums, Word values) { vst1q_f32(sums, vaddq_f32(vld1q_f32(sums), vreinterpretq_f32_u8(values))); }
inline void add(double* sums, Word values) {
  vst1q_f64(sums, vaddq_f64(vld1q_f64(sums), vreinterpretq_f64_u8(values)));
}

// Planes of Padded bytes, looked up 64 at a time: an index that belongs to other 64 leaves what was found.
template <int Padded>
struct Lookup {
  Word index;
  explicit Lookup(const std::uint8_t* indices) : index(vld1q_u8(indices)) {}
  Word operator()(const std::uint8_t* plane) const {
    if constexpr (Padded == 16) return vqtbl1q_u8(vld1q_u8(plane), index);
    if constexpr (Padded == 32) return vqtbl2q_u8(vld1q_u8_x2(plane), index);
    Word found = vqtbl4q_u8(vld1q_u8_x4(plane), index);
    for (int from = 64; from < Padded; from += 64) {
      const Word own = vsubq_u8(index, vdupq_n_u8(static_cast<std::uint8_t>(from)));
      found = vqtbx4q_u8(found, vld1q_u8_x4(plane + from), own);
    }
    return found;
  }
};
constexpr int kMaxLookup32 = 128, kMaxLookup64 = 64;  // not measured: as AVX2
#else
inline void add(float* sums, Word values) {
  _mm256_storeu_ps(sums, _mm256_add_ps(_mm256_loadu_ps(sums), _mm256_castsi256_ps(values)));
}
inline void add(double* sums, Word values) {
  _mm256_storeu_pd(sums, _mm256_add_pd(_mm256_loadu_pd(sums), _mm256_castsi256_pd(values)));
}

// Planes of Padded bytes, looked up 16 at a time: an index that belongs to other 16 has its highest bit set, for which
// the instruction gives 0.
template <int Padded>
struct Lookup {
  static constexpr int kTables = Padded / 16;
  Word index[kTables];
  explicit Lookup(const std::uint8_t* indices) {
    const Word all = _mm256_loadu_si256(reinterpret_cast<const Word*>(indices));
    for (int q = 0; q < kTables; ++q) {
      const Word own = q == 0 ? all : _mm256_sub_epi8(all, _mm256_set1_epi8(static_cast<char>(16 * q)));
      index[q] = kTables == 1 ? own : _mm256_adds_epu8(own, _mm256_set1_epi8(0x70));
    }
  }
  Word operator()(const std::uint8_t* plane) const {
    const auto part = [&](int q) {
      const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(plane + 16 * q));
      return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), index[q]);
    };
    Word found = part(0);
    for (int q = 1; q < kTables; ++q) found = _mm256_or_si256(found, part(q));
    return found;
  }
};
constexpr int kMaxLookup32 = 128, kMaxLookup64 = 64;
#endif

template <int Padded>
void add_planes(const std::uint8_t* indices, std::size_t n_vectors, const std::uint8_t* planes, float* sums) {
  constexpr std::size_t step = kWidth / 4;
  for (std::size_t v = 0; v < n_vectors; ++v, indices += kWidth, sums += kWidth) {
    const Lookup<Padded> lookup(indices);
    const Word a = lookup(planes), b = lookup(planes + Padded);
    const Word c = lookup(planes + 2 * Padded), d = lookup(planes + 3 * Padded);
    const Word ab_low = low8(a, b), ab_high = high8(a, b), cd_low = low8(c, d), cd_high = high8(c, d);
    add(sums, low16(ab_low, cd_low));
    add(sums + step, high16(ab_low, cd_low));
    add(sums + 2 * step, low16(ab_high, cd_high));
    add(sums + 3 * step, high16(ab_high, cd_high));
  }
}

template <int Padded>
void add_planes(const std::uint8_t* indices, std::size_t n_vectors, const std::uint8_t* planes, double* sums) {
  constexpr std::size_t step = kWidth / 8;
  for (std::size_t v = 0; v < n_vectors; ++v, indices += kWidth, sums += kWidth) {
    const Lookup<Padded> lookup(indices);
    Word words[2][4];  // [bytes 0-3 or 4-7 of the numbers][a quarter of the documents]
    for (int half = 0; half < 2; ++half) {
      const std::uint8_t* p = planes + 4 * half * Padded;
      const Word a = lookup(p), b = lookup(p + Padded), c = lookup(p + 2 * Padded), d = lookup(p + 3 * Padded);
      const Word ab_low = low8(a, b), ab_high = high8(a, b), cd_low = low8(c, d), cd_high = high8(c, d);
      words[half][0] = low16(ab_low, cd_low);
      words[half][1] = high16(ab_low, cd_low);
      words[half][2] = low16(ab_high, cd_high);
      words[half][3] = high16(ab_high, cd_high);
    }
    for (int quarter = 0; quarter < 4; ++quarter) {
      add(sums + static_cast<std::size_t>(2 * quarter) * step, low32(words[0][quarter], words[1][quarter]));
      add(sums + static_cast<std::size_t>(2 * quarter + 1) * step, high32(words[0][quarter], words[1][quarter]));
    }
  }
}
#else
constexpr int kMaxLookup32 = 0, kMaxLookup64 = 0;
template <int Padded, class Value>
void add_planes(const std::uint8_t*, std::size_t, const std::uint8_t*, Value*) {}
#endif

// Order in which the sums of a vector's documents stand, for sums of `Size` bytes: interleaving leaves 16 / Size
// documents of a run of 16 side by side. First come those of every run, then the next ones of every run.
template <std::size_t Size>
struct DocumentOrder {
  std::uint8_t order[kWidth] = {};
  constexpr DocumentOrder() {
    constexpr std::size_t lanes = kHasLookup ? kWidth / 16 : 1;        // runs of 16 documents
    constexpr std::size_t together = kHasLookup ? 16 / Size : kWidth;  // documents of a run that stay side by side
    std::size_t at = 0;
    for (std::size_t part = 0; at < kWidth; ++part) {
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        for (std::size_t i = 0; i < together; ++i) {
          order[at++] = static_cast<std::uint8_t>(lane * 16 + part * together + i);
        }
      }
    }
  }
};
constexpr DocumentOrder<4> kOrder32;
constexpr DocumentOrder<8> kOrder64;

template <class Value>
void add_one_by_one(const std::uint8_t* indices, std::size_t n_vectors, const Value* values, const std::uint8_t* order,
                    Value* sums) {
  for (std::size_t v = 0; v < n_vectors; ++v, indices += kWidth, sums += kWidth) {
    for (std::size_t i = 0; i < kWidth; ++i) sums[i] += values[indices[order[i]]];
  }
}

void add_f32(const std::uint8_t* indices, std::size_t n_vectors, const float* values, const std::uint8_t* planes,
             std::size_t padded, float* sums) {
  if (padded > kMaxLookup32) return add_one_by_one(indices, n_vectors, values, kOrder32.order, sums);
  switch (padded) {
    case 16:
      return add_planes<16>(indices, n_vectors, planes, sums);
    case 32:
      return add_planes<32>(indices, n_vectors, planes, sums);
    case 64:
      return add_planes<64>(indices, n_vectors, planes, sums);
    case 128:
      return add_planes<128>(indices, n_vectors, planes, sums);
    default:
      return add_planes<256>(indices, n_vectors, planes, sums);
  }
}

void add_f64(const std::uint8_t* indices, std::size_t n_vectors, const double* values, const std::uint8_t* planes,
             std::size_t padded, double* sums) {
  if (padded > kMaxLookup64) return add_one_by_one(indices, n_vectors, values, kOrder64.order, sums);
  switch (padded) {
    case 16:
      return add_planes<16>(indices, n_vectors, planes, sums);
    case 32:
      return add_planes<32>(indices, n_vectors, planes, sums);
    case 64:
      return add_planes<64>(indices, n_vectors, planes, sums);
    case 128:
      return add_planes<128>(indices, n_vectors, planes, sums);
    default:
      return add_planes<256>(indices, n_vectors, planes, sums);
  }
}

}  // namespace
}  // namespace rankwood::RANKWOOD_ISA_NS::scoring
