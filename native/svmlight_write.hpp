// Writing SVMlight text: every number in the shortest form that reads back as the same one.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "interruption.hpp"
#include "parallel.hpp"
#include "svmlight_texts.hpp"

namespace rankwood {

// Texts in one piece of memory: text i is text[ends[i - 1], ends[i]).
struct TextSlices {
  std::string_view text;
  const std::int64_t* ends = nullptr;

  std::string_view operator[](std::size_t i) const {
    const std::int64_t start = i == 0 ? 0 : ends[i - 1];
    return text.substr(static_cast<std::size_t>(start), static_cast<std::size_t>(ends[i] - start));
  }
};

struct SvmlightTable {
  std::size_t n_rows, n_features;
  const float* X;
  const double* labels;
  const std::int64_t* query;  // number of the query of every row
  TextSlices query_ids;       // of every query
  TextSlices comments;        // of every row, when ends is not null
  std::size_t first_id;       // of the first feature: 1, or 0
  bool leaves_out;            // values equal to `absent` are not written
  float absent;
};

inline constexpr std::size_t kLongestNumber = 32;

// The shortest text that reads back as `value`; plain decimals where they are about as short as exponents.
template <class T>
char* format_number(char* to, T value) {
  const auto put = [to](std::string_view text) {
    return static_cast<char*>(std::memcpy(to, text.data(), text.size())) + text.size();
  };
  if (std::isnan(value)) return put("NaN");
  if (std::isinf(value)) return put(value < 0 ? "-inf" : "inf");
  const T size = std::abs(value);
  if (size < T(1e7) && size == std::trunc(size) && !(size == 0 && std::signbit(value))) {
    return std::to_chars(to, to + kLongestNumber, static_cast<int>(value)).ptr;
  }
  if (size >= T(1e-5) && size < T(1e7)) {
    return std::to_chars(to, to + kLongestNumber, value, std::chars_format::fixed).ptr;
  }
  return std::to_chars(to, to + kLongestNumber, value).ptr;
}

class SvmlightFormatter {
 public:
  explicit SvmlightFormatter(const SvmlightTable& table) : table_(table), ids_(table.n_features) {
    for (std::size_t f = 0; f < ids_.size(); ++f) ids_[f] = announce_feature(f + table.first_id);
  }

  // The lines of rows [begin, end), in pieces that follow each other.
  std::vector<std::string> format(int n_threads) const {
    const std::size_t n_pieces =
        std::clamp<std::size_t>(table_.n_rows / 16, 1, n_threads > 1 ? 4 * static_cast<std::size_t>(n_threads) : 1);
    std::vector<std::string> pieces(n_pieces);
    parallel_for(n_pieces, n_threads, [&](std::size_t i) {
      pieces[i] = format_rows(table_.n_rows * i / n_pieces, table_.n_rows * (i + 1) / n_pieces);
    });
    return pieces;
  }

 private:
  std::string format_rows(std::size_t begin, std::size_t end) const {
    std::string out;
    for (std::size_t row = begin; row < end; ++row) {
      check_interruption();
      const std::string_view query_id = table_.query_ids[static_cast<std::size_t>(table_.query[row])];
      const std::string_view comment = table_.comments.ends == nullptr ? std::string_view() : table_.comments[row];
      const std::size_t used = out.size();
      const std::size_t most =
          2 * kLongestNumber + query_id.size() + comment.size() + table_.n_features * (kLongestNumber + 10);
      if (out.capacity() < used + most) out.reserve(2 * used + most);
      out.resize(used + most);
      char* const start = out.data() + used;
      out.resize(used + static_cast<std::size_t>(format_row(start, row, query_id, comment) - start));
    }
    return out;
  }

  char* format_row(char* to, std::size_t row, std::string_view query_id, std::string_view comment) const {
    const auto put = [&to](std::string_view text) { to = std::copy(text.begin(), text.end(), to); };
    to = format_number(to, table_.labels[row]);
    put(" qid:");
    put(query_id);
    const float* const x = table_.X + row * table_.n_features;
    for (std::size_t f = 0; f < table_.n_features; ++f) {
      if (table_.leaves_out && (x[f] == table_.absent || (std::isnan(x[f]) && std::isnan(table_.absent)))) continue;
      put(ids_[f]);
      to = format_number(to, x[f]);
    }
    if (!comment.empty()) put(" # ");
    put(comment);
    put("\n");
    return to;
  }

  const SvmlightTable& table_;
  std::vector<std::string> ids_;
};

}  // namespace rankwood
