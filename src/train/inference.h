// Declares the evaluation of a language model and the sampling of text.

#pragma once

#include <nsimplex/language_model.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "data/tokens.h"
#include "train/ranks.h"

namespace nsimplex::training {

struct Evaluation {
  double loss = 0.0;   ///< mean cross entropy, nats per token
  int64_t tokens = 0;  ///< number of predicted tokens
  double seconds = 0.0;
};

/// Mean loss over a slice of the text, which is cut into consecutive windows of `context` tokens.
/// Every token but the first is predicted exactly once; the last window may be shorter. With
/// max_tokens > 0 only this number of tokens is evaluated, in evenly spread windows (always the
/// same ones). `progress` is called after each forward pass with the numbers of predicted tokens so
/// far and in total. Several ranks divide the forward passes; each gets the loss of all. Throws InputError if the slice has fewer than two tokens.
Evaluation evaluate(LanguageModel& model, const data::Tokens& tokens, data::Slice slice,
                    int64_t context, int64_t max_tokens = 0,
                    const std::function<void(int64_t, int64_t)>& progress = {},
                    Ranks& ranks = only_rank());

struct SamplingOptions {
  double temperature = 1.0;  ///< divides the logits; 0: always the likeliest token
  int64_t top_k = 0;         ///< only the k likeliest tokens; 0: all
  double top_p = 1.0;        ///< only the likeliest tokens that together reach probability p
  uint64_t seed = 1;
};

/// Throws InputError that names the first invalid option.
void check(const SamplingOptions& options);

/// The probabilities with which a token is drawn, given its logits [V]. First softmax(logits /
/// temperature) is computed, and all tokens but the top_k likeliest are removed. The rest is
/// renormalised and reduced to the smallest set of likeliest tokens whose sum reaches top_p, which
/// is renormalised again. Of equally likely tokens the smaller number comes first. O(V log V).
std::vector<double> sampling_distribution(const std::vector<double>& logits,
                                          const SamplingOptions& options);

/// Continues `prompt` (at least one token) by `count` tokens. Each is drawn given those before it
/// and passed to `emit`, which ends the text early if it returns false. The n-th draw depends on
/// seed and n only. Keys and values are cached (LanguageModel::make_cache): the prompt is processed
/// in chunks of the context, and then every token is one step. Beyond the context, layers without
/// windows see its last tokens, as many per step as in training.
void generate(LanguageModel& model, std::vector<int32_t> prompt, int64_t count,
              const SamplingOptions& options, const std::function<bool(int32_t)>& emit);

}  // namespace nsimplex::training
