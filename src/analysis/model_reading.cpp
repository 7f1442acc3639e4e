// Measures the layers of a trained language model on a text.

#include <ATen/ATen.h>
#include <nsimplex/analysis.h>
#include <nsimplex/attention.h>

#include <algorithm>

#include "analysis/attention_derivatives.h"

namespace nsimplex {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

// The arguments of a layer's attention call: q, k1..kN, v1..vN and the options.
struct Call {
  Tensors heads;
  AttentionOptions options;

  int64_t order() const { return std::ssize(heads) / 2; }
};

bool attends_to_all(const SimplicialAttentionImpl& layer) {
  return std::holds_alternative<std::monostate>(layer.options().select) &&
         layer.options().orders.empty();
}

// Whether the weights are softmaxes of products, as the metrics and bounds require.
bool has_plain_weights(const SimplicialAttentionOptions& o) {
  return o.form == Form::product && o.normalizer == Normalizer::softmax && o.augment.empty() &&
         !o.face && !o.softcap;
}

void read_tokens(LayerReading& reading, const Tensor& x) {
  reading.residual = composite_norm(mean_residual(x));
  reading.ratio = reading.residual / composite_norm(x);
  reading.effective_rank = effective_rank(x);
  reading.mean_cosine = mean_cosine(x);
  reading.dirichlet_energy = dirichlet_energy(x);
}

// |<q, k_1 o .. o k_N>| / (|q| |k_1| .. |k_N|) of every tuple, as weights [1, Hq, Tq, J].
Tensor alignments(const Tensors& text, int64_t order) {
  const auto directions = [](const Tensor& rows) {
    return rows / rows.norm(2, -1, /*keepdim=*/true).clamp_min(1e-300);
  };
  Tensors keys;  // heads take the place of problems: [Hk, T, D]
  for (int64_t m = 1; m <= order; ++m) keys.push_back(directions(text[m]).squeeze(0));
  const Tensor products = analysis::WrittenOut::products(keys).unsqueeze(0);  // [1, Hk, J, D]
  const int64_t group = text[0].size(1) / products.size(1);
  const Tensor grouped = products.repeat_interleave(group, 1);
  return directions(text[0]).matmul(grouped.transpose(2, 3)).abs();
}

// Reads one text at a time, since all weights are in memory at once.
void read_weights(LayerReading& reading, const Call& call) {
  Tensors ranges, alignment, entropies, relative;
  for (int64_t b = 0; b < call.heads[0].size(0); ++b) {
    Tensors text;
    for (const Tensor& each : call.heads) text.push_back(each.narrow(0, b, 1));
    const Tensor weights =
        attention_weights(text[0], at::TensorList(text).slice(1, call.order()), call.options)
            .flatten(3);
    const Tensor least = weights.masked_fill(weights == 0, 1).amin(-1);
    ranges.push_back((weights.amax(-1).log() - least.log()).max());
    alignment.push_back(alignments(text, call.order()).masked_fill(weights == 0, 0).max());
    const Tensor entropy = -at::xlogy(weights, weights).sum(-1);
    const Tensor most = (weights > 0).sum(-1).to(at::kDouble).log();
    entropies.push_back(entropy.mean());
    const Tensor several = most > 0;
    relative.push_back((entropy.masked_select(several) / most.masked_select(several)).mean());
  }
  reading.logit_range = at::stack(ranges);
  reading.alignment = at::stack(alignment);
  reading.entropy = at::stack(entropies);
  reading.relative_entropy = at::stack(relative);
}

void read_sensitivity(LayerReading& reading, const Call& call, const AscentOptions& ascent) {
  const int64_t order = call.order();
  const auto function = [&](const Tensors& x) {
    const at::TensorList all(x);
    return attention(x[0], all.slice(1, order), all.slice(1 + order), call.options).out;
  };
  reading.sensitivity = sensitivity(function, call.heads, {.ascent = ascent}).value;
  const int64_t head_dim = call.heads[0].size(3), value_dim = call.heads.back().size(3);
  std::vector<double> bounds;
  for (int64_t b = 0; b < call.heads[0].size(0); ++b) {
    std::vector<double> norms;
    for (const Tensor& each : call.heads) norms.push_back(inf_rms(each[b]).item<double>());
    const InputNorms of{.query = norms[0],
                        .keys = {norms.begin() + 1, norms.begin() + 1 + order},
                        .values = {norms.begin() + 1 + order, norms.end()}};
    const auto blocks = sensitivity_bounds(order, head_dim, value_dim, *call.options.scale, of);
    bounds.push_back(*std::max_element(blocks.begin(), blocks.end()));
  }
  reading.sensitivity_bound = at::tensor(bounds, at::kDouble);
}

// Reads the block at its input, the hidden states x.
void read_block(LayerReading& reading, TransformerBlock& block, const Tensor& x,
                const ModelReadingOptions& options) {
  SimplicialAttention layer = block->attention();
  const auto& o = layer->options();
  reading.order = o.order;
  reading.attends_to_all = attends_to_all(*layer);
  const Tensor normalised = block->attention_input(x).detach();
  if (reading.attends_to_all && has_plain_weights(o)) {
    Call call{layer->heads_of(normalised), layer->attention_options()};
    for (Tensor& each : call.heads) each = each.detach();
    call.options.causal = o.causal;
    call.options.window = o.window;
    read_weights(reading, call);
    if (options.sensitivities) read_sensitivity(reading, call, options.ascent);
  }
  if (!options.jacobians) return;
  const auto whole = [&](const Tensors& inputs) { return block->forward(inputs[0]); };
  const auto attention = [&](const Tensors& inputs) { return layer->forward(inputs[0]); };
  reading.block_jacobian = jacobian_norm(whole, x, options.ascent).value;
  reading.attention_jacobian = jacobian_norm(attention, normalised, options.ascent).value;
}

}  // namespace

std::vector<LayerReading> read_layers(LanguageModel& model, const Tensor& tokens,
                                      const ModelReadingOptions& options) {
  Tensors states;
  {
    const at::NoGradGuard no_grad;
    states = model->hidden_states(tokens);
  }
  std::vector<LayerReading> readings(states.size());
  for (size_t i = 0; i < states.size(); ++i) {
    {
      const at::NoGradGuard no_grad;
      read_tokens(readings[i], states[i]);
    }
    if (i > 0) {
      TransformerBlock block = model->block(static_cast<int64_t>(i) - 1);
      read_block(readings[i], block, states[i - 1], options);
    }
    if (options.layer_done) options.layer_done(static_cast<int64_t>(i));
  }
  return readings;
}

}  // namespace nsimplex
