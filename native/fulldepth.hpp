// Grows one tree of a forest as far as it goes, on a sample of the documents: at every node some features are drawn,
// and the best split of any of them is taken.
//
// The codes of the sample are copied into a tile, one column per feature, so that documents of a node lie close
// together; a subtree of few documents gets a tile of its own, which stays in the cache. Documents of a node stand
// together, in ascending order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "coded.hpp"
#include "forest_criteria.hpp"
#include "forest_sample.hpp"
#include "interruption.hpp"
#include "split_search.hpp"

namespace rankwood {

struct FullDepthRules {
  std::size_t n_tried = 1;  // features drawn at each node; more, until one has different values in the node
  double min_docs = 1.0;    // of a leaf; below 1, a fraction of the documents of the sample
  std::size_t max_depth = std::numeric_limits<std::size_t>::max();
  std::size_t max_leaves = 0;  // 0: no limit, depth first; else the split of largest gain comes next
  double min_gain = 0.0;       // a split must lower the impurity by more than this
  bool until_gain = false;     // draw more features as long as no split of those drawn gains
  bool random_cuts = false;    // one threshold per feature drawn, anywhere between the values of the node
  bool in_three = false;       // missing values have a side of their own; not with max_leaves

  // Splits of either kind are looked for by adding documents up one by one.
  bool needs_running() const { return random_cuts || in_three; }
};

// A finished tree: inner nodes in preorder, leaves from left to right; child c >= 0 is inner node c, c < 0 is leaf ~c.
struct FullDepthTree {
  std::vector<std::int32_t> feature, left, right;
  std::vector<double> threshold, gain, leaf_value;
  std::vector<std::uint8_t> missing_left;
  std::vector<std::int64_t> count;
};

template <class Code, class Criterion>
class FullDepthGrower {
 public:
  FullDepthGrower(const CodedView<Code>& data, const ForestTarget& target, const LogTable& logs)
      : data_(data), target_(target), criterion_(target, logs), n_words_((data.n_features + 63) / 64) {}

  // Grow a tree on some documents, at least one, drawing features from the stream `key`. Gives up, and returns
  // false, when it is interrupted.
  bool grow(const std::vector<SampledDoc>& docs, const FullDepthRules& rules, std::uint64_t key,
            Interruption& interruption, FullDepthTree& tree) {
    start(docs, rules, key);
    const bool finished = rules.max_leaves > 0 ? grow_best_first(interruption) : grow_depth_first(interruption);
    if (finished) write(tree);
    return finished;
  }

 private:
  struct Node {
    std::size_t begin, end;  // its documents in places_ and payloads_
    std::size_t depth;
    std::size_t constants;  // slot of the marks of features known to be constant here
    double value = 0.0, gain = 0.0;
    FoundSplit split{};
    std::uint32_t last = 0, next = 0;  // largest code on the left, smallest on the right
    std::int32_t first_child = -1;     // the other one follows it
    bool in_part = false;
  };

  void start(const std::vector<SampledDoc>& docs, const FullDepthRules& rules, std::uint64_t key) {
    rules_ = rules;
    random_ = RandomStream(key);
    const std::size_t n = docs.size();
    docs_ = &docs;
    const double min_docs = rules.min_docs < 1.0 ? std::ceil(rules.min_docs * static_cast<double>(n)) : rules.min_docs;
    min_docs_ = static_cast<std::uint32_t>(std::min(std::max(min_docs, 1.0), 4294967295.0));
    places_.resize(n);
    payloads_.resize(n);
    moved_places_.resize(n);
    moved_payloads_.resize(n);
    criterion_.start(n);
    if constexpr (Criterion::kRunning) criterion_.split_in_three(rules.in_three);
    for (std::size_t i = 0; i < n; ++i) {
      places_[i] = static_cast<std::uint32_t>(i);
      payloads_[i] = criterion_.payload(docs[i]);
    }
    copy_columns(n);
    const std::size_t doc_bytes = sizeof(Code) * std::max<std::size_t>(data_.n_features, 1);
    part_docs_ = n * doc_bytes > kLargeTile && rules.max_leaves == 0 ? kPartTile / doc_bytes : 0;
    order_.resize(data_.n_features);
    std::iota(order_.begin(), order_.end(), 0u);
    constants_.assign(n_words_, 0);
    free_slots_.clear();
    nodes_.clear();
    nodes_.push_back({0, n, 0, 0});
  }

  bool grow_depth_first(Interruption& interruption) {
    open_.assign(1, 0);
    while (!open_.empty()) {
      if (is_interrupted(interruption, nodes_[open_.back()])) return false;
      const std::size_t number = open_.back();
      open_.pop_back();
      use_tile(nodes_[number]);
      if (!examine(number, true)) continue;
      std::size_t left = nodes_[number].split.in_three ? set_missing_apart(number) : number;
      if (left != number) open_.push_back(left + 1);
      left = divide(left);
      open_.push_back(left + 1);
      open_.push_back(left);
    }
    return true;
  }

  bool grow_best_first(Interruption& interruption) {
    using Entry = std::pair<double, std::int64_t>;  // of equal gains, the older node comes first
    std::priority_queue<Entry> queue;
    use_tile(nodes_[0]);
    const auto consider = [&](std::size_t number, bool may_split) {
      if (examine(number, may_split)) queue.emplace(nodes_[number].gain, -static_cast<std::int64_t>(number));
    };
    consider(0, rules_.max_leaves > 1);
    for (std::size_t n_leaves = 2; !queue.empty() && n_leaves <= rules_.max_leaves; ++n_leaves) {
      const auto number = static_cast<std::size_t>(-queue.top().second);
      if (is_interrupted(interruption, nodes_[number])) return false;
      const std::size_t left = divide(number);
      queue.pop();
      consider(left, n_leaves < rules_.max_leaves);
      consider(left + 1, n_leaves < rules_.max_leaves);
    }
    return true;
  }

  bool is_interrupted(Interruption& interruption, const Node& node) {
    docs_until_check_ -= static_cast<std::int64_t>(node.end - node.begin) + 16;
    if (docs_until_check_ > 0) return false;
    docs_until_check_ = 20'000;
    return interruption.look();
  }

  // Find the value of a node and, if it may have one, its best split. False: it is a leaf.
  bool examine(std::size_t number, bool may_split) {
    Node& node = nodes_[number];
    const Docs docs = docs_of(node);
    criterion_.enter(docs);
    node.value = criterion_.value();
    may_split =
        may_split && !criterion_.pure() && node.depth < rules_.max_depth && docs.n >= 2 * std::size_t{min_docs_};
    if (may_split) {
      FoundSplit best{criterion_.floor()};
      std::uint64_t* constant = constants_.data() + node.constants * n_words_;
      criterion_.search(docs, min_docs_, [&](const auto& search) { try_features(search, constant, best); });
      if (best.feature >= 0) {
        node.gain = criterion_.gain(best.proxy);
        may_split = node.gain > rules_.min_gain * criterion_.weight() &&
                    criterion_.gains(best, column(static_cast<std::size_t>(best.feature)), docs);
        node.split = best;
      } else {
        may_split = false;
      }
    }
    if (!may_split) {
      node.split.feature = -1;
      free_slots_.push_back(node.constants);
    }
    return may_split;
  }

  // Draw features without replacement: n_tried of them, and more while all had but one value here, or none gains.
  template <class Search>
  void try_features(const Search& search, std::uint64_t* constant, FoundSplit& best) {
    bool tried = false;
    const std::size_t n_features = data_.n_features;
    const double ceiling = criterion_.ceiling();  // both sides pure: no other split can be better
    for (std::size_t left = n_features; left > 0 && (n_features - left < rules_.n_tried || !tried); --left) {
      std::swap(order_[random_.below(left)], order_[left - 1]);
      const std::uint32_t f = order_[left - 1];
      const std::uint64_t bit = std::uint64_t{1} << (f % 64);
      if (constant[f / 64] & bit) continue;
      if (try_feature(search, f, best)) {
        if (best.proxy >= ceiling) return;
        tried = !rules_.until_gain || best.feature >= 0;
      } else {
        constant[f / 64] |= bit;
      }
    }
  }

  template <class Search>
  bool try_feature(const Search& search, std::uint32_t f, FoundSplit& best) {
    if constexpr (Criterion::kRunning) {
      if (rules_.random_cuts) return try_random_cut(search, f, best);
    }
    return search(column(f), best);
  }

  // Try one threshold, drawn evenly from between the smallest and the largest value that the node has.
  template <class Search>
  bool try_random_cut(const Search& search, std::uint32_t f, FoundSplit& best) {
    const Column<Code> codes = column(f);
    std::uint32_t first = codes.missing, last = 0;
    FoundSplit cut{kNoSplit, codes.feature};
    for (std::size_t i = 0; i < search.docs.n; ++i) {
      const std::uint32_t code = codes[search.docs.place[i]];
      if (codes.may_miss && code == codes.missing) {
        cut.has_missing = true;
        continue;
      }
      first = std::min(first, code);
      last = std::max(last, code);
    }
    if (first == codes.missing) return false;  // all are missing
    if (first >= last) {
      if (!cut.has_missing) return false;
      cut.code = last;  // all that can be told apart is whether there is a value
    } else {
      const auto [code, threshold] = data_.cut(f, first, last, random_.fraction());
      cut.code = code;
      cut.threshold = threshold;
    }
    search.at(codes, cut, best);
    return true;
  }

  // Split documents that miss a value from the others, which are split in two next. Returns the node of these; that of
  // the missing ones follows it. Both splits are one level of the tree, and the first has the gain of both.
  std::size_t set_missing_apart(std::size_t number) {
    FoundSplit others = nodes_[number].split;
    nodes_[number].split.code = data_.n_values(static_cast<std::size_t>(others.feature)) - 1;
    const std::size_t first = divide(number);
    others.in_three = others.has_missing = false;
    nodes_[first].split = others;
    --nodes_[first].depth;
    return first;
  }

  // Split a node in two, each side in the order of before. Returns the number of the left child.
  std::size_t divide(std::size_t number) {
    const std::size_t first = nodes_.size();
    nodes_.resize(first + 2);
    Node& node = nodes_[number];
    const auto f = static_cast<std::size_t>(node.split.feature);
    const Column<Code> codes = column(f);
    const std::uint32_t threshold = node.split.code;
    const std::uint32_t also_left = node.split.missing_left && codes.may_miss ? codes.missing : threshold;
    std::uint32_t *place = places_.data() + node.begin, *moved_place = moved_places_.data();
    std::uint16_t *payload = payloads_.data() + node.begin, *moved_payload = moved_payloads_.data();
    const std::size_t n = node.end - node.begin;
    std::size_t n_left = 0, n_right = 0;
    std::uint32_t last = 0, next = data_.n_values(f);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t at = place[i], code = codes[at];
      const std::uint16_t carried = payload[i];
      const bool goes_left = (code <= threshold) | (code == also_left);
      place[n_left] = moved_place[n_right] = at;
      payload[n_left] = moved_payload[n_right] = carried;
      n_left += goes_left;
      n_right += !goes_left;
      last = code <= threshold ? std::max(last, code) : last;
      next = goes_left ? next : std::min(next, code);
    }
    std::copy_n(moved_place, n_right, place + n_left);
    std::copy_n(moved_payload, n_right, payload + n_left);
    node.last = last;
    node.next = next;
    if (!node.split.has_missing) node.split.missing_left = n_left > n_right;  // one that comes later follows most
    node.first_child = static_cast<std::int32_t>(first);
    const std::size_t middle = node.begin + n_left;
    nodes_[first] = {node.begin, middle, node.depth + 1, node.constants};
    nodes_[first + 1] = {middle, node.end, node.depth + 1, copy_of(node.constants)};
    nodes_[first].in_part = nodes_[first + 1].in_part = node.in_part;
    return first;
  }

  std::size_t copy_of(std::size_t slot) {
    std::size_t copy = constants_.size() / std::max<std::size_t>(n_words_, 1);
    if (free_slots_.empty()) {
      constants_.resize(constants_.size() + n_words_);
    } else {
      copy = free_slots_.back();
      free_slots_.pop_back();
    }
    std::copy_n(constants_.begin() + static_cast<std::ptrdiff_t>(slot * n_words_), n_words_,
                constants_.begin() + static_cast<std::ptrdiff_t>(copy * n_words_));
    return copy;
  }

  Docs docs_of(const Node& node) const {
    return {places_.data() + node.begin, payloads_.data() + node.begin, node.end - node.begin};
  }

  // Codes of documents: column by column, or document by document.
  struct Tile {
    std::vector<Code> codes;
    std::size_t column_step = 0, doc_step = 0;
  };
  static constexpr std::size_t kLargeTile = 2 * 1024 * 1024;  // bytes beyond which subtrees get a tile,
  static constexpr std::size_t kPartTile = 192 * 1024;        // of so many

  Column<Code> column(std::size_t f) const {
    return {tile_->codes.data() + f * tile_->column_step, static_cast<std::uint32_t>(tile_->doc_step),
            static_cast<std::int32_t>(f), data_.has_missing[f] != 0, data_.n_values(f)};
  }

  // Depth first, all nodes below one are done before any other: a subtree can have the second tile for itself.
  void use_tile(Node& node) {
    const std::size_t n = node.end - node.begin;
    if (!node.in_part && n <= part_docs_) {
      copy_docs(places_.data() + node.begin, n);
      criterion_.move(docs_of(node));
      std::iota(places_.begin() + static_cast<std::ptrdiff_t>(node.begin),
                places_.begin() + static_cast<std::ptrdiff_t>(node.end), 0u);
      node.in_part = true;
    }
    tile_ = node.in_part ? &part_ : &whole_;
    if (!node.in_part) criterion_.move_back();
  }

  void copy_docs(const std::uint32_t* places, std::size_t n) {
    const std::size_t n_groups = (data_.n_features + kGroup - 1) / kGroup;
    part_.column_step = 1;
    part_.doc_step = n_groups * kGroup;
    if (part_.codes.size() < n * part_.doc_step) part_.codes.resize(n * part_.doc_step);
    Code* to = part_.codes.data();
    for (std::size_t i = 0; i < n; ++i) {
      const Code* from = data_.codes + std::size_t{(*docs_)[places[i]].row} * kGroup;
      for (std::size_t g = 0; g < n_groups; ++g, to += kGroup, from += data_.n_rows * kGroup) {
        std::memcpy(to, from, kGroup * sizeof(Code));
      }
    }
  }

  void copy_columns(std::size_t n) {
    constexpr std::size_t kBlock = 64;  // documents whose codes stay in the first-level cache meanwhile
    Tile& tile = whole_;
    tile.column_step = n;
    tile.doc_step = 1;
    if (tile.codes.size() < n * data_.n_features) tile.codes.resize(n * data_.n_features);
    for (std::size_t g = 0; g * kGroup < data_.n_features; ++g) {
      const Code* from = data_.group(g);
      const std::size_t n_columns = std::min<std::size_t>(kGroup, data_.n_features - g * kGroup);
      for (std::size_t begin = 0; begin < n; begin += kBlock) {
        const std::size_t end = std::min(n, begin + kBlock);
        const Code* rows[kBlock];
        for (std::size_t i = begin; i < end; ++i) {
          rows[i - begin] = from + std::size_t{(*docs_)[i].row} * kGroup;
        }
        for (std::size_t k = 0; k < n_columns; ++k) {
          Code* to = tile.codes.data() + (g * kGroup + k) * n;
          for (std::size_t i = begin; i < end; ++i) to[i] = rows[i - begin][k];
        }
      }
    }
  }

  void write(FullDepthTree& tree) {
    const std::size_t n_inner = (nodes_.size() - 1) / 2;
    for (auto* numbers : {&tree.feature, &tree.left, &tree.right}) numbers->resize(n_inner);
    for (auto* numbers : {&tree.threshold, &tree.gain}) numbers->resize(n_inner);
    tree.missing_left.resize(n_inner);
    tree.count.resize(n_inner);
    tree.leaf_value.clear();
    std::int32_t n_written = 0;
    written_.assign(1, {0, -1});
    while (!written_.empty()) {
      const auto [number, parent] = written_.back();  // of a right child, its parent; else -1
      written_.pop_back();
      const Node& node = nodes_[number];
      const bool leaf = node.first_child < 0;
      const std::int32_t own = leaf ? ~static_cast<std::int32_t>(tree.leaf_value.size()) : n_written;
      if (parent >= 0) tree.right[static_cast<std::size_t>(parent)] = own;
      if (leaf) {
        tree.leaf_value.push_back(node.value);
        continue;
      }
      const auto at = static_cast<std::size_t>(n_written++);
      const auto child = static_cast<std::size_t>(node.first_child);
      tree.feature[at] = node.split.feature;
      tree.threshold[at] = std::isnan(node.split.threshold)
                               ? data_.threshold(static_cast<std::size_t>(node.split.feature), node.last, node.next)
                               : node.split.threshold;
      tree.missing_left[at] = node.split.missing_left;
      tree.gain[at] = node.gain;
      tree.count[at] = static_cast<std::int64_t>(node.end - node.begin);
      // the left child comes next: its number is known
      tree.left[at] = nodes_[child].first_child < 0 ? ~static_cast<std::int32_t>(tree.leaf_value.size()) : n_written;
      written_.push_back({child + 1, own});
      written_.push_back({child, -1});
    }
  }

  const CodedView<Code> data_;
  const ForestTarget& target_;
  Criterion criterion_;
  const std::size_t n_words_;
  FullDepthRules rules_;
  std::uint32_t min_docs_ = 1;
  RandomStream random_{0};
  const std::vector<SampledDoc>* docs_ = nullptr;
  std::vector<std::uint32_t> places_, moved_places_;
  std::vector<std::uint16_t> payloads_, moved_payloads_;
  Tile whole_, part_;
  const Tile* tile_ = nullptr;
  std::size_t part_docs_ = 0;
  std::int64_t docs_until_check_ = 0;
  std::vector<std::uint32_t> order_;  // of the features: any permutation, shuffled on from node to node
  std::vector<std::uint64_t> constants_;
  std::vector<std::size_t> free_slots_, open_;
  std::vector<Node> nodes_;
  std::vector<std::pair<std::size_t, std::int32_t>> written_;
};

}  // namespace rankwood
