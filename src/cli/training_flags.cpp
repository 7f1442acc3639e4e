#include "cli/training_flags.h"

#include "cli/options.h"

namespace nsimplex::cli {

void add_training_flags(CLI::App& command, training::TrainingOptions& o) {
  const auto add = option_adder(command, "Training");
  add("--steps", o.steps, "Updates");
  add("--batch", o.batch, "Windows of a pass");
  add("--accumulate", o.accumulate, "Passes whose gradients are averaged before an update");
  add("--lr", o.lr, "Learning rate after warm-up");
  add("--min-lr", o.min_lr, "Learning rate of the last step; a cosine leads there");
  add("--warmup", o.warmup, "Steps of linear warm-up");
  add("--beta1", o.beta1, "AdamW's decay of the mean");
  add("--beta2", o.beta2, "AdamW's decay of the variance");
  add("--weight-decay", o.weight_decay, "Of matrices; not of gains and embeddings");
  add("--clip", o.clip, "Largest norm of the gradient; 0: unlimited");
  add("--indexer-warmup", o.indexer_warmup,
      "First steps, in which layers that choose keys are dense and their indexers learn from all");
  command.add_flag("--bf16", o.bf16, "bfloat16 autocast of the forward pass")->group("Training");
  add("--eval-every", o.eval_every, "Steps between validations; 0: only at the end");
  add("--eval-tokens", o.eval_tokens, "Validation tokens looked at each time; 0: all");
}

}  // namespace nsimplex::cli
