#include <nanobind/stl/tuple.h>

#include <cmath>
#include <tuple>

#include "bindings/bindings.hpp"
#include "exact_sum.hpp"
#include "per_query.hpp"

namespace rankwood {
namespace {

// Why the measures could not be computed: the problem's name, the number of the measure, the row.
using Failure = std::optional<std::tuple<std::string, std::size_t, std::size_t>>;

std::string name_of(MeasureProblem problem) {
  switch (problem) {
    case MeasureProblem::nan_score:
      return "nan_score";
    case MeasureProblem::label_not_finite:
      return "label_not_finite";
    case MeasureProblem::gain_overflow:
      return "gain_overflow";
    case MeasureProblem::no_gain:
      return "no_gain";
    case MeasureProblem::above_max_grade:
      return "above_max_grade";
  }
  return "";
}

template <class Score>
Failure per_query(const std::vector<MeasureSpec>& specs, In<double> labels, In<Score> scores, In<std::int64_t> offsets,
                  std::optional<In<std::int64_t>> order, std::optional<In<std::uint32_t, 2>> docnos, Ties ties,
                  int n_threads, Out<double, 2> out) {
  const std::size_t n_rows = labels.shape(0);
  require(scores.shape(0) == n_rows, "scores must have one entry per label");
  require(offsets.shape(0) >= 1, "offsets must have one entry more than there are queries");
  const std::size_t n_queries = offsets.shape(0) - 1;
  require(out.shape(0) == specs.size() && out.shape(1) == n_queries, "out must be measures x queries");
  require(offsets(0) == 0, "offsets must start with 0");
  for (std::size_t q = 0; q < n_queries; ++q) {
    require(offsets(q) <= offsets(q + 1), "offsets must not decrease");
    require(offsets(q + 1) - offsets(q) < (std::int64_t{1} << 32), "a query must have fewer than 2^32 rows");
  }
  const std::size_t n_listed = order ? order->shape(0) : n_rows;
  require(static_cast<std::size_t>(offsets(n_queries)) == n_listed, "offsets must end with the number of rows");
  if (order) {
    for (std::size_t i = 0; i < n_listed; ++i) {
      const std::int64_t row = (*order)(i);
      require(row >= 0 && static_cast<std::size_t>(row) < n_rows, "order must hold numbers of rows");
    }
  }
  if (ties == Ties::docno) require(docnos && docnos->shape(0) == n_rows, "docnos must have one entry per row");

  const RankingData<Score> data{labels.data(),
                                scores.data(),
                                offsets.data(),
                                n_queries,
                                order ? order->data() : nullptr,
                                ties,
                                docnos ? docnos->data() : nullptr,
                                docnos ? docnos->shape(1) : 0};
  try {
    unlocked([&] { evaluate_queries(data, specs, n_threads, out.data()); });
  } catch (const MeasureFailure& failure) {
    return std::make_tuple(name_of(failure.problem), failure.measure, failure.doc);
  }
  return std::nullopt;
}

template <class Score>
void def_per_query(nb::module_& m) {
  m.def("per_query", per_query<Score>, nb::arg("specs"), nb::arg("labels").noconvert(), nb::arg("scores").noconvert(),
        nb::arg("offsets").noconvert(), nb::arg("order").noconvert().none(), nb::arg("docnos").noconvert().none(),
        nb::arg("ties"), nb::arg("n_threads"), nb::arg("out").noconvert(),
        "Fill out[measure, query]; None, or (problem, measure, row) when a label or score does not allow it.");
}

// Sums of rows of values, each NaN left out; with weights those of products, then those of the weights.
void exact_sums(const In<double, 2>& values, const std::optional<In<double>>& weights,
                const Out<std::int64_t, 3>& sums) {
  const std::size_t n_rows = values.shape(0), n = values.shape(1);
  require(!weights || weights->shape(0) == n, "weights must have one entry per column");
  require(sums.shape(0) == n_rows && sums.shape(1) == (weights ? 2 : 1) && sums.shape(2) == ExactSum::kWidth,
          "sums must have one row per row of values, and per sum");
  unlocked([&] {
    std::int64_t* out = sums.data();
    for (std::size_t row = 0; row < n_rows; ++row) {
      const double* value = values.data() + row * n;
      ExactSum sum, weight;
      if (!weights) {
        for (std::size_t i = 0; i < n; ++i) sum.add(value[i]);
      } else {
        for (std::size_t i = 0; i < n; ++i) {
          if (std::isnan(value[i])) continue;
          sum.add(value[i] * weights->data()[i]);
          weight.add(weights->data()[i]);
        }
      }
      sum.write(out);
      out += ExactSum::kWidth;
      if (weights) {
        weight.write(out);
        out += ExactSum::kWidth;
      }
    }
  });
}

}  // namespace

void bind_measures(nb::module_& m) {
  nb::enum_<MeasureKind>(m, "MeasureKind")
      .value("NDCG", MeasureKind::ndcg)
      .value("DCG", MeasureKind::dcg)
      .value("ERR", MeasureKind::err)
      .value("AP", MeasureKind::ap)
      .value("RR", MeasureKind::rr)
      .value("P", MeasureKind::precision)
      .value("R", MeasureKind::recall)
      .value("RBP", MeasureKind::rbp);
  nb::enum_<GainKind>(m, "GainKind")
      .value("EXP", GainKind::exponential)
      .value("LINEAR", GainKind::linear)
      .value("TABLE", GainKind::table);
  nb::enum_<DiscountKind>(m, "DiscountKind").value("LOG2", DiscountKind::log2).value("LETOR", DiscountKind::letor);
  nb::enum_<Ties>(m, "Ties").value("ORDER", Ties::order).value("AVERAGE", Ties::average).value("DOCNO", Ties::docno);
  nb::class_<MeasureSpec>(m, "MeasureSpec", "What to compute, every convention spelled out.")
      .def(nb::init<>())
      .def_rw("kind", &MeasureSpec::kind)
      .def_rw("cutoff", &MeasureSpec::cutoff)
      .def_rw("gain", &MeasureSpec::gain)
      .def_rw("gains", &MeasureSpec::gains)
      .def_rw("discount", &MeasureSpec::discount)
      .def_rw("relevant", &MeasureSpec::relevant)
      .def_rw("max_grade", &MeasureSpec::max_grade)
      .def_rw("persistence", &MeasureSpec::persistence)
      .def_rw("empty", &MeasureSpec::empty)
      .def_rw("short_counts_zero", &MeasureSpec::short_counts_zero)
      .def_rw("ap_at_most_cutoff", &MeasureSpec::ap_at_most_cutoff)
      .def_rw("precision_of_list", &MeasureSpec::precision_of_list);
  def_per_query<double>(m);
  def_per_query<float>(m);
  m.attr("EXACT_DIGITS") = ExactSum::kDigits;
  m.attr("EXACT_WIDTH") = ExactSum::kWidth;
  m.def(
      "exact_sums", &exact_sums, nb::arg("values").noconvert(), nb::arg("weights").noconvert().none(),
      nb::arg("sums").noconvert(),
      "Sums of every row, not rounded; with weights those of products, then those of the weights. A sum is its digits "
      "of 32 bits, lowest first, in units of 2^-1074, then how many were finite, infinite, and minus infinite.");
}

}  // namespace rankwood
