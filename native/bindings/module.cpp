#include "bindings/bindings.hpp"
#include "isa/choice.hpp"

NB_MODULE(_native, m) {
  using namespace rankwood;
  m.doc() = "C++ kernels of rankwood. Private: the Python modules beside it are the interface.";
  nb::set_leak_warnings(false);

  m.def("active_isa", [] { return std::string(active_isa()); }, "Name of the instruction set in use.");
  m.def(
      "available_isas",
      [] {
        std::vector<std::string> names;
        for (const char* const* name = available_isas(); *name != nullptr; ++name) names.emplace_back(*name);
        return names;
      },
      "Instruction sets of this build that this CPU can run, best first.");
  m.def(
      "needed_features",
      [](const std::string& isa) {
        std::vector<std::string> names;
        while (const char* name = needed_feature(isa.c_str(), names.size())) names.emplace_back(name);
        return names;
      },
      nb::arg("isa"),
      "Features of the CPU, as compilers name them, that are asked for before an instruction set is used.");

  bind_svmlight(m);
  bind_measures(m);
  bind_significance(m);
  bind_ensemble(m);
  bind_model_file(m);
  bind_engines(m);
  bind_compiled(m);
  bind_learner(m);
  bind_losses(m);
  bind_forest(m);
  bind_pruning(m);
  bind_explain(m);
  bind_task_record(m);
  bind_serving(m);
}
