// The careful parser of one SVMlight line: the grammar, and what is wrong with a line that does not follow it.
//
//   label [qid:ID] feature:value feature:value ... [# comment]
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decimal.hpp"
#include "svmlight_chunk.hpp"

namespace rankwood {

// Text from a file as it may stand in a message: in quotes, shortened, in plain characters.
inline std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string shown = "'";
  for (const char c : text.substr(0, kLongest)) {
    if (c >= ' ' && c <= '~') {
      shown += c;
    } else {
      constexpr char kHex[] = "0123456789abcdef";
      shown += {'\\', 'x', kHex[static_cast<unsigned char>(c) >> 4], kHex[c & 15]};
    }
  }
  return shown + (text.size() > kLongest ? "...'" : "'");
}

// Tokens of a line, up to its comment.
class Tokens {
 public:
  Tokens(const char* line, const char* end) : at_(line), end_(end) {}

  // The next token; empty at the end of the line and before a comment.
  std::string_view next() {
    while (at_ != end_ && is_blank(*at_)) ++at_;
    const char* const first = at_;
    while (at_ != end_ && !is_blank(*at_) && *at_ != '#') ++at_;
    return {first, static_cast<std::size_t>(at_ - first)};
  }

  // What follows the '#', when next() came upon one.
  std::string_view comment() const {
    return at_ == end_ ? std::string_view() : std::string_view(at_ + 1, static_cast<std::size_t>(end_ - at_ - 1));
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

  const char* at_;
  const char* end_;
};

// The number that the text starts with (no more than 2^30 is told apart), and how many digits it has.
inline std::pair<std::size_t, std::size_t> leading_id(std::string_view text) {
  std::size_t id = 0, size = 0;
  for (; size < text.size() && is_digit(text[size]); ++size) {
    id = std::min<std::size_t>(id * 10 + static_cast<std::size_t>(text[size] - '0'), std::size_t{1} << 30);
  }
  return {id, size};
}

// What depends on the whole input and not on the line.
struct LineRules {
  bool fixed_width = false;         // the number of features was given
  bool ignore_beyond = false;       // ids beyond it are skipped (else: a mistake)
  bool keeps_values = true;         // else lines are looked at for mistakes only
  std::string first_line_with_row;  // "line 1", where the layout was learned
};

class LineParser {
 public:
  LineParser(const SvmlightChunk& chunk, const LineRules& rules) : chunk_(chunk), rules_(rules) {}

  // Parse the line into the given row of the chunk. After `stop`, needs_width() or problem() says why.
  LineStatus parse(const char* line, const char* end, std::size_t row) {
    stopped_at_ = line;
    Tokens tokens(line, end);
    const std::string_view label = tokens.next();
    if (label.empty()) return LineStatus::no_row;
    RowText& text = chunk_.texts[row] = RowText{};
    if (!take_label(label, chunk_.labels[row])) return LineStatus::stop;
    std::string_view token = tokens.next();
    if (chunk_.has_qid) {
      if (!take_qid(token, text)) return LineStatus::stop;
      token = tokens.next();
    }
    float* const values = chunk_.X + row * chunk_.width;
    if (rules_.keeps_values) std::fill_n(values, chunk_.width, chunk_.absent);
    seen_.clear();
    for (; !token.empty(); token = tokens.next()) {
      if (!take_feature(token, values)) return LineStatus::stop;
    }
    if (!all_different()) return LineStatus::stop;
    const std::string_view comment = tokens.comment();
    text.comment = static_cast<std::uint32_t>(comment.empty() ? 0 : comment.data() - chunk_.window);
    text.comment_size = static_cast<std::uint32_t>(comment.size());
    return LineStatus::row;
  }

  const char* stopped_at() const { return stopped_at_; }
  bool needs_width() const { return needs_width_; }
  const std::string& problem() const { return problem_; }

 private:
  bool wrong(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  bool take_label(std::string_view token, double& label) {
    if (!parse_number(token.data(), token.data() + token.size(), label)) {
      return wrong("expected a number as label, got " + quoted(token));
    }
    return std::isfinite(label) || wrong("the label must be a finite number, got " + quoted(token));
  }

  bool take_qid(std::string_view token, RowText& text) {
    if (token.substr(0, 4) != "qid:" || token.size() == 4) {
      return wrong("expected 'qid:ID' after the label, as in " + rules_.first_line_with_row + ", got " +
                   (token.empty() ? "nothing" : quoted(token)));
    }
    text.qid = static_cast<std::uint32_t>(token.data() + 4 - chunk_.window);
    text.qid_size = static_cast<std::uint32_t>(token.size() - 4);
    return true;
  }

  bool take_feature(std::string_view token, float* values) {
    const std::size_t colon = token.find(':');
    const std::string_view id_text = token.substr(0, colon);
    if (colon == token.npos || id_text.empty() || !std::all_of(id_text.begin(), id_text.end(), is_digit)) {
      return wrong(no_feature(token, id_text));
    }
    const std::size_t id = leading_id(id_text).first;
    if (id < chunk_.first_id) {
      return wrong("feature id 0 in " + quoted(token) +
                   ", but ids start at 1; pass zero_based=True if they start at 0");
    }
    const std::string_view value_text = token.substr(colon + 1);
    float value = 0.0f;
    if (!parse_number(value_text.data(), value_text.data() + value_text.size(), value)) {
      return wrong("expected a number as value of feature " + std::string(id_text.substr(0, 20)) + ", got " +
                   (value_text.empty() ? "nothing" : quoted(value_text)));
    }
    const std::size_t feature = id - chunk_.first_id;
    if (feature >= chunk_.width && (rules_.keeps_values || rules_.fixed_width || feature >= kMaxFeatures)) {
      return beyond_width(feature, id_text);
    }
    if (rules_.keeps_values) values[feature] = value;
    seen_.push_back(static_cast<std::uint32_t>(feature));
    return true;
  }

  std::string no_feature(std::string_view token, std::string_view id_text) const {
    if (id_text == "qid" && !chunk_.has_qid) {
      return "got " + quoted(token) + " after the label, but " + rules_.first_line_with_row + " has no qid there";
    }
    if (id_text == "qid") return quoted(token) + " is a second query id: a line has one, right after the label";
    return "expected 'feature:value' with a whole number as feature, got " + quoted(token);
  }

  bool beyond_width(std::size_t feature, std::string_view id_text) {
    if (rules_.fixed_width) {
      return rules_.ignore_beyond || wrong("feature id " + std::string(id_text.substr(0, 20)) + " is beyond the " +
                                           std::to_string(chunk_.width) + " features of n_features");
    }
    if (feature >= kMaxFeatures) {
      return wrong("feature id " + std::string(id_text.substr(0, 20)) + " is larger than " +
                   std::to_string(kMaxFeatures));
    }
    needs_width_ = true;
    return false;
  }

  // Ids in increasing order are. Others have to be sorted to tell.
  bool all_different() {
    if (std::adjacent_find(seen_.begin(), seen_.end(), std::greater_equal<>()) == seen_.end()) return true;
    std::sort(seen_.begin(), seen_.end());
    const auto twice = std::adjacent_find(seen_.begin(), seen_.end());
    return twice == seen_.end() || wrong("feature " + std::to_string(*twice + chunk_.first_id) + " appears twice");
  }

  const SvmlightChunk& chunk_;
  const LineRules& rules_;
  std::vector<std::uint32_t> seen_;  // features of the line
  const char* stopped_at_ = nullptr;
  bool needs_width_ = false;
  std::string problem_;
};

// What begins at the start of a line.
struct LineStart {
  bool has_row;
  const char* next;  // where the next line starts
};
inline LineStart look_at_line(const char* line, const char* end) {
  while (*line == ' ' || *line == '\t' || *line == '\r') ++line;  // ends at the line feed at the latest
  if (*line == '\n') return {false, line + 1};
  const auto* line_end = static_cast<const char*>(std::memchr(line, '\n', static_cast<std::size_t>(end - line)));
  return {*line != '#', line_end + 1};
}

// Call found(feature) for every feature number in a line, in order, whether its value is right or not; those that no
// data has are left aside.
template <class Found>
void for_each_feature(const char* line, const char* line_end, std::size_t first_id, const Found& found) {
  Tokens tokens(line, line_end);
  tokens.next();
  for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
    const auto [id, size] = leading_id(token);
    if (size == 0 || token[size] != ':' || id < first_id) continue;  // token[size]: at worst the blank after it
    if (id - first_id < kMaxFeatures) found(id - first_id);
  }
}

// The number of features that some lines ask for, and the first line that asks for so many; null when none does.
struct LineWidth {
  std::size_t width = 0;
  const char* line = nullptr;
};
inline LineWidth largest_width(const char* begin, const char* end, std::size_t first_id) {
  LineWidth largest;
  while (begin != end) {
    const LineStart start = look_at_line(begin, end);
    if (start.has_row) {
      for_each_feature(begin, start.next - 1, first_id, [&](std::size_t feature) {
        if (feature >= largest.width) largest = {feature + 1, begin};
      });
    }
    begin = start.next;
  }
  return largest;
}

}  // namespace rankwood
