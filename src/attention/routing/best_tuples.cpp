// The best tuples of every query from plain ATen calls, tile by tile: the reference of topk_keys,
// and topk_tuples.

#include "attention/routing/best_tuples.h"

#include <ATen/ATen.h>

#include "attention/dense/dense_terms.h"
#include "attention/dense/dense_tiles.h"
#include "support/infinity.h"

namespace nsimplex::routing {
namespace {

using at::Tensor;

// Places of a tile's tuples in the lexicographic order of all tuples: int64 [L * K].
Tensor tuple_indices(const dense::Tile& tile, at::TensorList keys, const at::Device& device) {
  Tensor indices = at::zeros({1}, at::TensorOptions(at::kLong).device(device));
  for (size_t m = 0; m < keys.size(); ++m) {
    const Tensor axis = at::arange(tile.keys[m].begin, tile.keys[m].end, indices.options());
    indices = (indices.unsqueeze(-1) * keys[m].size(2) + axis).flatten();
  }
  return indices;
}

// [B, Q, L * K]
Tensor scores_of(const dense::Problem& problem, const dense::TileTerms& terms,
                 const Scoring& scoring) {
  const auto rows = [&](const Tensor& tensor) {  // [B, H, Tq] -> [B, H, G, Q, 1, 1]
    return terms.rows(problem.by_group(tensor)).unsqueeze(-1).unsqueeze(-1);
  };
  const Tensor logits = terms.logits();  // [B, H, G, Q, L, K]
  Tensor scores = activate(logits, scoring.lse.defined() ? rows(scoring.lse) : Tensor());
  if (scoring.weights.defined()) scores = scores * rows(scoring.weights);
  const Tensor inadmissible = at::isneginf(logits).flatten(1, 2).all(1);
  return scores.sum(at::IntArrayRef{1, 2}).masked_fill(inadmissible, -kInfinity).flatten(2);
}

}  // namespace

void RunningBest::add(const Tensor& scores, const Tensor& indices) {
  Tensor all = scores.masked_fill(scores.isnan(), -kInfinity);
  Tensor places = indices.expand_as(scores);
  if (scores_.defined()) {
    all = at::cat({scores_, all}, -1);
    places = at::cat({indices_, places}, -1);
  }
  // By index, then stably by score.
  const Tensor by_index = std::get<1>(places.sort(-1));
  const auto [sorted, order] =
      all.gather(-1, by_index).sort(/*stable=*/true, /*dim=*/-1, /*descending=*/true);
  const int64_t kept = std::min(count_, sorted.size(-1));
  scores_ = sorted.narrow(-1, 0, kept);
  indices_ = places.gather(-1, by_index).gather(-1, order.narrow(-1, 0, kept));
}

std::pair<Tensor, Tensor> RunningBest::finish() const {
  const int64_t missing = count_ - scores_.size(-1);
  const Tensor scores = at::constant_pad_nd(scores_, {0, missing}, -kInfinity);
  const Tensor indices = at::constant_pad_nd(indices_, {0, missing}, -1);
  return {indices.masked_fill(at::isneginf(scores), -1), scores};
}

Tensor activate(const Tensor& logits, const Tensor& lse) {
  if (!lse.defined()) return logits.clamp_min(0);
  return (logits - lse.masked_fill(at::isneginf(lse), kInfinity)).exp();
}

std::pair<Tensor, Tensor> best_tuples(const dense::Call& call, int64_t count,
                                      const Scoring& scoring) {
  const dense::Problem problem(call);
  const int64_t batch = call.query.size(0);
  const at::TensorOptions options = call.query.options().dtype(problem.accumulate);
  std::vector<Tensor> indices, scores;
  const dense::Tiling tiling(call, problem.settings);
  tiling.for_each_block([&](int64_t, int64_t queries, const std::vector<dense::Tile>& tiles) {
    RunningBest best(count);
    best.add(at::empty({batch, queries, 0}, options), at::empty({0}, options.dtype(at::kLong)));
    for (const dense::Tile& tile : tiles) {
      best.add(scores_of(problem, dense::TileTerms(problem, tile), scoring),
               tuple_indices(tile, call.keys, call.query.device()));
    }
    auto [block_indices, block_scores] = best.finish();
    indices.push_back(std::move(block_indices));
    scores.push_back(std::move(block_scores));
  });
  return {at::cat(indices, 1), at::cat(scores, 1)};
}

}  // namespace nsimplex::routing
