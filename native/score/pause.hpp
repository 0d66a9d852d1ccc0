// What scoring does between two blocks of work: nothing, or a look whether somebody wants it to stop.
#pragma once

#include "interruption.hpp"

namespace rankwood {

struct GoOn {
  void operator()() const noexcept {}
};

struct MayStop {  // by throwing Interrupted
  void operator()() const { check_interruption(); }
};

template <class Pause>
constexpr bool kNeverStops = noexcept(Pause{}());

}  // namespace rankwood
