#include "attention/dense/dense_normalizer.h"

#include <ATen/ATen.h>

#include "support/infinity.h"

namespace nsimplex::dense {
namespace {

using at::Tensor;

Tensor over_tuples(const Tensor& rows) { return rows.unsqueeze(-1).unsqueeze(-1); }

Tensor activated(Normalizer normalizer, const Tensor& logits) {
  return normalizer == Normalizer::sigmoid ? logits.sigmoid() : logits.relu();
}

}  // namespace

bool RowSums::exponential() const {
  const Normalizer normalizer = problem_.settings.normalizer;
  return normalizer == Normalizer::softmax || normalizer == Normalizer::softmax_sink;
}

void RowSums::add(const TileTerms& terms) {
  const Tensor logits = terms.logits();
  // The maximum only keeps the exponentials in range, and tells rows without tuples: the result
  // does not depend on it.
  const Tensor tile_maximum = logits.detach().flatten(-2, -1).amax(-1);
  const Tensor merged = maximum_.defined() ? at::maximum(maximum_, tile_maximum) : tile_maximum;
  const Tensor finite = merged.masked_fill(at::isneginf(merged), 0);
  const Tensor weights = exponential() ? (logits - over_tuples(finite)).exp()
                                       : activated(problem_.settings.normalizer, logits);
  const Tensor sum = weights.sum({-2, -1});
  const Tensor weighted = terms.combine_values(terms.with_dropout(weights));
  if (!maximum_.defined()) {
    sum_ = sum;
    weighted_ = weighted;
  } else if (exponential()) {
    const Tensor rescale = (maximum_ - finite).exp();
    sum_ = sum_ * rescale + sum;
    weighted_ = weighted_ * rescale.unsqueeze(-1) + weighted;
  } else {
    sum_ = sum_ + sum;
    weighted_ = weighted_ + weighted;
  }
  maximum_ = merged;
}

std::pair<Tensor, Tensor> RowSums::finish() const {
  Tensor empty = at::isneginf(maximum_);
  if (problem_.settings.normalizer == Normalizer::relu) empty = sum_.eq(0);
  const Tensor total = sum_.masked_fill(empty, 1);
  Tensor lse, factor = 1 / total;
  switch (problem_.settings.normalizer) {
    case Normalizer::softmax:
      lse = maximum_.masked_fill(empty, 0) + total.log();
      break;
    case Normalizer::softmax_sink: {
      const Tensor maximum = maximum_.masked_fill(empty, 0);
      lse = at::logaddexp(maximum + total.log(), problem_.sink);
      factor = (maximum - lse).exp();
      break;
    }
    case Normalizer::sigmoid:
      lse = at::zeros_like(maximum_);
      factor = at::ones_like(maximum_);
      break;
    case Normalizer::relu:
      lse = total.log();
      break;
  }
  const Tensor out = weighted_ * (factor * problem_.output_scale()).unsqueeze(-1);
  return {out.masked_fill(empty.unsqueeze(-1), 0), lse.masked_fill(empty, -kInfinity)};
}

Tensor weights_of(Normalizer normalizer, const Tensor& logits, const Tensor& lse) {
  switch (normalizer) {
    case Normalizer::softmax:
    case Normalizer::softmax_sink:
      return (logits - over_tuples(lse)).exp();
    case Normalizer::sigmoid:
      return activated(normalizer, logits);
    case Normalizer::relu:
      return activated(normalizer, logits) * over_tuples(lse.neg().exp());
  }
  return {};  // not reached
}

Tensor slope_of(Normalizer normalizer, const Tensor& logits, const Tensor& weights,
                const Tensor& lse) {
  switch (normalizer) {
    case Normalizer::softmax:
    case Normalizer::softmax_sink:
      return weights;
    case Normalizer::sigmoid:
      return weights * (1 - weights);
    case Normalizer::relu:
      return logits.gt(0).to(weights.scalar_type()) * over_tuples(lse.neg().exp());
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

Tensor grad_sink(const BackwardCall& call) {
  const Tensor& sink = *call.forward.options.sink;
  const Tensor empty = at::isneginf(call.lse);
  const Tensor logits =
      sink.to(call.lse.scalar_type()).unsqueeze(-1) - call.lse.masked_fill(empty, 0);
  const Tensor weights = logits.masked_fill(empty, -kInfinity).exp();
  const Tensor delta = delta_of(call.out, call.lse, call.grad_out, call.grad_lse);
  return (weights * delta).sum({0, 2}).neg().to(sink.scalar_type());
}

}  // namespace nsimplex::dense
