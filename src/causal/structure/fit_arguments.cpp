#include "causal/structure/fit_arguments.h"

#include <ATen/ATen.h>

#include "causal/option_names.h"
#include "support/as_function.h"

namespace nsimplex::causal {
namespace {

using at::Tensor;

std::vector<CausalEdge> parse_edges(const char* function, const char* argument,
                                    const Tensor& edges) {
  TORCH_CHECK_VALUE(edges.dim() == 2 && edges.size(1) == 2 && edges.scalar_type() == at::kLong, "[",
                    function, "] ", argument, ": expected int64 of shape [edges, 2], got ",
                    edges.scalar_type(), " of shape ", edges.sizes());
  const Tensor rows = edges.cpu().contiguous();
  const int64_t* at = rows.const_data_ptr<int64_t>();
  std::vector<CausalEdge> result;
  for (int64_t k = 0; k < rows.size(0); ++k) result.push_back({at[2 * k], at[2 * k + 1]});
  return result;
}

}  // namespace

EdgeConstraints parse_constraints(const char* function, const Tensor& forbidden,
                                  const Tensor& required, at::IntArrayRef tiers) {
  return {parse_edges(function, "forbidden", forbidden),
          parse_edges(function, "required", required), tiers.vec()};
}

Tensor edge_table(const std::vector<CausalEdge>& edges) {
  Tensor result = at::empty({static_cast<int64_t>(edges.size()), 2}, at::kLong);
  int64_t* at = result.mutable_data_ptr<int64_t>();
  for (const CausalEdge& edge : edges) {
    *at++ = edge.cause;
    *at++ = edge.effect;
  }
  return result;
}

std::vector<std::vector<int64_t>> parse_targets(const Tensor& pairs, int64_t rows) {
  TORCH_CHECK_VALUE(pairs.dim() == 2 && pairs.size(1) == 2 && pairs.scalar_type() == at::kLong,
                    "[causal_fit] targets: expected int64 of shape [targets, 2], got ",
                    pairs.scalar_type(), " of shape ", pairs.sizes());
  const Tensor contiguous = pairs.cpu().contiguous();
  const int64_t* at = contiguous.const_data_ptr<int64_t>();
  std::vector<std::vector<int64_t>> result(static_cast<size_t>(rows));
  for (int64_t k = 0; k < pairs.size(0); ++k) {
    const int64_t row = at[2 * k];
    TORCH_CHECK_VALUE(row >= 0 && row < rows, "[causal_fit] targets: expected rows 0 to ", rows - 1,
                      ", got ", row);
    result[static_cast<size_t>(row)].push_back(at[2 * k + 1]);
  }
  return result;
}

CausalFitOptions parse_fit_options(int64_t rows, std::string_view estimator, bool nonlinear,
                                   bool standardise, std::optional<double> threshold,
                                   std::optional<double> sparsity, int64_t rank, bool sample,
                                   int64_t seed, const Tensor& forbidden, const Tensor& required,
                                   at::IntArrayRef tiers, at::IntArrayRef groups,
                                   const std::optional<Tensor>& targets, bool soft,
                                   const std::vector<std::string>& kinds,
                                   std::string_view missing) {
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
  options.constraints = parse_constraints("causal_fit", forbidden, required, tiers);
  options.groups = groups.vec();
  if (targets) options.targets = parse_targets(*targets, rows);
  options.soft = soft;
  as_function("causal_fit", [&] {
    for (const std::string& kind : kinds) {
      options.kinds.push_back(parse_name<ColumnKind>("kinds", kind));
    }
    options.missing = parse_name<MissingValues>("missing", missing);
    return 0;
  });
  return options;
}

}  // namespace nsimplex::causal
