// What an attention layer attends to, summed to single keys, from plain ATen calls.

#include "attention/routing/loss_targets.h"

#include <ATen/ATen.h>
#include <nsimplex/attention.h>

#include "attention/dense/dense_terms.h"
#include "attention/dense/dense_tiles.h"
#include "attention/routing/gathered.h"
#include "attention/routing/plain_options.h"
#include "support/infinity.h"

namespace nsimplex::routing {
namespace {

using at::Tensor;

// Calls function(dense call) with the layer's options and key masks.
template <class Function>
auto with_layer(const Layer& layer, at::TensorList masks, Function&& function) {
  dense::OptionalTensorList key_masks;
  if (!masks.empty()) key_masks = masks;
  return function(
      dense::Call{layer.query, layer.keys, layer.keys,
                  plain_options(layer.causal, layer.form, layer.logit_scale, key_masks)});
}

// log sum_J exp(logit_J), [B, Hq, c], by the operator: values of one channel that cost nothing.
Tensor lse_of(const dense::Call& call) {
  std::vector<Tensor> values;
  for (const Tensor& key : call.keys) {
    values.push_back(
        at::zeros({1}, key.options()).expand({key.size(0), key.size(1), key.size(2), 1}));
  }
  return std::get<1>(dense::dispatch({call.query, call.keys, values, call.options}));
}

// A tile's weights [B, H, G, Q, L, K] summed over heads: [B, Q, n_1, .., n_N].
Tensor weights_of(const dense::Problem& problem, const dense::Tile& tile, const Tensor& lse) {
  const dense::TileTerms terms(problem, tile);
  const Tensor rows = terms.rows(problem.by_group(lse)).unsqueeze(-1).unsqueeze(-1);
  const Tensor weights = (terms.logits() - rows.masked_fill(at::isneginf(rows), kInfinity)).exp();
  std::vector<int64_t> sizes{weights.size(0), weights.size(3)};
  for (int m = 0; m < problem.settings.order; ++m) sizes.push_back(tile.keys[m].size());
  return weights.sum(at::IntArrayRef{1, 2}).view(sizes);
}

// Of a checked call whose axes are equally long: [B, c, T].
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

// [B, H, c, ..] -> [B * c, H, ..]: every query a batch entry of its own.
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
  return mass.view(table.sizes());
}

// A path's last step is a matrix product, so the tuples of its first N - 1 keys are the entries of
// a batch, and the keys that the last of them leads to are an axis.
Tensor path_mass(const Layer& layer, const Tensor& table, int64_t first_row) {
  const int64_t batch = table.size(0), queries = layer.query.size(2), width = table.size(2);
  const size_t order = layer.keys.size();
  std::vector<Tensor> steps{table.narrow(1, first_row, queries)};  // [B, c, n^m], -1: none
  for (size_t m = 1; m < order; ++m) {
    const Tensor last = steps.back().flatten(1).unsqueeze(-1);
    const Tensor next = table.gather(1, last.clamp_min(0).expand({batch, -1, width}));
    steps.push_back(next.masked_fill(last < 0, -1).view({batch, queries, -1}));
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
      logits.view({batch, queries, prefixes, -1, width}).transpose(2, 3).flatten(3);
  const Tensor none = (ends < 0).unsqueeze(2);
  const Tensor masked = by_query.masked_fill(none, -kInfinity);
  const Tensor lse = masked.logsumexp(-1, true);
  const Tensor weights = (masked - lse.masked_fill(at::isneginf(lse), kInfinity)).exp().mean(2);

  const Tensor total = at::zeros({batch, queries, table.size(1)}, weights.options());
  for (const Tensor& step : steps) {
    const Tensor mass = weights.view({batch, queries, step.size(2), -1}).sum(-1);
    total.scatter_add_(2, step.clamp_min(0), mass);
  }
  const Tensor own = total.gather(2, steps[0].clamp_min(0)) / static_cast<double>(order);
  return own.masked_fill(steps[0] < 0, 0);
}

}  // namespace nsimplex::routing
