#include "causal/structure/parent_search.h"

#include <unsupported/Eigen/SpecialFunctions>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

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

namespace {

// Below this part of its variance, what is left of a column is rounding.
constexpr double kNothingLeft = 1e-10;

}  // namespace

ConditionedColumns::ConditionedColumns(const Matrix& covariance)
    : covariance_(covariance), variance_(covariance.diagonal()) {}

bool ConditionedColumns::varies(int64_t column) const {
  return variance_[column] > kNothingLeft * covariance_(column, column);
}

Vector ConditionedColumns::covariance_with(int64_t column) const {
  Vector result = covariance_.row(column);
  for (const Vector& row : rows_) result -= row[column] * row;
  return result;
}

void ConditionedColumns::condition_on(int64_t column) {
  if (!varies(column)) return;
  Vector row = covariance_with(column) / std::sqrt(variance_[column]);
  variance_.array() -= row.array().square();
  rows_.push_back(std::move(row));
}

Regression regress(const Matrix& covariance, int64_t column, std::span<const int64_t> causes) {
  const auto count = static_cast<int64_t>(causes.size());
  const auto cause = [&](int64_t k) { return causes[static_cast<size_t>(k)]; };
  // The factor of the causes, [count, count], and of them with the column, side by side.
  Matrix factor = Matrix::Zero(count, count);
  Vector mixed = Vector::Zero(count);
  double variance = covariance(column, column);
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t l = 0; l < k; ++l) {
      if (factor(l, l) == 0) continue;
      factor(k, l) =
          (covariance(cause(k), cause(l)) - factor.row(k).head(l).dot(factor.row(l).head(l))) /
          factor(l, l);
    }
    const double own = covariance(cause(k), cause(k));
    const double left = own - factor.row(k).head(k).squaredNorm();
    if (left <= kNothingLeft * own) continue;
    factor(k, k) = std::sqrt(left);
    mixed[k] =
        (covariance(cause(k), column) - factor.row(k).head(k).dot(mixed.head(k))) / factor(k, k);
    variance -= mixed[k] * mixed[k];
  }
  // The inverse of the factor: coefficients = inverse^T mixed, and the squared length of column k
  // of the inverse is the reciprocal of what cause k has to itself.
  Matrix inverse = Matrix::Zero(count, count);
  for (int64_t k = 0; k < count; ++k) {
    if (factor(k, k) == 0) continue;
    inverse(k, k) = 1 / factor(k, k);
    for (int64_t l = 0; l < k; ++l) {
      inverse(k, l) = -factor.row(k).head(k).dot(inverse.col(l).head(k)) / factor(k, k);
    }
  }
  Regression result{variance, inverse.transpose() * mixed, Vector::Zero(count)};
  for (int64_t k = 0; k < count; ++k) {
    if (factor(k, k) == 0) continue;
    result.increase[k] =
        result.coefficients[k] * result.coefficients[k] / inverse.col(k).squaredNorm();
  }
  return result;
}

double noise_of(const Matrix& covariance, int64_t column, double variance) {
  constexpr double kLeast = 1e-10;
  return std::max(variance, kLeast * covariance(column, column));
}

double GaussianCost::of(double variance, size_t parents) const {
  const double fit = shared > 0 ? variance / shared : std::log(variance);
  return prices.observations() * fit + prices.of(static_cast<int64_t>(parents));
}

double GaussianCost::worth(double variance, size_t parents) const {
  const double fit = prices.next(static_cast<int64_t>(parents)) / prices.observations();
  return shared > 0 ? fit * shared : -std::expm1(-fit) * variance;
}

namespace {

constexpr int64_t kMostStored = int64_t{1} << 26;
constexpr int64_t kNumbersOfStep = 16;

}  // namespace

// One step of a growing set; `from` is the step before it in the tree of its column.
struct ParentSearch::Step {
  struct Branch {
    int64_t column;
    int64_t step = -1;  ///< in the tree, once somebody went there
  };
  int64_t from, added;
  bool branched = false;
  std::vector<Branch> branches = {};
  std::optional<ParentSet> shrunk = {};
};

ParentSearch::ParentSearch(const Covariance& covariance, const AllowedEdges& edges,
                           const GaussianCost& cost)
    : covariance_(covariance),
      edges_(edges),
      cost_(cost),
      required_(static_cast<size_t>(covariance.matrix.rows())),
      trees_(static_cast<size_t>(covariance.matrix.rows())) {
  forget();
  for (int64_t effect = 0; effect < features(); ++effect) {
    for (int64_t cause = 0; cause < features(); ++cause) {
      if (edges.required(cause, effect)) required_[static_cast<size_t>(effect)].push_back(cause);
    }
  }
}

ParentSearch::~ParentSearch() = default;

void ParentSearch::forget() {
  for (std::vector<Step>& tree : trees_) tree = {Step{-1, -1}};
  stored_ = 0;
}

std::vector<int64_t> ParentSearch::added(int64_t column, const Step& step) const {
  std::vector<int64_t> set = required_[static_cast<size_t>(column)];
  const std::vector<Step>& tree = trees_[static_cast<size_t>(column)];
  for (const Step* each = &step; each->from >= 0; each = &tree[static_cast<size_t>(each->from)]) {
    set.push_back(each->added);
  }
  return set;
}

void ParentSearch::branch(int64_t column, Step& step) {
  step.branched = true;
  const std::vector<int64_t> set = added(column, step);
  if (std::ssize(set) >= cost_.prices.most()) return;
  ConditionedColumns columns(covariance_.matrix);
  for (const int64_t each : set) columns.condition_on(each);
  const Vector shared = columns.covariance_with(column);
  const double variance = columns.variance(column);
  if (variance < noise_of(covariance_.matrix, column, variance))
    return;  // nothing is left to explain
  const double least = cost_.worth(variance, set.size());
  std::vector<std::pair<double, int64_t>> gains;  // less than 0, to be sorted
  for (int64_t next = 0; next < features(); ++next) {
    const double explained = shared[next] * shared[next] / columns.variance(next);
    if (!(explained > least) || !edges_.allowed(next, column) || !columns.varies(next)) continue;
    gains.emplace_back(-explained, next);
  }
  std::sort(gains.begin(), gains.end());
  step.branches.reserve(gains.size());
  for (const auto& [gain, next] : gains) step.branches.push_back({next});
  stored_ += std::ssize(gains) + kNumbersOfStep;
}

void ParentSearch::shrink(int64_t column, Step& step) {
  std::vector<int64_t> set = added(column, step);
  std::sort(set.begin(), set.end());
  for (;;) {
    const Regression fit = regress(covariance_.matrix, column, set);
    const double variance = noise_of(covariance_.matrix, column, fit.variance);
    const double now = cost_.of(variance, set.size());
    size_t worst = set.size();
    double least = now;
    for (size_t k = 0; k < set.size(); ++k) {
      if (edges_.required(set[k], column)) continue;
      const double without = noise_of(covariance_.matrix, column,
                                      fit.variance + fit.increase[static_cast<int64_t>(k)]);
      const double cost = cost_.of(without, set.size() - 1);
      if (cost >= least) continue;
      least = cost;
      worst = k;
    }
    if (worst == set.size()) {
      step.shrunk = ParentSet{std::move(set), variance, now};
      return;
    }
    set.erase(set.begin() + static_cast<int64_t>(worst));
  }
}

const ParentSet& ParentSearch::best(int64_t column, std::span<const int64_t> place, int64_t end) {
  if (stored_ > kMostStored) forget();
  std::vector<Step>& tree = trees_[static_cast<size_t>(column)];
  size_t at = 0;
  for (bool grows = true; grows;) {
    if (!tree[at].branched) branch(column, tree[at]);
    grows = false;
    for (Step::Branch& each : tree[at].branches) {
      if (place[static_cast<size_t>(each.column)] >= end) continue;
      int64_t next = each.step;
      if (next < 0) {
        next = static_cast<int64_t>(tree.size());
        each.step = next;
        tree.push_back({static_cast<int64_t>(at), each.column});
      }
      at = static_cast<size_t>(next);
      grows = true;
      break;
    }
  }
  if (!tree[at].shrunk) shrink(column, tree[at]);
  return *tree[at].shrunk;
}

}  // namespace nsimplex::causal
