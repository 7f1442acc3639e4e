#pragma once

#include <nsimplex/language_model.h>

#include <cstdint>
#include <functional>

#include "data/tokens.h"

namespace nsimplex::training {

struct Evaluation {
  double loss = 0.0;   ///< mean cross entropy, nats a token
  int64_t tokens = 0;  ///< predicted tokens
  double seconds = 0.0;
};

/// Mean loss over a slice of the text, cut into consecutive windows of `context` tokens: every
/// token but the first is predicted exactly once, the last window may be shorter. With max_tokens >
/// 0 only so many windows, evenly spread, are looked at (always the same ones). Called after each
/// forward pass, `progress` gets the predicted tokens so far and in all. Throws InputError when the
/// slice has fewer than two tokens.
Evaluation evaluate(LanguageModel& model, const data::Tokens& tokens, data::Slice slice,
                    int64_t context, int64_t max_tokens = 0,
                    const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace nsimplex::training
