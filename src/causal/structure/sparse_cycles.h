#pragma once

#include "causal/structure/candidate_edges.h"
#include "causal/structure/power_iteration.h"

namespace nsimplex::causal {

/// rho(A o A), the spectral radius of the squared weights of candidate edges: 0 where they have no
/// cycle and positive where they have one. Complexity: O(edges) for each product of the power
/// iteration; one call starts where the last one ended.
///
/// Source: Lee, Danieletto, Miotto, Cherng, Dudley, "Scaling structural learning with NO-BEARS",
/// 2019; Nazaret, Hong, Azizi, Blei, "Stable differentiable causal discovery", ICML 2024.
class SpectralAcyclicity {
 public:
  explicit SpectralAcyclicity(const CandidateEdges& edges) : edges_(edges) {}

  /// The radius, and its gradient 2 A_ij left_i right_j / (left . right) at every edge i -> j.
  double operator()(const Vector& weights, Vector& gradient);

 private:
  bool find_cyclic_part(const Vector& weights);

  const CandidateEdges& edges_;
  PerronVectors vectors_;
  std::vector<char> cyclic_;  // columns that are left when sources and sinks go, again and again
};

}  // namespace nsimplex::causal
