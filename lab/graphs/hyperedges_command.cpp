// The command `lab hyperedges`: models compared on hyperedge prediction.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "cli/results.h"
#include "cli/text_flags.h"
#include "lab/experiments.h"
#include "lab/graphs/baseline_networks.h"
#include "lab/graphs/encoder_network.h"
#include "lab/graphs/graph_experiment.h"
#include "lab/graphs/hyperedge_task.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

using training::GraphModel;
using training::HyperedgeTask;

constexpr int64_t kHyperedgeWidth = 64;
constexpr double kHeadDropout = 0.1;

// Files with more positives are trained in fewer, larger steps, unless --full is given.
constexpr int64_t kSmall = 10000;

struct HyperedgesOptions : GraphExperimentOptions {
  std::string train, test;
  TextFlags text;
  double validation = 0.1;
  int64_t negatives = 5;
  std::optional<int64_t> layers, head_layers;
  std::string select = "validation";
  bool full = false, paper = false;
};

// Shared settings of the models: sizes of table 6e, which depend on the size of the files by
// default.
struct Settings {
  int64_t layers;
  TensorKind input, output;
  training::KernelFeatureOptions features;
  training::GraphHeadOptions head;
};

std::shared_ptr<GraphModel> make_sagnn(const Settings&) {
  return std::make_shared<training::HyperSagnn>(
      training::HyperSagnnOptions{.channels = kHyperedgeWidth});
}

std::shared_ptr<GraphModel> make_s2g(const Settings& settings) {
  return std::make_shared<training::LinearNetwork>(
      training::LinearNetworkOptions{.input = settings.input,
                                     .output = settings.output,
                                     .in_channels = kHyperedgeWidth,
                                     .hidden = kHyperedgeWidth,
                                     .layers = settings.layers,
                                     .head = settings.head});
}

std::shared_ptr<GraphModel> make_encoder(const Settings& settings, AttentionForm form) {
  return std::make_shared<training::EncoderNetwork>(
      training::EncoderNetworkOptions{.input = settings.input,
                                      .output = settings.output,
                                      .in_channels = kHyperedgeWidth,
                                      .hidden = kHyperedgeWidth,
                                      .layers = settings.layers,
                                      .heads = 8,
                                      .head_dim = 16,
                                      .form = form,
                                      .features = settings.features,
                                      .head = settings.head});
}

struct Network {
  std::string name;
  std::function<std::shared_ptr<GraphModel>(const Settings&)> make;
};

const std::vector<Network>& networks() {
  static const std::vector<Network> all{
      {"hyper-sagnn", make_sagnn},
      {"s2g-plus", make_s2g},
      {"softmax", [](const Settings& s) { return make_encoder(s, AttentionForm::softmax); }},
      {"kernel", [](const Settings& s) { return make_encoder(s, AttentionForm::kernel); }}};
  return all;
}

io::Tuples read(const HyperedgesOptions& o, const std::string& path) {
  io::Tuples tuples = io::read_tuples(path, {.text = text_options(o.text)});
  say_reading(o.text, path, fmt::format("{} tuples of {} nodes", tuples.count(), tuples.width),
              tuples.reading);
  return tuples;
}

int run_hyperedges(const HyperedgesOptions& o) {
  if (o.layers.value_or(0) < 0) throw InputError("--layers: expected at least 0");
  if (o.head_layers.value_or(0) < 0) throw InputError("--head-layers: expected at least 0");
  const io::Tuples train = read(o, o.train), test = read(o, o.test);
  const bool small = train.count() <= kSmall;
  const bool typed = !train.type_sizes.empty();
  const Settings settings{
      .layers = o.layers.value_or(small ? 1 : 3),
      .input = {.order = 1},
      .output = {.order = train.width,
                 .symmetry = typed ? Symmetry::loop_free : Symmetry::undirected},
      .features = kernel_features(o),
      .head = {.out_channels = 1,
               .layers = o.head_layers.value_or(small ? 4 : 2),
               .hidden = kHyperedgeWidth,
               .dropout = kHeadDropout}};
  training::GraphTrainingOptions training{.epochs = 300, .batch = 96, .learning_rate = 1e-3};
  if (!small && !o.full) {
    training.epochs = 10;
    training.batch = 960;
  }
  const training::HyperedgeTaskOptions task_options{.negatives = o.negatives,
                                                    .positive_weight = o.paper ? 1.0 : 5.0,
                                                    .redraw = o.select == "published"};
  // Models read the co-occurrence of the training tuples that remain for a seed.
  const auto shared = std::make_shared<data::Cooccurrence>();
  GraphExperiment experiment{
      .task = "hyperedges",
      .reading = {{"train", to_json(train.reading)}, {"test", to_json(test.reading)}}};
  experiment.draw = [&](uint64_t seed) -> std::unique_ptr<training::GraphTask> {
    data::HyperedgeSplits splits = o.select == "validation"
                                       ? data::split_hyperedges(train, test, o.validation, seed)
                                       : data::splits_chosen_by_test(train, test);
    *shared = data::cooccurrence(splits);
    return std::make_unique<HyperedgeTask>(std::move(splits), task_options, seed);
  };
  // The paper's files are known by the numbers of nodes of their types.
  auto published = published_scores(kExperimentFigures, "hyperedges",
                                    fmt::format("{}", fmt::join(train.type_sizes, " ")));
  for (const Network& network : networks()) {
    experiment.arms.push_back(
        {network.name, training,
         [shared, settings, make = network.make]() -> std::shared_ptr<GraphModel> {
           return std::make_shared<training::AutoencodedNetwork>(
               *shared, training::NodeAutoencoderOptions{.channels = kHyperedgeWidth},
               make(settings));
         },
         published[network.name]});
  }
  return run_experiment(o, experiment);
}

}  // namespace

void add_graph_hyperedges(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<HyperedgesOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "hyperedges",
       .summary = "Predict which tuples of nodes are hyperedges",
       .examples =
           "nsimplex lab hyperedges --train gps_train.npz --test gps_test.npz --json\n"
           "nsimplex lab hyperedges --train a.csv --test b.csv --models s2g-plus --out runs/a\n"
           "nsimplex lab hyperedges --resume runs/a",
       .resumes = true,
       .inputs = {&options->train, &options->test}},
      options, run_hyperedges);
  add_experiment_options(command, *options, model_names(networks()));
  const auto add = option_adder(command, "Task");
  const auto positive = within(int64_t{1}, int64_t{1} << 20);
  add("--train", options->train, "Training tuples: npz, npy, csv or another text")
      ->type_name("FILE")
      ->required();
  add("--test", options->test, "Test tuples over the same nodes")->type_name("FILE")->required();
  add_text_options(command, options->text, /*table=*/false);
  add("--validation", options->validation,
      "Share of the training tuples for validation, which chooses the epoch")
      ->check(within(0.0, 1.0))
      ->capture_default_str();
  add("--select", options->select,
      "How to choose the epoch: validation (by validation tuples), test (by test tuples, after "
      "training on all training tuples) or published (like test, with new negatives at every "
      "validation)")
      ->check(one_of({"validation", "test", "published"}))
      ->capture_default_str();
  add("--negatives", options->negatives, "Negative tuples per positive one")
      ->check(positive)
      ->capture_default_str();
  add("--layers", options->layers,
      "Layers from nodes to nodes; default: 1, or 3 for more than 10000 tuples");
  add("--head-layers", options->head_layers,
      "Hidden layers of the head; default: 4, or 2 for more than 10000 tuples");
  command.add_flag("--full", options->full, "Train 300 epochs in steps of 96 for large files too")
      ->group("Task");
  command
      .add_flag("--paper", options->paper,
                "Give positives and negatives the same weight, as the paper says, instead of 5 "
                "times the weight to positives")
      ->group("Task");
}

}  // namespace nsimplex::cli
