// nsimplex::collapse_bound() and its operator.

#include <ATen/ATen.h>
#include <nsimplex/analysis.h>
#include <torch/library.h>

#include "analysis/collapse.h"

namespace nsimplex {

using at::Tensor;

namespace {

Tensor checked_weights(const char* argument, const Tensor& weights, int64_t rows) {
  TORCH_CHECK_TYPE(at::isFloatingType(weights.scalar_type()), "[collapse_bound] ", argument,
                   ": expected floating point numbers, got ", weights.scalar_type());
  TORCH_CHECK_VALUE(weights.dim() == 2 && (rows < 0 || weights.size(0) == rows),
                    "[collapse_bound] ", argument, ": expected matrices of ", rows,
                    " rows, got shape ", weights.sizes());
  return weights.detach().to(at::kCPU, at::kDouble);
}

std::vector<Tensor> checked_weights(const char* argument, at::TensorList all, int64_t rows) {
  std::vector<Tensor> checked;
  for (const Tensor& each : all) {
    checked.push_back(checked_weights(argument, each, rows));
    TORCH_CHECK_VALUE(each.size(1) == all.front().size(1), "[collapse_bound] ", argument,
                      ": expected matrices of one width, got ", all.front().size(1), " and ",
                      each.size(1));
  }
  return checked;
}

}  // namespace

CollapseBound collapse_bound(at::TensorList keys, at::TensorList values, const Tensor& tokens,
                             const std::optional<Tensor>& output) {
  TORCH_CHECK_VALUE(!values.empty() && keys.size() == values.size() + 1,
                    "[collapse_bound] keys: expected one more than the ", values.size(),
                    " values, the first for the queries, got ", keys.size());
  const Tensor own = checked_weights("tokens", tokens, -1);
  TORCH_CHECK_VALUE(own.numel() > 0, "[collapse_bound] tokens: expected at least one");
  analysis::PureHead head{checked_weights("keys", keys, own.size(1)),
                          checked_weights("values", values, own.size(1))};
  if (output) head.output = checked_weights("output", *output, values.front().size(1));
  return analysis::collapse_bound(head, own);
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "collapse_bound(Tensor[] keys, Tensor[] values, Tensor tokens, Tensor? output=None) -> "
      "(float, float, float, float, float, float, float)",
      [](at::TensorList keys, at::TensorList values, const Tensor& tokens,
         const std::optional<Tensor>& output) {
        const CollapseBound found = collapse_bound(keys, values, tokens, output);
        return std::tuple(found.residual, found.next_residual, found.next_norm, found.bound,
                          found.gamma, found.beta, found.logit_range);
      });
}

}  // namespace nsimplex
