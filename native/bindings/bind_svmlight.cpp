#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/bindings.hpp"
#include "file_read.hpp"
#include "svmlight.hpp"
#include "svmlight_write.hpp"

namespace rankwood {
namespace {

// An array over the memory of `owned`, which lives as long as the array does.
template <class T, class Owned>
nb::object as_array(Owned owned, T* (*data_of)(Owned&), std::vector<std::size_t> shape) {
  auto holder = std::make_unique<Owned>(std::move(owned));
  T* const data = data_of(*holder);
  nb::capsule owner(holder.get(), [](void* p) noexcept { delete static_cast<Owned*>(p); });
  holder.release();
  return nb::cast(nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner));
}

template <class T>
nb::object vector_array(std::vector<T> values) {
  const std::size_t size = values.size();
  return as_array<T, std::vector<T>>(std::move(values), [](std::vector<T>& v) { return v.data(); }, {size});
}

// Bytes that are no UTF-8 are shown as \xff, so that different names stay different.
nb::list as_strings(const TextList& texts) {
  nb::list strings;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i % 65536 == 65535 && PyErr_CheckSignals() != 0) throw nb::python_error();
    const std::string_view text = texts[i];
    PyObject* const string =
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
    if (string == nullptr) throw nb::python_error();
    strings.append(nb::steal(string));
  }
  return strings;
}

// (matrix, labels, ids of runs of rows with one query, lengths of the runs, document ids or None)
nb::tuple take_rows(SvmlightReader& reader) {
  SvmlightRows rows = reader.take();
  nb::object ids =
      rows.queries.all_numbers() ? vector_array(rows.queries.numbers()) : nb::object(as_strings(rows.queries.ids()));
  nb::object documents = rows.documents.any() ? nb::object(as_strings(rows.documents.ids())) : nb::none();
  nb::object X = as_array<float, MatrixBuffer>(std::move(rows.X), [](MatrixBuffer& buffer) { return buffer.data(); },
                                               {rows.n_rows, rows.width});
  return nb::make_tuple(X, vector_array(std::move(rows.labels)), ids, vector_array(rows.queries.lengths()), documents);
}

std::size_t parse_window(SvmlightReader& reader, Out<std::uint8_t> buffer, std::size_t size, bool last,
                         std::size_t text_left, int n_threads) {
  require(buffer.shape(0) >= 2 * kTextPadding && size <= buffer.shape(0) - 2 * kTextPadding,
          "the buffer must have TEXT_PADDING bytes before and after the text");
  char* const text = reinterpret_cast<char*>(buffer.data()) + kTextPadding;
  std::size_t n_read = 0;
  unlocked([&] { n_read = reader.parse(text, size, last, text_left, n_threads); });
  return n_read;
}

std::vector<nb::bytes> format_svmlight(In<float, 2> X, In<double> labels, In<std::int64_t> query, nb::bytes id_text,
                                       In<std::int64_t> id_ends, nb::bytes comment_text,
                                       std::optional<In<std::int64_t>> comment_ends, bool zero_based,
                                       std::optional<float> absent, int n_threads) {
  const std::size_t n_rows = X.shape(0);
  require(labels.shape(0) == n_rows && query.shape(0) == n_rows, "labels and query must have one entry per row");
  require(!comment_ends || comment_ends->shape(0) == n_rows, "comment_ends must have one entry per row");
  const TextSlices ids{{id_text.c_str(), id_text.size()}, id_ends.data()};
  TextSlices comments{{comment_text.c_str(), comment_text.size()}, nullptr};
  if (comment_ends) comments.ends = comment_ends->data();
  for (std::size_t i = 0; i < n_rows; ++i) {
    require(query.data()[i] >= 0 && static_cast<std::size_t>(query.data()[i]) < id_ends.shape(0),
            "query must hold numbers of queries");
  }
  const SvmlightTable table{n_rows,
                            X.shape(1),
                            X.data(),
                            labels.data(),
                            query.data(),
                            ids,
                            comments,
                            zero_based ? std::size_t{0} : std::size_t{1},
                            absent.has_value(),
                            absent.value_or(0.0f)};
  std::vector<std::string> pieces;
  unlocked([&] { pieces = SvmlightFormatter(table).format(n_threads); });
  std::vector<nb::bytes> result;
  for (const std::string& piece : pieces) result.emplace_back(piece.data(), piece.size());
  return result;
}

}  // namespace

void bind_svmlight(nb::module_& m) {
  m.attr("TEXT_PADDING") = kTextPadding;
  nb::class_<SvmlightReader>(m, "SvmlightReader")
      .def(
          "__init__",
          [](SvmlightReader* self, std::optional<std::size_t> n_features, bool ignore_beyond, float absent,
             bool zero_based, bool document_ids, std::size_t max_bytes, std::string max_text,
             std::optional<std::size_t> max_rows, std::size_t chunk_bytes, bool careful_only) {
            require(chunk_bytes > 0 && max_rows.value_or(1) > 0, "chunk_bytes and max_rows must be positive");
            new (self) SvmlightReader(SvmlightOptions{
                .n_features = n_features.value_or(0),
                .fixed_width = n_features.has_value(),
                .ignore_beyond = ignore_beyond,
                .absent = absent,
                .zero_based = zero_based,
                .document_ids = document_ids,
                .max_bytes = max_bytes,
                .max_text = std::move(max_text),
                .max_rows = max_rows.value_or(std::numeric_limits<std::size_t>::max()),
                .chunk_bytes = chunk_bytes,
                .careful_only = careful_only,
            });
          },
          nb::arg("n_features").none(), nb::kw_only(), nb::arg("ignore_beyond"), nb::arg("absent"),
          nb::arg("zero_based"), nb::arg("document_ids"), nb::arg("max_bytes"), nb::arg("max_text"),
          nb::arg("max_rows").none(), nb::arg("chunk_bytes"), nb::arg("careful_only"))
      .def_prop_ro("n_rows", &SvmlightReader::n_rows)
      .def_prop_ro("has_qid", &SvmlightReader::has_qid)
      .def("start_file", &SvmlightReader::start_file)
      .def("parse", &parse_window, nb::arg("buffer"), nb::arg("size"), nb::arg("last"), nb::arg("text_left"),
           nb::arg("n_threads"))
      .def("take", &take_rows);
  m.def("format_svmlight", &format_svmlight, nb::arg("X"), nb::arg("labels"), nb::arg("query"), nb::arg("id_text"),
        nb::arg("id_ends"), nb::arg("comment_text"), nb::arg("comment_ends").none(), nb::kw_only(),
        nb::arg("zero_based"), nb::arg("absent").none(), nb::arg("n_threads"));
#if defined(RANKWOOD_PREAD)
  m.def(
      "read_at",
      [](int file, std::int64_t offset, Out<std::uint8_t> to, int n_threads) {
        char* const data = reinterpret_cast<char*>(to.data());
        const std::size_t size = to.shape(0);
        std::int64_t n_read = 0;
        unlocked([&] { n_read = read_at(file, offset, data, size, n_threads); });
        return n_read;
      },
      nb::arg("file"), nb::arg("offset"), nb::arg("to"), nb::arg("n_threads"));
#endif
}

}  // namespace rankwood
