#include "bindings/trees.hpp"
#include "score/bitslice.hpp"
#include "score/choice.hpp"
#include "score/early_exit.hpp"
#include "score/scorer.hpp"
#include "score/traverse.hpp"
#include "sums.hpp"
#include "traverse_reference.hpp"

#include <cmath>
#include <type_traits>

namespace rankwood {
namespace {

// Checks everything again before it copies: the kernels follow children and features without looking back.
template <class Engine>
void make(Engine* self, const In<std::int32_t>& feature, const In<double>& threshold, const In<std::int32_t>& left,
          const In<std::int32_t>& right, const In<std::uint8_t>& missing_left, const In<double>& leaf_value,
          const In<std::int64_t>& node_offsets, const In<std::int64_t>& set_offsets, const In<double>& set_thresholds,
          std::int32_t n_features, const In<double>& tree_weights, double base) {
  const EnsembleView model = view_of(feature, threshold, left, right, missing_left, leaf_value, node_offsets,
                                     set_offsets, set_thresholds, n_features);
  require(tree_weights.shape(0) == model.n_trees, "tree_weights must have one entry per tree");
  unlocked([&] {
    std::vector<std::int32_t> depths(model.n_trees);
    check_trees(model, depths.data());
    new (self) Engine(model, tree_weights.data(), base);
  });
}

template <class Engine, class T>
void score(const Engine& self, const Matrix<T>& X, const Out<double>& scores, bool single, int n_threads) {
  const Rows<T> rows = rows_of<T>(X, self.n_features());
  require(scores.shape(0) == rows.n_rows, "scores must have one entry per row");
  unlocked([&] { self.score(rows, scores.data(), single, n_threads); });
}

template <class Engine, class T, class Leaf>
void leaves(const Engine& self, const Matrix<T>& X, const Out<Leaf, 2>& leaves, int n_threads) {
  const Rows<T> rows = rows_of<T>(X, self.n_features());
  require(leaves.shape(0) == rows.n_rows && leaves.shape(1) == self.n_trees(),
          "leaves must have one row per document and one column per tree");
  unlocked([&] { self.leaves(rows, leaves.data(), n_threads); });
}

template <class Engine, class T>
void bind_rows_of(nb::class_<Engine>& engine) {
  const auto X = nb::arg("X").noconvert();
  const auto out = nb::arg("leaves").noconvert();
  engine.def("score", &score<Engine, T>, X, nb::arg("scores").noconvert(), nb::arg("single"), nb::arg("n_threads"));
  engine.def("leaves", &leaves<Engine, T, std::uint8_t>, X, out, nb::arg("n_threads"));
  engine.def("leaves", &leaves<Engine, T, std::uint16_t>, X, out, nb::arg("n_threads"));
  engine.def("leaves", &leaves<Engine, T, std::uint32_t>, X, out, nb::arg("n_threads"));
}

template <class Engine>
void bind_engine(nb::module_& m, const char* name, const char* doc) {
  nb::class_<Engine> engine(m, name, doc);
  engine.def("__init__", &make<Engine>, nb::arg("feature").noconvert(), nb::arg("threshold").noconvert(),
             nb::arg("left").noconvert(), nb::arg("right").noconvert(), nb::arg("missing_left").noconvert(),
             nb::arg("leaf_value").noconvert(), nb::arg("node_offsets").noconvert(), nb::arg("set_offsets").noconvert(),
             nb::arg("set_thresholds").noconvert(), nb::arg("n_features"), nb::arg("tree_weights").noconvert(),
             nb::arg("base"));
  engine.def_prop_ro("n_bytes", &Engine::n_bytes);
  bind_rows_of<Engine, float>(engine);
  bind_rows_of<Engine, double>(engine);
}

// The step before the trees, by itself: for tests and benchmarks.
struct Codes {
  Quantised quantised;
  std::size_t n_features, max_code;

  std::size_t n_columns() const { return quantised.quantiser->n_columns(); }
  std::pair<std::int32_t, std::int32_t> node(std::size_t i) const {
    require(i < quantised.nodes.code.size(), "there is no such inner node");
    return {quantised.nodes.column[i], quantised.nodes.code[i]};
  }
};

void make_codes(Codes* self, const In<std::int32_t>& feature, const In<double>& threshold, const In<std::int32_t>& left,
                const In<std::int32_t>& right, const In<std::uint8_t>& missing_left, const In<double>& leaf_value,
                const In<std::int64_t>& node_offsets, const In<std::int64_t>& set_offsets,
                const In<double>& set_thresholds, std::int32_t n_features, std::size_t max_code) {
  const EnsembleView model = view_of(feature, threshold, left, right, missing_left, leaf_value, node_offsets,
                                     set_offsets, set_thresholds, n_features);
  require(max_code == 255 || max_code == 65535, "max_code must be 255 or 65535");
  unlocked([&] {
    std::vector<std::int32_t> depths(model.n_trees);
    check_trees(model, depths.data());
    new (self) Codes{Quantised(model, max_code), static_cast<std::size_t>(n_features), max_code};
  });
}

// As engine bitslice lays codes out: a column's lie side by side.
template <class T>
void codes_by_column(const Codes& self, const Matrix<T>& X, const Out<std::int8_t, 2>& codes) {
  const Rows<T> rows = rows_of<T>(X, self.n_features);
  require(self.max_code == 255, "codes of a byte need max_code 255");
  require(codes.shape(0) == self.n_columns() && codes.shape(1) == rows.n_rows,
          "codes must have one row per column of codes and one column per document");
  unlocked([&] { self.quantised.quantiser->quantise(rows, 0, rows.n_rows, codes.data(), rows.n_rows, 1); });
}

// As engine traverse does: a document's lie side by side.
template <class T, class Code>
void codes_by_row(const Codes& self, const Matrix<T>& X, const Out<Code, 2>& codes) {
  const Rows<T> rows = rows_of<T>(X, self.n_features);
  require(self.max_code == std::numeric_limits<Code>::max(), "the type of codes must be that of max_code");
  require(codes.shape(0) == rows.n_rows && codes.shape(1) == self.n_columns(),
          "codes must have one row per document and one column per column of codes");
  unlocked([&] { self.quantised.quantiser->quantise(rows, 0, rows.n_rows, codes.data(), 1, self.n_columns()); });
}

template <class T>
void bind_codes_of(nb::class_<Codes>& codes) {
  const auto X = nb::arg("X").noconvert();
  const auto out = nb::arg("codes").noconvert();
  codes.def("by_column", &codes_by_column<T>, X, out);
  codes.def("by_row", &codes_by_row<T, std::uint8_t>, X, out);
  codes.def("by_row", &codes_by_row<T, std::uint16_t>, X, out);
}

void bind_codes(nb::module_& m) {
  nb::class_<Codes> codes(m, "Codes", "Feature values of a model's documents as small integers.");
  codes.def("__init__", &make_codes, nb::arg("feature").noconvert(), nb::arg("threshold").noconvert(),
            nb::arg("left").noconvert(), nb::arg("right").noconvert(), nb::arg("missing_left").noconvert(),
            nb::arg("leaf_value").noconvert(), nb::arg("node_offsets").noconvert(), nb::arg("set_offsets").noconvert(),
            nb::arg("set_thresholds").noconvert(), nb::arg("n_features"), nb::arg("max_code"));
  codes.def_prop_ro("n_columns", &Codes::n_columns);
  codes.def("node", &Codes::node, nb::arg("i"));
  bind_codes_of<float>(codes);
  bind_codes_of<double>(codes);
}

// The plain traversal with the weights of a model, as an engine of early exit.
class WeighedReference {
 public:
  WeighedReference(const EnsembleView& model, const double* tree_weights, double)
      : traversal_(model), tree_weights_(tree_weights, tree_weights + model.n_trees) {}

  std::size_t n_bytes() const { return traversal_.n_bytes() + tree_weights_.size() * sizeof tree_weights_[0]; }
  template <class T>
  void add(const Rows<T>& rows, double* scores, bool single, int n_threads) const {
    traversal_.add(rows, tree_weights_.data(), scores, single, n_threads);
  }

 private:
  ReferenceTraversal traversal_;
  std::vector<double> tree_weights_;
};

// An engine with a rule of early exit.
template <class Engine>
struct WithExit {
  ExitRule rule;
  Engine engine;  // or a reference to one that lives longer
};

ExitRule rule_of(const In<std::int64_t>& checkpoints, const In<double>& margins, std::int64_t top,
                 std::size_t n_trees) {
  require(checkpoints.shape(0) == margins.shape(0), "margins must have one entry per checkpoint");
  return make_exit_rule(checkpoints.data(), margins.data(), margins.shape(0), top, n_trees);
}

template <class Engine>
void share_engine(WithExit<const Engine&>* self, const Engine& engine, const In<std::int64_t>& checkpoints,
                  const In<double>& margins, std::int64_t top) {
  new (self) WithExit<const Engine&>{rule_of(checkpoints, margins, top, engine.n_trees()), engine};
}

template <class Engine>
void make_segments(WithExit<ExitSegments<Engine>>* self, const In<std::int32_t>& feature, const In<double>& threshold,
                   const In<std::int32_t>& left, const In<std::int32_t>& right, const In<std::uint8_t>& missing_left,
                   const In<double>& leaf_value, const In<std::int64_t>& node_offsets,
                   const In<std::int64_t>& set_offsets, const In<double>& set_thresholds, std::int32_t n_features,
                   const In<double>& tree_weights, double base, const In<std::int64_t>& checkpoints,
                   const In<double>& margins, std::int64_t top) {
  const EnsembleView model = view_of(feature, threshold, left, right, missing_left, leaf_value, node_offsets,
                                     set_offsets, set_thresholds, n_features);
  require(tree_weights.shape(0) == model.n_trees, "tree_weights must have one entry per tree");
  const ExitRule rule = rule_of(checkpoints, margins, top, model.n_trees);
  unlocked([&] {
    std::vector<std::int32_t> depths(model.n_trees);
    check_trees(model, depths.data());
    std::vector<std::size_t> ends = rule.checkpoints;
    ends.push_back(model.n_trees);
    new (self) WithExit<ExitSegments<Engine>>{rule, {model, tree_weights.data(), base, ends}};
  });
}

// Throws unless the queries have every row once.
void check_queries(const QueryRows& queries, std::size_t n_rows) {
  require(queries.offsets[0] == 0, "offsets must start with 0");
  for (std::size_t q = 0; q < queries.n_queries; ++q) {
    require(queries.offsets[q] <= queries.offsets[q + 1], "offsets must not decrease");
  }
  require(queries.begin(queries.n_queries) == n_rows, "offsets must end with the number of rows");
  if (queries.order == nullptr) return;
  std::vector<std::uint8_t> seen(n_rows);
  for (std::size_t i = 0; i < n_rows; ++i) {
    const std::int64_t row = queries.order[i];
    require(row >= 0 && static_cast<std::size_t>(row) < n_rows && seen[static_cast<std::size_t>(row)] == 0,
            "order must hold every row once");
    seen[static_cast<std::size_t>(row)] = 1;
  }
}

template <class Engine, class T>
void score_with_exit(const WithExit<Engine>& self, const Matrix<T>& X, const In<std::int64_t>& offsets,
                     const std::optional<In<std::int64_t>>& order, const Out<double>& scores,
                     const Out<std::int32_t>& trees, bool single, int n_threads) {
  const Rows<T> rows = rows_of<T>(X, self.engine.n_features());
  require(scores.shape(0) == rows.n_rows && trees.shape(0) == rows.n_rows,
          "scores and trees must have one entry per row");
  require(offsets.shape(0) > 0, "offsets must have one entry per query and one more");
  require(!order || order->shape(0) == rows.n_rows, "order must have one entry per row");
  const QueryRows queries{offsets.data(), offsets.shape(0) - 1, order ? order->data() : nullptr};
  check_queries(queries, rows.n_rows);
  unlocked([&] {
    using Plain = std::remove_cvref_t<Engine>;
    EarlyExit<Plain, T>(self.engine, self.rule, rows, queries, single).score(scores.data(), trees.data(), n_threads);
  });
}

template <class Engine>
void bind_exit(nb::class_<WithExit<Engine>>& engine) {
  const auto bind_score = [&](auto score) {
    engine.def("score", score, nb::arg("X").noconvert(), nb::arg("offsets").noconvert(),
               nb::arg("order").noconvert().none(), nb::arg("scores").noconvert(), nb::arg("trees").noconvert(),
               nb::arg("single"), nb::arg("n_threads"));
  };
  bind_score(&score_with_exit<Engine, float>);
  bind_score(&score_with_exit<Engine, double>);
}

template <class Engine>
void bind_segments(nb::module_& m, const char* name, const char* doc) {
  nb::class_<WithExit<ExitSegments<Engine>>> engine(m, name, doc);
  engine.def("__init__", &make_segments<Engine>, nb::arg("feature").noconvert(), nb::arg("threshold").noconvert(),
             nb::arg("left").noconvert(), nb::arg("right").noconvert(), nb::arg("missing_left").noconvert(),
             nb::arg("leaf_value").noconvert(), nb::arg("node_offsets").noconvert(), nb::arg("set_offsets").noconvert(),
             nb::arg("set_thresholds").noconvert(), nb::arg("n_features"), nb::arg("tree_weights").noconvert(),
             nb::arg("base"), nb::arg("checkpoints").noconvert(), nb::arg("margins").noconvert(), nb::arg("top"));
  engine.def_prop_ro("n_bytes", [](const WithExit<ExitSegments<Engine>>& self) { return self.engine.n_bytes(); });
  bind_exit(engine);
}

template <class Engine>
void bind_shared(nb::module_& m, const char* name, const char* doc) {
  nb::class_<WithExit<const Engine&>> engine(m, name, doc);
  engine.def("__init__", &share_engine<Engine>, nb::arg("engine"), nb::arg("checkpoints").noconvert(),
             nb::arg("margins").noconvert(), nb::arg("top"), nb::keep_alive<1, 2>());
  engine.def_prop_ro("n_bytes", [](const WithExit<const Engine&>&) { return 0; });  // beside those of the engine
  bind_exit(engine);
}

// What librankwood scores with, for tests: a workspace lives as long as the scorer.
struct ScorerInUse {
  Scorer scorer;
  Scorer::Workspace workspace;

  ScorerInUse(const EnsembleView& model, const double* tree_weights, double base, const ExitRule* rule,
              std::size_t max_query_rows)
      : scorer(model, tree_weights, base, rule), workspace(scorer, max_query_rows) {}
};

void make_scorer(ScorerInUse* self, const In<std::int32_t>& feature, const In<double>& threshold,
                 const In<std::int32_t>& left, const In<std::int32_t>& right, const In<std::uint8_t>& missing_left,
                 const In<double>& leaf_value, const In<std::int64_t>& node_offsets,
                 const In<std::int64_t>& set_offsets, const In<double>& set_thresholds, std::int32_t n_features,
                 const In<double>& tree_weights, double base, const In<std::int64_t>& checkpoints,
                 const In<double>& margins, std::int64_t top, std::size_t max_query_rows) {
  const EnsembleView model = view_of(feature, threshold, left, right, missing_left, leaf_value, node_offsets,
                                     set_offsets, set_thresholds, n_features);
  require(tree_weights.shape(0) == model.n_trees, "tree_weights must have one entry per tree");
  const ExitRule rule = rule_of(checkpoints, margins, top, model.n_trees);
  const bool exits = checkpoints.shape(0) > 0;
  unlocked([&] {
    std::vector<std::int32_t> depths(model.n_trees);
    check_trees(model, depths.data());
    new (self) ScorerInUse(model, tree_weights.data(), base, exits ? &rule : nullptr, max_query_rows);
  });
}

template <class T>
void score_in_use(ScorerInUse& self, const Matrix<T>& X, const Out<double>& scores, bool single) {
  const Rows<T> rows = rows_of<T>(X, self.scorer.n_features());
  require(scores.shape(0) == rows.n_rows, "scores must have one entry per row");
  self.scorer.score(rows, scores.data(), single, self.workspace);
}

template <class T>
void score_queries_in_use(ScorerInUse& self, const Matrix<T>& X, const In<std::int64_t>& offsets,
                          const Out<double>& scores, const std::optional<Out<std::int32_t>>& trees, bool single) {
  const Rows<T> rows = rows_of<T>(X, self.scorer.n_features());
  require(scores.shape(0) == rows.n_rows && (!trees || trees->shape(0) == rows.n_rows),
          "scores and trees must have one entry per row");
  require(offsets.shape(0) > 0, "offsets must have one entry per query and one more");
  const QueryRows queries{offsets.data(), offsets.shape(0) - 1, nullptr};
  check_queries(queries, rows.n_rows);
  for (std::size_t q = 0; q < queries.n_queries; ++q) {
    require(queries.begin(q + 1) - queries.begin(q) <= self.workspace.max_query_rows(),
            "a query has more rows than there is room for");
  }
  self.scorer.score(rows, queries, scores.data(), trees ? trees->data() : nullptr, single, self.workspace);
}

template <class T>
void bind_scorer_of(nb::class_<ScorerInUse>& scorer) {
  const auto X = nb::arg("X").noconvert();
  const auto scores = nb::arg("scores").noconvert();
  scorer.def("score", &score_in_use<T>, X, scores, nb::arg("single"));
  scorer.def("score_queries", &score_queries_in_use<T>, X, nb::arg("offsets").noconvert(), scores,
             nb::arg("trees").noconvert().none(), nb::arg("single"));
}

void bind_scorer(nb::module_& m) {
  nb::class_<ScorerInUse> scorer(m, "Scorer", "A model prepared for batches of every size, for one thread.");
  scorer.def("__init__", &make_scorer, nb::arg("feature").noconvert(), nb::arg("threshold").noconvert(),
             nb::arg("left").noconvert(), nb::arg("right").noconvert(), nb::arg("missing_left").noconvert(),
             nb::arg("leaf_value").noconvert(), nb::arg("node_offsets").noconvert(), nb::arg("set_offsets").noconvert(),
             nb::arg("set_thresholds").noconvert(), nb::arg("n_features"), nb::arg("tree_weights").noconvert(),
             nb::arg("base"), nb::arg("checkpoints").noconvert(), nb::arg("margins").noconvert(), nb::arg("top"),
             nb::arg("max_query_rows"));
  scorer.def_prop_ro("n_bytes", [](const ScorerInUse& self) { return self.scorer.n_bytes(); });
  scorer.def(
      "is_bitsliced", [](const ScorerInUse& self, std::size_t n) { return self.scorer.is_bitsliced(n); },
      nb::arg("n_rows"));
  bind_scorer_of<float>(scorer);
  bind_scorer_of<double>(scorer);
  m.def(
      "smallest_bitslice_batch",
      [](std::size_t n_trees, std::size_t n_leaves, std::size_t most_leaves) -> std::optional<std::size_t> {
        const std::size_t smallest = smallest_bitslice_batch(n_trees, n_leaves, most_leaves);
        return smallest == kNoBatch ? std::nullopt : std::optional(smallest);
      },
      nb::arg("n_trees"), nb::arg("n_leaves"), nb::arg("most_leaves"),
      "The smallest batch for which engine bitslice is taken; None when none is large enough.");
  m.attr("MAX_BITSLICE_LEAVES") = kMaxBitsliceLeaves;
}

}  // namespace

void bind_engines(nb::module_& m) {
  bind_codes(m);
  bind_engine<Bitslice>(m, "Bitslice", "A model prepared for engine bitslice.");
  bind_engine<Traverse>(m, "Traverse", "A model prepared for engine traverse.");
  bind_shared<Bitslice>(m, "BitsliceExit", "Early exit for a model prepared for bitslice.");
  bind_shared<Traverse>(m, "TraverseExit", "Early exit for a model prepared for traverse.");
  bind_segments<WeighedReference>(m, "ReferenceExit", "A model prepared for the plain traversal with early exit.");
  bind_scorer(m);
}

}  // namespace rankwood
