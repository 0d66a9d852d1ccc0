// Feature values as small integers, so that comparing integers is comparing values, exactly.
//
// The code of a value is the number of thresholds below it: x <= threshold[i] just when code(x) <= i. float32 values
// are searched among the thresholds rounded down to float32: for a float32 x, x <= t just when x <= (t rounded down).
// A missing value gets a code of its own choosing: the number of thresholds whose splits send it right, when those are
// the lowest ones (as when it counts as 0). Where splits disagree otherwise, the feature has a column of codes for the
// splits that send a missing value left and one for the others. A feature with more thresholds than a code can
// count has several columns, each with some of them. Splits on sets have columns of their own behind all others
// (set_columns.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include "ensemble.hpp"
#include "interruption.hpp"
#include "rows.hpp"
#include "score/kernels.hpp"
#include "score/set_columns.hpp"

namespace rankwood {

// The largest float that is not above t.
inline float round_down(double t) {
  const float nearest = static_cast<float>(t);
  return static_cast<double>(nearest) > t ? std::nextafter(nearest, -std::numeric_limits<float>::infinity()) : nearest;
}

// A document goes right at inner node `node` just when its code in column[node] is above code[node].
struct NodeCodes {
  std::vector<std::int32_t> column, code;
};

class Quantiser {
 public:
  // Codes go up to `max_code`: 255 or 65,535.   OUT nodes
  Quantiser(const EnsembleView& model, std::size_t max_code, NodeCodes& nodes)
      : kernel_(scoring_kernels()), nodes_(&nodes) {
    nodes.column.resize(model.n_nodes);
    nodes.code.resize(model.n_nodes);
    std::vector<std::uint32_t> order(model.n_nodes);
    std::iota(order.begin(), order.end(), 0u);
    if (model.set_offsets != nullptr) std::erase_if(order, [&](std::uint32_t node) { return model.has_set(node); });
    std::size_t n_compared = 0;
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      check_interruption(++n_compared);
      if (model.feature[a] != model.feature[b]) return model.feature[a] < model.feature[b];
      return model.threshold[a] < model.threshold[b];
    });
    std::vector<std::uint32_t> part;
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      const std::int32_t feature = model.feature[order[begin]];
      while (end < order.size() && model.feature[order[end]] == feature) ++end;
      const std::vector<std::uint32_t> of_feature(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                                  order.begin() + static_cast<std::ptrdiff_t>(end));
      if (is_monotone(model, of_feature)) {
        add_columns(model, of_feature, max_code);
        continue;
      }
      for (const std::uint8_t missing_left : {std::uint8_t{0}, std::uint8_t{1}}) {
        part.clear();
        for (const std::uint32_t node : of_feature) {
          if ((model.missing_left[node] != 0) == (missing_left != 0)) part.push_back(node);
        }
        add_columns(model, part, max_code);
      }
    }
    set_levels(singles_, single_tables_);
    set_levels(doubles_, double_tables_);
    set_steps();
    if (model.set_offsets != nullptr) sets_.emplace(model, single_tables_.size(), nodes.column);
    nodes_ = nullptr;
  }
  Quantiser(const Quantiser&) = delete;  // tables point into the numbers
  Quantiser& operator=(const Quantiser&) = delete;

  std::size_t n_columns() const { return single_tables_.size() + (sets_ ? sets_->n_columns() : 0); }
  std::size_t n_bytes() const {
    return (singles_.size() + steps_.size()) * sizeof singles_[0] + doubles_.size() * sizeof doubles_[0] +
           (sets_ ? sets_->n_bytes() : 0) +
           single_tables_.size() * (sizeof single_tables_[0] + sizeof double_tables_[0] + sizeof step_tables_[0]);
  }

  // Codes of the rows [first, first + n): codes[column * column_stride + row * row_stride]. Signed ones are offset by
  // -128.
  template <class T, class Code>
  void quantise(const Rows<T>& rows, std::size_t first, std::size_t n, Code* codes, std::size_t column_stride,
                std::size_t row_stride) const noexcept {
    if (sets_) sets_->quantise(rows, first, n, codes, column_stride, row_stride);
    if (single_tables_.empty()) return;  // trees without splits: there may be no memory for codes, either
    QuantiseTask<T> task;
    task.columns = tables(T{}).data();
    task.steps = step_tables_.data();
    task.n_columns = single_tables_.size();
    task.row_stride = rows.row_stride;
    task.feature_stride = rows.feature_stride;
    task.n_features = rows.n_features;
    task.code_column_stride = column_stride;
    task.code_row_stride = row_stride;
    // Some rows at a time stay in the nearest caches while column after column is read; the next are on their way.
    const std::size_t tile_rows = std::max(kMinTileRows, kernel_.vector_bytes);
    for (std::size_t row = 0; row < n; row += tile_rows) {
      task.rows = rows.data + static_cast<std::ptrdiff_t>(first + row) * rows.row_stride;
      task.n_rows = std::min(tile_rows, n - row);
      task.code_room = row_stride == 1 && column_stride > row ? column_stride - row : 0;
      look_ahead(rows, first + row + tile_rows, tile_rows, task);
      run(kernel_, task, codes + row * row_stride);
    }
  }

 private:
  static constexpr std::size_t kMinTileRows = 32;

  const std::vector<SearchTable<float>>& tables(float) const { return single_tables_; }
  const std::vector<SearchTable<double>>& tables(double) const { return double_tables_; }
  static void run(const ScoringKernels& k, const QuantiseTask<float>& t, std::int8_t* c) { k.quantise_f32_i8(t, c); }
  static void run(const ScoringKernels& k, const QuantiseTask<double>& t, std::int8_t* c) { k.quantise_f64_i8(t, c); }
  static void run(const ScoringKernels& k, const QuantiseTask<float>& t, std::uint8_t* c) { k.quantise_f32_u8(t, c); }
  static void run(const ScoringKernels& k, const QuantiseTask<double>& t, std::uint8_t* c) { k.quantise_f64_u8(t, c); }
  static void run(const ScoringKernels& k, const QuantiseTask<float>& t, std::uint16_t* c) { k.quantise_f32_u16(t, c); }
  static void run(const ScoringKernels& k, const QuantiseTask<double>& t, std::uint16_t* c) {
    k.quantise_f64_u16(t, c);
  }

  // The next rows from `first` on, where they lie one behind the other: hardware does not guess that they are read
  // next.
  template <class T>
  static void look_ahead(const Rows<T>& rows, std::size_t first, std::size_t n, QuantiseTask<T>& task) {
    const auto width = static_cast<std::ptrdiff_t>(rows.n_features);
    const bool in_a_row = rows.feature_stride == 1 && rows.row_stride >= width && rows.row_stride <= 2 * width;
    task.ahead = task.ahead_end = nullptr;
    if (!in_a_row || first >= rows.n_rows) return;
    const std::size_t last = std::min(first + n, rows.n_rows) - 1;
    task.ahead = rows.data + static_cast<std::ptrdiff_t>(first) * rows.row_stride;
    task.ahead_end = rows.data + static_cast<std::ptrdiff_t>(last) * rows.row_stride + width;
  }

  // Whether the nodes, sorted by threshold, send missing values right up to some threshold and left from there on.
  static bool is_monotone(const EnsembleView& model, const std::vector<std::uint32_t>& nodes) {
    double last_right = -std::numeric_limits<double>::infinity(), first_left = std::numeric_limits<double>::infinity();
    bool some_right = false, some_left = false;
    for (const std::uint32_t node : nodes) {
      if (model.missing_left[node] != 0) {
        if (!some_left) first_left = model.threshold[node];
        some_left = true;
      } else {
        last_right = model.threshold[node];
        some_right = true;
      }
    }
    return !some_right || !some_left || last_right < first_left;
  }

  void add_columns(const EnsembleView& model, const std::vector<std::uint32_t>& nodes, std::size_t max_code) {
    std::vector<double> thresholds;
    std::int32_t nan_code = 0;
    const auto flush = [&] {
      if (thresholds.empty()) return;
      add_table(model.feature[nodes[0]], thresholds, nan_code);
      thresholds.clear();
      nan_code = 0;
    };
    for (const std::uint32_t node : nodes) {
      const double threshold = model.threshold[node];
      if (thresholds.empty() || thresholds.back() != threshold) {
        if (thresholds.size() == max_code) flush();
        thresholds.push_back(threshold);
      }
      if (model.missing_left[node] == 0) nan_code = static_cast<std::int32_t>(thresholds.size());
      nodes_->column[node] = static_cast<std::int32_t>(single_tables_.size());
      nodes_->code[node] = static_cast<std::int32_t>(thresholds.size()) - 1;
    }
    flush();
  }

  void add_table(std::int32_t feature, const std::vector<double>& thresholds, std::int32_t nan_code) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> levels{thresholds};
    levels[0].push_back(infinity);  // so a count never points beyond the last 16 of the level below
    for (;;) {
      std::vector<double>& level = levels.back();
      level.resize((level.size() + 15) / 16 * 16, infinity);
      if (level.size() == 16) break;
      std::vector<double> above;
      for (std::size_t i = 15; i < level.size(); i += 16) above.push_back(level[i]);
      levels.push_back(above);
    }
    SearchTable<float> single = {};
    single.feature = feature;
    single.nan_code = nan_code;
    single.n_levels = static_cast<std::int32_t>(levels.size());
    SearchTable<double> wide = {};
    wide.feature = feature;
    wide.nan_code = nan_code;
    wide.n_levels = single.n_levels;
    single_tables_.push_back(single);
    double_tables_.push_back(wide);
    add_steps(thresholds);
    for (std::size_t i = levels.size(); i-- > 0;) {
      for (const double t : levels[i]) {
        doubles_.push_back(t);
        singles_.push_back(round_down(t));
      }
      level_sizes_.push_back(levels[i].size());
    }
  }

  // What a search by halves asks for, in the order of kernels.hpp.
  void add_steps(const std::vector<double>& thresholds) {
    int n_steps = 0;
    while (thresholds.size() >> n_steps != 0) ++n_steps;
    const auto is_rounded = [](double t) { return static_cast<double>(round_down(t)) != t; };
    const bool rounded = std::any_of(thresholds.begin(), thresholds.end(), is_rounded);
    step_tables_.push_back({static_cast<std::int32_t>(thresholds.size()), n_steps, rounded, nullptr, nullptr});
    if (n_steps > StepTable::kMaxSteps) return;
    const std::size_t first = steps_.size();
    steps_.resize(first + step_offset(n_steps), std::numeric_limits<float>::infinity());
    for (int step = 0; step < n_steps; ++step) {
      for (std::size_t path = 0; path < std::size_t{1} << step; ++path) {
        std::size_t range = 0;  // the path read backwards
        for (int bit = 0; bit < step; ++bit) range = 2 * range + (path >> bit & 1);
        const std::size_t middle = ((2 * range + 1) << (n_steps - step - 1)) - 1;
        if (middle < thresholds.size()) steps_[first + step_offset(step) + path] = round_down(thresholds[middle]);
      }
    }
  }

  // Once the numbers stay where they are.
  template <class T>
  void set_levels(const std::vector<T>& numbers, std::vector<SearchTable<T>>& tables) const {
    std::size_t at = 0, size = 0;
    for (SearchTable<T>& table : tables) {
      for (std::int32_t level = 0; level < table.n_levels; ++level) {
        table.level[level] = numbers.data() + at;
        at += level_sizes_[size++];
      }
    }
  }
  void set_steps() {
    std::size_t at = 0;
    for (std::size_t c = 0; c < step_tables_.size(); ++c) {
      StepTable& table = step_tables_[c];
      table.singles = single_tables_[c].level[single_tables_[c].n_levels - 1];
      if (table.n_steps > StepTable::kMaxSteps) continue;
      table.steps = steps_.data() + at;
      at += step_offset(table.n_steps);
    }
  }

  const ScoringKernels& kernel_;
  NodeCodes* nodes_;  // while they are made
  std::vector<float> singles_, steps_;
  std::vector<double> doubles_;
  std::vector<std::size_t> level_sizes_;
  std::vector<SearchTable<float>> single_tables_;
  std::vector<SearchTable<double>> double_tables_;
  std::vector<StepTable> step_tables_;
  std::optional<SetColumns> sets_;
};

// What engines are made from: they keep the quantiser, which they may share, and not the codes of nodes.
struct Quantised {
  NodeCodes nodes;
  std::shared_ptr<const Quantiser> quantiser;

  Quantised(const EnsembleView& model, std::size_t max_code)
      : quantiser(std::make_shared<const Quantiser>(model, max_code, nodes)) {}
};

}  // namespace rankwood
