// What features contribute to scores (SHAP), exactly: weighed by cover, or against background documents.
//
// Trees are prepared some at a time, in parallel; then rows are explained in parallel, each by one thread, tree after
// tree, so that the bits depend on the model and the row alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "explain/quadrature.hpp"
#include "explain/tree_edges.hpp"
#include "isa/kernels.hpp"
#include "parallel.hpp"
#include "rows.hpp"

namespace rankwood {

// A row of `values` per document, a column per feature; contributions are added to it.
struct Contributions {
  double* values;
  std::size_t n_features;
};

// Call use(trees, first) for runs of trees, each of them prepared, of about a given size in bytes.
template <class Tree, class Bytes, class Prepare, class Use>
void in_runs(std::size_t n_trees, int n_threads, const Bytes& bytes, const Prepare& prepare, const Use& use) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  for (std::size_t first = 0, end = 0; first < n_trees; first = end) {
    for (std::size_t total = 0; end < n_trees && (end == first || total + bytes(end) <= kBytes); ++end) {
      total += bytes(end);
    }
    std::vector<Tree> trees(end - first);
    parallel_for(trees.size(), n_threads, [&](std::size_t i) { trees[i] = prepare(first + i); });
    use(trees);
  }
}

// Rows that one task explains: enough for a tree to be used several times while it is in cache, and for all threads to
// have work.
inline std::size_t rows_per_task(std::size_t n_rows, int n_threads, std::size_t most) {
  const std::size_t share = n_rows / static_cast<std::size_t>(std::max(1, n_threads));
  return std::clamp(share / kExplainedRows * kExplainedRows, kExplainedRows, most);
}

// Values of the used features of n rows, feature by feature, `room` entries for each.
template <class T>
void read_features(const Rows<T>& rows, std::size_t first, std::size_t n, const UsedFeatures& used, std::size_t room,
                   double* x) {
  for (std::size_t f = 0; f < used.size(); ++f) {
    const T* from = rows.data + static_cast<std::ptrdiff_t>(first) * rows.row_stride +
                    static_cast<std::ptrdiff_t>(used.features()[f]) * rows.feature_stride;
    for (std::size_t i = 0; i < n; ++i) x[f * room + i] = from[static_cast<std::ptrdiff_t>(i) * rows.row_stride];
  }
}

// Weighed by cover: unknown features take both sides of a split, as much of each as training data did.

struct CoverOf {
  TreeEdges tree;
  std::vector<double> constants;
  std::size_t n_points = 0;
};

// The share of the data at a node that goes down each edge; where there is none, both sides count alike.
inline std::vector<double> shares_of(const TreeEdges& tree, const double* leaf_cover) {
  std::vector<double> cover(tree.edges.size(), 0.0), nodes(tree.nodes.size(), 0.0), share(tree.edges.size());
  for (std::size_t e = tree.edges.size(); e-- > 0;) {
    const ExplainedEdge& edge = tree.edges[e];
    if (edge.leaf >= 0) cover[e] = leaf_cover[edge.leaf];
    nodes[static_cast<std::size_t>(edge.node)] += cover[e];
    if (edge.above >= 0) cover[static_cast<std::size_t>(edge.above)] += cover[e];
  }
  for (std::size_t e = 0; e < tree.edges.size(); ++e) {
    const double whole = nodes[static_cast<std::size_t>(tree.edges[e].node)];
    share[e] = whole > 0.0 ? cover[e] / whole : 0.5;
  }
  return share;
}

// The tree with its constants; `expected` is set to the mean of its value over the data.
inline CoverOf prepare_cover(const EnsembleView& model, std::size_t t, double weight, const double* leaf_cover,
                             const UsedFeatures& used, double* expected) {
  CoverOf out{edges_of(model, t, weight, used), {}, 0};
  const std::vector<ExplainedEdge>& edges = out.tree.edges;
  if (edges.empty()) {
    *expected = weight * model.leaf_value[model.first_leaf(t)];
    return out;
  }
  const std::vector<double> share = shares_of(out.tree, leaf_cover + model.first_leaf(t));
  out.n_points = (out.tree.n_distinct + 1) / 2;
  out.constants.resize(edges.size() * out.n_points * kCoverConstants);
  const std::vector<QuadraturePoint> points = legendre_points(out.n_points);
  std::vector<double> together(edges.size()), of_feature(edges.size());  // products of shares of a path, of its feature
  *expected = 0.0;
  double* c = out.constants.data();
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const ExplainedEdge& edge = edges[e];
    const bool is_first = edge.before < 0;
    const double before = is_first ? 1.0 : of_feature[static_cast<std::size_t>(edge.before)];
    const double z = of_feature[e] = before * share[e];
    together[e] = share[e] * (edge.above < 0 ? 1.0 : together[static_cast<std::size_t>(edge.above)]);
    if (edge.leaf >= 0) *expected += together[e] * edge.value;
    for (const QuadraturePoint& point : points) {
      const double met = point.at + point.rest * z, not_met = point.rest * z;
      c[0] = met;
      c[1] = not_met;
      if (!is_first) {
        const double old = point.at + point.rest * before;
        c[0] /= old;
        c[1] /= old;
      }
      c[2] = share[e];
      c[3] = point.weight * (1.0 - z) / met;
      c[4] = z > 0.0 ? point.not_met : 0.0;
      c += kCoverConstants;
    }
  }
  return out;
}

// Room for the walks of one thread.
class CoverRoom {
 public:
  explicit CoverRoom(const std::vector<CoverOf>& trees) {
    std::size_t depth = 0, n_nodes = 0, n_edges = 0;
    for (const CoverOf& one : trees) {
      depth = std::max(depth, one.tree.depth);
      n_nodes = std::max(n_nodes, one.tree.nodes.size());
      n_edges = std::max(n_edges, one.tree.edges.size());
    }
    masks_.resize((n_nodes + n_edges) * kExplainedRows);
    numbers_.resize(2 * (depth + 1) * kCoverPoints * kExplainedRows);
    open_.resize(depth + 1);
    scratch_ = {masks_.data(), masks_.data() + n_nodes * kExplainedRows, numbers_.data(),
                numbers_.data() + numbers_.size() / 2, open_.data()};
  }
  CoverRoom(const CoverRoom&) = delete;
  CoverRoom& operator=(const CoverRoom&) = delete;
  const CoverScratch& scratch() const { return scratch_; }

 private:
  std::vector<std::int64_t> masks_;
  std::vector<double> numbers_;
  std::vector<std::int32_t> open_;
  CoverScratch scratch_;
};

// Add the contributions of checked trees, weighed by the cover of their leaves.
//   IN  depths    of every tree     OUT expected  mean value of every tree
template <class T>
void contributions_by_cover(const EnsembleView& model, const double* tree_weights, const double* leaf_cover,
                            const std::int32_t* depths, const Rows<T>& rows, const Contributions& out, double* expected,
                            int n_threads) {
  const UsedFeatures used(model);
  const Kernels& isa = kernels();
  const auto bytes = [&](std::size_t t) {
    const std::size_t n_points = std::min(static_cast<std::size_t>(depths[t]), used.size()) / 2 + 1;
    return 2 * model.nodes_of(t) * (sizeof(ExplainedEdge) + n_points * kCoverConstants * sizeof(double));
  };
  const auto prepare = [&](std::size_t t) {
    return prepare_cover(model, t, tree_weights[t], leaf_cover, used, expected + t);
  };
  const std::size_t per_task = rows_per_task(rows.n_rows, n_threads, 64), n_block = used.size() * kExplainedRows;
  const auto explain = [&](const std::vector<CoverOf>& trees) {
    parallel_for((rows.n_rows + per_task - 1) / per_task, n_threads, [&](std::size_t task) {
      const std::size_t first = task * per_task, n_rows = std::min(per_task, rows.n_rows - first);
      const std::size_t n_blocks = (n_rows + kExplainedRows - 1) / kExplainedRows;
      std::vector<double> x(n_blocks * n_block), sums(n_blocks * n_block);
      const CoverRoom room(trees);
      const auto in_block = [&](std::size_t b) { return std::min(kExplainedRows, n_rows - b * kExplainedRows); };
      const auto number = [&](std::size_t b, std::size_t f, std::size_t i) {
        return (first + b * kExplainedRows + i) * out.n_features + used.features()[f];
      };
      for (std::size_t b = 0; b < n_blocks; ++b) {
        read_features(rows, first + b * kExplainedRows, in_block(b), used, kExplainedRows, x.data() + b * n_block);
        for (std::size_t f = 0; f < used.size(); ++f) {
          for (std::size_t i = 0; i < in_block(b); ++i) {
            sums[b * n_block + f * kExplainedRows + i] = out.values[number(b, f, i)];
          }
        }
      }
      for (const CoverOf& one : trees) {
        const TreeEdges& tree = one.tree;
        const CoverTree view = {tree.edges.data(), tree.edges.size(),    tree.nodes.data(),
                                tree.nodes.size(), one.constants.data(), one.n_points};
        for (std::size_t b = 0; b < n_blocks; ++b) {
          check_interruption();
          isa.explain_by_cover(view, x.data() + b * n_block, room.scratch(), sums.data() + b * n_block);
        }
      }
      for (std::size_t b = 0; b < n_blocks; ++b) {
        for (std::size_t f = 0; f < used.size(); ++f) {
          for (std::size_t i = 0; i < in_block(b); ++i) {
            out.values[number(b, f, i)] = sums[b * n_block + f * kExplainedRows + i];
          }
        }
      }
    });
  };
  in_runs<CoverOf>(model.n_trees, n_threads, bytes, prepare, explain);
}

// Against background documents: unknown features have the values that one of them has, each in its turn.

// Different patterns of bits in the order in which they were first added.
class Patterns {
 public:
  explicit Patterns(std::size_t n_words = 1) : n_words_(n_words) { clear(); }

  void clear() {
    n_ = 0;
    words_.clear();
    slots_.assign(kSlots, -1);
  }
  std::size_t size() const { return n_; }
  const std::uint64_t* words() const { return words_.data(); }

  // Number of a pattern, whose words are `stride` apart; it is added if it is new.
  std::size_t number(const std::uint64_t* pattern, std::size_t stride) {
    if (2 * n_ >= slots_.size()) grow();
    std::size_t slot = hash(pattern, stride) & (slots_.size() - 1);
    for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
      if (is_same(words_.data() + static_cast<std::size_t>(slots_[slot]) * n_words_, pattern, stride)) {
        return static_cast<std::size_t>(slots_[slot]);
      }
    }
    slots_[slot] = static_cast<std::int32_t>(n_);
    for (std::size_t w = 0; w < n_words_; ++w) words_.push_back(pattern[w * stride]);
    return n_++;
  }

 private:
  static constexpr std::size_t kSlots = 32;

  std::uint64_t hash(const std::uint64_t* pattern, std::size_t stride) const {
    std::uint64_t mixed = 0;
    for (std::size_t w = 0; w < n_words_; ++w) {
      mixed = (mixed ^ pattern[w * stride]) * 0x9e3779b97f4a7c15;
      mixed ^= mixed >> 32;
    }
    return mixed;
  }
  bool is_same(const std::uint64_t* kept, const std::uint64_t* pattern, std::size_t stride) const {
    for (std::size_t w = 0; w < n_words_; ++w) {
      if (kept[w] != pattern[w * stride]) return false;
    }
    return true;
  }
  void grow() {
    std::vector<std::int32_t> wider(2 * slots_.size(), -1);
    for (std::size_t i = 0; i < n_; ++i) {
      std::size_t slot = hash(words_.data() + i * n_words_, 1) & (wider.size() - 1);
      while (wider[slot] >= 0) slot = (slot + 1) & (wider.size() - 1);
      wider[slot] = static_cast<std::int32_t>(i);
    }
    slots_.swap(wider);
  }

  std::size_t n_words_, n_ = 0;
  std::vector<std::uint64_t> words_;
  std::vector<std::int32_t> slots_;
};

constexpr std::size_t kPatternRows = 256;  // documents that go down a tree together

// Call at_leaf(edge, patterns) for every leaf of a tree: which conditions of the path each of n documents meets. Bit
// j % 64 of word j / 64 is that of the feature at place j of the path; word w of document i is [w * kPatternRows + i].
//   IN  x  used features x documents, kPatternRows entries for each feature
template <class AtLeaf>
void for_each_path(const TreeEdges& tree, std::size_t n_words, const double* x, std::size_t n, const AtLeaf& at_leaf) {
  const std::size_t level = n_words * kPatternRows;
  std::vector<std::uint64_t> met((tree.depth + 1) * level, 0);
  std::vector<std::uint8_t> left(tree.nodes.size() * kPatternRows);
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const ExplainedNode& node = tree.nodes[i];
    const double* const value = x + static_cast<std::size_t>(node.feature) * kPatternRows;
    std::uint8_t* const to = left.data() + i * kPatternRows;
    for (std::size_t k = 0; k < n; ++k) {
      to[k] =
          static_cast<std::uint8_t>((value[k] <= node.threshold) | ((value[k] != value[k]) & (node.missing_left != 0)));
    }
    if (node.n_further == 0) continue;
    for (std::size_t k = 0; k < n; ++k) {
      if (!(value[k] > node.threshold)) continue;
      to[k] = (std::lower_bound(node.further, node.further + node.n_further, value[k]) - node.further) % 2 == 1;
    }
  }
  for (const ExplainedEdge& edge : tree.edges) {
    const auto place = static_cast<std::size_t>(edge.place);
    std::uint64_t* const here = met.data() + static_cast<std::size_t>(edge.depth) * level;
    std::copy_n(here - level, level, here);
    std::uint64_t* const word = here + place / 64 * kPatternRows;
    const std::uint8_t* const goes = left.data() + static_cast<std::size_t>(edge.node) * kPatternRows;
    const std::uint64_t side = edge.is_left != 0 ? 0 : 1;
    if (edge.before < 0) {
      for (std::size_t k = 0; k < n; ++k) word[k] |= (goes[k] ^ side) << place % 64;
    } else {
      for (std::size_t k = 0; k < n; ++k) word[k] &= ~((std::uint64_t{1} ^ goes[k] ^ side) << place % 64);
    }
    if (edge.leaf >= 0) at_leaf(edge, here);
  }
}

// Weights of Shapley: [p * stride + n] is (p - 1)! n! / (p + n)!, for p from 1.
inline std::vector<double> shapley_weights(std::size_t stride) {
  std::vector<double> weights(stride * stride, 0.0);
  for (std::size_t p = 1; p < stride; ++p) {
    weights[p * stride] = 1.0 / static_cast<double>(p);
    for (std::size_t n = 1; n < stride; ++n) {
      weights[p * stride + n] = weights[p * stride + n - 1] * static_cast<double>(n) / static_cast<double>(p + n);
    }
  }
  return weights;
}

struct BackgroundOf {
  struct Path {
    Patterns patterns;
    std::vector<double> counts;
    std::vector<std::size_t> features;  // by place
  };
  TreeEdges tree;
  std::size_t n_words = 1;
  std::vector<Path> paths;  // by leaf
  std::vector<double> weights;
};

template <class T>
BackgroundOf prepare_background(const EnsembleView& model, std::size_t t, double weight, const UsedFeatures& used,
                                const Rows<T>& background) {
  BackgroundOf out;
  out.tree = edges_of(model, t, weight, used);
  if (out.tree.edges.empty()) return out;
  out.n_words = (out.tree.n_distinct + 63) / 64;
  out.weights = shapley_weights(out.tree.n_distinct + 1);
  out.paths.assign(out.tree.nodes.size() + 1, {Patterns(out.n_words), {}, {}});
  std::vector<std::size_t> features(out.tree.n_distinct);
  for (const ExplainedEdge& edge : out.tree.edges) {
    features[static_cast<std::size_t>(edge.place)] = used.features()[static_cast<std::size_t>(edge.feature)];
    if (edge.leaf < 0) continue;
    out.paths[static_cast<std::size_t>(edge.leaf)].features.assign(features.begin(),
                                                                   features.begin() + edge.n_distinct);
  }
  std::vector<double> x(used.size() * kPatternRows);
  for (std::size_t first = 0; first < background.n_rows; first += kPatternRows) {
    check_interruption();
    const std::size_t n = std::min(kPatternRows, background.n_rows - first);
    read_features(background, first, n, used, kPatternRows, x.data());
    for_each_path(out.tree, out.n_words, x.data(), n, [&](const ExplainedEdge& edge, const std::uint64_t* met) {
      BackgroundOf::Path& path = out.paths[static_cast<std::size_t>(edge.leaf)];
      for (std::size_t k = 0; k < n; ++k) {
        const std::size_t number = path.patterns.number(met + k, kPatternRows);
        if (number == path.counts.size()) path.counts.push_back(0.0);
        path.counts[number] += 1.0;
      }
    });
  }
  return out;
}

// Add the contributions of checked trees, as means over the rows of `background`, of which there is one at least.
template <class T>
void contributions_by_background(const EnsembleView& model, const double* tree_weights, const Rows<double>& background,
                                 const Rows<T>& rows, const Contributions& out, int n_threads) {
  const UsedFeatures used(model);
  const Kernels& isa = kernels();
  const auto bytes = [&](std::size_t t) {
    return (model.nodes_of(t) + 1) * (256 + background.n_rows * 2 * sizeof(double));
  };
  const auto prepare = [&](std::size_t t) { return prepare_background(model, t, tree_weights[t], used, background); };
  const std::size_t per_task = rows_per_task(rows.n_rows, n_threads, kPatternRows);
  const auto n_background = static_cast<double>(background.n_rows);
  const auto explain = [&](const std::vector<BackgroundOf>& trees) {
    parallel_for((rows.n_rows + per_task - 1) / per_task, n_threads, [&](std::size_t task) {
      const std::size_t first = task * per_task, n = std::min(per_task, rows.n_rows - first);
      std::vector<double> x(used.size() * kPatternRows), known, values;
      read_features(rows, first, n, used, kPatternRows, x.data());
      for (const BackgroundOf& one : trees) {
        check_interruption();
        Patterns patterns(one.n_words);
        values.resize(one.tree.n_distinct);
        for_each_path(one.tree, one.n_words, x.data(), n, [&](const ExplainedEdge& edge, const std::uint64_t* met) {
          const BackgroundOf::Path& path = one.paths[static_cast<std::size_t>(edge.leaf)];
          const std::size_t n_features = path.features.size();
          const BackgroundPath view = {
              path.patterns.words(), path.counts.data(),     path.counts.size(), one.n_words, n_features,
              one.weights.data(),    one.tree.n_distinct + 1};
          patterns.clear();
          known.clear();
          for (std::size_t k = 0; k < n; ++k) {
            const std::size_t number = patterns.number(met + k, kPatternRows);
            if (number * n_features == known.size()) {
              isa.explain_by_background(view, patterns.words() + number * one.n_words, values.data());
              for (std::size_t j = 0; j < n_features; ++j) known.push_back(values[j] / n_background * edge.value);
            }
            double* const to = out.values + (first + k) * out.n_features;
            for (std::size_t j = 0; j < n_features; ++j) to[path.features[j]] += known[number * n_features + j];
          }
        });
      }
    });
  };
  in_runs<BackgroundOf>(model.n_trees, n_threads, bytes, prepare, explain);
}

}  // namespace rankwood
