// Points and weights of Gauss and Legendre on [0, 1]: n of them integrate polynomials of degree 2 n - 1 exactly.
//
// Made of additions, multiplications and divisions alone, in a fixed number of steps, so that the bits are the same
// everywhere; the cosine of a mathematical library would not be.
#pragma once

#include <cstddef>
#include <vector>

namespace rankwood {

struct QuadraturePoint {
  double at;       // t
  double rest;     // 1 - t
  double weight;   // of the value at t
  double not_met;  // - weight / (1 - t)
};

inline std::vector<QuadraturePoint> legendre_points(std::size_t n) {
  constexpr double kPi = 3.14159265358979323846;
  constexpr int kTerms = 14, kSteps = 6;
  std::vector<QuadraturePoint> points(n);
  const auto size = static_cast<double>(n);
  for (std::size_t i = 0; i < (n + 1) / 2; ++i) {
    // A root of the polynomial of degree n lies near the cosine of this angle, which is a right angle at most.
    const double angle = kPi * (static_cast<double>(i) + 0.75) / (size + 0.5);
    double x = 1.0, term = 1.0;
    for (int k = 1; k <= kTerms; ++k) {
      term *= -angle * angle / static_cast<double>((2 * k - 1) * (2 * k));
      x += term;
    }
    if (2 * i + 1 == n) x = 0.0;
    double slope = 1.0;
    for (int step = 0; step < kSteps; ++step) {  // Newton's
      double value = 1.0, lower = 0.0;
      for (std::size_t k = 1; k <= n; ++k) {
        const auto degree = static_cast<double>(k);
        const double higher = ((2.0 * degree - 1.0) * x * value - (degree - 1.0) * lower) / degree;
        lower = value;
        value = higher;
      }
      slope = size * (x * value - lower) / (x * x - 1.0);
      if (2 * i + 1 != n) x -= value / slope;
    }
    const double weight = 1.0 / ((1.0 - x * x) * slope * slope);
    const double high = 0.5 * (1.0 + x), low = 0.5 * (1.0 - x);
    points[n - 1 - i] = {high, low, weight, -weight / low};
    points[i] = {low, high, weight, -weight / high};
  }
  return points;
}

}  // namespace rankwood
