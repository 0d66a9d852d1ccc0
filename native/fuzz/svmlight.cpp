// Any bytes as SVMlight text: the careful parser at one go and the fast one in small pieces read the same rows, or
// refuse the same line with the same sentence. The first byte of the input holds options, the second the sizes of the
// pieces. tools/fuzz builds and runs it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "svmlight.hpp"

namespace {

using rankwood::kTextPadding;

constexpr std::size_t kMaxBytes = std::size_t{1} << 22;
constexpr std::string_view kLimit = "THE LIMIT";

void check(bool condition) {
  if (!condition) std::abort();
}

struct Outcome {
  rankwood::SvmlightRows rows;
  std::string problem;
};

// Reads the text as Python does: a window of it at a time, and what a window leaves over again with the next one.
Outcome read(std::string_view text, const rankwood::SvmlightOptions& options, std::size_t window) {
  Outcome outcome;
  rankwood::SvmlightReader reader(options);
  reader.start_file();
  std::size_t begin = 0;
  try {
    while (begin < text.size()) {
      const std::size_t size = std::min(window, text.size() - begin);
      const bool last = begin + size == text.size();
      std::vector<char> buffer(size + 2 * kTextPadding);
      std::memcpy(buffer.data() + kTextPadding, text.data() + begin, size);
      const std::size_t n_read = reader.parse(buffer.data() + kTextPadding, size, last, text.size() - begin - size, 1);
      check(n_read <= size + last);
      begin += n_read;
      if (n_read == 0) {
        if (last) break;
        window *= 2;
      }
    }
    outcome.rows = reader.take();
  } catch (const std::invalid_argument& error) {
    outcome.problem = error.what();
    check(!outcome.problem.empty());
  }
  return outcome;
}

bool same_texts(const rankwood::TextList& a, const rankwood::TextList& b) {
  return a.text == b.text && a.ends == b.ends;
}

void check_same(Outcome& a, Outcome& b) {
  check(a.problem == b.problem);
  rankwood::SvmlightRows &one = a.rows, &other = b.rows;
  check(one.n_rows == other.n_rows && one.width == other.width);
  check(one.labels.size() == one.n_rows && other.labels.size() == one.n_rows);
  const auto same = [](const void* x, const void* y, std::size_t size) {
    return size == 0 || std::memcmp(x, y, size) == 0;
  };
  check(same(one.labels.data(), other.labels.data(), one.n_rows * sizeof(double)));
  check(same(one.X.data(), other.X.data(), one.n_rows * one.width * sizeof(float)));
  check(same_texts(one.queries.ids(), other.queries.ids()) && one.queries.lengths() == other.queries.lengths());
  check(one.documents.any() == other.documents.any());
  if (one.documents.any()) check(same_texts(one.documents.ids(), other.documents.ids()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const unsigned options = data[0], pieces = data[1];
  rankwood::SvmlightOptions careful;
  careful.zero_based = options & 1;
  careful.document_ids = options & 2;
  careful.fixed_width = options & 4;
  careful.ignore_beyond = options & 8;
  careful.n_features = careful.fixed_width ? 1 + options / 32 : 0;
  careful.absent = options & 16 ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
  careful.max_bytes = kMaxBytes;
  careful.max_text = kLimit;
  careful.careful_only = true;
  rankwood::SvmlightOptions fast = careful;
  fast.careful_only = false;
  fast.chunk_bytes = 1 + pieces % 16;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  Outcome one = read(text, careful, std::max<std::size_t>(text.size(), 1)), other = read(text, fast, 1 + pieces / 4);
  // How large the matrix would become is told by how much of the text is known.
  if (one.problem.find(kLimit) != std::string::npos || other.problem.find(kLimit) != std::string::npos) return 0;
  check_same(one, other);
  return 0;
}
