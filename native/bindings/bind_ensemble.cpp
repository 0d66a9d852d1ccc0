#include "bindings/bindings.hpp"

namespace rankwood {

void bind_ensemble(nb::module_& m) { (void)m; }

}  // namespace rankwood
