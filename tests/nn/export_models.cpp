// usage: export_models FOLDER. Writes FOLDER/<name>.safetensors for a few modules: their weights by
// name, the tensors they were given (input.<i>), and what they returned (output).

#include <ATen/ATen.h>
#include <nsimplex/feature_transformer.h>
#include <nsimplex/language_model.h>
#include <nsimplex/sparse_layers.h>

#include <map>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace {

using namespace nsimplex;

void write(const std::string& path, const torch::nn::Module& module, std::vector<at::Tensor> inputs,
           const at::Tensor& output, std::map<std::string, std::string> metadata = {}) {
  io::Safetensors file;
  for (const auto& item : module.named_parameters()) {
    file.tensors.push_back({item.key(), item.value().detach()});
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    file.tensors.push_back({"input." + std::to_string(i), inputs[i]});
  }
  file.tensors.push_back({"output", output.detach()});
  file.metadata = std::move(metadata);
  io::write_safetensors(path, file);
}

// A layer whose sinks and biases are not 0.
SimplicialAttention some_layer(const SimplicialAttentionOptions& options) {
  SimplicialAttention layer(options);
  const at::NoGradGuard no_grad;
  for (const auto& item : layer->named_parameters()) {
    if (item.value().dim() < 2 || item.key().find("reducer_b") != item.key().npos) {
      at::Tensor(item.value()).normal_();
    }
  }
  layer->eval();
  return layer;
}

// The masks under which every layer with a selection is called. Some tokens have no key under each.
std::map<std::string, AttentionMasks> masks_of_selections(const at::Tensor& lengths) {
  const at::Tensor graph = at::rand({3, 9, 9}) < 0.5;
  graph[1][2].fill_(false);
  const at::Tensor kept = at::rand({3, 9}) < 0.6;
  kept[2].fill_(false);
  const at::Tensor documents = at::tensor({0, 4, 4, 9}, at::kLong);
  return {{"key_lengths", {.key_lengths = lengths}},
          {"key_masks", {.key_masks = {kept}}},
          {"cu_seqlens", {.cu_seqlens = documents}},
          {"adjacency", {.adjacency = graph}},
          {"all", {.key_lengths = lengths, .key_masks = {kept}, .adjacency = graph}}};
}

// FOLDER/<name>.<masks>.safetensors: the masks by name as integers, the output, and the retained
// mass and the two losses of an indexer.
void write_masked(const std::string& path, const SimplicialAttention& given, const at::Tensor& x,
                  const AttentionMasks& masks) {
  SimplicialAttention layer = given;
  std::vector<at::Tensor> figures;
  if (layer->has_indexer()) {
    layer->set_warm_up(true);
    layer->forward_masked(x, masks);
    figures.push_back(layer->auxiliary_loss());
    layer->set_warm_up(false);
    layer->measure_retained_mass(true);
  }
  const at::Tensor output = layer->forward_masked(x, masks);
  io::Safetensors file;
  const auto add = [&](const char* name, const at::Tensor& tensor) {
    const bool floating = tensor.is_floating_point();
    file.tensors.push_back({name, floating ? tensor.detach() : tensor.to(at::kLong)});
  };
  add("output", output);
  if (layer->has_indexer()) {
    add("warm_up_loss", figures[0]);
    add("loss", layer->auxiliary_loss());
    add("mass", layer->retained_mass());
  }
  if (masks.key_lengths) add("key_lengths", *masks.key_lengths);
  if (!masks.key_masks.empty()) add("key_masks", masks.key_masks[0]);
  if (masks.cu_seqlens) add("cu_seqlens", *masks.cu_seqlens);
  if (masks.adjacency) add("adjacency", *masks.adjacency);
  io::write_safetensors(path, file);
  layer->measure_retained_mass(false);
}

// Layers with the options `face`, `select`, `orders` and learned reducers, over x [3, 9, 24].
void write_selections(const std::string& folder) {
  const at::Tensor x = at::randn({3, 9, 24});
  const at::Tensor lengths = at::tensor({9, 6, 0}, at::kLong);
  const at::Tensor edges = at::randint(9, {24, 2}, at::kLong);
  const std::map<std::string, AttentionMasks> masked = masks_of_selections(lengths);
  const auto write_layer = [&](const std::string& name, SimplicialAttentionOptions options) {
    options.dim = 24;
    options.heads = 4;
    const SimplicialAttention layer = some_layer(options);
    write(folder + name + ".safetensors", *layer, {x, lengths, edges},
          SimplicialAttention(layer)->forward(x, {}, lengths));
    const bool linear = std::holds_alternative<Linear>(options.select);
    for (const auto& [kind, masks] : masked) {
      if (!options.augment.empty() && masks.adjacency) continue;  // a row of ones is no token
      if (linear && (masks.cu_seqlens || masks.adjacency)) continue;
      write_masked(folder + name + "." + kind + ".safetensors", layer, x, masks);
    }
  };
  const IndexerOptions light{.heads = 2, .index_dim = 6, .rotary = true};
  IndexerOptions softmax = light;
  softmax.scores = IndexScores::softmax;
  const Neighbours graph{edges, true, 9};
  SimplicialAttentionOptions o;
  o.face = true;
  o.window = {Window::last(4)};
  o.bias = true;
  write_layer("face", o);
  o = {.orders = {2, 1, 1, 3}};
  o.window = {Window::last(4)};
  o.rotary = o.causal = true;
  o.normalizer = Normalizer::softmax_sink;
  write_layer("orders", o);
  o = {.orders = {1, 2, 1, 2}};
  o.augment = {1};
  write_layer("orders_augment", o);
  o = {.kv_heads = 2, .reduce = TupleReduce::mlp, .select = graph};
  write_layer("mlp", o);
  o.reduce = TupleReduce::mlp_symmetric;
  o.normalizer = Normalizer::softmax_sink;
  write_layer("mlp_symmetric", o);
  o = {.causal = true, .select = TopK{{2, 4}, light, 0.5}};
  write_layer("topk_axes", o);
  o.select = Path{3, light, 0.5};
  write_layer("path_layer", o);
  o.select = Path{3, softmax, 0.5};
  write_layer("path_softmax", o);
  o = {.select = TopK{{2}, softmax, 0.5}};
  write_layer("topk_softmax", o);
  o.causal = true;
  o.select = Union{{Window::last(3), Sinks{2}, TopK{{2}, light, 0.5}}};
  o.normalizer = Normalizer::softmax_sink;
  write_layer("union", o);
  o = {.select = Union{{Window{2, 1}, graph}}};
  write_layer("union_graph", o);
  o.select = Linear{FeatureOptions{.kind = Feature::relu}};
  write_layer("linear_layer", o);
}

// Hidden states of some observations with two values masked and two marked.
void write_features(const std::string& path, const FeatureTransformerOptions& options) {
  FeatureTransformer model(options);
  const bool bins = options.values == FeatureValues::bins;
  const at::Tensor x = bins ? at::randint(options.bins + 1, {3, options.features}, at::kLong)
                            : at::randn({3, options.features});
  const at::Tensor masked = at::zeros({3, options.features}, at::kLong);
  masked[0][1].fill_(1);
  masked[2][3].fill_(1);
  std::vector<at::Tensor> inputs = {x, masked};
  if (options.encoding == FeatureEncoding::rotary) {
    inputs.push_back(at::randn({options.features, options.heads, feature_planes(options)}));
    model->set_table(inputs.back());
  } else if (options.encoding == FeatureEncoding::additive) {
    inputs.push_back(at::randn({options.features, options.dim}));
    model->set_table(inputs.back());
  }
  write(path, *model, inputs,
        model->forward(x, masked.to(at::kBool), masked.flip(1).to(at::kBool)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = std::string(argv[1]) + "/";
  at::manual_seed(1);

  SimplicialAttentionOptions cross;
  cross.dim = 24;
  cross.heads = 4;
  cross.kv_heads = 2;
  cross.context_dims = {10, 16};
  cross.norm = HeadNorm::qkv;
  cross.scale = ScalePreset::unit;
  SimplicialAttention layer(cross);
  const at::Tensor x = at::randn({2, 5, 24});
  const at::Tensor a = at::randn({2, 7, 10}), b = at::randn({2, 3, 16});
  const at::Tensor lengths = at::tensor({4, 7, 3, 2}, at::kLong).view({2, 2});
  write(folder + "cross_attention.safetensors", *layer, {x, a, b, lengths},
        layer->forward(x, {a, b}, lengths));

  SimplicialAttentionOptions turned;
  turned.dim = 24;
  turned.heads = 4;
  turned.kv_heads = 2;
  turned.form = Form::determinant;
  turned.rotary = turned.causal = true;
  SimplicialAttention determinant(turned);
  write(folder + "determinant.safetensors", *determinant, {x}, determinant->forward(x));

  IndexerOptions chooser{.dim = 24, .heads = 3, .index_dim = 6, .rotary = true};
  chooser.scores = IndexScores::softmax;
  Indexer indexer(chooser);
  write(folder + "indexer.safetensors", *indexer, {x},
        indexer->forward(x, 3, {.causal = true}).indices);

  ExpertChoiceOptions expert{.attention = {.dim = 24, .heads = 4}, .tokens = 0.5};
  expert.attention.window = {Window{3, 2}};
  expert.attention.form = Form::determinant;
  expert.attention.rotary = true;
  ExpertChoice choice(expert);
  const at::Tensor real = at::tensor({5, 3}, at::kLong);
  write(folder + "expert_choice.safetensors", *choice, {x, real}, choice->forward(x, real));

  // Around a block, and in the place of a block's attention.
  const SimplicialAttentionOptions plain{.dim = 24, .heads = 4};
  ExpertChoice of_block(TransformerBlock(TransformerBlockOptions{plain, {}}),
                        RouterOptions{.tokens = int64_t{3}, .sigmoid = true});
  write(folder + "expert_block.safetensors", *of_block, {x, real}, of_block->forward(x, real));
  TransformerBlock block(ExpertChoice(SimplicialAttention(plain), RouterOptions{.tokens = 0.5}),
                         FeedForwardOptions{});
  write(folder + "choosing_block.safetensors", *block, {x, real}, block->forward(x, {}, real));

  LanguageModelOptions shape;
  shape.vocabulary = 50;
  shape.dim = 32;
  shape.every = 2;
  shape.window = {Window::last(3), Window::last(6)};
  const at::Tensor tokens = at::randint(50, {2, 12}, at::kLong);
  LanguageModel tied(shape);
  write(folder + "tied.safetensors", *tied, {tokens}, tied->forward(tokens), to_map(shape));

  tied->block(1)->choose_tokens({.tokens = int64_t{5}, .allow_leak = true});
  write(folder + "choosing_model.safetensors", *tied, {tokens}, tied->forward(tokens),
        to_map(shape));

  shape.tied = false;
  shape.kv_heads = 2;
  shape.norm = HeadNorm::qk;
  shape.mlp = Activation::gelu;
  shape.mlp_ratio = 2.5;
  shape.window = {Window::last(4)};
  LanguageModel untied(shape);
  write(folder + "untied.safetensors", *untied, {tokens}, untied->forward(tokens), to_map(shape));

  shape.sparse = Sparsity::linear;
  LanguageModel linear(shape);
  write(folder + "linear.safetensors", *linear, {tokens}, linear->forward(tokens), to_map(shape));

  shape.sparse = Sparsity::topk;
  shape.topk = 4;
  LanguageModel topk(shape);
  write(folder + "topk.safetensors", *topk, {tokens}, topk->forward(tokens), to_map(shape));

  shape.sparse = Sparsity::path;
  shape.indexer = IndexSource::light;
  shape.indexer_scores = IndexScores::relu;
  shape.indexer_loss = 0.5;
  LanguageModel path(shape);
  write(folder + "path.safetensors", *path, {tokens}, path->forward(tokens), to_map(shape));

  const auto write_model = [&](const std::string& name, const LanguageModelOptions& options) {
    LanguageModel model(options);
    const at::NoGradGuard no_grad;
    for (const auto& item : model->named_parameters()) {
      if (item.key().ends_with("sink")) at::Tensor(item.value()).normal_();
    }
    model->eval();
    write(folder + name + ".safetensors", *model, {tokens}, model->forward(tokens),
          to_map(options));
  };
  LanguageModelOptions other{.vocabulary = 50, .dim = 48, .every = 2};
  other.window = {Window::last(3), Window::last(6)};
  other.form = Form::determinant;
  other.rotary = true;
  write_model("turned", other);
  other.form = Form::product;
  other.rotary = false;
  other.normalizer = Normalizer::softmax_sink;
  other.augment = true;
  other.dropout = 0.5;
  write_model("sink", other);
  other.normalizer = Normalizer::sigmoid;
  write_model("sigmoid", other);
  other.normalizer = Normalizer::softmax_sink;
  other.augment = false;
  other.dropout = 0;
  other.sparse = Sparsity::topk;
  other.topk = 4;
  write_model("chosen_sink", other);
  other.normalizer = Normalizer::softmax;
  other.orders = {1, 2, 2, 3};
  other.indexer_loss = 0.5;
  other.unit_layer = true;
  write_model("orders_topk", other);
  other.sparse = Sparsity::window_sinks_topk;
  other.window = {Window::last(2)};
  other.sinks = 2;
  other.reduce = TupleReduce::mlp_symmetric;
  write_model("all_parts", other);
  other = {.vocabulary = 50, .dim = 24, .every = 2};
  other.window = {Window::last(2), Window::last(3), Window::last(6)};
  other.orders = {3, 1, 1, 2};
  other.softcap = 2.5;
  other.distinct = Distinct::with_query;
  other.head_dim = 8;
  other.bias = true;
  other.rotary_base = 100.0;
  write_model("orders_window", other);
  other.orders.clear();
  other.window = {Window::last(4)};
  other.face = true;
  other.reduce = TupleReduce::sum;
  write_model("face_model", other);
  write(folder + "defaults.safetensors", *tied, {}, tokens, to_map({}));

  write_selections(folder);

  FeatureTransformerOptions table{.features = 5, .dim = 24, .heads = 2};
  table.encoding = FeatureEncoding::rotary;
  table.learned_scale = table.identity = true;
  write_features(folder + "features_rotary.safetensors", table);
  table.backbone = FeatureBackbone::simplicial;
  write_features(folder + "features_simplicial.safetensors", table);
  table.backbone = FeatureBackbone::performer;
  table.values = FeatureValues::periodic;
  write_features(folder + "features_performer.safetensors", table);
  table.learned_scale = table.identity = false;
  table.values = FeatureValues::linear;
  table.encoding = FeatureEncoding::additive;
  write_features(folder + "features_additive.safetensors", table);
  table.backbone = FeatureBackbone::softmax;
  table.encoding = FeatureEncoding::relative;
  write_features(folder + "features_relative.safetensors", table);
  table.encoding = FeatureEncoding::sinusoidal;
  write_features(folder + "features_sinusoidal.safetensors", table);
  return 0;
}
