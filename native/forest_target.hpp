// What the trees of a forest learn: a label and a weight per document, in the form that is fastest to add up.
//
// Labels that are few whole steps apart (grades), with weights that are small whole numbers, are kept as bytes: their
// sums are of integers, so that they are exact and need no order. Everything else is added up in double precision, in
// an order that does not depend on threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace rankwood {

constexpr std::size_t kMaxClasses = 256;   // of the entropy criterion
constexpr std::size_t kPackedClasses = 8;  // whose counts fit into a few words
constexpr std::uint32_t kMaxPackedWeight = 255;

class ForestTarget {
 public:
  // IN label, weight  one per row, finite, weights not negative; weight may be null: all are 1
  ForestTarget(const double* label, const double* weight, std::size_t n_rows, bool entropy)
      : label_(label), weight_(weight), n_rows_(n_rows), entropy_(entropy) {
    if (entropy) {
      find_classes();
    } else {
      find_grades();
    }
    find_whole_weights();
    double w = 0.0, wy = 0.0;
    for (std::size_t i = 0; i < n_rows; ++i) {
      w += weight_of(i);
      wy += weight_of(i) * label[i];
    }
    mean_ = w > 0.0 ? wy / w : 0.0;
    if (grades_.empty()) centre_ = mean_;
  }

  bool entropy() const { return entropy_; }
  std::size_t n_rows() const { return n_rows_; }
  double label_of(std::size_t row) const { return label_[row]; }
  double weight_of(std::size_t row) const { return weight_ == nullptr ? 1.0 : weight_[row]; }
  double mean() const { return mean_; }                                  // the value of a tree that got no document
  double centre() const { return centre_; }                              // labels are added up less this
  std::uint8_t grade_of(std::size_t row) const { return grades_[row]; }  // class, or label less the centre
  const std::vector<double>& classes() const { return classes_; }        // their labels, ascending

  // Whether documents can be kept as bytes: grade and weight, drawn once.
  bool packed() const { return packed_; }

 private:
  void find_classes() {
    for (std::size_t i = 0; i < n_rows_; ++i) {
      const auto at = std::lower_bound(classes_.begin(), classes_.end(), label_[i]);
      if (at != classes_.end() && *at == label_[i]) continue;
      if (classes_.size() == kMaxClasses) {
        throw std::invalid_argument(
            "criterion 'entropy' takes every label as a class, at most 256 of them: "
            "use criterion 'variance'");
      }
      classes_.insert(at, label_[i]);
    }
    grades_.resize(n_rows_);
    for (std::size_t i = 0; i < n_rows_; ++i) {
      grades_[i] =
          static_cast<std::uint8_t>(std::lower_bound(classes_.begin(), classes_.end(), label_[i]) - classes_.begin());
    }
  }

  void find_grades() {
    if (n_rows_ == 0) return;
    centre_ = *std::min_element(label_, label_ + n_rows_);
    std::vector<std::uint8_t> grades(n_rows_);
    for (std::size_t i = 0; i < n_rows_; ++i) {
      const double step = label_[i] - centre_;
      if (!(step <= 255.0) || step != std::floor(step) || centre_ + step != label_[i]) return;
      grades[i] = static_cast<std::uint8_t>(step);
    }
    grades_ = std::move(grades);
  }

  void find_whole_weights() {
    packed_ = !grades_.empty() && classes_.size() <= kPackedClasses;
    for (std::size_t i = 0; weight_ != nullptr && i < n_rows_; ++i) {
      packed_ = packed_ && weight_[i] <= kMaxPackedWeight && weight_[i] == std::floor(weight_[i]);
    }
  }

  const double* label_;
  const double* weight_;
  std::size_t n_rows_;
  bool entropy_, packed_ = false;
  double mean_ = 0.0, centre_ = 0.0;
  std::vector<double> classes_;
  std::vector<std::uint8_t> grades_;
};

}  // namespace rankwood
