// Sums of all documents of a small node whose code is at most that of each, compiled once per instruction set: every
// pair is compared, which for few documents is faster than sorting them, as no step waits for another.

// left[i] = sum of sum[j] over all j with code[j] <= code[i].
//   IN code, sum; OUT left    n entries, with room for, and any numbers in, a multiple of 32
static void left_sums(const std::int32_t* code, const std::int32_t* sum, std::size_t n, std::int32_t* left) noexcept {
  using V = VectorOf<float>;  // which counts in 32 bits
  constexpr std::size_t kWidth = V::width;
  for (std::size_t i = 0; i < n; i += 2 * kWidth) {
    const V::Counts first = V::load(code + i), second = V::load(code + i + kWidth);
    Uint32s first_sum{}, second_sum{};  // fields of a packed sum may reach the sign
    for (std::size_t j = 0; j < n; ++j) {
      const V::Counts other = V::repeat(code[j]), added = V::repeat(sum[j]);
      first_sum += (Uint32s)(~V::less(first, other) & added);
      second_sum += (Uint32s)(~V::less(second, other) & added);
    }
    std::memcpy(left + i, &first_sum, sizeof first_sum);
    std::memcpy(left + i + kWidth, &second_sum, sizeof second_sum);
  }
}
