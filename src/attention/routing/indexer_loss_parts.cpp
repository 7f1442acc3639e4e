// The attention of a layer summed to single keys, and the alignment loss of some queries with its
// gradient, by ATen calls.
//
// Names of dimensions: B batch, c queries of the part, H index heads, n keys per query. These are
// the keys in its row of the table, or all keys that the part may see.

#include "attention/routing/indexer_loss_parts.h"

#include <ATen/ATen.h>
#include <nsimplex/attention.h>

#include <limits>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_terms.h"
#include "attention/common/attention_tiles.h"
#include "attention/routing/indexer_loss_call.h"
#include "attention/routing/selection.h"
#include "support/infinity.h"

namespace nsimplex::routing {
namespace {

using at::Tensor;

// Calls function(dense call) with the layer's options and key masks.
template <class Function>
auto with_layer(const Layer& layer, at::TensorList masks, Function&& function) {
  OptionalTensorList key_masks;
  if (!masks.empty()) key_masks = masks;
  return function(
      dense::Call{layer.query, layer.keys, layer.keys,
                  plain_options(layer.causal, layer.form, layer.logit_scale, key_masks)});
}

// log sum_J exp(logit_J), [B, Hq, c], by the operator with values of one channel.
Tensor lse_of(const dense::Call& call) {
  std::vector<Tensor> values;
  for (const Tensor& key : call.keys) {
    values.push_back(
        at::zeros({1}, key.options()).expand({key.size(0), key.size(1), key.size(2), 1}));
  }
  return std::get<1>(dense::dispatch(dense::Call{call.query, call.keys, values, call.options}));
}

// A tile's weights [B, H, G, Q, L, K] summed over heads: [B, Q, n_1, .., n_N].
Tensor weights_of(const dense::Problem& problem, const dense::Tile& tile, const Tensor& lse) {
  const dense::TileTerms terms(problem, tile);
  const Tensor rows = terms.rows(problem.by_group(lse)).unsqueeze(-1).unsqueeze(-1);
  const Tensor weights = (terms.logits() - rows.masked_fill(at::isneginf(rows), kInfinity)).exp();
  std::vector<int64_t> sizes{weights.size(0), weights.size(3)};
  for (int m = 0; m < problem.settings.order; ++m) sizes.push_back(tile.keys[m].size());
  return weights.sum(at::IntArrayRef{1, 2}).reshape(sizes);
}

// The marginals of a checked call whose axes are equally long: [B, c, T].
Tensor marginals(const dense::Call& call) {
  const dense::Problem problem(call);
  const int order = problem.settings.order;
  const Tensor lse = lse_of(call);
  const Tensor total =
      at::zeros({call.query.size(0), call.query.size(2), call.keys[0].size(2)}, lse.options());
  const dense::Tiling tiling(call, problem.settings);
  tiling.for_each_block([&](int64_t, int64_t, const std::vector<dense::Tile>& tiles) {
    for (const dense::Tile& tile : tiles) {
      const Tensor weights = weights_of(problem, tile, lse);
      for (int m = 0; m < order; ++m) {
        std::vector<int64_t> others;
        for (int other = 0; other < order; ++other) {
          if (other != m) others.push_back(2 + other);
        }
        total.narrow(1, tile.first_query, tile.queries)
            .narrow(2, tile.keys[m].begin, tile.keys[m].size())
            .add_(others.empty() ? weights : weights.sum(others));
      }
    }
  });
  return total / static_cast<double>(order * call.query.size(1));
}

// [B, H, c, ..] -> [B * c, H, ..]: every query becomes a batch entry.
Tensor entries(const Tensor& tensor) { return tensor.transpose(1, 2).flatten(0, 1); }

}  // namespace

Tensor marginal_mass(const Layer& layer) { return with_layer(layer, {}, marginals); }

Tensor product_mass(const Layer& layer, const Tensor& table) {
  const Tensor query = entries(layer.query).unsqueeze(2);  // [B c, Hq, 1, D]
  std::vector<Tensor> keys;
  for (const Tensor& key : layer.keys) keys.push_back(entries(gather_rows(key, table)));
  const std::vector<Tensor> masks(keys.size(), (table >= 0).flatten(0, 1));
  const Tensor mass =
      with_layer({query, keys, false, layer.form, layer.logit_scale}, masks, marginals);
  return mass.reshape(table.sizes());
}

// The last step of a path is a matrix product. So the tuples of its first N - 1 keys become batch
// entries, and the keys to which the last of them leads become an axis.
Tensor path_mass(const Layer& layer, const Tensor& table, int64_t first_row) {
  const int64_t batch = table.size(0), queries = layer.query.size(2), width = table.size(2);
  const size_t order = layer.keys.size();
  if (batch * queries == 0) {
    const at::ScalarType type = dense::accumulate_type(layer.query.scalar_type());
    return at::zeros({batch, queries, width}, layer.query.options().dtype(type));
  }
  std::vector<Tensor> steps{table.narrow(1, first_row, queries)};  // [B, c, n^m], -1: none
  for (size_t m = 1; m < order; ++m) {
    const Tensor last = steps.back().flatten(1).unsqueeze(-1);
    const Tensor next = table.gather(1, last.clamp_min(0).expand({batch, -1, width}));
    steps.push_back(next.masked_fill(last < 0, -1).reshape({batch, queries, -1}));
  }
  const Tensor& ends = steps.back();
  const int64_t prefixes = ends.size(2) / std::max<int64_t>(width, 1);

  const auto repeated = [&](const Tensor& rows) {  // [B, H, c, D] -> [B c n^(N-1), H, 1, D]
    return entries(rows.repeat_interleave(prefixes, 2)).unsqueeze(2);
  };
  std::vector<Tensor> keys;
  for (size_t m = 0; m + 1 < order; ++m) {
    const Tensor step = steps[m].repeat_interleave(prefixes / steps[m].size(2), 2);
    keys.push_back(entries(gather_rows(layer.keys[m], step.flatten(1).unsqueeze(-1))));
  }
  keys.push_back(entries(gather_rows(layer.keys[order - 1], ends.reshape({batch, -1, width}))));
  const Tensor query = repeated(layer.query);
  const Tensor logits = with_layer(  // [B c n^(N-1), Hq, n]
      {query, keys, false, layer.form, layer.logit_scale}, {}, [](const dense::Call& call) {
        const dense::Problem problem(call);
        dense::Tile whole{0, 1, {}};
        for (size_t m = 0; m < call.keys.size(); ++m) whole.keys[m] = {0, call.keys[m].size(2)};
        return dense::TileTerms(problem, whole).logits().flatten(1, 2).flatten(2);
      });
  // [B, c, Hq, n^N]
  const Tensor by_query =
      logits.reshape({batch, queries, prefixes, -1, width}).transpose(2, 3).flatten(3);
  const Tensor none = (ends < 0).unsqueeze(2);
  const Tensor masked = by_query.masked_fill(none, -kInfinity);
  const Tensor lse = masked.logsumexp(-1, true);
  const Tensor weights = (masked - lse.masked_fill(at::isneginf(lse), kInfinity)).exp().mean(2);

  const Tensor total = at::zeros({batch, queries, table.size(1)}, weights.options());
  for (const Tensor& step : steps) {
    const Tensor mass = weights.reshape({batch, queries, step.size(2), -1}).sum(-1);
    total.scatter_add_(2, step.clamp_min(0), mass);
  }
  const Tensor own = total.gather(2, steps[0].clamp_min(0)) / static_cast<double>(order);
  return own.masked_fill(steps[0] < 0, 0);
}

namespace {

using at::Tensor;

// Elements of the widest temporary of a part: 16 MB of float32, or 128 MB on devices, where each
// call is a kernel launch.
constexpr int64_t kPartElements = int64_t{1} << 22, kDevicePartElements = int64_t{1} << 25;

}  // namespace

struct LossParts::Pairs {
  Tensor table;       // [B, c, n], or undefined: keys 0 .. n - 1
  Tensor admissible;  // bool, broadcastable to [B, c, n]
  Tensor logits;      // [B, c, H, n]
};

LossParts::LossParts(const LossCall& call, const Wanted& wanted)
    : call_(call),
      wanted_(wanted),
      scale_(call.scale.value_or(Scale::standard(call.query_index.size(3)).logit)) {
  const at::ScalarType type = dense::accumulate_type(call.query_index.scalar_type());
  query_index_ = call.query_index.to(type) * scale_;
  key_index_ = call.key_index.to(type);
  if (call.weights) weights_ = call.weights->to(type);
  if (call.lse) lse_ = call.lse->to(type);
  const int64_t batch = query_index_.size(0), length = key_index_.size(2);
  if (call.indices) table_ = call.indices->expand({batch, -1, -1});
  if (wanted_[1]) grad_key_ = at::zeros(key_index_.sizes(), key_index_.options());

  // The share of one query in the widest temporary.
  const int64_t heads = query_index_.size(1), order = static_cast<int64_t>(call.keys.size());
  int64_t row = heads * length;
  if (table_.defined()) {
    const int64_t width = table_.size(2);
    const int64_t channels =
        std::max(heads * query_index_.size(3), call.query.size(1) * call.query.size(3));
    row = width * channels;
    for (int64_t m = 1; call.path() && m < order; ++m) row *= width;
    row = std::max(row, length);
  }
  const int64_t most = key_index_.is_cpu() ? kPartElements : kDevicePartElements;
  chunk_ = std::clamp<int64_t>(most / std::max<int64_t>(batch * row, 1), 1,
                               std::max<int64_t>(queries(), 1));
}

// [B, H, Tq] -> [B, c, H, 1]
Tensor LossParts::rows_of(const Tensor& tensor, int64_t first, int64_t rows) const {
  return tensor.narrow(2, first, rows).transpose(1, 2).unsqueeze(-1);
}

LossParts::Pairs LossParts::pairs(int64_t first, int64_t rows) const {
  const Tensor query = query_index_.narrow(2, first, rows);
  Pairs pairs;
  if (table_.defined()) {
    pairs.table = table_.narrow(1, first + table_.size(1) - queries(), rows);
    pairs.admissible = pairs.table >= 0;
    pairs.logits = gathered_logits(query, key_index_, pairs.table);
    return pairs;
  }
  const int64_t offset = key_index_.size(2) - queries();
  const int64_t seen =
      call_.causal ? std::max<int64_t>(first + rows + offset, 0) : key_index_.size(2);
  const Tensor place = at::arange(seen, query.options().dtype(at::kLong));
  const Tensor last = call_.causal
                          ? at::arange(first + offset, first + rows + offset, place.options())
                          : at::full({rows}, seen, place.options());
  pairs.admissible = (place <= last.unsqueeze(-1)).unsqueeze(0);
  const Tensor groups = query.unflatten(1, {key_index_.size(1), -1});  // [B, H', G, c, D]
  const Tensor keys = key_index_.narrow(2, 0, seen).unsqueeze(2);
  pairs.logits = groups.matmul(keys.transpose(-1, -2)).flatten(1, 2).transpose(1, 2);
  return pairs;
}

// The attention of the layer among the pairs. It sums to 1, or to 0 for a query without pairs.
Tensor LossParts::targets(const Pairs& pairs, int64_t first, int64_t rows) const {
  const Tensor query = call_.query.narrow(2, first, rows);
  std::vector<Tensor> keys = call_.keys.vec();
  if (!pairs.table.defined()) {
    // The part's last query aligns to the end of the keys that the part sees.
    for (Tensor& key : keys) key = key.narrow(2, 0, pairs.logits.size(3));
  }
  const Layer layer{query, keys, call_.causal, call_.form, call_.logit_scale};
  Tensor mass;
  if (!pairs.table.defined()) {
    mass = marginal_mass(layer);
  } else if (call_.path()) {
    mass = path_mass(layer, table_, first + table_.size(1) - queries());
  } else {
    mass = product_mass(layer, pairs.table);
  }
  mass = mass.to(query_index_.scalar_type());
  const Tensor sum = mass.sum(-1, true);
  return at::where(sum > 0, mass / sum, 0.0);
}

// The gradients by queries (returned) and keys (added) from those by the logits.
Tensor LossParts::grad_pairs(const Pairs& pairs, const Tensor& grad_logits, int64_t first,
                             int64_t rows) {
  const int64_t key_heads = key_index_.size(1), channels = key_index_.size(3);
  const Tensor groups = query_index_.narrow(2, first, rows).unflatten(1, {key_heads, -1});
  const Tensor grad = grad_logits.unflatten(2, {key_heads, -1});  // [B, c, H', G, n]
  if (pairs.table.defined()) {
    const Tensor by_row = grad.transpose(1, 2);  // [B, H', c, G, n]
    if (wanted_[1]) {
      const Tensor each = by_row.transpose(-1, -2).matmul(groups.transpose(2, 3));
      const Tensor places = pairs.table.clamp_min(0).flatten(1).unsqueeze(1).unsqueeze(-1);
      grad_key_.scatter_add_(2, places.expand({-1, key_heads, -1, channels}), each.flatten(2, 3));
    }
    if (!wanted_[0]) return {};
    return by_row.matmul(gather_rows(key_index_, pairs.table)).transpose(2, 3).flatten(1, 2);
  }
  const int64_t seen = grad.size(4);
  const Tensor by_head = grad.permute({0, 2, 3, 1, 4});  // [B, H', G, c, n]
  if (wanted_[1]) {
    const Tensor flat = by_head.flatten(2, 3);  // [B, H', G c, n]
    grad_key_.narrow(2, 0, seen).add_(flat.transpose(-1, -2).matmul(groups.flatten(2, 3)));
  }
  if (!wanted_[0]) return {};
  return by_head.matmul(key_index_.narrow(2, 0, seen).unsqueeze(2)).flatten(1, 2);
}

LossPart LossParts::part(int64_t first, int64_t rows) {
  const Pairs pairs = this->pairs(first, rows);
  const Tensor target = targets(pairs, first, rows);  // [B, c, n]
  const Tensor none = pairs.admissible.logical_not();
  const Tensor counts = target.sum(-1, true) > 0;

  const Tensor act = activate(pairs.logits.masked_fill(none.unsqueeze(2), -kInfinity),
                              call_.softmax() ? rows_of(lse_, first, rows) : Tensor());
  const Tensor weight = weights_.defined() ? rows_of(weights_, first, rows) : Tensor();
  const Tensor score = (weight.defined() ? act * weight : act).sum(2);  // [B, c, n]

  Tensor log_p, grad_score;
  if (call_.softmax()) {
    // p is bounded from below by the smallest number of the dtype, where it has no gradient.
    const double least = query_index_.scalar_type() == at::kDouble
                             ? std::numeric_limits<double>::min()
                             : std::numeric_limits<float>::min();
    const Tensor held = score.clamp_min(least).masked_fill(none, 0);
    const Tensor total = held.sum(-1, true);
    log_p = held.log() - total.log();
    grad_score = (total.reciprocal() - target / held).masked_fill(none | (score <= least), 0);
  } else {
    log_p = at::log_softmax(score.masked_fill(none, -kInfinity), -1);
    grad_score = log_p.exp() - target;
  }
  grad_score = at::where(counts, grad_score, 0.0).masked_fill(none, 0).unsqueeze(2);
  log_p = log_p.masked_fill(none | counts.logical_not(), 0);

  LossPart part;
  part.loss = (at::xlogy(target, target) - target * log_p).sum();
  part.queries = counts.sum();
  if (wanted_[2]) part.grad_weights = (grad_score * act).sum(-1).transpose(1, 2);
  if (!wanted_[0] && !wanted_[1] && !wanted_[3]) return part;
  const Tensor grad_act = weight.defined() ? grad_score * weight : grad_score;
  const Tensor grad_logits = grad_act * (call_.softmax() ? act : act > 0);
  if (wanted_[3]) part.grad_lse = grad_logits.sum(-1).neg().transpose(1, 2);
  if (!wanted_[0] && !wanted_[1]) return part;
  part.grad_query = grad_pairs(pairs, grad_logits, first, rows);
  if (part.grad_query.defined()) part.grad_query = part.grad_query * scale_;
  return part;
}

}  // namespace nsimplex::routing
