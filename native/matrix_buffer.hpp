// Memory for a matrix that grows while it is filled: growing does not copy, and what is not used is given back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace rankwood {

// Movable bytes. Fresh ones count as uninitialised.
class MatrixBuffer {
 public:
  MatrixBuffer() = default;
  MatrixBuffer(const MatrixBuffer&) = delete;
  MatrixBuffer& operator=(const MatrixBuffer&) = delete;
  MatrixBuffer(MatrixBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MatrixBuffer& operator=(MatrixBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MatrixBuffer() { release(); }

  float* data() const { return static_cast<float*>(data_); }
  std::size_t size() const { return size_; }  // in bytes

  // Make room for `size` bytes at least, `wanted` if they can be had. Memory that is never touched costs nothing.
  void reserve(std::size_t size, std::size_t wanted) {
    if (size <= size_) return;
    if (!resize(std::max({size, wanted, size_ + size_ / 2})) && !resize(size)) throw std::bad_alloc();
  }

  // Keep the first `size` bytes only.
  void shrink(std::size_t size) {
    if (size < size_) resize(std::max<std::size_t>(size, 1));
  }

 private:
#if defined(__linux__)
  static constexpr std::size_t kPage = 65536, kHugePage = std::size_t{2} << 20;

  bool resize(std::size_t size) {
    size = (size + kPage - 1) / kPage * kPage;
    if (data_ == nullptr) {
      data_ = map_aligned(size);
    } else {
      void* const moved = mremap(data_, size_, size, MREMAP_MAYMOVE);
      if (moved == MAP_FAILED) return false;
      data_ = moved;
    }
    if (data_ == nullptr) return false;
    size_ = size;
    // Large pages: fewer faults while it is filled. Only an advice, so its result does not matter.
    if (size >= 2 * kHugePage) madvise(data_, size, MADV_HUGEPAGE);
    return true;
  }

  // A large page can only lie on a multiple of its size.
  static void* map_aligned(std::size_t size) {
    const std::size_t slack = size >= 2 * kHugePage ? kHugePage : 0;
    void* const mapped = mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    if (slack == 0) return mapped;
    char* const start = static_cast<char*>(mapped);
    const std::size_t head = (kHugePage - reinterpret_cast<std::uintptr_t>(start) % kHugePage) % kHugePage;
    if (head != 0) munmap(start, head);
    if (slack != head) munmap(start + head + size, slack - head);
    return start + head;
  }

  void release() {
    if (data_ != nullptr) munmap(data_, size_);
  }
#else
  bool resize(std::size_t size) {
    void* const moved = std::realloc(data_, size);
    if (moved == nullptr) return false;
    data_ = moved;
    size_ = size;
    return true;
  }

  void release() { std::free(data_); }
#endif

  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace rankwood
