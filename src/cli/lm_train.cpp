// The command `lm train`: the training of a language model, started or resumed.

#include "cli/lm_train.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <set>

#include "cli/lm_command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "cli/run_writers.h"
#include "io/input_file.h"
#include "io/output_file.h"
#include "nn/language_options.h"
#include "support/error.h"
#include "train/optimizer.h"
#include "train/trainer.h"

namespace nsimplex::cli {

void add_training_flags(CLI::App& command, training::TrainingOptions& o) {
  const auto add = option_adder(command, "Training");
  add("--steps", o.steps, "Updates");
  add("--batch", o.batch, "Windows per pass");
  add("--accumulate", o.accumulate, "Passes per update, whose gradients are averaged");
  add("--lr", o.lr, "Learning rate after warm-up");
  add("--min-lr", o.min_lr, "Learning rate of the last step, reached along a cosine");
  add("--warmup", o.warmup, "Steps of linear warm-up");
  add("--beta1", o.beta1, "AdamW's decay of the mean");
  add("--beta2", o.beta2, "AdamW's decay of the variance");
  add("--weight-decay", o.weight_decay,
      "Weight decay of matrices, but not of gains and embeddings");
  add("--clip", o.clip, "Largest norm of the gradient; 0: unlimited");
  add("--indexer-warmup", o.indexer_warmup,
      "Number of first steps in which layers that choose keys are dense and their indexers learn "
      "from all keys");
  command.add_flag("--bf16", o.bf16, "Run the forward pass under bfloat16 autocast")
      ->group("Training");
  add("--eval-every", o.eval_every, "Steps between validations; 0: only at the end");
  add("--eval-tokens", o.eval_tokens, "Tokens per validation; 0: all");
}

void add_train_options(CLI::App& command, const std::shared_ptr<TrainOptions>& options) {
  options->command = &command;
  options->resumes_by = training::kCheckpointFile;
  add_corpus_options(command, options->corpus);
  command.add_option("--resume", options->resume, "Continue the run in this folder, bit for bit")
      ->type_name("DIR");
  add_model_flags(command, *options, "16,..,16,256, and 16 beside other parts");
  add_training_flags(command, options->training);
  const auto add = option_adder(command, "Training");
  add("--log-every", options->training.log_every, "Steps between lines of metrics.jsonl");
  add("--checkpoint-every", options->training.checkpoint_every,
      "Steps between checkpoints; 0: only at the end");
}

void refuse_changes(const TrainOptions& options) {
  if (!options.out.empty())
    throw InputError(
        "--resume: expected no --out with it, since a run continues in its own folder");
  static const std::set<std::string> kOfTexts = {"text", "glob", "tokens", "validation-tokens"};
  for (const CLI::Option* option : options.command->get_options()) {
    const std::string name = option->get_single_name();
    if (option->count() == 0 || is_of_this_call(name) || kOfTexts.contains(name)) continue;
    throw InputError(
        fmt::format("--{} cannot be given with --resume: a run continues as it began", name));
  }
}

namespace {

namespace fs = std::filesystem;

// A folder is fresh if nothing in it would be lost: it is empty, except for files that the same
// command leaves behind if it is killed before its first checkpoint.
void require_fresh(const fs::path& folder, const std::string& config) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    const bool left_over = path.extension() == ".tmp" ||
                           (path.filename() == kConfigFile && io::read_text(path) == config);
    if (!left_over) {
      throw InputError(fmt::format(
          "--out: {} is not empty; use --resume {} to continue a run, another folder, or "
          "--overwrite",
          folder.string(), folder.string()));
    }
  }
}

struct Run {
  std::string folder;
  training::Checkpoint start;
  std::optional<data::Tokens> tokens;
  std::function<void()> make_folder = {};  // of a run that starts
};

// The first of the files to read; a word if there is none.
std::string first_input(const CorpusOptions& corpus) {
  const auto& files =
      corpus.text.token_files.empty() ? corpus.text.sources : corpus.text.token_files;
  return files.empty() ? "run" : files.front();
}

// Refuses a training that is larger than the machine, before anything is made. Each weight has a
// gradient and two moments; each layer keeps a vector per token of a pass.
void require_memory(const LanguageModelOptions& model, const TrainOptions& options) {
  const auto number = [](int64_t count) { return static_cast<double>(count); };
  const double width = number(model.dim), layers = number(model.layers);
  const double weights = number(model.vocabulary) * width + 2 * layers * width * width;
  const double kept = number(options.training.batch) * number(model.context) * width * (layers + 1);
  const double needed = 4 * (4 * weights + (options.torch_device().is_cpu() ? kept : 0));
  const double machine = number(sysconf(_SC_PHYS_PAGES)) * number(sysconf(_SC_PAGESIZE));
  if (needed <= machine) return;
  constexpr double kGiB = 1 << 30;
  throw InputError(
      fmt::format("--batch, --context, --layers, --width: expected a training in the {:.1f} GiB of "
                  "this machine, got one that takes at least {:.1f} GiB",
                  machine / kGiB, needed / kGiB));
}

Run start_run(const TrainOptions& options) {
  refuse_unused(options);
  const bool indexed =
      has_part(options.model.sparse, "topk") || options.model.sparse == Sparsity::path;
  if (options.training.indexer_warmup > 0 && !indexed) {
    throw InputError(
        fmt::format("--indexer-warmup: expected --sparse topk, path or parts with topk, got {}",
                    name_of(options.model.sparse)));
  }
  Run run;
  run.folder = options.out;
  TrainingText corpus = open_training_text(options.corpus);
  run.tokens = std::move(corpus.tokens);

  training::TrainingOptions training = options.training;
  training.seed = options.seed;
  training.threads = options.threads;
  const TextOptions& read = corpus.text;
  const training::TextRecord text{read.sources,       read.glob,
                                  run.tokens->size(), run.tokens->fingerprint(),
                                  read.token_files,   read.validation_files};
  const LanguageModelOptions model =
      language_model_options(options, corpus.tokenizer->vocabulary());
  check(training);
  try {
    nsimplex::language_model_options(to_map(model));  // refuses sizes beyond their bounds
    require_memory(model, options);
    run.start = training::first_checkpoint(model, training, text, corpus.tokenizer->model());
  } catch (const InputError& error) {
    throw InputError(with_flags(error.what()));
  }
  run.start.without_tokenizer = corpus.without_tokenizer;
  run.make_folder = [&options] {
    make_run_directory(options);
    if (!options.overwrite) require_fresh(options.out, config_file(options));
  };
  return run;
}

Run resume_run(const TrainOptions& options, const std::string& folder) {
  Run run;
  run.folder = folder;
  const std::string path = (fs::path(run.folder) / training::kCheckpointFile).string();
  if (fs::is_directory(run.folder) && !fs::exists(path)) {
    throw InputError(fmt::format("--resume: {} has no {}; start the run with --out", run.folder,
                                 training::kCheckpointFile));
  }
  run.start = training::read_checkpoint(path);
  const std::unique_ptr<data::Tokenizer> tokenizer =
      run.start.without_tokenizer ? data::number_tokenizer(run.start.model.vocabulary)
                                  : data::load_tokenizer(run.start.tokenizer, path);
  const bool same_text = options.corpus.text.empty();
  run.tokens = open_tokens(
      same_text ? recorded_text(run.start.text) : with_validation_files(options.corpus.text),
      *tokenizer);
  // Sums differ in their last bits with the number of threads, so a run keeps its number of
  // threads.
  if (options.threads > 0) run.start.training.threads = options.threads;
  CommonOptions common = options;
  common.threads = run.start.training.threads;
  apply(common);
  return run;
}

void describe(const Run& run, const LanguageModel& model) {
  const data::Split split = data::split(*run.tokens);
  print(fmt::format("model   {} weights, {} layers, dim {}, context {}\n",
                    training::parameter_count(*model), model->options().layers,
                    model->options().dim, model->options().context));
  print(fmt::format("text    {} tokens for training, {} for validation{}\n", split.train.size(),
                    split.validation.size(),
                    run.tokens->validation_begin() ? "" : " (the last tenth)"));
  if (run.start.progress.step > 0)
    print(fmt::format("resume  after step {}\n", run.start.progress.step));
}

void report(const training::Metrics& metrics, bool json, ProgressBar& bar) {
  if (json) {
    print_json_line(training::kMetricsKind, training::to_json(metrics));
  } else if (metrics.val_loss) {
    bar.note(fmt::format("step {:>6}  train loss {:.4f}  validation loss {:.4f}  {:.0f} tokens/s",
                         metrics.step, metrics.train_loss, *metrics.val_loss,
                         metrics.tokens_per_second));
  }
}

int run_train(const TrainOptions& options) {
  const bool resumed = !options.resume.empty();
  if (resumed && !options.repeated) refuse_changes(options);
  const Run run = resumed ? resume_run(options, options.resume) : start_run(options);
  training::Trainer trainer(run.folder, run.start, *run.tokens, options.torch_device(),
                            *options.ranks, run.make_folder);
  if (!resumed && options.ranks->writes()) {
    io::write_text((fs::path(run.folder) / kConfigFile).string(), config_file(options));
  }
  if (!options.json) describe(run, trainer.model());

  ProgressBar bar("train", run.start.training.steps, options.json);
  bar.start_at(run.start.progress.step);
  training::TrainingEvents events;
  events.stop = interrupt::requested;
  events.metrics = [&](const training::Metrics& metrics) {
    report(metrics, options.json, bar);
    if (options.writers != nullptr) options.writers->begin();  // its first line has been written
  };
  events.step = [&](int64_t step, double loss, double rate) {
    bar.update(step, fmt::format("loss {:.3f}  {:.0f} tokens/s", loss, rate));
  };
  interrupt::defer();
  const training::TrainingEnd end = trainer.run(events);
  bar.finish();
  if (options.writers != nullptr) options.writers->begin();  // of a run that had ended before
  if (end == training::TrainingEnd::stopped) throw Interrupted();
  if (!options.json)
    print(fmt::format("saved   {}\n", (fs::path(run.folder) / training::kModelFile).string()));
  return 0;
}

}  // namespace

void add_lm_train(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App& command =
      add_command(parent, session,
                  {.name = "train",
                   .summary = "Train a language model with simplicial layers on text",
                   .examples = "nsimplex lm train --text shakespeare.txt --out runs/first\n"
                               "nsimplex lm train --text docs --glob '*.md' --out runs/docs "
                               "--context 256 --window 16,128\n"
                               "nsimplex lm train --tokens train.bin val.bin --vocabulary 50304 "
                               "--out runs/gpt\n"
                               "nsimplex lm train --resume runs/first",
                   .acts = {.device = true, .log = true},
                   .files = {training::kModelFile},
                   .named_after = [options] { return first_input(options->corpus); }},
                  options, run_train);
  add_train_options(command, options);
}

}  // namespace nsimplex::cli
