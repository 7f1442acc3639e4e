#include "causal/structure/edge_price.h"

#include <unsupported/Eigen/SpecialFunctions>

#include <algorithm>
#include <cmath>

namespace nsimplex::causal {
namespace {

constexpr double kFalseEdgesOfPrices = 0.5;  // in a table of independent columns

}  // namespace

double f_test_level(double free, double parameters, double ratio) {
  return Eigen::numext::betainc(free / 2, parameters / 2, ratio);
}

double f_test_ratio(double free, double parameters, double level) {
  // Bisection of log x, which spans many decades where few degrees of freedom are left.
  double low = -700, high = 0;
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    (f_test_level(free, parameters, std::exp(middle)) < level ? low : high) = middle;
  }
  return std::exp(high);
}

double edge_level(int64_t features, double false_edges) {
  const auto count = static_cast<double>(features);
  return false_edges / std::max(count * (count - 1) / 2, 1.0);
}

EdgePrices::EdgePrices(int64_t observations, int64_t features)
    : observations_(static_cast<double>(observations)) {
  const double bic = 2 * std::log(observations_), level = edge_level(features, kFalseEdgesOfPrices);
  const int64_t most = std::max<int64_t>(std::min(observations / 10, features - 1), 1);
  sums_.push_back(0);
  for (int64_t parents = 1; parents <= most; ++parents) {
    const double free = std::max(observations_ - 1 - static_cast<double>(parents), 1.0);
    const double test = -observations_ * std::log(f_test_ratio(free, 1, level));
    sums_.push_back(sums_.back() + std::max(bic, test));
  }
}

double EdgePrices::of(int64_t parents) const {
  constexpr double kMoreThanAll = 25;  // a variance falls to 1e-10 of what it was, e^-23
  const auto beyond = static_cast<double>(std::max<int64_t>(parents - most(), 0));
  return sums_[static_cast<size_t>(std::min(parents, most()))] +
         beyond * kMoreThanAll * observations_;
}

std::string few_rows_warning(int64_t rows, int64_t columns) {
  if (rows >= columns) return "";
  return std::to_string(rows)
      .append(" rows for ")
      .append(std::to_string(columns))
      .append(" columns: only strong effects can be found");
}

}  // namespace nsimplex::causal
