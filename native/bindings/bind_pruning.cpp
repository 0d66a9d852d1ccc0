#include "bindings/bindings.hpp"
#include "line_search.hpp"

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
                    const In<std::int64_t>& trees, const In<double>& x, int n_threads, const Out<double>& sums) {
  const TreeOutputs<Code> outputs = outputs_of<Code>(codes, values, leaf_offsets);
  check_trees_of(trees, outputs.n_trees);
  require(x.shape(0) == outputs.n_docs, "x must have one entry per document");
  require(sums.shape(0) == values.shape(0), "sums must have one entry per leaf");
  unlocked([&] { leaf_sums(outputs, trees.data(), trees.shape(0), x.data(), n_threads, sums.data()); });
}

template <class Code>
void bind_share_sums(const In<Code, 2>& codes, const In<double>& values, const In<std::int64_t>& leaf_offsets,
                     const In<double>& totals, int n_threads, const Out<double>& sums) {
  const TreeOutputs<Code> outputs = outputs_of<Code>(codes, values, leaf_offsets);
  require(totals.shape(0) == outputs.n_docs, "totals must have one entry per document");
  require(sums.shape(0) == outputs.n_trees, "sums must have one entry per tree");
  unlocked([&] { share_sums(outputs, totals.data(), n_threads, sums.data()); });
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

double standing(const LineMeasure& self) {
  require(self.has_scores(), "scores must be set before they are measured");
  double sum = 0.0;
  unlocked([&] { sum = self.standing(); });
  return sum;
}

template <class Code>
void line_sums(const LineMeasure& self, const In<Code, 2>& codes, const In<double>& values,
               const In<std::int64_t>& leaf_offsets, const In<std::int64_t>& trees, const In<double, 2>& deltas,
               const std::optional<In<double>>& weights, int n_threads, const Out<double, 2>& out) {
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
  m.def("share_sums", &bind_share_sums<Code>, codes, values, leaf_offsets, nb::arg("totals").noconvert(), n_threads,
        nb::arg("sums").noconvert(), "Sums over documents of every tree's output by the document's total.");
  measure.def("sums", &line_sums<Code>, codes, values, leaf_offsets, trees, nb::arg("deltas").noconvert(),
              nb::arg("weights").noconvert().none(), n_threads, nb::arg("out").noconvert(),
              "Sum over queries of the measure, for every tree and delta of its weight; or, given the weights that are "
              "in the scores, for every new weight.");
}

}  // namespace

void bind_pruning(nb::module_& m) {
  nb::class_<LineMeasure> measure(m, "LineMeasure", "A measure as the weight of one tree moves.");
  measure.def("__init__", &make_line_measure, nb::arg("spec"), nb::arg("labels").noconvert(),
              nb::arg("offsets").noconvert(), nb::arg("weights").noconvert().none(), nb::arg("ties"),
              nb::arg("docnos").noconvert().none(), nb::arg("single"));
  measure.def_prop_ro("fast", &LineMeasure::fast, "Whether the measure has a kernel of its own.");
  measure.def("set_scores", &set_scores, nb::arg("scores").noconvert(), nb::arg("rests").noconvert().none(),
              nb::arg("n_threads"));
  measure.def("standing", &standing, "Sum over queries of the measure of the scores that were set.");
  bind_codes<std::uint8_t>(m, measure);
  bind_codes<std::uint16_t>(m, measure);
  bind_codes<std::uint32_t>(m, measure);
}

}  // namespace rankwood
