#include <ATen/ops/arange.h>
#include <fmt/format.h>
#include <nsimplex/graph_structure.h>

#include <optional>

#include "cli/graph.h"
#include "cli/set_arms.h"
#include "data/synthetic_vertices.h"
#include "support/error.h"
#include "training/pair_task.h"

namespace nsimplex::cli {
namespace {

using data::LabelledSets;
using training::PairSets;

constexpr int64_t kShortSets = 6000, kFullSets = 900'000;  // full: as many as the paper's data has
constexpr double kTrain = 0.6, kValidation = 0.2;          // shares of the sets

struct JetsOptions : SetExperimentOptions {
  std::string file;
  std::optional<int64_t> sets;
  bool full = false, paper = false;
};

// Models of table 6d as the released code trains them, or (--paper) as the appendix says; smaller
// ones that train in minutes without --full.
SetArmOptions sizes_of(const JetsOptions& o, int64_t channels) {
  SetArmOptions arms{.in_channels = channels, .neighbours = {0, 5, 10}};
  if (!o.full) {
    // Small batches: the first thing learned is that all points are one part, and it takes
    // thousands of steps to get beyond it.
    const training::GraphTrainingOptions training{
        .epochs = 10, .batch = 16, .learning_rate = 1e-3, .warmup = 1, .decays = true};
    arms.encoders.training = arms.linear.training = training;
    arms.encoders.dropout = 0;
    return arms;
  }
  arms.encoders = {.hidden = 128,
                   .heads = 4,
                   .layers = 4,
                   .mlp_layers = 1,
                   .mlp_hidden = 256,
                   .dropout = 0.1,
                   .training = {.epochs = o.paper ? 400 : 1000,
                                .batch = 512,
                                .learning_rate = o.paper ? 1e-4 : 2e-4,
                                .patience = 20}};
  arms.linear = {.hidden = 256,
                 .layers = 5,
                 .mlp_layers = 1,
                 .mlp_hidden = 256,
                 .training = {.epochs = 400, .batch = 2048, .learning_rate = 1e-3, .patience = 20}};
  return arms;
}

// Sets begin .. end - 1.
PairSets part(const LabelledSets& sets, int64_t begin, int64_t end) {
  const LabelledSets own = data::select_sets(sets, at::arange(begin, end, at::kLong));
  return {own.points, label_cliques(own.labels, own.node_offsets),
          own.kinds.size(0) > 0 ? own.kinds : at::Tensor()};
}

std::vector<std::string> names_of_kinds(const LabelledSets& sets, bool synthetic) {
  std::vector<std::string> names;
  if (sets.kinds.size(0) == 0) return names;
  const int64_t count = sets.kinds.max().item<int64_t>() + 1;
  for (int64_t kind = 0; kind < count; ++kind) {
    names.push_back(synthetic ? data::name_of(static_cast<data::JetKind>(kind))
                              : fmt::format("kind{}", kind));
  }
  return names;
}

int64_t sets_of(const JetsOptions& o) { return o.sets.value_or(o.full ? kFullSets : kShortSets); }

std::unique_ptr<training::GraphTask> draw(const JetsOptions& o, const LabelledSets* read,
                                          uint64_t seed) {
  const LabelledSets sets = read ? *read : data::synthetic_vertices(sets_of(o), seed);
  const auto count = static_cast<double>(sets.size());
  const auto first = static_cast<int64_t>(kTrain * count);
  const auto second = first + static_cast<int64_t>(kValidation * count);
  // As released: minus the soft F1 of every set of a batch, beside the mean entropy of a pair.
  return std::make_unique<training::PartitionTask>(
      std::array<PairSets, 3>{part(sets, 0, first), part(sets, first, second),
                              part(sets, second, sets.size())},
      training::PairLoss{.soft_f1 = 1.0}, names_of_kinds(sets, !read));
}

int run_jets(const JetsOptions& o) {
  std::optional<LabelledSets> read;
  if (!o.file.empty()) read = data::read_labelled_sets(o.file);
  constexpr int64_t kFewest = 5;  // so that every split has a set
  const int64_t sets = read ? read->size() : sets_of(o);
  if (sets < kFewest) {
    throw InputError(fmt::format("{}: expected at least {} sets, got {}", read ? o.file : "--sets",
                                 kFewest, sets));
  }
  const int64_t channels = read ? read->points.size(1) : data::kJetFeatures;
  return run_experiment(
      o, {.task = "jets",
          .arms = set_arms(with_options(sizes_of(o, channels), o)),
          .draw = [&](uint64_t seed) { return draw(o, read ? &*read : nullptr, seed); },
          .shown = {"f1", "rand_index", "adjusted_rand_index"},
          .digits = 3});
}

}  // namespace

void add_graph_jets(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<JetsOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "jets",
       .summary =
           "Which points of a set belong together? Made-up particle jets, or sets from a file",
       .examples = "nsimplex graph jets --threads 1 --out runs/jets\n"
                   "nsimplex graph jets --resume runs/jets\n"
                   "nsimplex graph jets --file sets.npz --models softmax,s2g --json",
       .resumes = true,
       .inputs = {&options->file}},
      options, run_jets);
  add_set_options(command, *options, sizes_of(*options, 1));
  command
      .add_option(
          "--file", options->file,
          "An npz with points, offsets, labels and, optional, kinds; without it jets are made up")
      ->group("Task");
  const auto add = option_adder(command, "Task");
  add("--sets", options->sets, "Made-up jets: 60 % to train on, 20 % to choose the epoch by")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  command.add_flag("--full", options->full, "Sizes of the paper, 900,000 made-up jets")
      ->group("Task");
  command
      .add_flag("--paper", options->paper,
                "Rates and epochs as the paper's appendix has them, not as its code")
      ->group("Task");
}

}  // namespace nsimplex::cli
