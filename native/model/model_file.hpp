// A model read from a file that anybody may have written: container, description, arrays and checksum, all of it
// checked.
//
// Python reads the arrays itself, into arrays of numpy, and checks them by the same functions (ensemble.hpp); the
// header is ModelHeader for both.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "ensemble.hpp"
#include "model/header.hpp"
#include "model/sha256.hpp"
#include "python_number.hpp"

namespace rankwood {

static_assert(std::endian::native == std::endian::little, "model files hold little-endian numbers");

// Throw std::invalid_argument unless every byte is 0 or 1.
inline void check_booleans(std::string_view name, std::span<const std::uint8_t> bytes) {
  std::uint8_t all = 0;
  for (const std::uint8_t byte : bytes) all |= byte;
  if (all > 1) {
    refuse("the file is damaged: array " + std::string(name) + " holds a byte that is neither true nor false");
  }
}

class ModelFile {
 public:
  // read(to, n) copies the next n bytes of the file, which has `n_file`, or throws.
  template <class Read>
  ModelFile(std::uint64_t n_file, const Read& read) : header_(read_header(n_file, read)) {
    for (const std::size_t i : header_.order()) {
      const ModelHeader::Place& place = header_.places[i];
      with_array(*this, i, [&](auto& array) {
        array.resize(place.length);
        if (place.length > 0) read(array.data(), place.length * sizeof array[0]);
      });
    }
    check();
    if (header_.checksum && *header_.checksum != checksum()) {
      refuse("the file is damaged: its numbers are not those that were written");
    }
  }

  const ModelHeader& header() const { return header_; }
  const double* tree_weights() const { return tree_weights_.data(); }
  EnsembleView view() const {
    return view_of_arrays(feature_, threshold_, left_, right_, missing_left_, leaf_value_, node_offsets_, set_offsets_,
                          set_thresholds_, header_.n_features);
  }

  // What Ensemble.fingerprint gives in Python: SHA-256 of what scores depend on.
  std::string fingerprint() const {
    Sha256 hash;
    hash.add("rankwood " + std::to_string(header_.n_features) + " " + python_hex(header_.base));
    for (std::size_t i = 0; i < kScoringArrays; ++i) add_array(hash, i, "");
    for (std::size_t i = kSetArrays; i < kArrays.size() && header_.places[i].there; ++i) add_array(hash, i, "");
    if (header_.exit) {
      const auto listed = [](const auto& numbers, const auto& text) {
        std::string list;
        for (const auto one : numbers) list += (list.empty() ? "" : ", ") + text(one);
        return "[" + list + "]";
      };
      hash.add("exit {\"checkpoints\": " +
               listed(header_.exit->checkpoints, [](std::int64_t one) { return python_number(one); }) +
               ", \"margins\": " +
               listed(header_.exit->margins, [](double one) { return std::isinf(one) ? "null" : python_number(one); }) +
               ", \"top\": " + std::to_string(header_.exit->top) + "}");
    }
    return hash.digest();
  }

 private:
  template <class Read>
  static ModelHeader read_header(std::uint64_t n_file, const Read& read) {
    char start[kHeaderStart] = {};
    const auto n_start = static_cast<std::size_t>(n_file < kHeaderStart ? n_file : kHeaderStart);
    if (n_start > 0) read(start, n_start);
    const std::uint64_t end = header_end({start, n_start}, n_file);
    std::string text(static_cast<std::size_t>(end - 8), '\0');
    if (text.empty()) refuse(kNoModelFile);
    text[0] = start[8];
    if (text.size() > 1) read(text.data() + 1, text.size() - 1);
    return ModelHeader(text, n_file - end);
  }

  // Call task(the array of this number of kArrays).
  template <class Self, class Task>
  static void with_array(Self& self, std::size_t number, const Task& task) {
    switch (number) {
      case 0:
        return task(self.feature_);
      case 1:
        return task(self.threshold_);
      case 2:
        return task(self.left_);
      case 3:
        return task(self.right_);
      case 4:
        return task(self.missing_left_);
      case 5:
        return task(self.leaf_value_);
      case 6:
        return task(self.node_offsets_);
      case 7:
        return task(self.tree_weights_);
      case 8:
        return task(self.split_gain_);
      case 9:
        return task(self.node_count_);
      case 10:
        return task(self.leaf_cover_);
      case 11:
        return task(self.set_offsets_);
      default:
        return task(self.set_thresholds_);
    }
  }

  void check() const {
    check_booleans(kArrays[4].name, missing_left_);
    const EnsembleView model = view();
    std::vector<std::int32_t> depths(model.n_trees);
    check_trees(model, depths.data());
    const auto is_there = [&](std::size_t i) { return header_.places[i].there; };
    if (is_there(8)) check_notes<double>("split_gain", split_gain_, model.n_nodes, false, false);
    if (is_there(9)) check_notes<std::int64_t>("node_count", node_count_, model.n_nodes, false, true);
    if (is_there(10)) check_notes<double>("leaf_cover", leaf_cover_, model.n_leaves, true, true);
    if (tree_weights_.size() != model.n_trees) refuse("tree_weights must have one entry per tree");
    check_sums(model, tree_weights_.data(), header_.base);
    if (header_.exit && !header_.exit->checkpoints.empty()) {
      check_exit(model, tree_weights_.data(), header_.base, header_.exit->checkpoints.back());
    }
  }

  std::string checksum() const {
    Sha256 hash;
    for (std::size_t i = 0; i < kArrays.size(); ++i) {
      if (header_.places[i].there) add_array(hash, i, " ");
    }
    return hash.digest();
  }

  void add_array(Sha256& hash, std::size_t number, const char* after) const {
    with_array(*this, number, [&](const auto& array) {
      hash.add(std::string(kArrays[number].name) + " " + std::to_string(array.size()) + after);
      hash.add(array.data(), array.size() * sizeof array[0]);
    });
  }

  ModelHeader header_;
  std::vector<std::int32_t> feature_, left_, right_;
  std::vector<double> threshold_, leaf_value_, tree_weights_, split_gain_, leaf_cover_, set_thresholds_;
  std::vector<std::uint8_t> missing_left_;
  std::vector<std::int64_t> node_offsets_, node_count_, set_offsets_;
};

}  // namespace rankwood
