// A model prepared for batches of every size, and all the memory that scoring needs: for those who serve rankers.
//
//   Scorer scorer(model, tree_weights, base, nullptr);   once; never changes, so any number of threads may share it
//   Scorer::Workspace workspace(scorer, 0);              once per thread
//   scorer.score(rows, scores, false, workspace);        allocates nothing, takes no lock, cannot throw
//
// Small batches go through engine traverse, larger ones through bitslice (choice.hpp). The bits do not depend on that.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ensemble.hpp"
#include "rows.hpp"
#include "score/bitslice.hpp"
#include "score/choice.hpp"
#include "score/early_exit.hpp"
#include "score/pause.hpp"
#include "score/quantise.hpp"
#include "score/traverse.hpp"

namespace rankwood {

class Scorer {
 public:
  // `model` must have passed the checks of ensemble.hpp, and `rule`, which may be null, those that its own file states.
  // Everything needed is copied.
  Scorer(const EnsembleView& model, const double* tree_weights, double base, const ExitRule* rule) {
    std::size_t most_leaves = 1;
    for (std::size_t tree = 0; tree < model.n_trees; ++tree) {
      most_leaves = std::max(most_leaves, model.nodes_of(tree) + 1);
    }
    bitslice_from_ = smallest_bitslice_batch(model.n_trees, model.n_leaves, most_leaves);
    const Quantised bytes(model, 255);
    if (bytes.quantiser->n_columns() > Bitslice::kMaxColumns) bitslice_from_ = kNoBatch;
    traverse_ = std::make_unique<const Traverse>(model, bytes, tree_weights, base);
    if (bitslice_from_ != kNoBatch) bitslice_ = std::make_unique<const Bitslice>(model, bytes, tree_weights, base);
    if (rule != nullptr) rule_ = *rule;
  }
  Scorer(const Scorer&) = delete;  // workspaces point to it
  Scorer& operator=(const Scorer&) = delete;

  std::size_t n_features() const { return traverse_->n_features(); }
  std::size_t n_trees() const { return traverse_->n_trees(); }
  std::size_t n_bytes() const {
    if (bitslice_ == nullptr) return traverse_->n_bytes();
    const bool is_shared = &bitslice_->quantiser() == &traverse_->quantiser();
    return traverse_->n_bytes() + bitslice_->n_bytes() - (is_shared ? traverse_->quantiser().n_bytes() : 0);
  }
  bool is_bitsliced(std::size_t n_rows) const { return n_rows >= bitslice_from_; }

  // What one thread works in. `max_query_rows` is the largest number of documents of a query that is scored with early
  // exit; 0 where that is not used. The scorer must live longer.
  class Workspace {
   public:
    Workspace(const Scorer& scorer, std::size_t max_query_rows)
        : traverse_(*scorer.traverse_, scorer.bitslice_from_ - 1), max_query_rows_(max_query_rows) {
      if (scorer.bitslice_ != nullptr) bitslice_.emplace(*scorer.bitslice_, kNoBatch);
      if (scorer.rule_ && max_query_rows != 0) exit_.emplace(scorer, std::max(max_query_rows, kExitRows));
    }
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    std::size_t max_query_rows() const { return max_query_rows_; }

   private:
    friend class Scorer;
    static constexpr std::size_t kExitRows = 512;  // small queries are scored so many documents at a time

    struct Exit {
      Exit(const Scorer& scorer, std::size_t n_rows)
          : max_rows(n_rows),
            batch(*scorer.rule_, n_rows),
            traverse(*scorer.traverse_, std::min(n_rows, scorer.bitslice_from_ - 1)) {
        if (scorer.bitslice_ != nullptr) bitslice.emplace(*scorer.bitslice_, n_rows);
      }

      std::size_t max_rows;
      ExitBatch batch;
      Traverse::Batch traverse;
      std::optional<Bitslice::Batch> bitslice;
    };

    Traverse::Scratch traverse_;
    std::optional<Bitslice::Scratch> bitslice_;
    std::optional<Exit> exit_;
    std::size_t max_query_rows_;
  };

  // Scores of rows that go through all trees. `single`: sums in float (sums.hpp).
  template <class T>
  void score(const Rows<T>& rows, double* scores, bool single, Workspace& workspace) const noexcept {
    const std::size_t n = is_bitsliced(rows.n_rows) ? rows.n_rows - rows_left(rows.n_rows) : 0;
    if (n > 0) bitslice_->score(part_of(rows, 0, n), scores, single, *workspace.bitslice_);
    if (n < rows.n_rows) {
      traverse_->score(part_of(rows, n, rows.n_rows - n), scores + n, single, workspace.traverse_);
    }
  }

  // The same with early exit, if the model has it. The queries have every row once, in order, and none has more than
  // workspace.max_query_rows().   OUT trees  number of trees that each row went through; may be null
  template <class T>
  void score(const Rows<T>& rows, const QueryRows& queries, double* scores, std::int32_t* trees, bool single,
             Workspace& workspace) const noexcept {
    if (!rule_ || !workspace.exit_) {
      score(rows, scores, single, workspace);
      if (trees != nullptr) std::fill_n(trees, rows.n_rows, static_cast<std::int32_t>(n_trees()));
      return;
    }
    Workspace::Exit& exit = *workspace.exit_;
    for (std::size_t first = 0, end; first < queries.n_queries; first = end) {
      end = ExitBatch::end_of(queries, first, exit.max_rows);
      exit.batch.start(queries, first, end, traverse_->base());
      const std::size_t n = exit.batch.live.size();
      if (n == 0) continue;  // queries without documents
      const Rows<T> part = part_of(rows, queries.begin(first), n);
      if (is_bitsliced(n)) {
        take_through(*rule_, n_trees(), part, single, exit.batch, *exit.bitslice, GoOn{});
      } else {
        take_through(*rule_, n_trees(), part, single, exit.batch, exit.traverse, GoOn{});
      }
      exit.batch.finish(queries, n_trees(), scores, trees);
    }
  }

 private:
  // Rows behind the last whole vector that are too few to be worth another one.
  std::size_t rows_left(std::size_t n_rows) const {
    const std::size_t n = n_rows % bitslice_->vector_rows();
    return n <= bitslice_from_ / 3 ? n : 0;
  }

  std::size_t bitslice_from_;  // rows
  std::unique_ptr<const Traverse> traverse_;
  std::unique_ptr<const Bitslice> bitslice_;  // null where no batch is large enough
  std::optional<ExitRule> rule_;
};

}  // namespace rankwood
