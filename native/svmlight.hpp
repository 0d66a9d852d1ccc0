// Reading SVMlight text, a window of whole lines at a time, on several threads, straight into the final matrix.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interruption.hpp"
#include "isa/kernels.hpp"
#include "matrix_buffer.hpp"
#include "parallel.hpp"
#include "svmlight_chunk.hpp"
#include "svmlight_line.hpp"
#include "svmlight_texts.hpp"

namespace rankwood {

struct SvmlightOptions {
  std::size_t n_features = 0;
  bool fixed_width = false;    // n_features is given; else the largest id in the text decides
  bool ignore_beyond = false;  // skip features beyond n_features; else they are a mistake
  float absent = 0.0f;
  bool zero_based = false;
  bool document_ids = true;
  std::size_t max_bytes = std::numeric_limits<std::size_t>::max();  // the matrix may not be larger
  std::string max_text;                                             // what that limit is
  std::size_t max_rows = std::numeric_limits<std::size_t>::max();   // parsed at a time
  // For tests: the smallest piece of text that a thread takes, and whether the fast parser is left aside.
  std::size_t chunk_bytes = std::size_t{1} << 18;
  bool careful_only = false;
};

// What has been read.
struct SvmlightRows {
  MatrixBuffer X;
  std::size_t n_rows = 0, width = 0;
  std::vector<double> labels;
  QueryRuns queries;
  DocumentIds documents;
};

// Whole lines, and how many of them have a row: the others are blank, or comments.
struct LineCount {
  std::size_t n_lines = 0, n_rows = 0;
  const char* end;  // where they end
};
inline LineCount count_lines(const char* begin, const char* end,
                             std::size_t most_rows = std::numeric_limits<std::size_t>::max()) {
  LineCount count{.end = begin};
  while (count.end != end && count.n_rows != most_rows) {
    const LineStart start = look_at_line(count.end, end);
    ++count.n_lines;
    count.n_rows += start.has_row;
    count.end = start.next;
  }
  return count;
}

class SvmlightReader {
 public:
  explicit SvmlightReader(SvmlightOptions options) : options_(std::move(options)) {
    rules_.fixed_width = options_.fixed_width;
    rules_.ignore_beyond = options_.ignore_beyond;
    set_width(options_.n_features);
  }

  std::size_t n_rows() const { return rows_.n_rows; }
  bool has_qid() const { return has_qid_; }

  // Lines are numbered from 1 again.
  void start_file() {
    n_lines_ = 0;
    at_start_ = true;
    if (knows_layout_) rules_.first_line_with_row = "the lines before this file";
    widest_line_ = 0;
  }

  // Parse the lines that are complete in text[0, size), all of them when `last`, but no more than have max_rows; return
  // how many bytes they are (the line feed that the last line of a file may lack counts).
  // kTextPadding bytes before and after are readable, and text[size] can be written.
  // `text_left` estimates how many bytes are still to come. Throws std::invalid_argument, naming the first line
  // that is wrong, whatever the number of threads; nothing more can be read then.
  std::size_t parse(char* text, std::size_t size, bool last, std::size_t text_left, int n_threads) {
    size = complete_lines(text, size, last);
    if (size == 0) return 0;
    if (std::exchange(at_start_, false)) blank_byte_order_mark(text, size);
    if (size > options_.max_rows) {
      size = static_cast<std::size_t>(count_lines(text, text + size, options_.max_rows).end - text);
    }
    split(text, size, n_threads);
    const std::size_t n_lines = number_rows(n_threads);
    if (n_new_rows_ != 0) {
      if (!knows_layout_) learn_layout(text, size);
      make_room(size, text_left, n_threads);
      parse_chunks(n_threads);
      add_texts(text);
    }
    n_lines_ += n_lines;
    return size;
  }

  // Hand over what has been read. Reading can go on, with the same features.
  SvmlightRows take() {
    rows_.labels.resize(rows_.n_rows);
    rows_.width = width_;
    rows_.X.shrink(rows_.n_rows * width_ * sizeof(float));
    return std::exchange(rows_, SvmlightRows{});
  }

 private:
  struct Chunk {
    const char* begin;
    const char* end;
    LineCount count = {};
    std::size_t first_row = 0;  // counted from the start of the matrix
    bool needs_width = false;
    const char* stopped_at = nullptr;
    std::string problem = {};
  };

  static std::size_t complete_lines(char* text, std::size_t size, bool last) {
    if (last && size != 0 && text[size - 1] != '\n') text[size++] = '\n';
    while (size != 0 && text[size - 1] != '\n') --size;
    return size;
  }

  static void blank_byte_order_mark(char* text, std::size_t size) {
    if (std::string_view(text, size).substr(0, 3) == "\xef\xbb\xbf") std::memset(text, ' ', 3);
  }

  // The first line with a row decides whether lines have query ids.
  void learn_layout(const char* text, std::size_t size) {
    const char* const end = text + size;
    for (std::size_t line = n_lines_ + 1; text != end; ++line) {
      const LineStart start = look_at_line(text, end);
      if (start.has_row) {
        Tokens tokens(text, start.next - 1);
        tokens.next();
        has_qid_ = tokens.next().substr(0, 4) == "qid:";
        knows_layout_ = true;
        rules_.first_line_with_row = "line " + std::to_string(line);
        return;
      }
      text = start.next;
    }
  }

  // Several per thread, and some for one thread, too: between them it can be interrupted.
  void split(const char* text, std::size_t size, int n_threads) {
    window_ = text;
    const std::size_t most = 8 * static_cast<std::size_t>(std::max(n_threads, 4));
    const std::size_t n_chunks = std::clamp<std::size_t>(size / options_.chunk_bytes, 1, most);
    const char* const end = text + size;
    chunks_.clear();
    for (std::size_t i = 1; i <= n_chunks && text != end; ++i) {
      const char* cut = std::max(text, end - size + size / n_chunks * i);
      cut = i == n_chunks
                ? end
                : static_cast<const char*>(std::memchr(cut - 1, '\n', static_cast<std::size_t>(end - cut) + 1)) + 1;
      if (cut != text) chunks_.push_back(Chunk{.begin = text, .end = cut});
      text = cut;
    }
  }

  // Where the rows of each chunk go. Returns the number of lines.
  std::size_t number_rows(int n_threads) {
    parallel_for(chunks_.size(), n_threads,
                 [this](std::size_t i) { chunks_[i].count = count_lines(chunks_[i].begin, chunks_[i].end); });
    std::size_t n_lines = 0;
    n_new_rows_ = 0;
    for (Chunk& chunk : chunks_) {
      chunk.first_row = rows_.n_rows + n_new_rows_;
      n_new_rows_ += chunk.count.n_rows;
      n_lines += chunk.count.n_lines;
    }
    return n_lines;
  }

  void make_room(std::size_t size, std::size_t text_left, int n_threads) {
    rows_still_ = static_cast<std::size_t>(static_cast<double>(n_new_rows_) / static_cast<double>(size) *
                                           static_cast<double>(text_left) * 1.02);
    texts_.resize(n_new_rows_);
    rows_.labels.resize(rows_.n_rows + n_new_rows_);
    if (!options_.fixed_width && width_ == 0) {
      all_chunks();
      widen(n_threads);
    } else {
      reserve(width_);
    }
  }

  // Room for the window's rows, when they have so many features.
  void reserve(std::size_t width) {
    const std::size_t n_rows = rows_.n_rows + n_new_rows_, row_bytes = width * sizeof(float);
    if (!fits(n_rows, width)) refuse_size();
    rows_.X.reserve(n_rows * row_bytes, (n_rows + rows_still_) * row_bytes);
  }

  bool fits(std::size_t n_rows, std::size_t width) const {
    return width <= options_.max_bytes / sizeof(float) / n_rows;
  }

  // The rows up to some line of the window make the matrix too large, unless a line before that one is wrong: tell
  // about the first of them. It is the same line whatever the windows and chunks.
  [[noreturn]] void refuse_size() const {
    LineRules rules = rules_;
    rules.keeps_values = false;
    double label = 0.0;
    RowText text;
    SvmlightChunk lines{};
    lines.window = window_;
    lines.has_qid = has_qid_;
    lines.first_id = first_id();
    lines.width = options_.fixed_width ? width_ : 0;
    lines.labels = &label;
    lines.texts = &text;
    LineParser careful(lines, rules);
    std::size_t n_rows = rows_.n_rows, width = width_, number = n_lines_, widest_line = widest_line_;
    for (const char *line = window_, *end = chunks_.back().end; line != end; ++number) {
      const LineStart start = look_at_line(line, end);
      if (careful.parse(line, start.next - 1, 0) == LineStatus::stop) refuse(number + 1, careful.problem());
      n_rows += start.has_row;
      if (start.has_row && !fits(n_rows, width)) refuse(number + 1, rows_of_width(width, widest_line));
      if (start.has_row && !options_.fixed_width) {
        for_each_feature(line, start.next - 1, first_id(), [&](std::size_t feature) {
          if (!fits(n_rows, feature + 1)) {
            refuse(number + 1, "feature id " + std::to_string(feature + first_id()) +
                                   " would make the matrix larger than " + options_.max_text);
          }
          if (feature >= width) {
            width = feature + 1;
            widest_line = number + 1;
          }
        });
      }
      line = start.next;
    }
    throw std::logic_error("no line of SVMlight text makes the matrix too large");
  }

  std::string rows_of_width(std::size_t width, std::size_t widest_line) const {
    const std::string from = " (the largest feature id is in line " + std::to_string(widest_line) + ")";
    return "with this row, " + std::to_string(width) + " features make the matrix larger than " + options_.max_text +
           (widest_line == 0 ? "" : from);
  }

  [[noreturn]] static void refuse(std::size_t line, const std::string& problem) {
    throw std::invalid_argument("line " + std::to_string(line) + ": " + problem);
  }

  std::size_t first_id() const { return options_.zero_based ? 0 : 1; }

  void all_chunks() {
    todo_.resize(chunks_.size());
    for (std::size_t i = 0; i < todo_.size(); ++i) todo_[i] = i;
  }

  // Parse all chunks. Those that meet a larger feature are parsed again when the matrix has been made wider.
  void parse_chunks(int n_threads) {
    for (all_chunks(); !todo_.empty();) {
      parallel_for(todo_.size(), n_threads, [&](std::size_t i) { parse_chunk(chunks_[todo_[i]]); });
      todo_.clear();
      for (std::size_t i = 0; i < chunks_.size() && chunks_[i].problem.empty(); ++i) {
        if (chunks_[i].needs_width) todo_.push_back(i);
      }
      if (!todo_.empty()) widen(n_threads);
    }
    for (const Chunk& chunk : chunks_) {
      if (!chunk.problem.empty()) refuse(line_number(chunk.stopped_at), chunk.problem);
    }
  }

  std::size_t line_number(const char* line) const { return n_lines_ + count_lines(window_, line).n_lines + 1; }

  void parse_chunk(Chunk& chunk) {
    SvmlightChunk lines{
        .window = window_,
        .begin = chunk.begin,
        .end = chunk.end,
        .has_qid = has_qid_,
        .absent = options_.absent,
        .first_id = first_id(),
        .width = width_,
        .ids = ids_.data(),
        .X = rows_.X.data() + chunk.first_row * width_,
        .labels = rows_.labels.data() + chunk.first_row,
        .texts = texts_.data() + (chunk.first_row - rows_.n_rows),
        .careful_line = [](void* parser, const char* line, const char* end,
                           std::size_t row) { return static_cast<LineParser*>(parser)->parse(line, end, row); },
        .careful_value = [](const char* first, const char* last,
                            float* value) { return parse_number(first, last, *value); },
        .context = nullptr,
    };
    LineParser careful(lines, rules_);
    lines.context = &careful;
    const bool fast = !options_.careful_only && width_ <= kMaxIdTexts;
    const std::size_t n_rows = fast ? kernels().parse_svmlight_rows(lines) : careful_rows(lines, careful);
    chunk.needs_width = careful.needs_width();
    chunk.stopped_at = careful.stopped_at();
    chunk.problem = careful.problem();
    if (n_rows != chunk.count.n_rows && !chunk.needs_width && chunk.problem.empty()) {
      throw std::logic_error("rows of SVMlight text were miscounted");
    }
  }

  static std::size_t careful_rows(const SvmlightChunk& lines, LineParser& careful) {
    std::size_t row = 0;
    for (const char* line = lines.begin; line != lines.end;) {
      check_interruption();
      const char* const end =
          static_cast<const char*>(std::memchr(line, '\n', static_cast<std::size_t>(lines.end - line)));
      const LineStatus status = careful.parse(line, end, row);
      if (status == LineStatus::stop) break;
      row += status == LineStatus::row;
      line = end + 1;
    }
    return row;
  }

  // Make the matrix as wide as the chunks to do need it. Rows move apart in place, the last one first.
  void widen(int n_threads) {
    std::vector<LineWidth> widths(todo_.size());
    parallel_for(todo_.size(), n_threads, [&](std::size_t i) {
      const Chunk& chunk = chunks_[todo_[i]];
      widths[i] = largest_width(chunk.begin, chunk.end, first_id());
    });
    const std::size_t old_width = width_;
    LineWidth widest{old_width, nullptr};
    for (const LineWidth& one : widths) widest = one.width > widest.width ? one : widest;
    const std::size_t new_width = widest.width;
    reserve(new_width);
    set_width(new_width);
    if (widest.line != nullptr) widest_line_ = line_number(widest.line);
    if (old_width == new_width) return;
    // Of the window's own rows nothing has been read when there was no feature before.
    for (std::size_t row = rows_.n_rows + (old_width == 0 ? 0 : n_new_rows_); row-- > 0;) {
      float* const to = rows_.X.data() + row * new_width;
      std::memmove(to, rows_.X.data() + row * old_width, old_width * sizeof(float));
      std::fill(to + old_width, to + new_width, options_.absent);
    }
  }

  void set_width(std::size_t width) {
    width_ = width;
    if (width > kMaxIdTexts) return ids_.clear();
    if (!ids_.empty()) ids_.pop_back();
    for (std::size_t feature = ids_.size(); feature < width; ++feature) {
      ids_.push_back(id_text(feature + first_id()));
    }
    // Never matches: the first character compared is a blank.
    ids_.push_back({~std::uint64_t{0}, ~std::uint64_t{0}, 0});
  }

  static IdText id_text(std::size_t number) {
    const std::string text = announce_feature(number);
    IdText id{0, 0, static_cast<std::uint32_t>(text.size())};
    std::memcpy(&id.text, text.data(), text.size());
    std::memset(&id.mask, 0xff, text.size());
    return id;
  }

  void add_texts(const char* window) {
    for (const RowText& text : texts_) {
      if (has_qid_) rows_.queries.add_row({window + text.qid, text.qid_size});
      if (options_.document_ids) {
        rows_.documents.add_row(document_id({window + text.comment, text.comment_size}), rows_.n_rows);
      }
      ++rows_.n_rows;
    }
  }

  SvmlightOptions options_;
  LineRules rules_;
  SvmlightRows rows_;
  std::size_t width_ = 0;
  std::size_t widest_line_ = 0;  // of this file, that made it so; 0: none
  std::vector<IdText> ids_;
  bool knows_layout_ = false, has_qid_ = false;
  bool at_start_ = true;     // of a file
  std::size_t n_lines_ = 0;  // of this file, before the window

  // Of the window
  const char* window_ = nullptr;
  std::vector<Chunk> chunks_;
  std::vector<std::size_t> todo_;  // chunks still to parse
  std::vector<RowText> texts_;
  std::size_t n_new_rows_ = 0;
  std::size_t rows_still_ = 0;  // rows after those, estimated
};

}  // namespace rankwood
