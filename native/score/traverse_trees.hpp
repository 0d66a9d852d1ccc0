// Trees as engine traverse walks them.
//
// A node is four small numbers. Its right child stands right behind its left one, so a step needs no branch:
//   at += node.step; at += node.code < codes[node.column];
// A leaf has step 0 and a code that no value exceeds: whoever is there stays there. Pairs of children are packed into
// cache lines so that a line holds the levels below the pair it starts with.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "aligned.hpp"
#include "ensemble.hpp"
#include "interruption.hpp"
#include "score/quantise.hpp"

namespace rankwood {

constexpr std::size_t kPaths = 8;  // paths that are walked side by side, in registers
constexpr std::size_t kCacheLine = 64;

template <class Field>
struct TraverseNode {
  Field column, code;
  Field step;  // how far away its left child stands; 0: a leaf
  Field leaf;  // number of the leaf in its tree
};

template <class Field>
struct TraverseTrees {
  using Node = TraverseNode<Field>;

  std::size_t n_bytes() const { return nodes.size() * sizeof nodes[0] + root.size() * sizeof root[0]; }

  AlignedVector<Node> nodes;
  // By tree: the place of its root. Behind the last tree there are 2 * kPaths more, of one leaf, for paths that have
  // nothing else to do.
  std::vector<std::uint32_t> root;
  double usual_depth = 0.0;  // a guess at the length of a path
};

template <class Field>
class TraverseBuilder {
 public:
  using Node = TraverseNode<Field>;
  // A larger tree has steps that a Field cannot hold.
  static constexpr std::size_t kMaxNodes = std::numeric_limits<Field>::max() / 2;

  TraverseBuilder(const EnsembleView& model, const NodeCodes& codes) : model_(model), codes_(codes) {
    reserve();
    double depths = 0.0;
    for (std::size_t tree = 0; tree < model.n_trees; ++tree) {
      check_interruption();
      add_tree(tree);
      depths += usual_depth(tree);
    }
    const auto idle = static_cast<std::uint32_t>(new_lines(1));
    trees.nodes[idle] = leaf_node(0);
    trees.root.resize(model.n_trees + 2 * kPaths, idle);
    if (model.n_trees > 0) trees.usual_depth = depths / static_cast<double>(model.n_trees);
  }

  TraverseTrees<Field> trees;

 private:
  struct Pending {
    std::int32_t node, depth;  // an inner node, and the depth of its children
  };
  static constexpr std::size_t kPairs = kCacheLine / sizeof(Node) / 2;  // of a line

  static std::size_t whole_lines(std::size_t n_pairs) { return (n_pairs + kPairs - 1) / kPairs * kPairs; }
  static Node leaf_node(std::int32_t leaf) {
    return {0, std::numeric_limits<Field>::max(), 0, static_cast<Field>(leaf)};
  }

  void reserve() {
    std::size_t n_pairs = kPairs;
    for (std::size_t tree = 0; tree < model_.n_trees; ++tree) n_pairs += whole_lines(model_.nodes_of(tree) + 1);
    if (2 * n_pairs > std::numeric_limits<std::uint32_t>::max()) {
      throw std::invalid_argument("the model has too many nodes for engine 'traverse'");
    }
    trees.nodes.reserve(2 * n_pairs);
  }

  // Where new lines with room for so many pairs start.
  std::size_t new_lines(std::size_t n_pairs) {
    const std::size_t start = trees.nodes.size();
    trees.nodes.resize(start + 2 * whole_lines(n_pairs));
    return start;
  }

  void add_tree(std::size_t tree) {
    const std::size_t first = model_.first_node(tree), n_nodes = model_.nodes_of(tree);
    const std::size_t start = new_lines(n_nodes + 1);  // the root takes the place of a pair
    trees.root.push_back(static_cast<std::uint32_t>(start));
    find_places(tree);
    const auto put = [&](std::size_t at, std::int32_t child) {
      if (child < 0) {
        trees.nodes[at] = leaf_node(~child);
        return;
      }
      const std::size_t node = first + static_cast<std::size_t>(child);
      trees.nodes[at] = {static_cast<Field>(codes_.column[node]), static_cast<Field>(codes_.code[node]),
                         static_cast<Field>(start + 2 * place_[static_cast<std::size_t>(child)] - at), 0};
    };
    put(start, n_nodes == 0 ? ~0 : 0);
    for (std::size_t node = 0; node < n_nodes; ++node) {
      put(start + 2 * place_[node], model_.left[first + node]);
      put(start + 2 * place_[node] + 1, model_.right[first + node]);
    }
  }

  // place_[node]: where its children stand, in pairs from the root; a child comes after its parent. A line is filled
  // breadth first from the pair it starts with; what no longer fits starts lines of its own.
  void find_places(std::size_t tree) {
    const std::size_t first = model_.first_node(tree);
    std::size_t n_places = 1;
    leaf_depths_ = turn_depths_ = 0.0;
    place_.resize(model_.nodes_of(tree));
    starts_.clear();
    if (!place_.empty()) starts_.push_back({0, 1});
    while (!starts_.empty()) {
      line_.assign(1, starts_.back());
      starts_.pop_back();
      std::size_t done = 0;
      do {
        const Pending parent = line_[done++];
        const auto node = static_cast<std::size_t>(parent.node);
        place_[node] = n_places++;
        for (const std::int32_t child : {model_.left[first + node], model_.right[first + node]}) {
          if (child >= 0) {
            line_.push_back({child, parent.depth + 1});
          } else {
            leaf_depths_ += parent.depth;
            turn_depths_ += parent.depth * std::exp2(-parent.depth);
          }
        }
      } while (done < line_.size() && n_places % kPairs != 0);
      while (line_.size() > done) {
        starts_.push_back(line_.back());
        line_.pop_back();
      }
    }
  }

  // Halfway between the mean depth if all leaves were as likely, and if all turns were.
  double usual_depth(std::size_t tree) const {
    return (leaf_depths_ / static_cast<double>(model_.nodes_of(tree) + 1) + turn_depths_) / 2;
  }

  const EnsembleView& model_;
  const NodeCodes& codes_;
  std::vector<std::size_t> place_;
  std::vector<Pending> starts_, line_;
  double leaf_depths_ = 0.0, turn_depths_ = 0.0;  // of the leaves of a tree, summed
};

}  // namespace rankwood
