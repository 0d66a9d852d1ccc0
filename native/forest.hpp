// Trees of a forest, several at a time, and the scores of documents by the trees that did not see them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "coded.hpp"
#include "forest_criteria.hpp"
#include "forest_sample.hpp"
#include "forest_target.hpp"
#include "fulldepth.hpp"
#include "interruption.hpp"
#include "parallel.hpp"
#include "tree_walk.hpp"

namespace rankwood {

// What a tree draws from: one stream for its documents, one for the features at its nodes.
struct TreeStreams {
  std::uint64_t documents, features;
  TreeStreams(std::uint64_t seed, std::uint64_t tree)
      : documents(stream_key(stream_key(seed, tree), 0)), features(stream_key(stream_key(seed, tree), 1)) {}
};

template <class Code>
class Forest {
 public:
  Forest(const CodedView<Code>& data, const std::int64_t* offsets, std::size_t n_queries, const double* label,
         const double* weight, bool entropy)
      : data_(data),
        offsets_(offsets),
        n_queries_(n_queries),
        target_(label, weight, data.n_rows, entropy),
        logs_(entropy) {}

  const CodedView<Code>& data() const { return data_; }
  Sampler sampler() const { return Sampler(offsets_, n_queries_); }

  // Grow the trees number first ... first + n_trees - 1. When interrupted, those before the first unfinished one.
  std::vector<FullDepthTree> grow(std::uint64_t seed, std::uint64_t first, std::size_t n_trees,
                                  const SampleRules& sampling, const FullDepthRules& rules, int n_threads,
                                  Interruption& interruption) {
    std::vector<FullDepthTree> trees(n_trees);
    std::vector<std::uint8_t> finished(n_trees, 0);
    parallel_for(n_trees, n_threads, [&](std::size_t t) {
      if (interruption.look()) return;
      std::unique_ptr<Worker> worker = take_worker();
      finished[t] = worker->grow(TreeStreams(seed, first + t), sampling, rules, interruption, trees[t]);
      give_back(std::move(worker));
    });
    trees.resize(static_cast<std::size_t>(std::find(finished.begin(), finished.end(), 0) - finished.begin()));
    return trees;
  }

 private:
  // What a thread needs to grow trees, kept from one to the next.
  class Worker {
   public:
    Worker(const CodedView<Code>& data, const ForestTarget& target, const LogTable& logs, Sampler sampler)
        : data_(data), target_(target), logs_(logs), sampler_(std::move(sampler)) {}

    bool grow(const TreeStreams& streams, const SampleRules& sampling, const FullDepthRules& rules,
              Interruption& interruption, FullDepthTree& tree) {
      sampler_.draw(sampling, streams.documents, sample_);
      bool packed = weigh();
      if (docs_.empty()) {  // all were of weight 0
        tree.leaf_value.assign(1, target_.mean());
        return true;
      }
      const auto with = [&](auto& grower) {
        if (!grower) grower.emplace(data_, target_, logs_);
        return grower->grow(docs_, rules, streams.features, interruption, tree);
      };
      packed = packed && !rules.needs_running();
      if (target_.entropy()) return packed ? with(packed_entropy_) : with(running_entropy_);
      return packed ? with(packed_variance_) : with(running_variance_);
    }

   private:
    // The documents of the sample that have a weight; whether these and their sums are small enough to be packed.
    bool weigh() {
      docs_.clear();
      bool packed = target_.packed();
      double weight_sum = 0.0, grade_sum = 0.0;
      for (std::size_t i = 0; i < sample_.rows.size(); ++i) {
        const std::uint32_t row = sample_.rows[i], times = sample_.times[i];
        const double weight = times * target_.weight_of(row);
        if (!(weight > 0.0)) continue;
        docs_.push_back({row, times});
        if (!packed) continue;
        packed = weight <= kMaxPackedWeight;
        weight_sum += weight;
        grade_sum += weight * target_.grade_of(row);
      }
      return packed && weight_sum < 2147483648.0 && grade_sum < 2147483648.0;
    }

    template <class Criterion>
    using Grower = std::optional<FullDepthGrower<Code, Criterion>>;

    const CodedView<Code>& data_;
    const ForestTarget& target_;
    const LogTable& logs_;
    Sampler sampler_;
    Sample sample_;
    std::vector<SampledDoc> docs_;
    Grower<PackedVariance> packed_variance_;
    Grower<PackedEntropy> packed_entropy_;
    Grower<RunningVariance> running_variance_;
    Grower<RunningEntropy> running_entropy_;
  };

  std::unique_ptr<Worker> take_worker() {
    {
      const std::lock_guard<std::mutex> guard(lock_);
      if (!idle_.empty()) {
        std::unique_ptr<Worker> worker = std::move(idle_.back());
        idle_.pop_back();
        return worker;
      }
    }
    return std::make_unique<Worker>(data_, target_, logs_, sampler());
  }
  void give_back(std::unique_ptr<Worker> worker) {
    const std::lock_guard<std::mutex> guard(lock_);
    idle_.push_back(std::move(worker));
  }

  const CodedView<Code> data_;
  const std::int64_t* offsets_;
  const std::size_t n_queries_;
  const ForestTarget target_;
  const LogTable logs_;
  std::mutex lock_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

// Some trees of a forest, one after another: tree t has the inner nodes from offsets[t] to offsets[t + 1], and one leaf
// more than these.
struct ForestView {
  const std::int64_t* offsets;
  std::size_t n_trees;
  const std::int32_t *feature, *left, *right;
  const double *threshold, *leaf_value;
  const std::uint8_t* missing_left;

  TreeWalk walk(std::size_t t) const {
    const auto at = static_cast<std::size_t>(offsets[t] - offsets[0]);
    return TreeWalk(feature + at, threshold + at, left + at, right + at, missing_left + at,
                    static_cast<std::size_t>(offsets[t + 1] - offsets[t]));
  }
  const double* leaves(std::size_t t) const {
    return leaf_value + (offsets[t] - offsets[0]) + static_cast<std::int64_t>(t);
  }
};

// Add, for every tree and every document that it was not grown on, the leaf's value to the document's sum. Trees are
// added in their order, whatever the number of threads. Samples are drawn anew: tree t is number first + t of its
// forest.
//   IN X  n_rows x n_features      IN/OUT sums, counts  one per row
inline void add_out_of_bag(const ForestView& trees, const Sampler& sampler, const SampleRules& sampling,
                           std::uint64_t seed, std::uint64_t first, const float* X, std::size_t n_rows,
                           std::size_t n_features, double* sums, std::uint32_t* counts, int n_threads) {
  constexpr std::size_t kBlock = 1024;
  std::vector<std::optional<TreeWalk>> walks(trees.n_trees);
  std::vector<Sample> samples(trees.n_trees);
  parallel_for(trees.n_trees, n_threads, [&](std::size_t t) {
    walks[t].emplace(trees.walk(t));
    Sampler(sampler).draw(sampling, TreeStreams(seed, first + t).documents, samples[t]);
  });
  parallel_for((n_rows + kBlock - 1) / kBlock, n_threads, [&](std::size_t block) {
    const auto begin = static_cast<std::uint32_t>(block * kBlock);
    const auto end = static_cast<std::uint32_t>(std::min(n_rows, (block + 1) * kBlock));
    std::uint32_t out[kBlock];
    for (std::size_t t = 0; t < trees.n_trees; ++t) {
      check_interruption();
      const std::vector<std::uint32_t>& seen = samples[t].rows;
      auto next = std::lower_bound(seen.begin(), seen.end(), begin);
      std::size_t n = 0;
      for (std::uint32_t row = begin; row < end; ++row) {
        const bool in_bag = next != seen.end() && *next == row;
        out[n] = row;
        n += !in_bag;
        next += in_bag;
      }
      const double* value = trees.leaves(t);
      walks[t]->run(X, n_features, out, n, [&](std::size_t k, std::size_t leaf) {
        sums[out[k]] += value[leaf];
        ++counts[out[k]];
      });
    }
  });
}

}  // namespace rankwood
