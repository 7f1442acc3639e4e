#include <nsimplex/analysis_sensitivity.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "analysis/checks.h"

namespace nsimplex {
namespace {

// Attention of inputs divided by their norms: c1 and c2 then hold the norms.
struct Normalized {
  double c1, c2;
  std::vector<double> norms;  // of q, k_1.., v_1..
};

double product(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 1.0, std::multiplies<>());
}

Normalized normalized(const char* name, int64_t order, int64_t head_dim, int64_t value_dim,
                      const Scale& scale, const InputNorms& norms) {
  detail::require(order >= 1 && head_dim >= 1 && value_dim >= 1, name,
                  ": expected order, head_dim and value_dim of one or more, got ", order, ", ",
                  head_dim, " and ", value_dim);
  const auto of = [&](const char* argument, std::vector<double> given) {
    if (given.empty()) given.assign(order, 1);
    detail::require(std::ssize(given) == order, name, ": ", argument, ": expected ", order,
                    " norms or none, got ", given.size());
    for (const double norm : given) analysis::check_positive(name, argument, norm);
    return given;
  };
  analysis::check_positive(name, "query", norms.query);
  const std::vector<double> keys = of("keys", norms.keys), values = of("values", norms.values);
  const auto n = static_cast<double>(order);
  Normalized result{std::abs(scale.logit) * std::pow(static_cast<double>(head_dim), (n + 1) / 2) *
                        norms.query * product(keys),
                    std::abs(scale.output) * std::pow(static_cast<double>(value_dim), (n - 1) / 2) *
                        product(values),
                    {norms.query}};
  result.norms.insert(result.norms.end(), keys.begin(), keys.end());
  result.norms.insert(result.norms.end(), values.begin(), values.end());
  return result;
}

}  // namespace

std::vector<double> sensitivity_bounds(int64_t order, int64_t head_dim, int64_t value_dim,
                                       const Scale& scale, const InputNorms& norms) {
  const Normalized unit =
      normalized("sensitivity_bounds", order, head_dim, value_dim, scale, norms);
  std::vector<double> bounds;
  for (int64_t i = 0; i < 2 * order + 1; ++i) {
    const double bound = i <= order ? unit.c1 * unit.c2 : unit.c2;
    bounds.push_back(bound / unit.norms[i]);
  }
  return bounds;
}

std::vector<double> sharpness_bounds(int64_t order, int64_t head_dim, int64_t value_dim,
                                     const Scale& scale, const InputNorms& norms) {
  const auto [c1, c2, sizes] =
      normalized("sharpness_bounds", order, head_dim, value_dim, scale, norms);
  std::vector<double> bounds;
  for (int64_t i = 0; i < 2 * order + 1; ++i) {
    for (int64_t j = i; j < 2 * order + 1; ++j) {
      double bound = 0;  // a value with itself
      if (j <= order) {
        bound = i == j ? 2 * c1 * c1 * c2 : c2 * (c1 + 2 * c1 * c1);
      } else if (i <= order) {
        bound = c1 * c2;
      } else if (i < j) {
        bound = c2;
      }
      bounds.push_back(bound / (sizes[i] * sizes[j]));
    }
  }
  return bounds;
}

}  // namespace nsimplex
