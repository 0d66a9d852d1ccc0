// Gradients of losses that need a kernel.
#include <cmath>
#include <mutex>

#include "bindings/bindings.hpp"
#include "lambdas.hpp"
#include "squared_gradients.hpp"

namespace rankwood {
namespace {

using MaybeWeights = std::optional<In<double>>;

// Holds the arrays it looks at, so that they outlive it. One call at a time: calls share scratch memory.
struct Lambdas {
  Lambdas(In<double> gains, In<std::int64_t> offsets_, MaybeWeights weights_, MaybeWeights query_weights_,
          std::size_t truncation, double sigma, bool normalize, bool cut_discounts, int n_threads)
      : offsets(checked(offsets_, gains)),
        weights(weights_),
        query_weights(query_weights_),
        gradients(gains.data(), offsets.data(), offsets.shape(0) - 1, data(weights, gains.shape(0)),
                  data(query_weights, offsets.shape(0) - 1),
                  checked(LambdaRules{truncation, sigma, normalize, cut_discounts}), n_threads),
        pool(ThreadPool::shared(n_threads)) {}

  void compute(const In<double>& scores, const Out<double>& gradient, const Out<double>& hessian) {
    const std::size_t n = static_cast<std::size_t>(offsets.data()[offsets.shape(0) - 1]);
    require(scores.shape(0) == n, "one score per row is needed");
    require(gradient.shape(0) == n && hessian.shape(0) == n, "one gradient and hessian per row are needed");
    unlocked([&] {
      const std::lock_guard<std::mutex> guard(busy);
      gradients.compute(scores.data(), gradient.data(), hessian.data(), *pool);
    });
  }

  static const In<std::int64_t>& checked(const In<std::int64_t>& offsets, const In<double>& gains) {
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
  static const LambdaRules& checked(const LambdaRules& rules) {
    require(rules.truncation >= 1, "truncation must be at least 1");
    require(rules.sigma >= 1e-6 && rules.sigma <= 1e6, "sigma must lie between 1e-6 and 1e6");
    return rules;
  }
  static const double* data(const MaybeWeights& weights, std::size_t n) {
    if (!weights) return nullptr;
    require(weights->shape(0) == n, "weights have the wrong length");
    return weights->data();
  }

  In<std::int64_t> offsets;
  MaybeWeights weights, query_weights;
  LambdaGradients gradients;
  std::shared_ptr<ThreadPool> pool;
  std::mutex busy;
};

void make_lambdas(Lambdas* self, const In<double>& gains, const In<std::int64_t>& offsets, const MaybeWeights& weights,
                  const MaybeWeights& query_weights, std::size_t truncation, double sigma, bool normalize,
                  bool cut_discounts, int n_threads) {
  unlocked([&] {
    new (self) Lambdas(gains, offsets, weights, query_weights, truncation, sigma, normalize, cut_discounts, n_threads);
  });
}

}  // namespace

void bind_losses(nb::module_& m) {
  nb::class_<Lambdas>(m, "LambdaGradients")
      .def("__init__", &make_lambdas, nb::arg("gains"), nb::arg("offsets"), nb::arg("weights").none(),
           nb::arg("query_weights").none(), nb::arg("truncation"), nb::arg("sigma"), nb::arg("normalize"),
           nb::arg("cut_discounts"), nb::arg("n_threads"))
      .def("compute", &Lambdas::compute, nb::arg("scores"), nb::arg("gradient"), nb::arg("hessian"));
  m.def(
      "squared_gradients",
      [](const In<double>& y, const MaybeWeights& weights, const In<double>& scores, const Out<double>& gradient,
         const Out<double>& hessian, int n_threads) {
        const std::size_t n = y.shape(0);
        require(scores.shape(0) == n, "one score per row is needed");
        require(gradient.shape(0) == n && hessian.shape(0) == n, "one gradient and hessian per row are needed");
        const double* of_rows = Lambdas::data(weights, n);
        unlocked([&] {
          squared_gradients(y.data(), of_rows, scores.data(), n, gradient.data(), hessian.data(), n_threads);
        });
      },
      nb::arg("y"), nb::arg("weights").none(), nb::arg("scores"), nb::arg("gradient"), nb::arg("hessian"),
      nb::arg("n_threads"));
}

}  // namespace rankwood
