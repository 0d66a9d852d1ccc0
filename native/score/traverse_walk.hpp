// The inner loops of engine traverse: from the roots of some trees to the leaves that some documents reach.
//
// Eight paths are walked side by side, so that the loads of one hide behind those of the others; nothing branches on
// what they find. First every path takes as many steps as paths usually have; then those that are not at a leaf yet
// are gathered and take a few more, until none is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "score/traverse_trees.hpp"

namespace rankwood {

inline void prefetch(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address, 0, 2);
#else
  (void)address;
#endif
}

// Memory that is needed soon, fetched a few cache lines at a time.
struct Ahead {
  const char* at = nullptr;
  const char* end = nullptr;
  std::size_t n_lines = 0;  // at a time

  void fetch() {
    for (std::size_t i = 0; i < n_lines && at < end; ++i, at += kCacheLine) prefetch(at);
  }
};

// What a tile is worked on in.
struct TraversePaths {
  static constexpr std::size_t kMaxPaths = 1024;
  struct Path {  // one number, so that it is written at once
    std::uint64_t bits;
    Path() = default;
    Path(std::size_t at, std::size_t slot, std::size_t row) : bits(at | slot << 32 | row << 48) {}
    std::size_t at() const { return static_cast<std::uint32_t>(bits); }          // node
    std::size_t slot() const { return static_cast<std::uint16_t>(bits >> 32); }  // where its leaf is noted
    std::size_t row() const { return bits >> 48; }
  };

  std::uint32_t leaf[kMaxPaths + kPaths];       // [tree][row]: number of the leaf in its tree
  std::uint8_t small_leaf[kMaxPaths + kPaths];  // the same, where no walk is needed
  Path left[kMaxPaths + kPaths];                // those not yet at a leaf
};

// Documents and trees that are walked together.
template <class Field, class Code>
struct TraverseTile {
  const TraverseTrees<Field>* trees;
  std::size_t first_tree, n_trees;  // a multiple of kPaths, counting trees beyond the last
  const Code* codes;                // [row][column]
  std::size_t stride, n_rows;       // n_trees * n_rows <= TraversePaths::kMaxPaths
  int first_steps, more_steps;
  Ahead nodes_ahead, values_ahead;
  TraversePaths* paths;  // OUT leaf

  void walk() {
    constexpr auto lanes = std::make_index_sequence<kPaths>();
    std::size_t n_paths = start(lanes);
    while (n_paths > 0) n_paths = go_on(n_paths, lanes);
  }

 private:
  using Node = TraverseNode<Field>;

  static std::size_t next(const Node* nodes, const Code* codes, std::size_t at) {
    const Node& node = nodes[at];
    const std::size_t step = node.step;
    const bool right = node.code < codes[node.column];
    at += step;  // two additions in this order: compare, then add with carry
    at += right;
    return at;
  }

  // Note where a path is, and keep it if that is no leaf.
  void note(const Node* nodes, std::size_t at, std::size_t slot, std::size_t row, std::size_t& n_paths) {
    paths->leaf[slot] = nodes[at].leaf;
    paths->left[n_paths] = {at, slot, row};
    n_paths += static_cast<std::size_t>(nodes[at].step != 0);
  }

  // The first steps of all paths, a document in eight trees at a time. Returns how many are not at a leaf.
  template <std::size_t... I>
  std::size_t start(std::index_sequence<I...>) {
    const Node* const nodes = trees->nodes.data();
    std::size_t n_paths = 0;
    for (std::size_t tree = 0; tree < n_trees; tree += kPaths) {
      const std::uint32_t* root = trees->root.data() + first_tree + tree;
      (prefetch(&nodes[root[kPaths + I]]), ...);
      for (std::size_t row = 0; row < n_rows; ++row) {
        nodes_ahead.fetch();
        values_ahead.fetch();
        const Code* const row_codes = codes + row * stride;
        std::size_t at[kPaths] = {root[I]...};
        int n_steps = first_steps;
        do {
          ((at[I] = next(nodes, row_codes, at[I])), ...);
        } while (--n_steps > 0);
        (note(nodes, at[I], (tree + I) * n_rows + row, row, n_paths), ...);
      }
    }
    return n_paths;
  }

  // More steps of the paths that are left.
  template <std::size_t... I>
  std::size_t go_on(std::size_t n_paths, std::index_sequence<I...>) {
    const Node* const nodes = trees->nodes.data();
    const std::uint32_t idle = trees->root.back();
    for (std::size_t i = 0; i < kPaths; ++i) paths->left[n_paths + i] = {idle, TraversePaths::kMaxPaths, 0};
    std::size_t n_left = 0;
    for (std::size_t i = 0; i < n_paths; i += kPaths) {
      const TraversePaths::Path path[kPaths] = {paths->left[i + I]...};
      const Code* const row_codes[kPaths] = {codes + path[I].row() * stride...};
      std::size_t at[kPaths] = {path[I].at()...};
      int n_steps = more_steps;
      do {
        ((at[I] = next(nodes, row_codes[I], at[I])), ...);
      } while (--n_steps > 0);
      (note(nodes, at[I], path[I].slot(), path[I].row(), n_left), ...);
    }
    return n_left;
  }
};

}  // namespace rankwood
