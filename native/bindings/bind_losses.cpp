// Gradients of losses that need a kernel.
#include <cmath>
#include <mutex>

#include "bindings/bindings.hpp"
#include "drawn_gradients.hpp"
#include "lambdas.hpp"
#include "squared_gradients.hpp"

namespace rankwood {
namespace {

using MaybeWeights = std::optional<In<double>>;

const In<std::int64_t>& checked(const In<std::int64_t>& offsets, const In<double>& gains) {
  require(offsets.shape(0) >= 1 && offsets.data()[0] == 0, "offsets must start with 0");
  for (std::size_t q = 1; q < offsets.shape(0); ++q) {
    require(offsets.data()[q - 1] <= offsets.data()[q], "offsets must not decrease");
  }
  require(offsets.data()[offsets.shape(0) - 1] == static_cast<std::int64_t>(gains.shape(0)),
          "offsets must end with the number of rows");
  for (std::size_t i = 0; i < gains.shape(0); ++i) {
    require(gains.data()[i] >= 0.0 && std::isfinite(gains.data()[i]), "gains must be finite and not negative");
  }
  return offsets;
}

template <class Rules>
const Rules& checked(const Rules& rules) {
  require(rules.truncation >= 1, "truncation must be at least 1");
  require(rules.sigma >= 1e-6 && rules.sigma <= 1e6, "sigma must lie between 1e-6 and 1e6");
  require(rules.largest_gain >= 0.0, "the largest gain must not be negative");
  return rules;
}

const StochasticRules& checked(const StochasticRules& rules) {
  require(rules.n_rankings >= 1, "at least one ranking must be drawn");
  require(rules.noise >= 0.0 && std::isfinite(rules.noise), "noise must be finite and not negative");
  return checked<StochasticRules>(rules);
}

const double* data(const MaybeWeights& weights, std::size_t n) {
  if (!weights) return nullptr;
  require(weights->shape(0) == n, "weights have the wrong length");
  return weights->data();
}

void check_rows(std::size_t n, const In<double>& scores, const Out<double>& gradient, const Out<double>& hessian) {
  require(scores.shape(0) == n, "one score per row is needed");
  require(gradient.shape(0) == n && hessian.shape(0) == n, "one gradient and hessian per row are needed");
}

// Holds the arrays it looks at, so that they outlive it. One call at a time: calls share scratch memory.
struct Lambdas {
  Lambdas(In<double> gains, In<std::int64_t> offsets_, MaybeWeights weights_, MaybeWeights query_weights_,
          const LambdaRules& rules, int n_threads)
      : offsets(checked(offsets_, gains)),
        weights(weights_),
        query_weights(query_weights_),
        gradients(gains.data(), offsets.data(), offsets.shape(0) - 1, data(weights, gains.shape(0)),
                  data(query_weights, offsets.shape(0) - 1), checked(rules), n_threads),
        pool(ThreadPool::shared(n_threads)) {}

  void compute(const In<double>& scores, const Out<double>& gradient, const Out<double>& hessian) {
    const std::size_t n = static_cast<std::size_t>(offsets.data()[offsets.shape(0) - 1]);
    check_rows(n, scores, gradient, hessian);
    unlocked([&] {
      const std::lock_guard<std::mutex> guard(busy);
      gradients.compute(scores.data(), gradient.data(), hessian.data(), *pool);
    });
  }

  In<std::int64_t> offsets;
  MaybeWeights weights, query_weights;
  LambdaGradients gradients;
  std::shared_ptr<ThreadPool> pool;
  std::mutex busy;
};

void make_lambdas(Lambdas* self, const In<double>& gains, const In<std::int64_t>& offsets, const MaybeWeights& weights,
                  const MaybeWeights& query_weights, std::size_t truncation, double sigma, bool normalize,
                  bool cut_discounts, int n_threads, PairMeasure measure, double largest_gain) {
  const LambdaRules rules{truncation, sigma, normalize, cut_discounts, measure, largest_gain};
  unlocked([&] { new (self) Lambdas(gains, offsets, weights, query_weights, rules, n_threads); });
}

// A loss that draws random numbers, with the arrays it looks at.
template <class Kernel>
struct Drawn {
  template <class... Rules>
  Drawn(In<double> gains_, In<std::int64_t> offsets_, MaybeWeights weights_, MaybeWeights query_weights_,
        std::uint64_t seed, std::uint64_t first_query, int n_threads, const Rules&... rules)
      : gains(gains_),
        offsets(checked(offsets_, gains)),
        weights(weights_),
        query_weights(query_weights_),
        kernel(gains.data(),
               DrawnQueries{offsets.data(), offsets.shape(0) - 1, data(weights, gains.shape(0)),
                            data(query_weights, offsets.shape(0) - 1), seed, first_query},
               rules...),
        pool(ThreadPool::shared(n_threads)) {}

  void compute(const In<double>& scores, const Out<double>& gradient, const Out<double>& hessian, std::uint64_t draw) {
    check_rows(gains.shape(0), scores, gradient, hessian);
    unlocked([&] {
      const std::lock_guard<std::mutex> guard(busy);
      kernel.compute(scores.data(), draw, gradient.data(), hessian.data(), *pool);
    });
  }

  In<double> gains;
  In<std::int64_t> offsets;
  MaybeWeights weights, query_weights;
  Kernel kernel;
  std::shared_ptr<ThreadPool> pool;
  std::mutex busy;
};
using CrossEntropy = Drawn<CrossEntropyGradients>;
using Stochastic = Drawn<StochasticGradients>;

void make_cross_entropy(CrossEntropy* self, const In<double>& gains, const In<std::int64_t>& offsets,
                        const MaybeWeights& weights, const MaybeWeights& query_weights, std::uint64_t seed,
                        std::uint64_t first_query, int n_threads) {
  unlocked([&] { new (self) CrossEntropy(gains, offsets, weights, query_weights, seed, first_query, n_threads); });
}

void make_stochastic(Stochastic* self, const In<double>& gains, const In<std::int64_t>& offsets,
                     const MaybeWeights& weights, const MaybeWeights& query_weights, std::uint64_t seed,
                     std::uint64_t first_query, std::size_t truncation, double sigma, bool normalize,
                     bool cut_discounts, PairMeasure measure, double largest_gain, std::size_t n_rankings, double noise,
                     int n_threads) {
  const StochasticRules rules =
      checked(StochasticRules{truncation, sigma, normalize, cut_discounts, measure, largest_gain, n_rankings, noise});
  unlocked([&] {
    new (self) Stochastic(gains, offsets, weights, query_weights, seed, first_query, n_threads, rules, n_threads);
  });
}

}  // namespace

void bind_losses(nb::module_& m) {
  nb::enum_<PairMeasure>(m, "PairMeasure")
      .value("NDCG", PairMeasure::ndcg)
      .value("MAP", PairMeasure::map)
      .value("MRR", PairMeasure::mrr)
      .value("ERR", PairMeasure::err)
      .value("EQUAL", PairMeasure::equal);
  nb::class_<Lambdas>(m, "LambdaGradients")
      .def("__init__", &make_lambdas, nb::arg("gains"), nb::arg("offsets"), nb::arg("weights").none(),
           nb::arg("query_weights").none(), nb::arg("truncation"), nb::arg("sigma"), nb::arg("normalize"),
           nb::arg("cut_discounts"), nb::arg("n_threads"), nb::arg("measure") = PairMeasure::ndcg,
           nb::arg("largest_gain") = 0.0)
      .def("compute", &Lambdas::compute, nb::arg("scores"), nb::arg("gradient"), nb::arg("hessian"));
  nb::class_<CrossEntropy>(m, "CrossEntropyGradients")
      .def("__init__", &make_cross_entropy, nb::arg("gains"), nb::arg("offsets"), nb::arg("weights").none(),
           nb::arg("query_weights").none(), nb::arg("seed"), nb::arg("first_query"), nb::arg("n_threads"))
      .def("compute", &CrossEntropy::compute, nb::arg("scores"), nb::arg("gradient"), nb::arg("hessian"),
           nb::arg("draw"));
  nb::class_<Stochastic>(m, "StochasticGradients")
      .def("__init__", &make_stochastic, nb::arg("gains"), nb::arg("offsets"), nb::arg("weights").none(),
           nb::arg("query_weights").none(), nb::arg("seed"), nb::arg("first_query"), nb::arg("truncation"),
           nb::arg("sigma"), nb::arg("normalize"), nb::arg("cut_discounts"), nb::arg("measure"),
           nb::arg("largest_gain"), nb::arg("n_rankings"), nb::arg("noise"), nb::arg("n_threads"))
      .def("compute", &Stochastic::compute, nb::arg("scores"), nb::arg("gradient"), nb::arg("hessian"),
           nb::arg("draw"));
  m.def(
      "squared_gradients",
      [](const In<double>& y, const MaybeWeights& weights, const In<double>& scores, const Out<double>& gradient,
         const Out<double>& hessian, int n_threads) {
        const std::size_t n = y.shape(0);
        check_rows(n, scores, gradient, hessian);
        const double* of_rows = data(weights, n);
        unlocked([&] {
          squared_gradients(y.data(), of_rows, scores.data(), n, gradient.data(), hessian.data(), n_threads);
        });
      },
      nb::arg("y"), nb::arg("weights").none(), nb::arg("scores"), nb::arg("gradient"), nb::arg("hessian"),
      nb::arg("n_threads"));
}

}  // namespace rankwood
