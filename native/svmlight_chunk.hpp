// What the two parsers of SVMlight lines share: the fast one (svmlight_rows.hpp, once per instruction set) and the
// careful one (svmlight_line.hpp). Plain data only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankwood {

// Readable bytes that must stand before and after the text, for loads that are wider than what is left of it.
inline constexpr std::size_t kTextPadding = 64;

// Where the query id and the comment of a row stand, counted from the start of the window; size 0: it has none.
struct RowText {
  std::uint32_t qid = 0, qid_size = 0;
  std::uint32_t comment = 0, comment_size = 0;
};

// The text " 17:" that announces a feature, as the first bytes of a word in memory order.
struct IdText {
  std::uint64_t text, mask;
  std::uint32_t size;
};

enum class LineStatus { row, no_row, stop };

// A run of whole lines and where its rows go.
struct SvmlightChunk {
  const char* window;  // offsets in RowText count from here
  const char* begin;
  const char* end;       // end[-1] is a line feed
  bool has_qid;          // every line has "qid:" after its label; else none has
  float absent;          // value of a feature that a line leaves out
  std::size_t first_id;  // of the first feature: 1, or 0
  std::size_t width;     // number of features
  const IdText* ids;     // of every feature, and one that never matches
  float* X;              // rows of `width` values
  double* labels;
  RowText* texts;

  // The careful parser, for a line that the fast one does not understand, and for a value that it does not.
  LineStatus (*careful_line)(void* context, const char* line, const char* line_end, std::size_t row);
  bool (*careful_value)(const char* first, const char* last, float* value);
  void* context;
};

// No feature id may be larger.
inline constexpr std::size_t kMaxFeatures = 10'000'000;
// With more features than this a row of the matrix takes longer to fill than its line to parse: no IdText is kept.
inline constexpr std::size_t kMaxIdTexts = 65'536;

}  // namespace rankwood
