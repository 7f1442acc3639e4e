// The best tuples of every query by ATen calls, tile by tile: the reference of topk_keys, and
// topk_tuples.

#include "attention/routing/selection.h"

#include <ATen/ATen.h>

#include <limits>

#include "attention/common/attention_terms.h"
#include "attention/common/attention_tiles.h"
#include "support/infinity.h"

namespace nsimplex::routing {

using at::Tensor;

namespace {

// 16 MB of float32 per temporary: few calls, and a size that does not grow with the length. 128 MB
// on devices, where each call is a kernel launch.
constexpr int64_t kChunkElements = int64_t{1} << 22, kDeviceChunkElements = int64_t{1} << 25;

}  // namespace

Tensor sorted_table(const Tensor& table) {
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  const Tensor sorted = std::get<0>(table.masked_fill(table < 0, kLast).sort(-1));
  return sorted.masked_fill(sorted == kLast, -1);
}

int64_t gathered_chunk(const Tensor& query, int64_t keys) {
  const int64_t row = query.size(0) * query.size(1) * std::max<int64_t>(keys, 1) * query.size(3);
  const int64_t most = query.is_cpu() ? kChunkElements : kDeviceChunkElements;
  return std::max<int64_t>(most / std::max<int64_t>(row, 1), 1);
}

Tensor gather_rows(const Tensor& key, const Tensor& table) {
  const int64_t batch = key.size(0), heads = key.size(1), channels = key.size(3);
  // A table without keys still contains -1.
  if (key.size(2) == 0) return gather_rows(at::constant_pad_nd(key, {0, 0, 0, 1}), table);
  const int64_t count = table.size(1) * table.size(2);
  const Tensor places = table.clamp_min(0).reshape({batch, 1, count, 1});
  return key.gather(2, places.expand({batch, heads, count, channels}))
      .view({batch, heads, table.size(1), table.size(2), channels});
}

Tensor gathered_logits(const Tensor& query, const Tensor& key, const Tensor& table) {
  const int64_t heads = key.size(1);
  // [B, Hk, c, G, D] x [B, Hk, c, D, n]
  const Tensor groups = query.unflatten(1, {heads, -1}).transpose(2, 3);
  const Tensor logits = groups.matmul(gather_rows(key, table).transpose(-1, -2));
  return logits.transpose(1, 2).flatten(2, 3);
}

namespace {

using at::Tensor;

// The numbers of a tile's tuples in the lexicographic order of all tuples: int64 [L * K].
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
  // Sorts by index, then stably by score.
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
