// Checks which edges are required, forbidden or excluded by tiers.

#include "causal/graph/edge_constraints.h"

#include <string>

#include "causal/tables/table_arguments.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

[[noreturn]] void refuse(const char* list, size_t index, const CausalEdge& edge,
                         const std::string& expected) {
  throw InputError(std::string(list)
                       .append("[")
                       .append(std::to_string(index))
                       .append("]: expected ")
                       .append(expected)
                       .append(", got (")
                       .append(std::to_string(edge.cause))
                       .append(", ")
                       .append(std::to_string(edge.effect))
                       .append(")"));
}

void check_columns(const char* list, const std::vector<CausalEdge>& edges, int64_t features) {
  for (size_t index = 0; index < edges.size(); ++index) {
    const CausalEdge& edge = edges[index];
    const bool in_range = edge.cause >= 0 && edge.cause < features && edge.effect >= 0 &&
                          edge.effect < features && edge.cause != edge.effect;
    if (in_range) continue;
    refuse(list, index, edge,
           std::string("two different columns of 0 to ").append(std::to_string(features - 1)));
  }
}

}  // namespace

AllowedEdges::AllowedEdges(const EdgeConstraints& constraints, int64_t features)
    : features_(features),
      unconstrained_(constraints.forbidden.empty() && constraints.required.empty() &&
                     constraints.tiers.empty()),
      allowed_(static_cast<size_t>(features * features), 1),
      required_(static_cast<size_t>(features * features), 0) {
  check_columns("forbidden", constraints.forbidden, features);
  check_columns("required", constraints.required, features);
  const std::vector<int64_t>& tiers = constraints.tiers;
  if (!tiers.empty()) require_one_per_column("tiers", tiers.size(), features);
  for (int64_t cause = 0; cause < features; ++cause) {
    allowed_[at(cause, cause)] = 0;
    for (int64_t effect = 0; !tiers.empty() && effect < features; ++effect) {
      if (tiers[static_cast<size_t>(cause)] > tiers[static_cast<size_t>(effect)]) {
        allowed_[at(cause, effect)] = 0;
      }
    }
  }
  for (const CausalEdge& edge : constraints.forbidden) allowed_[at(edge.cause, edge.effect)] = 0;
  for (size_t index = 0; index < constraints.required.size(); ++index) {
    const CausalEdge& edge = constraints.required[index];
    if (!allowed(edge.cause, edge.effect)) {
      refuse("required", index, edge, "an edge that neither `forbidden` nor the tiers forbid");
    }
    required_[at(edge.cause, edge.effect)] = 1;
  }
  require_acyclic(constraints);
}

void AllowedEdges::require_acyclic(const EdgeConstraints& constraints) const {
  // Columns without a required cause among the remaining ones go first, round by round.
  std::vector<char> placed(static_cast<size_t>(features_), 0);
  const auto open = [&](const CausalEdge& edge) {
    return placed[static_cast<size_t>(edge.cause)] == 0;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t column = 0; column < features_; ++column) {
      if (placed[static_cast<size_t>(column)] != 0) continue;
      bool free = true;
      for (const CausalEdge& edge : constraints.required) {
        if (edge.effect == column && open(edge)) free = false;
      }
      if (!free) continue;
      placed[static_cast<size_t>(column)] = 1;
      moved = true;
    }
  }
  for (size_t index = 0; index < constraints.required.size(); ++index) {
    const CausalEdge& edge = constraints.required[index];
    if (open(edge) && placed[static_cast<size_t>(edge.effect)] == 0) {
      refuse("required", index, edge, "edges without a cycle on or before this one");
    }
  }
}

}  // namespace nsimplex::causal
