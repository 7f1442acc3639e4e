// Dense N-simplicial attention from plain ATen calls: the oracle of every kernel, the fallback of
// every dtype and device, and the path of double backward and of functorch transforms.
//
// The work is cut into tiles: some neighbouring queries times a box of tuples. Only the slices of
// keys and values that a tile can see are read. Forward merges the tiles of a query by online
// softmax; backward recomputes each tile from lse. Nothing is written in place, so every step can
// be batched by vmap and differentiated again.
//
// Names of dimensions: B batch, H key heads, G query heads of one key head, Q queries of the tile,
// L leading tuples (j_1 .. j_{N-1}) of the tile flattened, K keys of the last axis in the tile.

#include <ATen/ATen.h>
#include <torch/library.h>

#include <limits>

#include "attention/dense/dense_arguments.h"
#include "attention/dense/dense_tiles.h"

namespace nsimplex::dense {
namespace {

using at::Tensor;
using kernels::Range;

// Everything of a call that tiles share.
struct Problem {
  Settings settings;
  Tensor query;  // [B, H, G, Tq, D]
  at::TensorList keys, values;
  Tensor valid;  // see valid_keys
  at::ScalarType accumulate;
  int64_t groups = 1;

  explicit Problem(const Call& call)
      : settings(settings_of(call)),
        keys(call.keys),
        values(call.values),
        valid(valid_keys(call)),
        accumulate(accumulate_type(call.query.scalar_type())),
        groups(call.query.size(1) / call.keys[0].size(1)) {
    query = by_group(call.query);
  }

  // [B, H * G, ...] -> [B, H, G, ...]
  Tensor by_group(const Tensor& tensor) const {
    return tensor.unflatten(1, {keys[0].size(1), groups});
  }

  // The factor of a tuple's combined values: s2, with the mean's 1/N.
  double output_scale() const {
    return settings.reduce == Reduce::mean ? settings.scale.output / settings.order
                                           : settings.scale.output;
  }
};

// [.., X, C] and [.., Y, C] -> [.., X * Y, C], the channelwise product of every pair of rows.
Tensor product_of_rows(const Tensor& left, const Tensor& right) {
  return (left.unsqueeze(-2) * right.unsqueeze(-3)).flatten(-3, -2);
}

// Rows [B, H, L, C] of the leading tuples: the channelwise product over axes 1..N-1 (ones for N =
// 1).
Tensor leading_rows(const std::vector<Tensor>& axes) {
  if (axes.size() == 1) return at::ones({1, 1, 1, 1}, axes[0].options());
  Tensor rows = axes[0];
  for (size_t m = 1; m + 1 < axes.size(); ++m) rows = product_of_rows(rows, axes[m]);
  return rows;
}

// Gradients of axes 1..N-1 given that of their leading rows.
std::vector<Tensor> leading_rows_backward(const std::vector<Tensor>& axes, Tensor grad) {
  std::vector<Tensor> grads(axes.size() - 1);
  for (size_t m = grads.size(); m-- > 1;) {
    // rows = product_of_rows(before, axes[m])
    const Tensor before = leading_rows({axes.begin(), axes.begin() + m + 1});
    const Tensor pairs = grad.unflatten(-2, {before.size(-2), axes[m].size(-2)});
    grads[m] = (pairs * before.unsqueeze(-2)).sum(-3);
    grad = (pairs * axes[m].unsqueeze(-3)).sum(-2);
  }
  if (!grads.empty()) grads[0] = grad;
  return grads;
}

// The slices of one tile and the steps of the formula on them.
class TileTerms {
 public:
  TileTerms(const Problem& problem, const Tile& tile) : problem_(problem), tile_(tile) {
    query_ = rows(problem.query) * problem.settings.scale.logit;
    for (int m = 0; m < problem.settings.order; ++m) {
      keys_.push_back(slice(problem.keys[m], m));
      values_.push_back(slice(problem.values[m], m));
    }
    leading_key_ = leading_rows(keys_);
    leading_value_ = leading_rows(values_);
    combined_ = query_.unsqueeze(-2) * leading_key_.unsqueeze(2).unsqueeze(2);
  }

  // The tile's queries of a [B, H, G, Tq, ...] tensor.
  Tensor rows(const Tensor& tensor) const {
    return tensor.narrow(3, tile_.first_query, tile_.queries).to(problem_.accumulate);
  }

  // s1 * form, -inf where the tuple is masked: [B, H, G, Q, L, K].
  Tensor logits() const {
    return times(combined_, keys_.back().transpose(-1, -2))
        .masked_fill(admissible().logical_not(), -std::numeric_limits<double>::infinity());
  }

  // sum_J P_J reduce(v_J), without s2: [B, H, G, Q, Dv].
  Tensor combine_values(const Tensor& weights) const {
    if (problem_.settings.reduce == Reduce::product) {
      return (times(weights, values_.back()) * leading_value_.unsqueeze(2).unsqueeze(2)).sum(-2);
    }
    Tensor sum;
    for (size_t m = 0; m < values_.size(); ++m) {
      const Tensor part = times(marginal(weights, m), values_[m]);
      sum = sum.defined() ? sum + part : part;
    }
    return sum;
  }

  // d(s2 * combined values . grad) / d weights: [B, H, G, Q, L, K]. `grad` holds s2 already.
  Tensor grad_weights(const Tensor& grad) const {
    if (problem_.settings.reduce == Reduce::product) {
      return times(grad_rows(grad), values_.back().transpose(-1, -2));
    }
    // grad . v^(m), one axis after the other: the tuple's sum, flattened like the tuples.
    Tensor sum = times(grad, values_[0].transpose(-1, -2));
    for (size_t m = 1; m < values_.size(); ++m) {
      const Tensor part = times(grad, values_[m].transpose(-1, -2));
      sum = (sum.unsqueeze(-1) + part.unsqueeze(-2)).flatten(-2, -1);
    }
    return sum.unflatten(-1, {leading_count(), last_count()});
  }

  // Gradients of the tile's value slices, [B, H, n_m, Dv] each.
  std::vector<Tensor> grad_values(const Tensor& weights, const Tensor& grad) const {
    std::vector<Tensor> grads;
    if (problem_.settings.reduce == Reduce::product) {
      const Tensor along_last = times(weights, values_.back());
      grads = leading_rows_backward(values_, (along_last * grad.unsqueeze(-2)).sum({2, 3}));
      grads.push_back(over_rows(weights, grad_rows(grad)));
    } else {
      for (size_t m = 0; m < values_.size(); ++m) {
        grads.push_back(over_rows(marginal(weights, m), grad));
      }
    }
    return grads;
  }

  // Gradients of the tile's key slices given that of the logits.
  std::vector<Tensor> grad_keys(const Tensor& grad_logits) const {
    const Tensor grad_combined = times(grad_logits, keys_.back());
    std::vector<Tensor> grads =
        leading_rows_backward(keys_, (grad_combined * query_.unsqueeze(-2)).sum({2, 3}));
    grads.push_back(over_rows(grad_logits, combined_));
    return grads;
  }

  Tensor grad_query(const Tensor& grad_logits) const {
    const Tensor grad_combined = times(grad_logits, keys_.back());
    return (grad_combined * leading_key_.unsqueeze(2).unsqueeze(2)).sum(-2) *
           problem_.settings.scale.logit;
  }

 private:
  int64_t last_count() const { return tile_.keys[problem_.settings.order - 1].size(); }
  int64_t leading_count() const {
    int64_t count = 1;
    for (int m = 0; m + 1 < problem_.settings.order; ++m) count *= tile_.keys[m].size();
    return count;
  }

  // [B, H, rows.., X] @ [B, H, X, Y] -> [B, H, rows.., Y]
  static Tensor times(const Tensor& left, const Tensor& right) {
    const at::DimVector inner(left.sizes().slice(2, left.dim() - 3));
    return at::matmul(left.flatten(2, -2), right).unflatten(2, inner);
  }

  // sum over all rows of left^T right: [B, H, rows.., X], [B, H, rows.., Y] -> [B, H, X, Y]
  static Tensor over_rows(const Tensor& left, const Tensor& right) {
    return at::matmul(left.flatten(2, -2).transpose(-1, -2), right.flatten(2, -2));
  }

  // The output's gradient times the leading values: [B, H, G, Q, L, Dv].
  Tensor grad_rows(const Tensor& grad) const {
    return grad.unsqueeze(-2) * leading_value_.unsqueeze(2).unsqueeze(2);
  }

  // Sum of the weights over all axes but m: [B, H, G, Q, n_m].
  Tensor marginal(const Tensor& weights, size_t axis) const {
    at::DimVector counts, others;
    for (int m = 0; m < problem_.settings.order; ++m) {
      counts.push_back(tile_.keys[m].size());
      if (static_cast<size_t>(m) != axis) others.push_back(4 + m);
    }
    const Tensor by_axis = weights.flatten(4, 5).unflatten(4, counts);
    return others.empty() ? by_axis : by_axis.sum(others);
  }

  Tensor positions(Range range) const {
    return at::arange(range.begin, range.end, problem_.query.options().dtype(at::kLong));
  }

  // The tile's rows of one axis. Rows beyond the valid keys are zeroed: what lies there never
  // shows.
  Tensor slice(const Tensor& tensor, int axis) const {
    const Range range = tile_.keys[axis];
    const Tensor part = tensor.narrow(2, range.begin, range.size()).to(problem_.accumulate);
    if (!problem_.valid.defined()) return part;
    const Tensor valid =
        positions(range).lt(problem_.valid.select(0, axis).unsqueeze(-1));  // [B, n]
    return at::where(valid.unsqueeze(1).unsqueeze(-1), part, 0);
  }

  // Which keys of an axis each query sees: [B or 1, Q, n_m].
  Tensor visible(int axis) const {
    const kernels::Visibility& rule = problem_.settings.visible[axis];
    const Tensor key = positions(tile_.keys[axis]).unsqueeze(0);
    const Tensor position =
        positions({tile_.first_query, tile_.first_query + tile_.queries}).unsqueeze(1) +
        rule.offset;
    Tensor seen = at::ones({tile_.queries, key.size(1)}, key.options().dtype(at::kBool));
    if (rule.left >= 0) seen = seen.logical_and(key.gt(position - rule.left));
    if (rule.right >= 0) seen = seen.logical_and(key.le(position + rule.right));
    if (rule.causal) seen = seen.logical_and(key.le(position));
    seen = seen.unsqueeze(0);
    if (!problem_.valid.defined()) return seen;
    return seen.logical_and(key.lt(problem_.valid.select(0, axis).unsqueeze(-1)).unsqueeze(1));
  }

  // Which tuples each query sees: [B or 1, 1, 1, Q, L, K].
  Tensor admissible() const {
    Tensor tuples = visible(0);
    for (int m = 1; m < problem_.settings.order; ++m) {
      tuples = tuples.unsqueeze(-1).logical_and(visible(m).unsqueeze(-2)).flatten(-2, -1);
    }
    return tuples.unflatten(-1, {leading_count(), last_count()}).unsqueeze(1).unsqueeze(1);
  }

  const Problem& problem_;
  const Tile& tile_;
  Tensor query_;                        // [B, H, G, Q, D], times s1
  std::vector<Tensor> keys_, values_;   // [B, H, n_m, D or Dv]
  Tensor leading_key_, leading_value_;  // [B, H, L, D or Dv]
  Tensor combined_;                     // [B, H, G, Q, L, D]
};

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
      if (want_keys) add(grad_keys, terms.grad_keys(grad_logits), 1, call.keys);
      if (want_query) {
        const Tensor part = terms.grad_query(grad_logits);
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
