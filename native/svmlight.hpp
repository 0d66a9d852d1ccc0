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
  std::size_t max_lines = std::numeric_limits<std::size_t>::max();  // parsed at a time
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

// Where the first `most` lines of the text end; it ends with a line feed.
inline const char* end_of_lines(const char* begin, const char* end, std::size_t most) {
  for (; begin != end && most != 0; --most) {
    begin = static_cast<const char*>(std::memchr(begin, '\n', static_cast<std::size_t>(end - begin))) + 1;
  }
  return begin;
}

// Line feeds in the text. Bytes are summed before they can overflow, which compilers turn into vector code.
inline std::size_t count_lines(const char* begin, const char* end) {
  std::size_t n = 0;
  while (begin != end) {
    const std::size_t size = std::min<std::size_t>(static_cast<std::size_t>(end - begin), 255);
    std::uint8_t here = 0;
    for (std::size_t i = 0; i < size; ++i) here = static_cast<std::uint8_t>(here + (begin[i] == '\n'));
    n += here;
    begin += size;
  }
  return n;
}

class SvmlightReader {
 public:
  explicit SvmlightReader(SvmlightOptions options) : options_(std::move(options)) {
    rules_.fixed_width = options_.fixed_width;
    rules_.ignore_beyond = options_.ignore_beyond;
    rules_.too_many_features = " would make the matrix larger than " + options_.max_text;
    set_width(options_.n_features);
  }

  std::size_t n_rows() const { return rows_.n_rows; }
  bool has_qid() const { return has_qid_; }

  // Lines are numbered from 1 again.
  void start_file() {
    n_lines_ = 0;
    at_start_ = true;
    if (knows_layout_) rules_.first_line_with_row = "the lines before this file";
  }

  // Parse the lines that are complete in text[0, size), all of them when `last`, but no more than max_lines; return
  // how many bytes they are (the line feed that the last line of a file may lack counts).
  // kTextPadding bytes before and after are readable, and text[size] can be written.
  // `text_left` estimates how many bytes are still to come. Throws std::invalid_argument, naming the first line
  // that is wrong, whatever the number of threads; nothing more can be read then.
  std::size_t parse(char* text, std::size_t size, bool last, std::size_t text_left, int n_threads) {
    size = complete_lines(text, size, last);
    if (size == 0) return 0;
    if (size > options_.max_lines)
      size = static_cast<std::size_t>(end_of_lines(text, text + size, options_.max_lines) - text);
    if (std::exchange(at_start_, false)) blank_byte_order_mark(text, size);
    if (!knows_layout_) learn_layout(text, size);
    split(text, size, n_threads);
    const std::size_t n_lines = number_rows(n_threads);
    make_room(n_lines, size, text_left, n_threads);
    parse_chunks(text, n_threads);
    close_gaps();
    add_texts(text);
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
    std::size_t n_lines = 0;
    std::size_t first_row = 0;  // counted from the start of the matrix
    std::size_t n_rows = 0;
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
      const char* const line_end =
          static_cast<const char*>(std::memchr(text, '\n', static_cast<std::size_t>(end - text)));
      Tokens tokens(text, line_end);
      if (!tokens.next().empty()) {
        has_qid_ = tokens.next().substr(0, 4) == "qid:";
        knows_layout_ = true;
        rules_.first_line_with_row = "line " + std::to_string(line);
        return;
      }
      text = line_end + 1;
    }
  }

  void split(const char* text, std::size_t size, int n_threads) {
    const std::size_t most = n_threads > 1 ? 8 * static_cast<std::size_t>(n_threads) : 1;
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

  // A line has at most one row: that tells where the rows of each chunk go, but for the gaps that blank lines leave.
  std::size_t number_rows(int n_threads) {
    parallel_for(chunks_.size(), n_threads,
                 [this](std::size_t i) { chunks_[i].n_lines = count_lines(chunks_[i].begin, chunks_[i].end); });
    std::size_t n_lines = 0;
    for (Chunk& chunk : chunks_) {
      chunk.first_row = rows_.n_rows + n_lines;
      n_lines += chunk.n_lines;
    }
    return n_lines;
  }

  void make_room(std::size_t n_lines, std::size_t size, std::size_t text_left, int n_threads) {
    most_rows_ = rows_.n_rows + n_lines;
    rules_.most_features = std::min(kMaxFeatures, options_.max_bytes / sizeof(float) / most_rows_);
    rows_still_ = static_cast<std::size_t>(static_cast<double>(n_lines) / static_cast<double>(size) *
                                           static_cast<double>(text_left) * 1.02);
    texts_.resize(n_lines);
    rows_.labels.resize(most_rows_);
    if (width_ > rules_.most_features) {
      throw std::invalid_argument(std::to_string(width_) + " features make the matrix larger than " +
                                  options_.max_text);
    }
    if (!options_.fixed_width && width_ == 0) {
      all_chunks();
      widen(n_threads);
    }
    reserve(width_);
  }

  void reserve(std::size_t width) {
    const std::size_t row_bytes = width * sizeof(float);
    rows_.X.reserve(most_rows_ * row_bytes, (most_rows_ + rows_still_) * row_bytes);
  }

  void all_chunks() {
    todo_.resize(chunks_.size());
    for (std::size_t i = 0; i < todo_.size(); ++i) todo_[i] = i;
  }

  // Parse all chunks. Those that meet a larger feature are parsed again when the matrix has been made wider.
  void parse_chunks(const char* window, int n_threads) {
    for (all_chunks(); !todo_.empty();) {
      parallel_for(todo_.size(), n_threads, [&](std::size_t i) { parse_chunk(chunks_[todo_[i]], window); });
      todo_.clear();
      for (std::size_t i = 0; i < chunks_.size() && chunks_[i].problem.empty(); ++i) {
        if (chunks_[i].needs_width) todo_.push_back(i);
      }
      if (!todo_.empty()) widen(n_threads);
    }
    for (const Chunk& chunk : chunks_) {
      if (chunk.problem.empty()) continue;
      const std::size_t line = n_lines_ + count_lines(window, chunk.stopped_at) + 1;
      throw std::invalid_argument("line " + std::to_string(line) + ": " + chunk.problem);
    }
  }

  void parse_chunk(Chunk& chunk, const char* window) {
    SvmlightChunk lines{
        .window = window,
        .begin = chunk.begin,
        .end = chunk.end,
        .has_qid = has_qid_,
        .absent = options_.absent,
        .first_id = options_.zero_based ? std::size_t{0} : std::size_t{1},
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
    chunk.n_rows = fast ? kernels().parse_svmlight_rows(lines) : careful_rows(lines, careful);
    chunk.needs_width = careful.needs_width();
    chunk.stopped_at = careful.stopped_at();
    chunk.problem = careful.problem();
  }

  static std::size_t careful_rows(const SvmlightChunk& lines, LineParser& careful) {
    std::size_t row = 0;
    for (const char* line = lines.begin; line != lines.end;) {
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
    std::vector<std::size_t> widths(todo_.size());
    parallel_for(todo_.size(), n_threads, [&](std::size_t i) {
      const Chunk& chunk = chunks_[todo_[i]];
      widths[i] = largest_width(chunk.begin, chunk.end, options_.zero_based ? 0 : 1, rules_.most_features);
    });
    const std::size_t old_width = width_;
    const std::size_t new_width = std::max(old_width, *std::max_element(widths.begin(), widths.end()));
    reserve(new_width);
    set_width(new_width);
    if (old_width == 0 || old_width == new_width) return;
    for (std::size_t row = most_rows_; row-- > 0;) {
      float* const to = rows_.X.data() + row * new_width;
      std::memmove(to, rows_.X.data() + row * old_width, old_width * sizeof(float));
      std::fill(to + old_width, to + new_width, options_.absent);
    }
  }

  void set_width(std::size_t width) {
    width_ = width;
    const std::size_t first_id = options_.zero_based ? 0 : 1;
    if (width > kMaxIdTexts) return ids_.clear();
    if (!ids_.empty()) ids_.pop_back();
    for (std::size_t feature = ids_.size(); feature < width; ++feature) {
      ids_.push_back(id_text(feature + first_id));
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

  void close_gaps() {
    std::size_t row = rows_.n_rows;
    for (const Chunk& chunk : chunks_) {
      if (row != chunk.first_row) {
        std::memmove(rows_.X.data() + row * width_, rows_.X.data() + chunk.first_row * width_,
                     chunk.n_rows * width_ * sizeof(float));
        std::copy_n(rows_.labels.begin() + static_cast<std::ptrdiff_t>(chunk.first_row), chunk.n_rows,
                    rows_.labels.begin() + static_cast<std::ptrdiff_t>(row));
        std::copy_n(texts_.begin() + static_cast<std::ptrdiff_t>(chunk.first_row - rows_.n_rows), chunk.n_rows,
                    texts_.begin() + static_cast<std::ptrdiff_t>(row - rows_.n_rows));
      }
      row += chunk.n_rows;
    }
    texts_.resize(row - rows_.n_rows);
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
  std::vector<IdText> ids_;
  bool knows_layout_ = false, has_qid_ = false;
  bool at_start_ = true;     // of a file
  std::size_t n_lines_ = 0;  // of this file, before the window

  // Of the window
  std::vector<Chunk> chunks_;
  std::vector<std::size_t> todo_;  // chunks still to parse
  std::vector<RowText> texts_;
  std::size_t most_rows_ = 0;   // rows when the window is read, if every line has one
  std::size_t rows_still_ = 0;  // rows after that, estimated
};

}  // namespace rankwood
