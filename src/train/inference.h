#pragma once

#include <nsimplex/language_model.h>

#include <cstdint>
#include <functional>
#include <vector>

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

struct SamplingOptions {
  double temperature = 0.8;  ///< divides the logits; 0: always the likeliest token
  int64_t top_k = 0;         ///< only the k likeliest tokens; 0: all
  double top_p = 1.0;        ///< only the likeliest tokens that together reach probability p
  uint64_t seed = 1;
};

/// Throws InputError that names the first option out of its range.
void check(const SamplingOptions& options);

/// Probabilities with which a token is drawn, given its logits [V]: softmax(logits / temperature),
/// then all but the top_k likeliest removed, then of the rest, renormalised, the smallest set of
/// likeliest tokens whose sum reaches top_p; renormalised. Of equally likely tokens the smaller
/// number goes first. O(V log V).
std::vector<double> sampling_distribution(const std::vector<double>& logits,
                                          const SamplingOptions& options);

/// Continues `prompt` (at least one token) by `count` tokens, each drawn given those before it, and
/// hands each to `emit`; ends early when that returns false. The n-th draw depends on seed and n
/// alone. Keys and values are cached (LanguageModel::make_cache): the prompt is one pass in chunks
/// of the context, every token one more step. Beyond the context, layers without windows see its
/// last tokens, at every step as many as in training.
void generate(LanguageModel& model, std::vector<int32_t> prompt, int64_t count,
              const SamplingOptions& options, const std::function<bool(int32_t)>& emit);

}  // namespace nsimplex::training
