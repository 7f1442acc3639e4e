// Dense N-simplicial attention from plain ATen calls: the oracle of every kernel, the fallback of
// every dtype and device, and the path of double backward and of functorch transforms.
//
// The work is cut into tiles: some neighbouring queries times a box of tuples. Only the slices of
// keys and values that a tile can see are read. Forward merges the tiles of a query by online
// softmax; backward recomputes each tile from lse. Nothing is written in place, so every step can
// be batched by vmap and differentiated again.

#include <ATen/ATen.h>
#include <torch/library.h>

#include <limits>

#include "attention/dense/dense_terms.h"

namespace nsimplex::dense {
namespace {

using at::Tensor;

// Softmax over tiles: partial results of disjoint sets of tuples merge exactly.
struct OnlineSoftmax {
  Tensor maximum, sum, weighted;  // [B, H, G, Q], [B, H, G, Q], [B, H, G, Q, Dv]

  void add(const TileTerms& terms) {
    const Tensor logits = terms.logits();
    // The maximum only keeps the exponentials in range; the result does not depend on it.
    const Tensor tile_maximum = logits.detach().flatten(-2, -1).amax(-1);
    const Tensor merged = maximum.defined() ? at::maximum(maximum, tile_maximum) : tile_maximum;
    const Tensor finite = merged.masked_fill(at::isneginf(merged), 0);
    const Tensor weights = (logits - finite.unsqueeze(-1).unsqueeze(-1)).exp();
    const Tensor tile_sum = weights.sum({-2, -1});
    const Tensor tile_weighted = terms.combine_values(weights);
    if (maximum.defined()) {
      const Tensor rescale = (maximum - finite).exp();
      sum = sum * rescale + tile_sum;
      weighted = weighted * rescale.unsqueeze(-1) + tile_weighted;
    } else {
      sum = tile_sum;
      weighted = tile_weighted;
    }
    maximum = merged;
  }

  // Rows without any tuple become out = 0 and lse = -inf.
  std::pair<Tensor, Tensor> finish(double output_scale) const {
    const Tensor empty = at::isneginf(maximum);
    const Tensor total = sum.masked_fill(empty, 1);
    const Tensor out =
        (weighted * (output_scale / total).unsqueeze(-1)).masked_fill(empty.unsqueeze(-1), 0);
    const Tensor lse =
        (maximum + total.log()).masked_fill(empty, -std::numeric_limits<double>::infinity());
    return {out, lse};
  }
};

// A [B, H, T, C] result in the dtype and memory order of `like`.
Tensor in_order_of(const Tensor& like, const Tensor& result) {
  const Tensor typed = result.to(like.scalar_type());
  return heads_inside(like) ? typed.transpose(1, 2).contiguous().transpose(1, 2)
                            : typed.contiguous();
}

// total + part at rows [begin, begin + n) of `length`.
void add_rows(Tensor& total, const Tensor& part, int64_t begin, int64_t length) {
  const Tensor padded = at::constant_pad_nd(part, {0, 0, begin, length - begin - part.size(2)});
  total = total.defined() ? total + padded : padded;
}

}  // namespace

Output reference_forward(const Call& call) {
  check(call);
  const Problem problem(call);
  const at::TensorOptions options = call.query.options().dtype(problem.accumulate);
  const int64_t batch = call.query.size(0), kv_heads = call.keys[0].size(1);
  std::vector<Tensor> outs, lses;
  const Tiling tiling(call, problem.settings);
  tiling.for_each_block([&](int64_t, int64_t queries, const std::vector<Tile>& tiles) {
    if (tiles.empty()) {
      outs.push_back(
          at::zeros({batch, kv_heads, problem.groups, queries, call.values[0].size(3)}, options));
      lses.push_back(at::full({batch, kv_heads, problem.groups, queries},
                              -std::numeric_limits<double>::infinity(), options));
      return;
    }
    OnlineSoftmax softmax;
    for (const Tile& tile : tiles) softmax.add(TileTerms(problem, tile));
    auto [out, lse] = softmax.finish(problem.output_scale());
    outs.push_back(std::move(out));
    lses.push_back(std::move(lse));
  });
  return {in_order_of(call.query, at::cat(outs, 3).flatten(1, 2)), at::cat(lses, 3).flatten(1, 2)};
}

Gradients reference_backward(const BackwardCall& backward) {
  check(backward);
  const Call& call = backward.forward;
  const Problem problem(call);
  const int order = problem.settings.order;
  const bool want_query = backward.wanted[0];
  const auto want_any = [&](int first) {
    for (int m = 0; m < order; ++m) {
      if (backward.wanted[first + m]) return true;
    }
    return false;
  };
  const bool want_keys = want_any(1), want_values = want_any(1 + order);

  // delta_i = o_i . dO_i - dlse_i; a row without tuples has no weights and needs none.
  const Tensor out = backward.out.to(problem.accumulate),
               grad = backward.grad_out.to(problem.accumulate);
  Tensor delta = (out * grad).sum(-1);
  if (backward.grad_lse) delta = delta - backward.grad_lse->to(problem.accumulate);
  const Tensor empty = at::isneginf(backward.lse);
  const Tensor rows_delta = problem.by_group(delta.masked_fill(empty, 0));
  const Tensor rows_lse = problem.by_group(backward.lse.masked_fill(empty, 0));
  const Tensor rows_grad =
      problem.by_group((grad * problem.output_scale()).masked_fill(empty.unsqueeze(-1), 0));

  std::vector<Tensor> grad_query;
  std::vector<Tensor> grad_keys(order), grad_values(order);
  const Tiling tiling(call, problem.settings);
  tiling.for_each_block([&](int64_t, int64_t queries, const std::vector<Tile>& tiles) {
    Tensor block_query;
    for (const Tile& tile : tiles) {
      const TileTerms terms(problem, tile);
      const Tensor tile_grad = terms.rows(rows_grad);
      const Tensor weights =
          (terms.logits() - terms.rows(rows_lse).unsqueeze(-1).unsqueeze(-1)).exp();
      const auto add = [&](std::vector<Tensor>& totals, const std::vector<Tensor>& parts, int first,
                           at::TensorList inputs) {
        for (int m = 0; m < order; ++m) {
          if (!backward.wanted[first + m]) continue;
          add_rows(totals[m], parts[m], tile.keys[m].begin, inputs[m].size(2));
        }
      };
      if (want_values)
        add(grad_values, terms.grad_values(weights, tile_grad), 1 + order, call.values);
      if (!want_query && !want_keys) continue;
      const Tensor grad_logits = weights * (terms.grad_weights(tile_grad) -
                                            terms.rows(rows_delta).unsqueeze(-1).unsqueeze(-1));
      const Tensor grad_combined = terms.grad_combined(grad_logits);
      if (want_keys) add(grad_keys, terms.grad_keys(grad_logits, grad_combined), 1, call.keys);
      if (want_query) {
        const Tensor part = terms.grad_query(grad_combined);
        block_query = block_query.defined() ? block_query + part : part;
      }
    }
    if (!want_query) return;
    grad_query.push_back(block_query.defined()
                             ? block_query
                             : at::zeros({call.query.size(0), call.keys[0].size(1), problem.groups,
                                          queries, call.query.size(3)},
                                         grad.options()));
  });

  const auto finish = [&](const Tensor& input, const Tensor& total, bool wanted) {
    if (!wanted) return at::empty({0}, input.options());
    if (!total.defined()) return in_order_of(input, at::zeros(input.sizes(), input.options()));
    return in_order_of(input, total);
  };
  Gradients result;
  std::get<0>(result) =
      finish(call.query, want_query ? at::cat(grad_query, 3).flatten(1, 2) : Tensor(), want_query);
  for (int m = 0; m < order; ++m) {
    std::get<1>(result).push_back(finish(call.keys[m], grad_keys[m], backward.wanted[1 + m]));
    std::get<2>(result).push_back(
        finish(call.values[m], grad_values[m], backward.wanted[1 + order + m]));
  }
  std::get<3>(result) = at::empty({0}, call.query.options());
  std::get<4>(result) = at::empty({0}, call.query.options());
  return result;
}

namespace {

// The door of every backend: key lengths lie on the CPU or are trusted.
Output composite_forward(const Call& call) {
  check(call);
  if (call.query.is_cpu()) check_key_length_values(call);
  return reference_forward(call);
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("attention", TORCH_FN(flat<&composite_forward>));
  m.impl("attention_reference", TORCH_FN(flat<&composite_forward>));
  m.impl("attention_backward", TORCH_FN(flat_backward<&reference_backward>));
}

}  // namespace
}  // namespace nsimplex::dense
