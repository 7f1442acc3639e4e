#pragma once

#include <nsimplex/causal_options.h>

#include <functional>
#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// The edges whose weights an estimator looks for. A vector of weights has one number an edge, all
/// causes of effect 0 first, then those of effect 1, ..., causes ascending.
class CandidateEdges {
 public:
  using Filter = std::function<bool(int64_t cause, int64_t effect)>;

  /// Every edge that the constraints allow, that closes no cycle with required edges, and that
  /// passes `filter`; required edges need not pass it. Throws InputError as AllowedEdges does.
  /// Complexity: O(M^2), and O(M |required|) for the cycles.
  CandidateEdges(const EdgeConstraints& constraints, int64_t features, const Filter& filter = {});

  int64_t features() const { return static_cast<int64_t>(first_.size()) - 1; }
  int64_t size() const { return static_cast<int64_t>(causes_.size()); }

  /// The edges into `effect` are first(effect) .. first(effect + 1) - 1.
  int64_t first(int64_t effect) const { return first_[static_cast<size_t>(effect)]; }
  int64_t cause(int64_t edge) const { return causes_[static_cast<size_t>(edge)]; }

  /// The weight of the l1 norm at each edge: nothing at a required one.
  Vector penalties(double sparsity) const;

  /// [M, M] with the weights in their places, zeros elsewhere.
  Matrix matrix(const Vector& weights) const;

  /// For each edge i -> j its A_ij.
  Vector weights(const Matrix& matrix) const;

 private:
  std::vector<int64_t> first_, causes_;
  std::vector<char> required_;
};

}  // namespace nsimplex::causal
