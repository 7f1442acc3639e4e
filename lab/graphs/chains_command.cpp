// The command `lab chains`: models compared on labelling the nodes of chains.

#include "cli/results.h"
#include "lab/experiments.h"
#include "lab/graphs/baseline_networks.h"
#include "lab/graphs/encoder_network.h"
#include "lab/graphs/graph_experiment.h"
#include "lab/graphs/pair_task.h"

namespace nsimplex::cli {
namespace {

using training::GraphModel;
using training::MessageKind;

constexpr int64_t kChainWidth = 16, kHeads = 8, kDraws = 10;

struct ChainsOptions : GraphExperimentOptions {
  training::ChainOptions task;
};

// Two layers and a linear map, table 6b.
std::shared_ptr<GraphModel> make_messages(MessageKind kind) {
  return std::make_shared<training::MessageNetwork>(
      training::MessageNetworkOptions{.kind = kind,
                                      .node_channels = 2,
                                      .out_channels = 2,
                                      .hidden = kChainWidth,
                                      .layers = 2,
                                      .heads = kHeads});
}

std::shared_ptr<GraphModel> make_invariant(Pooling pooling) {
  return std::make_shared<training::LinearNetwork>(
      training::LinearNetworkOptions{.input = {.order = 2},
                                     .output = {.order = 1},
                                     .in_channels = 2,
                                     .hidden = kChainWidth,
                                     .layers = 1,
                                     .pooling = pooling,
                                     .head = {.out_channels = 2}});
}

std::shared_ptr<GraphModel> make_encoders(AttentionForm form, bool global,
                                          const training::KernelFeatureOptions& features = {}) {
  return std::make_shared<training::EncoderNetwork>(
      training::EncoderNetworkOptions{.input = {.order = 2},
                                      .output = {.order = 1},
                                      .in_channels = 2,
                                      .hidden = kChainWidth,
                                      .layers = 1,
                                      .form = form,
                                      .features = features,
                                      .classes = {.global = global},
                                      .head = {.out_channels = 2, .normalised = true}});
}

// Models and results of table 1.
std::vector<GraphArm> chain_arms(const training::KernelFeatureOptions& features) {
  const training::GraphTrainingOptions training{.epochs = 100, .batch = 16, .learning_rate = 1e-3};
  auto published = published_scores(kExperimentFigures, "chains", "200 nodes");
  std::vector<GraphArm> arms{
      {"gcn", training, [] { return make_messages(MessageKind::convolution); }},
      {"gin", training, [] { return make_messages(MessageKind::isomorphism); }},
      {"gat", training, [] { return make_messages(MessageKind::attention); }},
      {"mlp", training, [] { return make_invariant(Pooling::mean); }},
      {"mlp-sum", training, [] { return make_invariant(Pooling::sum); }},
      {"softmax-local", training, [] { return make_encoders(AttentionForm::softmax, false); }},
      {"kernel-local", training,
       [=] { return make_encoders(AttentionForm::kernel, false, features); }},
      {"softmax", training, [] { return make_encoders(AttentionForm::softmax, true); }},
      {"kernel", training, [=] { return make_encoders(AttentionForm::kernel, true, features); }}};
  for (GraphArm& arm : arms) arm.published = published.at(arm.name);
  return arms;
}

int run_chains(const ChainsOptions& options) {
  return run_experiment(options,
                        {.task = "chains",
                         .arms = chain_arms(kernel_features(options)),
                         .draw = [&](uint64_t seed) -> std::unique_ptr<training::GraphTask> {
                           return std::make_unique<training::ChainTask>(options.task, seed);
                         },
                         .scale = 100,
                         .digits = 2});
}

}  // namespace

void add_graph_chains(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<ChainsOptions>();
  options->seeds = kDraws;
  CLI::App& command = add_command(
      parent, session,
      {.name = "chains",
       .summary =
           "Test whether a label reaches the far end of a chain: train on 20 nodes, test on 200",
       .examples = "nsimplex lab chains --threads 1 --out runs/chains\n"
                   "nsimplex lab chains --resume runs/chains\n"
                   "nsimplex lab chains --models softmax,kernel --seeds 3 --json",
       .resumes = true},
      options, run_chains);
  add_experiment_options(command, *options, model_names(chain_arms({})));
  const auto add = option_adder(command, "Task");
  const auto positive = within(int64_t{1}, int64_t{1} << 20);
  add("--train", options->task.train, "Training chains")->check(positive);
  add("--validation", options->task.validation, "Validation chains, which choose the epoch")
      ->check(positive);
  add("--test", options->task.test, "Test chains")->check(positive);
  add("--nodes", options->task.nodes, "Nodes per chain of training and validation")
      ->check(positive);
  add("--test-nodes", options->task.test_nodes, "Nodes per chain of the test split")
      ->check(positive);
}

}  // namespace nsimplex::cli
