#include "isa/kernels.hpp"

#include "isa/choice.hpp"

namespace rankwood {

#define RANKWOOD_DECLARE(isa) \
  namespace isa {             \
  extern const Kernels table; \
  }
RANKWOOD_ISAS(RANKWOOD_DECLARE)

const Kernels& kernels() {
#define RANKWOOD_TABLE(isa) &isa::table,
  static constexpr const Kernels* tables[] = {RANKWOOD_ISAS(RANKWOOD_TABLE)};
  static const Kernels& chosen = *tables[chosen_isa()];  // a throw leaves it unset: the next call asks again
  return chosen;
}

}  // namespace rankwood
