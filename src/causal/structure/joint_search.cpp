// Learns causal graphs of any smooth functions by regression on random features.

#include "causal/structure/joint_search.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "causal/structure/parent_search.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

constexpr int64_t kMostFeatures = 100;
constexpr int64_t kRowsOfAFeature = 15;  // rows required per feature
// standard deviation of w, so that tanh is not linear within the data
constexpr double kSteepness = 1.5;
constexpr double kFarthest = 2;      // offsets lie between -kFarthest and kFarthest
constexpr double kLossRidge = 1e-5;  // relative to a feature's mean square of 1
constexpr double kLeastJointNoise = 1e-10;

}  // namespace

RandomFeatureRegression::RandomFeatureRegression(TableView table, uint64_t seed)
    : rows_(table.rows(), seed), outputs_(table.rowwise() - table.colwise().mean()) {
  const int64_t rows = table.rows();
  deviations_ = (outputs_.colwise().squaredNorm() / static_cast<double>(rows)).cwiseSqrt();
  inputs_ = outputs_ * deviations_.cwiseInverse().asDiagonal();
  RandomStream random(seed);
  const int64_t features = std::clamp<int64_t>(rows / kRowsOfAFeature, 1, kMostFeatures);
  directions_ =
      Columns::NullaryExpr(table.cols(), features, [&] { return kSteepness * random.normal(); });
  offsets_ = Vector::NullaryExpr(features, [&] { return kFarthest * (2 * random.unit() - 1); });
}

RandomFeatureRegression::Columns RandomFeatureRegression::directions(
    const std::vector<int64_t>& causes) const {
  const double scale = 1 / std::sqrt(std::max(static_cast<double>(causes.size()), 1.0));
  return scale * directions_(causes, Eigen::all);
}

RandomFeatureRegression::Columns RandomFeatureRegression::features(
    const std::vector<int64_t>& causes) const {
  const int64_t rows = inputs_.rows(), count = static_cast<int64_t>(causes.size());
  if (causes.empty()) return Columns::Ones(rows, 1);
  Columns result(rows, 1 + count + offsets_.size());
  result.col(0).setOnes();
  auto given = result.middleCols(1, count);
  given = inputs_(Eigen::all, causes);
  auto bent = result.rightCols(offsets_.size());
  bent.noalias() = given * directions(causes);
  bent.rowwise() += offsets_.transpose();
  // tanh by the exponential, which Eigen vectorises.
  bent = 1 - 2 / (1 + (2 * bent.array()).exp());
  return result;
}

RandomFeatureRegression::Columns RandomFeatureRegression::errors(
    const std::vector<int64_t>& causes, const std::vector<int64_t>& columns) const {
  return rows_.errors(features(causes), outputs_(Eigen::all, columns), kLossRidge);
}

Vector RandomFeatureRegression::residuals(const std::vector<int64_t>& causes,
                                          const std::vector<int64_t>& columns) const {
  const Vector means =
      errors(causes, columns).colwise().squaredNorm() / static_cast<double>(outputs_.rows());
  return means.cwiseMax(kLeastJointNoise * deviations_(columns).cwiseAbs2());
}

RandomFeatureRegression::Slopes RandomFeatureRegression::slopes(const std::vector<int64_t>& causes,
                                                                int64_t column) const {
  const int64_t count = static_cast<int64_t>(causes.size());
  const auto rows = static_cast<double>(inputs_.rows());
  const Columns given = features(causes);
  Columns gram = Columns::Zero(given.cols(), given.cols());
  gram.selfadjointView<Eigen::Lower>().rankUpdate(given.transpose(), 1 / rows);
  gram.diagonal().array() += kLossRidge;
  const Vector coefficient = gram.selfadjointView<Eigen::Lower>().llt().solve(
      given.transpose() * outputs_.col(column) / rows);
  // The derivative of tanh is 1 - tanh^2.
  Columns bent = given.rightCols(offsets_.size());
  bent = (1 - bent.array().square()).matrix() * coefficient.tail(offsets_.size()).asDiagonal();
  Columns slope = bent * directions(causes).transpose();
  slope.rowwise() += coefficient.segment(1, count).transpose();
  return {slope.colwise().sum() / rows, slope.colwise().squaredNorm() / rows};
}

namespace {

constexpr size_t kCandidates = 20;        // predecessors that may become parents
constexpr int64_t kAddedCandidates = 10;  // columns that may be added to a column's parents

class EqualNoiseSearch {
 public:
  EqualNoiseSearch(const RandomFeatureRegression& regression, const AllowedEdges& edges,
                   const Precedence& precedence, const std::function<void()>& checkpoint)
      : regression_(regression),
        edges_(edges),
        precedence_(precedence),
        checkpoint_(checkpoint),
        level_(edge_level(edges.features(), kFalseEdges)) {}

  ParentLists run() const {
    ParentLists result(static_cast<size_t>(edges_.features()));
    const Order order = find_order();
    for (size_t k = 0; k < order.size(); ++k) {
      const Order before(order.begin(), order.begin() + static_cast<int64_t>(k));
      result[static_cast<size_t>(order[k])] = parents(order[k], before);
    }
    return result;
  }

 private:
  void step() const {
    if (checkpoint_) checkpoint_();
  }

  Order find_order() const {
    OpenColumns columns(precedence_);
    Order placed, rest(static_cast<size_t>(edges_.features()));
    std::iota(rest.begin(), rest.end(), int64_t{0});
    while (!rest.empty()) {
      step();
      const Vector left = regression_.residuals(placed, rest);
      size_t next = rest.size();
      for (size_t k = 0; k < rest.size(); ++k) {
        if (!columns.open(rest[k])) continue;
        const auto at = [&](size_t which) { return left[static_cast<int64_t>(which)]; };
        if (next == rest.size() || at(k) < at(next)) next = k;
      }
      placed.push_back(rest[next]);
      columns.place(rest[next]);
      rest.erase(rest.begin() + static_cast<int64_t>(next));
    }
    return placed;
  }

  // The allowed predecessors, sorted by how strongly the column depends on them. Of those that are
  // not required, only the last kCandidates remain.
  Order candidates(int64_t column, Order predecessors) const {
    std::erase_if(predecessors, [&](int64_t each) { return !edges_.allowed(each, column); });
    if (predecessors.empty()) return predecessors;
    const Vector answers = regression_.slopes(predecessors, column).square;
    std::vector<std::pair<double, int64_t>> ranked;
    ranked.reserve(predecessors.size());
    for (size_t k = 0; k < predecessors.size(); ++k) {
      ranked.emplace_back(answers[static_cast<int64_t>(k)], predecessors[k]);
    }
    std::sort(ranked.begin(), ranked.end());
    Order result;
    for (size_t k = 0; k < ranked.size(); ++k) {
      const int64_t each = ranked[k].second;
      if (k + kCandidates >= ranked.size() || edges_.required(each, column)) result.push_back(each);
    }
    return result;
  }

  Vector squared_errors(const Order& causes, int64_t column) const {
    step();
    return regression_.errors(causes, {column}).col(0).array().square();
  }

  // Whether errors are larger without a candidate, by a one-sided paired test.
  bool larger(const Vector& without, const Vector& with) const {
    const Vector rise = without - with;
    const auto rows = static_cast<double>(rise.size());
    const double mean = rise.mean(), spread = (rise.array() - mean).square().sum();
    if (!(mean > 0)) return false;
    // t^2 = n mean^2 / (spread / (n - 1)).
    const double ratio = 1 / (1 + rows * mean * mean / spread);
    return f_test_level(rows - 1, 1, ratio) / 2 <= level_;
  }

  std::vector<int64_t> parents(int64_t column, const Order& predecessors) const {
    Order parents = candidates(column, predecessors);
    if (parents.empty()) return parents;
    Vector now = squared_errors(parents, column);
    for (const int64_t cause : Order(parents)) {
      if (edges_.required(cause, column)) continue;
      Order others = parents;
      std::erase(others, cause);
      Vector without = squared_errors(others, column);
      if (larger(without, now)) continue;
      parents = std::move(others);
      now = std::move(without);
    }
    std::sort(parents.begin(), parents.end());
    return parents;
  }

  const RandomFeatureRegression& regression_;
  const AllowedEdges& edges_;
  const Precedence& precedence_;
  const std::function<void()>& checkpoint_;
  double level_;
};

class Climb {
 public:
  Climb(const Residual& residual, const AllowedEdges& edges, const GaussianCost& cost,
        ParentLists start, const Matrix& alone)
      : residual_(residual), edges_(edges), cost_(cost), parents_(std::move(start)) {
    for (int64_t effect = 0; effect < edges.features(); ++effect) {
      std::vector<int64_t> causes;
      for (int64_t cause = 0; cause < edges.features(); ++cause) {
        if (edges.allowed(cause, effect)) causes.push_back(cause);
      }
      const auto most = std::min<int64_t>(kAddedCandidates, std::ssize(causes));
      std::ranges::partial_sort(causes, causes.begin() + most, {},
                                [&](int64_t cause) { return alone(cause, effect); });
      causes.resize(static_cast<size_t>(most));
      candidates_.push_back(std::move(causes));
    }
  }

  ParentLists run() {
    for (std::optional<Move> move = best_move(); move; move = best_move()) {
      for (const Change& change : *move) of(change.column) = change.parents;
    }
    return std::move(parents_);
  }

 private:
  struct Change {
    int64_t column;
    std::vector<int64_t> parents;
  };
  using Move = std::vector<Change>;

  std::vector<int64_t>& of(int64_t column) { return parents_[static_cast<size_t>(column)]; }

  bool is_parent(int64_t cause, int64_t effect) {
    return std::ranges::binary_search(of(effect), cause);
  }

  double cost(int64_t column, const std::vector<int64_t>& causes) const {
    return cost_.of(residual_(column, causes), causes.size());
  }

  double rise(const Move& move) {
    double sum = 0;
    for (const Change& each : move) {
      sum += cost(each.column, each.parents) - cost(each.column, of(each.column));
    }
    return sum;
  }

  // Whether a directed path leads from one column to another without the edge `cause` -> `effect`.
  bool leads(int64_t from, int64_t to, int64_t cause, int64_t effect) {
    std::vector<char> seen(parents_.size());
    std::vector<int64_t> waiting{to};
    while (!waiting.empty()) {
      const int64_t column = waiting.back();
      waiting.pop_back();
      if (column == from) return true;
      for (const int64_t each : of(column)) {
        if ((each == cause && column == effect) || seen[static_cast<size_t>(each)]) continue;
        seen[static_cast<size_t>(each)] = 1;
        waiting.push_back(each);
      }
    }
    return false;
  }

  std::vector<int64_t> with(int64_t cause, int64_t effect) {
    std::vector<int64_t> set = of(effect);
    set.insert(std::ranges::lower_bound(set, cause), cause);
    return set;
  }

  std::vector<int64_t> without(int64_t cause, int64_t effect) {
    std::vector<int64_t> set = of(effect);
    std::erase(set, cause);
    return set;
  }

  std::optional<Move> best_move() {
    constexpr double kLeastFall = 1e-6;
    std::optional<Move> best;
    double least = -kLeastFall;
    const auto consider = [&](Move move) {
      const double change = rise(move);
      if (change >= least) return;
      least = change;
      best = std::move(move);
    };
    for (int64_t effect = 0; effect < edges_.features(); ++effect) {
      for (const int64_t cause : std::vector<int64_t>(of(effect))) {
        if (edges_.required(cause, effect)) continue;
        consider({{effect, without(cause, effect)}});
        if (!edges_.allowed(effect, cause) || leads(cause, effect, cause, effect)) continue;
        consider({{effect, without(cause, effect)}, {cause, with(effect, cause)}});
      }
      for (const int64_t cause : candidates_[static_cast<size_t>(effect)]) {
        if (is_parent(cause, effect) || is_parent(effect, cause) || leads(effect, cause, -1, -1)) {
          continue;
        }
        consider({{effect, with(cause, effect)}});
      }
    }
    return best;
  }

  const Residual& residual_;
  const AllowedEdges& edges_;
  const GaussianCost& cost_;
  ParentLists parents_;
  std::vector<std::vector<int64_t>> candidates_;
};

}  // namespace

ParentLists joint_equal_graph(const RandomFeatureRegression& regression, const AllowedEdges& edges,
                              const Precedence& precedence,
                              const std::function<void()>& checkpoint) {
  return EqualNoiseSearch(regression, edges, precedence, checkpoint).run();
}

ParentLists climb(const Residual& residual, const AllowedEdges& edges, const GaussianCost& cost,
                  ParentLists start, const Matrix& alone) {
  return Climb(residual, edges, cost, std::move(start), alone).run();
}

}  // namespace nsimplex::causal
