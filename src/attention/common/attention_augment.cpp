// Computes attention with added all-ones keys as a union of ordinary calls.

#include "attention/common/attention_augment.h"

#include <ATen/ATen.h>
#include <nsimplex/attention.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_normalizer.h"
#include "support/infinity.h"
#include "support/random.h"

namespace nsimplex::dense {
namespace {

using at::Tensor;

// Adds one more tuple of value 0 for every query that has any tuple.
Output with_sink(const Tensor& sink, const Tensor& out, const Tensor& lse) {
  const Tensor empty = at::isneginf(lse);
  const Tensor finite = lse.masked_fill(empty, 0);
  const Tensor whole = at::logaddexp(finite, sink.to(lse.scalar_type()).unsqueeze(-1));
  return {(out * (finite - whole).exp().unsqueeze(-1)).to(out.scalar_type()),
          whole.masked_fill(empty, -kInfinity)};
}

// The number that is added to the logits of all tuples of `order` keys: [Hq, 1].
Tensor bias_of_order(const Call& call, size_t order) {
  const at::ScalarType type = accumulate_type(call.query.scalar_type());
  return accumulated(call.options.order_bias->select(0, static_cast<int64_t>(order) - 1), type)
      .unsqueeze(-1);
}

// Merges results over disjoint sets of tuples.
Output united(const Call& call, const std::vector<Tensor>& outs, const std::vector<Tensor>& lses) {
  const Normalizer normalizer = names_of(call.options).normalizer;
  if (normalizer == Normalizer::sigmoid) {  // without normalisation, the sums are added
    Tensor out = outs[0], lse = lses[0];
    for (size_t p = 1; p < outs.size(); ++p) {
      out = out + outs[p];
      lse = at::maximum(lse, lses[p]);
    }
    return {out, lse};
  }
  auto [out, lse] = merge_attention(outs, lses);
  return normalizer == Normalizer::softmax_sink ? with_sink(*call.options.sink, out, lse)
                                                : Output{out, lse};
}

}  // namespace

bool augmented(const Call& call) {
  return call.options.augment.has_value() && !call.options.augment->empty();
}

void check_augment(const Call& call) {
  if (!augmented(call)) return;
  const int64_t order = static_cast<int64_t>(call.keys.size());
  int64_t seen = 0;
  for (const int64_t axis : *call.options.augment) {
    TORCH_CHECK_VALUE(axis >= 0 && axis < order, "[attention] augment: expected axes from 0 to ",
                      order - 1, ", got ", axis);
    TORCH_CHECK_VALUE((seen >> axis & 1) == 0, "[attention] augment: axis ", axis, " is repeated");
    seen |= int64_t{1} << axis;
  }
  const char* const other = unhandled(call.options, kParts);
  TORCH_CHECK_VALUE(other == nullptr, "[attention] augment: expected none with ",
                    other ? other : "", ", which is not defined for rows of ones");
}

PartialCall::PartialCall(const Call& call, std::vector<size_t> axes)
    : whole_(call), axes_(std::move(axes)) {
  const Options& o = call.options;
  for (const size_t m : axes_) {
    keys_.push_back(call.keys[m]);
    values_.push_back(call.values[m]);
    if (o.key_masks) key_masks_.push_back((*o.key_masks)[m]);
    if (o.window) window_.insert(window_.end(), {(*o.window)[2 * m], (*o.window)[2 * m + 1]});
  }
  key_lengths_ = o.key_lengths;
  if (key_lengths_ && key_lengths_->dim() == 2) {
    std::vector<Tensor> rows;
    for (const size_t m : axes_) rows.push_back(key_lengths_->select(0, static_cast<int64_t>(m)));
    key_lengths_ = at::stack(rows);
  }
  seed_ = o.seed;
  if (o.dropout_p > 0 && axes_.size() < call.keys.size()) {
    // Gives tuples of different orders independent dropout although their indices are alike.
    uint64_t chosen = 0;
    for (const size_t m : axes_) chosen |= uint64_t{1} << m;
    const auto seed = static_cast<uint64_t>(o.seed->guard_int(__FILE__, __LINE__));
    seed_ = static_cast<int64_t>(random_bits(seed, chosen) >> 1);
  }
}

Call PartialCall::call() const {
  Options options = whole_.options;
  if (options.window) options.window = c10::SymIntArrayRef(window_);
  if (options.key_masks) options.key_masks = at::TensorList(key_masks_);
  options.key_lengths = key_lengths_;
  options.seed = seed_;
  options.mask.reset();
  options.augment.reset();
  options.order_bias.reset();
  // The parts have no sink; it is added when they are merged.
  options.sink.reset();
  if (options.normalizer == name_of(Normalizer::softmax_sink)) {
    options.normalizer = name_of(Normalizer::softmax);
  }
  return {whole_.query, keys_, values_, options};
}

std::vector<PartialCall> partial_calls(const Call& call) {
  const at::IntArrayRef axes = *call.options.augment;
  std::vector<PartialCall> parts;
  for (uint64_t ones = 0; ones < uint64_t{1} << axes.size(); ++ones) {
    std::vector<size_t> real;
    for (size_t m = 0; m < call.keys.size(); ++m) {
      const auto place = std::find(axes.begin(), axes.end(), static_cast<int64_t>(m));
      const bool takes_ones = place != axes.end() && (ones >> (place - axes.begin()) & 1) != 0;
      if (!takes_ones) real.push_back(m);
    }
    if (!real.empty()) parts.emplace_back(call, std::move(real));
  }
  return parts;
}

Output augmented_forward(const Call& call, Output (*run)(const Call&)) {
  std::vector<Tensor> outs, lses;
  for (const PartialCall& part : partial_calls(call)) {
    auto [out, lse] = run(part.call());
    if (call.options.order_bias) lse = lse + bias_of_order(call, part.axes().size());
    outs.push_back(std::move(out));
    lses.push_back(std::move(lse));
  }
  auto [out, lse] = united(call, outs, lses);
  return {in_order_of(call.query, out), lse};
}

// With the results of the whole call, the backward of each part uses the weights of the whole.
Gradients augmented_backward(const BackwardCall& backward, Gradients (*run)(const BackwardCall&)) {
  const Call& call = backward.forward;
  const size_t order = call.keys.size();
  const auto add = [](Tensor& total, const Tensor& part) {
    total = total.defined() ? total + part : part;
  };
  Tensor grad_query;
  std::vector<Tensor> grad_keys(order), grad_values(order);
  for (const PartialCall& part : partial_calls(call)) {
    const std::vector<size_t>& axes = part.axes();
    c10::List<bool> wanted;
    wanted.push_back(backward.wanted[0]);
    for (const size_t first : {size_t{1}, 1 + order}) {
      for (const size_t m : axes) wanted.push_back(backward.wanted[first + m]);
    }
    wanted.push_back(false);  // mask
    wanted.push_back(false);  // sink
    // A weight is exp(logit + bias - lse).
    const Tensor lse =
        call.options.order_bias ? backward.lse - bias_of_order(call, axes.size()) : backward.lse;
    const Gradients gradients =
        run({part.call(), backward.out, lse, backward.grad_out, backward.grad_lse, wanted});
    add(grad_query, std::get<0>(gradients));
    for (size_t n = 0; n < axes.size(); ++n) {
      add(grad_keys[axes[n]], std::get<1>(gradients)[n]);
      add(grad_values[axes[n]], std::get<2>(gradients)[n]);
    }
  }
  const Tensor unwanted = at::empty({0}, call.query.options());
  const bool want_sink = backward.wanted[2 + 2 * order];
  if (!want_sink) return {grad_query, grad_keys, grad_values, unwanted, unwanted};
  const Tensor lse = backward.lse.masked_fill(at::isneginf(backward.lse), 0).unsqueeze(1);
  return {grad_query, grad_keys, grad_values, unwanted, grad_sink(backward, {lse, {}})};
}

}  // namespace nsimplex::dense
