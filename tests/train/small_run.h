#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "data/text_files.h"
#include "data/tokenizer.h"
#include "data/tokens.h"
#include "train/trainer.h"

namespace nsimplex::test {

/// A text with something to learn.
inline std::string small_text() {
  std::string text;
  for (int i = 0; text.size() < 4000; ++i) text += fmt::format("{} and {} make {}\n", i, i, 2 * i);
  return text;
}

inline data::Tokens small_tokens() {
  const auto owner = std::make_shared<std::string>(small_text());
  const auto* bytes = reinterpret_cast<const uint8_t*>(owner->data());
  return data::Tokens({{"text", {bytes, owner->size()}, owner}}, *data::byte_tokenizer());
}

/// Two layers, the second simplicial; a step takes about a millisecond.
inline LanguageModelOptions small_model() {
  LanguageModelOptions model;
  model.layers = 2;
  model.heads = 2;
  model.dim = 16;
  model.context = 8;
  model.every = 2;
  model.window = {Window::last(3), Window::last(8)};
  return model;
}

/// Checkpoints and validations that do not fall on the same steps, lines that span checkpoints.
inline training::TrainingOptions small_training() {
  training::TrainingOptions training;
  training.steps = 12;
  training.batch = 3;
  training.accumulate = 2;
  training.lr = 1e-2;
  training.warmup = 3;
  training.log_every = 4;
  training.eval_every = 6;
  training.checkpoint_every = 5;
  return training;
}

inline training::Checkpoint small_start(
    const data::Tokens& tokens, const training::TrainingOptions& training = small_training()) {
  return training::first_checkpoint(small_model(), training,
                                    {{"text"}, "*", tokens.size(), tokens.fingerprint()}, "");
}

/// Continues the run in `folder` from its checkpoint, or begins it.
inline training::TrainingEnd train_in(const std::string& folder,
                                      const training::TrainingEvents& events = {}) {
  const data::Tokens tokens = small_tokens();
  const std::string path = folder + "/" + training::kCheckpointFile;
  const training::Checkpoint start =
      std::filesystem::exists(path) ? training::read_checkpoint(path) : small_start(tokens);
  return training::Trainer(folder, start, tokens).run(events);
}

}  // namespace nsimplex::test
