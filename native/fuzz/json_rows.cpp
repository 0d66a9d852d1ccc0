// Any bytes as the body of a request: rows of numbers come out whole, or it is left to the reader of all JSON. The
// first byte of the input holds the number of features. tools/fuzz builds and runs it.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "json_rows.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::size_t width = data[0] % 8, max_rows = 1 + data[0] / 8;
  const char* const text = reinterpret_cast<const char*>(data) + 1;
  rankwood::JsonRows rows;
  if (!rankwood::JsonRowsReader(text, size - 1).read(width, max_rows, rows)) return 0;
  const bool good = rows.values.size() % width == 0 && !rows.values.empty() && rows.values.size() / width <= max_rows &&
                    rows.first < rows.end && rows.end <= size - 1 && text[rows.first] == '[' &&
                    text[rows.end - 1] == ']';
  if (!good) std::abort();
  for (const double value : rows.values) {
    if (std::isinf(value)) std::abort();
  }
  return 0;
}
