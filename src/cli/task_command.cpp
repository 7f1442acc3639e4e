#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/task_match.h"

namespace nsimplex::cli {
namespace {

constexpr int64_t kLargestModulus = 1 << 20;  // of an embedding that still fits into memory

// Text of a command, with {0} for its name.
struct MatchText {
  int64_t arity;
  std::string summary, examples;
};

const std::vector<MatchText>& match_texts() {
  static const std::vector<MatchText> texts{
      {2, "Is there a j with x_i + x_j = 0 mod M? Ordinary attention suffices",
       "nsimplex task {0} --order 1 --sparse dense,topk --topk 1,2,4 --threads 1\n"
       "nsimplex task {0} --order 1,2,3 --out runs/{0}"},
      {3, "Is there a pair j1, j2 with x_i + x_j1 + x_j2 = 0 mod M? Order 1 against order 2",
       "nsimplex task {0} --out runs/{0}\n"
       "nsimplex task {0} --seeds 3 --threads 1 --json\n"
       "nsimplex task {0} --labels natural --order 2 --steps 3000\n"
       "nsimplex task {0} --order 2 --sparse dense,topk,path --topk 2,4,6 --out runs/sparse\n"
       "nsimplex task {0} --order 1 --depth 1,2,3,4,6 --beside 2 --equal flops --out runs/depth"},
      {4, "Is there a triple j1, j2, j3 with x_i + x_j1 + x_j2 + x_j3 = 0 mod M?",
       "nsimplex task {0} --order 1,2,3 --threads 1 --out runs/{0}\n"
       "nsimplex task {0} --modulus 89 --steps 4000"}};
  return texts;
}

// What is compared.
void add_arm_options(CLI::App& command, MatchCommandOptions& options) {
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 40);
  command.add_option("--order", options.orders, "Orders to train")
      ->delimiter(',')
      ->check(CLI::Range(1, 4))
      ->capture_default_str();
  command.add_option("--depth", options.depths, "Layers, each number for every order")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command
      .add_option("--sparse", options.sparse,
                  "Tuples, each for every order and depth: dense; topk or path, of keys that an "
                  "indexer chooses (one thing for order 1)")
      ->delimiter(',')
      ->check(CLI::IsMember({"dense", "topk", "path"}))
      ->capture_default_str();
  command.add_option("--topk", options.topk, "Keys chosen for a position, each for topk and path")
      ->delimiter(',')
      ->check(positive)
      ->capture_default_str();
  command
      .add_option("--beside", options.beside,
                  "Orders that are trained besides, with one dense layer each; 0: none")
      ->delimiter(',')
      ->check(CLI::Range(0, 4))
      ->capture_default_str();
  command
      .add_option("--equal", options.equal,
                  "What all models have as much of as one dense layer of the highest order (at "
                  "least 2): parameters, or flops of a training step")
      ->check(CLI::IsMember({"parameters", "flops"}))
      ->capture_default_str();
  command.add_option("--seeds", options.seeds, "Number of seeds, counted up from --seed")
      ->check(positive)
      ->capture_default_str();
}

// The task, the reference model and how it is trained.
void add_training_options(CLI::App& command, MatchCommandOptions& options) {
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 40);
  training::MatchOptions& task = options.task;
  command.add_option("--modulus", task.task.modulus, "M")
      ->check(CLI::Range(int64_t{1}, kLargestModulus))
      ->capture_default_str();
  command.add_option("--length", task.task.length, "Numbers in a sequence")
      ->check(positive)
      ->capture_default_str();
  command
      .add_option("--labels", options.labels,
                  "balanced: half of each sequence's labels are 1; natural: all uniform sequences")
      ->check(CLI::IsMember({"balanced", "natural"}))
      ->capture_default_str();
  command.add_option("--dim", task.dim, "Width of the widest model")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--heads", task.heads, "Attention heads")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--norm", options.norm, "RMS-normalise heads: none, qk or qkv")
      ->check(CLI::IsMember({"none", "qk", "qkv"}))
      ->capture_default_str();
  command.add_option("--batch", task.batch, "Fresh sequences a step")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--steps", task.steps, "Training steps")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--lr", task.learning_rate, "Peak learning rate")->capture_default_str();
  command.add_option("--eval-every", task.evaluate_every, "Steps between points of the curve")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--held-out", task.held_out, "Sequences to judge by, never trained on")
      ->check(positive)
      ->capture_default_str();
}

void add_match_command(CLI::App& parent, Session& session, const MatchText& text) {
  auto options = std::make_shared<MatchCommandOptions>();
  options->task.task = training::match_task(text.arity);
  if (text.arity == 4) options->orders = {1, 2, 3};
  const std::string name = fmt::format("match{}", text.arity);
  CLI::App& command = add_command(parent, session,
                                  {.name = name,
                                   .summary = text.summary,
                                   .examples = fmt::format(fmt::runtime(text.examples), name)},
                                  options, run_match);
  add_arm_options(command, *options);
  add_training_options(command, *options);
}

}  // namespace

void add_task_command(CLI::App& parent, Session& session) {
  CLI::App& group = add_group(parent, "task", "Small tasks that separate orders of attention");
  for (const MatchText& text : match_texts()) add_match_command(group, session, text);
}

}  // namespace nsimplex::cli
