#include <cmath>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/trees.hpp"
#include "joint_ridge.hpp"
#include "line_search.hpp"
#include "monotone.hpp"
#include "node_merging.hpp"

namespace rankwood {
namespace {

// Shapes only: codes were checked once, by check_leaf_codes.
template <class Code>
TreeOutputs<Code> outputs_of(const In<Code, 2>& codes, const In<double>& values, const In<std::int64_t>& leaf_offsets) {
  const std::size_t n_trees = codes.shape(0);
  require(leaf_offsets.shape(0) == n_trees + 1, "leaf_offsets must have one entry more than there are trees");
  require(leaf_offsets(0) == 0, "leaf_offsets must start with 0");
  for (std::size_t t = 0; t < n_trees; ++t) {
    require(leaf_offsets(t) < leaf_offsets(t + 1), "every tree must have a leaf");
  }
  require(static_cast<std::size_t>(leaf_offsets(n_trees)) == values.shape(0), "leaf_offsets must end with the leaves");
  return {codes.data(), n_trees, codes.shape(1), values.data(), leaf_offsets.data()};
}

void check_trees_of(const In<std::int64_t>& trees, std::size_t n_trees) {
  for (std::size_t i = 0; i < trees.shape(0); ++i) {
    require(trees(i) >= 0 && static_cast<std::size_t>(trees(i)) < n_trees, "trees must hold numbers of trees");
  }
}

template <class Code>
void bind_check_codes(const In<Code, 2>& codes, const In<double>& values, const In<std::int64_t>& leaf_offsets,
                      int n_threads) {
  const TreeOutputs<Code> outputs = outputs_of<Code>(codes, values, leaf_offsets);
  unlocked([&] { check_codes(outputs, n_threads); });
}

template <class Code>
void bind_add_outputs(const In<Code, 2>& codes, const In<double>& values, const In<std::int64_t>& leaf_offsets,
                      const In<double>& weights, double base, int n_threads, const Out<double>& scores,
                      const std::optional<Out<double>>& rests) {
  const TreeOutputs<Code> outputs = outputs_of<Code>(codes, values, leaf_offsets);
  require(weights.shape(0) == outputs.n_trees, "weights must have one entry per tree");
  require(scores.shape(0) == outputs.n_docs, "scores must have one entry per document");
  require(!rests || rests->shape(0) == outputs.n_docs, "rests must have one entry per document");
  double* rest = rests ? rests->data() : nullptr;
  unlocked([&] { add_outputs(outputs, weights.data(), base, n_threads, scores.data(), rest); });
}

template <class Code>
void bind_leaf_sums(const In<Code, 2>& codes, const In<double>& values, const In<std::int64_t>& leaf_offsets,
                    const In<std::int64_t>& trees, const In<std::int64_t>& x, int n_threads,
                    const Out<std::int64_t>& sums) {
  const TreeOutputs<Code> outputs = outputs_of<Code>(codes, values, leaf_offsets);
  check_trees_of(trees, outputs.n_trees);
  require(x.shape(0) == outputs.n_docs, "x must have one entry per document");
  require(sums.shape(0) == values.shape(0), "sums must have one entry per leaf");
  unlocked([&] { leaf_sums(outputs, trees.data(), trees.shape(0), x.data(), n_threads, sums.data()); });
}

template <class Code>
void bind_leaf_pair_sums(const In<Code, 2>& codes, const In<double>& values, const In<std::int64_t>& leaf_offsets,
                         const In<std::int64_t>& trees, const In<std::int64_t>& x, const In<std::int64_t>& y,
                         int n_threads, const Out<std::int64_t>& x_sums, const Out<std::int64_t>& y_sums) {
  const TreeOutputs<Code> outputs = outputs_of<Code>(codes, values, leaf_offsets);
  check_trees_of(trees, outputs.n_trees);
  require(x.shape(0) == outputs.n_docs && y.shape(0) == outputs.n_docs, "x and y must have one entry per document");
  require(x_sums.shape(0) == values.shape(0) && y_sums.shape(0) == values.shape(0),
          "sums must have one entry per leaf");
  unlocked([&] {
    leaf_pair_sums(outputs, trees.data(), trees.shape(0), x.data(), y.data(), n_threads, x_sums.data(), y_sums.data());
  });
}

template <class Code>
void bind_share_sums(const In<Code, 2>& codes, const In<double>& values, const In<std::int64_t>& leaf_offsets,
                     const In<double>& totals, int n_threads, const Out<std::int64_t, 2>& sums) {
  const TreeOutputs<Code> outputs = outputs_of<Code>(codes, values, leaf_offsets);
  require(totals.shape(0) == outputs.n_docs, "totals must have one entry per document");
  require(sums.shape(0) == outputs.n_trees && sums.shape(1) == ExactSum::kWidth, "sums must have one row per tree");
  unlocked([&] { share_sums(outputs, totals.data(), n_threads, sums.data()); });
}

// Leaves of a tree that is named twice would be written to by two threads.
void check_distinct(const In<std::int64_t>& trees, std::size_t n_trees) {
  check_trees_of(trees, n_trees);
  std::vector<bool> named(n_trees);
  for (std::size_t i = 0; i < trees.shape(0); ++i) {
    const auto tree = static_cast<std::size_t>(trees(i));
    require(!named[tree], "trees must name each tree once");
    named[tree] = true;
  }
}

void check_finite(const In<double>& values, const char* message) {
  for (std::size_t i = 0; i < values.shape(0); ++i) require(std::isfinite(values(i)), message);
}

// Offsets of queries that split the documents, or none.
void check_queries(const std::optional<In<std::int64_t>>& offsets, std::size_t n_docs) {
  if (!offsets) return;
  require(offsets->shape(0) >= 1 && (*offsets)(0) == 0, "offsets must start with 0");
  for (std::size_t q = 0; q + 1 < offsets->shape(0); ++q) {
    require((*offsets)(q) <= (*offsets)(q + 1), "offsets must not decrease");
  }
  require(static_cast<std::size_t>((*offsets)(offsets->shape(0) - 1)) == n_docs,
          "offsets must end with the number of documents");
}

template <class Code>
void bind_joint_ridge(const In<Code, 2>& codes, const Out<double>& values, const In<std::int64_t>& leaf_offsets,
                      const In<std::int64_t>& trees, const std::optional<In<std::int64_t>>& offsets,
                      const In<double>& counts, const In<double>& target, double l2, std::size_t iterations,
                      double tolerance, int n_threads, const Out<double>& residual) {
  const TreeOutputs<Code> outputs = outputs_of<Code>(codes, In<double>(values), leaf_offsets);
  check_distinct(trees, outputs.n_trees);
  check_queries(offsets, outputs.n_docs);
  require(counts.shape(0) == values.shape(0), "counts must have one entry per leaf");
  require(target.shape(0) == outputs.n_docs, "target must have one entry per document");
  require(residual.shape(0) == outputs.n_docs, "residual must have one entry per document");
  require(l2 >= 0.0 && std::isfinite(l2), "l2 must be a number from 0 upwards");
  check_finite(target, "target must be finite");
  unlocked([&] {
    JointRidge<Code> ridge(outputs, trees.data(), trees.shape(0), offsets ? offsets->data() : nullptr,
                           offsets ? offsets->shape(0) - 1 : 0, counts.data(), n_threads);
    ridge.solve(target.data(), {l2, iterations, tolerance}, values.data(), residual.data());
  });
}

template <class Code>
void bind_tree_gains(const In<Code, 2>& codes, const In<double>& values, const In<std::int64_t>& leaf_offsets,
                     const In<std::int64_t>& trees, const In<double>& residual, const In<double>& counts, double l2,
                     int n_threads, const Out<double>& gains) {
  const TreeOutputs<Code> outputs = outputs_of<Code>(codes, values, leaf_offsets);
  check_distinct(trees, outputs.n_trees);
  require(residual.shape(0) == outputs.n_docs, "residual must have one entry per document");
  require(counts.shape(0) == values.shape(0), "counts must have one entry per leaf");
  require(gains.shape(0) == trees.shape(0), "gains must have one entry per tree named");
  check_finite(residual, "residual must be finite");
  unlocked([&] {
    tree_gains(outputs, trees.data(), trees.shape(0), residual.data(), counts.data(), l2, n_threads, gains.data());
  });
}

// Trees whose links were checked when their model was made; here only what the kernels index by.
EnsembleView checked_view(const In<std::int32_t>& feature, const In<double>& threshold, const In<std::int32_t>& left,
                          const In<std::int32_t>& right, const In<std::uint8_t>& missing_left,
                          const In<double>& leaf_value, const In<std::int64_t>& node_offsets,
                          const In<std::int64_t>& set_offsets, const In<double>& set_thresholds,
                          std::int32_t n_features, const In<double>& tree_weights, const In<double>& counts) {
  const EnsembleView model = view_of(feature, threshold, left, right, missing_left, leaf_value, node_offsets,
                                     set_offsets, set_thresholds, n_features);
  std::vector<std::int32_t> depths(model.n_trees);
  check_trees(model, depths.data());
  require(tree_weights.shape(0) == model.n_trees, "tree_weights must have one entry per tree");
  require(counts.shape(0) == model.n_leaves, "counts must have one entry per leaf");
  return model;
}

void bind_node_importance(const In<std::int32_t>& feature, const In<double>& threshold, const In<std::int32_t>& left,
                          const In<std::int32_t>& right, const In<std::uint8_t>& missing_left,
                          const In<double>& leaf_value, const In<std::int64_t>& node_offsets,
                          const In<std::int64_t>& set_offsets, const In<double>& set_thresholds,
                          std::int32_t n_features, const In<double>& tree_weights, const In<double>& counts,
                          const Out<double>& importance, const Out<std::uint8_t>& right_is_heavier) {
  const EnsembleView model = checked_view(feature, threshold, left, right, missing_left, leaf_value, node_offsets,
                                          set_offsets, set_thresholds, n_features, tree_weights, counts);
  require(importance.shape(0) == model.n_nodes && right_is_heavier.shape(0) == model.n_nodes,
          "importance and right_is_heavier must have one entry per inner node");
  unlocked(
      [&] { node_importance(model, tree_weights.data(), counts.data(), importance.data(), right_is_heavier.data()); });
}

std::vector<double> bind_merge_leaves(const In<std::int32_t>& feature, const In<double>& threshold,
                                      const In<std::int32_t>& left, const In<std::int32_t>& right,
                                      const In<std::uint8_t>& missing_left, const In<double>& leaf_value,
                                      const In<std::int64_t>& node_offsets, const In<std::int64_t>& set_offsets,
                                      const In<double>& set_thresholds, std::int32_t n_features,
                                      const In<double>& tree_weights, const In<double>& counts, std::size_t n_leaves,
                                      const Out<std::int64_t>& instead) {
  const EnsembleView model = checked_view(feature, threshold, left, right, missing_left, leaf_value, node_offsets,
                                          set_offsets, set_thresholds, n_features, tree_weights, counts);
  require(instead.shape(0) == model.n_nodes, "instead must have one entry per inner node");
  std::vector<double> values;
  unlocked([&] { values = merge_leaves(model, tree_weights.data(), counts.data(), n_leaves, instead.data()); });
  return values;
}

void bind_project_monotone(const In<std::int32_t>& feature, const In<double>& threshold, const In<std::int32_t>& left,
                           const In<std::int32_t>& right, const In<std::uint8_t>& missing_left,
                           const In<double>& leaf_value, const In<std::int64_t>& node_offsets,
                           const In<std::int64_t>& set_offsets, const In<double>& set_thresholds,
                           std::int32_t n_features, const In<double>& weights, const In<std::int8_t>& directions,
                           const Out<double>& values) {
  const EnsembleView model = view_of(feature, threshold, left, right, missing_left, leaf_value, node_offsets,
                                     set_offsets, set_thresholds, n_features);
  std::vector<std::int32_t> depths(model.n_trees);
  check_trees(model, depths.data());
  require(directions.shape(0) == static_cast<std::size_t>(n_features), "directions must have one entry per feature");
  require(weights.shape(0) == model.n_leaves && values.shape(0) == model.n_leaves,
          "weights and values must have one entry per leaf");
  unlocked([&] { project_monotone(model, directions.data(), weights.data(), values.data()); });
}

void make_line_measure(LineMeasure* self, const MeasureSpec& spec, const In<double>& labels,
                       const In<std::int64_t>& offsets, std::optional<In<double>> weights, Ties ties,
                       std::optional<In<std::uint32_t, 2>> docnos, bool single) {
  MeasuredQueries queries;
  queries.spec = spec;
  queries.labels.assign(labels.data(), labels.data() + labels.shape(0));
  require(offsets.shape(0) >= 1 && offsets(0) == 0, "offsets must start with 0");
  queries.offsets.assign(offsets.data(), offsets.data() + offsets.shape(0));
  for (std::size_t q = 0; q + 1 < offsets.shape(0); ++q) {
    require(offsets(q) <= offsets(q + 1), "offsets must not decrease");
    require(offsets(q + 1) - offsets(q) < (std::int64_t{1} << 32), "a query must have fewer than 2^32 rows");
  }
  require(static_cast<std::size_t>(queries.offsets.back()) == queries.labels.size(),
          "offsets must end with the number of rows");
  if (weights) {
    require(weights->shape(0) == queries.n_queries(), "weights must have one entry per query");
    queries.weights.assign(weights->data(), weights->data() + weights->shape(0));
  }
  queries.ties = ties;
  if (ties == Ties::docno) {
    require(docnos && docnos->shape(0) == labels.shape(0), "docnos must have one entry per row");
    queries.docnos.assign(docnos->data(), docnos->data() + docnos->size());
    queries.docno_width = docnos->shape(1);
  }
  queries.single = single;
  unlocked([&] { new (self) LineMeasure(std::move(queries)); });
}

void set_scores(LineMeasure& self, const In<double>& scores, const std::optional<In<double>>& rests, int n_threads) {
  require(scores.shape(0) == self.n_docs(), "scores must have one entry per document");
  require(!rests || rests->shape(0) == self.n_docs(), "rests must have one entry per document");
  const double* rest = rests ? rests->data() : nullptr;
  unlocked([&] { self.set_scores(scores.data(), rest, n_threads); });
}

void set_scale(LineMeasure& self, double scale) {
  require(std::isfinite(scale) && self.bound() * scale <= LineMeasure::kMostUnits, "units must not be so small");
  self.set_scale(scale);
}

std::int64_t standing(const LineMeasure& self) {
  require(self.has_scores(), "scores must be set before they are measured");
  std::int64_t sum = 0;
  unlocked([&] { sum = self.standing(); });
  return sum;
}

template <class Code>
void line_sums(const LineMeasure& self, const In<Code, 2>& codes, const In<double>& values,
               const In<std::int64_t>& leaf_offsets, const In<std::int64_t>& trees, const In<double, 2>& deltas,
               const std::optional<In<double>>& weights, int n_threads, const Out<std::int64_t, 2>& out) {
  const TreeOutputs<Code> outputs = outputs_of<Code>(codes, values, leaf_offsets);
  check_trees_of(trees, outputs.n_trees);
  require(outputs.n_docs == self.n_docs(), "codes must have one column per document");
  require(self.has_scores(), "scores must be set before lines are followed from them");
  require(deltas.shape(0) == trees.shape(0), "deltas must have one row per tree");
  require(out.shape(0) == deltas.shape(0) && out.shape(1) == deltas.shape(1), "out must have the shape of deltas");
  require(!weights || weights->shape(0) == outputs.n_trees, "weights must have one entry per tree");
  require(!weights || self.has_rests(), "rests must be set before trees are taken out");
  const Lines lines{trees.data(), trees.shape(0), deltas.data(), deltas.shape(1), weights ? weights->data() : nullptr};
  try {
    unlocked([&] { self.sums(outputs, lines, n_threads, out.data()); });
  } catch (const MeasureFailure&) {
    throw std::invalid_argument("the measure cannot be computed of these labels and scores");
  }
}

template <class Code>
void bind_codes(nb::module_& m, nb::class_<LineMeasure>& measure) {
  const auto codes = nb::arg("codes").noconvert();
  const auto values = nb::arg("values").noconvert();
  const auto leaf_offsets = nb::arg("leaf_offsets").noconvert();
  const auto trees = nb::arg("trees").noconvert();
  const auto n_threads = nb::arg("n_threads");
  m.def("check_leaf_codes", &bind_check_codes<Code>, codes, values, leaf_offsets, n_threads,
        "Raise ValueError unless every code is a leaf of its tree.");
  m.def("add_outputs", &bind_add_outputs<Code>, codes, values, leaf_offsets, nb::arg("weights").noconvert(),
        nb::arg("base"), n_threads, nb::arg("scores").noconvert(), nb::arg("rests").noconvert().none(),
        "Scores: base + weighted outputs of the trees; and, if wanted, what the additions left over.");
  m.def("leaf_sums", &bind_leaf_sums<Code>, codes, values, leaf_offsets, trees, nb::arg("x").noconvert(), n_threads,
        nb::arg("sums").noconvert(), "Sums of x over the documents in every leaf of some trees.");
  m.def("leaf_pair_sums", &bind_leaf_pair_sums<Code>, codes, values, leaf_offsets, trees, nb::arg("x").noconvert(),
        nb::arg("y").noconvert(), n_threads, nb::arg("x_sums").noconvert(), nb::arg("y_sums").noconvert(),
        "Sums of x and of y over the documents in every leaf of some trees.");
  m.def("share_sums", &bind_share_sums<Code>, codes, values, leaf_offsets, nb::arg("totals").noconvert(), n_threads,
        nb::arg("sums").noconvert(),
        "Sums over documents of every tree's output by the document's total, as exact_sums has them.");
  m.def("joint_ridge", &bind_joint_ridge<Code>, codes, values, leaf_offsets, trees,
        nb::arg("offsets").noconvert().none(), nb::arg("counts").noconvert(), nb::arg("target").noconvert(),
        nb::arg("l2"), nb::arg("iterations"), nb::arg("tolerance"), n_threads, nb::arg("residual").noconvert(),
        "Move the leaf values of some trees, jointly, to where their sums are nearest to a target.");
  m.def("tree_gains", &bind_tree_gains<Code>, codes, values, leaf_offsets, trees, nb::arg("residual").noconvert(),
        nb::arg("counts").noconvert(), nb::arg("l2"), n_threads, nb::arg("gains").noconvert(),
        "Fall of the squared residual by each of some trees alone.");
  measure.def(
      "sums", &line_sums<Code>, codes, values, leaf_offsets, trees, nb::arg("deltas").noconvert(),
      nb::arg("weights").noconvert().none(), n_threads, nb::arg("out").noconvert(),
      "Sum over queries of the measure, in units, for every tree and delta of its weight; or, given the weights "
      "that are in the scores, for every new weight.");
}

}  // namespace

void bind_pruning(nb::module_& m) {
  const auto with_trees = [&](const char* name, auto function, auto... more) {
    m.def(name, function, nb::arg("feature").noconvert(), nb::arg("threshold").noconvert(), nb::arg("left").noconvert(),
          nb::arg("right").noconvert(), nb::arg("missing_left").noconvert(), nb::arg("leaf_value").noconvert(),
          nb::arg("node_offsets").noconvert(), nb::arg("set_offsets").noconvert(),
          nb::arg("set_thresholds").noconvert(), nb::arg("n_features"), nb::arg("tree_weights").noconvert(),
          nb::arg("counts").noconvert(), more...);
  };
  with_trees("node_importance", &bind_node_importance, nb::arg("importance").noconvert(),
             nb::arg("right_is_heavier").noconvert(),
             "Sum of squares of the scores that every inner node accounts for.");
  with_trees("merge_leaves", &bind_merge_leaves, nb::arg("n_leaves"), nb::arg("instead").noconvert(),
             "Merge the cheapest sibling leaves until so many remain; values of the new leaves.");
  m.def("project_monotone", &bind_project_monotone, nb::arg("feature").noconvert(), nb::arg("threshold").noconvert(),
        nb::arg("left").noconvert(), nb::arg("right").noconvert(), nb::arg("missing_left").noconvert(),
        nb::arg("leaf_value").noconvert(), nb::arg("node_offsets").noconvert(), nb::arg("set_offsets").noconvert(),
        nb::arg("set_thresholds").noconvert(), nb::arg("n_features"), nb::arg("weights").noconvert(),
        nb::arg("directions").noconvert(), nb::arg("values").noconvert(),
        "Move leaf values so that scores never fall, or never rise, with some features.");
  nb::class_<LineMeasure> measure(m, "LineMeasure", "A measure as the weight of one tree moves.");
  measure.def("__init__", &make_line_measure, nb::arg("spec"), nb::arg("labels").noconvert(),
              nb::arg("offsets").noconvert(), nb::arg("weights").noconvert().none(), nb::arg("ties"),
              nb::arg("docnos").noconvert().none(), nb::arg("single"));
  measure.def_prop_ro("fast", &LineMeasure::fast, "Whether the measure has a kernel of its own.");
  measure.def("set_scores", &set_scores, nb::arg("scores").noconvert(), nb::arg("rests").noconvert().none(),
              nb::arg("n_threads"));
  measure.def("bound", &LineMeasure::bound, "No query adds more than this, one way or the other.");
  measure.def("set_scale", &set_scale, nb::arg("scale"), "Set the units of sums, 1 / scale each: a power of two.");
  measure.def("standing", &standing, "Sum over queries of the measure of the scores that were set, in units.");
  bind_codes<std::uint8_t>(m, measure);
  bind_codes<std::uint16_t>(m, measure);
  bind_codes<std::uint32_t>(m, measure);
}

}  // namespace rankwood
