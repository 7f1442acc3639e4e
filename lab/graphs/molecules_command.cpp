// The command `lab molecules`: models compared on regression of a molecular property.

#include <fmt/format.h>

#include "equivariant/classes/equivariant_classes.h"
#include "lab/experiments.h"
#include "lab/graphs/baseline_networks.h"
#include "lab/graphs/encoder_network.h"
#include "lab/graphs/graph_experiment.h"
#include "lab/graphs/molecule_task.h"
#include "support/error.h"
#include "support/names.h"

namespace nsimplex::cli {
namespace {

using training::GraphModel;
using training::MessageKind;
using training::MessageTokens;

struct MoleculesOptions : GraphExperimentOptions {
  std::string file;
  training::MoleculeSplits splits;
  uint64_t split_seed = 0;
  bool sizes = false;
  int64_t width = 64, layers = 4, heads = 4, head_width = 0;
  int64_t readout_heads = 0, readout_head_width = 0;
  std::string readout = "kernel";
  double dropout = 0.0, chosen = 1.0;
};

// Settings that all models share.
struct MoleculeSettings {
  std::shared_ptr<const data::Molecules> molecules;
  int64_t atoms, bonds;  // channels
  int64_t width, layers;
  int64_t heads, head_width;         // of encoders
  training::ReadoutOptions readout;  // of encoders; its form only of those of the kernel form
  double dropout;
  std::optional<double> chosen;
  training::KernelFeatureOptions features;
};

std::shared_ptr<GraphModel> make_messages(const MoleculeSettings& s, MessageKind kind,
                                          bool virtual_node,
                                          MessageTokens tokens = MessageTokens::nodes) {
  return std::make_shared<training::MessageNetwork>(
      training::MessageNetworkOptions{.kind = kind,
                                      .tokens = tokens,
                                      .node_channels = s.atoms,
                                      .edge_channels = s.bonds,
                                      .out_channels = 1,
                                      .hidden = s.width,
                                      .layers = s.layers,
                                      .virtual_node = virtual_node,
                                      .dropout = s.dropout});
}

std::shared_ptr<GraphModel> make_tokens(const MoleculeSettings& s, MessageTokens tokens,
                                        int64_t order) {
  return std::make_shared<training::TokenNetwork>(
      training::TokenNetworkOptions{.tokens = tokens,
                                    .node_channels = s.atoms,
                                    .edge_channels = s.bonds,
                                    .hidden = s.width,
                                    .layers = s.layers,
                                    .heads = 4,
                                    .order = order,
                                    .head = {.out_channels = 1, .normalised = true},
                                    .chosen = s.chosen});
}

std::shared_ptr<GraphModel> make_mlp(const MoleculeSettings& s) {
  return std::make_shared<training::LinearNetwork>(
      training::LinearNetworkOptions{.input = {.order = 2},
                                     .output = {.order = 0},
                                     .in_channels = s.atoms + s.bonds,
                                     .hidden = s.width,
                                     .layers = s.layers,
                                     .head = {.out_channels = 1}});
}

training::EncoderNetworkOptions encoder_options(const MoleculeSettings& s, int64_t order,
                                                int64_t channels, AttentionForm form) {
  training::ReadoutOptions readout = s.readout;
  if (form == AttentionForm::softmax) readout.form = form;
  return {.input = {.order = order},
          .output = {.order = 0},
          .in_channels = channels,
          .hidden = s.width,
          .layers = s.layers,
          .heads = s.heads,
          .head_dim = s.head_width,
          .form = form,
          .readout = readout,
          .features = s.features,
          .dropout = s.dropout,
          .head = {.out_channels = 1, .normalised = true}};
}

std::shared_ptr<GraphModel> make_molecule_encoder(const MoleculeSettings& s, AttentionForm form) {
  return std::make_shared<training::EncoderNetwork>(encoder_options(s, 2, s.atoms + s.bonds, form));
}

std::shared_ptr<GraphModel> make_laplacian(const MoleculeSettings& s) {
  constexpr int64_t kEncodings = 8;
  return std::make_shared<training::LaplacianTransformer>(
      s.atoms, kEncodings, encoder_options(s, 1, s.atoms + kEncodings, AttentionForm::softmax));
}

std::shared_ptr<GraphModel> make_fingerprints(const MoleculeSettings& s) {
  return std::make_shared<training::FingerprintNetwork>(
      s.molecules,
      training::GraphHeadOptions{
          .out_channels = 1, .layers = 2, .hidden = 8 * s.width, .dropout = s.dropout});
}

struct MoleculeNetwork {
  std::string name;
  std::function<std::shared_ptr<GraphModel>(const MoleculeSettings&)> make;
};

const std::vector<MoleculeNetwork>& molecule_networks() {
  using enum MessageKind;
  using Settings = const MoleculeSettings&;
  constexpr auto kEdges = MessageTokens::edges, kNodes = MessageTokens::nodes;
  static const std::vector<MoleculeNetwork> all{
      {"fingerprint", make_fingerprints},
      {"gcn", [](Settings s) { return make_messages(s, convolution, false); }},
      {"gin", [](Settings s) { return make_messages(s, isomorphism, false); }},
      {"gcn-vn", [](Settings s) { return make_messages(s, convolution, true); }},
      {"gin-vn", [](Settings s) { return make_messages(s, isomorphism, true); }},
      {"gat", [](Settings s) { return make_messages(s, attention, false); }},
      {"gcn-line", [](Settings s) { return make_messages(s, convolution, false, kEdges); }},
      {"gin-line", [](Settings s) { return make_messages(s, isomorphism, false, kEdges); }},
      {"gat-line", [](Settings s) { return make_messages(s, attention, false, kEdges); }},
      {"nodes", [](Settings s) { return make_tokens(s, kNodes, 1); }},
      {"nodes-2", [](Settings s) { return make_tokens(s, kNodes, 2); }},
      {"lines", [](Settings s) { return make_tokens(s, kEdges, 1); }},
      {"lines-2", [](Settings s) { return make_tokens(s, kEdges, 2); }},
      {"laplacian", make_laplacian},
      {"mlp", make_mlp},
      {"softmax", [](Settings s) { return make_molecule_encoder(s, AttentionForm::softmax); }},
      {"kernel", [](Settings s) { return make_molecule_encoder(s, AttentionForm::kernel); }}};
  return all;
}

int run_molecules(const MoleculesOptions& o) {
  if (o.head_width == 0 && o.heads > o.width) {
    throw InputError(fmt::format(
        "--heads: expected at most the width, {}, or a --head-width, got {}", o.width, o.heads));
  }
  const auto molecules = std::make_shared<const data::Molecules>(data::read_molecules(o.file));
  const MoleculeSettings settings{
      .molecules = molecules,
      .atoms = training::atom_channels(*molecules) + (o.sizes ? training::kSizeChannels : 0),
      .bonds = training::bond_channels(*molecules),
      .width = o.width,
      .layers = o.layers,
      .heads = o.heads,
      .head_width = o.head_width,
      .readout = {.form = parse_name<AttentionForm>("--readout", o.readout),
                  .heads = o.readout_heads,
                  .head_dim = o.readout_head_width},
      .dropout = o.dropout,
      .chosen = o.chosen < 1 ? std::optional(o.chosen) : std::nullopt,
      .features = kernel_features(o)};
  const training::GraphTrainingOptions training{
      .epochs = 20, .batch = 128, .learning_rate = 1e-3, .warmup = 1, .decays = true, .clip = 5.0};
  GraphExperiment experiment{.task = "molecules"};
  experiment.digits = 5;
  experiment.draw = [&](uint64_t) -> std::unique_ptr<training::GraphTask> {
    return std::make_unique<training::MoleculeTask>(molecules, o.splits, o.split_seed, o.sizes);
  };
  for (const MoleculeNetwork& network : molecule_networks()) {
    experiment.arms.push_back(
        {network.name, training, [settings, make = network.make] { return make(settings); }, {}});
  }
  return run_experiment(o, experiment);
}

}  // namespace

void add_graph_molecules(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<MoleculesOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "molecules",
       .summary =
           "Predict a number per molecule of a file that nsimplex.molecules made from SMILES",
       .examples = "nsimplex lab molecules qm9.npz --molecules 10000 --seconds 300 --threads 1\n"
                   "nsimplex lab molecules qm9.npz --models gin-vn,mlp --epochs 50 --out runs/qm9\n"
                   "nsimplex lab molecules --resume runs/qm9",
       .resumes = true,
       .inputs = {&options->file}},
      options, run_molecules);
  add_argument(command, "FILE", options->file, "An npz that python -m nsimplex.molecules writes");
  add_experiment_options(command, *options, model_names(molecule_networks()));
  const auto add = option_adder(command, "Task");
  const auto positive = within(int64_t{1}, int64_t{1} << 20);
  add("--molecules", options->splits.most,
      "Draw at most this number of molecules from the file; 0: take all")
      ->check(within(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  add("--validation", options->splits.validation,
      "Share of the molecules for validation, which chooses the epoch")
      ->check(within(0.0, 1.0))
      ->capture_default_str();
  add("--test", options->splits.test, "Share of the molecules for testing")
      ->check(within(0.0, 1.0))
      ->capture_default_str();
  add("--split-seed", options->split_seed, "Seed of the splits, which do not depend on --seed")
      ->capture_default_str();
  command
      .add_flag("--sizes", options->sizes,
                "Also give each atom the number of atoms and bonds of its molecule")
      ->group("Task");
  add("--width", options->width, "Channels per layer")->check(positive)->capture_default_str();
  add("--layers", options->layers, "Layers before the last")
      ->check(positive)
      ->capture_default_str();
  const auto at_most = within(int64_t{0}, int64_t{1} << 16);
  add("--heads", options->heads, "Heads per layer of laplacian, softmax and kernel")
      ->check(within(int64_t{1}, int64_t{1} << 16))
      ->capture_default_str();
  add("--head-width", options->head_width, "Channels per head; 0: width / heads")
      ->check(at_most)
      ->capture_default_str();
  add_kernel_readout(command, options->readout);
  add("--readout-heads", options->readout_heads, "Heads of the last layer; 0: --heads")
      ->check(at_most)
      ->capture_default_str();
  add("--readout-head-width", options->readout_head_width,
      "Channels per head of the last layer; 0: --head-width")
      ->check(at_most)
      ->capture_default_str();
  add("--chosen", options->chosen,
      "Share of the tokens that a router chooses for the attention of each block in nodes and "
      "lines; 1: no router")
      ->check(within(1e-9, 1.0))
      ->capture_default_str();
  add("--dropout", options->dropout, "Rate of dropout, in models that have dropout")
      ->check(within(0.0, 0.99))
      ->capture_default_str();
}

}  // namespace nsimplex::cli
