#include <Python.h>

#include <new>
#include <tuple>

#include "bindings/bindings.hpp"
#include "bindings/trees.hpp"
#include "model/model_file.hpp"

namespace rankwood {
namespace {

std::string_view view_of_bytes(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

// Halves of pairs of surrogates, which JSON can hold, stay what they are.
nb::object to_str(const std::string& text) {
  nb::object str = nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass"));
  if (!str.is_valid()) throw nb::python_error();
  return str;
}

void make_header(ModelHeader* self, const nb::bytes& text, std::uint64_t n_data) {
  const std::string_view view = view_of_bytes(text);
  unlocked([&] { new (self) ModelHeader(view, n_data); });
}

nb::object names_of(const ModelHeader& self) {
  if (!self.feature_names) return nb::none();
  nb::list names;
  for (const std::string& name : *self.feature_names) names.append(to_str(name));
  return names;
}

nb::object exit_of(const ModelHeader& self) {
  if (!self.exit) return nb::none();
  return nb::make_tuple(nb::tuple(nb::cast(self.exit->checkpoints)), nb::tuple(nb::cast(self.exit->margins)),
                        self.exit->top);
}

nb::list arrays_of(const ModelHeader& self) {
  nb::list arrays;
  for (const std::size_t i : self.order()) {
    arrays.append(nb::make_tuple(nb::str(kArrays[i].name.data(), kArrays[i].name.size()), self.places[i].length));
  }
  return arrays;
}

template <class T>
void bind_check_notes(nb::module_& m) {
  m.def(
      "check_notes",
      [](const std::string& name, const In<T>& notes, std::size_t n_expected, bool per_leaf, bool counts) {
        check_notes<T>(name, span_of(notes), n_expected, per_leaf, counts);
      },
      nb::arg("name"), nb::arg("notes").noconvert(), nb::arg("n_expected"), nb::arg("per_leaf"), nb::arg("counts"),
      "Raise ValueError unless a note of training has the entries that it needs.");
}

// Only what sums ask for.
EnsembleView leaves_view(const In<double>& leaf_value, const In<std::int64_t>& node_offsets,
                         const In<double>& tree_weights) {
  EnsembleView model{};
  model.leaf_value = leaf_value.data();
  model.node_offsets = node_offsets.data();
  require(node_offsets.shape(0) == tree_weights.shape(0) + 1, "tree_weights must have one entry per tree");
  model.n_trees = tree_weights.shape(0);
  model.n_leaves = leaf_value.shape(0);
  require(model.n_leaves >= model.n_trees, "every tree has a leaf");
  model.n_nodes = model.n_leaves - model.n_trees;
  check_offsets(model);
  return model;
}

void bind_check_sums(const In<double>& leaf_value, const In<std::int64_t>& node_offsets, const In<double>& tree_weights,
                     double base) {
  const EnsembleView model = leaves_view(leaf_value, node_offsets, tree_weights);
  unlocked([&] { check_sums(model, tree_weights.data(), base); });
}

void bind_check_exit(const In<double>& leaf_value, const In<std::int64_t>& node_offsets, const In<double>& tree_weights,
                     double base, std::int64_t last_checkpoint) {
  const EnsembleView model = leaves_view(leaf_value, node_offsets, tree_weights);
  check_exit(model, tree_weights.data(), base, last_checkpoint);
}

bool bind_fits_single(const In<double>& leaf_value, const In<std::int64_t>& node_offsets,
                      const In<double>& tree_weights) {
  return fits_single(leaves_view(leaf_value, node_offsets, tree_weights), tree_weights.data());
}

}  // namespace

void bind_model_file(nb::module_& m) {
  m.def(
      "header_end",
      [](const nb::bytes& start, std::uint64_t n_file) {
        const std::string_view view = view_of_bytes(start);
        require(view.size() <= n_file, "the start of a file cannot be longer than the file");
        return header_end(view, n_file);
      },
      nb::arg("start"), nb::arg("n_file"),
      "Where the header of a model file ends that starts with these bytes; ValueError when it is no such file.");
  nb::class_<ModelHeader> header(m, "ModelHeader", "What a model file says of its arrays and of the model.");
  header.def("__init__", &make_header, nb::arg("text"), nb::arg("n_data"));
  header.def_ro("n_features", &ModelHeader::n_features);
  header.def_ro("base", &ModelHeader::base);
  header.def_prop_ro("feature_names", &names_of);
  header.def_prop_ro("metadata", [](const ModelHeader& self) { return to_str(self.metadata); });
  header.def_prop_ro("exit", &exit_of);
  header.def_prop_ro("checksum", [](const ModelHeader& self) -> nb::object {
    return self.checksum ? to_str(*self.checksum) : nb::none();
  });
  header.def_prop_ro("arrays", &arrays_of);

  m.def(
      "check_booleans",
      [](const std::string& name, const In<std::uint8_t>& bytes) { check_booleans(name, span_of(bytes)); },
      nb::arg("name"), nb::arg("bytes").noconvert(), "Raise ValueError unless every byte is 0 or 1.");
  bind_check_notes<double>(m);
  bind_check_notes<std::int64_t>(m);
  const auto leaf_value = nb::arg("leaf_value").noconvert(), node_offsets = nb::arg("node_offsets").noconvert(),
             tree_weights = nb::arg("tree_weights").noconvert();
  m.def("check_sums", &bind_check_sums, leaf_value, node_offsets, tree_weights, nb::arg("base"),
        "Raise ValueError unless every score is finite.");
  m.def("check_exit", &bind_check_exit, leaf_value, node_offsets, tree_weights, nb::arg("base"),
        nb::arg("last_checkpoint"), "Raise ValueError unless early exit suits the model.");
  m.def("fits_single", &bind_fits_single, leaf_value, node_offsets, tree_weights,
        "Whether float32 holds every leaf value times its weight, and their sums.");
}

}  // namespace rankwood
