// Scoring with early exit: documents far behind the best of their query stop before the last tree.
//
//   trees      0 ......... 32 ........ 64 .................. 200    checkpoints 32 and 64
//   documents  all      ->  those left, moved together  ->  ...     a batch of whole queries at a time
//
// The rule, for the documents of one query. All start. At checkpoint i a document that goes on so far has the partial
// score p of the first checkpoint[i] trees, base included, summed as in sums.hpp. With more than `top` such documents
//
//   threshold = (the top-th best of their partial scores) - margin[i]
//
// and those with p < threshold stop; so at least `top` go on. Who goes on beyond the last checkpoint has the score that
// there would be without exit, bit for bit. Whoever stopped stands below all who went on: from the last checkpoint to
// the first, m is the lowest final score of those who went on beyond it, and the final score of one that stopped is
//
//   p                          if m >= threshold     (p < threshold <= m)
//   p + (m - threshold)        else; and the number next below m where rounding makes that m or more.
//
// All of it is monotone in p: ties stay ties, and nobody who stopped at the same checkpoint is overtaken.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "ensemble.hpp"
#include "interruption.hpp"
#include "parallel.hpp"
#include "rows.hpp"
#include "score/bitslice.hpp"
#include "score/pause.hpp"
#include "score/traverse.hpp"
#include "sums.hpp"

namespace rankwood {

struct ExitRule {
  std::vector<std::size_t> checkpoints;  // numbers of trees, rising: multiples of kSumGroup, below that of all trees
  std::vector<double> margins;           // one per checkpoint, finite and none negative
  std::size_t top;                       // at least 1
};

// The rule of some checkpoints, checked: throws std::invalid_argument unless a model of n_trees can have it.
// Checkpoints at which nobody stops, with margin +infinity, are left out.
inline ExitRule make_exit_rule(const std::int64_t* checkpoints, const double* margins, std::size_t n, std::int64_t top,
                               std::size_t n_trees) {
  const auto require = [](bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
  };
  require(top >= 1, "top must be at least 1");
  ExitRule rule{{}, {}, static_cast<std::size_t>(top)};
  for (std::size_t c = 0; c < n; ++c) {
    const std::int64_t at = checkpoints[c], before = c == 0 ? 0 : checkpoints[c - 1];
    require(at > before && static_cast<std::size_t>(at) < n_trees,
            "checkpoints must rise, and come before the last tree");
    require(static_cast<std::size_t>(at) % kSumGroup == 0, "checkpoints must be multiples of 16");
    require(margins[c] >= 0.0, "margins must not be negative");
    if (std::isinf(margins[c])) continue;
    rule.checkpoints.push_back(static_cast<std::size_t>(at));
    rule.margins.push_back(margins[c]);
  }
  return rule;
}

// The rows of query q are order[offsets[q]:offsets[q + 1]], or offsets[q] to offsets[q + 1] when order is null.
struct QueryRows {
  const std::int64_t* offsets;
  std::size_t n_queries;
  const std::int64_t* order;

  std::size_t begin(std::size_t query) const { return static_cast<std::size_t>(offsets[query]); }
  std::size_t row(std::size_t at) const { return order == nullptr ? at : static_cast<std::size_t>(order[at]); }
};

// The final score of a document that stopped with partial score p below `threshold`; `lowest` is m above.
inline double score_below(double p, double threshold, double lowest) {
  const double lowered = lowest < threshold ? p + (lowest - threshold) : p;
  return lowered < lowest ? lowered : std::nextafter(lowest, -std::numeric_limits<double>::infinity());
}

// Rows that lie one behind the other.
template <class T>
Rows<T> part_of(Rows<T> rows, std::size_t first, std::size_t n_rows) {
  rows.data += static_cast<std::ptrdiff_t>(first) * rows.row_stride;
  rows.n_rows = n_rows;
  return rows;
}

// Some rows side by side in `gathered`: row i is row_of(i).
template <class T, class RowOf>
Rows<T> gather(const Rows<T>& rows, std::size_t n_rows, const RowOf& row_of, std::vector<T>& gathered) {
  gathered.resize(n_rows * rows.n_features);
  T* out = gathered.data();
  for (std::size_t i = 0; i < n_rows; ++i) {
    const T* row = rows.data + static_cast<std::ptrdiff_t>(row_of(i)) * rows.row_stride;
    if (rows.feature_stride == 1) {
      out = std::copy_n(row, rows.n_features, out);
      continue;
    }
    for (std::size_t f = 0; f < rows.n_features; ++f)
      *out++ = row[static_cast<std::ptrdiff_t>(f) * rows.feature_stride];
  }
  return {gathered.data(), n_rows, rows.n_features, static_cast<std::ptrdiff_t>(rows.n_features), 1};
}

// The rule for a batch of queries: which documents go on, and in the end the scores of all.
class ExitBatch {
 public:
  static constexpr std::size_t kMaxQueries = 512;  // of a batch

  // For batches of up to max_rows documents: all memory is taken here.
  ExitBatch(const ExitRule& rule, std::size_t max_rows) : rule_(rule), stopped_(max_rows + 1) {
    live.reserve(max_rows);
    sums.reserve(max_rows);
    kept.reserve(max_rows);
    live_end_.reserve(kMaxQueries);
    stops_.reserve(rule.checkpoints.size() * kMaxQueries);
    best_.reserve(max_rows + 1);
  }

  // The query after the last one of a batch that starts with query `first` and has at most `max_rows` documents, or
  // one query.
  static std::size_t end_of(const QueryRows& queries, std::size_t first, std::size_t max_rows) noexcept {
    const std::size_t last = std::min(queries.n_queries, first + kMaxQueries);
    std::size_t end = first + 1;
    while (end < last && queries.begin(end + 1) - queries.begin(first) <= max_rows) ++end;
    return end;
  }

  // Begin with other queries, whose documents have the score `base`.
  void start(const QueryRows& queries, std::size_t first_query, std::size_t end_query, double base) noexcept {
    const std::size_t first = queries.begin(first_query), n = queries.begin(end_query) - first;
    n_queries_ = end_query - first_query;
    live.resize(n);
    std::iota(live.begin(), live.end(), first);
    sums.assign(n, base);
    live_end_.clear();
    for (std::size_t q = first_query; q < end_query; ++q) live_end_.push_back(queries.begin(q + 1) - first);
    n_stopped_ = 0;
    stops_.clear();
  }

  std::vector<std::size_t> live;    // places (of QueryRows::row) of the documents that go on, query by query
  std::vector<double> sums;         // their partial scores
  std::vector<std::uint32_t> kept;  // which of those before the last checkpoint they are

  // Take those out that stop at a checkpoint.
  void stop(std::size_t checkpoint) noexcept {
    std::size_t begin = 0, n_kept = 0;
    kept.resize(live.size());
    for (std::size_t q = 0; q < n_queries_; ++q) {
      const std::size_t end = live_end_[q];
      const double threshold = threshold_of(sums.data() + begin, end - begin, rule_.margins[checkpoint]);
      for (std::size_t i = begin; i < end; ++i) {
        // Written behind both those who go on and those who stop: a branch here would be a coin toss.
        const double sum = sums[i];
        const std::size_t at = live[i];
        live[n_kept] = at;
        sums[n_kept] = sum;
        kept[n_kept] = static_cast<std::uint32_t>(i);
        stopped_[n_stopped_] = {sum, at};
        const bool stops = sum < threshold;
        n_kept += stops ? 0 : 1;
        n_stopped_ += stops ? 1 : 0;
      }
      begin = end;
      live_end_[q] = n_kept;
      stops_.push_back({threshold, n_stopped_});
    }
    live.resize(n_kept);
    sums.resize(n_kept);
    kept.resize(n_kept);
  }

  // The scores of all documents once those that are left have gone through all trees, and the trees of each, which may
  // be null.
  void finish(const QueryRows& queries, std::size_t n_trees, double* scores, std::int32_t* trees) const noexcept {
    for (std::size_t q = 0, begin = 0; q < n_queries_; begin = live_end_[q++]) {
      double lowest = std::numeric_limits<double>::infinity();
      for (std::size_t i = begin; i < live_end_[q]; ++i) {
        const std::size_t row = queries.row(live[i]);
        scores[row] = sums[i];
        if (trees != nullptr) trees[row] = static_cast<std::int32_t>(n_trees);
        lowest = std::min(lowest, sums[i]);
      }
      for (std::size_t c = rule_.checkpoints.size(); c-- > 0;) {
        const std::size_t number = c * n_queries_ + q;
        const double lowest_above = lowest;
        for (std::size_t i = number == 0 ? 0 : stops_[number - 1].end; i < stops_[number].end; ++i) {
          const std::size_t row = queries.row(stopped_[i].at);
          scores[row] = score_below(stopped_[i].sum, stops_[number].threshold, lowest_above);
          if (trees != nullptr) trees[row] = static_cast<std::int32_t>(rule_.checkpoints[c]);
          lowest = std::min(lowest, scores[row]);
        }
      }
    }
  }

 private:
  // Below which documents of a query stop; -infinity when there are too few of them.
  double threshold_of(const double* partial, std::size_t n, double margin) noexcept {
    const std::size_t top = rule_.top;
    if (n <= top) return -std::numeric_limits<double>::infinity();
    // The best of each of `top` parts are `top` documents: none below the worst of these is needed to find the top-th.
    best_.assign(partial, partial + top);
    for (std::size_t first = top; first + top <= n; first += top) {
      for (std::size_t part = 0; part < top; ++part) best_[part] = std::max(best_[part], partial[first + part]);
    }
    const double bound = *std::min_element(best_.begin(), best_.end());
    best_.resize(n + 1);
    std::size_t n_best = 0;
    for (std::size_t i = 0; i < n; ++i) {
      best_[n_best] = partial[i];
      n_best += partial[i] >= bound ? 1 : 0;
    }
    const auto begin = best_.begin(), last = begin + static_cast<std::ptrdiff_t>(top - 1);
    std::nth_element(begin, last, begin + static_cast<std::ptrdiff_t>(n_best), std::greater<>());
    return *last - margin;
  }

  struct Stopped {
    double sum;      // partial score
    std::size_t at;  // place
  };
  struct Stop {  // what happened to the documents of one query at one checkpoint
    double threshold;
    std::size_t end;  // behind the last of those that stopped, in `stopped_`
  };

  const ExitRule& rule_;
  std::size_t n_queries_ = 0;
  std::vector<std::size_t> live_end_;  // of each query, in `live`
  std::vector<Stopped> stopped_;       // with room for one more
  std::size_t n_stopped_ = 0;
  std::vector<Stop> stops_;  // checkpoints x queries
  std::vector<double> best_;
};

// Take the documents of a batch, whose features are `rows`, through the trees; `left` is a batch of an engine.
template <class Left, class T, class Pause>
void take_through(const ExitRule& rule, std::size_t n_trees, const Rows<T>& rows, bool single, ExitBatch& batch,
                  Left& left, Pause pause) noexcept(kNeverStops<Pause>) {
  left.start(rows);
  std::size_t first = 0;
  for (std::size_t c = 0; c < rule.checkpoints.size(); ++c) {
    left.add(first, rule.checkpoints[c], batch.sums.data(), single, pause);
    batch.stop(c);
    left.keep(batch.kept);
    first = rule.checkpoints[c];
  }
  left.add(first, n_trees, batch.sums.data(), single, pause);
}

// An engine of the plain kind, as early exit wants it: the trees between two checkpoints are an engine of their own.
// The batches of Bitslice and Traverse, which need none of that, show what a batch does.
template <class Engine>
class ExitSegments {
 public:
  // `ends`: the checkpoints, and the number of all trees.
  ExitSegments(const EnsembleView& model, const double* tree_weights, double base, const std::vector<std::size_t>& ends)
      : ends_(ends), n_features_(static_cast<std::size_t>(model.n_features)), base_(base) {
    std::size_t first = 0;
    for (const std::size_t end : ends) {
      segments_.push_back(make_segment(model, tree_weights, first, end));
      first = end;
    }
  }
  ExitSegments(const ExitSegments&) = delete;
  ExitSegments& operator=(const ExitSegments&) = delete;

  std::size_t n_features() const { return n_features_; }
  std::size_t n_trees() const { return ends_.back(); }
  double base() const { return base_; }
  std::size_t n_bytes() const {
    std::size_t n_bytes = 0;
    for (const auto& segment : segments_) n_bytes += segment->n_bytes();
    return n_bytes;
  }

  template <class T>
  class Batch {
   public:
    Batch(const ExitSegments& engine, std::size_t) : engine_(engine) {}

    void start(const Rows<T>& rows) { rows_ = rows; }

    template <class Pause>
    void add(std::size_t, std::size_t end_tree, double* scores, bool single, Pause) {
      const auto& ends = engine_.ends_;
      const auto segment = static_cast<std::size_t>(std::find(ends.begin(), ends.end(), end_tree) - ends.begin());
      engine_.segments_[segment]->add(rows_, scores, single, 1);
    }

    void keep(const std::vector<std::uint32_t>& kept) {
      if (kept.size() == rows_.n_rows) return;
      std::vector<T> gathered;
      rows_ = gather(rows_, kept.size(), [&](std::size_t i) { return kept[i]; }, gathered);
      gathered_.swap(gathered);
    }

   private:
    const ExitSegments& engine_;
    Rows<T> rows_ = {};
    std::vector<T> gathered_;
  };

 private:
  static std::unique_ptr<const Engine> make_segment(const EnsembleView& model, const double* tree_weights,
                                                    std::size_t first, std::size_t end) {
    const std::size_t node = model.first_node(first), leaf = model.first_leaf(first);
    std::vector<std::int64_t> offsets;
    for (std::size_t t = first; t <= end; ++t) offsets.push_back(model.node_offsets[t] - model.node_offsets[first]);
    EnsembleView part = model;
    part.feature += node;
    part.threshold += node;
    part.left += node;
    part.right += node;
    part.missing_left += node;
    if (part.set_offsets != nullptr) part.set_offsets += node;
    part.leaf_value += leaf;
    part.node_offsets = offsets.data();
    part.n_trees = end - first;
    part.n_nodes = static_cast<std::size_t>(offsets.back());
    part.n_leaves = part.n_nodes + part.n_trees;
    return std::make_unique<const Engine>(part, tree_weights + first, 0.0);
  }

  std::vector<std::unique_ptr<const Engine>> segments_;
  std::vector<std::size_t> ends_;
  std::size_t n_features_;
  double base_;
};

// The batch of an engine, whatever the type of the rows.
template <class Engine, class T>
struct BatchOf {
  using type = typename Engine::template Batch<T>;
};
template <class T>
struct BatchOf<Bitslice, T> {
  using type = Bitslice::Batch;
};
template <class T>
struct BatchOf<Traverse, T> {
  using type = Traverse::Batch;
};

// OUT scores, trees  one per row: its score, and the number of trees that it went through
template <class Engine, class T>
class EarlyExit {
 public:
  EarlyExit(const Engine& engine, const ExitRule& rule, const Rows<T>& rows, const QueryRows& queries, bool single)
      : engine_(engine), rule_(rule), rows_(rows), queries_(queries), single_(single) {}

  void score(double* scores, std::int32_t* trees, int n_threads) const {
    const std::vector<std::size_t> ends = batches(n_threads);
    // A few runs of batches per thread: each run has memory of its own, and no thread waits long for the last one.
    const std::size_t n_runs = n_threads > 1 ? std::min(ends.size(), static_cast<std::size_t>(n_threads) * 4) : 1;
    parallel_for(ends.empty() ? 0 : n_runs, n_threads, [&](std::size_t run) {
      const std::size_t begin = ends.size() * run / n_runs, end = ends.size() * (run + 1) / n_runs;
      const auto first_query = [&](std::size_t b) { return b == 0 ? 0 : ends[b - 1]; };
      std::size_t most = 0;
      for (std::size_t b = begin; b < end; ++b) {
        most = std::max(most, queries_.begin(ends[b]) - queries_.begin(first_query(b)));
      }
      Left left(engine_, most);
      ExitBatch batch(rule_, most);
      std::vector<T> gathered;
      for (std::size_t b = begin; b < end; ++b) {
        check_interruption();
        batch.start(queries_, first_query(b), ends[b], engine_.base());
        if (batch.live.empty()) continue;  // queries without documents
        take_through(rule_, engine_.n_trees(), rows_of(batch, gathered), single_, batch, left, MayStop{});
        batch.finish(queries_, engine_.n_trees(), scores, trees);
      }
    });
  }

 private:
  using Left = typename BatchOf<Engine, T>::type;  // the documents of a batch that are left
  static constexpr std::size_t kBatchRows = 2048, kMinBatchRows = 512;

  // The query after the last one of each batch.
  std::vector<std::size_t> batches(int n_threads) const {
    const std::size_t share = rows_.n_rows / (n_threads > 1 ? static_cast<std::size_t>(n_threads) * 4 : 1) + 1;
    const std::size_t most = std::clamp(share, kMinBatchRows, kBatchRows);
    std::vector<std::size_t> ends;
    for (std::size_t first = 0; first < queries_.n_queries; first = ends.back()) {
      ends.push_back(ExitBatch::end_of(queries_, first, most));
    }
    return ends;
  }

  Rows<T> rows_of(const ExitBatch& batch, std::vector<T>& gathered) const {
    const std::size_t first_place = batch.live.front();
    if (queries_.order == nullptr) return part_of(rows_, first_place, batch.live.size());
    return gather(rows_, batch.live.size(), [&](std::size_t i) { return queries_.row(first_place + i); }, gathered);
  }

  const Engine& engine_;
  const ExitRule& rule_;
  const Rows<T>& rows_;
  const QueryRows& queries_;
  bool single_;
};

}  // namespace rankwood
