// What one tree of a forest is grown on: documents, or whole queries, drawn with or without replacement.
//
// A tree draws from a stream of its own, made of the seed and the tree's number, so that it is the same whatever was
// grown before it and on whichever thread. The cost is proportional to the sample.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "random.hpp"

namespace rankwood {

// Random words of one stream, one after another.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t key) : key_(key) {}
  // A number in [0, n), n < 2^32; see random.hpp for the quality.
  std::uint32_t below(std::uint64_t n) {
    return static_cast<std::uint32_t>(((random_word(key_, i_++) >> 32) * n) >> 32);
  }
  // A number in [0, 1), a multiple of 2^-53.
  double fraction() { return static_cast<double>(random_word(key_, i_++) >> 11) * 0x1p-53; }

 private:
  std::uint64_t key_, i_ = 0;
};

struct SampleRules {
  bool whole_queries = false;
  bool replace = true;
  std::size_t n_drawn = 0;     // queries or documents; without replacement, at most as many as there are
  double of_each_query = 0.0;  // above 0: documents of every query instead, so many (a fraction below 1, of its own)

  // Documents drawn from a query of n, which is at least 1.
  std::size_t drawn_from(std::size_t n) const {
    const double wanted = of_each_query < 1.0 ? std::round(of_each_query * static_cast<double>(n)) : of_each_query;
    return static_cast<std::size_t>(std::min(std::max(wanted, 1.0), static_cast<double>(n)));
  }
};

// Rows in ascending order, and how often each was drawn.
struct Sample {
  std::vector<std::uint32_t> rows;
  std::vector<std::uint32_t> times;
};

class Sampler {
 public:
  // Query q has the rows offsets[q] to offsets[q + 1]. Queries without documents are never drawn.
  Sampler(const std::int64_t* offsets, std::size_t n_queries) : offsets_(offsets) {
    n_rows_ = static_cast<std::size_t>(offsets[n_queries]);
    for (std::size_t q = 0; q < n_queries; ++q) {
      if (offsets[q] < offsets[q + 1]) queries_.push_back(static_cast<std::uint32_t>(q));
    }
  }

  std::size_t n_units(const SampleRules& rules) const { return rules.whole_queries ? queries_.size() : n_rows_; }

  void draw(const SampleRules& rules, std::uint64_t key, Sample& sample) {
    RandomStream random(key);
    sample.rows.clear();
    sample.times.clear();
    if (rules.of_each_query > 0.0) {
      for (const std::uint32_t query : queries_) {
        const auto first = static_cast<std::uint32_t>(offsets_[query]);
        const auto size = static_cast<std::size_t>(offsets_[query + 1] - offsets_[query]);
        draw_units(size, rules.drawn_from(size), rules.replace, random);
        for (const auto& [unit, times] : drawn_) {
          sample.rows.push_back(first + unit);
          sample.times.push_back(times);
        }
      }
      return;
    }
    draw_units(n_units(rules), rules.n_drawn, rules.replace, random);
    for (const auto& [unit, times] : drawn_) {
      std::size_t row = unit, end = row + 1;
      if (rules.whole_queries) {
        row = static_cast<std::size_t>(offsets_[queries_[unit]]);
        end = static_cast<std::size_t>(offsets_[queries_[unit] + 1]);
      }
      for (; row < end; ++row) {
        sample.rows.push_back(static_cast<std::uint32_t>(row));
        sample.times.push_back(times);
      }
    }
  }

 private:
  // Fill drawn_: units in ascending order, and how often each was drawn.
  void draw_units(std::size_t n_units, std::size_t n_drawn, bool replace, RandomStream& random) {
    drawn_.clear();
    if (!replace && n_drawn >= n_units) {
      for (std::size_t u = 0; u < n_units; ++u) drawn_.emplace_back(static_cast<std::uint32_t>(u), 1u);
      return;
    }
    numbers_.resize(n_drawn);
    if (replace) {
      for (std::uint32_t& number : numbers_) number = random.below(n_units);
    } else {
      draw_distinct(n_units, random);
    }
    if (n_drawn * 8 < n_units) {
      std::sort(numbers_.begin(), numbers_.end());
      for (const std::uint32_t number : numbers_) {
        if (drawn_.empty() || drawn_.back().first != number) drawn_.emplace_back(number, 0u);
        ++drawn_.back().second;
      }
      return;
    }
    counts_.assign(n_units, 0);
    for (const std::uint32_t number : numbers_) ++counts_[number];
    for (std::size_t u = 0; u < n_units; ++u) {
      if (counts_[u] > 0) drawn_.emplace_back(static_cast<std::uint32_t>(u), counts_[u]);
    }
  }

  // The first steps of a shuffle of 0 ... n_units - 1, which are taken back afterwards: no cost for units not drawn.
  void draw_distinct(std::size_t n_units, RandomStream& random) {
    if (order_.size() != n_units) {
      order_.resize(n_units);
      std::iota(order_.begin(), order_.end(), 0u);
    }
    swapped_.resize(numbers_.size());
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      swapped_[i] = static_cast<std::uint32_t>(i) + random.below(n_units - i);
      std::swap(order_[i], order_[swapped_[i]]);
      numbers_[i] = order_[i];
    }
    for (std::size_t i = numbers_.size(); i-- > 0;) std::swap(order_[i], order_[swapped_[i]]);
  }

  const std::int64_t* offsets_;
  std::size_t n_rows_;
  std::vector<std::uint32_t> queries_;  // those with documents
  std::vector<std::pair<std::uint32_t, std::uint32_t>> drawn_;
  std::vector<std::uint32_t> numbers_, counts_, order_, swapped_;
};

}  // namespace rankwood
