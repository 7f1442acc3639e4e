// Evaluates a causal graph against the true one: edges, thresholds, interventions and sortability.

#include "causal/graph/graph_metrics.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "causal/graph/acyclic.h"
#include "support/ranking_metrics.h"

namespace nsimplex::causal {

EdgeErrors edge_errors(const Matrix& graph, const Matrix& truth) {
  EdgeErrors errors;
  BinaryCounts counts;
  for (Eigen::Index i = 0; i < graph.rows(); ++i) {
    for (Eigen::Index j = i + 1; j < graph.cols(); ++j) {
      const bool there = graph(i, j) != 0.0, back = graph(j, i) != 0.0;
      const bool true_there = truth(i, j) != 0.0, true_back = truth(j, i) != 0.0;
      counts.add(there, true_there);
      counts.add(back, true_back);
      errors.edges += there + back;
      errors.true_edges += true_there + true_back;
      errors.shd += there != true_there || back != true_back;
      if (!true_there && !true_back) {
        errors.extra += there + back;
      } else if (!there && !back) {
        errors.missing += true_there + true_back;
      } else {
        errors.reversed += there != back && true_there != true_back && there != true_there;
      }
    }
  }
  errors.precision = counts.precision();
  errors.recall = counts.recall();
  errors.f1 = counts.f1();
  errors.false_discovery_rate = errors.edges == 0 ? 0.0 : 1.0 - errors.precision;
  return errors;
}

EdgeRanking edge_ranking(const Matrix& scores, const Matrix& truth) {
  std::vector<double> values;
  std::vector<uint8_t> positive;
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    for (Eigen::Index j = 0; j < scores.cols(); ++j) {
      if (i == j) continue;
      values.push_back(scores(i, j));
      positive.push_back(truth(i, j) != 0.0);
    }
  }
  return {area_under_roc(values, positive), average_precision(values, positive)};
}

BestThreshold best_threshold(const Matrix& weights, const Matrix& truth) {
  struct Candidate {
    double size;
    Eigen::Index cause, effect;
  };
  std::vector<Candidate> candidates;
  for (Eigen::Index cause = 0; cause < weights.rows(); ++cause) {
    for (Eigen::Index effect = 0; effect < weights.cols(); ++effect) {
      const double size = std::abs(weights(cause, effect));
      if (cause != effect && size > 0.0) candidates.push_back({size, cause, effect});
    }
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.size > b.size; });
  Matrix graph = Matrix::Zero(weights.rows(), weights.cols());
  int64_t shd = edge_errors(graph, truth).shd;
  BestThreshold best{std::numeric_limits<double>::infinity(), shd};
  const auto differs = [&](Eigen::Index i, Eigen::Index j) {
    return (graph(i, j) != 0.0) != (truth(i, j) != 0.0) ||
           (graph(j, i) != 0.0) != (truth(j, i) != 0.0);
  };
  for (size_t next = 0; next < candidates.size(); ++next) {
    const auto& [size, cause, effect] = candidates[next];
    shd -= differs(cause, effect);
    graph(cause, effect) = 1.0;
    shd += differs(cause, effect);
    const bool whole = next + 1 == candidates.size() || candidates[next + 1].size < size;
    if (whole && shd < best.shd) best = {size, shd};
  }
  return best;
}

namespace {

// Checks what the true graph says of interventions on one node with adjustment for a set Z. Z is
// right for (i, j) if no directed walk from i to j meets Z and Z blocks every other walk that does
// not return to i. On walks, a collider is open if it is in Z itself.
class AdjustmentCheck {
 public:
  explicit AdjustmentCheck(const Matrix& truth)
      : causes_(causes_of(truth)), effects_(effects_of(truth)), adjusted_(causes_.size()) {}

  // The number of j for which the adjustment of i for Z is wrong.
  int64_t errors(int64_t cause, const std::vector<int64_t>& adjustment) {
    cause_ = cause;
    seen_.assign(causes_.size(), {});
    for (const int64_t node : adjustment) adjusted_[static_cast<size_t>(node)] = 1;
    for (const int64_t effect : effects_[static_cast<size_t>(cause)]) push(effect, kDirected);
    for (const int64_t parent : causes_[static_cast<size_t>(cause)]) push(parent, kUp);
    while (!open_.empty()) {
      const Walk walk = open_.back();
      open_.pop_back();
      go_on(walk);
    }
    int64_t count = 0;
    for (size_t node = 0; node < seen_.size(); ++node) {
      const std::array<bool, kKinds>& reached = seen_[node];
      const bool descends = reached[kDirected] || reached[kDirectedThroughSet];
      // A node of Z counts as no descendant of i; any other counts as one that Z isolates.
      count += adjusted_[node] != 0
                   ? descends
                   : reached[kDirectedThroughSet] || reached[kUp] || reached[kDown];
    }
    for (const int64_t node : adjustment) adjusted_[static_cast<size_t>(node)] = 0;
    return count;
  }

 private:
  // Walks from i by their last edge: directed all the way, without Z before the end or with it, or
  // of another shape, with their last edge against its direction (up) or along it (down), and open.
  enum Kind { kDirected, kDirectedThroughSet, kUp, kDown, kKinds };
  struct Walk {
    int64_t end;
    Kind kind;
  };

  void push(int64_t end, Kind kind) {
    bool& seen = seen_[static_cast<size_t>(end)][kind];
    if (end == cause_ || seen) return;
    seen = true;
    open_.push_back({end, kind});
  }

  void go_on(const Walk& walk) {
    const auto node = static_cast<size_t>(walk.end);
    const bool in_set = adjusted_[node] != 0;
    const auto down = [&](Kind kind) {
      for (const int64_t effect : effects_[node]) push(effect, kind);
    };
    const auto up = [&] {
      for (const int64_t parent : causes_[node]) push(parent, kUp);
    };
    if (walk.kind == kDirectedThroughSet) return down(kDirectedThroughSet);
    if (walk.kind == kDirected) down(in_set ? kDirectedThroughSet : kDirected);
    if (walk.kind == kUp) {
      if (in_set) return;
      up();
      return down(kDown);
    }
    if (in_set) return up();  // a collider
    if (walk.kind == kDown) down(kDown);
  }

  const AdjacencyLists causes_, effects_;
  std::vector<char> adjusted_;
  std::vector<std::array<bool, kKinds>> seen_;
  std::vector<Walk> open_;
  int64_t cause_ = 0;
};

}  // namespace

std::optional<int64_t> intervention_distance(const Matrix& graph, const Matrix& truth) {
  if (!causal_order(graph) || !causal_order(truth)) return std::nullopt;
  const AdjacencyLists adjustments = causes_of(graph);
  AdjustmentCheck check(truth);
  int64_t distance = 0;
  for (size_t node = 0; node < adjustments.size(); ++node) {
    distance += check.errors(static_cast<int64_t>(node), adjustments[node]);
  }
  return distance;
}

namespace {

// Added to the diagonal, so that a covariance without full rank can be inverted.
constexpr double kRidge = 1e-10;

// Sets of nodes, one per node, as rows of bits.
class NodeSets {
 public:
  explicit NodeSets(size_t nodes) : words_((nodes + 63) / 64), bits_(nodes * words_, 0) {}

  void insert(size_t set, size_t node) {
    bits_[set * words_ + node / 64] |= uint64_t{1} << node % 64;
  }
  void unite(size_t set, const NodeSets& others, size_t other) {
    for (size_t word = 0; word < words_; ++word) {
      bits_[set * words_ + word] |= others.bits_[other * words_ + word];
    }
  }
  template <class Visit>
  void each(size_t set, Visit&& visit) const {
    for (size_t word = 0; word < words_; ++word) {
      for (uint64_t left = bits_[set * words_ + word]; left != 0; left &= left - 1) {
        visit(64 * word + static_cast<size_t>(std::countr_zero(left)));
      }
    }
  }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

}  // namespace

Vector column_variances(TableView table) {
  const Eigen::RowVectorXd mean = table.colwise().mean();
  return (table.rowwise() - mean).colwise().squaredNorm().transpose() /
         static_cast<double>(table.rows());
}

namespace {

// R^2 of unit columns that have more entries than there are columns, or fewer. The second way has
// products of rows instead of columns.
Vector r2_of(const Matrix& unit) {
  if (unit.rows() >= unit.cols()) {
    Matrix correlation = unit.transpose() * unit;
    correlation.diagonal().array() += kRidge;
    const Matrix inverse =
        correlation.llt().solve(Matrix::Identity(correlation.rows(), correlation.cols()));
    return 1.0 - inverse.diagonal().array().inverse();
  }
  // (Z^T Z + r I)^-1 = (I - Z^T (Z Z^T + r I)^-1 Z) / r
  Matrix products = unit * unit.transpose();
  products.diagonal().array() += kRidge;
  Matrix leverage = unit;
  products.llt().matrixL().solveInPlace(leverage);
  const Vector left = 1.0 - leverage.colwise().squaredNorm().transpose().array();
  return 1.0 - kRidge / left.array().max(kRidge);
}

}  // namespace

Vector column_r2(TableView table) {
  const Eigen::RowVectorXd mean = table.colwise().mean();
  Matrix scaled = table.rowwise() - mean;
  const Eigen::RowVectorXd norms = scaled.colwise().norm();
  for (Eigen::Index column = 0; column < scaled.cols(); ++column) {
    if (norms(column) > 0.0) scaled.col(column) /= norms(column);
  }
  return r2_of(scaled);
}

namespace {

// The variances of standardised columns, for example, which say nothing about an order.
bool equal_but_for_rounding(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

}  // namespace

double sortability(const Vector& numbers, const Matrix& graph) {
  const AdjacencyLists effects = effects_of(graph);
  const size_t nodes = effects.size();
  NodeSets reached(nodes);  // by paths of k edges
  for (size_t node = 0; node < nodes; ++node) {
    for (const int64_t effect : effects[node]) reached.insert(node, static_cast<size_t>(effect));
  }
  int64_t pairs = 0;
  double ordered = 0.0;
  for (size_t length = 1; length < nodes; ++length) {
    const int64_t before = pairs;
    for (size_t node = 0; node < nodes; ++node) {
      const double number = numbers(static_cast<Eigen::Index>(node));
      reached.each(node, [&](size_t effect) {
        const double other = numbers(static_cast<Eigen::Index>(effect));
        ++pairs;
        ordered += equal_but_for_rounding(number, other) ? 0.5 : number < other ? 1.0 : 0.0;
      });
    }
    if (pairs == before) break;
    NodeSets further(nodes);
    for (size_t node = 0; node < nodes; ++node) {
      for (const int64_t effect : effects[node]) {
        further.unite(node, reached, static_cast<size_t>(effect));
      }
    }
    reached = std::move(further);
  }
  return pairs == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : ordered / static_cast<double>(pairs);
}

}  // namespace nsimplex::causal
