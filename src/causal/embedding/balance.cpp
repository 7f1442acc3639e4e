#include "causal/embedding/balance.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace nsimplex::causal {
namespace {

constexpr double kLogGrid = 1 << 20;  // log b is rounded to one over this
constexpr double kBalanced = 1e-13;   // of the residual that is left, by the first one
constexpr double kMostLog = 6.9078;   // log 1000

struct Edge {
  int64_t cause, effect;
};

// What log b changes by when the unknowns [x; mu] change: x_j - x_i - mu, edge by edge.
Vector changes(const std::vector<Edge>& edges, const Vector& unknowns) {
  const double mean = unknowns[unknowns.size() - 1];
  Vector all(std::ssize(edges));
  for (int64_t at = 0; at < all.size(); ++at) {
    all[at] = unknowns[edges[at].effect] - unknowns[edges[at].cause] - mean;
  }
  return all;
}

// The transpose of that.
Vector gathered(const std::vector<Edge>& edges, const Vector& values, int64_t unknowns) {
  Vector sums = Vector::Zero(unknowns);
  for (int64_t at = 0; at < values.size(); ++at) {
    sums[edges[at].effect] += values[at];
    sums[edges[at].cause] -= values[at];
  }
  sums[unknowns - 1] = -values.sum();
  return sums;
}

// What is left of `logs` when the best change is added: conjugate gradients of the normal equations,
// whose unknowns have directions that change nothing; started at zero they stay out of these.
Vector residual(const std::vector<Edge>& edges, Vector logs, int64_t nodes) {
  const int64_t unknowns = nodes + 1;
  Vector slope = -gathered(edges, logs, unknowns), direction = slope;
  double size = slope.squaredNorm();
  const double enough = kBalanced * kBalanced * size;
  for (int64_t step = 0; step < 2 * unknowns && size > enough; ++step) {
    const Vector change = changes(edges, direction);
    const double length = size / change.squaredNorm();
    if (!std::isfinite(length)) break;
    logs += length * change;
    slope = -gathered(edges, logs, unknowns);
    const double before = size;
    size = slope.squaredNorm();
    direction = slope + size / before * direction;
  }
  return logs;
}

}  // namespace

SparseGraph balanced(const SparseGraph& graph) {
  SparseGraph magnitudes = graph.cwiseAbs();
  magnitudes.prune([](int64_t, int64_t, double value) { return value > 0; });
  magnitudes.makeCompressed();
  std::vector<Edge> edges;
  for (int64_t node = 0; node < magnitudes.rows(); ++node) {
    for (SparseGraph::InnerIterator entry(magnitudes, node); entry; ++entry) {
      edges.push_back({node, entry.col()});
    }
  }
  if (edges.empty()) return magnitudes;
  Vector logs(std::ssize(edges));
  for (int64_t at = 0; at < logs.size(); ++at) logs[at] = std::log(magnitudes.valuePtr()[at]);
  logs.array() -= logs.mean();  // a part of mu that costs no digits
  logs = residual(edges, logs, graph.rows());
  for (int64_t at = 0; at < logs.size(); ++at) {
    const double rounded = std::round(logs[at] * kLogGrid) / kLogGrid;
    magnitudes.valuePtr()[at] = std::exp(std::clamp(rounded, -kMostLog, kMostLog));
  }
  return magnitudes;
}

}  // namespace nsimplex::causal
