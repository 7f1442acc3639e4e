// Dense N-simplicial attention by ATen calls. It is the oracle of every kernel, the fallback for
// every dtype and device, and the path of double backward and of functorch transforms.
//
// The work is divided into tiles: some consecutive queries times a box of tuples. Only the slices
// of keys and values that a tile sees are read. The forward pass merges the tiles of a query
// (online softmax). The backward pass recomputes each tile from lse, and sums the weights of the
// tiles first if lse may be large. Nothing is written in place, so vmap can batch every step, and
// every step can be differentiated again.

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include <limits>

#include "attention/common/attention_augment.h"
#include "attention/common/attention_normalizer.h"

namespace nsimplex::dense {
namespace {

using at::Tensor;

// total + part at rows [begin, begin + n) of `length`.
void add_rows(Tensor& total, const Tensor& part, int64_t begin, int64_t length) {
  const Tensor padded = at::constant_pad_nd(part, {0, 0, begin, length - begin - part.size(2)});
  total = total.defined() ? total + padded : padded;
}

// The norms of all rows, [B, H, G, Tq], for the backward pass. `lse` is finite for rows without
// weights.
RowNorm norm_of_rows(const Problem& problem, const Tiling& tiling, const Tensor& lse) {
  if (!exponential(problem.settings.normalizer)) return {{}, lse};
  if (!may_be_large(lse)) return {lse, {}};
  std::vector<Tensor> maxima, log_sums;
  const auto measure = [&](int64_t first, int64_t queries, const std::vector<Tile>& tiles) {
    const at::NoGradGuard no_grad;  // their gradient is that of lse
    RowNorm norm{at::zeros_like(lse.narrow(3, first, queries)).to(problem.logit_type),
                 at::zeros_like(lse.narrow(3, first, queries))};
    if (!tiles.empty()) {
      RowSums sums(problem);
      for (const Tile& tile : tiles) sums.add(TileTerms(problem, tile), /*values=*/false);
      norm = sums.norm();
    }
    maxima.push_back(norm.maximum);
    log_sums.push_back(norm.log_sum);
  };
  tiling.for_each_block(measure);
  return with_lse({at::cat(maxima, 3), at::cat(log_sums, 3)}, lse);
}

// The number of steps grows with the sizes, and an expanded view may have any size.
void require_sizes(const Call& call) {
  require_addressable("attention", "query", call.query);
  require_addressable("attention", "keys", call.keys);
  require_addressable("attention", "values", call.values);
}

}  // namespace

Output reference_forward(const Call& call) {
  check(call);
  require_sizes(call);
  if (augmented(call)) return augmented_forward(call, &reference_forward);
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
    RowSums sums(problem);
    for (const Tile& tile : tiles) sums.add(TileTerms(problem, tile));
    auto [out, lse] = sums.finish();
    outs.push_back(std::move(out));
    lses.push_back(std::move(lse));
  });
  return {in_order_of(call.query, at::cat(outs, 3).flatten(1, 2)), at::cat(lses, 3).flatten(1, 2)};
}

namespace {

// The gradients of a call that is not augmented. `of_masks` collects those of masks, which may be
// none.
Gradients tile_gradients(const BackwardCall& backward, const Problem& problem,
                         std::vector<MaskGradient>& of_masks) {
  const Call& call = backward.forward;
  const int order = problem.settings.order;
  const bool want_query = backward.wanted[0];
  const auto want_any = [&](int first) {
    for (int m = 0; m < order; ++m) {
      if (backward.wanted[first + m]) return true;
    }
    return false;
  };
  const bool want_keys = want_any(1), want_values = want_any(1 + order);
  const bool want_masks = !of_masks.empty(), want_sink = backward.wanted[2 + 2 * order];
  const Normalizer normalizer = problem.settings.normalizer;

  const Tensor grad = backward.grad_out.to(problem.accumulate);
  const Tensor empty = at::isneginf(backward.lse);
  const DeltaTerm rows_delta =
      DeltaTerm(backward.out, backward.lse, backward.grad_out, backward.grad_lse)
          .by([&](const Tensor& rows) { return problem.by_group(rows); });
  const Tiling tiling(call, problem.settings);
  const RowNorm rows_norm =
      norm_of_rows(problem, tiling, problem.by_group(backward.lse.masked_fill(empty, 0)));
  const Tensor rows_grad =
      problem.by_group((grad * problem.output_scale()).masked_fill(empty.unsqueeze(-1), 0));

  std::vector<Tensor> grad_query;
  std::vector<Tensor> grad_keys(order), grad_values(order);
  tiling.for_each_block([&](int64_t first, int64_t queries, const std::vector<Tile>& tiles) {
    const RowNorm norm = rows_norm.part(first, queries);
    Tensor block_query;
    for (const Tile& tile : tiles) {
      const TileTerms terms(problem, tile);
      const Tensor tile_grad = terms.rows(rows_grad);
      const Tensor logits = terms.logits();
      const Tensor weights = weights_of(normalizer, logits, norm);
      const auto add = [&](std::vector<Tensor>& totals, const std::vector<Tensor>& parts, int first,
                           at::TensorList inputs) {
        for (int m = 0; m < order; ++m) {
          if (!backward.wanted[first + m]) continue;
          add_rows(totals[m], parts[m], tile.keys[m].begin, inputs[m].size(2));
        }
      };
      if (want_values) {
        add(grad_values, terms.grad_values(terms.with_dropout(weights), tile_grad), 1 + order,
            call.values);
      }
      if (!want_query && !want_keys && !want_masks) continue;
      Tensor grad_weights = terms.with_dropout(terms.grad_weights(tile_grad));
      if (normalized(normalizer)) {
        const auto of_tile = [&](const Tensor& rows) {
          return terms.rows(rows).unsqueeze(-1).unsqueeze(-1);
        };
        grad_weights = rows_delta.by(of_tile).less_delta(grad_weights, weights);
      }
      const Tensor grad_logits = slope_of(normalizer, logits, weights, norm) * grad_weights;
      for (MaskGradient& mask : of_masks) mask.add(tile, grad_logits);
      if (!want_query && !want_keys) continue;
      const Tensor grad_scores = terms.before_softcap(grad_logits);
      const Tensor grad_combined = terms.grad_combined(grad_scores);
      if (want_keys) add(grad_keys, terms.grad_keys(grad_scores, grad_combined), 1, call.keys);
      if (want_query) {
        const Tensor part = terms.grad_query(grad_combined);
        block_query = block_query.defined() ? block_query + part : part;
      }
    }
    for (MaskGradient& mask : of_masks) mask.end_block(queries, grad.options());
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
  const Tensor unwanted = at::empty({0}, call.query.options());
  std::get<3>(result) = unwanted;
  std::get<4>(result) = want_sink ? grad_sink(backward, rows_norm) : unwanted;
  return result;
}

}  // namespace

Gradients reference_backward(const BackwardCall& backward) {
  check(backward);
  const Call& call = backward.forward;
  require_sizes(call);
  if (augmented(call)) return augmented_backward(backward, &reference_backward);
  const Problem problem(call);
  std::vector<MaskGradient> of_mask;
  if (backward.wanted[1 + 2 * call.keys.size()])
    of_mask.emplace_back(problem.admissible.masks()[0]);
  Gradients result = tile_gradients(backward, problem, of_mask);
  if (!of_mask.empty()) std::get<3>(result) = of_mask[0].finish();
  return result;
}

PairMaskGradients reference_pair_masks_backward(const PairMasksBackwardCall& backward) {
  check(backward);
  const Call& call = backward.forward;
  require_sizes(call);
  const Problem problem(call);
  const std::vector<TupleMask> masks = pair_masks_of(call);
  std::vector<MaskGradient> of_masks;
  for (size_t m = 0; m < masks.size(); ++m) {
    if (backward.wanted[m]) of_masks.emplace_back(masks[m]);
  }
  BackwardCall of_inputs = backward;
  of_inputs.wanted = unwanted(call);
  tile_gradients(of_inputs, problem, of_masks);
  PairMaskGradients result;
  size_t next = 0;
  for (size_t m = 0; m < masks.size(); ++m) {
    result.push_back(backward.wanted[m] ? of_masks[next++].finish()
                                        : at::empty({0}, call.query.options()));
  }
  return result;
}

namespace {

// The checks of every backend: lengths and boundaries are read if they are on the CPU, and
// otherwise trusted.
Output composite_forward(const Call& call) {
  check(call);
  if (call.query.is_cpu()) check_values(call);
  return reference_forward(call);
}

// The kernel of a device may pass augmented calls to the composite, which calls the kernel for
// their ordinary parts.
Output forward_of_parts(const Call& call) {
  if (call.query.is_cpu() || !augmented(call)) return composite_forward(call);
  check(call);
  const at::AutoDispatchBelowADInplaceOrView guard;
  return augmented_forward(call, [](const Call& part) { return dispatch(part); });
}

Gradients backward_of_parts(const BackwardCall& call) {
  if (call.forward.query.is_cpu() || !augmented(call.forward)) return reference_backward(call);
  check(call);
  const at::AutoDispatchBelowADInplaceOrView guard;
  return augmented_backward(call, [](const BackwardCall& part) { return dispatch(part); });
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("attention", TORCH_FN(flat<&forward_of_parts>));
  m.impl("attention_reference", TORCH_FN(flat<&composite_forward>));
  m.impl("attention_backward", TORCH_FN(flat<&backward_of_parts>));
  m.impl("attention_pair_masks_backward", TORCH_FN(flat<&reference_pair_masks_backward>));
}

}  // namespace
}  // namespace nsimplex::dense
