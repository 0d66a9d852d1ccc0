// librankwood for C++17: one header over rankwood.h.
//
//   const auto model = rankwood::Model::load("model.rw");
//   auto workspace = model.workspace();                                  // one per thread
//   std::vector<double> scores(n_documents);
//   model.score(features.data(), n_documents, scores.data(), workspace);  // float or double, row by row
//
// Threads share a model; each has a workspace of its own, which goes before its model does. Scoring throws only when
// the arguments are wrong, and allocates nothing. A missing value is NaN.
#pragma once

#include <rankwood.h>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace rankwood {

// What the library has to say; status() is a rw_status.
class Error : public std::runtime_error {
 public:
  Error(int status, const std::string& message) : std::runtime_error(message), status_(status) {}
  int status() const noexcept { return status_; }

 private:
  int status_;
};

namespace detail {

inline void check(int status) {
  if (status == RW_ERROR_MEMORY) throw std::bad_alloc();
  if (status != RW_OK) throw Error(status, rw_status_text(status));
}

struct Free {
  void operator()(rw_model* model) const noexcept { rw_free(model); }
  void operator()(rw_workspace* workspace) const noexcept { rw_workspace_free(workspace); }
};

}  // namespace detail

// Memory that one thread at a time scores in, of one model: Model::workspace makes it. It can be moved, not copied.
class Workspace {
 public:
  rw_workspace* get() const noexcept { return raw_.get(); }

 private:
  friend class Model;
  explicit Workspace(rw_workspace* raw) : raw_(raw) {}
  std::unique_ptr<rw_workspace, detail::Free> raw_;
};

// A model that never changes. It can be moved, not copied; workspaces stay valid when it is moved.
class Model {
 public:
  // Throws Error, which says what is wrong with the file.
  static Model load(const std::string& path) {
    return loaded([&](auto... out) { return rw_load(path.c_str(), out...); });
  }

  // The model that a file of these bytes holds. They are not needed afterwards.
  static Model from_memory(const void* bytes, std::size_t n_bytes) {
    return loaded([&](auto... out) { return rw_load_memory(bytes, n_bytes, out...); });
  }

  std::size_t n_features() const noexcept { return rw_n_features(get()); }
  std::size_t n_trees() const noexcept { return rw_n_trees(get()); }
  std::size_t n_leaves() const noexcept { return rw_n_leaves(get()); }

  // 64 hexadecimal digits that tell models apart: as Ensemble.fingerprint() in Python.
  std::string_view fingerprint() const noexcept { return rw_fingerprint(get()); }

  // In UTF-8; nothing where features have no names or there is no such feature. Lives as long as the model.
  std::optional<std::string_view> feature_name(std::size_t feature) const noexcept {
    const char* name = rw_feature_name(get(), feature);
    return name ? std::optional<std::string_view>(name) : std::nullopt;
  }

  // Whether documents of a batch with queries may stop before the last tree.
  bool has_early_exit() const noexcept { return rw_has_early_exit(get()) != 0; }

  // For one thread at a time. `max_query_rows`: of the largest query of a batch with queries; 0 where there are none.
  Workspace workspace(std::size_t max_query_rows = 0) const {
    rw_workspace* raw = nullptr;
    detail::check(rw_workspace_new(get(), max_query_rows, &raw));
    return Workspace(raw);
  }

  // Scores of rows of float or double that lie one behind the other, n_features() values each; through all trees.
  template <class T>
  void score(const T* rows, std::size_t n_rows, double* scores, Workspace& workspace) const {
    score(batch(rows, n_rows, scores), workspace);
  }

  // The same rows as a batch, whose other members may be set before it is scored:
  //   auto batch = model.batch(rows, n_rows, scores);
  //   batch.query_offsets = offsets, batch.n_queries = n_queries;       // early exit
  //   batch.flags = RW_SINGLE_PRECISION;                                // sums in float32, faster
  //   batch.row_stride = 1, batch.feature_stride = n_rows;              // column by column
  template <class T>
  rw_batch batch(const T* values, std::size_t n_rows, double* scores) const noexcept {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "rows are of float or double");
    rw_batch made{};
    made.size = sizeof made;
    made.type = std::is_same_v<T, float> ? RW_FLOAT32 : RW_FLOAT64;
    made.values = values;
    made.n_rows = n_rows;
    made.n_features = n_features();
    made.row_stride = static_cast<std::ptrdiff_t>(made.n_features);
    made.feature_stride = 1;
    made.scores = scores;
    return made;
  }

  void score(const rw_batch& batch, Workspace& workspace) const {
    detail::check(rw_score(get(), &batch, workspace.get()));
  }

  rw_model* get() const noexcept { return raw_.get(); }

 private:
  explicit Model(rw_model* raw) : raw_(raw) {}

  template <class Load>
  static Model loaded(Load load) {
    rw_model* raw = nullptr;
    char message[1024] = "";
    const int status = load(&raw, message, sizeof message);
    if (status == RW_ERROR_MEMORY) throw std::bad_alloc();
    if (status != RW_OK) throw Error(status, message);
    return Model(raw);
  }

  std::unique_ptr<rw_model, detail::Free> raw_;
};

}  // namespace rankwood
