#include "cli/comparison_options.h"

#include <algorithm>

#include "cli/comparison_arms.h"
#include "cli/training_flags.h"

namespace nsimplex::cli {

ComparisonOptions::ComparisonOptions() {
  model.context = 128;
  model.topk = 0;
  model.indexer_loss = 0.1;
  training.steps = 600;
  training.lr = 2e-3;
  training.warmup = 60;
  training.eval_every = 25;
  training.eval_tokens = 16384;
}

void add_comparison_flags(CLI::App& command, ComparisonOptions& o) {
  command
      .add_option("--arms", o.arms,
                  "NAME[:WORD].. of the models: ordinary, window, topk, path, linear; words reuse, "
                  "light, relu, softmax, loss, wide; indexers: the eight of topk")
      ->delimiter(',')
      ->type_name("NAME,..")
      ->capture_default_str();
  command.add_option("--seeds", o.seeds, "Number of seeds, counted up from --seed")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  add_corpus_flags(command, o);
  add_shape_flags(command, o, "a quarter of the context on every axis");
  command.add_option("--scale", o.preset, "Scale of the simplicial layers: standard or unit")
      ->type_name("NAME")
      ->capture_default_str()
      ->group("Model");
  add_training_flags(command, o.training);
}

void complete(ComparisonOptions& o) {
  const int64_t quarter = std::max<int64_t>(o.model.context / 4, 1);
  if (o.window.empty()) o.window = {quarter};
  if (o.model.topk == 0) o.model.topk = quarter;
  if (o.arms == std::vector<std::string>{"indexers"}) o.arms = indexer_arms();
  o.training.seed = o.seed;
  o.training.threads = o.threads;
  training::check(o.training);
}

}  // namespace nsimplex::cli
