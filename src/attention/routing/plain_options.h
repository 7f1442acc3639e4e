#pragma once

#include "attention/dense/dense_call.h"

namespace nsimplex::routing {

using dense::OptionalTensor;

inline const OptionalTensor kNone;

/// Options of the dense operator for logits alone. Refers to its arguments.
inline dense::Options plain_options(bool causal, std::string_view form,
                                    std::optional<double> logit_scale,
                                    dense::OptionalTensorList key_masks = std::nullopt,
                                    const OptionalTensor& key_lengths = kNone,
                                    const OptionalTensor& mask = kNone) {
  return {.causal = causal,
          .window = {},
          .form = form,
          .logit_scale = logit_scale,
          .output_scale = {},
          .key_lengths = key_lengths,
          .key_masks = key_masks,
          .cu_seqlens = kNone,
          .mask = mask,
          .sink = kNone,
          .augment = {},
          .seed = {}};
}

}  // namespace nsimplex::routing
