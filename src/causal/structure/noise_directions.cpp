// Turns edges of a linear causal graph by noise that is not Gaussian.

#include "causal/structure/noise_directions.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "causal/graph/acyclic.h"
#include "causal/graph/edge_constraints.h"
#include "causal/structure/noise_input.h"
#include "causal/structure/noise_order.h"

namespace nsimplex::causal {
namespace {

constexpr int64_t kMostOrdered = 50;     // columns up to which a second start is tried
constexpr int64_t kOrderRows = 300;      // rows that decide the order of the second start
constexpr double kLeastDecrease = 1e-9;  // of the cost by a step, per row

using Causes = std::vector<int64_t>;  // ascending
using Square = Eigen::MatrixXd;

// The inverse, or of causes that determine each other the pseudo-inverse.
Square inverse_of(const Square& covariance) {
  const auto count = covariance.rows();
  if (count == 0) return covariance;
  const Eigen::LLT<Square> factor(covariance);
  if (factor.info() == Eigen::Success &&
      factor.matrixLLT().diagonal().minCoeff() >= std::sqrt(kLeastNoise)) {
    return factor.solve(Square::Identity(count, count));
  }
  const Eigen::SelfAdjointEigenSolver<Square> parts(covariance);
  const Vector& values = parts.eigenvalues();
  const double least = static_cast<double>(count) * std::numeric_limits<double>::epsilon() *
                       values.cwiseAbs().maxCoeff();
  const Vector inverted =
      (values.array().abs() > least).select(values.array().inverse(), 0.0).matrix();
  return parts.eigenvectors() * inverted.asDiagonal() * parts.eigenvectors().transpose();
}

// P(X > 2 half) of a chi-squared variable of 2 `count` degrees of freedom, count >= 1: a Poisson
// variable of mean `half` is less than `count`.
double chi_squared_tail(int64_t count, double half) {
  if (half <= 0) return 1;
  double total = 0, logarithm = -half;  // of each probability
  for (int64_t k = 0; k < count; ++k) {
    if (k > 0) logarithm += std::log(half / static_cast<double>(k));
    total += std::exp(logarithm);
  }
  return std::min(total, 1.0);
}

// Which columns have at most 2 sqrt(n) different values. A regression on such a column is no line
// through a cloud of points, and noises of it say nothing about directions.
std::vector<char> few_valued_columns(const Square& columns) {
  std::vector<char> found;
  const double most = 2 * std::sqrt(static_cast<double>(columns.rows()));
  for (Eigen::Index column = 0; column < columns.cols(); ++column) {
    std::vector<double> values(columns.col(column).begin(), columns.col(column).end());
    std::ranges::sort(values);
    const auto repeated = std::ranges::unique(values);
    values.erase(repeated.begin(), repeated.end());
    found.push_back(static_cast<double>(values.size()) <= most ? 1 : 0);
  }
  return found;
}

// Of a column on its causes.
struct CausesFit {
  double variance;  // of the residual
  Vector slopes;    // [p]
  Vector inverse;   // [p]: diagonal of the inverse covariance of the causes
  std::optional<double> negentropy = {};
};

// Steps from one graph to the next; columns have mean 0 and variance 1.
class NoiseSearch {
 public:
  NoiseSearch(const Square& columns, AdjacencyLists causes, const AllowedEdges& allowed,
              const EdgeConstraints& constraints, const std::function<bool()>& go_on)
      : columns_(columns),
        covariance_(columns.transpose() * columns / static_cast<double>(columns.rows())),
        rows_(static_cast<double>(columns.rows())),
        price_(2 * std::log(rows_)),
        few_valued_(few_valued_columns(columns)),
        causes_(std::move(causes)),
        allowed_(allowed),
        constraints_(constraints),
        go_on_(go_on) {}

  const AdjacencyLists& causes() const { return causes_; }
  void set_causes(AdjacencyLists causes) { causes_ = std::move(causes); }
  bool interrupted() const { return interrupted_; }

  int64_t few_valued() const { return std::ranges::count(few_valued_, 1); }

  double p_value() {
    if (few_valued() == features()) return 1;
    double total = 0;
    for (int64_t column = 0; column < features(); ++column) {
      if (!has_few_values(column)) total += negentropy_of(column, causes_of(column));
    }
    return chi_squared_tail(features() - few_valued(), rows_ * total);
  }

  // Sweeps over all edges and columns until nothing changes; the decrease of the cost.
  double improve() {
    double total = 0, before = -1;
    while (total > before && go_on()) {
      before = total;
      for (int64_t effect = 0; effect < features() && go_on(); ++effect) {
        for (const int64_t cause : Causes(causes_of(effect))) {
          if (std::ranges::binary_search(causes_of(effect), cause)) total += reverse(cause, effect);
        }
      }
      for (int64_t effect = 0; effect < features() && go_on(); ++effect) {
        total += regrow(effect, descendants(effect));
      }
    }
    return total;
  }

  // The graph of lowest Gaussian cost in the order that the noises suggest; the decrease of the
  // whole cost.
  double restart() {
    const Order order = noise_order(columns_.topRows(std::min(columns_.rows(), kOrderRows)),
                                    Precedence(constraints_, features()), [&] { return go_on(); });
    if (order.empty()) return 0;
    const double before = cost();
    std::vector<char> later(causes_.size(), 1);
    for (const int64_t column : order) {
      Causes& own = causes_[static_cast<size_t>(column)];
      std::erase_if(own, [&](int64_t cause) { return !allowed_.required(cause, column); });
    }
    for (const int64_t column : order) {
      regrow(column, later);
      later[static_cast<size_t>(column)] = 0;
    }
    return before - cost();
  }

  Matrix coefficients() {
    Matrix found = Matrix::Zero(features(), features());
    for (int64_t effect = 0; effect < features(); ++effect) {
      const Causes& own = causes_of(effect);
      const Vector& slopes = fit(effect, own).slopes;
      for (size_t k = 0; k < own.size(); ++k) {
        found(own[k], effect) = slopes[static_cast<Eigen::Index>(k)];
      }
    }
    return found;
  }

 private:
  int64_t features() const { return std::ssize(causes_); }
  const Causes& causes_of(int64_t effect) const { return causes_[static_cast<size_t>(effect)]; }

  bool go_on() {
    interrupted_ = interrupted_ || !go_on_();
    return !interrupted_;
  }

  bool has_few_values(int64_t column) const {
    return few_valued_[static_cast<size_t>(column)] != 0;
  }

  // Whether the cost falls by more than rounding.
  bool falls(double gain) const { return gain > kLeastDecrease * rows_; }

  double reverse(int64_t cause, int64_t effect) {
    if (!allowed_.allowed(effect, cause) || allowed_.required(cause, effect)) return 0;
    if (has_few_values(cause) || has_few_values(effect)) return 0;
    if (joined_otherwise(cause, effect)) return 0;
    Causes both;
    std::ranges::set_union(causes_of(cause), causes_of(effect), std::back_inserter(both));
    std::erase(both, cause);
    Causes of_cause = only_allowed(both, cause), of_effect = only_allowed(both, effect);
    of_cause.insert(std::ranges::lower_bound(of_cause, effect), effect);
    of_cause = pruned(cause, std::move(of_cause), effect);
    of_effect = pruned(effect, std::move(of_effect));
    const double gain = cost_of(cause, causes_of(cause)) + cost_of(effect, causes_of(effect)) -
                        cost_of(cause, of_cause) - cost_of(effect, of_effect);
    if (!falls(gain)) return 0;
    causes_[static_cast<size_t>(cause)] = std::move(of_cause);
    causes_[static_cast<size_t>(effect)] = std::move(of_effect);
    return gain;
  }

  // Adds causes that lower the Gaussian cost, the best first, and drops others.
  double regrow(int64_t effect, const std::vector<char>& barred) {
    Causes own = causes_of(effect);
    while (std::ssize(own) < std::max<int64_t>(columns_.rows() / 10, 1)) {
      const Causes others = open_causes(effect, own, barred);
      if (others.empty()) break;
      const CausesFit& now = fit(effect, own);
      const Square between = covariance_(own, others);
      const Square through = inverse_of(covariance_(own, own)) * between;
      const Vector shared = covariance_.col(effect)(others) - between.transpose() * now.slopes;
      const Vector free =
          (1 - between.cwiseProduct(through).colwise().sum().array()).max(kLeastNoise).transpose();
      Eigen::Index best = 0;
      const double most = (shared.array().square() / free.array()).maxCoeff(&best);
      const double after = std::max(now.variance - most, kLeastNoise);
      if (rows_ * std::log(now.variance / after) <= price_) break;
      const int64_t cause = others[static_cast<size_t>(best)];
      own.insert(std::ranges::lower_bound(own, cause), cause);
    }
    own = pruned(effect, std::move(own));
    const double gain = cost_of(effect, causes_of(effect)) - cost_of(effect, own);
    if (!falls(gain)) return 0;
    causes_[static_cast<size_t>(effect)] = std::move(own);
    return gain;
  }

  // Allowed causes that a column does not have and that are not barred.
  Causes open_causes(int64_t effect, const Causes& own, const std::vector<char>& barred) const {
    Causes found;
    for (int64_t cause = 0; cause < features(); ++cause) {
      if (barred[static_cast<size_t>(cause)] == 0 && allowed_.allowed(cause, effect) &&
          !std::ranges::binary_search(own, cause)) {
        found.push_back(cause);
      }
    }
    return found;
  }

  Causes only_allowed(Causes causes, int64_t effect) const {
    std::erase_if(causes, [&](int64_t cause) { return !allowed_.allowed(cause, effect); });
    return causes;
  }

  // The column and all that it has paths to.
  std::vector<char> descendants(int64_t column) const {
    AdjacencyLists effects(causes_.size());
    for (int64_t effect = 0; effect < features(); ++effect) {
      for (const int64_t cause : causes_of(effect)) {
        effects[static_cast<size_t>(cause)].push_back(effect);
      }
    }
    return reached(effects, {column});
  }

  // Whether a path of two or more edges leads from cause to effect.
  bool joined_otherwise(int64_t cause, int64_t effect) const {
    Causes others = causes_of(effect);
    std::erase(others, cause);
    return reached(causes_, std::move(others))[static_cast<size_t>(cause)] != 0;
  }

  static std::vector<char> reached(const AdjacencyLists& next, Causes waiting) {
    std::vector<char> seen(next.size(), 0);
    while (!waiting.empty()) {
      const auto column = static_cast<size_t>(waiting.back());
      waiting.pop_back();
      if (seen[column] != 0) continue;
      seen[column] = 1;
      waiting.insert(waiting.end(), next[column].begin(), next[column].end());
    }
    return seen;
  }

  // Causes, one after the other, are dropped while that lowers the Gaussian cost. Required ones
  // stay, and so does `kept`.
  Causes pruned(int64_t effect, Causes causes, int64_t kept = -1) {
    while (true) {
      const CausesFit& now = fit(effect, causes);
      double least = std::numeric_limits<double>::infinity();
      size_t weakest = causes.size();
      for (size_t k = 0; k < causes.size(); ++k) {
        if (causes[k] == kept || allowed_.required(causes[k], effect)) continue;
        const auto at = static_cast<Eigen::Index>(k);
        // variance without this cause
        const double added = now.slopes[at] * now.slopes[at] / now.inverse[at];
        if (added < least) {
          least = added;
          weakest = k;
        }
      }
      if (weakest == causes.size() || rows_ * std::log1p(least / now.variance) >= price_) {
        return causes;
      }
      causes.erase(causes.begin() + static_cast<std::ptrdiff_t>(weakest));
    }
  }

  double cost() {
    double total = 0;
    for (int64_t column = 0; column < features(); ++column) {
      total += cost_of(column, causes_of(column));
    }
    return total;
  }

  double cost_of(int64_t effect, const Causes& causes) {
    const double gaussian = rows_ * std::log(fit(effect, causes).variance) +
                            price_ * static_cast<double>(causes.size());
    return gaussian - 2 * rows_ * negentropy_of(effect, causes);
  }

  CausesFit& fit(int64_t effect, const Causes& causes) {
    const auto [at, added] = fitted_.try_emplace({effect, causes});
    if (added) {
      const Vector right = covariance_.col(effect)(causes);
      const Square inverse = inverse_of(covariance_(causes, causes));
      Vector slopes = inverse * right;
      const double variance = std::max(1 - slopes.dot(right), kLeastNoise);
      at->second = {variance, std::move(slopes), inverse.diagonal()};
    }
    return at->second;
  }

  double negentropy_of(int64_t effect, const Causes& causes) {
    CausesFit& own = fit(effect, causes);
    // Below that, the causes determine the column, and what is left is rounding.
    if (own.variance < 10 * kLeastNoise) return 0;
    if (!own.negentropy) {
      Vector noise = columns_.col(effect);
      for (size_t k = 0; k < causes.size(); ++k) {
        noise -= own.slopes[static_cast<Eigen::Index>(k)] * columns_.col(causes[k]);
      }
      own.negentropy = negentropy(noise.array() / std::sqrt(own.variance));
    }
    return *own.negentropy;
  }

  const Square& columns_;  // [n, M]
  Square covariance_;
  double rows_, price_;
  std::vector<char> few_valued_;
  AdjacencyLists causes_;
  const AllowedEdges& allowed_;
  const EdgeConstraints& constraints_;
  const std::function<bool()>& go_on_;
  std::map<std::pair<int64_t, Causes>, CausesFit> fitted_;
  bool interrupted_ = false;
};

}  // namespace

TurnedGraph turned_by_noise(TableView table, TableView graph, double level,
                            const EdgeConstraints& constraints,
                            const std::function<bool()>& go_on) {
  check_noise_arguments(table, graph, level);
  const AllowedEdges allowed(constraints, table.cols());
  const AdjacencyLists given = checked_causes(graph, allowed);
  const UnitColumns unit = unit_columns(table);
  NoiseSearch search(unit.columns, given, allowed, constraints, go_on);
  TurnedGraph result{.gain = 0, .p_value = search.p_value(), .few_valued = search.few_valued()};
  if (result.p_value < level) {
    result.gain = search.improve();
    // The second start would turn edges of any column.
    if (table.cols() <= kMostOrdered && result.few_valued == 0 && !search.interrupted()) {
      AdjacencyLists found = search.causes();
      search.set_causes(given);
      double other = search.restart();
      other += search.improve();
      if (other > result.gain + kLeastDecrease * static_cast<double>(table.rows())) {
        result.gain = other;
      } else {
        search.set_causes(std::move(found));
      }
    }
  }
  result.interrupted = search.interrupted();
  result.adjacency = search.coefficients();
  for (int64_t effect = 0; effect < table.cols(); ++effect) {
    for (const int64_t cause : search.causes()[static_cast<size_t>(effect)]) {
      double& weight = result.adjacency(cause, effect);
      weight = weight * unit.deviations[effect] / unit.deviations[cause];
      if (graph(effect, cause) != 0) result.turned.push_back({cause, effect});
    }
  }
  return result;
}

}  // namespace nsimplex::causal
