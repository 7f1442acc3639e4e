#pragma once

#include <nsimplex/attention.h>

#include "attention/dense/dense_call.h"
#include "attention/dense/dense_layout.h"

namespace nsimplex::dense {

/// The operator's names of the public enumerators.
std::string_view name_of(Form form);
std::string_view name_of(Reduce reduce);
std::string_view name_of(Normalizer normalizer);
std::string_view name_of(Distinct distinct);

/// The seed of a call: the given one, or one drawn where dropout needs it.
std::optional<c10::SymInt> seed_of(const AttentionOptions& options);

/// Flattens the public options and returns function(call), whose tensors are [B, heads, T, D]
/// whatever the layout.
template <class Function>
auto with_call(const at::Tensor& query, at::TensorList keys, at::TensorList values,
               const AttentionOptions& options, Function&& function) {
  const HeadsFirst tensors(options.layout, query, keys, values);
  c10::SmallVector<c10::SymInt, 8> window;
  const size_t given = options.window.size();
  TORCH_CHECK_VALUE(given <= 1 || given == keys.size(),
                    "[attention] window: expected one for all axes or ", keys.size(), ", got ",
                    given);
  if (given > 0) {
    for (size_t m = 0; m < keys.size(); ++m) {
      const Window& each = options.window[given == 1 ? 0 : m];
      window.push_back(each.left);
      window.push_back(each.right);
    }
  }
  at::OptionalSymIntArrayRef flat_window;
  if (given > 0) flat_window = c10::SymIntArrayRef(window);
  std::optional<double> logit_scale, output_scale;
  if (options.scale) {
    logit_scale = options.scale->logit;
    output_scale = options.scale->output;
  }
  OptionalTensorList key_masks;
  if (!options.key_masks.empty()) key_masks = at::TensorList(options.key_masks);
  at::OptionalIntArrayRef augment;
  if (!options.augment.empty()) augment = at::IntArrayRef(options.augment);
  return function(Call{tensors.query,
                       tensors.keys,
                       tensors.values,
                       {options.causal, flat_window, name_of(options.form), name_of(options.reduce),
                        name_of(options.normalizer), logit_scale, output_scale, options.key_lengths,
                        key_masks, options.cu_seqlens, options.mask, options.sink,
                        name_of(options.distinct), augment, options.dropout_p, seed_of(options)}});
}

}  // namespace nsimplex::dense
