// Attention over lists of tuples by ATen calls. It is the oracle of the kernels, the fallback for
// every dtype, device and learned reducer, and the path of double backward.
//
// It processes one list after the other, chunk by chunk. The tuples of some consecutive queries are
// gathered, and sums over the tuples of a query or of a key are index_add. Nothing is written in
// place, so every step can be differentiated again.

#include "attention/sparse_attention/sparse_attention_reference.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>

#include "attention/common/attention_normalizer.h"
#include "attention/sparse_attention/sparse_attention_terms.h"
#include "support/infinity.h"

namespace nsimplex::sparse {
namespace {

using at::Tensor;

// Elements of one gathered row per tuple of a chunk. Tensors computed from them stay within some
// hundred megabytes.
constexpr int64_t kChunkElements = int64_t{1} << 21;

int64_t chunk_tuples(const Call& call, const Settings& settings) {
  const int64_t entries = settings.list_entries == 1 ? call.query.size(0) : 1;
  const int64_t heads = call.query.size(1) / settings.list_groups;
  const int64_t width = std::max(call.query.size(3), call.values[0].size(3));
  const int64_t most = call.query.is_cpu() ? kChunkElements : kDeviceChunkElements;
  return std::max<int64_t>(most / std::max<int64_t>(entries * heads * width, 1), 1);
}

// [B, Hq, ...] -> [B, Hk, G, ...]
Tensor by_group(const Call& call, const Tensor& tensor) {
  const int64_t kv_heads = call.keys[0].size(1);
  return tensor.unflatten(1, {kv_heads, call.query.size(1) / kv_heads});
}

// The results of every list of a call: some tensors [entries, heads, ...] each, with entries
// slowest.
using ListResults = std::vector<std::vector<Tensor>>;

template <class OfList>
ListResults over_lists(const Call& call, const Settings& settings, OfList&& of_list) {
  ListResults results;
  for (int64_t entry = 0; entry < settings.list_entries; ++entry) {
    for (int64_t group = 0; group < settings.list_groups; ++group) {
      results.push_back(of_list(TupleList(call, settings, entry, group)));
    }
  }
  return results;
}

// Tensor `index` of all lists as one tensor.
Tensor joined(const ListResults& lists, size_t index, const Settings& settings) {
  std::vector<Tensor> entries, groups;
  for (const std::vector<Tensor>& list : lists) {
    groups.push_back(list[index]);
    if (static_cast<int64_t>(groups.size()) < settings.list_groups) continue;
    entries.push_back(at::cat(groups, 1));
    groups.clear();
  }
  return at::cat(entries, 0);
}

// The norms of the rows of a chunk, [B, H, G, R]. The maximum is 0 for a row without tuples.
dense::RowNorm norm_of_rows(const ChunkTerms& terms, const Tensor& logits, const Tensor& maximum) {
  const Tensor empty = at::isneginf(maximum), finite = maximum.masked_fill(empty, 0);
  const Tensor weights = (logits - terms.spread(finite)).exp();
  return {finite, terms.sum_to_rows(weights).masked_fill(empty, 1).log()};
}

// out [B, H, G, Tq, Dv] and lse [B, H, G, Tq] of a list.
std::vector<Tensor> list_forward(const Call& call, const Settings& settings,
                                 const TupleList& list) {
  const ListPart part(call, settings, list);
  std::vector<Tensor> outs, lses;
  list.for_each_chunk(chunk_tuples(call, settings), [&](const TupleChunk& chunk) {
    const ChunkTerms terms(part, chunk);
    const Tensor logits = terms.logits();
    // The maximum only keeps the exponentials in range and marks queries without tuples.
    const Tensor maximum = terms.largest_of_rows(logits), empty = at::isneginf(maximum);
    const Tensor finite = maximum.masked_fill(empty, 0);
    const Tensor weights = (logits - terms.spread(finite)).exp();
    const Tensor sum = terms.sum_to_rows(weights).masked_fill(empty, 1);
    const Tensor weighted =
        terms.sum_to_rows(weights.unsqueeze(-1) * terms.combined_values().unsqueeze(2));
    outs.push_back(weighted * (settings.scale.output / sum).unsqueeze(-1));
    lses.push_back((finite + sum.log()).masked_fill(empty, -kInfinity));
  });
  return {at::cat(outs, 3), at::cat(lses, 3)};
}

// Gradients of one list, summed chunk by chunk: query, keys.., values.., weights... Those of the
// weights have a leading dimension of 1. Gradients that are not wanted are undefined.
class ListBackward {
 public:
  ListBackward(const BackwardCall& backward, const Settings& settings, const TupleList& list)
      : backward_(backward),
        settings_(settings),
        order_(static_cast<size_t>(settings.order)),
        part_(backward.forward, settings, list),
        totals_(backward.wanted.size()),
        delta_(dense::DeltaTerm(backward.out, backward.lse, backward.grad_out, backward.grad_lse)
                   .by([&](const Tensor& tensor) {
                     return list.part(by_group(backward.forward, tensor));
                   })) {
    const Call& call = backward.forward;
    const Tensor empty = at::isneginf(backward.lse);
    const auto rows = [&](const Tensor& tensor) { return list.part(by_group(call, tensor)); };
    lse_ = rows(backward.lse.masked_fill(empty, 0));
    const Tensor grad = backward.grad_out.to(lse_.scalar_type()) * settings.scale.output;
    grad_ = rows(grad.masked_fill(empty.unsqueeze(-1), 0));
  }

  std::vector<Tensor> run(const TupleList& list) {
    list.for_each_chunk(chunk_tuples(backward_.forward, settings_),
                        [&](const TupleChunk& chunk) { add(chunk); });
    if (wanted(0)) totals_[0] = at::cat(grad_query_, 3);
    return std::move(totals_);
  }

 private:
  bool wanted(size_t input) const { return backward_.wanted[input]; }
  bool any_wanted(size_t first, size_t last) const {
    while (first < last && !wanted(first)) ++first;
    return first < last;
  }

  void add(const TupleChunk& chunk) {
    const ChunkTerms terms(part_, chunk);
    const auto of_tuples = [&](const Tensor& rows) { return terms.spread(terms.rows(rows)); };
    const Tensor logits = terms.logits(), grad = of_tuples(grad_);
    // exp(logits - lse) would be inaccurate: a large lse has no digits left for the logarithm of a
    // sum.
    const dense::RowNorm norm = dense::with_lse(
        norm_of_rows(terms, logits, terms.largest_of_rows(logits)), terms.rows(lse_));
    const Tensor weights = (logits - terms.spread(norm.maximum) - terms.spread(norm.log_sum)).exp();
    if (any_wanted(1 + order_, totals_.size())) {
      const auto grads = terms.reduce_backward((weights.unsqueeze(-1) * grad).sum(2));
      add_keys(1 + order_, part_.values, chunk, grads.values);
      for (size_t w = 0; w < grads.weights.size(); ++w) {
        Tensor& total = totals_[1 + 2 * order_ + w];
        const Tensor each = grads.weights[w].unsqueeze(0);
        total = total.defined() ? total + each : each;
      }
    }
    if (!any_wanted(0, 1 + order_)) return;
    const Tensor grad_weights = (grad * terms.combined_values().unsqueeze(2)).sum(-1);
    const auto grads =
        terms.form_backward(weights * delta_.by(of_tuples).less_delta(grad_weights, weights));
    if (wanted(0)) grad_query_.push_back(grads.query * settings_.scale.logit);
    add_keys(1, part_.keys, chunk, grads.keys);
  }

  // Adds rows of tuples to the rows of their keys.
  void add_keys(size_t first, const std::vector<Tensor>& inputs, const TupleChunk& chunk,
                const std::vector<Tensor>& parts) {
    for (size_t m = 0; m < order_; ++m) {
      if (!wanted(first + m)) continue;
      Tensor& total = totals_[first + m];
      if (!total.defined()) total = at::zeros(inputs[m].sizes(), inputs[m].options());
      total = total.index_add(2, chunk.keys[m], parts[m]);
    }
  }

  const BackwardCall& backward_;
  const Settings& settings_;
  const size_t order_;
  const ListPart part_;
  std::vector<Tensor> totals_, grad_query_;
  const dense::DeltaTerm delta_;  ///< like the next ones
  Tensor lse_, grad_;             ///< [B, H, G, Tq, ..]
};

}  // namespace

Output reference_forward(const Call& call) {
  check(call);
  if (call.query.is_cpu()) check_values(call);
  const Settings settings = settings_of(call);
  const ListResults lists = over_lists(
      call, settings, [&](const TupleList& list) { return list_forward(call, settings, list); });
  if (lists.empty()) {  // no batch entry
    const at::TensorOptions wide =
        call.query.options().dtype(dense::accumulate_type(call.query.scalar_type()));
    return {at::zeros_symint(output_sizes(call), call.query.options()),
            at::zeros(call.query.sizes().slice(0, 3), wide)};
  }
  return {dense::in_order_of(call.query, joined(lists, 0, settings).flatten(1, 2)),
          joined(lists, 1, settings).flatten(1, 2)};
}

Gradients reference_backward(const BackwardCall& backward) {
  check(backward);
  const Call& call = backward.forward;
  if (call.query.is_cpu()) check_values(call);
  const Settings settings = settings_of(call);
  const ListResults lists = over_lists(call, settings, [&](const TupleList& list) {
    return ListBackward(backward, settings, list).run(list);
  });
  size_t next = 0;
  const auto take = [&](const Tensor& input, auto&& shape) {
    const size_t index = next++;
    if (!backward.wanted[index]) return at::empty({0}, input.options());
    if (lists.empty()) return at::zeros(input.sizes(), input.options());
    return shape(joined(lists, index, settings)).to(input.scalar_type());
  };
  const auto in_order = [&](const Tensor& input) {
    return take(input, [&](const Tensor& grad) {
      // A list that the batch shares has all its entries. The query has its groups as a dimension.
      return dense::in_order_of(input, grad.dim() == 5 ? grad.flatten(1, 2) : grad);
    });
  };
  Gradients result;
  std::get<0>(result) = in_order(call.query);
  for (const Tensor& key : call.keys) std::get<1>(result).push_back(in_order(key));
  for (const Tensor& value : call.values) std::get<2>(result).push_back(in_order(value));
  for (const Tensor& weight : call.options.weights()) {
    std::get<3>(result).push_back(take(weight, [](const Tensor& grad) { return grad.sum(0); }));
  }
  return result;
}

namespace {

Output device_forward(const Call& call) {
  check(call);
  return call.query.is_cpu() || !has_products(call) ? reference_forward(call)
                                                    : products_forward(call);
}

Gradients device_backward(const BackwardCall& call) {
  check(call);
  return call.forward.query.is_cpu() || !has_products(call.forward) ? reference_backward(call)
                                                                    : products_backward(call);
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("sparse_attention", TORCH_FN(flat<&device_forward>));
  m.impl("sparse_attention_reference", TORCH_FN(flat<&reference_forward>));
  m.impl("sparse_attention_backward", TORCH_FN(flat<&device_backward>));
  m.impl("sparse_attention_reference_backward", TORCH_FN(flat<&reference_backward>));
}

}  // namespace
}  // namespace nsimplex::sparse
