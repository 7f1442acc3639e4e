#include "causal/structure/candidate_edges.h"

#include "causal/structure/constraints.h"

namespace nsimplex::causal {
namespace {

// [M, M] flags: effect can be reached from cause along required edges.
std::vector<char> required_paths(const EdgeConstraints& constraints, int64_t features) {
  std::vector<char> reached(static_cast<size_t>(features * features), 0);
  if (constraints.required.empty()) return reached;
  std::vector<std::vector<int64_t>> effects(static_cast<size_t>(features));
  for (const CausalEdge& edge : constraints.required) {
    effects[static_cast<size_t>(edge.cause)].push_back(edge.effect);
  }
  for (int64_t start = 0; start < features; ++start) {
    std::vector<int64_t> open = {start};
    while (!open.empty()) {
      const int64_t column = open.back();
      open.pop_back();
      for (const int64_t effect : effects[static_cast<size_t>(column)]) {
        char& seen = reached[static_cast<size_t>(start * features + effect)];
        if (seen == 0) open.push_back(effect);
        seen = 1;
      }
    }
  }
  return reached;
}

}  // namespace

CandidateEdges::CandidateEdges(const EdgeConstraints& constraints, int64_t features,
                               const Filter& filter)
    : first_({0}) {
  const AllowedEdges allowed(constraints, features);
  const std::vector<char> path = required_paths(constraints, features);
  for (int64_t effect = 0; effect < features; ++effect) {
    for (int64_t cause = 0; cause < features; ++cause) {
      const bool required = allowed.required(cause, effect);
      const bool closes_cycle = path[static_cast<size_t>(effect * features + cause)] != 0;
      if (!allowed.allowed(cause, effect) || closes_cycle) continue;
      if (!required && filter && !filter(cause, effect)) continue;
      causes_.push_back(cause);
      required_.push_back(required ? 1 : 0);
    }
    first_.push_back(static_cast<int64_t>(causes_.size()));
  }
}

Vector CandidateEdges::penalties(double sparsity) const {
  Vector penalties = Vector::Constant(size(), sparsity);
  for (int64_t edge = 0; edge < size(); ++edge) {
    if (required_[static_cast<size_t>(edge)] != 0) penalties[edge] = 0;
  }
  return penalties;
}

Matrix CandidateEdges::matrix(const Vector& weights) const {
  Matrix matrix = Matrix::Zero(features(), features());
  for (int64_t effect = 0; effect < features(); ++effect) {
    for (int64_t k = first(effect); k < first(effect + 1); ++k) {
      matrix(cause(k), effect) = weights[k];
    }
  }
  return matrix;
}

Vector CandidateEdges::weights(const Matrix& matrix) const {
  Vector weights(size());
  for (int64_t effect = 0; effect < features(); ++effect) {
    for (int64_t k = first(effect); k < first(effect + 1); ++k) {
      weights[k] = matrix(cause(k), effect);
    }
  }
  return weights;
}

}  // namespace nsimplex::causal
