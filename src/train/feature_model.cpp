// Scales values for a trained feature model, predicts new rows, and saves and loads the model.

#include "train/feature_model.h"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <set>

#include "data/observations.h"
#include "io/safetensors.h"
#include "nn/model_names.h"
#include "support/printable.h"
#include "support/require.h"
#include "train/feature_training.h"
#include "train/optimizer.h"
#include "train/stored_state.h"

namespace nsimplex::training {

FeatureTrainingOptions preset_training(const std::string& name) {
  FeatureTrainingOptions options{.learning_rate = 1e-4};
  if (name == "paper-scbert") {
    options.epochs = 100;
    options.batch = 3;
  } else if (name == "paper-scgpt") {
    options.epochs = 60;
    options.batch = 5;
  } else {
    throw InputError(
        std::string("preset: expected paper-scbert or paper-scgpt, got ").append(name));
  }
  return options;
}

void use_preset_embedding(EncodingOptions& options) {
  options.structure.estimator = StructureEstimator::paper;
  options.structure.threshold = 0.2;
  options.embedding.generality = 0.1;
  options.embedding.relative = false;
  options.embedding.balanced = false;
  options.embedding.hops = 2;
  options.embedding.learning_rate = 1e-3;
  options.embedding.steps = 1000;
  options.embedding_batch = 32;
}

namespace {

using at::Tensor;
using FileJson = nlohmann::ordered_json;

constexpr char kFormatField[] = "format", kModelField[] = "model";
constexpr char kFeatureModel[] = "nsimplex feature model 1";
constexpr char kWeightsPrefix[] = "model.", kGeneralPrefix[] = "general.";
constexpr char kEdgesTensor[] = "scale.edges", kMeanTensor[] = "scale.mean",
               kDeviationTensor[] = "scale.deviation";

FileJson to_json(const FeatureTransformerOptions& o) {
  return {{"features", o.features},
          {"dim", o.dim},
          {"heads", o.heads},
          {"layers", o.layers},
          {"hidden", o.hidden},
          {"backbone", name_of(o.backbone)},
          {"order", o.order},
          {"values", name_of(o.values)},
          {"bins", o.bins},
          {"encoding", name_of(o.encoding)},
          {"identity", o.identity},
          {"learned_scale", o.learned_scale},
          {"aggregate", name_of(o.aggregate)},
          {"outputs", o.outputs}};
}

FeatureTransformerOptions options_of(const nlohmann::json& json) {
  const auto text = [&](const char* name) { return json.at(name).get<std::string>(); };
  return {.features = json.at("features"),
          .dim = json.at("dim"),
          .heads = json.at("heads"),
          .layers = json.at("layers"),
          .hidden = json.at("hidden"),
          .backbone = parse_name<FeatureBackbone>("backbone", text("backbone")),
          .order = json.at("order"),
          .values = parse_name<FeatureValues>("values", text("values")),
          .bins = json.at("bins"),
          .encoding = parse_name<FeatureEncoding>("encoding", text("encoding")),
          .identity = json.at("identity"),
          .learned_scale = json.at("learned_scale"),
          .aggregate = parse_name<FeatureAggregate>("aggregate", text("aggregate")),
          .outputs = json.at("outputs")};
}

// Checks the sizes before a model is built. The header alone determines the model's size, and a
// header may state anything.
void require_sizes(const FeatureTransformerOptions& o,
                   const std::vector<io::NamedTensor>& weights) {
  constexpr std::string_view kBlocks = "parameter.blocks.";
  std::set<std::string_view> blocks;
  int64_t width = 0, widest = 0, codes = 0;
  for (const io::NamedTensor& each : weights) {
    const std::string_view name = each.name;
    const at::Tensor& tensor = each.tensor;
    if (name == "parameter.cls" && tensor.dim() == 1) width = tensor.size(0);
    if (name == "parameter.value.weight" && tensor.dim() == 2) codes = tensor.size(0) - 1;
    if (name.starts_with(kBlocks)) blocks.insert(name.substr(0, name.find('.', kBlocks.size())));
    for (const int64_t size : tensor.sizes()) widest = std::max(widest, size);
  }
  const auto require = [](bool fits, const char* option) {
    if (!fits) throw InputError(std::string(option) + " does not belong to its weights");
  };
  require(o.dim == width, "dim");
  require(o.layers == std::ssize(blocks), "layers");
  require(o.hidden >= 0 && o.hidden <= widest, "hidden");
  require(o.heads <= o.dim, "heads");
  require(o.order <= o.dim, "order");
  require(o.outputs <= widest, "outputs");
  require(o.values != FeatureValues::bins ? o.bins <= (1 << 30) : o.bins == codes, "bins");
}

// The model of these options with the tensors under the prefix, which are taken.
std::shared_ptr<FeatureTransformerImpl> model_of(const nlohmann::json& options,
                                                 std::vector<io::NamedTensor>& tensors,
                                                 std::string_view prefix, size_t features,
                                                 const std::string& path) {
  const FeatureTransformerOptions o = options_of(options);
  const std::vector<io::NamedTensor> weights = take_under(tensors, prefix);
  require_sizes(o, weights);
  require(o.features == static_cast<int64_t>(features),
          "it names another number of features than its model has");
  auto model = std::make_shared<FeatureTransformerImpl>(o);
  copy_into(named_weights(*model), weights, path);
  return model;
}

FileJson json_of(const FeatureModel& model) {
  FileJson json{{"encoding", model.encoding},
                {"features", model.features},
                {"classes", model.classes},
                {"counts", model.counts},
                {"mean", model.mean},
                {"deviation", model.deviation},
                {"options", to_json(model.model->options())}};
  if (model.general) json["general"] = to_json(model.general->options());
  return json;
}

FeatureScale scale_of(std::vector<io::NamedTensor>& tensors, const FeatureTransformerOptions& o) {
  const auto take = [&](const char* name, int64_t size) {
    Tensor taken = take_list(tensors, name, at::kDouble);
    require(taken.size(0) == size, "its tensor ", name, " is of another size");
    return taken.clone();
  };
  if (o.values == FeatureValues::bins) {
    Tensor edges = take(kEdgesTensor, o.bins - 1);
    require((edges.diff() >= 0).all().item<bool>(), "its tensor ", kEdgesTensor,
            " is not in ascending order");
    return {std::move(edges), {}, {}};
  }
  Tensor mean = take(kMeanTensor, o.features), deviation = take(kDeviationTensor, o.features);
  require((deviation >= 0).all().item<bool>(), "its tensor ", kDeviationTensor,
          " holds negative numbers");
  return {{}, std::move(mean), std::move(deviation)};
}

bool are_different(const std::vector<std::string>& names) {
  return std::set<std::string_view>(names.begin(), names.end()).size() == names.size();
}

FeatureModel feature_model_of(const nlohmann::json& json, std::vector<io::NamedTensor> tensors,
                              const std::string& path) {
  require_usable(tensors);
  FeatureModel model;
  model.encoding = json.at("encoding").get<std::string>();
  model.features = json.at("features").get<std::vector<std::string>>();
  model.classes = json.at("classes").get<std::vector<std::string>>();
  model.counts = json.at("counts");
  model.mean = json.at("mean");
  model.deviation = json.at("deviation");
  model.model = FeatureTransformer(
      model_of(json.at("options"), tensors, kWeightsPrefix, model.features.size(), path));
  const FeatureTransformerOptions& o = model.model->options();
  if (o.values == FeatureValues::general) {
    model.general =
        model_of(json.at("general"), tensors, kGeneralPrefix, model.features.size(), path);
    model.model->set_general(model.general);
  }
  require_same(json, json_of(model), kModelField);
  require(are_different(model.features), "it names a feature twice");
  require(are_different(model.classes), "it names a class twice");
  require(encoding_kind(model.encoding) == o.encoding, "its encoding is not that of its options");
  require(model.deviation >= 0, "its deviation is negative");
  const int64_t outputs = model.classes.empty() ? 1 : std::ssize(model.classes);
  require(o.outputs == outputs, "it names another number of classes than it tells");
  model.scale = scale_of(tensors, o);
  require_all_taken(tensors);
  return model;
}

}  // namespace

FeatureScale feature_scale(const Tensor& learn, const FeatureTransformerOptions& model) {
  if (model.values == FeatureValues::bins) {
    return {data::ValueBins(learn, model.bins).edges(), {}, {}};
  }
  return {{}, learn.mean(0), learn.std(0, /*unbiased=*/false)};
}

Tensor scaled_features(const FeatureScale& scale, const Tensor& values) {
  if (scale.edges.defined()) return data::ValueBins(scale.edges)(values);
  return ((values - scale.mean) / scale.deviation).to(at::kFloat);
}

Tensor feature_answers(FeatureModel& model, const Tensor& values) {
  const Tensor outputs =
      predict_all(model.model, scaled_features(model.scale, values)).to(at::kDouble);
  if (!model.classes.empty()) return outputs.softmax(1);
  return outputs.squeeze(1) * model.deviation + model.mean;
}

void write_feature_model(const std::string& path, const FeatureModel& model) {
  io::Safetensors file;
  const auto add = [&](const char* prefix, const torch::nn::Module& module) {
    for (io::NamedTensor& each : named_weights(module)) {
      file.tensors.push_back({prefix + each.name, each.tensor});
    }
  };
  add(kWeightsPrefix, *model.model);
  if (model.general) add(kGeneralPrefix, *model.general);
  if (model.scale.edges.defined()) {
    file.tensors.push_back({kEdgesTensor, model.scale.edges});
  } else {
    file.tensors.push_back({kMeanTensor, model.scale.mean});
    file.tensors.push_back({kDeviationTensor, model.scale.deviation});
  }
  file.metadata = {
      {kFormatField, kFeatureModel},
      {kModelField, json_of(model).dump(-1, ' ', false, FileJson::error_handler_t::replace)}};
  io::write_safetensors(path, file);
}

FeatureModel read_feature_model(const std::string& path) {
  const io::Safetensors file = io::read_safetensors(path);
  return of_file(path, [&] {
    const auto format = file.metadata.find(kFormatField);
    require(format != file.metadata.end() && format->second == kFeatureModel,
            "expected a model that causal classify or regress wrote with --save-models");
    require(file.checked, "damaged: its checksums are missing");
    return from_header(file, path, kModelField, [&](const nlohmann::json& json) {
      return feature_model_of(json, file.tensors, path);
    });
  });
}

}  // namespace nsimplex::training
