// Forests: trees grown to full depth, many at a time.
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <variant>

#include "bindings/bindings.hpp"
#include "coded.hpp"
#include "forest.hpp"
#include "parallel.hpp"
#include "tree_walk.hpp"

namespace rankwood {
namespace {

// Ranks of all values, feature by feature; returns their values, and where those of each feature start.
nb::tuple encode_exactly(const In<float, 2>& X, const Out<std::uint16_t, 3>& codes,
                         const Out<std::uint8_t>& has_missing, int n_threads) {
  const std::size_t n = X.shape(0), n_features = X.shape(1), n_groups = (n_features + kGroup - 1) / kGroup;
  require(n <= kMaxValueCodes, "too many rows for codes of two bytes");
  require(codes.shape(0) == n_groups && codes.shape(1) == n && codes.shape(2) == kGroup, "codes have the wrong shape");
  require(has_missing.shape(0) == n_features, "wrong number of features");
  std::vector<std::vector<float>> values(n_features);
  unlocked([&] {
    std::fill_n(codes.data(), n_groups * n * kGroup, std::uint16_t{0});
    parallel_for(n_features, n_threads, [&](std::size_t f) {
      std::uint16_t* out = codes.data() + f / kGroup * n * kGroup + f % kGroup;
      values[f] = code_exactly(X.data() + f, n_features, n, out, kGroup);
      has_missing.data()[f] = 0;
      for (std::size_t i = 0; i < n; ++i) has_missing.data()[f] |= std::isnan(X.data()[i * n_features + f]);
    });
  });
  std::vector<float> all;
  std::vector<std::int64_t> offsets{0};
  for (const std::vector<float>& of_feature : values) {
    all.insert(all.end(), of_feature.begin(), of_feature.end());
    offsets.push_back(static_cast<std::int64_t>(all.size()));
  }
  return nb::make_tuple(to_numpy(std::move(offsets)), to_numpy(std::move(all)));
}

// Smallest and largest value of every code: a task per group of features, which reads the rows one after another.
template <class Code>
void find_code_ranges(const In<float, 2>& X, const In<Code, 3>& codes, const In<std::int64_t>& offsets,
                      const Out<float>& low, const Out<float>& high, int n_threads) {
  const std::size_t n = X.shape(0), n_features = X.shape(1), n_groups = (n_features + kGroup - 1) / kGroup;
  require(codes.shape(0) == n_groups && codes.shape(1) == n && codes.shape(2) == kGroup, "codes have the wrong shape");
  require(offsets.shape(0) == n_features + 1 && offsets.data()[0] == 0, "wrong number of features");
  for (std::size_t f = 0; f < n_features; ++f) require(offsets.data()[f] < offsets.data()[f + 1], "wrong offsets");
  const auto n_codes = static_cast<std::size_t>(offsets.data()[n_features]);
  require(low.shape(0) == n_codes && high.shape(0) == n_codes, "one value per code is needed");
  unlocked([&] {
    std::fill_n(low.data(), n_codes, std::numeric_limits<float>::infinity());
    std::fill_n(high.data(), n_codes, -std::numeric_limits<float>::infinity());
    parallel_for(n_groups, n_threads, [&](std::size_t g) {
      const std::size_t end = std::min<std::size_t>(n_features, (g + 1) * kGroup);
      for (std::size_t i = 0; i < n; ++i) {
        check_interruption(i);
        const Code* row = codes.data() + (g * n + i) * kGroup;
        for (std::size_t f = g * kGroup; f < end; ++f) {
          const float value = X.data()[i * n_features + f];
          const auto code = static_cast<std::int64_t>(row[f % kGroup]);
          if (std::isnan(value) || code >= offsets.data()[f + 1] - offsets.data()[f]) continue;
          const auto at = static_cast<std::size_t>(offsets.data()[f] + code);
          low.data()[at] = std::min(low.data()[at], value);
          high.data()[at] = std::max(high.data()[at], value);
        }
      }
    });
  });
}

// Trees of one forest, one after another; children must come after their parent.
struct Trees {
  In<std::int64_t> offsets;
  In<std::int32_t> feature;
  In<double> threshold;
  In<std::int32_t> left, right;
  In<std::uint8_t> missing_left;
  In<double> leaf_value;

  void check(std::size_t n_features) const {
    const std::size_t n = feature.shape(0);
    require(offsets.shape(0) >= 1, "trees need offsets");
    const std::size_t n_trees = offsets.shape(0) - 1;
    require(static_cast<std::size_t>(offsets.data()[n_trees] - offsets.data()[0]) == n && threshold.shape(0) == n &&
                left.shape(0) == n && right.shape(0) == n && missing_left.shape(0) == n &&
                leaf_value.shape(0) == n + n_trees,
            "trees have arrays of the wrong length");
    for (std::size_t t = 0; t < n_trees; ++t) check_tree(t, n_features);
  }
  ForestView view() const {
    return {offsets.data(), offsets.shape(0) - 1, feature.data(),    left.data(),
            right.data(),   threshold.data(),     leaf_value.data(), missing_left.data()};
  }

 private:
  void check_tree(std::size_t t, std::size_t n_features) const {
    const std::int64_t begin = offsets.data()[t] - offsets.data()[0], size = offsets.data()[t + 1] - offsets.data()[t];
    require(size >= 0, "trees must follow each other");
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int32_t f = feature.data()[begin + i];
      require(f >= 0 && static_cast<std::size_t>(f) < n_features, "feature out of range");
      for (const std::int32_t child : {left.data()[begin + i], right.data()[begin + i]}) {
        require(child < 0 ? ~child <= size : child > i && child < size, "child out of range");
      }
    }
  }
};

using Codes8 = In<std::uint8_t, 3>;
using Codes16 = In<std::uint16_t, 3>;

// Holds the arrays it looks at, so that they outlive it.
class ForestGrower {
 public:
  ForestGrower(std::variant<Codes8, Codes16> codes, In<std::uint8_t> has_missing, In<std::int64_t> value_offsets,
               In<float> low, In<float> high, In<std::int64_t> query_offsets, In<double> label,
               std::optional<In<double>> weight, bool entropy)
      : codes_(codes),
        has_missing_(has_missing),
        value_offsets_(value_offsets),
        low_(low),
        high_(high),
        query_offsets_(query_offsets),
        label_(label),
        weight_(weight) {
    unlocked([&] { std::visit([&](const auto& array) { make(array, entropy); }, codes_); });
  }

  nb::tuple grow(std::uint64_t seed, std::uint64_t first, std::size_t n_trees, const SampleRules& sampling,
                 const FullDepthRules& rules, const std::optional<nb::callable>& stop, int n_threads) {
    check_sampling(sampling);
    std::vector<FullDepthTree> trees;
    std::optional<nb::python_error> raised;
    {
      const Unlocked without_lock;
      auto asker = [&] { return wants_to_stop(stop, raised); };
      Interruption interruption(asker);
      std::visit(
          [&](auto& forest) { trees = forest->grow(seed, first, n_trees, sampling, rules, n_threads, interruption); },
          forest_);
    }
    if (raised) throw std::move(*raised);
    return joined(trees);
  }

  nb::tuple sample(std::uint64_t seed, std::uint64_t tree, const SampleRules& sampling) const {
    check_sampling(sampling);
    Sample drawn;
    sampler().draw(sampling, TreeStreams(seed, tree).documents, drawn);
    return nb::make_tuple(to_numpy(std::move(drawn.rows)), to_numpy(std::move(drawn.times)));
  }

  void add_out_of_bag(const Trees& trees, std::uint64_t seed, std::uint64_t first, const SampleRules& sampling,
                      const In<float, 2>& X, const Out<double>& sums, const Out<std::uint32_t>& counts,
                      int n_threads) const {
    const std::size_t n_rows = label_.shape(0), n_features = has_missing_.shape(0);
    require(X.shape(0) == n_rows && X.shape(1) == n_features && sums.shape(0) == n_rows && counts.shape(0) == n_rows,
            "X, sums and counts must have an entry per row");
    check_sampling(sampling);
    trees.check(n_features);
    unlocked([&] {
      rankwood::add_out_of_bag(trees.view(), sampler(), sampling, seed, first, X.data(), n_rows, n_features,
                               sums.data(), counts.data(), n_threads);
    });
  }

 private:
  template <class Code>
  void make(const In<Code, 3>& codes, bool entropy) {
    const std::size_t n = codes.shape(1), n_features = has_missing_.shape(0);
    require(codes.shape(0) == (n_features + kGroup - 1) / kGroup && codes.shape(2) == kGroup,
            "codes have the wrong shape");
    require(value_offsets_.shape(0) == n_features + 1 && value_offsets_.data()[0] == 0, "wrong number of features");
    for (std::size_t f = 0; f < n_features; ++f) {
      const std::int64_t n_values = value_offsets_.data()[f + 1] - value_offsets_.data()[f];
      require(n_values >= 1 && n_values <= std::numeric_limits<Code>::max(), "wrong number of codes");
    }
    const auto n_codes = static_cast<std::size_t>(value_offsets_.data()[n_features]);
    require(low_.shape(0) == n_codes && high_.shape(0) == n_codes, "one value per code is needed");
    require(n < std::numeric_limits<std::uint32_t>::max(), "too many rows");
    require(label_.shape(0) == n && (!weight_ || weight_->shape(0) == n), "one label and weight per row are needed");
    require(query_offsets_.shape(0) >= 1, "queries need offsets");
    const std::size_t n_queries = query_offsets_.shape(0) - 1;
    require(query_offsets_.data()[0] == 0 && query_offsets_.data()[n_queries] == static_cast<std::int64_t>(n),
            "queries must cover all rows");
    for (std::size_t q = 0; q < n_queries; ++q) {
      require(query_offsets_.data()[q] <= query_offsets_.data()[q + 1], "queries must follow each other");
    }
    check_codes(codes);
    const CodedView<Code> view{codes.data(),          n,           n_features,  has_missing_.data(),
                               value_offsets_.data(), low_.data(), high_.data()};
    forest_ = std::make_unique<Forest<Code>>(view, query_offsets_.data(), n_queries, label_.data(),
                                             weight_ ? weight_->data() : nullptr, entropy);
  }

  // No code is above that of missing values, nor equal to it where none is missing.
  template <class Code>
  void check_codes(const In<Code, 3>& codes) const {
    const std::size_t n = codes.shape(1), n_features = has_missing_.shape(0);
    for (std::size_t g = 0; g < codes.shape(0); ++g) {
      std::int64_t most[kGroup];
      for (std::size_t k = 0; k < kGroup; ++k) {
        const std::size_t f = std::min(g * kGroup + k, n_features - 1);
        most[k] = value_offsets_.data()[f + 1] - value_offsets_.data()[f] - (has_missing_.data()[f] ? 0 : 1);
        if (g * kGroup + k >= n_features) most[k] = std::numeric_limits<Code>::max();
      }
      bool fits = true;
      for (std::size_t i = 0; i < n; ++i) {
        check_interruption(i);
        const Code* row = codes.data() + (g * n + i) * kGroup;
        for (std::size_t k = 0; k < kGroup; ++k) fits &= row[k] <= most[k];
      }
      require(fits, "code out of range");
    }
  }

  Sampler sampler() const {
    return std::visit([](const auto& forest) { return forest->sampler(); }, forest_);
  }
  void check_sampling(const SampleRules& sampling) const {
    const std::size_t n_units = sampler().n_units(sampling);
    require(n_units > 0, "there is nothing to draw from");
    require(sampling.n_drawn >= 1 && (sampling.replace || sampling.n_drawn <= n_units), "wrong size of samples");
  }

  static bool wants_to_stop(const std::optional<nb::callable>& stop, std::optional<nb::python_error>& raised) {
    const Locked with_lock;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      return stop && nb::cast<bool>((*stop)());
    } catch (nb::python_error& error) {
      raised.emplace(std::move(error));
      return true;
    }
  }

  // All trees one after another: numbers of inner nodes, then the arrays of an Ensemble.
  static nb::tuple joined(std::vector<FullDepthTree>& trees) {
    std::vector<std::int64_t> sizes;
    FullDepthTree all;
    const auto append = [](auto& to, auto& from) {
      to.insert(to.end(), from.begin(), from.end());
      from = {};
    };
    for (FullDepthTree& tree : trees) {
      sizes.push_back(static_cast<std::int64_t>(tree.feature.size()));
      append(all.feature, tree.feature);
      append(all.threshold, tree.threshold);
      append(all.left, tree.left);
      append(all.right, tree.right);
      append(all.missing_left, tree.missing_left);
      append(all.leaf_value, tree.leaf_value);
      append(all.gain, tree.gain);
      append(all.count, tree.count);
    }
    return nb::make_tuple(
        to_numpy(std::move(sizes)), to_numpy(std::move(all.feature)), to_numpy(std::move(all.threshold)),
        to_numpy(std::move(all.left)), to_numpy(std::move(all.right)), to_numpy(std::move(all.missing_left)),
        to_numpy(std::move(all.leaf_value)), to_numpy(std::move(all.gain)), to_numpy(std::move(all.count)));
  }

  std::variant<Codes8, Codes16> codes_;
  In<std::uint8_t> has_missing_;
  In<std::int64_t> value_offsets_;
  In<float> low_, high_;
  In<std::int64_t> query_offsets_;
  In<double> label_;
  std::optional<In<double>> weight_;
  std::variant<std::unique_ptr<Forest<std::uint8_t>>, std::unique_ptr<Forest<std::uint16_t>>> forest_;
};

// scores[t][i] = scores[t - 1][i] + value of the leaf that row i reaches in tree t; before the first tree, `sums`.
void running_sums(const Trees& trees, const In<float, 2>& X, const In<double>& sums, const Out<double, 2>& scores,
                  int n_threads) {
  const std::size_t n_rows = X.shape(0), n_features = X.shape(1);
  trees.check(n_features);
  const ForestView view = trees.view();
  require(sums.shape(0) == n_rows && scores.shape(0) == view.n_trees && scores.shape(1) == n_rows,
          "one score per tree and row is needed");
  require(n_rows < std::numeric_limits<std::uint32_t>::max(), "too many rows");
  unlocked([&] {
    std::vector<TreeWalk> walks;
    for (std::size_t t = 0; t < view.n_trees; ++t) walks.push_back(view.walk(t));
    constexpr std::size_t kBlock = 1024;
    parallel_for((n_rows + kBlock - 1) / kBlock, n_threads, [&](std::size_t block) {
      std::uint32_t rows[kBlock];
      const std::size_t begin = block * kBlock, size = std::min(n_rows - begin, kBlock);
      for (std::size_t k = 0; k < size; ++k) rows[k] = static_cast<std::uint32_t>(begin + k);
      for (std::size_t t = 0; t < view.n_trees; ++t) {
        check_interruption();
        const double* before = (t == 0 ? sums.data() : scores.data() + (t - 1) * n_rows) + begin;
        double* after = scores.data() + t * n_rows + begin;
        const double* value = view.leaves(t);
        walks[t].run(X.data(), n_features, rows, size,
                     [&](std::size_t k, std::size_t leaf) { after[k] = before[k] + value[leaf]; });
      }
    });
  });
}

}  // namespace

void bind_forest(nb::module_& m) {
  m.attr("MAX_VALUE_CODES") = kMaxValueCodes;
  m.def("encode_exactly", &encode_exactly, nb::arg("X"), nb::arg("codes"), nb::arg("has_missing"),
        nb::arg("n_threads"));
  const auto define_ranges = [&](auto* function) {
    m.def("find_code_ranges", function, nb::arg("X"), nb::arg("codes"), nb::arg("offsets"), nb::arg("low"),
          nb::arg("high"), nb::arg("n_threads"));
  };
  define_ranges(&find_code_ranges<std::uint8_t>);
  define_ranges(&find_code_ranges<std::uint16_t>);

  nb::class_<SampleRules>(m, "SampleRules")
      .def(
          "__init__",
          [](SampleRules* self, bool whole_queries, bool replace, std::size_t n_drawn, double of_each_query) {
            require(of_each_query >= 0.0, "documents drawn from a query must not be negative");
            new (self) SampleRules{whole_queries, replace, n_drawn, of_each_query};
          },
          nb::arg("whole_queries"), nb::arg("replace"), nb::arg("n_drawn"), nb::arg("of_each_query"));
  nb::class_<FullDepthRules>(m, "FullDepthRules")
      .def(
          "__init__",
          [](FullDepthRules* self, std::size_t n_tried, double min_docs, std::optional<std::size_t> max_depth,
             std::optional<std::size_t> max_leaves, double min_gain, bool until_gain, bool random_cuts, bool in_three) {
            require(n_tried >= 1 && min_docs > 0.0 && (!max_leaves || *max_leaves >= 1), "limits must be at least 1");
            require(!in_three || (!max_leaves && !random_cuts),
                    "splits in three need all thresholds and no max_leaves");
            new (self) FullDepthRules{n_tried,
                                      min_docs,
                                      max_depth.value_or(std::numeric_limits<std::size_t>::max()),
                                      max_leaves.value_or(0),
                                      min_gain,
                                      until_gain,
                                      random_cuts,
                                      in_three};
          },
          nb::arg("n_tried"), nb::arg("min_docs"), nb::arg("max_depth").none(), nb::arg("max_leaves").none(),
          nb::arg("min_gain"), nb::arg("until_gain"), nb::arg("random_cuts"), nb::arg("in_three"));
  nb::class_<Trees>(m, "ForestTrees")
      .def(
          "__init__",
          [](Trees* self, In<std::int64_t> offsets, In<std::int32_t> feature, In<double> threshold,
             In<std::int32_t> left, In<std::int32_t> right, In<std::uint8_t> missing_left, In<double> leaf_value) {
            new (self) Trees{offsets, feature, threshold, left, right, missing_left, leaf_value};
          },
          nb::arg("offsets"), nb::arg("feature"), nb::arg("threshold"), nb::arg("left"), nb::arg("right"),
          nb::arg("missing_left"), nb::arg("leaf_value"));
  nb::class_<ForestGrower>(m, "ForestGrower")
      .def(nb::init<std::variant<Codes8, Codes16>, In<std::uint8_t>, In<std::int64_t>, In<float>, In<float>,
                    In<std::int64_t>, In<double>, std::optional<In<double>>, bool>(),
           nb::arg("codes"), nb::arg("has_missing"), nb::arg("value_offsets"), nb::arg("low"), nb::arg("high"),
           nb::arg("query_offsets"), nb::arg("label"), nb::arg("weight").none(), nb::arg("entropy"))
      .def("grow", &ForestGrower::grow, nb::arg("seed"), nb::arg("first"), nb::arg("n_trees"), nb::arg("sampling"),
           nb::arg("rules"), nb::arg("stop").none(), nb::arg("n_threads"))
      .def("sample", &ForestGrower::sample, nb::arg("seed"), nb::arg("tree"), nb::arg("sampling"),
           "Rows that a tree is grown on, and how often each was drawn.")
      .def("add_out_of_bag", &ForestGrower::add_out_of_bag, nb::arg("trees"), nb::arg("seed"), nb::arg("first"),
           nb::arg("sampling"), nb::arg("X"), nb::arg("sums"), nb::arg("counts"), nb::arg("n_threads"));
  m.def("running_sums", &running_sums, nb::arg("trees"), nb::arg("X"), nb::arg("sums"), nb::arg("scores"),
        nb::arg("n_threads"));
}

}  // namespace rankwood
