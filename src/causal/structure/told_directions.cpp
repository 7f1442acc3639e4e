// The completed graph of an equivalence class, and which directions of a fit its data tell.

#include "causal/structure/told_directions.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "causal/graph/edge_constraints.h"
#include "causal/tensors.h"

namespace nsimplex::causal {
namespace {

using at::Tensor;

// Edges i -> j of undirected pairs that Meek's rules direct. `apart`: 1 for pairs without an edge.
Tensor directed_by_rules(const Tensor& fixed, const Tensor& loose, const Tensor& apart) {
  const Tensor arrows = fixed.to(at::kDouble), lines = loose.to(at::kDouble);
  // i -> j - k and no edge i, k: then j -> k.
  const Tensor first = loose.logical_and(arrows.t().mm(apart).gt(0));
  // i -> j -> k and i - k: then i -> k.
  const Tensor second = loose.logical_and(arrows.mm(arrows).gt(0));
  Tensor found = first.logical_or(second);
  const Tensor joined = fixed.logical_or(fixed.t()).logical_or(loose);
  const Tensor open =
      loose.logical_and(found.logical_not()).logical_and(lines.mm(arrows).gt(0)).nonzero();
  for (int64_t row = 0; row < open.size(0); ++row) {
    const int64_t i = open[row][0].item<int64_t>(), k = open[row][1].item<int64_t>();
    const Tensor into = fixed.select(1, k);
    // i - k, i - j -> k, i - l -> k and no edge j, l: then i -> k.
    const Tensor between = loose[i].logical_and(into).nonzero().flatten();
    // i - k, i - l -> j -> k, an edge i, j and no edge l, k: then i -> k.
    const Tensor last = joined[i].logical_and(into).nonzero().flatten();
    const Tensor start = loose[i].logical_and(apart.select(1, k).gt(0)).nonzero().flatten();
    found[i][k] = apart.index_select(0, between)
                      .index_select(1, between)
                      .any()
                      .logical_or(fixed.index_select(0, start).index_select(1, last).any());
  }
  return found;
}

// Edges of which an intervention set one end alone.
Tensor told_by_interventions(const Tensor& edges, const CausalFitOptions& options) {
  Tensor told = at::zeros_like(edges);
  std::vector<std::vector<int64_t>> known = options.targets;
  std::ranges::sort(known);
  known.erase(std::ranges::unique(known).begin(), known.end());
  for (const std::vector<int64_t>& own : known) {
    Tensor set = at::zeros({edges.size(0)}, at::kBool);
    for (const int64_t column : own) set[column] = true;
    told = told.logical_or(set.unsqueeze(1).logical_xor(set));
  }
  return told;
}

// Edges between columns whose regressions on each other have different likelihoods.
Tensor told_by_kinds(const Tensor& edges, const CausalFitOptions& options) {
  const auto category = [](ColumnKind kind) {
    return kind == ColumnKind::binary || kind == ColumnKind::category;
  };
  Tensor told = at::zeros_like(edges);
  for (int64_t i = 0; i < std::ssize(options.kinds); ++i) {
    for (int64_t j = 0; j < std::ssize(options.kinds); ++j) {
      const ColumnKind a = options.kinds[static_cast<size_t>(i)],
                       b = options.kinds[static_cast<size_t>(j)];
      const bool continuous = a == ColumnKind::continuous && b == ColumnKind::continuous;
      told[i][j] = !continuous && !(category(a) && category(b));
    }
  }
  return told;
}

Tensor told_by_constraints(const Tensor& edges, const CausalFitOptions& options) {
  const AllowedEdges allowed(options.constraints, edges.size(0));
  Tensor told = at::zeros_like(edges);
  if (allowed.unconstrained()) return told;
  for (int64_t i = 0; i < edges.size(0); ++i) {
    for (int64_t j = 0; j < edges.size(0); ++j) {
      told[i][j] = i != j && (allowed.required(i, j) || !allowed.allowed(j, i));
    }
  }
  return told;
}

// Whether the model compares variances of columns, and so directs every edge.
bool compares_variances(const std::string& model) {
  return !model.starts_with("free variances") && model != "mixed";
}

// Whether more than variances and covariances directs the edges: curves, or the shape of noise.
bool has_shape(const std::string& model) {
  return model.ends_with("nonlinear") || model.ends_with("additive") || model == kNoiseModel;
}

}  // namespace

Tensor completed_graph(const Tensor& edges, const Tensor& told) {
  const Tensor joined = edges.logical_or(edges.t());
  const Tensor apart = joined.logical_not().fill_diagonal_(false).to(at::kDouble);
  // Colliders i -> k <- j of columns i, j that no edge joins.
  Tensor fixed = edges.logical_and(apart.mm(edges.to(at::kDouble)).gt(0));
  if (told.defined()) fixed = fixed.logical_or(edges.logical_and(told));
  while (true) {
    const Tensor loose =
        joined.logical_and(fixed.logical_not()).logical_and(fixed.t().logical_not());
    const Tensor found = directed_by_rules(fixed, loose, apart);
    if (!found.any().item<bool>()) return fixed.logical_or(loose);
    fixed = fixed.logical_or(found);
  }
}

Tensor told_graph(const CausalFit& fit, const CausalFitOptions& options, bool scaled) {
  const Tensor edges = fit.adjacency.ne(0);
  if (has_shape(fit.model) || (!scaled && compares_variances(fit.model))) return edges;
  Tensor told = told_by_constraints(edges, options);
  if (!options.targets.empty()) told = told.logical_or(told_by_interventions(edges, options));
  if (!options.kinds.empty()) told = told.logical_or(told_by_kinds(edges, options));
  return completed_graph(edges, told);
}

bool has_one_variance(const Tensor& table) {
  // Deviations of the logarithm of a Gaussian column's variance, which two columns out of a hundred
  // hardly differ by.
  constexpr double kDeviations = 5;
  const Tensor moderate = times_power(table, -large_exponent(table));
  const Tensor variances = (moderate - moderate.nanmean(0)).square().nanmean(0);
  const double least = variances.min().item<double>(), most = variances.max().item<double>();
  const double deviation = std::sqrt(2 / static_cast<double>(table.size(0)));
  return least > 0 && std::log(most / least) <= kDeviations * deviation;
}

}  // namespace nsimplex::causal
