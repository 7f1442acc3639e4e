#include "causal/structure/parent_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "causal/structure/regression.h"

namespace nsimplex::causal {

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
