#include "bindings/bindings.hpp"

namespace rankwood {

void bind_significance(nb::module_& m) { (void)m; }

}  // namespace rankwood
