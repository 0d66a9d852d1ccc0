// The texts in SVMlight lines: feature ids, query ids and document ids.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace rankwood {

// What announces a feature in a line: " 17:".
inline std::string announce_feature(std::size_t id) {
  std::string text = std::to_string(id);
  text.insert(text.begin(), ' ');
  text += ':';
  return text;
}

// A list of strings in one piece of memory.
struct TextList {
  std::string text;
  std::vector<std::size_t> ends;

  std::size_t size() const { return ends.size(); }
  std::string_view operator[](std::size_t i) const {
    const std::size_t start = i == 0 ? 0 : ends[i - 1];
    return std::string_view(text).substr(start, ends[i] - start);
  }
  void add(std::string_view value) {
    text += value;
    ends.push_back(text.size());
  }
};

// Runs of rows with the same query id.
class QueryRuns {
 public:
  void add_row(std::string_view id) {
    if (!lengths_.empty() && ids_[ids_.size() - 1] == id) {
      ++lengths_.back();
      return;
    }
    ids_.add(id);
    lengths_.push_back(1);
    if (all_numbers_) all_numbers_ = add_number(id);
  }

  const TextList& ids() const { return ids_; }
  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  // The ids as numbers, when each of them is written as a number would be: "7", not "007" or "+7".
  bool all_numbers() const { return all_numbers_; }
  const std::vector<std::int64_t>& numbers() const { return numbers_; }

 private:
  bool add_number(std::string_view id) {
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    if (error != std::errc() || stop != id.data() + id.size() || std::to_string(number) != id) return false;
    numbers_.push_back(number);
    return true;
  }

  TextList ids_;
  std::vector<std::int64_t> lengths_, numbers_;
  bool all_numbers_ = true;
};

// The document id in a comment: what follows "docid =" (LETOR writes "#docid = GX008-86 inc = 1 prob = 0.08"), or
// the whole of it.
inline std::string_view document_id(std::string_view comment) {
  constexpr std::string_view kBlanks = " \t\r";
  const auto trimmed = [kBlanks](std::string_view text) {
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == text.npos) return std::string_view();
    return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
  };
  comment = trimmed(comment);
  if (comment.substr(0, 5) != "docid") return comment;
  std::string_view rest = trimmed(comment.substr(5));
  if (rest.empty() || rest.front() != '=') return comment;
  rest = trimmed(rest.substr(1));
  return rest.substr(0, rest.find_first_of(kBlanks));
}

// Document ids, as long as there are any.
class DocumentIds {
 public:
  void add_row(std::string_view id, std::size_t row) {
    if (ids_.size() == 0 && id.empty()) return;
    ids_.ends.resize(row, 0);  // the rows before the first id
    ids_.add(id);
  }
  bool any() const { return ids_.size() != 0; }
  const TextList& ids() const { return ids_; }

 private:
  TextList ids_;
};

}  // namespace rankwood
