// The commands `lab delaunay` and `lab jets`, which predict pairs of points in a set.

#include "lab/graphs/set_commands.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <fmt/format.h>
#include <nsimplex/graph.h>

#include <cmath>
#include <map>
#include <optional>

#include "cli/results.h"
#include "lab/experiments.h"
#include "lab/graphs/baseline_networks.h"
#include "lab/graphs/encoder_network.h"
#include "lab/graphs/pair_task.h"
#include "lab/graphs/set_data.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

using training::GraphModel;

std::shared_ptr<GraphModel> make_encoders(const SetArmOptions& o, AttentionForm form) {
  return std::make_shared<training::EncoderNetwork>(
      training::EncoderNetworkOptions{.input = {.order = 1},
                                      .output = {.order = 2},
                                      .in_channels = o.in_channels,
                                      .hidden = o.encoders.hidden,
                                      .layers = o.encoders.layers,
                                      .heads = o.encoders.heads,
                                      .form = form,
                                      .features = o.encoders.features,
                                      .dropout = o.encoders.dropout,
                                      .head = {.out_channels = 1,
                                               .layers = o.encoders.mlp_layers,
                                               .hidden = o.encoders.mlp_hidden,
                                               .dropout = o.encoders.dropout},
                                      .symmetric = true});
}

std::shared_ptr<GraphModel> make_linear(const SetArmOptions& o, ClassSet classes) {
  return std::make_shared<training::LinearNetwork>(training::LinearNetworkOptions{
      .input = {.order = 1},
      .output = {.order = 2},
      .in_channels = o.in_channels,
      .hidden = o.linear.hidden,
      .layers = o.linear.layers,
      .last_classes = classes,
      .head = {.out_channels = 1, .layers = o.linear.mlp_layers, .hidden = o.linear.mlp_hidden},
      .symmetric = true});
}

std::shared_ptr<GraphModel> make_neighbours(const SetArmOptions& o, int64_t count) {
  return std::make_shared<training::MessageNetwork>(
      training::MessageNetworkOptions{.kind = training::MessageKind::isomorphism,
                                      .node_channels = o.in_channels,
                                      .hidden = o.linear.hidden,
                                      .layers = o.linear.layers,
                                      .neighbours = count});
}

}  // namespace

void add_set_options(CLI::App& command, SetExperimentOptions& options, const SetArmOptions& arms) {
  add_experiment_options(command, options, model_names(set_arms(arms)));
  const auto add = option_adder(command, "Models");
  const auto size = within(int64_t{1}, int64_t{1} << 16);
  add("--width", options.width,
      fmt::format("Channels per layer, a multiple of {}", arms.encoders.heads))
      ->check(size);
  add("--layers", options.layers, "Number of layers 1 -> 1 before the layer to pairs")->check(size);
}

SetArmOptions with_options(SetArmOptions arms, const SetExperimentOptions& options) {
  if (options.width.value_or(0) % arms.encoders.heads != 0) {
    throw InputError(fmt::format("--width: expected a multiple of {} heads, got {}",
                                 arms.encoders.heads, *options.width));
  }
  arms.encoders.hidden = options.width.value_or(arms.encoders.hidden);
  arms.linear.hidden = options.width.value_or(arms.linear.hidden);
  arms.encoders.layers = options.layers.value_or(arms.encoders.layers);
  arms.linear.layers = options.layers.value_or(arms.linear.layers);
  arms.encoders.features = kernel_features(options);
  return arms;
}

std::vector<GraphArm> set_arms(const SetArmOptions& o) {
  std::vector<GraphArm> arms{
      {"softmax", o.encoders.training, [o] { return make_encoders(o, AttentionForm::softmax); }},
      {"kernel", o.encoders.training, [o] { return make_encoders(o, AttentionForm::kernel); }},
      {"s2g", o.linear.training, [o] { return make_linear(o, ClassSet::light); }},
      {"s2g-plus", o.linear.training, [o] { return make_linear(o, ClassSet::all); }}};
  for (const int64_t count : o.neighbours) {
    arms.push_back({fmt::format("gnn{}", count), o.linear.training,
                    [o, count] { return make_neighbours(o, count); }});
  }
  return arms;
}

namespace {

using training::PairSets;

constexpr int64_t kFullTrain = 50'000, kFullTest = 5'000, kFullEpochs = 100;
constexpr int64_t kShortTrain = 1000, kShortValidation = 100, kShortTest = 200, kBatch = 8;

struct DelaunayOptions : SetExperimentOptions {
  int64_t least = 50, most = 50;
  std::optional<int64_t> train, validation, test;
  bool full = false, paper = false;
};

// Models of table 6d as in the released code, or (--paper) as in the appendix. Without --full they
// are smaller and train in minutes.
SetArmOptions sizes_of(const DelaunayOptions& o) {
  SetArmOptions arms{.in_channels = 2, .neighbours = {0, 5, 10}};
  if (!o.full) {
    const training::GraphTrainingOptions training{
        .epochs = 6, .batch = kBatch, .learning_rate = 1e-3, .warmup = 1, .decays = true};
    arms.encoders.training = arms.linear.training = training;
    arms.encoders.dropout = 0;
    return arms;
  }
  const bool varied = o.least != o.most;
  arms.encoders = {.hidden = 256,
                   .heads = 4,
                   .layers = 5,
                   .mlp_layers = 2,
                   .mlp_hidden = 256,
                   .dropout = 0.1,
                   .training = {.epochs = kFullEpochs,
                                .batch = varied ? 16 : 32,
                                .learning_rate = o.paper ? 1e-4 : 2e-4,
                                .warmup = o.paper ? (varied ? 1.0 : 0.0) : 10.0,
                                .decays = !o.paper}};
  arms.linear = {.hidden = 500,
                 .layers = 7,
                 .mlp_layers = 2,
                 .mlp_hidden = 1000,
                 .training = {.epochs = kFullEpochs, .batch = 64, .learning_rate = 1e-3}};
  return arms;
}

// Features are the coordinates, moved and scaled to mean 0 and variance 1.
PairSets draw(int64_t sets, const DelaunayOptions& o, uint64_t seed) {
  const PointSets drawn = random_point_sets(sets, o.least, o.most, static_cast<int64_t>(seed));
  return {
      (drawn.points - 0.5) * std::sqrt(12.0), delaunay_graph(drawn.points, drawn.node_offsets), {}};
}

int run_delaunay(const DelaunayOptions& o) {
  if (o.least > o.most) {
    throw InputError(fmt::format("--least: expected at most --most {}, got {}", o.most, o.least));
  }
  const int64_t train = o.train.value_or(o.full ? kFullTrain : kShortTrain);
  const int64_t validation = o.validation.value_or(o.full ? kFullTest : kShortValidation);
  const int64_t test = o.test.value_or(o.full ? kFullTest : kShortTest);
  GraphExperiment experiment{
      .task = "delaunay",
      .arms = set_arms(with_options(sizes_of(o), o)),
      .draw = [&](uint64_t seed) -> std::unique_ptr<training::GraphTask> {
        // The appendix adds the soft F1, here with the weight of the entropy; the released code
        // does not. Short runs need it: most pairs are not edges, and with the entropy alone
        // training stays at predicting no edges.
        const double soft_f1 = !o.full ? 1.0 / kBatch : o.paper ? 1.0 / 32 : 0.0;
        return std::make_unique<training::PairTask>(
            std::array<PairSets, 3>{draw(train, o, 3 * seed), draw(validation, o, 3 * seed + 1),
                                    draw(test, o, 3 * seed + 2)},
            training::PairLoss{.soft_f1 = soft_f1});
      },
      .digits = 3};
  const std::string points = o.least == o.most ? fmt::format("{} points", o.least)
                                               : fmt::format("{} to {} points", o.least, o.most);
  auto known = published_scores(kExperimentFigures, "delaunay", points);
  for (GraphArm& arm : experiment.arms) {
    arm.published = known[arm.name];
    known.erase(arm.name);
  }
  for (const auto& [name, scores] : known) experiment.published.push_back({name, scores});
  return run_experiment(o, experiment);
}

}  // namespace

void add_graph_delaunay(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<DelaunayOptions>();
  CLI::App& command =
      add_command(parent, session,
                  {.name = "delaunay",
                   .summary = "Predict the edges of Delaunay triangulations from points",
                   .examples = "nsimplex lab delaunay --threads 1 --out runs/delaunay\n"
                               "nsimplex lab delaunay --least 20 --most 80 --models softmax,s2g\n"
                               "nsimplex lab delaunay --full --models softmax --out runs/full\n"
                               "nsimplex lab delaunay --resume runs/full",
                   .resumes = true},
                  options, run_delaunay);
  add_set_options(command, *options, sizes_of(*options));
  const auto add = option_adder(command, "Task");
  const auto positive = within(int64_t{1}, int64_t{1} << 24);
  add("--least", options->least, "Fewest points per set")->check(positive);
  add("--most", options->most, "Most points per set")
      ->check(within(int64_t{2}, int64_t{1} << 24));  // one point has no pairs
  add("--train", options->train, "Training sets")->check(positive);
  add("--validation", options->validation, "Validation sets, which choose the epoch")
      ->check(positive);
  add("--test", options->test, "Test sets")->check(positive);
  command
      .add_flag("--full", options->full,
                "Use the paper's sizes: 50,000 training, 5,000 validation and 5,000 test sets, 100 "
                "epochs")
      ->group("Task");
  command
      .add_flag("--paper", options->paper,
                "Use the rates and loss of the paper's appendix instead of those of its code")
      ->group("Task");
}

namespace {

using data::LabelledSets;
using training::PairSets;

constexpr int64_t kShortSets = 6000, kFullSets = 900'000;  // full: the size of the paper's data
constexpr double kTrain = 0.6, kValidation = 0.2;          // shares of the sets

struct JetsOptions : SetExperimentOptions {
  std::string file;
  std::optional<int64_t> sets;
  bool full = false, paper = false;
};

// Models of table 6d as in the released code, or (--paper) as in the appendix. Without --full they
// are smaller and train in minutes.
SetArmOptions sizes_of(const JetsOptions& o, int64_t channels) {
  SetArmOptions arms{.in_channels = channels, .neighbours = {0, 5, 10}};
  if (!o.full) {
    // Small batches: training first learns that all points are one part, and it takes thousands of
    // steps to get past this.
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
    names.push_back(synthetic ? std::string(name_of(static_cast<data::JetKind>(kind)))
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
  // As in the released code: minus the soft F1 of every set of a batch, plus the mean entropy of a
  // pair.
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
  CLI::App& command =
      add_command(parent, session,
                  {.name = "jets",
                   .summary = "Predict which points of a set belong together, for synthetic "
                              "particle jets or sets from a file",
                   .examples = "nsimplex lab jets --threads 1 --out runs/jets\n"
                               "nsimplex lab jets --resume runs/jets\n"
                               "nsimplex lab jets --file sets.npz --models softmax,s2g --json",
                   .resumes = true,
                   .inputs = {&options->file}},
                  options, run_jets);
  add_set_options(command, *options, sizes_of(*options, 1));
  command
      .add_option(
          "--file", options->file,
          "An npz with points, offsets, labels and optionally kinds; default: synthetic jets")
      ->type_name("FILE")
      ->group("Task");
  const auto add = option_adder(command, "Task");
  add("--sets", options->sets, "Number of synthetic jets: 60 % for training, 20 % for validation")
      ->check(within(int64_t{1}, int64_t{1} << 24));
  command.add_flag("--full", options->full, "Use the paper's sizes, with 900,000 synthetic jets")
      ->group("Task");
  command
      .add_flag("--paper", options->paper,
                "Use the rates and epochs of the paper's appendix instead of those of its code")
      ->group("Task");
}

}  // namespace nsimplex::cli
