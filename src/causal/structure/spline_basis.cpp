#include "causal/structure/spline_basis.h"

#include <Eigen/QR>

#include <algorithm>
#include <array>
#include <vector>

namespace nsimplex::causal {
namespace {

constexpr int64_t kDegree = 3;

// Quantiles, each once: the ends of the intervals.
std::vector<double> knots_of(const Vector& values, int64_t intervals) {
  std::vector<double> sorted(values.begin(), values.end()), knots;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t k = 0; k <= intervals; ++k) {
    const double knot = sorted[static_cast<size_t>(k * (std::ssize(sorted) - 1) / intervals)];
    if (knots.empty() || knot > knots.back()) knots.push_back(knot);
  }
  return knots;
}

// The B-splines that are not 0 at x, by de Boor's recursion; `knots` repeats its ends, and x lies
// between knots[at] and knots[at + 1].
std::array<double, kDegree + 1> splines_at(double x, const std::vector<double>& knots, int64_t at) {
  std::array<double, kDegree + 1> values{1};
  const auto knot = [&](int64_t k) { return knots[static_cast<size_t>(k)]; };
  for (int64_t degree = 1; degree <= kDegree; ++degree) {
    double carried = 0;
    for (int64_t k = 0; k < degree; ++k) {
      const double right = knot(at + k + 1), left = knot(at + k + 1 - degree);
      const double part = values[static_cast<size_t>(k)] / (right - left);
      values[static_cast<size_t>(k)] = carried + (right - x) * part;
      carried = (x - left) * part;
    }
    values[static_cast<size_t>(degree)] = carried;
  }
  return values;
}

}  // namespace

Eigen::MatrixXd spline_basis(const Vector& values, int64_t intervals) {
  const std::vector<double> ends = knots_of(values, intervals);
  if (ends.size() < 2) return Eigen::MatrixXd(values.size(), 0);
  std::vector<double> knots(kDegree, ends.front());
  knots.insert(knots.end(), ends.begin(), ends.end());
  knots.insert(knots.end(), kDegree, ends.back());
  const auto splines = static_cast<int64_t>(ends.size()) - 1 + kDegree;
  Eigen::MatrixXd basis = Eigen::MatrixXd::Zero(values.size(), splines);
  for (Eigen::Index row = 0; row < values.size(); ++row) {
    const double x = values[row];
    const auto above = std::upper_bound(ends.begin() + 1, ends.end() - 1, x);
    const int64_t interval = above - ends.begin() - 1;
    const auto at = splines_at(x, knots, interval + kDegree);
    for (int64_t k = 0; k <= kDegree; ++k) basis(row, interval + k) = at[static_cast<size_t>(k)];
  }
  basis.rowwise() -= basis.colwise().mean().eval();
  // The splines sum to 1, and few different values leave fewer: the rank says how many there are.
  Eigen::ColPivHouseholderQR<Eigen::MatrixXd> factors(basis.rows(), basis.cols());
  factors.setThreshold(1e-7);
  factors.compute(basis);
  const Eigen::Index rank = std::min<Eigen::Index>(factors.rank(), splines - 1);
  return factors.householderQ() * Eigen::MatrixXd::Identity(basis.rows(), rank);
}

}  // namespace nsimplex::causal
