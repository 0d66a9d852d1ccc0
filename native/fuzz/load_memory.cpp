// Any bytes as a model: rw_load_memory refuses them with a sentence, or gives a model that scores finite numbers.
// tools/fuzz builds and runs it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/rankwood.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

constexpr std::size_t kMaxFeatures = 1000, kRows = 40;

void check(bool condition) {
  if (!condition) std::abort();
}

template <class T>
void score(const rw_model* model, rw_workspace* workspace, bool by_queries, bool single) {
  constexpr T kValues[] = {T(0),
                           T(1),
                           T(-1.5),
                           T(0.5),
                           std::numeric_limits<T>::quiet_NaN(),
                           std::numeric_limits<T>::infinity(),
                           -std::numeric_limits<T>::infinity()};
  const std::size_t n_features = rw_n_features(model);
  std::vector<T> values(kRows * n_features);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = kValues[i % 7];
  const std::int64_t offsets[] = {0, 3, 3, kRows};
  for (const std::size_t n : {std::size_t{1}, std::size_t{3}, kRows}) {
    std::vector<double> scores(n, std::numeric_limits<double>::quiet_NaN());
    std::vector<std::int32_t> trees(n, -1);
    rw_batch batch = {};
    batch.size = sizeof batch;
    batch.type = sizeof(T) == sizeof(float) ? RW_FLOAT32 : RW_FLOAT64;
    batch.flags = single ? RW_SINGLE_PRECISION : 0;
    batch.values = values.data();
    batch.n_rows = n;
    batch.n_features = n_features;
    batch.row_stride = static_cast<std::ptrdiff_t>(n_features);
    batch.feature_stride = 1;
    batch.scores = scores.data();
    batch.trees = trees.data();
    if (by_queries && n == kRows) {
      batch.query_offsets = offsets;
      batch.n_queries = 3;
    }
    check(rw_score(model, &batch, workspace) == RW_OK);
    for (const double one : scores) check(std::isfinite(one));
    for (const std::int32_t one : trees) check(one >= 0 && static_cast<std::size_t>(one) <= rw_n_trees(model));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rw_model* model = nullptr;
  char message[200];
  std::memset(message, 'x', sizeof message);
  const int status = rw_load_memory(data, size, &model, message, sizeof message);
  check(std::memchr(message, 0, sizeof message) != nullptr);
  check((status == RW_OK) == (model != nullptr) && (status == RW_OK) == (message[0] == '\0'));
  if (model == nullptr) return 0;
  check(std::strlen(rw_fingerprint(model)) == 64);
  for (std::size_t f = 0; f < rw_n_features(model); ++f) rw_feature_name(model, f);
  if (rw_n_features(model) <= kMaxFeatures) {
    rw_workspace* workspace = nullptr;
    check(rw_workspace_new(model, kRows, &workspace) == RW_OK);
    for (const bool by_queries : {false, true}) {
      score<float>(model, workspace, by_queries, true);
      score<double>(model, workspace, by_queries, false);
    }
    rw_workspace_free(workspace);
  }
  rw_free(model);
  return 0;
}

// Changes the header or what is behind it, and writes the length of the header anew: few changes get further otherwise.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned int seed) {
  std::uint64_t length = 0;
  if (size >= 8) std::memcpy(&length, data, 8);
  if (size < 8 || length > size - 8 || seed % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const auto header_size = static_cast<std::size_t>(length);
  const std::size_t data_size = size - 8 - header_size;
  if (seed % 8 < 3) {
    return 8 + header_size + LLVMFuzzerMutate(data + 8 + header_size, data_size, max_size - 8 - header_size);
  }
  const std::vector<std::uint8_t> rest(data + 8 + header_size, data + size);
  length = LLVMFuzzerMutate(data + 8, header_size, max_size - 8 - data_size);
  std::memcpy(data, &length, 8);
  std::copy(rest.begin(), rest.end(), data + 8 + length);
  return 8 + static_cast<std::size_t>(length) + data_size;
}
