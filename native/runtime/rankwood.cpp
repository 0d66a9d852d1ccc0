// The C interface (rankwood.h) over ModelFile and Scorer: arguments are checked here, exceptions end here.
#include "runtime/rankwood.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "isa/choice.hpp"
#include "model/model_file.hpp"
#include "rows.hpp"
#include "score/early_exit.hpp"
#include "score/scorer.hpp"

using namespace rankwood;

static_assert(sizeof(rw_batch) == 16 + 9 * sizeof(void*), "rw_batch has no gaps");

// What a file says, ready to be scored.
struct rw_model {
  explicit rw_model(const ModelFile& file) : rw_model(file, rule_of(file)) {}

  std::size_t n_leaves;
  std::string fingerprint;
  std::optional<std::vector<std::string>> feature_names;
  bool exits, fits_single;
  Scorer scorer;

 private:
  rw_model(const ModelFile& file, const ExitRule& rule)
      : n_leaves(file.view().n_leaves),
        fingerprint(file.fingerprint()),
        feature_names(file.header().feature_names),
        exits(!rule.checkpoints.empty()),
        fits_single(rankwood::fits_single(file.view(), file.tree_weights())),
        scorer(file.view(), file.tree_weights(), file.header().base, exits ? &rule : nullptr) {
    if (!feature_names) return;
    for (std::string& name : *feature_names) name = as_utf8(name);
  }

  static constexpr std::size_t kMaxNodes = 2'000'000'000;  // those of engine traverse

  static ExitRule rule_of(const ModelFile& file) {
    if (file.view().n_nodes > kMaxNodes)
      refuse("the model has more than 2,000,000,000 inner nodes: no engine takes it");
    const std::optional<ExitNumbers>& exit = file.header().exit;
    if (!exit) return {{}, {}, 1};
    return make_exit_rule(exit->checkpoints.data(), exit->margins.data(), exit->margins.size(), exit->top,
                          file.view().n_trees);
  }
};

struct rw_workspace {
  rw_workspace(const rw_model& its_model, std::size_t max_query_rows)
      : model(&its_model), memory(its_model.scorer, max_query_rows) {}

  const rw_model* model;
  Scorer::Workspace memory;
};

namespace {

struct Unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The end may be cut off, between two characters.
void tell(std::string_view sentence, char* message, std::size_t size) {
  if (message == nullptr || size == 0) return;
  std::size_t n = std::min(sentence.size(), size - 1);
  while (n > 0 && n < sentence.size() && (static_cast<unsigned char>(sentence[n]) & 0xc0) == 0x80) --n;
  std::copy_n(sentence.data(), n, message);
  message[n] = '\0';
}

// What `load` returns, which is a model, goes to *out. Its exceptions become a status and a message.
template <class Load>
int guarded(rw_model** out, char* message, std::size_t message_size, const std::string& where, const Load& load) {
  const auto fail = [&](int status, const char* sentence) {
    tell(where + sentence, message, message_size);
    return status;
  };
  try {
    try {
      active_isa();
    } catch (const std::invalid_argument& error) {
      tell(error.what(), message, message_size);
      return RW_ERROR_CPU;
    }
    *out = load().release();
    tell("", message, message_size);
    return RW_OK;
  } catch (const Unreadable& error) {
    return fail(RW_ERROR_FILE, error.what());
  } catch (const std::bad_alloc&) {
    return fail(RW_ERROR_MEMORY, "the model takes more memory than there is");
  } catch (const std::length_error&) {
    return fail(RW_ERROR_MEMORY, "the model takes more memory than there is");
  } catch (const std::exception& error) {
    return fail(RW_ERROR_MODEL, error.what());
  }
}

[[noreturn]] void unreadable(int error) {
  throw Unreadable("the file cannot be read: " + std::generic_category().message(error));
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::unique_ptr<rw_model> load_file(const char* path) {
  struct stat facts;
  if (stat(path, &facts) != 0) unreadable(errno);
  if ((facts.st_mode & S_IFMT) == S_IFDIR) throw Unreadable("this is a folder, not a model file");
  if ((facts.st_mode & S_IFMT) != S_IFREG) throw Unreadable("this is not a regular file");
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path, "rb"));
  if (file == nullptr) unreadable(errno);
  std::setvbuf(file.get(), nullptr, _IONBF, 0);  // it is read in large pieces
  return std::make_unique<rw_model>(ModelFile(static_cast<std::uint64_t>(facts.st_size), [&](void* to, std::size_t n) {
    errno = 0;
    if (std::fread(to, 1, n, file.get()) == n) return;
    if (errno != 0) unreadable(errno);
    throw std::invalid_argument("the file was cut off while it was read");
  }));
}

std::unique_ptr<rw_model> load_bytes(const void* bytes, std::size_t n_bytes) {
  const auto* next = static_cast<const char*>(bytes);
  return std::make_unique<rw_model>(ModelFile(n_bytes, [&](void* to, std::size_t n) {
    std::memcpy(to, next, n);
    next += n;
  }));
}

// Whether the queries have every row once, and how many documents the largest of them has.
bool are_queries(const rw_batch& batch, std::size_t& largest) {
  const std::int64_t* offsets = batch.query_offsets;
  if (offsets[0] != 0 || static_cast<std::uint64_t>(offsets[batch.n_queries]) != batch.n_rows) return false;
  for (std::size_t q = 0; q < batch.n_queries; ++q) {
    if (offsets[q + 1] < offsets[q]) return false;
    largest = std::max(largest, static_cast<std::size_t>(offsets[q + 1] - offsets[q]));
  }
  return true;
}

template <class T>
int score(const rw_model& model, const rw_batch& batch, rw_workspace& workspace) {
  const Rows<T> rows{static_cast<const T*>(batch.values), batch.n_rows, batch.n_features, batch.row_stride,
                     batch.feature_stride};
  const bool single = (batch.flags & RW_SINGLE_PRECISION) != 0 && model.fits_single;
  if (batch.query_offsets != nullptr && model.exits) {
    const QueryRows queries{batch.query_offsets, batch.n_queries, nullptr};
    model.scorer.score(rows, queries, batch.scores, batch.trees, single, workspace.memory);
  } else {
    model.scorer.score(rows, batch.scores, single, workspace.memory);
    if (batch.trees != nullptr) {
      std::fill_n(batch.trees, batch.n_rows, static_cast<std::int32_t>(model.scorer.n_trees()));
    }
  }
  return RW_OK;
}

template <class T>
int score_rows(const rw_model* model, const T* rows, std::size_t n_rows, std::size_t n_features, double* scores,
               rw_workspace* workspace) {
  rw_batch batch = {};
  batch.size = sizeof batch;
  batch.type = sizeof(T) == sizeof(float) ? RW_FLOAT32 : RW_FLOAT64;
  batch.values = rows;
  batch.n_rows = n_rows;
  batch.n_features = n_features;
  batch.row_stride = static_cast<std::ptrdiff_t>(n_features);
  batch.feature_stride = 1;
  batch.scores = scores;
  return rw_score(model, &batch, workspace);
}

}  // namespace

extern "C" {

const char* rw_status_text(int status) {
  switch (status) {
    case RW_OK:
      return "no error";
    case RW_ERROR_ARGUMENT:
      return "an argument is null, or numbers of features, rows or queries do not fit";
    case RW_ERROR_FILE:
      return "the file cannot be read";
    case RW_ERROR_MODEL:
      return "this is not a model, or it is damaged";
    case RW_ERROR_MEMORY:
      return "there is not enough memory";
    case RW_ERROR_WORKSPACE:
      return "the workspace is another model's, or too small for the documents of a query";
    case RW_ERROR_CPU:
      return "RANKWOOD_ISA names an instruction set that this CPU cannot run";
    default:
      return "there is no such status";
  }
}

const char* rw_version(void) { return RANKWOOD_VERSION; }

uint32_t rw_abi_version(void) { return RW_ABI_VERSION; }

const char* rw_instruction_set(void) {
  try {
    return active_isa();
  } catch (...) {
    return "";
  }
}

int rw_load(const char* path, rw_model** model, char* message, size_t message_size) {
  if (model != nullptr) *model = nullptr;
  if (path == nullptr || model == nullptr) {
    tell("the path and the place for the model must not be null", message, message_size);
    return RW_ERROR_ARGUMENT;
  }
  try {
    return guarded(model, message, message_size, std::string(path) + ": ", [&] { return load_file(path); });
  } catch (...) {  // not even a sentence could be made
    return RW_ERROR_MEMORY;
  }
}

int rw_load_memory(const void* bytes, size_t n_bytes, rw_model** model, char* message, size_t message_size) {
  if (model != nullptr) *model = nullptr;
  if ((bytes == nullptr && n_bytes > 0) || model == nullptr) {
    tell("the bytes and the place for the model must not be null", message, message_size);
    return RW_ERROR_ARGUMENT;
  }
  try {
    return guarded(model, message, message_size, "", [&] { return load_bytes(bytes, n_bytes); });
  } catch (...) {
    return RW_ERROR_MEMORY;
  }
}

void rw_free(rw_model* model) { delete model; }

size_t rw_n_features(const rw_model* model) { return model == nullptr ? 0 : model->scorer.n_features(); }

size_t rw_n_trees(const rw_model* model) { return model == nullptr ? 0 : model->scorer.n_trees(); }

size_t rw_n_leaves(const rw_model* model) { return model == nullptr ? 0 : model->n_leaves; }

const char* rw_feature_name(const rw_model* model, size_t feature) {
  if (model == nullptr || !model->feature_names || feature >= model->feature_names->size()) return nullptr;
  return (*model->feature_names)[feature].c_str();
}

const char* rw_fingerprint(const rw_model* model) { return model == nullptr ? "" : model->fingerprint.c_str(); }

int rw_has_early_exit(const rw_model* model) { return model != nullptr && model->exits ? 1 : 0; }

int rw_workspace_new(const rw_model* model, size_t max_query_rows, rw_workspace** workspace) {
  if (workspace != nullptr) *workspace = nullptr;
  if (model == nullptr || workspace == nullptr) return RW_ERROR_ARGUMENT;
  const std::size_t n_rows = model->exits ? max_query_rows : 0;
  if (n_rows > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) return RW_ERROR_MEMORY;
  try {
    *workspace = new rw_workspace(*model, n_rows);
    return RW_OK;
  } catch (...) {
    return RW_ERROR_MEMORY;
  }
}

void rw_workspace_free(rw_workspace* workspace) { delete workspace; }

int rw_score_f32(const rw_model* model, const float* rows, size_t n_rows, size_t n_features, double* scores,
                 rw_workspace* workspace) {
  return score_rows(model, rows, n_rows, n_features, scores, workspace);
}

int rw_score_f64(const rw_model* model, const double* rows, size_t n_rows, size_t n_features, double* scores,
                 rw_workspace* workspace) {
  return score_rows(model, rows, n_rows, n_features, scores, workspace);
}

int rw_score(const rw_model* model, const rw_batch* batch, rw_workspace* workspace) {
  if (model == nullptr || batch == nullptr || workspace == nullptr) return RW_ERROR_ARGUMENT;
  if (batch->size != sizeof(rw_batch) || batch->type > RW_FLOAT64 ||
      (batch->flags & ~uint32_t{RW_SINGLE_PRECISION}) != 0 || batch->reserved != 0 ||
      batch->n_features != model->scorer.n_features()) {
    return RW_ERROR_ARGUMENT;
  }
  if (workspace->model != model) return RW_ERROR_WORKSPACE;
  if (batch->query_offsets != nullptr) {
    std::size_t largest = 0;
    if (!are_queries(*batch, largest)) return RW_ERROR_ARGUMENT;
    if (model->exits && largest > workspace->memory.max_query_rows()) return RW_ERROR_WORKSPACE;
  }
  if (batch->n_rows == 0) return RW_OK;
  if (batch->scores == nullptr || (batch->values == nullptr && batch->n_features > 0)) return RW_ERROR_ARGUMENT;
  return batch->type == RW_FLOAT32 ? score<float>(*model, *batch, *workspace)
                                   : score<double>(*model, *batch, *workspace);
}

}  // extern "C"
