#include "bindings/bindings.hpp"

namespace rankwood {

void bind_svmlight(nb::module_& m) { (void)m; }

}  // namespace rankwood
