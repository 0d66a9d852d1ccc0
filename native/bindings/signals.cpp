#include "bindings/bindings.hpp"

namespace rankwood {
namespace {

bool is_main_thread() {
  const nb::module_ threading = nb::module_::import_("threading");
  return threading.attr("main_thread")().attr("ident").equal(threading.attr("get_ident")());
}

}  // namespace

bool Signals::operator()() {
  if (in_main_thread_ == false) return false;  // without waiting for the lock
  const Locked with_lock;
  try {
    if (!in_main_thread_) in_main_thread_ = is_main_thread();
    if (*in_main_thread_ && PyErr_CheckSignals() != 0) throw nb::python_error();
    return false;
  } catch (nb::python_error& error) {
    raised_.emplace(std::move(error));
    return true;
  }
}

}  // namespace rankwood
