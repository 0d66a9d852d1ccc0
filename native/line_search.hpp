// A ranking measure along lines: what it becomes when the weight of one tree alone moves by each of several deltas.
//
// Document d of tree t then scores score[d] + delta * output[t][d], in double, in that order. Or the tree is first
// taken out, with the weight it has: score[d] is then the exact sum of all the others, rounded once, and delta the new
// weight. (Less what the tree had added, in plain doubles, a score is not what the others add up to: documents that are
// equal without the tree would be told apart by rounding.) The result is the sum over queries of weight * measure, each
// rounded to a whole number of units, so that it does not matter who adds up which queries; queries that are left out
// do not count. (n)DCG@k with ties in document order has a kernel of its own (line_dcg.inl); every other measure is
// computed by QueryEvaluator at every delta.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "interruption.hpp"
#include "isa/kernels.hpp"
#include "measures.hpp"
#include "parallel.hpp"
#include "per_query.hpp"
#include "ranking.hpp"
#include "tree_outputs.hpp"

namespace rankwood {

// Labels and queries, which stay, and how they are measured. Rows stand query by query.
struct MeasuredQueries {
  MeasureSpec spec;
  std::vector<double> labels;
  std::vector<std::int64_t> offsets;
  std::vector<double> weights;  // of queries; empty: all 1
  Ties ties = Ties::order;
  std::vector<std::uint32_t> docnos;
  std::size_t docno_width = 0;
  bool single = false;  // scores are rounded to float before they are compared

  std::size_t n_queries() const { return offsets.size() - 1; }
  std::size_t first(std::size_t query) const { return static_cast<std::size_t>(offsets[query]); }
  std::size_t size(std::size_t query) const { return first(query + 1) - first(query); }
  double weight(std::size_t query) const { return weights.empty() ? 1.0 : weights[query]; }
  std::size_t max_docs() const {
    std::size_t most = 0;
    for (std::size_t q = 0; q < n_queries(); ++q) most = std::max(most, size(q));
    return most;
  }
};

// Several weights per tree to try: line i is that of tree trees[i], its deltas are deltas[i * n_deltas ...].
struct Lines {
  const std::int64_t* trees;
  std::size_t n;
  const double* deltas;
  std::size_t n_deltas;
  const double* weights;  // of all trees, which are taken out before theirs are tried; null: deltas add to scores
};

class LineMeasure {
 public:
  // Beyond so many counted documents comparing pairs costs more than sorting.
  static constexpr std::size_t kMostTop = 64;

  explicit LineMeasure(MeasuredQueries queries) : data_(std::move(queries)), max_docs_(data_.max_docs()) {
    const MeasureSpec& spec = data_.spec;
    const bool graded = spec.kind == MeasureKind::ndcg || spec.kind == MeasureKind::dcg;
    fast_ = graded && spec.cutoff >= 1 && spec.cutoff <= kMostTop && data_.ties == Ties::order && !data_.single;
    const std::size_t depth = spec.depth(max_docs_);
    discounts_[0] = make_discounts(DiscountKind::log2, depth);
    discounts_[1] = make_discounts(DiscountKind::letor, depth);
    if (fast_) find_ideals();
  }

  std::size_t n_docs() const { return data_.labels.size(); }
  bool fast() const { return fast_; }
  bool has_scores() const { return has_scores_; }
  bool has_rests() const { return rests_.size() == n_docs(); }

  // The scores that lines start from. Each must be finite. Trees can be taken out of them when their rests are given,
  // too: what was left over when the trees were added up.
  void set_scores(const double* scores, const double* rests, int n_threads) {
    has_scores_ = false;  // until all are ranked
    scores_.assign(scores, scores + n_docs());
    rests_.assign(rests, rests == nullptr ? nullptr : rests + n_docs());
    if (fast_) rank_all(n_threads);
    has_scores_ = true;
  }

  // No query adds more than this, one way or the other, whatever the scores.
  double bound() const {
    const MeasureSpec& spec = data_.spec;
    const Gain gain(spec);
    const std::vector<double>& discounts = discounts_[static_cast<int>(spec.discount)];
    double most = 0.0;
    for (std::size_t q = 0; q < data_.n_queries(); ++q) {
      double value = std::isnan(spec.empty) ? 1.0 : std::max(1.0, std::abs(spec.empty));
      if (spec.kind == MeasureKind::dcg) {
        double largest = 0.0;
        for (std::size_t d = data_.first(q); d < data_.first(q + 1); ++d) {
          largest = std::max(largest, std::abs(gain(data_.labels[d])));
        }
        double dcg = 0.0;
        for (std::size_t r = 0; r < spec.depth(data_.size(q)); ++r) dcg += largest * discounts[r];
        value = std::max(value, dcg);
      }
      most = std::max(most, data_.weight(q) * value);
    }
    return most;
  }

  // Units of 1 / scale, a power of two: bound() must be at most kMostUnits of them.
  static constexpr double kMostUnits = 0x1p40;
  void set_scale(double scale) { scale_ = scale; }

  // The sum over queries of the scores that lines start from, in units.
  std::int64_t standing() const {
    std::int64_t sum = 0;
    if (fast_) {
      for (std::size_t q = 0; q < data_.n_queries(); ++q) {
        if (!std::isnan(current_[q])) sum += static_cast<std::int64_t>(in_units(data_.weight(q) * current_[q]));
      }
    } else if (data_.single) {
      sum = Evaluation<float>(*this).sum([&](std::size_t d) { return scores_[d]; });
    } else {
      sum = Evaluation<double>(*this).sum([&](std::size_t d) { return scores_[d]; });
    }
    return sum;
  }

  // out[i * n_deltas + j] = sum over queries at delta j of line i, in units.
  template <class Code>
  void sums(const TreeOutputs<Code>& outputs, const Lines& lines, int n_threads, std::int64_t* out) const {
    if (lines.n == 0 || lines.n_deltas == 0) return;
    if (fast_ && lines.n < static_cast<std::size_t>(std::max(n_threads, 1))) {
      return follow_together(outputs, lines, n_threads, out);
    }
    const std::size_t n_tasks = std::min<std::size_t>(lines.n, 8 * static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(n_tasks, n_threads, [&](std::size_t task) {
      if (fast_) {
        Scratch scratch(max_docs_, lines.n_deltas);
        for (std::size_t i = task; i < lines.n; i += n_tasks) {
          follow(outputs, lines, i, 0, data_.n_queries(), scratch, out + i * lines.n_deltas);
        }
      } else if (data_.single) {
        evaluate<Code, float>(outputs, lines, task, n_tasks, out);
      } else {
        evaluate<Code, double>(outputs, lines, task, n_tasks, out);
      }
    });
  }

 private:
  struct Scratch {
    Scratch(std::size_t max_docs, std::size_t n_deltas)
        : n_lanes((n_deltas + kLineLanes - 1) / kLineLanes * kLineLanes),
          doubles(new double[max_docs * (6 + kLineRoom) + 3 * n_lanes]),
          ranks(new std::int64_t[max_docs * kLineRoom]),
          docs(new std::uint32_t[max_docs]) {
      double* next = doubles.get();
      const auto take = [&](std::size_t n) { return std::exchange(next, next + n); };
      q.score = take(max_docs);
      q.slope = take(max_docs);
      q.gain = take(max_docs);
      q.low = take(max_docs);
      q.high = take(max_docs);
      q.reach = take(max_docs);
      q.at = take(max_docs * kLineRoom);
      q.dcg = take(n_lanes);
      delta = take(n_lanes);
      sum = take(n_lanes);
      q.delta = delta;
      q.n_lanes = n_deltas;
      q.rank = ranks.get();
      q.doc = docs.get();
      q.stop = {is_interrupted, Interruption::current()};
    }
    std::size_t n_lanes;
    std::vector<double> taken;  // by leaf: what the tree had added, and is taken out
    std::unique_ptr<double[]> doubles;
    std::unique_ptr<std::int64_t[]> ranks;
    std::unique_ptr<std::uint32_t[]> docs;
    double *delta, *sum;
    MovingQuery q{};
  };

  const double* discount() const { return discounts_[static_cast<int>(data_.spec.discount)].data(); }

  // What does not depend on scores: gains, ideals, and the value of queries that have only one.
  void find_ideals() {
    const MeasureSpec& spec = data_.spec;
    const Gain gain(spec);
    gains_.resize(n_docs());
    std::transform(data_.labels.begin(), data_.labels.end(), gains_.begin(), gain);
    ideal_.assign(data_.n_queries(), 0.0);
    constant_.assign(data_.n_queries(), 0.0);
    is_constant_.assign(data_.n_queries(), 0);
    std::vector<double> sorted;
    for (std::size_t q = 0; q < data_.n_queries(); ++q) {
      check_interruption();
      sorted.assign(gains_.begin() + data_.offsets[q], gains_.begin() + data_.offsets[q + 1]);
      std::sort(sorted.begin(), sorted.end(), std::greater<double>());
      double ideal = 0.0;
      const std::size_t depth = spec.depth(sorted.size());
      for (std::size_t r = 0; r < depth; ++r) ideal += sorted[r] * discount()[r];
      const bool is_empty = sorted.empty() || !(spec.kind == MeasureKind::ndcg ? ideal > 0.0 : sorted[0] > 0.0);
      ideal_[q] = ideal;
      is_constant_[q] = is_empty || (spec.short_counts_zero && sorted.size() < spec.cutoff);
      constant_[q] = is_empty ? spec.empty : 0.0;
    }
  }

  void rank_all(int n_threads) {
    ranked_doc_.resize(n_docs());
    ranked_score_.resize(n_docs());
    ranked_gain_.resize(n_docs());
    ranked_rest_.resize(rests_.size());
    largest_rest_ = 0.0;
    for (const double rest : rests_) largest_rest_ = std::max(largest_rest_, std::abs(rest));
    current_.resize(data_.n_queries());
    const std::vector<std::size_t> cuts = cut_queries(data_.offsets.data(), data_.n_queries(), 16384);
    parallel_for(cuts.size() - 1, n_threads, [&](std::size_t task) {
      Ranker<double> ranker(longest_query(data_.offsets.data(), cuts[task], cuts[task + 1]));
      for (std::size_t q = cuts[task]; q < cuts[task + 1]; ++q) rank(q, ranker);
    });
  }

  double value(std::size_t query, double dcg) const {
    return data_.spec.kind == MeasureKind::dcg ? dcg : std::min(dcg / ideal_[query], 1.0);
  }

  // The documents of a query by current score, and its current value.
  void rank(std::size_t query, Ranker<double>& ranker) {
    const std::size_t first = data_.first(query), n = data_.size(query);
    if (n == 0) {
      current_[query] = constant_[query];
      return;
    }
    const RankBuffer<double>* top = ranker.top(scores_.data() + first, n, n);
    if (top == nullptr) throw std::invalid_argument("a score is NaN: it cannot be ranked");
    for (std::size_t r = 0; r < n; ++r) {
      ranked_doc_[first + r] = top->doc[r];
      ranked_score_[first + r] = top->score[r];
      ranked_gain_[first + r] = gains_[first + top->doc[r]];
    }
    if (has_rests()) {
      for (std::size_t r = 0; r < n; ++r) ranked_rest_[first + r] = rests_[first + top->doc[r]];
    }
    double dcg = 0.0;
    const std::size_t depth = data_.spec.depth(n);
    for (std::size_t r = 0; r < depth; ++r) dcg += ranked_gain_[first + r] * discount()[r];
    current_[query] = is_constant_[query] ? constant_[query] : value(query, dcg);
  }

  // One line, made ready: its deltas, and the most that they may change a document's score. Where the tree is taken
  // out, the delta that changes nothing is its weight, and by `reach` a score may be rounded otherwise than it was.
  template <class Code>
  struct Line {
    Line(const TreeOutputs<Code>& outputs, const Lines& lines, std::size_t line, Scratch& scratch)
        : tree(static_cast<std::size_t>(lines.trees[line])),
          codes(outputs.of_tree(tree)),
          values(outputs.values + outputs.first_leaf(tree)) {
      MovingQuery& q = scratch.q;
      const double still = lines.weights == nullptr ? 0.0 : lines.weights[tree];
      q.least = q.most = still;
      for (std::size_t j = 0; j < scratch.n_lanes; ++j) {
        scratch.delta[j] = j < lines.n_deltas ? lines.deltas[line * lines.n_deltas + j] : still;
        q.least = std::min(q.least, scratch.delta[j]);
        q.most = std::max(q.most, scratch.delta[j]);
      }
      if (lines.weights != nullptr) {
        scratch.taken.resize(outputs.n_leaves(tree));
        taken = scratch.taken.data();
      }
      for (std::size_t leaf = 0; leaf < outputs.n_leaves(tree); ++leaf) {
        const double now = still * values[leaf];
        if (taken != nullptr) scratch.taken[leaf] = now;
        const double a = q.least * values[leaf], b = q.most * values[leaf];
        fall = std::min({fall, a - now, b - now});
        rise = std::max({rise, a - now, b - now});
        reach = std::max({reach, std::abs(a), std::abs(b)});
      }
    }
    std::size_t tree;
    const Code* codes;
    const double* values;
    const double* taken = nullptr;
    double fall = 0.0, rise = 0.0, reach = 0.0;
  };

  // A value as a whole number of units: adding 1.5 * 2^52 leaves no room for fractions.
  double in_units(double value) const {
    constexpr double no_fractions = 0x1.8p52;
    return (value * scale_ + no_fractions) - no_fractions;
  }

  // Few lines: the queries of each are shared out.
  template <class Code>
  void follow_together(const TreeOutputs<Code>& outputs, const Lines& lines, int n_threads, std::int64_t* out) const {
    const std::vector<std::size_t> cuts = cut_queries(data_.offsets.data(), data_.n_queries(), 2048);
    const std::size_t n_tasks = cuts.size() - 1, n = lines.n_deltas;
    std::vector<std::int64_t> parts(n_tasks * n);
    for (std::size_t i = 0; i < lines.n; ++i) {
      parallel_for(n_tasks, n_threads, [&](std::size_t task) {
        Scratch scratch(max_docs_, n);
        follow(outputs, lines, i, cuts[task], cuts[task + 1], scratch, parts.data() + task * n);
      });
      std::fill_n(out + i * n, n, std::int64_t{0});
      for (std::size_t k = 0; k < parts.size(); ++k) out[i * n + k % n] += parts[k];
    }
  }

  // One line, by the kernel: sums of the queries begin to end. Sums of whole numbers are exact in doubles up to 2^53,
  // so some thousand queries are added up as doubles, several deltas at once.
  template <class Code>
  void follow(const TreeOutputs<Code>& outputs, const Lines& lines, std::size_t i, std::size_t begin, std::size_t end,
              Scratch& scratch, std::int64_t* sums) const {
    constexpr std::size_t block = 4096;
    static_assert(block * kMostUnits <= 0x1p53);
    scratch.q.discount = discount();
    const Line<Code> line(outputs, lines, i, scratch);
    std::fill_n(sums, lines.n_deltas, std::int64_t{0});
    for (; begin < end; begin += block) {
      std::fill_n(scratch.sum, lines.n_deltas, 0.0);
      for (std::size_t q = begin; q < std::min(begin + block, end); ++q) add(q, line, scratch.q, scratch.sum);
      for (std::size_t j = 0; j < lines.n_deltas; ++j) sums[j] += static_cast<std::int64_t>(scratch.sum[j]);
    }
  }

  // Add what one query is worth at every delta, in units.
  template <class Code>
  void add(std::size_t query, const Line<Code>& line, MovingQuery& q, double* sums) const {
    check_interruption();
    const double weight = data_.weight(query);
    if (std::isnan(current_[query])) return;
    if (!is_constant_[query] && move(query, line, q)) {
      for (std::size_t j = 0; j < q.n_lanes; ++j) sums[j] += in_units(weight * value(query, q.dcg[j]));
    } else {
      const double everywhere = in_units(weight * (is_constant_[query] ? constant_[query] : value(query, q.dcg[0])));
      for (std::size_t j = 0; j < q.n_lanes; ++j) sums[j] += everywhere;
    }
  }

  // DCG of one query at every delta, into q.dcg; false when it is the same at all of them: the first.
  template <class Code>
  bool move(std::size_t query, const Line<Code>& line, MovingQuery& q) const {
    const std::size_t first = data_.first(query), n = data_.size(query);
    q.n_top = data_.spec.depth(n);
    const double* score = ranked_score_.data() + first;
    double bound = score[q.n_top - 1] + line.fall;  // n_top documents never fall below it
    if (line.taken != nullptr) {                    // other roundings, on either side
      const double largest = std::max(std::abs(score[0]), std::abs(score[n - 1])) + line.reach;
      bound -= 2.0 * largest_rest_ + 0x1p-48 * largest;
    }
    const std::uint32_t* doc = ranked_doc_.data() + first;
    const double* gain = ranked_gain_.data() + first;
    const Code* codes = line.codes + first;
    std::size_t i = 0;
    for (; i < n && score[i] + line.rise >= bound; ++i) {
      q.score[i] = score[i];
      q.doc[i] = doc[i];
      q.gain[i] = gain[i];
      q.slope[i] = line.values[codes[doc[i]]];
    }
    q.n = i;
    if (line.taken != nullptr) {
      const double* rest = ranked_rest_.data() + first;
      for (i = 0; i < q.n; ++i) q.score[i] = without(line.taken[codes[doc[i]]], score[i], rest[i]);
    }
    return kernels_.line_dcg(q);
  }

  // The evaluator of all measures, with scores of its own.
  template <class Score>
  class Evaluation {
   public:
    explicit Evaluation(const LineMeasure& lines)
        : data_(lines.data_),
          scores_(lines.n_docs()),
          values_(lines.data_.n_queries()),
          ranking_{data_.labels.data(), scores_.data(),      data_.offsets.data(), data_.n_queries(), nullptr,
                   data_.ties,          data_.docnos.data(), data_.docno_width},
          specs_{data_.spec},
          evaluator_(ranking_, specs_, lines.discounts_, lines.max_docs_),
          lines_(lines) {}

    // Sum over queries, in units, when document d scores score(d).
    template <class ScoreOf>
    std::int64_t sum(const ScoreOf& score) {
      for (std::size_t d = 0; d < scores_.size(); ++d) scores_[d] = static_cast<Score>(score(d));
      std::int64_t sum = 0;
      for (std::size_t query = 0; query < values_.size(); ++query) {
        check_interruption();
        evaluator_.evaluate(query, values_.data());
        if (std::isnan(values_[query])) continue;
        sum += static_cast<std::int64_t>(lines_.in_units(data_.weight(query) * values_[query]));
      }
      return sum;
    }

   private:
    const MeasuredQueries& data_;
    std::vector<Score> scores_;
    std::vector<double> values_;
    RankingData<Score> ranking_;
    std::vector<MeasureSpec> specs_;
    QueryEvaluator<Score> evaluator_;
    const LineMeasure& lines_;
  };

  // Every n_tasks-th line, by the evaluator of all measures.
  template <class Code, class Score>
  void evaluate(const TreeOutputs<Code>& outputs, const Lines& lines, std::size_t task, std::size_t n_tasks,
                std::int64_t* out) const {
    Evaluation<Score> evaluation(*this);
    for (std::size_t line = task; line < lines.n; line += n_tasks) {
      const auto tree = static_cast<std::size_t>(lines.trees[line]);
      const double* leaf_values = outputs.values + outputs.first_leaf(tree);
      const Code* codes = outputs.of_tree(tree);
      for (std::size_t j = 0; j < lines.n_deltas; ++j) {
        const double delta = lines.deltas[line * lines.n_deltas + j];
        out[line * lines.n_deltas + j] = evaluation.sum([&](std::size_t d) {
          const double value = leaf_values[codes[d]];
          const double start =
              lines.weights == nullptr ? scores_[d] : without(lines.weights[tree] * value, scores_[d], rests_[d]);
          return start + delta * value;
        });
      }
    }
  }

  MeasuredQueries data_;
  std::size_t max_docs_;
  bool fast_ = false, has_scores_ = false;
  const Kernels& kernels_ = kernels();
  std::vector<double> discounts_[2];
  std::vector<double> gains_, ideal_, constant_;
  std::vector<std::uint8_t> is_constant_;
  std::vector<double> scores_, rests_, ranked_score_, ranked_rest_, ranked_gain_, current_;
  double largest_rest_ = 0.0, scale_ = 0x1p40;
  std::vector<std::uint32_t> ranked_doc_;
};

}  // namespace rankwood
