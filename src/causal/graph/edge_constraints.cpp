// Checks which edges are required, forbidden or excluded by tiers.

#include "causal/graph/edge_constraints.h"

#include <algorithm>
#include <string>

#include "causal/tables/column_error.h"
#include "causal/tables/table_arguments.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

std::string place_in(const char* list, size_t index, const std::string& expected) {
  return std::string(list)
      .append("[")
      .append(std::to_string(index))
      .append("]: expected ")
      .append(expected)
      .append(", got ");
}

// Of an edge between columns that exist.
[[noreturn]] void refuse(const char* list, size_t index, const CausalEdge& edge,
                         const std::string& expected) {
  throw ColumnError(place_in(list, index, expected) + "({}, {})", {edge.cause, edge.effect});
}

void check_pairs(const char* list, const std::vector<CausalEdge>& edges, int64_t features) {
  for (size_t index = 0; index < edges.size(); ++index) {
    const CausalEdge& edge = edges[index];
    const bool in_range = edge.cause >= 0 && edge.cause < features && edge.effect >= 0 &&
                          edge.effect < features && edge.cause != edge.effect;
    if (in_range) continue;
    const std::string expected =
        std::string("two different columns of 0 to ").append(std::to_string(features - 1));
    throw InputError(place_in(list, index, expected)
                         .append("(")
                         .append(std::to_string(edge.cause))
                         .append(", ")
                         .append(std::to_string(edge.effect))
                         .append(")"));
  }
}

void check_columns(const char* list, const std::vector<int64_t>& columns, int64_t features) {
  for (const int64_t column : columns) {
    if (column >= 0 && column < features) continue;
    throw InputError(std::string(list)
                         .append(": expected columns 0 to ")
                         .append(std::to_string(features - 1))
                         .append(", got ")
                         .append(std::to_string(column)));
  }
}

}  // namespace

AllowedEdges::AllowedEdges(const EdgeConstraints& constraints, int64_t features)
    : features_(features),
      unconstrained_(constraints == EdgeConstraints()),
      allowed_(static_cast<size_t>(features * features), 1),
      required_(static_cast<size_t>(features * features), 0) {
  check_pairs("forbidden", constraints.forbidden, features);
  check_pairs("required", constraints.required, features);
  check_pairs("paths", constraints.paths, features);
  check_columns("exogenous", constraints.exogenous, features);
  check_columns("sinks", constraints.sinks, features);
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
  for (int64_t other = 0; other < features; ++other) {
    for (const int64_t column : constraints.exogenous) allowed_[at(other, column)] = 0;
    for (const int64_t column : constraints.sinks) allowed_[at(column, other)] = 0;
  }
  for (const CausalEdge& edge : constraints.forbidden) allowed_[at(edge.cause, edge.effect)] = 0;
  for (size_t index = 0; index < constraints.required.size(); ++index) {
    const CausalEdge& edge = constraints.required[index];
    if (!allowed(edge.cause, edge.effect)) {
      refuse("required", index, edge,
             "an edge that neither `forbidden`, tiers, exogenous nor sinks forbid");
    }
    required_[at(edge.cause, edge.effect)] = 1;
  }
  require_acyclic(constraints);
}

void AllowedEdges::require_acyclic(const EdgeConstraints& constraints) const {
  std::vector<CausalEdge> all = constraints.required;
  all.insert(all.end(), constraints.paths.begin(), constraints.paths.end());
  // Columns without a required cause among the remaining ones go first, round by round.
  std::vector<char> placed(static_cast<size_t>(features_), 0);
  const auto open = [&](const CausalEdge& edge) {
    return placed[static_cast<size_t>(edge.cause)] == 0;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t column = 0; column < features_; ++column) {
      if (placed[static_cast<size_t>(column)] != 0) continue;
      const bool waits = std::ranges::any_of(
          all, [&](const CausalEdge& edge) { return edge.effect == column && open(edge); });
      if (waits) continue;
      placed[static_cast<size_t>(column)] = 1;
      moved = true;
    }
  }
  const size_t edges = constraints.required.size();
  for (size_t index = 0; index < all.size(); ++index) {
    if (!open(all[index]) || placed[static_cast<size_t>(all[index].effect)] != 0) continue;
    const bool edge = index < edges;
    refuse(edge ? "required" : "paths", edge ? index : index - edges, all[index],
           edge ? "edges without a cycle on or before this one"
                : "paths without a cycle on or before this one");
  }
}

}  // namespace nsimplex::causal
