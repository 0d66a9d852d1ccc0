// A tree as its edges in the order of a walk: every edge before those below it, left before right.
//
// What features contribute to a score depends on a path only through its features: whether a document meets all the
// conditions that a path has for a feature, and how likely others are to. So every edge knows the edge above that has
// the same feature, whose conditions it adds to, and the place of its feature among those of the path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ensemble.hpp"
#include "isa/kernels.hpp"

namespace rankwood {

// Features that a model's splits use, in rising order, and the place of each among them.
class UsedFeatures {
 public:
  explicit UsedFeatures(const EnsembleView& model) : place_(static_cast<std::size_t>(model.n_features), -1) {
    for (std::size_t i = 0; i < model.n_nodes; ++i) place_[static_cast<std::size_t>(model.feature[i])] = 0;
    for (std::size_t f = 0; f < place_.size(); ++f) {
      if (place_[f] < 0) continue;
      place_[f] = static_cast<std::int32_t>(features_.size());
      features_.push_back(f);
    }
  }

  std::size_t size() const { return features_.size(); }
  const std::vector<std::size_t>& features() const { return features_; }
  std::int32_t place(std::int32_t feature) const { return place_[static_cast<std::size_t>(feature)]; }

 private:
  std::vector<std::int32_t> place_;
  std::vector<std::size_t> features_;
};

struct TreeEdges {
  std::vector<ExplainedEdge> edges;
  std::vector<ExplainedNode> nodes;
  std::size_t depth = 0;       // of the longest path
  std::size_t n_distinct = 0;  // features of the path that has most of them
};

// The edges of a checked tree; values of leaves are multiplied by the tree's weight.
inline TreeEdges edges_of(const EnsembleView& model, std::size_t tree, double weight, const UsedFeatures& used) {
  const std::size_t first = model.first_node(tree), n_nodes = model.nodes_of(tree);
  TreeEdges out;
  out.edges.reserve(2 * n_nodes);
  for (std::size_t i = first; i < first + n_nodes; ++i) {
    const bool has_set = model.has_set(i);
    out.nodes.push_back({model.threshold[i], has_set ? model.set_of(i).data() : nullptr,
                         has_set ? model.set_of(i).size() : 0, used.place(model.feature[i]),
                         model.missing_left[i] != 0 ? -1 : 0});
  }
  if (n_nodes == 0) return out;

  struct Pending {
    std::int32_t child, node, above, is_left;
  };
  std::vector<Pending> pending = {{model.right[first], 0, -1, 0}, {model.left[first], 0, -1, 1}};
  std::vector<std::int32_t> last(used.size(), -1);  // edge of the path that has a feature last
  std::vector<std::int32_t> open;                   // edges of the path
  std::size_t n_distinct = 0;
  const auto close = [&] {
    const ExplainedEdge& edge = out.edges[static_cast<std::size_t>(open.back())];
    last[static_cast<std::size_t>(edge.feature)] = edge.before;
    n_distinct -= edge.before < 0;
    open.pop_back();
  };
  while (!pending.empty()) {
    const Pending next = pending.back();
    pending.pop_back();
    const auto leaf_edge = static_cast<std::int32_t>(out.edges.size()) - 1;
    while (!open.empty() && open.back() != next.above) {
      close();
      ++out.edges[static_cast<std::size_t>(leaf_edge)].n_closed;
    }
    const std::int32_t feature = out.nodes[static_cast<std::size_t>(next.node)].feature;
    const std::int32_t before = last[static_cast<std::size_t>(feature)];
    const auto number = static_cast<std::int32_t>(out.edges.size());
    const std::int32_t place =
        before < 0 ? static_cast<std::int32_t>(n_distinct) : out.edges[static_cast<std::size_t>(before)].place;
    n_distinct += before < 0;
    open.push_back(number);
    last[static_cast<std::size_t>(feature)] = number;
    out.depth = std::max(out.depth, open.size());
    out.n_distinct = std::max(out.n_distinct, n_distinct);
    ExplainedEdge edge{};
    edge.node = next.node;
    edge.is_left = next.is_left;
    edge.above = next.above;
    edge.before = before;
    edge.feature = feature;
    edge.place = place;
    edge.depth = static_cast<std::int32_t>(open.size());
    edge.leaf = -1;
    if (next.child < 0) {
      edge.leaf = ~next.child;
      edge.n_distinct = static_cast<std::int32_t>(n_distinct);
      edge.value = weight * model.leaf_value[model.first_leaf(tree) + static_cast<std::size_t>(edge.leaf)];
    } else {
      const std::size_t child = first + static_cast<std::size_t>(next.child);
      pending.push_back({model.right[child], next.child, number, 0});
      pending.push_back({model.left[child], next.child, number, 1});
    }
    out.edges.push_back(edge);
  }
  out.edges.back().n_closed = static_cast<std::int32_t>(open.size());
  return out;
}

}  // namespace rankwood
