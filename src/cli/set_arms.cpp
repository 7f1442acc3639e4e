#include "cli/set_arms.h"

#include <fmt/format.h>

#include "support/error.h"
#include "training/encoder_network.h"
#include "training/linear_network.h"
#include "training/message_network.h"

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
  std::vector<std::string> names;
  for (const GraphArm& arm : set_arms(arms)) names.push_back(arm.name);
  add_experiment_options(command, options, names);
  const auto add = option_adder(command, "Models");
  const auto size = CLI::Range(int64_t{1}, int64_t{1} << 16);
  add("--width", options.width,
      fmt::format("Channels of a layer, a multiple of {}", arms.encoders.heads))
      ->check(size);
  add("--layers", options.layers, "Layers 1 -> 1, before the one to pairs")->check(size);
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

}  // namespace nsimplex::cli
