#include "kernels/dense_oracle.h"

#include <cmath>
#include <limits>

namespace nsimplex::kernels::testing {
namespace {

using Tuple = std::vector<int64_t>;

// Every admissible tuple of one query, straight from the definition of the masks.
std::vector<Tuple> admissible_tuples(const DenseProblem<float>& p, int64_t batch, int64_t query) {
  std::vector<Tuple> tuples{{}};
  for (int m = 0; m < p.order; ++m) {
    const Visibility& v = p.axes[m].visible;
    std::vector<Tuple> longer;
    for (const Tuple& tuple : tuples) {
      for (int64_t j = 0; j < v.length; ++j) {
        const int64_t position = query + v.offset;
        if (v.left >= 0 && j <= position - v.left) continue;
        if (v.right >= 0 && j > position + v.right) continue;
        if (v.causal && j > position) continue;
        if (v.lengths && j >= v.lengths[batch]) continue;
        longer.push_back(tuple);
        longer.back().push_back(j);
      }
    }
    tuples = std::move(longer);
  }
  return tuples;
}

double reduce_values(const DenseProblem<float>& p, int64_t b, int64_t kv, const Tuple& tuple,
                     int64_t c, int skip) {
  const bool product = p.reduce == ValueReduce::product;
  double result = product ? 1.0 : 0.0;
  for (int m = 0; m < p.order; ++m) {
    if (m == skip) continue;
    const double value = p.axes[m].value.row(b, kv, tuple[m])[c];
    result = product ? result * value : result + value;
  }
  return p.reduce == ValueReduce::mean ? result / p.order : result;
}

}  // namespace

DenseOracle dense_oracle(const DenseProblem<float>& p, const Rows<const float>* grad_out,
                         const float* grad_lse) {
  DenseOracle result;
  const int64_t rows = p.batch * p.heads * p.queries, group = p.heads / p.kv_heads;
  result.out.assign(rows * p.value_dim, 0.0);
  result.lse.assign(rows, -std::numeric_limits<double>::infinity());
  result.grad_query.assign(rows * p.dim, 0.0);
  for (int m = 0; m < p.order; ++m) {
    const int64_t keys = p.batch * p.kv_heads * p.axes[m].visible.length;
    result.grad_key.emplace_back(keys * p.dim, 0.0);
    result.grad_value.emplace_back(keys * p.value_dim, 0.0);
  }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t b = row / p.queries / p.heads, h = row / p.queries % p.heads, i = row % p.queries;
    const int64_t kv = h / group;
    const float* const q = p.query.row(b, h, i);
    const std::vector<Tuple> tuples = admissible_tuples(p, b, i);
    if (tuples.empty()) continue;

    std::vector<double> weight;
    double largest = -std::numeric_limits<double>::infinity(), total = 0.0;
    for (const Tuple& tuple : tuples) {
      double logit = 0.0;
      for (int64_t a = 0; a < p.dim; ++a) {
        double product = q[a];
        for (int m = 0; m < p.order; ++m) product *= p.axes[m].key.row(b, kv, tuple[m])[a];
        logit += product;
      }
      weight.push_back(p.logit_scale * logit);
      largest = std::max(largest, weight.back());
    }
    for (double& w : weight) total += w = std::exp(w - largest);
    for (double& w : weight) w /= total;
    result.lse[row] = largest + std::log(total);

    std::vector<double> grad_weight(tuples.size(), 0.0);
    double mean_grad = 0.0;
    for (size_t t = 0; t < tuples.size(); ++t) {
      for (int64_t c = 0; c < p.value_dim; ++c) {
        const double value = p.output_scale * reduce_values(p, b, kv, tuples[t], c, -1);
        result.out[row * p.value_dim + c] += weight[t] * value;
        if (grad_out) grad_weight[t] += grad_out->row(b, h, i)[c] * value;
      }
      mean_grad += weight[t] * grad_weight[t];
    }
    if (!grad_out) continue;
    const double from_lse = grad_lse ? grad_lse[row] : 0.0;
    for (size_t t = 0; t < tuples.size(); ++t) {
      const Tuple& tuple = tuples[t];
      const double grad_logit = p.logit_scale * weight[t] * (grad_weight[t] - mean_grad + from_lse);
      for (int64_t a = 0; a < p.dim; ++a) {
        for (int target = -1; target < p.order; ++target) {  // -1: the query
          double others = target < 0 ? 1.0 : q[a];
          for (int m = 0; m < p.order; ++m) {
            if (m != target) others *= p.axes[m].key.row(b, kv, tuple[m])[a];
          }
          const int64_t length = target < 0 ? 0 : p.axes[target].visible.length;
          double& gradient =
              target < 0
                  ? result.grad_query[row * p.dim + a]
                  : result.grad_key[target]
                                   [((b * p.kv_heads + kv) * length + tuple[target]) * p.dim + a];
          gradient += grad_logit * others;
        }
      }
      for (int64_t c = 0; c < p.value_dim; ++c) {
        const double share = p.output_scale * weight[t] * grad_out->row(b, h, i)[c];
        for (int m = 0; m < p.order; ++m) {
          const int64_t at = (b * p.kv_heads + kv) * p.axes[m].visible.length + tuple[m];
          double factor = 1.0;
          if (p.reduce == ValueReduce::product) factor = reduce_values(p, b, kv, tuple, c, m);
          if (p.reduce == ValueReduce::mean) factor = 1.0 / p.order;
          result.grad_value[m][at * p.value_dim + c] += share * factor;
        }
      }
    }
  }
  return result;
}

}  // namespace nsimplex::kernels::testing
