// Binning and the histogram tree learner.
#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>

#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "bindings/bindings.hpp"
#include "binned_tree.hpp"
#include "binning.hpp"
#include "coded.hpp"
#include "grower.hpp"
#include "kept_leaves.hpp"
#include "parallel.hpp"

namespace rankwood {
namespace {

using Matrix = In<float, 2>;

std::vector<std::vector<double>> find_bin_edges(const Matrix& X, int max_bins, int n_threads) {
  require(max_bins >= 2 && max_bins <= kMaxValueCodes, "max_bins must lie between 2 and 65535");
  const std::size_t n = X.shape(0), n_features = X.shape(1);
  std::vector<std::vector<double>> edges(n_features);
  unlocked([&] {
    parallel_for(n_features, n_threads,
                 [&](std::size_t f) { edges[f] = find_edges(X.data() + f, n_features, n, max_bins); });
  });
  return edges;
}

// Distinct values of every column: their numbers, -1 where there are more than max_bins, and all of them in one array.
nb::tuple find_few_values(const Matrix& X, int max_bins, int n_threads) {
  require(max_bins >= 2 && max_bins <= kMaxValueCodes, "max_bins must lie between 2 and 65535");
  const std::size_t n = X.shape(0), n_features = X.shape(1);
  std::vector<std::int64_t> counts(n_features);
  std::vector<float> all;
  unlocked([&] {
    std::vector<std::optional<std::vector<float>>> found(n_features);
    parallel_for(n_features, n_threads, [&](std::size_t f) {
      found[f] = distinct_values(X.data() + f, n_features, n, static_cast<std::size_t>(max_bins));
    });
    for (std::size_t f = 0; f < n_features; ++f) {
      counts[f] = found[f] ? static_cast<std::int64_t>(found[f]->size()) : -1;
      if (found[f]) all.insert(all.end(), found[f]->begin(), found[f]->end());
    }
  });
  return nb::make_tuple(to_numpy(std::move(counts)), to_numpy(std::move(all)));
}

// What find_bin_edges finds, from the values of columns that have few (as find_few_values returns them) and a sample of
// the rows for the others.
std::vector<std::vector<double>> find_sketched_edges(const In<std::int64_t>& counts, const In<float>& values,
                                                     const Matrix& sample, int max_bins, int n_threads) {
  require(max_bins >= 2 && max_bins <= kMaxValueCodes, "max_bins must lie between 2 and 65535");
  const std::size_t n_features = counts.shape(0);
  require(sample.shape(1) == n_features, "wrong number of features");
  std::vector<std::size_t> starts(1, 0);
  for (std::size_t f = 0; f < n_features; ++f) {
    starts.push_back(starts.back() + static_cast<std::size_t>(std::max<std::int64_t>(counts.data()[f], 0)));
  }
  require(starts.back() == values.shape(0), "wrong number of values");
  std::vector<std::vector<double>> edges(n_features);
  unlocked([&] {
    parallel_for(n_features, n_threads, [&](std::size_t f) {
      if (counts.data()[f] >= 0) {
        edges[f] = edges_between({values.data() + starts[f], starts[f + 1] - starts[f]});
        return;
      }
      std::vector<float> column;
      column.reserve(sample.shape(0));
      for (std::size_t i = 0; i < sample.shape(0); ++i) {
        const float value = sample.data()[i * n_features + f];
        if (!std::isnan(value)) column.push_back(value);
      }
      edges[f] = quantile_edges(column, max_bins);
    });
  });
  return edges;
}

// Bins of every value, group by group; returns for each feature whether a value is missing.
template <class Code>
void encode_bins(const Matrix& X, const In<double>& edges, const In<std::int64_t>& edge_offsets,
                 const Out<Code, 3>& bins, const Out<std::uint8_t>& has_missing, int n_threads) {
  const std::size_t n = X.shape(0), n_features = X.shape(1), n_groups = bins.shape(0);
  require(edge_offsets.shape(0) == n_features + 1 && has_missing.shape(0) == n_features, "wrong number of features");
  require(bins.shape(1) == n && bins.shape(2) == kGroup && n_groups == (n_features + kGroup - 1) / kGroup,
          "bins have the wrong shape");
  for (std::size_t f = 0; f < n_features; ++f) {
    const std::int64_t n_edges = edge_offsets.data()[f + 1] - edge_offsets.data()[f];
    require(n_edges >= 0 && n_edges < std::numeric_limits<Code>::max(), "wrong number of edges");
  }
  require(edge_offsets.data()[0] == 0 && edge_offsets.data()[n_features] == static_cast<std::int64_t>(edges.shape(0)),
          "wrong number of edges");
  unlocked([&] {
    constexpr std::size_t kRows = 4096;
    const std::size_t n_blocks = (n + kRows - 1) / kRows;
    std::vector<std::uint8_t> missing(n_groups * n_blocks * kGroup, 0);
    parallel_for(n_groups * n_blocks, n_threads, [&](std::size_t task) {
      const std::size_t g = task / n_blocks, block = task % n_blocks;
      const std::size_t end = std::min(n, (block + 1) * kRows);
      for (std::size_t k = 0; k < kGroup; ++k) {
        const std::size_t f = g * kGroup + k;
        Code* out = bins.data() + g * n * kGroup + k;
        if (f >= n_features) {
          for (std::size_t i = block * kRows; i < end; ++i) out[i * kGroup] = 0;
          continue;
        }
        const double* first = edges.data() + edge_offsets.data()[f];
        const std::size_t n_edges = static_cast<std::size_t>(edge_offsets.data()[f + 1] - edge_offsets.data()[f]);
        for (std::size_t i = block * kRows; i < end; ++i) {
          const float value = X.data()[i * n_features + f];
          if (std::isnan(value)) {
            out[i * kGroup] = static_cast<Code>(n_edges + 1);
            missing[task * kGroup + k] = 1;
          } else {
            out[i * kGroup] = static_cast<Code>(bin_of(value, first, n_edges));
          }
        }
      }
    });
    for (std::size_t f = 0; f < n_features; ++f) has_missing.data()[f] = 0;
    for (std::size_t task = 0; task < n_groups * n_blocks; ++task) {
      for (std::size_t k = 0; k < kGroup; ++k) {
        if (missing[task * kGroup + k]) has_missing.data()[task / n_blocks * kGroup + k] = 1;
      }
    }
  });
}

// Holds the arrays it looks at, so that they outlive it.
struct Learner {
  Learner(In<std::uint8_t, 3> bins_, In<std::int32_t> n_values_, In<std::uint8_t> has_missing_, int n_threads)
      : bins(bins_), n_values(n_values_), has_missing(has_missing_), grower(view(), n_threads) {}

  BinnedView view() const {
    const std::size_t n_features = n_values.shape(0);
    require(has_missing.shape(0) == n_features && bins.shape(2) == kGroup &&
                bins.shape(0) == (n_features + kGroup - 1) / kGroup,
            "bins have the wrong shape");
    return {bins.data(), bins.shape(1), n_features, n_values.data(), has_missing.data()};
  }

  void check_rows(const In<double>& gradient, const In<double>& hessian) const {
    const std::size_t n = grower.data().n_rows;
    require(gradient.shape(0) == n && hessian.shape(0) == n, "one gradient and hessian per row are needed");
  }
  void check_features(const In<std::uint8_t>& features) const {
    require(features.shape(0) == grower.data().n_features, "one mark per feature is needed");
  }
  void check_features(const std::optional<In<std::uint8_t, 2>>& features) const {
    require(!features || (features->shape(0) == 2 && features->shape(1) == grower.data().n_features),
            "one mark per child and feature is needed");
  }
  void check_costs(const In<double>& costs) const {
    require(costs.shape(0) == grower.data().n_features, "one cost per feature is needed");
  }
  void check_nodes(const std::vector<std::size_t>& numbers) const {
    for (const std::size_t number : numbers) require(number < grower.nodes().size(), "no such node");
  }

  In<std::uint8_t, 3> bins;
  In<std::int32_t> n_values;
  In<std::uint8_t> has_missing;
  TreeGrower grower;
};

// Leaf of every document in one tree, in one byte or two.
using Leaves = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Into tree.narrow or tree.wide.
template <class Tree>
void set_leaves(Tree& tree, const Leaves& leaves) {
  if (leaves.dtype() == nb::dtype<std::uint8_t>()) {
    tree.narrow = static_cast<const std::uint8_t*>(leaves.data());
    return;
  }
  require(leaves.dtype() == nb::dtype<std::uint16_t>(), "leaves must be uint8 or uint16");
  tree.wide = static_cast<const std::uint16_t*>(leaves.data());
}

WeightedTree weighted_tree(const Leaves& leaves, const In<double>& values, double weight) {
  WeightedTree tree;
  const std::size_t n_values = values.shape(0);
  for (std::size_t v = 0; v < n_values; ++v) tree.values.push_back(rounded_for_sums(weight * values.data()[v]));
  set_leaves(tree, leaves);
  if (tree.narrow != nullptr && n_values < 256) tree.values.resize(256, 0.0);
  return tree;
}

void bind_sum_over_leaves(const std::vector<Leaves>& leaves, const In<std::int64_t>& x, const In<std::int64_t>& y,
                          int n_threads, const std::vector<Out<std::int64_t, 2>>& sums) {
  require(x.shape(0) == y.shape(0), "x and y must have one entry per document");
  require(leaves.size() == sums.size(), "trees need leaves and sums");
  std::vector<SummedTree> trees;
  for (std::size_t t = 0; t < leaves.size(); ++t) {
    require(leaves[t].shape(0) == x.shape(0), "one leaf per document is needed");
    require(sums[t].shape(1) == 2, "sums must have two columns");
    SummedTree tree;
    tree.n_leaves = sums[t].shape(0);
    tree.sums = sums[t].data();
    set_leaves(tree, leaves[t]);
    trees.push_back(tree);
  }
  unlocked([&] { sum_over_leaves(trees, x.shape(0), x.data(), y.data(), n_threads); });
}

}  // namespace

void bind_learner(nb::module_& m) {
  m.def("find_bin_edges", &find_bin_edges, nb::arg("X"), nb::arg("max_bins"), nb::arg("n_threads"));
  m.def("find_few_values", &find_few_values, nb::arg("X"), nb::arg("max_bins"), nb::arg("n_threads"));
  m.def("find_sketched_edges", &find_sketched_edges, nb::arg("counts"), nb::arg("values"), nb::arg("sample"),
        nb::arg("max_bins"), nb::arg("n_threads"));
  m.attr("BIN_SAMPLE_ROWS") = kSampleRows;
  const auto define_encode = [&](auto* function) {
    m.def("encode_bins", function, nb::arg("X"), nb::arg("edges"), nb::arg("edge_offsets"), nb::arg("bins"),
          nb::arg("has_missing"), nb::arg("n_threads"));
  };
  define_encode(&encode_bins<std::uint8_t>);
  define_encode(&encode_bins<std::uint16_t>);
  m.attr("BIN_GROUP") = kGroup;

  const auto rules_of = [](double l2, double min_hessian, double min_gain, std::uint32_t min_docs,
                           bool hessian_is_count) {
    return GrowerRules{l2, min_hessian, min_gain, min_docs, hessian_is_count};
  };
  using Rows = std::optional<In<std::uint32_t>>;
  using Features = std::optional<In<std::uint8_t, 2>>;
  using Two = std::pair<double, double>;
  using Three = std::array<std::int64_t, 3>;

  nb::class_<Learner>(m, "TreeGrower")
      .def(nb::init<In<std::uint8_t, 3>, In<std::int32_t>, In<std::uint8_t>, int>(), nb::arg("bins"),
           nb::arg("n_values"), nb::arg("has_missing"), nb::arg("n_threads"))
      .def(
          "constrain",
          [](Learner& self, const std::optional<In<std::int8_t>>& directions, const In<std::uint8_t, 2>& groups) {
            const std::size_t n_features = self.grower.data().n_features;
            require(!directions || directions->shape(0) == n_features, "one direction per feature is needed");
            require(groups.shape(1) == n_features, "one mark per group and feature is needed");
            self.grower.constrain(directions ? directions->data() : nullptr, groups.data(), groups.shape(0));
          },
          nb::arg("directions").none(), nb::arg("groups"),
          "How values must change with features, and which features may be met on one path.")
      .def(
          "categorise",
          [](Learner& self, const In<std::uint8_t>& marks, double smoothing, double l2, std::size_t most) {
            self.check_features(marks);
            self.grower.categorise(marks.data(), {smoothing, l2, most});
          },
          nb::arg("marks"), nb::arg("smoothing"), nb::arg("l2"), nb::arg("most"),
          "Features whose bins are categories, and how they are split.")
      .def(
          "left_bins",
          [](const Learner& self, std::size_t number) {
            self.check_nodes({number});
            const std::vector<std::uint8_t>& marks = self.grower.nodes()[number].left_bins;
            return nb::bytes(reinterpret_cast<const char*>(marks.data()), marks.size());
          },
          nb::arg("number"), "Marks of the bins that go left at a split of categories; empty at other splits.")
      .def(
          "price",
          [](Learner& self, const In<double>& costs) {
            self.check_costs(costs);
            self.grower.price(costs.data());
          },
          nb::arg("costs"), "What is taken from the gains of features, from the next tree on.")
      .def(
          "reprice",
          [](Learner& self, const In<double>& costs) {
            self.check_costs(costs);
            unlocked([&] { self.grower.reprice(costs.data()); });
          },
          nb::arg("costs"), "Other costs: open leaves choose their splits anew.")
      .def(
          "reopen",
          [](Learner& self, const In<double>& costs) {
            self.check_costs(costs);
            self.grower.reopen(costs.data());
          },
          nb::arg("costs"), "Other costs: the splits of open leaves are unchecked again.")
      .def(
          "start",
          [rules_of](Learner& self, const In<double>& gradient, const In<double>& hessian, const Rows& rows,
                     const In<std::uint8_t>& features, double l2, double min_hessian, double min_gain,
                     std::uint32_t min_docs, bool hessian_is_count, bool want_splits) {
            self.check_rows(gradient, hessian);
            self.check_features(features);
            const GrowerRules rules = rules_of(l2, min_hessian, min_gain, min_docs, hessian_is_count);
            unlocked([&] {
              self.grower.start(gradient.data(), hessian.data(), rows ? rows->data() : nullptr,
                                rows ? rows->shape(0) : 0, features.data(), rules, want_splits);
            });
            return self.grower.nodes()[0].gain;
          },
          nb::arg("gradient"), nb::arg("hessian"), nb::arg("rows").none(), nb::arg("features"), nb::arg("l2"),
          nb::arg("min_hessian"), nb::arg("min_gain"), nb::arg("min_docs"), nb::arg("hessian_is_count"),
          nb::arg("want_splits"))
      .def(
          "split",
          [](Learner& self, std::size_t node, bool want_splits, const Features& features) {
            self.check_features(features);
            std::size_t left = 0;
            unlocked([&] { left = self.grower.split(node, want_splits, features ? features->data() : nullptr); });
            const auto& nodes = self.grower.nodes();
            return std::make_pair(nodes[left].gain, nodes[left + 1].gain);
          },
          nb::arg("node"), nb::arg("want_splits"), nb::arg("features") = nb::none())
      .def(
          "take_rows",
          [](Learner& self, const In<double>& gradient, const In<double>& hessian, const Rows& rows) {
            self.check_rows(gradient, hessian);
            Extremes extremes;
            unlocked([&] {
              extremes = self.grower.take_rows(gradient.data(), hessian.data(), rows ? rows->data() : nullptr,
                                               rows ? rows->shape(0) : 0);
            });
            return Two{extremes.gradient, extremes.hessian};
          },
          nb::arg("gradient"), nb::arg("hessian"), nb::arg("rows").none(),
          "Take the rows of the next tree; returns the largest gradient and hessian, by magnitude.")
      .def(
          "weigh",
          [](Learner& self, const In<double>& gradient, const In<double>& hessian, const Two& extremes) {
            self.check_rows(gradient, hessian);
            Masses masses;
            unlocked([&] {
              masses = self.grower.weigh(gradient.data(), hessian.data(), {extremes.first, extremes.second});
            });
            return Three{masses.gradient, masses.hessian, masses.n_docs};
          },
          nb::arg("gradient"), nb::arg("hessian"), nb::arg("extremes"))
      .def(
          "open",
          [rules_of](Learner& self, const In<double>& gradient, const In<double>& hessian, const Two& extremes,
                     const Three& masses, const In<std::uint8_t>& features, double l2, double min_hessian,
                     double min_gain, std::uint32_t min_docs, bool hessian_is_count) {
            self.check_rows(gradient, hessian);
            self.check_features(features);
            const GrowerRules rules = rules_of(l2, min_hessian, min_gain, min_docs, hessian_is_count);
            NodeSums sums;
            unlocked([&] {
              self.grower.open(gradient.data(), hessian.data(), {extremes.first, extremes.second},
                               {masses[0], masses[1], masses[2]}, features.data(), rules);
              sums = self.grower.root_sums();
            });
            return Three{sums.gradient, sums.hessian, sums.magnitude};
          },
          nb::arg("gradient"), nb::arg("hessian"), nb::arg("extremes"), nb::arg("masses"), nb::arg("features"),
          nb::arg("l2"), nb::arg("min_hessian"), nb::arg("min_gain"), nb::arg("min_docs"), nb::arg("hessian_is_count"),
          "Begin a tree on the rows taken; returns the sums of the root over them.")
      .def(
          "settle_root",
          [](Learner& self, const Three& sums) {
            self.check_nodes({0});
            self.grower.settle_root({sums[0], sums[1], sums[2]});
          },
          nb::arg("sums"))
      .def(
          "divide",
          [](Learner& self, const std::vector<std::size_t>& nodes) {
            std::vector<std::size_t> n_left;
            unlocked([&] {
              for (const std::size_t node : nodes) n_left.push_back(self.grower.divide(node));
            });
            return n_left;
          },
          nb::arg("nodes"), "Divide the documents of nodes; returns how many of them go left.")
      .def(
          "conclude",
          [](Learner& self, std::size_t node, std::int64_t n_left) {
            self.check_nodes({node});
            require(self.grower.nodes()[node].first_child != 0, "node is not divided");
            self.grower.conclude(node, n_left);
          },
          nb::arg("node"), nb::arg("n_left"))
      .def(
          "exchanged",
          [](const Learner& self, const std::vector<std::size_t>& nodes) {
            self.check_nodes(nodes);
            std::size_t size = 0;
            for (const std::size_t node : nodes) size += self.grower.exchanged(node);
            return size;
          },
          nb::arg("nodes"), "Numbers that `build` writes for nodes.")
      .def(
          "build",
          [](Learner& self, const std::vector<std::size_t>& nodes, const std::vector<std::int64_t>& n_left,
             const Features& features, const Out<std::int64_t>& out) {
            self.check_nodes(nodes);
            self.check_features(features);
            require(n_left.size() == nodes.size() && self.grower.n_built() == 0, "one count per node is needed");
            std::size_t size = 0;
            for (const std::size_t node : nodes) size += self.grower.exchanged(node);
            require(out.shape(0) == size, "room for all histograms is needed");
            unlocked([&] {
              std::int64_t* to = out.data();
              for (std::size_t k = 0; k < nodes.size(); ++k) {
                self.grower.build(nodes[k], n_left[k], features ? features->data() : nullptr, to);
                to += self.grower.exchanged(nodes[k]);
              }
            });
          },
          nb::arg("nodes"), nb::arg("n_left"), nb::arg("features").none(), nb::arg("out"),
          "Histograms of this process's documents in the smaller children of nodes, or in the root.")
      .def(
          "settle",
          [](Learner& self, const std::vector<std::size_t>& nodes, const In<std::int64_t>& sums) {
            self.check_nodes(nodes);
            require(nodes.size() == self.grower.n_built(), "these are not the nodes that were built");
            std::size_t size = 0;
            for (const std::size_t node : nodes) size += self.grower.exchanged(node);
            require(sums.shape(0) == size, "sums have the wrong length");
            unlocked([&] {
              const std::int64_t* from = sums.data();
              for (std::size_t k = 0; k < nodes.size(); ++k) {
                self.grower.settle(k, from);
                from += self.grower.exchanged(nodes[k]);
              }
            });
          },
          nb::arg("nodes"), nb::arg("sums"), "Take in the histograms of all processes, added up.")
      .def(
          "unchecked",
          [](Learner& self) {
            std::vector<std::pair<std::size_t, std::int32_t>> found;
            for (const auto& one : self.grower.unchecked()) found.emplace_back(one.node, one.feature);
            return found;
          },
          "Nodes and features whose documents must be counted before a split is chosen; none: all is chosen.")
      .def(
          "count",
          [](Learner& self, std::size_t node, std::int32_t feature, const Out<std::uint32_t>& counts) {
            self.check_nodes({node});
            require(feature >= 0 && static_cast<std::size_t>(feature) < self.grower.data().n_features &&
                        counts.shape(0) == kBins,
                    "there is no such feature");
            unlocked([&] { self.grower.count(node, feature, counts.data()); });
          },
          nb::arg("node"), nb::arg("feature"), nb::arg("counts"))
      .def(
          "recheck",
          [](Learner& self, std::size_t node, std::int32_t feature, const In<std::uint32_t>& counts) {
            self.check_nodes({node});
            require(feature >= 0 && static_cast<std::size_t>(feature) < self.grower.data().n_features &&
                        counts.shape(0) == kBins,
                    "there is no such feature");
            self.grower.recheck({node, feature}, counts.data());
          },
          nb::arg("node"), nb::arg("feature"), nb::arg("counts"))
      .def(
          "settled", [](Learner& self) { self.grower.settled(); }, "All splits are chosen: room is given back.")
      .def_prop_ro(
          "extremes",
          [](const Learner& self) { return Two{self.grower.extremes().gradient, self.grower.extremes().hessian}; },
          "The largest gradient and hessian of the documents of the tree, by magnitude.")
      .def_prop_ro(
          "units", [](const Learner& self) { return Two{self.grower.gradient_unit(), self.grower.hessian_unit()}; },
          "What gradients and hessians are whole numbers of, while the tree grows.")
      .def(
          "gain",
          [](const Learner& self, std::size_t node) {
            self.check_nodes({node});
            return self.grower.nodes()[node].gain;
          },
          nb::arg("node"))
      .def(
          "first_child",
          [](const Learner& self, std::size_t node) {
            self.check_nodes({node});
            return self.grower.nodes()[node].first_child;
          },
          nb::arg("node"))
      .def(
          "node",
          [](const Learner& self, std::size_t number) {
            self.check_nodes({number});
            const GrowerNode& node = self.grower.nodes()[number];
            return std::make_tuple(node.feature, node.bin, node.missing_left, node.n_docs);
          },
          nb::arg("number"), "Feature, bin and direction of missing values of a node's split, and its documents.")
      .def(
          "sums",
          [](Learner& self, const std::vector<std::size_t>& nodes, const In<double>& gradient,
             const In<double>& hessian, const Two& extremes, const Out<std::int64_t, 2>& sums) {
            self.check_nodes(nodes);
            self.check_rows(gradient, hessian);
            require(sums.shape(0) == nodes.size() && sums.shape(1) == 4, "four sums per node are needed");
            unlocked([&] {
              self.grower.sums(nodes.data(), nodes.size(), gradient.data(), hessian.data(),
                               {extremes.first, extremes.second}, sums.data());
            });
            return Two{TreeGrower::sum_unit(extremes.first), TreeGrower::sum_unit(extremes.second)};
          },
          nb::arg("nodes"), nb::arg("gradient"), nb::arg("hessian"), nb::arg("extremes"), nb::arg("sums"),
          "Sums over the documents of nodes, exact, and the value of one step of gradients and of hessians.")
      .def(
          "mark",
          [](Learner& self, const std::vector<std::size_t>& nodes, const Out<std::uint16_t>& leaf_of_row) {
            require(leaf_of_row.shape(0) == self.grower.data().n_rows, "one leaf per row is needed");
            require(nodes.size() <= 65536, "a tree may have at most 65536 leaves");
            self.check_nodes(nodes);
            unlocked([&] { self.grower.mark(nodes.data(), nodes.size(), leaf_of_row.data()); });
          },
          nb::arg("nodes"), nb::arg("leaf_of_row"));

  m.def(
      "reach_leaves",
      [](const In<std::uint8_t, 3>& bins, const In<std::int32_t>& n_values, const In<std::int32_t>& feature,
         const In<std::int32_t>& bin, const In<std::uint8_t>& missing_left, const In<std::int32_t>& left,
         const In<std::int32_t>& right, const std::optional<In<std::uint8_t, 2>>& left_bins,
         const Out<std::uint16_t>& leaf_of_row, int n_threads) {
        const std::size_t n = feature.shape(0), n_rows = bins.shape(1), n_features = n_values.shape(0);
        require(bin.shape(0) == n && missing_left.shape(0) == n && left.shape(0) == n && right.shape(0) == n,
                "nodes must have equally long arrays");
        require(leaf_of_row.shape(0) == n_rows && bins.shape(2) == kGroup && bins.shape(0) * kGroup >= n_features,
                "bins have the wrong shape");
        require(!left_bins || (left_bins->shape(0) == n && left_bins->shape(1) == kBins), "marks have the wrong shape");
        std::vector<BinnedNode> nodes(n);
        for (std::size_t i = 0; i < n; ++i) {
          const std::int32_t f = feature.data()[i], children[2] = {right.data()[i], left.data()[i]};
          require(f >= 0 && static_cast<std::size_t>(f) < n_features, "feature out of range");
          for (const std::int32_t child : children) {  // children come after their parent: no cycles
            require(child < 0 ? ~child <= static_cast<std::int32_t>(n)
                              : child > static_cast<std::int32_t>(i) && child < static_cast<std::int32_t>(n),
                    "child out of range");
          }
          const std::size_t group = static_cast<std::size_t>(f) / kGroup;
          nodes[i] = {bins.data() + group * n_rows * kGroup + static_cast<std::size_t>(f) % kGroup,
                      {children[0], children[1]},
                      static_cast<std::uint8_t>(bin.data()[i]),
                      static_cast<std::uint8_t>(n_values.data()[f]),
                      missing_left.data()[i]};
          // A bin below 0 stands for marks.
          if (left_bins && bin.data()[i] < 0) nodes[i].left_bins = left_bins->data() + i * kBins;
        }
        unlocked([&] {
          (left_bins ? reach_leaves<true> : reach_leaves<false>)(nodes, n_rows, leaf_of_row.data(), n_threads);
        });
      },
      nb::arg("bins"), nb::arg("n_values"), nb::arg("feature"), nb::arg("bin"), nb::arg("missing_left"),
      nb::arg("left"), nb::arg("right"), nb::arg("left_bins").none(), nb::arg("leaf_of_row"), nb::arg("n_threads"));
  m.def(
      "add_leaf_values",
      [](const In<std::uint16_t>& leaf_of_row, const In<double>& values, double weight, const Out<double>& scores,
         int n_threads) {
        require(scores.shape(0) == leaf_of_row.shape(0), "one leaf per score is needed");
        unlocked([&] {
          add_leaf_values(leaf_of_row.data(), leaf_of_row.shape(0), values.data(), values.shape(0), weight,
                          scores.data(), n_threads);
        });
      },
      nb::arg("leaf_of_row"), nb::arg("values"), nb::arg("weight"), nb::arg("scores"), nb::arg("n_threads"));
  m.def(
      "add_trees",
      [](const std::vector<Leaves>& leaves, const std::vector<In<double>>& values, const std::vector<double>& weights,
         const Out<double>& scores, const Out<double>& rests, int n_threads) {
        require(rests.shape(0) == scores.shape(0), "one rest per score is needed");
        require(leaves.size() == values.size() && leaves.size() == weights.size(),
                "trees need leaves, values, weights");
        std::vector<WeightedTree> trees;
        for (std::size_t t = 0; t < leaves.size(); ++t) {
          require(leaves[t].shape(0) == scores.shape(0), "one leaf per score is needed");
          trees.push_back(weighted_tree(leaves[t], values[t], weights[t]));
        }
        unlocked([&] { add_trees(trees, scores.shape(0), scores.data(), rests.data(), n_threads); });
      },
      nb::arg("leaves"), nb::arg("values"), nb::arg("weights"), nb::arg("scores"), nb::arg("rests"),
      nb::arg("n_threads"),
      "Add trees to scores: of each the leaf of every document (uint8 or uint16), the leaves' values and its weight.");
  m.def("sum_over_leaves", &bind_sum_over_leaves, nb::arg("leaves"), nb::arg("x").noconvert(), nb::arg("y").noconvert(),
        nb::arg("n_threads"), nb::arg("sums"), "Sums of x and of y over the documents in every leaf of every tree.");
}

}  // namespace rankwood
