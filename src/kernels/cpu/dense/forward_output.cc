#include "kernels/cpu/dense/forward_output.h"

#include <algorithm>
#include <limits>

namespace nsimplex::kernels::dense {

void write_item(const DenseForward<float>& problem, const Geometry& geometry, int64_t batch,
                int64_t head, int64_t item, const SoftmaxState& state, const float* total) {
  const int64_t query = item / geometry.group, query_head = geometry.query_head(head, item);
  float* const out = problem.out.row(batch, query_head, query);
  float& lse = problem.lse[(batch * problem.heads + query_head) * problem.queries + query];
  const Range active = problem.active_queries(batch);
  if (query < active.begin || query >= active.end) {
    std::fill(out, out + problem.value_dim, 0.0f);
    lse = -std::numeric_limits<float>::infinity();
    return;
  }
  const double mean = problem.reduce == ValueReduce::mean ? problem.order : 1;
  const float factor = static_cast<float>(problem.output_scale / mean) * state.normalizer();
  for (int64_t c = 0; c < problem.value_dim; ++c) out[c] = factor * total[c];
  lse = state.log_sum_exp();
}

void merge_parts(const DenseForward<float>& problem, const Geometry& geometry, const Splits& splits,
                 int64_t count, int64_t batch, int64_t head, float* parts) {
  const int64_t width = geometry.value_depth;
  auto* const states = reinterpret_cast<SoftmaxState*>(parts);
  for (int64_t item = 0; item < geometry.items; ++item) {
    float* const total = parts + splits.totals + item * width;
    for (int64_t s = 1; s < count; ++s) {
      const float* const part = parts + s * splits.size;
      const float* const other = part + splits.totals + item * width;
      const auto factors = states[item].merge(reinterpret_cast<const SoftmaxState*>(part)[item]);
      for (int64_t c = 0; c < width; ++c) {
        total[c] = factors.own * total[c] + factors.other * other[c];
      }
    }
    write_item(problem, geometry, batch, head, item, states[item], total);
  }
}

}  // namespace nsimplex::kernels::dense
