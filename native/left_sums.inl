// Sums of all documents of a small node whose code is at most that of each, compiled once per instruction set: every pair
// is compared, which for few documents is faster than sorting them, as no step waits for another.

// left[i] = sum of sum[j] over all j with code[j] <= code[i].
//   IN code, sum; OUT left    n entries, aligned to 64 bytes, with room up to a multiple of 16 where sum is 0
static void left_sums(const std::int32_t* code, const std::uint32_t* sum, std::size_t n, std::uint32_t* left) noexcept {
  constexpr std::size_t kBlock = 16;
  for (std::size_t i = 0; i < n; i += kBlock) {
    std::int32_t own[kBlock];
    std::uint32_t added[kBlock];
    for (std::size_t k = 0; k < kBlock; ++k) {
      own[k] = code[i + k];
      added[k] = 0;
    }
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < kBlock; ++k) added[k] += code[j] <= own[k] ? sum[j] : 0;
    }
    for (std::size_t k = 0; k < kBlock; ++k) left[i + k] = added[k];
  }
}
