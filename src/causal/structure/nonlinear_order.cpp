// Learns a nonlinear causal graph, and chooses among four models by cross-validation.

#include "causal/structure/nonlinear_order.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "causal/graph/acyclic.h"
#include "causal/structure/additive_search.h"
#include "causal/structure/joint_search.h"
#include "causal/structure/linear_order.h"
#include "causal/structure/parent_search.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

constexpr int64_t kParts = 5;

}  // namespace

CrossValidation::CrossValidation(int64_t rows, uint64_t seed)
    : parts_(static_cast<size_t>(std::min(kParts, rows))) {
  std::vector<int64_t> shuffled(static_cast<size_t>(rows));
  std::iota(shuffled.begin(), shuffled.end(), int64_t{0});
  RandomStream random(seed);
  for (size_t k = shuffled.size(); k > 1; --k) {
    std::swap(shuffled[k - 1],
              shuffled[static_cast<size_t>(random.below(static_cast<int64_t>(k)))]);
  }
  for (size_t k = 0; k < shuffled.size(); ++k) parts_[k % parts_.size()].push_back(shuffled[k]);
}

CrossValidation::Columns CrossValidation::errors(const Columns& features, const Columns& outputs,
                                                 double ridge) const {
  const int64_t count = features.cols();
  std::vector<Columns> given, squares, mixed;  // per part
  Columns square = Columns::Zero(count, count), mix = Columns::Zero(count, outputs.cols());
  for (const std::vector<int64_t>& part : parts_) {
    given.push_back(features(part, Eigen::all));
    squares.push_back(Columns::Zero(count, count));
    squares.back().selfadjointView<Eigen::Lower>().rankUpdate(given.back().transpose());
    mixed.push_back(given.back().transpose() * outputs(part, Eigen::all));
    square += squares.back();
    mix += mixed.back();
  }
  Columns errors = outputs;
  for (size_t k = 0; k < parts_.size(); ++k) {
    const auto others = static_cast<double>(features.rows() - std::ssize(parts_[k]));
    Columns gram = square - squares[k];
    gram.diagonal().array() += ridge * others;
    const Columns coefficients = gram.selfadjointView<Eigen::Lower>().llt().solve(mix - mixed[k]);
    errors(parts_[k], Eigen::all) -= given[k] * coefficients;
  }
  return errors;
}

namespace {

// Functions of several causes together need many rows and much time.
constexpr int64_t kJointRows = 50, kJointColumns = 200;
constexpr double kLinearRidge = 1e-10;  // of columns of mean square 1; it allows copies of a column

// Thrown between steps once the fit is asked to stop.
struct Stopped {};

// A graph and the family of regressions by which it was found.
struct Candidate {
  std::string model;
  ParentLists parents;
  Residual residual;
  bool equal_variances;
};

class NonlinearOrderFit {
 public:
  NonlinearOrderFit(TableView table, const CausalFitOptions& options)
      : table_(table),
        options_(options),
        checkpoint_([&options] {
          if (options.checkpoint) options.checkpoint();
          if (options.stop && options.stop()) throw Stopped();
        }),
        features_(table.cols()),
        edges_(options.constraints, features_),
        rows_(table.rows(), static_cast<uint64_t>(options.seed)),
        joint_(table, static_cast<uint64_t>(options.seed)),
        additive_(table),
        alone_(additive_.unexplained_by_one()),
        standardised_(table.rowwise() - table.colwise().mean()) {
    standardised_.colwise().normalize();
    standardised_ *= std::sqrt(observations());
  }

  // Without the time for all candidates the linear graph is the answer.
  Structure fit() {
    Structure linear = fit_order(table_, options_);
    try {
      return fit_beside(linear);
    } catch (const Stopped&) {
      linear.model += ", linear";
      return linear;
    }
  }

 private:
  Structure fit_beside(const Structure& linear) {
    std::vector<Candidate> candidates{
        {linear.model, parents_of(linear.weights), linear_residual(),
         linear.model == "equal variances"},
        {"free variances, additive", additive_graph(additive_, edges_, table_.rows(), checkpoint_),
         additive_residual(), false}};
    if (table_.rows() >= kJointRows && features_ <= kJointColumns) add_joint(candidates);
    std::vector<double> costs;
    costs.reserve(candidates.size());
    for (const Candidate& each : candidates) costs.push_back(cost(each));
    const auto best = std::ranges::min_element(costs) - costs.begin();
    const Candidate& chosen = candidates[static_cast<size_t>(best)];
    if (best > 0) return structure(chosen);
    Structure answer = linear;
    answer.model += ", linear";
    return answer;
  }

  double observations() const { return static_cast<double>(table_.rows()); }

  ParentLists parents_of(const Matrix& weights) const {
    ParentLists parents(static_cast<size_t>(features_));
    for (int64_t effect = 0; effect < features_; ++effect) {
      for (int64_t cause = 0; cause < features_; ++cause) {
        if (weights(cause, effect) != 0) parents[static_cast<size_t>(effect)].push_back(cause);
      }
    }
    return parents;
  }

  Residual linear_residual() const {
    return [this](int64_t column, const std::vector<int64_t>& causes) {
      Eigen::MatrixXd given(table_.rows(), 1 + std::ssize(causes));
      given.col(0).setOnes();
      given.rightCols(std::ssize(causes)) = standardised_(Eigen::all, causes);
      const double left =
          rows_.errors(given, standardised_.col(column), kLinearRidge).squaredNorm();
      return left / observations() * variance(column);
    };
  }

  Residual additive_residual() {
    return [this](int64_t column, const std::vector<int64_t>& causes) {
      return additive_.unexplained_held_out(column, causes, rows_) * variance(column);
    };
  }

  // Caches residuals, because searches ask for the same sets of causes repeatedly.
  Residual joint_residual() {
    return [this](int64_t column, const std::vector<int64_t>& causes) {
      const auto [at, added] = joint_residuals_.try_emplace({column, causes});
      if (added) {
        checkpoint_();
        at->second = joint_.residuals(causes, {column})[0];
      }
      return at->second;
    };
  }

  double variance(int64_t column) const { return std::pow(joint_.deviation(column), 2); }

  void add_joint(std::vector<Candidate>& candidates) {
    const Precedence precedence(options_.constraints, features_);
    const Residual residual = joint_residual();
    Candidate equal{"equal variances, nonlinear",
                    joint_equal_graph(joint_, edges_, precedence, checkpoint_), residual, true};
    const Candidate& additive = candidates[1];
    Candidate free{"free variances, nonlinear", additive.parents, residual, false};
    // If sums predict as well, functions of several causes gain nothing.
    if (cost(free) >= cost(additive)) {
      candidates.push_back(std::move(equal));
      return;
    }
    // Each model continues from its own start and from the result of the other one.
    free = climbed(free, free.parents);
    equal = climbed(equal, equal.parents);
    candidates.push_back(climbed(free, equal.parents));
    candidates.push_back(climbed(equal, free.parents));
    candidates.push_back(std::move(free));
    candidates.push_back(std::move(equal));
  }

  Candidate climbed(Candidate candidate, ParentLists start) {
    candidate.parents = std::move(start);
    GaussianCost price{EdgePrices(table_.rows(), features_)};
    // The shared noise variance depends on the graph, so it is updated with it.
    constexpr int kRounds = 3;
    for (int round = 0; round < (candidate.equal_variances ? kRounds : 1); ++round) {
      if (candidate.equal_variances) price.shared = mean_residual(candidate);
      candidate.parents =
          climb(candidate.residual, edges_, price, std::move(candidate.parents), alone_);
    }
    return candidate;
  }

  double mean_residual(const Candidate& candidate) const {
    double sum = 0;
    for (int64_t column = 0; column < features_; ++column) {
      sum += candidate.residual(column, candidate.parents[static_cast<size_t>(column)]);
    }
    return sum / static_cast<double>(features_);
  }

  double cost(const Candidate& candidate) const {
    double sum = 0, logs = 0;
    for (int64_t column = 0; column < features_; ++column) {
      checkpoint_();
      const double left =
          std::max(candidate.residual(column, candidate.parents[static_cast<size_t>(column)]),
                   1e-10 * variance(column));
      sum += left;
      logs += std::log(left);
    }
    const auto count = static_cast<double>(features_);
    if (candidate.equal_variances) return observations() * count * std::log(sum / count);
    return observations() * logs + (count - 1) * std::log(observations());
  }

  Structure structure(const Candidate& chosen) const {
    Structure result{Matrix::Zero(features_, features_), shares(chosen.parents), chosen.model};
    for (int64_t effect = 0; effect < features_; ++effect) {
      const std::vector<int64_t>& causes = chosen.parents[static_cast<size_t>(effect)];
      if (causes.empty()) continue;
      const double with = chosen.residual(effect, causes);
      const RandomFeatureRegression::Slopes slopes = joint_.slopes(causes, effect);
      for (size_t k = 0; k < causes.size(); ++k) {
        const auto at = static_cast<int64_t>(k);
        std::vector<int64_t> others = causes;
        std::erase(others, causes[k]);
        const double rise = std::log(chosen.residual(effect, others) / with);
        result.scores(causes[k], effect) += observations() * std::max(rise, 0.0);
        result.weights(causes[k], effect) =
            std::copysign(std::sqrt(slopes.square[at]), slopes.mean[at]) /
            joint_.deviation(causes[k]);
      }
    }
    return result;
  }

  // The share of each column in the sum over single columns of -log of the part that they leave of
  // another, times the price of an edge.
  Matrix shares(const ParentLists& parents) const {
    Paths paths(features_);
    for (int64_t effect = 0; effect < features_; ++effect) {
      for (const int64_t cause : parents[static_cast<size_t>(effect)]) paths.add({cause, effect});
    }
    const double price = EdgePrices(table_.rows(), features_).next(0);
    Matrix result = Matrix::Zero(features_, features_);
    for (int64_t effect = 0; effect < features_; ++effect) {
      for (int64_t cause = 0; cause < features_; ++cause) {
        if (!edges_.allowed(cause, effect) || paths.leads(effect, cause)) continue;
        result(cause, effect) = -std::log(alone_(cause, effect));
      }
      const double all = result.col(effect).sum();
      if (all > 0) result.col(effect) *= price / all;
    }
    return result;
  }

  TableView table_;
  const CausalFitOptions& options_;
  std::function<void()> checkpoint_;
  int64_t features_;
  AllowedEdges edges_;
  CrossValidation rows_;
  RandomFeatureRegression joint_;
  AdditiveRegression additive_;
  Matrix alone_;                  ///< part of a column's variance that another one does not explain
  Eigen::MatrixXd standardised_;  ///< the table, centred, with deviations of 1
  std::map<std::pair<int64_t, std::vector<int64_t>>, double> joint_residuals_;
};

}  // namespace

Structure fit_nonlinear_order(TableView table, const CausalFitOptions& options) {
  return NonlinearOrderFit(table, options).fit();
}

}  // namespace nsimplex::causal
