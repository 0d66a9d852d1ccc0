// Contributions of features to the value of one leaf, against background documents, compiled once per instruction set.
//
// Between a document and one of the background a leaf counts only if on every feature of its path one of the two meets
// the conditions. With p features on which the document alone does and n on which the other alone does, each of the
// former contributes v (p - 1)! n! / (p + n)!, each of the latter - v p! (n - 1)! / (p + n)!.

// Sums over the background of what each feature of a path contributes to a document, for a leaf of value 1.
//   IN  path     patterns of the background, one bit per feature of the path, each with the number of its documents
//   IN  met      pattern of the document
//   OUT values   one per feature of the path
static void explain_by_background(const BackgroundPath& path, const std::uint64_t* met, double* values) noexcept {
  const std::size_t n_words = path.n_words, size = path.stride;
  std::size_t n_met = 0;
  for (std::size_t w = 0; w < n_words; ++w) n_met += count_bits(met[w]);
  const std::size_t n_lost = path.n_features - n_met;
  for (std::size_t j = 0; j < path.n_features; ++j) values[j] = 0.0;
  double lost = 0.0;
  for (std::size_t b = 0; b < path.n_patterns; ++b) {
    const std::uint64_t* const other = path.patterns + b * n_words;
    std::uint64_t neither = 0;
    std::size_t n_won = 0;
    for (std::size_t w = 0; w < n_words; ++w) {
      const std::size_t n_bits =
          path.n_features < w * 64 ? 0 : path.n_features - w * 64;  // longer paths need more words
      const std::uint64_t all = n_bits < 64 ? (std::uint64_t{1} << n_bits) - 1 : ~std::uint64_t{0};
      neither |= all & ~(met[w] | other[w]);
      n_won += count_bits(met[w] & ~other[w]);
    }
    if (neither != 0) continue;
    const double count = path.counts[b];
    if (n_lost > 0) lost += count * path.weights[n_lost * size + n_won];
    if (n_won == 0) continue;
    const double won = count * path.weights[n_won * size + n_lost];
    for (std::size_t w = 0; w < n_words; ++w) {
      for (std::uint64_t bits = met[w] & ~other[w]; bits != 0; bits &= bits - 1) {
        values[w * 64 + static_cast<std::size_t>(__builtin_ctzll(bits))] += won;
      }
    }
  }
  for (std::size_t j = 0; j < path.n_features; ++j) {
    if ((met[j / 64] >> j % 64 & 1) == 0) values[j] = -lost;
  }
}
