// Reading a part of a file on several threads: copying out of the system's cache is as much work as parsing.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel.hpp"

#if defined(__unix__) || defined(__APPLE__)
#define RANKWOOD_PREAD 1
#include <unistd.h>
#endif

namespace rankwood {

#if defined(RANKWOOD_PREAD)
// Read `size` bytes at `offset` of the open file; return how many there were, or minus the error number.
inline std::int64_t read_at(int file, std::int64_t offset, char* to, std::size_t size, int n_threads) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  const std::size_t n_pieces = (size + kPiece - 1) / kPiece;
  std::vector<std::int64_t> got(n_pieces, 0);
  parallel_for(n_pieces, n_threads, [&](std::size_t i) {
    const std::size_t start = i * kPiece, end = std::min(size, start + kPiece);
    for (std::size_t at = start; at < end;) {
      const ssize_t n = ::pread(file, to + at, end - at, static_cast<off_t>(offset + static_cast<std::int64_t>(at)));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) got[i] = -errno;
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
      got[i] = static_cast<std::int64_t>(at - start);
    }
  });
  std::int64_t total = 0;
  for (const std::int64_t n : got) {
    if (n < 0) return total > 0 ? total : n;
    total += n;
    if (n < static_cast<std::int64_t>(kPiece)) break;  // the end of the file, or of what was asked for
  }
  return total;
}
#endif

}  // namespace rankwood
