#include "bindings/bindings.hpp"
#include "json_rows.hpp"

namespace rankwood {
namespace {

// Values, and where their list begins and ends; nothing if the text has no such list.
std::optional<nb::tuple> json_rows(const nb::bytes& text, std::size_t width, std::size_t max_rows) {
  JsonRows rows;
  bool found = false;
  unlocked([&] { found = JsonRowsReader(text.c_str(), text.size()).read(width, max_rows, rows); });
  if (!found) return std::nullopt;
  return nb::make_tuple(to_numpy(std::move(rows.values)), rows.first, rows.end);
}

}  // namespace

void bind_serving(nb::module_& m) {
  m.def("json_rows", &json_rows, nb::arg("text"), nb::arg("width"), nb::arg("max_rows"),
        "Numbers of the first list of lists in a JSON text, and where it begins and ends, or None.");
}

}  // namespace rankwood
