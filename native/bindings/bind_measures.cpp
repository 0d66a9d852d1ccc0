#include "bindings/bindings.hpp"

namespace rankwood {

void bind_measures(nb::module_& m) { (void)m; }

}  // namespace rankwood
