// Rows of numbers in JSON, [[1.5, null], [2, 0]], read to a matrix: what nearly every request to a server consists of.
// Anything else is left to a reader of all JSON, which also says what is wrong.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "decimal.hpp"

namespace rankwood {

struct JsonRows {
  std::vector<double> values;      // row after row; NaN for null
  std::size_t first = 0, end = 0;  // where the list of rows stands in the text
};

class JsonRowsReader {
 public:
  JsonRowsReader(const char* text, std::size_t size) : begin_(text), at_(text), end_(text + size) {}

  // Reads the first list in the text that begins with a list, if it is rows of `width` finite numbers or nulls, at
  // least one and at most `max_rows`. False if it is anything else.
  bool read(std::size_t width, std::size_t max_rows, JsonRows& rows) {
    if (!find_rows() || width == 0) return false;
    rows.first = static_cast<std::size_t>(at_ - begin_);
    ++at_;
    std::size_t n_rows = 0;
    do {
      if (++n_rows > max_rows || !read_row(width, rows.values)) return false;
    } while (next_is(','));
    if (!next_is(']')) return false;
    rows.end = static_cast<std::size_t>(at_ - begin_);
    return true;
  }

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  // Steps over space and, if it comes next, over `c`.
  bool next_is(char c) {
    skip_space();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  // Goes to the first '[' that a '[' follows.
  bool find_rows() {
    while (at_ != end_) {
      const void* found = std::memchr(at_, '[', static_cast<std::size_t>(end_ - at_));
      if (found == nullptr) return false;
      const char* const outer = static_cast<const char*>(found);
      at_ = outer + 1;
      skip_space();
      if (at_ != end_ && *at_ == '[') {
        at_ = outer;
        return true;
      }
    }
    return false;
  }

  bool read_row(std::size_t width, std::vector<double>& values) {
    if (!next_is('[')) return false;
    for (std::size_t i = 0; i < width; ++i) {
      double value;
      if ((i != 0 && !next_is(',')) || !read_value(value)) return false;
      values.push_back(value);
    }
    return next_is(']');
  }

  bool read_value(double& value) {
    skip_space();
    if (end_ - at_ >= 4 && std::memcmp(at_, "null", 4) == 0) {
      at_ += 4;
      value = std::numeric_limits<double>::quiet_NaN();
      return true;
    }
    const bool negative = at_ != end_ && *at_ == '-';
    at_ += negative;
    const char* const first = at_;
    // JSON is stricter than from_chars: no leading zeros, digits on both sides of the point.
    if (at_ != end_ && *at_ == '0') {
      ++at_;
    } else if (!step_over_digits()) {
      return false;
    }
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      if (!step_over_digits()) return false;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!step_over_digits()) return false;
    }
    if (!parse_unsigned(first, at_, value) || value > std::numeric_limits<double>::max()) return false;
    if (negative) value = -value;
    return true;
  }

  bool step_over_digits() {
    const char* const first = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != first;
  }

  const char *begin_, *at_, *end_;
};

}  // namespace rankwood
