// Learns a causal graph of additive models by regressions on cubic splines.

#include "causal/structure/additive_search.h"

#include <Eigen/Cholesky>
#include <Eigen/QR>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "causal/graph/acyclic.h"
#include "causal/structure/parent_search.h"

namespace nsimplex::causal {
namespace {

constexpr int64_t kDegree = 3;

// The different quantiles, which are the ends of the intervals.
std::vector<double> knots_of(const Vector& values, int64_t intervals) {
  std::vector<double> sorted(values.begin(), values.end()), knots;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t k = 0; k <= intervals; ++k) {
    const double knot = sorted[static_cast<size_t>(k * (std::ssize(sorted) - 1) / intervals)];
    if (knots.empty() || knot > knots.back()) knots.push_back(knot);
  }
  return knots;
}

// The B-splines that are not 0 at x, by de Boor's recursion. `knots` repeats its ends, and x lies
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
  // The splines sum to 1, and few different values span fewer of them. The rank is their number.
  Eigen::ColPivHouseholderQR<Eigen::MatrixXd> factors(basis.rows(), basis.cols());
  factors.setThreshold(1e-7);
  factors.compute(basis);
  const Eigen::Index rank = std::min<Eigen::Index>(factors.rank(), splines - 1);
  return factors.householderQ() * Eigen::MatrixXd::Identity(basis.rows(), rank);
}

namespace {

constexpr double kLeastLeft = 1e-10;
constexpr double kSplineRidge = 1e-8;  // of orthonormal coefficients; it allows copies of a column
constexpr int64_t kMostIntervals = 8;

int64_t intervals_of(int64_t rows) {
  const double usual = std::round(std::cbrt(static_cast<double>(rows)) / 2);
  return std::clamp<int64_t>(static_cast<int64_t>(usual), 1, kMostIntervals);
}

}  // namespace

AdditiveRegression::AdditiveRegression(TableView table)
    : table_(table.rowwise() - table.colwise().mean()) {
  table_.colwise().normalize();
  for (int64_t column = 0; column < table.cols(); ++column) {
    bases_.push_back(spline_basis(table.col(column), intervals_of(table.rows())));
    mixed_.push_back(bases_.back().transpose() * table_);
  }
}

const AdditiveRegression::Columns& AdditiveRegression::product(int64_t first, int64_t second) {
  const auto [at, added] = products_.try_emplace(first * features() + second);
  if (added) at->second = basis(first).transpose() * basis(second);
  return at->second;
}

double AdditiveRegression::unexplained(int64_t column, const std::vector<int64_t>& causes) {
  int64_t count = 0;
  for (const int64_t cause : causes) count += parameters(cause);
  Columns gram = Columns::Zero(count, count);
  Vector mix(count);
  int64_t row = 0;
  for (size_t i = 0; i < causes.size(); ++i) {
    const int64_t rows = parameters(causes[i]);
    mix.segment(row, rows) = mixed_[static_cast<size_t>(causes[i])].col(column);
    gram.block(row, row, rows, rows).setIdentity();
    int64_t before = 0;
    for (size_t k = 0; k < i; ++k) {
      const int64_t columns = parameters(causes[k]);
      gram.block(row, before, rows, columns) = product(causes[k], causes[i]).transpose();
      before += columns;
    }
    row += rows;
  }
  gram.diagonal().array() += kSplineRidge;
  const Vector solved = gram.selfadjointView<Eigen::Lower>().llt().matrixL().solve(mix);
  return std::max(1 - solved.squaredNorm(), kLeastLeft);
}

Matrix AdditiveRegression::unexplained_by_one() const {
  Matrix left(features(), features());
  for (int64_t cause = 0; cause < features(); ++cause) {
    left.row(cause) = 1 - mixed_[static_cast<size_t>(cause)].colwise().squaredNorm().array();
  }
  return left.cwiseMax(kLeastLeft);
}

double AdditiveRegression::unexplained_held_out(int64_t column, const std::vector<int64_t>& causes,
                                                const CrossValidation& rows) const {
  int64_t count = 1;
  for (const int64_t cause : causes) count += parameters(cause);
  Columns given(table_.rows(), count);
  given.col(0).setConstant(1 / std::sqrt(static_cast<double>(table_.rows())));
  int64_t at = 1;
  for (const int64_t cause : causes) {
    given.middleCols(at, parameters(cause)) = basis(cause);
    at += parameters(cause);
  }
  // Features of length 1 have a mean square of 1 / n.
  const double ridge = kSplineRidge / static_cast<double>(table_.rows());
  return std::max(rows.errors(given, table_.col(column), ridge).squaredNorm(), kLeastLeft);
}

namespace {

// up to this number of columns, every column may be a parent
constexpr int64_t kAllCandidates = 50;
constexpr int64_t kSomeCandidates = 30;  // candidates per column if there are more columns
constexpr double kNever = -std::numeric_limits<double>::infinity();

class AdditiveSearch {
 public:
  AdditiveSearch(AdditiveRegression& regression, const AllowedEdges& edges, int64_t observations,
                 const std::function<void()>& checkpoint)
      : regression_(regression),
        edges_(edges),
        observations_(static_cast<double>(observations)),
        level_(edge_level(edges.features(), kFalseEdges)),
        checkpoint_(checkpoint),
        paths_(edges.features()),
        parents_(static_cast<size_t>(edges.features())),
        left_(Vector::Ones(edges.features())),
        gains_(Matrix::Constant(edges.features(), edges.features(), kNever)) {
    const int64_t features = edges.features();
    for (int64_t effect = 0; effect < features; ++effect) {
      for (int64_t cause = 0; cause < features; ++cause) {
        if (edges.required(cause, effect)) add(cause, effect);
      }
    }
    const Matrix alone = regression.unexplained_by_one();
    for (int64_t effect = 0; effect < features; ++effect) {
      for (const int64_t cause : candidates(effect, alone)) gains_(cause, effect) = 0;
      update(effect);
    }
  }

  ParentLists run() {
    Eigen::Index cause = 0, effect = 0;
    while (gains_.maxCoeff(&cause, &effect) > 0) {
      if (checkpoint_) checkpoint_();
      if (paths_.leads(effect, cause)) {
        gains_(cause, effect) = kNever;
        continue;
      }
      add(cause, effect);
      update(effect);
    }
    for (int64_t column = 0; column < edges_.features(); ++column) shrink(column);
    return std::move(parents_);
  }

 private:
  std::vector<int64_t>& parents(int64_t column) { return parents_[static_cast<size_t>(column)]; }

  // The allowed causes of a column. If there are too many, only those that explain most alone.
  std::vector<int64_t> candidates(int64_t effect, const Matrix& alone) const {
    std::vector<int64_t> result;
    for (int64_t cause = 0; cause < edges_.features(); ++cause) {
      if (edges_.allowed(cause, effect) && !edges_.required(cause, effect)) result.push_back(cause);
    }
    if (edges_.features() <= kAllCandidates || std::ssize(result) <= kSomeCandidates) return result;
    std::ranges::nth_element(result, result.begin() + kSomeCandidates, {},
                             [&](int64_t cause) { return alone(cause, effect); });
    result.resize(kSomeCandidates);
    return result;
  }

  int64_t coefficients(const std::vector<int64_t>& causes) const {
    return std::accumulate(causes.begin(), causes.end(), int64_t{0}, [&](int64_t sum, int64_t at) {
      return sum + regression_.parameters(at);
    });
  }

  // The degrees of freedom with this number of coefficients.
  double free(int64_t coefficients) const {
    return observations_ - 1 - static_cast<double>(coefficients);
  }

  // The decrease of n log v from which `more` of `all` coefficients are significant.
  double price(int64_t all, int64_t more) {
    const auto [at, added] = prices_.try_emplace({all, more});
    if (added) {
      const double ratio = f_test_ratio(free(all), static_cast<double>(more), level_);
      at->second = -observations_ * std::log(ratio);
    }
    return at->second;
  }

  void add(int64_t cause, int64_t effect) {
    std::vector<int64_t>& set = parents(effect);
    set.insert(std::ranges::lower_bound(set, cause), cause);
    left_[effect] = regression_.unexplained(effect, set);
    gains_(cause, effect) = kNever;
    paths_.add({cause, effect});
  }

  // How much each candidate of a column would add to its likelihood, less its price.
  void update(int64_t effect) {
    const std::vector<int64_t>& now = parents(effect);
    const int64_t used = coefficients(now);
    for (int64_t cause = 0; cause < edges_.features(); ++cause) {
      double& gain = gains_(cause, effect);
      if (gain == kNever) continue;
      const int64_t more = regression_.parameters(cause);
      // A fit needs more rows than coefficients, with enough rows left to estimate the noise.
      if (more == 0 || free(used + more) < observations_ / 3) {
        gain = kNever;
        continue;
      }
      std::vector<int64_t> set = now;
      set.insert(std::ranges::lower_bound(set, cause), cause);
      const double left = regression_.unexplained(effect, set);
      gain = observations_ * std::log(left_[effect] / left) - price(used + more, more);
    }
  }

  void shrink(int64_t column) {
    std::vector<int64_t>& set = parents(column);
    for (;;) {
      if (checkpoint_) checkpoint_();
      const double free_now = free(coefficients(set));
      double worst = level_, without_worst = 0;
      int64_t least = -1;
      for (const int64_t cause : set) {
        if (edges_.required(cause, column)) continue;
        std::vector<int64_t> others = set;
        std::erase(others, cause);
        const double without = regression_.unexplained(column, others);
        const double chance =
            f_test_level(free_now, static_cast<double>(regression_.parameters(cause)),
                         std::min(left_[column] / without, 1.0));
        if (chance <= worst) continue;
        worst = chance;
        without_worst = without;
        least = cause;
      }
      if (least < 0) return;
      std::erase(set, least);
      left_[column] = without_worst;
    }
  }

  AdditiveRegression& regression_;
  const AllowedEdges& edges_;
  double observations_, level_;
  const std::function<void()>& checkpoint_;
  Paths paths_;
  ParentLists parents_;
  Vector left_;   ///< of every column's variance: the part that its parents do not explain
  Matrix gains_;  ///< per edge; kNever if the edge exists or is not allowed
  std::map<std::pair<int64_t, int64_t>, double> prices_;
};

}  // namespace

ParentLists additive_graph(AdditiveRegression& regression, const AllowedEdges& edges,
                           int64_t observations, const std::function<void()>& checkpoint) {
  return AdditiveSearch(regression, edges, observations, checkpoint).run();
}

}  // namespace nsimplex::causal
