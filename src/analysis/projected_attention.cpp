#include "analysis/projected_attention.h"

#include <ATen/ATen.h>
#include <nsimplex/attention.h>

namespace nsimplex::analysis {

using at::Tensor;

Tensor ProjectedAttention::operator()(const Tensor& x) const {
  const auto project = [&](const Tensor& weight) { return x.matmul(weight).unsqueeze(1); };
  Tensors k, v;
  for (size_t m = 1; m < keys.size(); ++m) k.push_back(project(keys[m]));
  for (const Tensor& weight : values) v.push_back(project(weight));
  return attention(project(keys[0]), k, v).out.squeeze(1);
}

ProjectedAttention random_attention(int64_t order, int64_t problems, int64_t dim, double key_norm,
                                    double value_norm) {
  const auto draw = [&](double norm) {
    const Tensor weight = at::randn({problems, dim, dim}, at::kDouble);
    return weight * (norm / at::linalg_matrix_norm(weight, 2, {-2, -1}, /*keepdim=*/true));
  };
  ProjectedAttention attention;
  for (int64_t m = 0; m <= order; ++m) attention.keys.push_back(draw(key_norm));
  for (int64_t m = 1; m <= order; ++m) attention.values.push_back(draw(value_norm));
  return attention;
}

}  // namespace nsimplex::analysis
