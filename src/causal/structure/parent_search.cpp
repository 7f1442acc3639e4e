// Selects the parents of each column by regression and penalised likelihood.

#include "causal/structure/parent_search.h"

#include <unsupported/Eigen/SpecialFunctions>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace nsimplex::causal {
namespace {

constexpr double kFalseEdgesOfPrices = 0.5;  // in a table of independent columns

}  // namespace

double f_test_level(double free, double parameters, double ratio) {
  return Eigen::numext::betainc(free / 2, parameters / 2, ratio);
}

double f_test_ratio(double free, double parameters, double level) {
  // Bisection of log x, which spans many decades if few degrees of freedom remain.
  double low = -700, high = 0;
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    const bool last = middle == low || middle == high;  // no number is between them
    (f_test_level(free, parameters, std::exp(middle)) < level ? low : high) = middle;
    if (last) break;
  }
  return std::exp(high);
}

double chi_squared_test(double degrees, double level) {
  double low = 0, high = 10 * degrees + 200;
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    (Eigen::numext::igammac(degrees / 2, middle / 2) > level ? low : high) = middle;
  }
  return high;
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
  constexpr double kMoreThanAll = 25;  // a variance falls to at most 1e-10 of its value, e^-23
  const auto beyond = static_cast<double>(std::max<int64_t>(parents - most(), 0));
  return sums_[static_cast<size_t>(std::min(parents, most()))] +
         beyond * kMoreThanAll * observations_;
}

namespace {

// Below this part of a column's variance, a residual is rounding.
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
  // The Cholesky factor of the causes, [count, count], and its product with the column.
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
  // The inverse of the factor. The coefficients are inverse^T mixed. The squared length of column k
  // of the inverse is the reciprocal of the variance of cause k given the others.
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

GaussianCosts::GaussianCosts(const Covariances& covariances, double shared)
    : covariances_(covariances) {
  std::map<int64_t, size_t> known;
  for (int64_t column = 0; column < features(); ++column) {
    const int64_t observations = covariances.observations(column);
    const auto [at, added] = known.emplace(observations, costs_.size());
    if (added) costs_.push_back({EdgePrices(observations, features()), shared});
    cost_of_.push_back(at->second);
  }
}

GaussianCosts GaussianCosts::with_shared(double shared) const {
  GaussianCosts result = *this;
  for (GaussianCost& each : result.costs_) each.shared = shared;
  return result;
}

ParentSet GaussianCosts::of(int64_t column, std::vector<int64_t> parents, Vector* without) const {
  const Regression fit = regress(matrix(column), column, parents);
  const auto cost_at = [&](double left, size_t count) {
    const double variance = noise_of(matrix(column), column, left);
    return std::pair{variance, cost(column).of(variance, count)};
  };
  if (without != nullptr) {
    without->resize(std::ssize(parents));
    for (int64_t k = 0; k < without->size(); ++k) {
      (*without)[k] = cost_at(fit.variance + fit.increase[k], parents.size() - 1).second;
    }
  }
  const auto [variance, price] = cost_at(fit.variance, parents.size());
  return {std::move(parents), variance, price};
}

std::vector<int64_t> GaussianCosts::better(int64_t column, std::span<const int64_t> parents) const {
  const Matrix& covariance = matrix(column);
  ConditionedColumns columns(covariance);
  for (const int64_t each : parents) columns.condition_on(each);
  const Vector shared = columns.covariance_with(column);
  const double variance = columns.variance(column);
  if (variance < noise_of(covariance, column, variance)) return {};  // nothing is left to explain
  const double least = cost(column).worth(variance, parents.size());
  std::vector<std::pair<double, int64_t>> gains;  // less than 0, to be sorted
  for (int64_t next = 0; next < features(); ++next) {
    const double explained = shared[next] * shared[next] / columns.variance(next);
    if (!(explained > least) || next == column || !columns.varies(next)) continue;
    gains.emplace_back(-explained, next);
  }
  std::sort(gains.begin(), gains.end());
  std::vector<int64_t> result;
  result.reserve(gains.size());
  for (const auto& [gain, next] : gains) result.push_back(next);
  return result;
}

Vector GaussianCosts::coefficients(int64_t column, std::span<const int64_t> parents) const {
  return regress(matrix(column), column, parents).coefficients;
}

Matrix GaussianCosts::alone() const {
  constexpr double kLeastIndependent = 1e-10;  // a correlation of 1 says no more than this one
  Matrix result(features(), features());
  for (int64_t j = 0; j < features(); ++j) {
    const Matrix& own = matrix(j);
    for (int64_t i = 0; i < features(); ++i) {
      const double scale = own(i, i) * own(j, j);
      const double squared = scale > 0 ? own(i, j) * own(i, j) / scale : 0;
      result(i, j) = -std::log(std::max(1 - squared, kLeastIndependent));
    }
  }
  return result;
}

bool tells_of(const std::vector<std::vector<int64_t>>& targets, int64_t cause, int64_t effect) {
  return std::any_of(targets.begin(), targets.end(), [&](const std::vector<int64_t>& set) {
    return std::ranges::count(set, cause) != std::ranges::count(set, effect);
  });
}

namespace {

constexpr int64_t kMostStored = int64_t{1} << 26;
constexpr int64_t kNumbersOfStep = 16;

}  // namespace

// One step of a growing set. `from` is the previous step in the tree of its column.
struct ParentSearch::Step {
  struct Branch {
    int64_t column;
    int64_t step = -1;  ///< in the tree, after the first visit
  };
  int64_t from, added;
  bool branched = false;
  std::vector<Branch> branches = {};
  std::optional<ParentSet> shrunk = {};
};

ParentSearch::ParentSearch(const ParentCosts& costs, const AllowedEdges& edges)
    : costs_(costs),
      edges_(edges),
      required_(static_cast<size_t>(costs.features())),
      trees_(static_cast<size_t>(costs.features())) {
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
  if (std::ssize(set) >= costs_.most(column)) return;
  const std::vector<int64_t> better = costs_.better(column, set);
  step.branches.reserve(better.size());
  for (const int64_t next : better) {
    if (edges_.allowed(next, column)) step.branches.push_back({next});
  }
  stored_ += std::ssize(step.branches) + kNumbersOfStep;
}

void ParentSearch::shrink(int64_t column, Step& step) {
  std::vector<int64_t> parents = added(column, step);
  std::sort(parents.begin(), parents.end());
  for (;;) {
    Vector without;
    ParentSet set = costs_.of(column, std::move(parents), &without);
    int64_t worst = -1;
    for (int64_t k = 0; k < without.size(); ++k) {
      if (edges_.required(set.parents[static_cast<size_t>(k)], column)) continue;
      if (without[k] < (worst < 0 ? set.cost : without[worst])) worst = k;
    }
    if (worst < 0) {
      step.shrunk = std::move(set);
      return;
    }
    parents = std::move(set.parents);
    parents.erase(parents.begin() + worst);
  }
}

const ParentSet& ParentSearch::best(int64_t column, std::span<const int64_t> place, int64_t end,
                                    std::vector<int64_t>* looked_at) {
  if (looked_at != nullptr) looked_at->clear();
  if (stored_ > kMostStored) forget();
  std::vector<Step>& tree = trees_[static_cast<size_t>(column)];
  size_t at = 0;
  for (bool grows = true; grows;) {
    if (!tree[at].branched) branch(column, tree[at]);
    grows = false;
    for (Step::Branch& each : tree[at].branches) {
      if (looked_at != nullptr) looked_at->push_back(each.column);
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

LookedAt::LookedAt(int64_t features)
    : words_((features + 63) / 64),
      bits_(static_cast<size_t>(features * words_)),
      columns_(static_cast<size_t>(features)) {}

const ParentSet& LookedAt::best(ParentSearch& search, int64_t column,
                                std::span<const int64_t> place, int64_t end) {
  std::vector<int64_t>& own = columns_[static_cast<size_t>(column)];
  for (const int64_t other : own) bits_[word(column, other)] = 0;
  const ParentSet& found = search.best(column, place, end, &own);
  for (const int64_t other : own) bits_[word(column, other)] |= uint64_t{1} << (other % 64);
  return found;
}

}  // namespace nsimplex::causal
