#pragma once

#include <nsimplex/analysis_sensitivity.h>
#include <nsimplex/language_model.h>

/// What goes on between the layers of a trained language model.
namespace nsimplex {

/// One layer over some texts. Tensors are float64 [B], one number a text; those that do not apply
/// are undefined.
struct LayerReading {
  int64_t order = 0;           ///< N of its attention; 0: the embedding
  bool attends_to_all = true;  ///< false: over chosen tuples, or separable

  // Of what it passes on, [T, C], as analysis_smoothing.h has them.
  at::Tensor residual;  ///< ||X - 1 mean(X)^T||_{1,inf}
  at::Tensor ratio;     ///< over ||X||_{1,inf}
  at::Tensor effective_rank, mean_cosine, dirichlet_energy;

  // Of layers that attend to all tuples of their windows, over queries and heads.
  at::Tensor logit_range;       ///< largest difference of two logits of a query
  at::Tensor alignment;         ///< largest |<q, k_1 o .. o k_N>| / (|q| |k_1| .. |k_N|)
  at::Tensor entropy;           ///< of a query's weights, mean, in nats
  at::Tensor relative_entropy;  ///< over log of the number of tuples, mean; queries of one left out

  // Derivatives, where they are asked for.
  at::Tensor block_jacobian;      ///< largest singular value, of the whole block
  at::Tensor attention_jacobian;  ///< of the attention, from its normalised input
  at::Tensor sensitivity;         ///< of the operator at its q, k and v, under inf-RMS norms
  at::Tensor sensitivity_bound;   ///< for its scales and the norms of its q, k and v
};

struct ModelReadingOptions {
  bool jacobians = true, sensitivities = true;
  AscentOptions ascent = {.steps = 30, .tolerance = 1e-4};
  std::function<void(int64_t)> layer_done;  ///< called after each, with its number
};

/// Reads the embedding and every layer over tokens [B, T], layers + 1 readings. The model stays as
/// it is; run it in float64 (model->to(at::kDouble)). Derivatives are those at the hidden states of
/// the texts, by power iteration: lower bounds, see jacobian_norm() and sensitivity(). What chosen
/// tuples are chosen by is held.
///
/// Cost: the weights of all tuples of a text at a time, at most kMaxAttentionWeights,
/// c10::ValueError beyond; derivatives some ten forward passes a step, through the reference.
NSIMPLEX_API std::vector<LayerReading> read_layers(LanguageModel& model, const at::Tensor& tokens,
                                                   const ModelReadingOptions& options = {});

}  // namespace nsimplex
