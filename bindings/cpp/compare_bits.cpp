// Compares scores with Python's, bit for bit:  compare_bits CASES
// tests/runtime/test_bindings.py makes the cases, runs this and says what is in their folders.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "rankwood.hpp"

namespace fs = std::filesystem;

namespace {

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
std::vector<T> values(const fs::path& path) {
  const std::string bytes = content(path);
  std::vector<T> read(bytes.size() / sizeof(T));
  std::memcpy(read.data(), bytes.data(), bytes.size());
  return read;
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

template <class T>
void require_bits(const std::vector<T>& got, const std::vector<T>& expected, const std::string& what) {
  require(got.size() == expected.size(), what + ": another number of rows");
  for (std::size_t row = 0; row < got.size(); ++row) {
    require(!std::memcmp(&got[row], &expected[row], sizeof(T)), what + ": row " + std::to_string(row) + " differs");
  }
}

struct Case {
  fs::path folder;
  std::map<std::string, std::string> facts;
  rankwood::Model model;
  std::vector<std::int64_t> offsets;
  int compared = 0;

  explicit Case(const fs::path& where)
      : folder(where),
        model(rankwood::Model::load((where / "model.rw").string())),
        offsets(values<std::int64_t>(where / "offsets")) {
    std::istringstream lines(content(folder / "facts"));
    for (std::string key, value; lines >> key >> value;) facts[key] = value;
  }

  void compare_facts() const {
    require(std::to_string(model.n_features()) == facts.at("features"), "number of features");
    require(std::to_string(model.n_trees()) == facts.at("trees"), "number of trees");
    require(std::to_string(model.n_leaves()) == facts.at("leaves"), "number of leaves");
    require(model.fingerprint() == facts.at("fingerprint"), "fingerprint");
    require(model.has_early_exit() == (facts.at("exit") == "1"), "early exit");
    std::string names;
    for (std::size_t feature = 0; const auto name = model.feature_name(feature); ++feature) {
      names += std::string(*name) + "\n";
    }
    require(names == content(folder / "names"), "names");
    require(!model.feature_name(model.n_features()), "a name of a feature that is not there");
  }

  template <class T>
  void compare_scores(const std::string& type) {
    const auto rows = values<T>(folder / ("rows." + type));
    const auto columns = values<T>(folder / ("columns." + type));
    const std::size_t width = model.n_features(), n_rows = values<double>(folder / ("double." + type)).size();
    auto workspace = model.workspace(std::stoul(facts.at("longest")));
    std::vector<double> scores(n_rows);
    for (const std::string precision : {"double", "single"}) {
      const std::uint32_t flags = precision == "single" ? RW_SINGLE_PRECISION : 0;
      const auto expected = values<double>(folder / (precision + "." + type));
      for (const std::size_t size : {1, 2, 7, 10, 33, 100, 1000}) {
        for (std::size_t start = 0; start < n_rows; start += size) {
          auto batch = model.batch(rows.data() + start * width, std::min(size, n_rows - start), scores.data() + start);
          batch.flags = flags;
          model.score(batch, workspace);
        }
        require_bits(scores, expected, precision + "." + type + " in batches of " + std::to_string(size));
        ++compared;
      }
      auto batch = model.batch(columns.data(), n_rows, scores.data());
      batch.flags = flags;
      batch.row_stride = 1, batch.feature_stride = static_cast<std::ptrdiff_t>(n_rows);
      model.score(batch, workspace);
      require_bits(scores, expected, precision + "." + type + " by columns");

      std::vector<std::int32_t> trees(n_rows);
      batch = model.batch(rows.data(), n_rows, scores.data());
      batch.flags = flags;
      batch.query_offsets = offsets.data(), batch.n_queries = offsets.size() - 1;
      batch.trees = trees.data();
      model.score(batch, workspace);
      require_bits(scores, values<double>(folder / ("exit-" + precision + "." + type)),
                   "scores with early exit, " + type);
      require_bits(trees, values<std::int32_t>(folder / ("trees-" + precision + "." + type)), "trees, " + type);
      compared += 3;
    }
  }

  void score_in_threads() const {
    const auto rows = values<float>(folder / "rows.f32");
    const auto expected = values<double>(folder / "double.f32");
    std::vector<std::vector<double>> scores(8, std::vector<double>(expected.size()));
    std::vector<std::thread> threads;
    for (auto& own : scores) {
      threads.emplace_back([&] {
        auto workspace = model.workspace();
        for (int time = 0; time < 5; ++time) model.score(rows.data(), own.size(), own.data(), workspace);
      });
    }
    for (auto& thread : threads) thread.join();
    for (const auto& own : scores) require_bits(own, expected, "scores in threads");
  }
};

template <class Call>
void require_error(int status, Call call) {
  try {
    call();
  } catch (const rankwood::Error& error) {
    require(error.status() == status, std::string("another error: ") + error.what());
    require(*error.what() != 0, "an error without a message");
    return;
  }
  throw std::runtime_error("no error");
}

void check_errors(const fs::path& folder) {
  require_error(RW_ERROR_FILE, [&] { rankwood::Model::load((folder / "nowhere.rw").string()); });
  require_error(RW_ERROR_MODEL, [&] { rankwood::Model::from_memory("no model", 8); });
  const std::string bytes = content(folder / "model.rw");
  auto model = rankwood::Model::from_memory(bytes.data(), bytes.size());
  const auto other = rankwood::Model::from_memory(bytes.data(), bytes.size());
  auto moved = std::move(model);
  auto workspace = moved.workspace();
  std::vector<float> row(moved.n_features());
  double score;
  moved.score(row.data(), 1, &score, workspace);
  require_error(RW_ERROR_WORKSPACE, [&] { other.score(row.data(), 1, &score, workspace); });
  auto batch = moved.batch(row.data(), 1, &score);
  ++batch.n_features;
  require_error(RW_ERROR_ARGUMENT, [&] { moved.score(batch, workspace); });
}

}  // namespace

int main(int argc, char** argv) try {
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(argc > 1 ? argv[1] : ".")) try {
      Case one(entry.path());
      one.compare_facts();
      one.compare_scores<float>("f32");
      one.compare_scores<double>("f64");
      one.score_in_threads();
      check_errors(entry.path());
      compared += one.compared;
    } catch (const std::exception& error) {
      throw std::runtime_error(entry.path().filename().string() + ": " + error.what());
    }
  std::printf("%d comparisons\n", compared);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
