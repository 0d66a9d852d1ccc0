// Codes of splits on sets: 0 where a document goes left, 1 where it goes right, a column for every different set.
//
// The thresholds of all sets of a feature cut the line into pieces, and all values of a piece are in the same sets.
// So a value is searched once per feature, and its piece says what the codes of all the sets are, a bit each:
//
//   sets of a feature   A: 1 | 3    B: 0 | 1        (right where an odd number of thresholds lies below)
//   pieces              up to 0   0 to 1   1 to 3   beyond      and missing values, as the splits say
//   codes of A, B         0 0      0 1      1 0      0 0
//
// Pieces with the same codes share them. A feature with very many sets has several such tables, so that none is much
// larger than its thresholds are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "ensemble.hpp"
#include "interruption.hpp"
#include "rows.hpp"

namespace rankwood {

// The bits of a byte as eight bytes 0 or 1, the lowest first.
inline std::uint64_t spread_bits(std::uint8_t bits) {
  const std::uint64_t repeated = bits * std::uint64_t{0x0101010101010101};
  const std::uint64_t apart = repeated & std::uint64_t{0x8040201008040201};
  return (apart + std::uint64_t{0x00406070787c7e7f}) >> 7 & std::uint64_t{0x0101010101010101};
}

// Bit j of byte i becomes bit i of byte j.
inline std::uint64_t transpose_bits(std::uint64_t x) {
  const auto swap = [&](int shift, std::uint64_t mask) {
    const std::uint64_t differ = (x ^ x >> shift) & mask;
    x ^= differ ^ differ << shift;
  };
  swap(7, 0x00aa00aa00aa00aa);
  swap(14, 0x0000cccc0000cccc);
  swap(28, 0x00000000f0f0f0f0);
  return x;
}

class SetColumns {
 public:
  // The columns of the model's sets, from number first_column on.   OUT column  by node; others stay as they are
  SetColumns(const EnsembleView& model, std::size_t first_column, std::vector<std::int32_t>& column)
      : first_column_(first_column) {
    std::vector<std::uint32_t> nodes;
    for (std::size_t node = 0; node < model.n_nodes; ++node) {
      if (model.has_set(node)) nodes.push_back(static_cast<std::uint32_t>(node));
    }
    std::size_t n_compared = 0;
    std::sort(nodes.begin(), nodes.end(), [&](std::uint32_t a, std::uint32_t b) {
      check_interruption(++n_compared);
      return compare(model, a, b) < 0;
    });
    std::vector<std::uint32_t> sets;  // the first node of each
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (i == 0 || compare(model, nodes[i - 1], nodes[i]) != 0) {
        if (!sets.empty() && (sets.size() == kMaxSets || model.feature[sets[0]] != model.feature[nodes[i]])) {
          add_table(model, sets);
          sets.clear();
        }
        sets.push_back(nodes[i]);
      }
      column[nodes[i]] = static_cast<std::int32_t>(first_column_ + n_columns_ + sets.size() - 1);
    }
    if (!sets.empty()) add_table(model, sets);
  }

  std::size_t n_columns() const { return n_columns_; }
  std::size_t n_bytes() const {
    return tables_.size() * sizeof tables_[0] + thresholds_.size() * sizeof thresholds_[0] +
           kinds_.size() * sizeof kinds_[0] + bits_.size();
  }

  // As Quantiser::quantise: either a row's codes lie side by side, or a column's.
  template <class T, class Code>
  void quantise(const Rows<T>& rows, std::size_t first, std::size_t n, Code* codes, std::size_t column_stride,
                std::size_t row_stride) const noexcept {
    for (const Table& table : tables_) {
      Code* const out = codes + (first_column_ + table.first_column) * column_stride;
      const T* const values = rows.data + static_cast<std::ptrdiff_t>(table.feature) * rows.feature_stride;
      const auto bits_of = [&](std::size_t row) {
        return bits(table, values[static_cast<std::ptrdiff_t>(first + row) * rows.row_stride]);
      };
      if (column_stride == 1) {
        for (std::size_t row = 0; row < n; ++row) write_row(table, bits_of(row), out + row * row_stride);
        continue;
      }
      for (std::size_t row = 0; row < n; row += kRows) {
        const std::uint8_t* of_row[kRows];
        const std::size_t n_rows = std::min(kRows, n - row);
        for (std::size_t i = 0; i < (n_rows + 7) / 8 * 8; ++i) of_row[i] = bits_of(row + std::min(i, n_rows - 1));
        write_columns(table, of_row, n_rows, out + row, column_stride);
      }
    }
  }

 private:
  // Some sets of one feature.
  struct Table {
    std::int32_t feature;
    std::size_t first_column, n_sets;
    std::size_t first_threshold, n_thresholds;
    std::size_t first_kind;  // by piece, missing values behind the last one: which of the kinds of pieces it is
    std::size_t first_bit, row_bytes;
  };
  static constexpr std::size_t kMaxSets = 1024;  // of a table
  static constexpr std::size_t kRows = 64;       // whose codes of a column are written together

  // Below 0, 0 or above 0: as nodes stand in order of what their splits ask.
  static int compare(const EnsembleView& model, std::uint32_t a, std::uint32_t b) {
    const auto by = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
    if (const int order = by(model.feature[a], model.feature[b])) return order;
    if (const int order = by(model.missing_left[a] != 0, model.missing_left[b] != 0)) return order;
    if (const int order = by(model.threshold[a], model.threshold[b])) return order;
    const std::span<const double> x = model.set_of(a), y = model.set_of(b);
    const std::size_t n = std::min(x.size(), y.size());
    for (std::size_t i = 0; i < n; ++i) {
      if (const int order = by(x[i], y[i])) return order;
    }
    return by(x.size(), y.size());
  }

  void add_table(const EnsembleView& model, const std::vector<std::uint32_t>& sets) {
    struct Cut {
      double threshold;
      std::uint32_t set;
    };
    check_interruption();
    Table table = {};
    table.feature = model.feature[sets[0]];
    table.first_column = n_columns_;
    table.n_sets = sets.size();
    table.row_bytes = (sets.size() + 7) / 8;
    table.first_threshold = thresholds_.size();
    table.first_kind = kinds_.size();
    table.first_bit = bits_.size();
    std::vector<Cut> cuts;
    std::string row(table.row_bytes, '\0');
    const auto flip = [&](std::uint32_t set) { row[set / 8] = static_cast<char>(row[set / 8] ^ 1 << set % 8); };
    std::unordered_map<std::size_t, std::uint32_t> known;  // kinds by hash: of two with the same, the first
    std::uint32_t n_kinds = 0;
    const auto add_piece = [&] {
      const auto [at, is_new] = known.try_emplace(std::hash<std::string>{}(row), n_kinds);
      const std::uint8_t* const same = bits_.data() + table.first_bit + at->second * table.row_bytes;
      if (!is_new && std::memcmp(same, row.data(), table.row_bytes) == 0) return kinds_.push_back(at->second);
      bits_.insert(bits_.end(), row.begin(), row.end());
      kinds_.push_back(n_kinds++);
    };
    for (std::uint32_t set = 0; set < sets.size(); ++set) {
      cuts.push_back({model.threshold[sets[set]], set});
      for (const double threshold : model.set_of(sets[set])) cuts.push_back({threshold, set});
    }
    std::sort(cuts.begin(), cuts.end(), [](const Cut& a, const Cut& b) { return a.threshold < b.threshold; });
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      if (i == 0 || cuts[i].threshold != cuts[i - 1].threshold) {
        check_interruption(i);
        add_piece();
        thresholds_.push_back(cuts[i].threshold);
      }
      flip(cuts[i].set);
    }
    add_piece();
    row.assign(table.row_bytes, '\0');
    for (std::uint32_t set = 0; set < sets.size(); ++set) {
      if (model.missing_left[sets[set]] == 0) flip(set);
    }
    add_piece();
    table.n_thresholds = thresholds_.size() - table.first_threshold;
    n_columns_ += sets.size();
    tables_.push_back(table);
  }

  // The codes of a value in the sets of a table.
  const std::uint8_t* bits(const Table& table, double x) const {
    const double* const thresholds = thresholds_.data() + table.first_threshold;
    std::size_t below = 0, n = table.n_thresholds;  // thresholds known to be below, and in question behind them
    while (n > 0) {
      const std::size_t half = (n + 1) / 2;
      below += thresholds[below + half - 1] < x ? half : 0;
      n -= half;
    }
    const std::size_t piece = std::isnan(x) ? table.n_thresholds + 1 : below;
    return bits_.data() + table.first_bit + kinds_[table.first_kind + piece] * table.row_bytes;
  }

  template <class Code>
  static constexpr int kOffset = std::is_signed_v<Code> ? -128 : 0;

  template <class Code>
  static void write_row(const Table& table, const std::uint8_t* bits, Code* out) {
    for (std::size_t set = 0; set < table.n_sets; set += 8) {
      const std::uint64_t spread = spread_bits(bits[set / 8]);
      const std::size_t n = std::min<std::size_t>(8, table.n_sets - set);
      if (sizeof(Code) == 1 && n == 8) {
        store_eight(spread, out + set);
      } else {
        for (std::size_t i = 0; i < n; ++i) out[set + i] = static_cast<Code>((spread >> 8 * i & 1) + kOffset<Code>);
      }
    }
  }

  // Eight rows of eight sets at a time.
  template <class Code>
  static void write_columns(const Table& table, const std::uint8_t* const* of_row, std::size_t n_rows, Code* out,
                            std::size_t column_stride) {
    for (std::size_t set = 0; set < table.n_sets; set += 8) {
      const std::size_t n_sets = std::min<std::size_t>(8, table.n_sets - set);
      for (std::size_t row = 0; row < n_rows; row += 8) {
        std::uint64_t square = 0;
        for (std::size_t i = 0; i < 8; ++i) square |= std::uint64_t{of_row[row + i][set / 8]} << 8 * i;
        square = transpose_bits(square);
        const std::size_t n = std::min<std::size_t>(8, n_rows - row);
        for (std::size_t s = 0; s < n_sets; ++s) {
          const std::uint64_t spread = spread_bits(static_cast<std::uint8_t>(square >> 8 * s));
          Code* const to = out + (set + s) * column_stride + row;
          if (sizeof(Code) == 1 && n == 8) {
            store_eight(spread, to);
          } else {
            for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<Code>((spread >> 8 * i & 1) + kOffset<Code>);
          }
        }
      }
    }
  }

  template <class Code>
  static void store_eight(std::uint64_t spread, Code* to) {
    if (std::is_signed_v<Code>) spread ^= 0x8080808080808080;
    std::memcpy(to, &spread, 8);
  }

  std::size_t first_column_, n_columns_ = 0;
  std::vector<Table> tables_;
  std::vector<double> thresholds_;
  std::vector<std::uint32_t> kinds_;
  std::vector<std::uint8_t> bits_;
};

}  // namespace rankwood
