#include "bindings/trees.hpp"
#include "score/bitslice.hpp"
#include "score/traverse.hpp"

namespace rankwood {
namespace {

// Checks everything again before it copies: the kernels follow children and features without looking back.
template <class Engine>
void make(Engine* self, const In<std::int32_t>& feature, const In<double>& threshold, const In<std::int32_t>& left,
          const In<std::int32_t>& right, const In<std::uint8_t>& missing_left, const In<double>& leaf_value,
          const In<std::int64_t>& node_offsets, std::int32_t n_features, const In<double>& tree_weights, double base) {
  const EnsembleView model =
      view_of(feature, threshold, left, right, missing_left, leaf_value, node_offsets, n_features);
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
             nb::arg("leaf_value").noconvert(), nb::arg("node_offsets").noconvert(), nb::arg("n_features"),
             nb::arg("tree_weights").noconvert(), nb::arg("base"));
  engine.def_prop_ro("n_bytes", &Engine::n_bytes);
  bind_rows_of<Engine, float>(engine);
  bind_rows_of<Engine, double>(engine);
}

// The step before the trees, by itself: for tests and benchmarks.
struct Codes {
  Quantiser quantiser;
  std::size_t n_features, n_nodes, max_code;

  std::pair<std::int32_t, std::int32_t> node(std::size_t i) const {
    require(i < n_nodes, "there is no such inner node");
    return {quantiser.column(i), quantiser.code(i)};
  }
};

void make_codes(Codes* self, const In<std::int32_t>& feature, const In<double>& threshold, const In<std::int32_t>& left,
                const In<std::int32_t>& right, const In<std::uint8_t>& missing_left, const In<double>& leaf_value,
                const In<std::int64_t>& node_offsets, std::int32_t n_features, std::size_t max_code) {
  const EnsembleView model =
      view_of(feature, threshold, left, right, missing_left, leaf_value, node_offsets, n_features);
  require(max_code == 255 || max_code == 65535, "max_code must be 255 or 65535");
  unlocked([&] {
    std::vector<std::int32_t> depths(model.n_trees);
    check_trees(model, depths.data());
    new (self) Codes{Quantiser(model, max_code), static_cast<std::size_t>(n_features), model.n_nodes, max_code};
  });
}

// As engine bitslice lays codes out: a column's lie side by side.
template <class T>
void codes_by_column(const Codes& self, const Matrix<T>& X, const Out<std::int8_t, 2>& codes) {
  const Rows<T> rows = rows_of<T>(X, self.n_features);
  require(self.max_code == 255, "codes of a byte need max_code 255");
  require(codes.shape(0) == self.quantiser.n_columns() && codes.shape(1) == rows.n_rows,
          "codes must have one row per column of codes and one column per document");
  unlocked([&] { self.quantiser.quantise(rows, 0, rows.n_rows, codes.data(), rows.n_rows, 1); });
}

// As engine traverse does: a document's lie side by side.
template <class T, class Code>
void codes_by_row(const Codes& self, const Matrix<T>& X, const Out<Code, 2>& codes) {
  const Rows<T> rows = rows_of<T>(X, self.n_features);
  require(self.max_code == std::numeric_limits<Code>::max(), "the type of codes must be that of max_code");
  require(codes.shape(0) == rows.n_rows && codes.shape(1) == self.quantiser.n_columns(),
          "codes must have one row per document and one column per column of codes");
  unlocked([&] { self.quantiser.quantise(rows, 0, rows.n_rows, codes.data(), 1, self.quantiser.n_columns()); });
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
            nb::arg("leaf_value").noconvert(), nb::arg("node_offsets").noconvert(), nb::arg("n_features"),
            nb::arg("max_code"));
  codes.def_prop_ro("n_columns", [](const Codes& self) { return self.quantiser.n_columns(); });
  codes.def("node", &Codes::node, nb::arg("i"));
  bind_codes_of<float>(codes);
  bind_codes_of<double>(codes);
}

}  // namespace

void bind_engines(nb::module_& m) {
  bind_codes(m);
  bind_engine<Bitslice>(m, "Bitslice", "A model prepared for engine bitslice.");
  bind_engine<Traverse>(m, "Traverse", "A model prepared for engine traverse.");
}

}  // namespace rankwood
