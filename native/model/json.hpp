// JSON as it stands in model files: read strictly, as anybody may have written it.
//
// A text is checked as a whole first, without recursion. What comes of it are slices of the text, which are looked into
// by for_each_entry and for_each_item, level by level; nothing is built that could be larger than the text.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "decimal.hpp"

namespace rankwood {

struct JsonValue {
  enum Kind { null, boolean, integer, real, string, array, object };
  Kind kind;
  std::string_view text;  // its characters, as they were written

  bool is_true() const { return text == "true"; }
};

// Bytes of the character at `i` in UTF-8; 0 when that is none. Surrogates are none, nor what could be written shorter.
inline std::size_t utf8_size(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(at < text.size() ? text[at] : 0); };
  const std::uint8_t first = byte(i);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const std::uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const std::uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(i + 1) < least || byte(i + 1) > most) return 0;
  for (std::size_t k = 2; k < size; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  }
  return size;
}

inline bool is_utf8(std::string_view text) {
  for (std::size_t i = 0, size; i < text.size(); i += size) {
    size = utf8_size(text, i);
    if (size == 0) return false;
  }
  return true;
}

// The text with U+FFFD for every byte that is not UTF-8.
inline std::string as_utf8(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = utf8_size(text, i);
    out += size == 0 ? "\xef\xbf\xbd" : text.substr(i, size);
    i += size == 0 ? 1 : size;
  }
  return out;
}

class JsonScanner {
 public:
  static constexpr std::size_t kMaxDepth = 1000;
  static constexpr std::size_t kMaxDigits = 4300;  // of a whole number; what Python takes

  // `what` names the text in errors. Half of a pair of surrogates, as \ud800, may stand in strings where `halves`.
  JsonScanner(std::string_view text, std::string_view what, bool halves) : text_(text), what_(what), halves_(halves) {}

  // The text as one value. Throws std::invalid_argument unless it is one.
  JsonValue whole() {
    skip_space();
    const JsonValue value = next();
    skip_space();
    if (at_ != text_.size()) fail("there is more behind its end");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw std::invalid_argument("the file is damaged: " + std::string(what_) + " is not readable JSON: " + why +
                                " at byte " + std::to_string(at_));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
  }

  JsonValue next() {
    const std::size_t begin = at_;
    JsonValue::Kind kind = JsonValue::null;
    for (bool outermost = true;; outermost = false) {  // a value, or the beginning of one, at a time
      skip_space();
      const char c = peek();
      if (c == '{' || c == '[') {
        if (open_.size() == kMaxDepth) fail("it is nested too deeply");
        if (outermost) kind = c == '{' ? JsonValue::object : JsonValue::array;
        open_.push_back(c);
        ++at_;
        skip_space();
        if (peek() != closing()) {
          if (c == '{') skip_key();
          continue;
        }
        ++at_;
        open_.pop_back();
      } else {
        const JsonValue::Kind found = skip_scalar();
        if (outermost) kind = found;
      }
      for (;;) {  // a value has ended
        if (open_.empty()) return {kind, text_.substr(begin, at_ - begin)};
        skip_space();
        if (peek() == ',') {
          ++at_;
          skip_space();
          if (open_.back() == '{') skip_key();
          break;
        }
        if (peek() != closing()) fail(std::string("there is no comma or ") + closing());
        ++at_;
        open_.pop_back();
      }
    }
  }

  char closing() const { return open_.back() == '{' ? '}' : ']'; }

  void skip_key() {
    if (peek() != '"') fail("there is no name");
    skip_string();
    skip_space();
    if (peek() != ':') fail("there is no colon");
    ++at_;
  }

  JsonValue::Kind skip_scalar() {
    if (peek() == '"') return skip_string(), JsonValue::string;
    for (const char* word : {"NaN", "Infinity", "-Infinity"}) {
      if (skip_word(word)) fail(std::string(word) + " is not JSON");
    }
    if (skip_word("null")) return JsonValue::null;
    if (skip_word("true") || skip_word("false")) return JsonValue::boolean;
    return skip_number();
  }

  bool skip_word(std::string_view word) {
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }

  std::size_t skip_digits() {
    const std::size_t begin = at_;
    while (is_digit(peek())) ++at_;
    if (at_ == begin) fail("there is no value");
    return at_ - begin;
  }

  JsonValue::Kind skip_number() {
    if (peek() == '-') ++at_;
    const std::size_t begin = at_;
    const bool zero = peek() == '0';
    const std::size_t n_digits = skip_digits();
    if (zero && n_digits > 1) fail("a number begins with 0");
    JsonValue::Kind kind = JsonValue::integer;
    if (peek() == '.') {
      kind = JsonValue::real;
      ++at_;
      skip_digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      kind = JsonValue::real;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      skip_digits();
    }
    double value = 0.0;
    if (kind == JsonValue::integer) {
      if (n_digits > kMaxDigits) fail("a number has more than " + std::to_string(kMaxDigits) + " digits");
    } else if (!parse_unsigned(text_.data() + begin, text_.data() + at_, value) || std::isinf(value)) {
      fail("a number is too large");
    }
    return kind;
  }

  void skip_string() {
    ++at_;
    bool first_half = false;  // whether the first half of a pair has just been read
    for (;;) {
      if (at_ == text_.size()) fail("a string has no end");
      const auto c = static_cast<unsigned char>(text_[at_]);
      std::uint32_t unit = 0;
      if (c == '\\') {
        unit = skip_escape();
      } else if (c < 0x20) {
        fail("a string holds a control character");
      } else {
        ++at_;
      }
      const bool second_half = unit >= 0xdc00 && unit < 0xe000;
      if (first_half != second_half && !halves_) fail("a string holds half of a character");
      first_half = unit >= 0xd800 && unit < 0xdc00;
      if (c == '"') return;
    }
  }

  // An escape; returns its UTF-16 unit if it is given by number.
  std::uint32_t skip_escape() {
    ++at_;
    const char c = peek();
    if (c != 'u') {
      if (c == '\0' || std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) fail("an escape is unknown");
      ++at_;
      return 0;
    }
    std::uint32_t unit = 0;
    const char* first = text_.data() + at_ + 1;
    const char* last = first + (text_.size() - at_ > 4 ? 4 : 0);
    if (std::from_chars(first, last, unit, 16).ptr != last || first == last) fail("an escape is unknown");
    at_ += 5;
    return unit;
  }

  std::string_view text_, what_;
  bool halves_;
  std::size_t at_ = 0;
  std::string open_;  // brackets that are not closed yet
};

// The characters of a string. Half of a pair of surrogates is kept, in the form that UTF-8 would give it.
inline std::string text_of(const JsonValue& value) {
  const std::string_view text = value.text.substr(1, value.text.size() - 2);
  std::string out;
  out.reserve(text.size());
  const auto unit_at = [&](std::size_t i) {  // of the escape \uXXXX there; 0 when there is none
    std::uint32_t unit = 0;
    if (text.substr(i, 2) == "\\u") std::from_chars(text.data() + i + 2, text.data() + i + 6, unit, 16);
    return unit;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char c = text[i + 1];
    if (c != 'u') {
      static constexpr std::string_view from = "bfnrt", to = "\b\f\n\r\t";
      const std::size_t at = from.find(c);
      out += at == std::string_view::npos ? c : to[at];
      ++i;
      continue;
    }
    std::uint32_t code = unit_at(i);
    i += 5;
    const std::uint32_t second = unit_at(i + 1);
    if (code >= 0xd800 && code < 0xdc00 && second >= 0xdc00 && second < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
      i += 6;
    }
    const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
      put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
    } else {
      put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f)), put(0x80 | (code >> 6 & 0x3f)),
          put(0x80 | (code & 0x3f));
    }
  }
  return out;
}

// The parts of an array or object that was checked: walked by brackets and quotes alone.
class JsonParts {
 public:
  explicit JsonParts(const JsonValue& value) : text_(value.text.substr(1, value.text.size() - 2)) {}

  // The next value, or the name of one; false behind the last.
  bool next(JsonValue& value) {
    while (at_ < text_.size() && is_between(text_[at_])) ++at_;
    if (at_ == text_.size()) return false;
    const std::size_t begin = at_;
    switch (text_[at_]) {
      case '"':
        value.kind = JsonValue::string;
        skip_string();
        break;
      case '{':
      case '[':
        value.kind = text_[at_] == '{' ? JsonValue::object : JsonValue::array;
        skip_nested();
        break;
      default:
        while (at_ < text_.size() && !is_between(text_[at_])) ++at_;
        value.kind = kind_of(text_.substr(begin, at_ - begin));
    }
    value.text = text_.substr(begin, at_ - begin);
    return true;
  }

 private:
  static bool is_between(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' || c == ':'; }

  static JsonValue::Kind kind_of(std::string_view scalar) {
    if (scalar[0] == 'n') return JsonValue::null;
    if (scalar[0] == 't' || scalar[0] == 'f') return JsonValue::boolean;
    return scalar.find_first_of(".eE") == std::string_view::npos ? JsonValue::integer : JsonValue::real;
  }

  void skip_string() {
    for (++at_; text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    ++at_;
  }

  void skip_nested() {
    std::size_t depth = 0;
    do {
      const char c = text_[at_];
      if (c == '"') {
        skip_string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at_;
    } while (depth > 0);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Call task(name, value) for the entries of an object, in order.
template <class Task>
void for_each_entry(const JsonValue& object, const Task& task) {
  JsonParts parts(object);
  for (JsonValue name, value; parts.next(name) && parts.next(value);) task(text_of(name), value);
}

// Call task(value) for the values of an array, in order.
template <class Task>
void for_each_item(const JsonValue& array, const Task& task) {
  JsonParts parts(array);
  for (JsonValue value; parts.next(value);) task(value);
}

// A whole number, unless it is none or does not fit.
inline std::optional<std::int64_t> whole_number(const JsonValue& value) {
  std::int64_t number = 0;
  const char* last = value.text.data() + value.text.size();
  if (value.kind != JsonValue::integer) return {};
  const auto [stop, error] = std::from_chars(value.text.data(), last, number);
  if (stop != last || error != std::errc()) return {};
  return number;
}

// A number of either kind as the nearest double, which may be infinite.
inline std::optional<double> any_number(const JsonValue& value) {
  double number = 0.0;
  if (value.kind != JsonValue::integer && value.kind != JsonValue::real) return {};
  if (!parse_number(value.text.data(), value.text.data() + value.text.size(), number)) return {};
  return number;
}

// Any text from a file on one line, cut to 80 characters.
inline std::string one_line(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string line;
  std::size_t n_characters = 0;
  for (const char c : text.substr(0, 16 * kMost)) {
    const bool is_space = c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
    if (is_space && (line.empty() || line.back() == ' ')) continue;
    n_characters += (static_cast<std::uint8_t>(c) & 0xc0) != 0x80 ? 1 : 0;
    if (n_characters > kMost) break;
    line += is_space ? ' ' : c;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (n_characters <= kMost) return as_utf8(line);
  for (std::size_t n = 0; n < 3 && !line.empty(); line.pop_back()) {  // to make room for dots
    n += (static_cast<std::uint8_t>(line.back()) & 0xc0) != 0x80 ? 1 : 0;
  }
  return as_utf8(line) + "...";
}

// A value as Python would show it, more or less; strings in quotes if asked for.
inline std::string shown(const JsonValue& value, bool quotes = false) {
  switch (value.kind) {
    case JsonValue::null:
      return "None";
    case JsonValue::boolean:
      return value.is_true() ? "True" : "False";
    case JsonValue::string:
      return quotes ? one_line("'" + text_of(value) + "'") : one_line(text_of(value));
    default:
      return one_line(value.text);
  }
}

}  // namespace rankwood
