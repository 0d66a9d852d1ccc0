#include "isa/choice.hpp"
#include "score/kernels.hpp"

namespace rankwood {

#define RANKWOOD_DECLARE(isa)                \
  namespace isa {                            \
  extern const ScoringKernels scoring_table; \
  }
RANKWOOD_ISAS(RANKWOOD_DECLARE)

const ScoringKernels& scoring_kernels() {
#define RANKWOOD_TABLE(isa) &isa::scoring_table,
  static constexpr const ScoringKernels* tables[] = {RANKWOOD_ISAS(RANKWOOD_TABLE)};
  static const ScoringKernels& chosen = *tables[chosen_isa()];  // a throw leaves it unset: the next call asks again
  return chosen;
}

}  // namespace rankwood
