// Converts logits to weights and back-propagates through them, for every normaliser.

#include "attention/common/attention_normalizer.h"

#include <ATen/ATen.h>
#include <ATen/TensorSubclassLikeUtils.h>

#include <limits>

#include "kernels/common/softmax_state.h"
#include "kernels/cpu/shared/item_delta.h"
#include "support/infinity.h"

namespace nsimplex::dense {
namespace {

using at::Tensor;

Tensor over_tuples(const Tensor& rows) { return rows.unsqueeze(-1).unsqueeze(-1); }

Tensor activated(Normalizer normalizer, const Tensor& logits, at::ScalarType type) {
  return (normalizer == Normalizer::sigmoid ? logits.sigmoid() : logits.relu()).to(type);
}

double epsilon(at::ScalarType type) {
  return type == at::kDouble ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
}

}  // namespace

Tensor RowNorm::lse() const {
  if (!log_sum.defined()) return maximum;
  return maximum.defined() ? accumulated(maximum + log_sum, type()) : log_sum;
}

RowNorm RowNorm::part(int64_t first, int64_t count) const {
  const auto rows = [&](const Tensor& all) {
    return all.defined() ? all.narrow(3, first, count) : Tensor();
  };
  return {rows(maximum), rows(log_sum)};
}

RowNorm with_lse(const RowNorm& own, const Tensor& lse) {
  const Tensor given = lse.masked_fill(at::isinf(lse), 0), value = given.detach();
  const Tensor beyond = own.lse().detach() - lse.detach();
  const Tensor rounding = 4 * epsilon(lse.scalar_type()) * value.abs();
  const Tensor fewer = at::where(beyond.abs() > rounding, beyond, 0);
  // The last difference is 0 and carries the gradient.
  return {own.maximum, own.log_sum.detach() - fewer + (given - value)};
}

bool may_be_large(const Tensor& lse) {
  if (at::isTensorSubclassLike(lse) || !lse.is_cpu()) return true;
  return lse.detach().abs().gt(kernels::kLargeLse).logical_and(lse.isfinite()).any().item<bool>();
}

Tensor RowSums::empty() const {
  return problem_.settings.normalizer == Normalizer::relu ? sum_.eq(0) : at::isneginf(maximum_);
}

void RowSums::add(const TileTerms& terms, bool values) {
  const Normalizer normalizer = problem_.settings.normalizer;
  const Tensor logits = terms.logits();
  // The maximum only keeps the exponentials in range and marks rows without tuples. The result does
  // not depend on it.
  const Tensor tile_maximum = logits.detach().flatten(-2, -1).amax(-1);
  const Tensor merged = maximum_.defined() ? at::maximum(maximum_, tile_maximum) : tile_maximum;
  const Tensor finite = merged.masked_fill(at::isneginf(merged), 0);
  const Tensor weights = exponential(normalizer)
                             ? (logits - over_tuples(finite)).to(problem_.accumulate).exp()
                             : activated(normalizer, logits, problem_.accumulate);
  Tensor sum = weights.sum({-2, -1}), weighted;
  if (values) weighted = terms.combine_values(terms.with_dropout(weights));
  if (maximum_.defined()) {
    if (exponential(normalizer)) {
      const Tensor rescale = (maximum_ - finite).to(problem_.accumulate).exp();
      sum_ = sum_ * rescale;
      if (values) weighted_ = weighted_ * rescale.unsqueeze(-1);
    }
    sum = sum_ + sum;
    if (values) weighted = weighted_ + weighted;
  }
  sum_ = sum;
  weighted_ = weighted;
  maximum_ = merged;
}

RowNorm RowSums::norm() const {
  const Tensor total = sum_.masked_fill(empty(), 1);
  switch (problem_.settings.normalizer) {
    case Normalizer::softmax:
      return {maximum_.masked_fill(empty(), 0), total.log()};
    case Normalizer::softmax_sink: {
      // One more logit, which may be the largest.
      const Tensor own = maximum_.masked_fill(empty(), 0), &sink = problem_.sink;
      const Tensor maximum = at::maximum(own, at::nan_to_num(sink.detach()).to(own.scalar_type()));
      const Tensor of_sink = (sink - maximum).to(problem_.accumulate).exp();
      return {maximum, (total * (own - maximum).to(problem_.accumulate).exp() + of_sink).log()};
    }
    case Normalizer::sigmoid:
      return {{}, at::zeros_like(sum_)};
    case Normalizer::relu:
      return {{}, total.log()};
  }
  return {};  // not reached
}

std::pair<Tensor, Tensor> RowSums::finish() const {
  const RowNorm norm = this->norm();
  Tensor factor;
  switch (problem_.settings.normalizer) {
    case Normalizer::softmax:
    case Normalizer::relu:
      factor = 1 / sum_.masked_fill(empty(), 1);
      break;
    case Normalizer::softmax_sink: {
      const Tensor below = maximum_.masked_fill(empty(), 0) - norm.maximum;
      factor = (below.to(problem_.accumulate) - norm.log_sum).exp();
      break;
    }
    case Normalizer::sigmoid:
      factor = at::ones_like(sum_);
      break;
  }
  const Tensor out = weighted_ * (factor * problem_.output_scale()).unsqueeze(-1);
  return {out.masked_fill(empty().unsqueeze(-1), 0), norm.lse().masked_fill(empty(), -kInfinity)};
}

Tensor weights_of(Normalizer normalizer, const Tensor& logits, const RowNorm& norm) {
  switch (normalizer) {
    case Normalizer::softmax:
    case Normalizer::softmax_sink: {
      const Tensor below = (logits - over_tuples(norm.maximum)).to(norm.type());
      return (norm.log_sum.defined() ? below - over_tuples(norm.log_sum) : below).exp();
    }
    case Normalizer::sigmoid:
      return activated(normalizer, logits, norm.type());
    case Normalizer::relu:
      return activated(normalizer, logits, norm.type()) * over_tuples(norm.log_sum.neg().exp());
  }
  return {};  // not reached
}

Tensor slope_of(Normalizer normalizer, const Tensor& logits, const Tensor& weights,
                const RowNorm& norm) {
  switch (normalizer) {
    case Normalizer::softmax:
    case Normalizer::softmax_sink:
      return weights;
    case Normalizer::sigmoid:
      return weights * (1 - weights);
    case Normalizer::relu:
      return logits.gt(0).to(weights.scalar_type()) * over_tuples(norm.log_sum.neg().exp());
  }
  return {};  // not reached
}

Tensor delta_of(const Tensor& out, const Tensor& lse, const Tensor& grad_out,
                const OptionalTensor& grad_lse) {
  const at::ScalarType type = lse.scalar_type();
  Tensor delta = (out.to(type) * grad_out.to(type)).sum(-1);
  if (grad_lse) delta = delta - grad_lse->to(type);
  return delta.masked_fill(at::isneginf(lse), 0);
}

DeltaTerm::DeltaTerm(const Tensor& out, const Tensor& lse, const Tensor& grad_out,
                     const OptionalTensor& grad_of_lse)
    : delta(delta_of(out, lse, grad_out, grad_of_lse)), rounded(out.element_size() == 2) {
  if (grad_of_lse) grad_lse = grad_of_lse->to(lse.scalar_type());
}

Tensor DeltaTerm::less_delta(const Tensor& grad_weights, const Tensor& weights) const {
  const Tensor difference = grad_weights - delta;
  if (!rounded) return difference;
  // Of second order the formula stays what it is: only its value is changed. A NaN minus itself is
  // NaN.
  const Tensor known = difference.detach();
  const Tensor change = grad_lse.defined() ? grad_lse.detach() - known : known.neg();
  return difference + change.masked_fill(weights.lt(kernels::dense::kWholeWeight), 0);
}

Tensor grad_sink(const BackwardCall& call, const RowNorm& norm) {
  const Tensor& sink = *call.forward.options.sink;
  const auto by_head = [](const Tensor& rows) { return rows.flatten(1, 2); };
  Tensor below = accumulated(sink, norm.type()).unsqueeze(-1) - by_head(norm.maximum);
  below = below.to(norm.type());
  if (norm.log_sum.defined()) below = below - by_head(norm.log_sum);
  const Tensor weights = below.masked_fill(at::isneginf(call.lse), -kInfinity).exp();
  const Tensor delta = delta_of(call.out, call.lse, call.grad_out, call.grad_lse);
  // In torch 2.11, {0, 2} is ambiguous, because a zero may be a null pointer.
  return (weights * delta).sum({2, 0}).neg().to(sink.scalar_type());
}

}  // namespace nsimplex::dense
