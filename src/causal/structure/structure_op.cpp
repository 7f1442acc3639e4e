// causal_fit() as an operator, for Python: options by name, edges as tables of two columns.

#include <ATen/ATen.h>
#include <nsimplex/causal_structure.h>
#include <torch/library.h>

#include "causal/structure/names.h"
#include "causal/tensors.h"
#include "support/interruptible.h"

namespace nsimplex {
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
      "causal_fit", [&] { return parse_name(kEstimatorNames, "estimator", estimator); });
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
