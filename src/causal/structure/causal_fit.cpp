// The public function: a tensor prepared, an estimator chosen, what it answers made a graph.
//
// causal_fit() as an operator, for Python: options by name, edges as tables of two columns.

#include <ATen/ATen.h>
#include <nsimplex/causal.h>
#include <torch/library.h>

#include <chrono>
#include <cmath>

#include "causal/graph/acyclic.h"
#include "causal/graph/edge_constraints.h"
#include "causal/option_names.h"
#include "causal/structure/cape_structure.h"
#include "causal/structure/estimators.h"
#include "causal/structure/linear_order.h"
#include "causal/structure/nonlinear_order.h"
#include "causal/structure/prepare.h"
#include "causal/tensors.h"
#include "support/error.h"
#include "support/interruptible.h"
#include "support/require.h"
#include "support/stopwatch.h"

namespace nsimplex {
namespace {

using at::Tensor;
using namespace causal;

constexpr double kThreshold = 0.2;  // that of the paper

Tensor edge_table(const std::vector<CausalEdge>& edges) {
  Tensor result = at::empty({static_cast<int64_t>(edges.size()), 2}, at::kLong);
  int64_t* at = result.mutable_data_ptr<int64_t>();
  for (const CausalEdge& edge : edges) {
    *at++ = edge.cause;
    *at++ = edge.effect;
  }
  return result;
}

// One line for each estimator.
Structure estimate(TableView table, const CausalFitOptions& options) {
  const bool has_nonlinear = options.estimator == StructureEstimator::order ||
                             options.estimator == StructureEstimator::logdet;
  if (options.nonlinear && !has_nonlinear) {
    throw InputError("nonlinear: expected estimator order or logdet, which have this choice");
  }
  switch (options.estimator) {
    case StructureEstimator::order:
      return options.nonlinear ? fit_nonlinear_order(table, options) : fit_order(table, options);
    case StructureEstimator::logdet:
      return options.nonlinear ? fit_logdet_networks(table, options) : fit_logdet(table, options);
    case StructureEstimator::notears:
      return fit_notears(table, options);
    case StructureEstimator::lowrank:
      return fit_lowrank(table, options);
    case StructureEstimator::spectral:
      return fit_spectral(table, options);
    case StructureEstimator::paper:
    case StructureEstimator::paper_lowrank:
      return fit_paper(table, options);
  }
  throw InputError("estimator: expected one of StructureEstimator");
}

void check(const CausalFitOptions& options) {
  constexpr const char* kNotNegative = "a finite number of at least 0";
  const auto not_negative = [](double value) { return value >= 0 && std::isfinite(value); };
  const double threshold = options.threshold.value_or(0), sparsity = options.sparsity.value_or(0);
  require_argument(not_negative(threshold), "threshold", kNotNegative, std::to_string(threshold));
  require_argument(not_negative(sparsity), "sparsity", kNotNegative, std::to_string(sparsity));
  require_at_least("rank", 1, options.rank);
}

double threshold_of(const CausalFitOptions& options) {
  // What `order` selects, it selects by BIC.
  const double usual = options.estimator == StructureEstimator::order ? 0 : kThreshold;
  return options.threshold.value_or(usual);
}

CausalFit fit(TableView raw, const CausalFitOptions& options) {
  const Stopwatch watch;
  check(options);
  const AllowedEdges edges(options.constraints, raw.cols());
  const double threshold = threshold_of(options);
  const Matrix table = prepared_table(raw, options.standardise);
  if (options.estimator != StructureEstimator::order && !options.standardise) {
    require_moderate_scale(raw, std::string(name_of(options.estimator)));
  }
  const Structure structure =
      estimate(TableView(table.data(), table.rows(), table.cols()), options);
  Matrix adjacency = structure.weights;
  for (int64_t cause = 0; cause < adjacency.rows(); ++cause) {
    for (int64_t effect = 0; effect < adjacency.cols(); ++effect) {
      double& weight = adjacency(cause, effect);
      if (std::abs(weight) < threshold && !edges.required(cause, effect)) weight = 0;
    }
  }
  const std::vector<CausalEdge> removed = repair_cycles(adjacency, edges);
  return {to_tensor(adjacency),
          to_tensor(structure.weights),
          to_tensor(structure.scores),
          edge_table(removed),
          structure.model,
          watch.seconds()};
}

}  // namespace

CausalFit causal_fit(const Tensor& table, const CausalFitOptions& options) {
  TORCH_CHECK_TYPE(table.scalar_type() == at::kDouble, "[causal_fit] table: expected float64, got ",
                   table.scalar_type());
  TORCH_CHECK_VALUE(table.is_cpu(), "[causal_fit] table: expected a tensor on the CPU, got one on ",
                    table.device());
  TORCH_CHECK_VALUE(table.dim() == 2, "[causal_fit] table: expected shape [n, M], got ",
                    table.sizes());
  const Tensor contiguous = table.contiguous();
  return as_function("causal_fit", [&] { return fit(view_matrix(contiguous), options); });
}

namespace causal {
namespace {

using at::Tensor;

std::vector<CausalEdge> parse_edges(const char* argument, const Tensor& edges) {
  TORCH_CHECK_VALUE(edges.dim() == 2 && edges.size(1) == 2 && edges.scalar_type() == at::kLong,
                    "[causal_fit] ", argument, ": expected int64 of shape [edges, 2], got ",
                    edges.scalar_type(), " of shape ", edges.sizes());
  const Tensor rows = edges.cpu().contiguous();
  const int64_t* at = rows.const_data_ptr<int64_t>();
  std::vector<CausalEdge> result;
  for (int64_t k = 0; k < rows.size(0); ++k) result.push_back({at[2 * k], at[2 * k + 1]});
  return result;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, std::string, double> fit(
    const Tensor& table, std::string_view estimator, bool nonlinear, bool standardise,
    std::optional<double> threshold, std::optional<double> sparsity, int64_t rank, bool sample,
    int64_t seed, const Tensor& forbidden, const Tensor& required, at::IntArrayRef tiers) {
  CausalFitOptions options;
  options.estimator = as_function(
      "causal_fit", [&] { return parse_name<StructureEstimator>("estimator", estimator); });
  options.nonlinear = nonlinear;
  options.standardise = standardise;
  options.threshold = threshold;
  options.sparsity = sparsity;
  options.rank = rank;
  options.sample = sample;
  options.seed = seed;
  options.constraints = {parse_edges("forbidden", forbidden), parse_edges("required", required),
                         tiers.vec()};
  const Interruptible interruptible;
  options.checkpoint = [&] { interruptible.check(); };
  CausalFit result = causal_fit(table, options);
  return {result.adjacency, result.weights, result.scores,
          result.removed,   result.model,   result.seconds};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "causal_fit(Tensor table, str estimator, bool nonlinear, bool standardise, float? threshold, "
      "float? sparsity, int rank, bool sample, int seed, Tensor forbidden, Tensor required, int[] "
      "tiers) -> (Tensor, Tensor, Tensor, Tensor, str, float)",
      TORCH_FN(fit));
}

}  // namespace
}  // namespace causal
}  // namespace nsimplex
