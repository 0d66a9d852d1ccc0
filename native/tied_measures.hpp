// The measures of measures.hpp in expectation, when documents with equal scores come in random order
// (McSherry & Najork 2008). Exact: no ordering is drawn.
//
// A run is a maximal range [begin, end) of places whose documents have equal scores; `runs` lists the ends.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "interruption.hpp"
#include "measures.hpp"

namespace rankwood {

using Runs = std::vector<std::size_t>;

// Call visit(begin, end) for every run that starts above `depth`.
template <class Visit>
void for_each_run(const Runs& runs, std::size_t depth, const Visit& visit) {
  std::size_t begin = 0;
  for (const std::size_t end : runs) {
    if (begin >= depth) return;
    visit(begin, end);
    begin = end;
  }
}

// Sum over places of weight(place) times the mean worth of the run there: DCG, hits, RBP.
template <class Worth, class Weight>
double tied_weighted_sum(const double* labels, const Runs& runs, std::size_t depth, const Worth& worth,
                         const Weight& weight) {
  double sum = 0.0;
  for_each_run(runs, depth, [&](std::size_t begin, std::size_t end) {
    double worths = 0.0, weights = 0.0;
    for (std::size_t r = begin; r < end; ++r) worths += worth(labels[r]);
    for (std::size_t r = begin; r < std::min(end, depth); ++r) weights += weight(r);
    sum += worths / static_cast<double>(end - begin) * weights;
  });
  return sum;
}

// Let E_j be the mean, over the ways to choose j documents of the run, of the product of their (1 - stop).
// The user stops at the j-th place of the run with probability E_(j-1) - E_j. The E_j are built up document by
// document; every term is positive, so nothing cancels.
inline double tied_expected_reciprocal_rank(const double* labels, const Runs& runs, std::size_t depth, const Gain& gain,
                                            double max_gain) {
  double sum = 0.0, going_on = 1.0;
  std::vector<double> mean;
  for_each_run(runs, depth, [&](std::size_t begin, std::size_t end) {
    const std::size_t places = std::min(end, depth) - begin;
    mean.assign(places + 1, 0.0);
    mean[0] = 1.0;
    for (std::size_t r = begin; r < end; ++r) {
      const double goes_on = 1.0 - gain(labels[r]) / max_gain;
      const std::size_t seen = r - begin + 1;
      if (seen % 64 == 0) check_interruption();  // each of them takes time in proportion to the places
      for (std::size_t j = std::min(places, seen); j > 0; --j) {
        const double with = static_cast<double>(j) / static_cast<double>(seen);
        mean[j] = (1.0 - with) * mean[j] + with * goes_on * mean[j - 1];
      }
    }
    for (std::size_t j = 1; j <= places; ++j) {
      sum += going_on * (mean[j - 1] - mean[j]) / static_cast<double>(begin + j);
    }
    going_on *= mean[places];
  });
  return sum;
}

// A place of a run of n documents, h of them relevant, is relevant with probability h / n; given that, each other
// place of the run is with probability (h - 1) / (n - 1).
inline double tied_sum_of_precisions(const double* labels, const Runs& runs, std::size_t depth, double relevant) {
  double sum = 0.0, hits_above = 0.0;
  for_each_run(runs, depth, [&](std::size_t begin, std::size_t end) {
    const double n = static_cast<double>(end - begin);
    const double hits = count_relevant(labels + begin, end - begin, relevant);
    const double others = n > 1.0 ? (hits - 1.0) / (n - 1.0) : 0.0;
    for (std::size_t r = begin; hits > 0.0 && r < std::min(end, depth); ++r) {
      const double before = hits_above + static_cast<double>(r - begin) * others;
      sum += hits / n * (before + 1.0) / static_cast<double>(r + 1);
    }
    hits_above += hits;
  });
  return sum;
}

// Only the first run that holds a relevant document matters.
inline double tied_reciprocal_rank(const double* labels, const Runs& runs, std::size_t depth, double relevant) {
  std::size_t begin = 0;
  for (const std::size_t end : runs) {
    const double hits = count_relevant(labels + begin, end - begin, relevant);
    if (hits > 0.0) {
      double sum = 0.0, none_yet = 1.0;
      for (std::size_t r = begin; r < std::min(end, depth) && none_yet > 0.0; ++r) {
        const double here = std::min(1.0, hits / static_cast<double>(end - r));  // when none came before in the run
        sum += none_yet * here / static_cast<double>(r + 1);
        none_yet *= 1.0 - here;
      }
      return sum;
    }
    begin = end;
  }
  return 0.0;
}

}  // namespace rankwood
