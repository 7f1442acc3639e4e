#include "cli/lm_train_options.h"

#include <fmt/format.h>

#include <set>

#include "support/error.h"

namespace nsimplex::cli {

void add_train_options(CLI::App& command, const std::shared_ptr<TrainOptions>& options) {
  options->command = &command;
  options->resumes_by = training::kCheckpointFile;
  add_text_options(command, options->text);
  command
      .add_option("--tokenizer", options->tokenizer,
                  "SentencePiece model; without it a token is a byte")
      ->type_name("FILE")
      ->group("Text");
  command.add_option("--resume", options->resume, "Continue the run in this folder, bit for bit")
      ->type_name("DIR");
  add_shape_flags(command, *options, "16,..,16,256");
  add_choice_flags(command, *options);
  add_training_flags(command, options->training);
  const auto add = option_adder(command, "Training");
  add("--log-every", options->training.log_every, "Steps between lines of metrics.jsonl");
  add("--checkpoint-every", options->training.checkpoint_every,
      "Steps between checkpoints; 0: only at the end");
}

void refuse_changes(const TrainOptions& options) {
  static const std::set<std::string> kHarmless = {"resume", "text", "glob",  "threads",
                                                  "device", "json", "config"};
  for (const CLI::Option* option : options.command->get_options()) {
    const auto& names = option->get_lnames();
    if (option->count() > 0 && !names.empty() && !kHarmless.contains(names.front())) {
      throw InputError(fmt::format(
          "--{} cannot be given with --resume: a run continues as it began", names.front()));
    }
  }
}

}  // namespace nsimplex::cli
