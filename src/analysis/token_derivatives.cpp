#include "analysis/token_derivatives.h"

#include <ATen/ATen.h>

namespace nsimplex::analysis {

using at::Tensor;

namespace {

// Place [t, m]: the token of axis m in tuple t, all n^axes of them.
Tensor all_tuples(int64_t n, int64_t axes) {
  std::vector<Tensor> columns(axes, at::arange(n));
  return axes == 1 ? columns.front().unsqueeze(1) : at::cartesian_prod(columns);
}

// The product of all rows but the one of `axis`, for each tuple: [tuples, width].
Tensor others(const std::vector<Tensor>& rows, const Tensor& tuples, size_t axis) {
  Tensor product = at::ones({tuples.size(0), rows.front().size(1)}, rows.front().options());
  for (size_t m = 0; m < rows.size(); ++m) {
    if (m == axis) continue;
    product = product * rows[m].index_select(0, tuples.select(1, static_cast<int64_t>(m)));
  }
  return product;
}

// 1 at [t, j] where the token of the axis is j.
Tensor which(const Tensor& tuples, size_t axis, int64_t n) {
  const Tensor column = tuples.select(1, static_cast<int64_t>(axis));
  return column.unsqueeze(1).eq(at::arange(n)).to(at::kDouble);
}

std::vector<Tensor> projected(const Tensor& tokens, const std::vector<Tensor>& weights) {
  std::vector<Tensor> rows;
  for (const Tensor& each : weights) rows.push_back(tokens.matmul(each));
  return rows;
}

}  // namespace

TokenDerivatives token_derivatives(const PureHead& head, const Tensor& tokens) {
  const int64_t n = tokens.size(0), order = head.order();
  const double scale = head.logit_scale();
  const std::vector<Tensor> keys = projected(tokens, head.keys);
  const std::vector<Tensor> values = projected(tokens, head.values);

  const Tensor tuples = all_tuples(n, order + 1);
  const Tensor query = tokens.matmul(head.keys[0]).index_select(0, tuples.select(1, 0));
  const Tensor shares =
      (scale * (query * others(keys, tuples, 0)).sum(-1)).view({n, -1}).softmax(-1);
  TokenDerivatives result;
  result.logits = at::zeros({tuples.size(0), n, tokens.size(1)}, tokens.options());
  for (size_t m = 0; m < keys.size(); ++m) {
    const Tensor own = scale * others(keys, tuples, m).matmul(head.keys[m].t());
    result.logits += which(tuples, m, n).unsqueeze(2) * own.unsqueeze(1);
  }

  // Of the tuples of keys, which are the same for every query.
  const Tensor key_tuples = all_tuples(n, order);
  Tensor of_values = at::zeros({key_tuples.size(0), n, head.values[0].size(1), tokens.size(1)},
                               tokens.options());  // [K, j, out, in]
  for (size_t m = 0; m < values.size(); ++m) {
    const Tensor own = others(values, key_tuples, m).unsqueeze(2) * head.values[m].t().unsqueeze(0);
    of_values += which(key_tuples, m, n).view({-1, n, 1, 1}) * own.unsqueeze(1);
  }
  result.values = at::einsum("ik,kjab->ijab", {shares, of_values});

  const Tensor slopes = result.logits.view({n, -1, n, tokens.size(1)});  // [i, K, j, in]
  const Tensor mean = at::einsum("ik,ikjb->ijb", {shares, slopes});
  const Tensor products = others(values, key_tuples, values.size());  // of all axes
  result.weights = at::einsum("ik,ikjb,ka->ijab", {shares, slopes - mean.unsqueeze(1), products});
  return result;
}

}  // namespace nsimplex::analysis
