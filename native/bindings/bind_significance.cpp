#include "significance.hpp"

#include <limits>

#include "bindings/bindings.hpp"

namespace rankwood {

void bind_significance(nb::module_& m) {
  m.def(
      "count_sign_flips",
      [](In<std::int64_t> magnitudes, std::int64_t bound, bool two_sided, std::uint64_t n_permutations, bool enumerate,
         std::uint64_t seed, int n_threads) {
        const std::size_t n = magnitudes.shape(0);
        require(!enumerate || n < 64, "too many differences to enumerate their signs");
        std::uint64_t room = std::uint64_t{1} << 61;
        for (std::size_t i = 0; i < n; ++i) {
          const auto magnitude = static_cast<std::uint64_t>(magnitudes.data()[i]);  // a negative one becomes huge
          require(magnitude < room, "magnitudes must not be negative and must add up to less than 2^61");
          room -= magnitude;
        }
        std::uint64_t count = 0;
        const SignFlips test{magnitudes.data(), n, n_permutations, bound, two_sided, enumerate, seed};
        unlocked([&] { count = count_sign_flips(test, n_threads); });
        return count;
      },
      nb::arg("magnitudes"), nb::arg("bound"), nb::arg("two_sided"), nb::arg("n_permutations"), nb::arg("enumerate"),
      nb::arg("seed"), nb::arg("n_threads"),
      "How many sign permutations of the differences have a sum of at least `bound`.");

  m.def(
      "bootstrap_sums",
      [](In<std::int64_t> values, std::uint64_t seed, int n_threads, Out<std::int64_t> sums) {
        const std::size_t n = values.shape(0);
        require(n > 0 && n <= std::numeric_limits<std::uint32_t>::max(), "the number of values must fit 32 bits");
        const std::uint64_t largest = (std::uint64_t{1} << 62) / n;  // n of the largest value cannot overflow
        for (std::size_t i = 0; i < n; ++i) {
          const std::int64_t value = values.data()[i];
          const auto bits = static_cast<std::uint64_t>(value);
          require((value < 0 ? 0 - bits : bits) <= largest, "values are too large: their sums would overflow");
        }
        unlocked([&] { bootstrap_sums(values.data(), n, seed, sums.shape(0), n_threads, sums.data()); });
      },
      nb::arg("values"), nb::arg("seed"), nb::arg("n_threads"), nb::arg("sums"),
      "Fill `sums` with the sums of bootstrap samples of `values`.");
}

}  // namespace rankwood
