#include "attention/routing/gathered.h"

#include <ATen/ATen.h>

#include <limits>

namespace nsimplex::routing {

using at::Tensor;

namespace {

// 16 MB of float32 a temporary: few calls, and nothing that grows with the length.
constexpr int64_t kChunkElements = int64_t{1} << 22;

}  // namespace

Tensor sorted_table(const Tensor& table) {
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  const Tensor sorted = std::get<0>(table.masked_fill(table < 0, kLast).sort(-1));
  return sorted.masked_fill(sorted == kLast, -1);
}

int64_t gathered_chunk(const Tensor& query, int64_t keys) {
  const int64_t row = query.size(0) * query.size(1) * std::max<int64_t>(keys, 1) * query.size(3);
  return std::max<int64_t>(kChunkElements / std::max<int64_t>(row, 1), 1);
}

Tensor gather_rows(const Tensor& key, const Tensor& table) {
  const int64_t batch = key.size(0), heads = key.size(1), channels = key.size(3);
  // A table for no keys at all still has its -1.
  if (key.size(2) == 0) return gather_rows(at::constant_pad_nd(key, {0, 0, 0, 1}), table);
  const Tensor places = table.clamp_min(0).view({batch, 1, -1, 1});
  return key.gather(2, places.expand({batch, heads, -1, channels}))
      .view({batch, heads, table.size(1), table.size(2), channels});
}

Tensor gathered_logits(const Tensor& query, const Tensor& key, const Tensor& table) {
  const int64_t heads = key.size(1);
  // [B, Hk, c, G, D] x [B, Hk, c, D, n]
  const Tensor groups = query.unflatten(1, {heads, -1}).transpose(2, 3);
  const Tensor logits = groups.matmul(gather_rows(key, table).transpose(-1, -2));
  return logits.transpose(1, 2).flatten(2, 3);
}

}  // namespace nsimplex::routing
