// topk_keys from plain ATen calls: any dtype and device.

#include <ATen/ATen.h>

#include "attention/dense/dense_arguments.h"
#include "attention/routing/best_tuples.h"
#include "attention/routing/gathered.h"
#include "attention/routing/topk_call.h"
#include "support/infinity.h"

namespace nsimplex::routing {
namespace {

using at::Tensor;

Scoring scoring_of(const Call& call) {
  Scoring scoring;
  if (call.weights) scoring.weights = *call.weights;
  if (call.softmax()) scoring.lse = call.lse ? *call.lse : pair_lse(call);
  return scoring;
}

// Only the pairs of the table are scored; with softmax they are what the softmax is over.
Output of_candidates(const Call& call, int64_t k) {
  const at::ScalarType type = dense::accumulate_type(call.query.scalar_type());
  const int64_t queries = call.query.size(2), channels = call.query.size(3);
  const double scale = call.scale.value_or(Scale::standard(channels).logit);
  const Tensor query = call.query.to(type) * scale, key = call.key.to(type);
  // In ascending order, so that the lower index of equals comes first.
  const Tensor table = sorted_table(*call.candidates).expand({query.size(0), -1, -1});
  std::vector<Tensor> indices, scores;
  const int64_t chunk = gathered_chunk(query, table.size(2));
  for (int64_t first = 0; first == 0 || first < queries; first += chunk) {
    const int64_t rows = std::min(chunk, queries - first);
    const auto part = [&](const OptionalTensor& tensor) {
      return tensor->to(type).narrow(2, first, rows).transpose(1, 2).unsqueeze(-1);
    };
    const Tensor places = table.narrow(1, first, rows);
    Tensor admissible = places >= 0;
    if (call.causal) {
      const Tensor last =
          at::arange(first, first + rows, places.options()) + (call.key.size(2) - queries);
      admissible = admissible & (places <= last.unsqueeze(-1));
    }
    if (call.key_lengths) {
      admissible = admissible & (places < call.key_lengths->view({-1, 1, 1}));
    }
    const Tensor logits =
        gathered_logits(query.narrow(2, first, rows), key, places)
            .masked_fill(admissible.logical_not().unsqueeze(2), -kInfinity);  // [B, c, H, n]
    Tensor lse;
    if (call.softmax()) lse = call.lse ? part(call.lse) : logits.logsumexp(-1, true);
    Tensor each = activate(logits, lse);
    if (call.weights) each = each * part(call.weights);
    RunningBest best(k);
    best.add(each.sum(2).masked_fill(admissible.logical_not(), -kInfinity), places);
    auto [chosen, values] = best.finish();
    indices.push_back(std::move(chosen));
    scores.push_back(std::move(values));
  }
  return {at::cat(indices, 1), at::cat(scores, 1)};
}

}  // namespace

Output reference(const Call& call) {
  check(call);
  check_values(call);
  const int64_t k = call.k.guard_int(__FILE__, __LINE__);
  if (call.candidates) return of_candidates(call, k);
  const auto [indices, scores] = with_pairs(
      call, [&](const dense::Call& pairs) { return best_tuples(pairs, k, scoring_of(call)); });
  return {indices, scores};
}

}  // namespace nsimplex::routing
