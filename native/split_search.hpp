// What the searches for the best split of one feature in one node share. Values are codes: small whole numbers in the
// order of the values; a missing value has the largest code of its feature.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rankwood {

// The documents of a node.
struct Docs {
  const std::uint32_t* place;    // of their codes in the tile, see fulldepth.hpp
  const std::uint16_t* payload;  // packed criteria: weight << 8 | grade
  std::size_t n;
};

// The codes of one feature, by the places of documents.
template <class Code>
struct Column {
  const Code* codes;
  std::uint32_t stride;  // from the code of one place to that of the next
  std::int32_t feature;
  bool may_miss;          // whether some value of the data set is missing
  std::uint32_t missing;  // the code of a missing value

  std::uint32_t operator[](std::uint32_t place) const { return codes[std::size_t{place} * stride]; }
};

// The best split found so far in a node: documents whose code is at most `code` go left. Splits are compared by a proxy
// that orders them as their gain does. The first one found stays when another equals it; features are tried in the
// order drawn, codes ascending, missing values first on the right. A split in three has missing values on a side of
// their own; a drawn one has a threshold of its own.
struct FoundSplit {
  double proxy;  // to begin with: what a split must exceed to gain anything
  std::int32_t feature = -1;
  std::uint32_t code = 0;
  bool missing_left = false, has_missing = false, in_three = false;
  double threshold = std::numeric_limits<double>::quiet_NaN();  // NaN: midway between the values on both sides
};

constexpr double kNoSplit = -std::numeric_limits<double>::infinity();

// x log2 x; from a table for whole numbers below 2^16.
class LogTable {
 public:
  explicit LogTable(bool wanted) : table_(wanted ? 65'536 : 0) {
    for (std::size_t x = 0; x < table_.size(); ++x) table_[x] = compute(static_cast<double>(x));
  }
  static double compute(double x) { return x > 0.0 ? x * std::log2(x) : 0.0; }
  const double* data() const { return table_.data(); }
  double at(std::uint32_t x) const { return x < table_.size() ? table_[x] : compute(static_cast<double>(x)); }

 private:
  std::vector<double> table_;
};

}  // namespace rankwood
