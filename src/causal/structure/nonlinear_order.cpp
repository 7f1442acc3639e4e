#include "causal/structure/nonlinear_order.h"

#include <algorithm>
#include <cmath>

#include "causal/structure/constraints.h"
#include "causal/structure/held_out_regression.h"
#include "causal/structure/precedence.h"

namespace nsimplex::causal {
namespace {

constexpr double kLeastGain = 0.02;  // of log variance, for an edge
constexpr size_t kCandidates = 20;   // predecessors that may become parents

class NonlinearOrderFit {
 public:
  NonlinearOrderFit(TableView table, const CausalFitOptions& options)
      : checkpoint_(options.checkpoint),
        observations_(static_cast<double>(table.rows())),
        edges_(options.constraints, table.cols()),
        precedence_(options.constraints, table.cols()),
        regression_(table, static_cast<uint64_t>(options.seed)) {}

  Structure fit() {
    const int64_t features = edges_.features();
    Structure result{Matrix::Zero(features, features), Matrix::Zero(features, features),
                     "equal variances, nonlinear"};
    const Order order = find_order();
    for (size_t k = 0; k < order.size(); ++k) {
      choose_parents(order[k], {order.begin(), order.begin() + static_cast<int64_t>(k)}, result);
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
    for (size_t k = 0; k < rest.size(); ++k) rest[k] = static_cast<int64_t>(k);
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

  // The allowed predecessors by how much the column answers to them; of those that are not required
  // the last kCandidates.
  Order candidates(int64_t column, Order predecessors) const {
    std::erase_if(predecessors, [&](int64_t each) { return !edges_.allowed(each, column); });
    if (predecessors.empty()) return predecessors;
    const Vector answers = regression_.slopes(predecessors, column).square;
    std::vector<std::pair<double, int64_t>> ranked;
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

  void choose_parents(int64_t column, const Order& predecessors, Structure& result) const {
    Order parents = candidates(column, predecessors);
    if (parents.empty()) return;
    const auto log_left = [&](const Order& causes) {
      step();
      return std::log(regression_.residuals(causes, {column})[0]);
    };
    double now = log_left(parents);
    for (const int64_t cause : Order(parents)) {
      Order others = parents;
      std::erase(others, cause);
      const double without = log_left(others);
      result.scores(cause, column) = observations_ * std::max(without - now, 0.0);
      if (without - now > kLeastGain || edges_.required(cause, column)) continue;
      parents = std::move(others);
      now = without;
    }
    if (parents.empty()) return;
    const HeldOutRegression::Slopes slopes = regression_.slopes(parents, column);
    for (size_t k = 0; k < parents.size(); ++k) {
      const auto at = static_cast<int64_t>(k);
      result.weights(parents[k], column) =
          std::copysign(std::sqrt(slopes.square[at]), slopes.mean[at]) /
          regression_.deviation(parents[k]);
    }
  }

  const std::function<void()>& checkpoint_;
  double observations_;
  AllowedEdges edges_;
  Precedence precedence_;
  HeldOutRegression regression_;
};

}  // namespace

Structure fit_nonlinear_order(TableView table, const CausalFitOptions& options) {
  return NonlinearOrderFit(table, options).fit();
}

}  // namespace nsimplex::causal
