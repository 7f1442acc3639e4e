#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/language_model.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "nn/module_checks.h"

namespace nsimplex {
namespace {

using test::error;
using test::input_error_of;
using test::layer_options;
using test::names;
using test::project;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Options, ALayerThatCannotBeBuiltNamesTheOption) {
  using Options = SimplicialAttentionOptions;
  const std::vector<std::pair<std::string, std::function<void(Options&)>>> cases = {
      {"dim: expected a positive width, got 0", [](Options& o) { o.dim = 0; }},
      {"heads: expected a divisor of dim 24, got 5", [](Options& o) { o.heads = 5; }},
      {"heads: expected at least 1, got -1", [](Options& o) { o.heads = -1; }},
      {"kv_heads: expected a divisor of heads 4, got 3", [](Options& o) { o.kv_heads = 3; }},
      {"order: expected 1 to 8, got 0", [](Options& o) { o.order = 0; }},
      {"context_dims: expected 0 or 2 entries, got 1", [](Options& o) { o.context_dims = {8}; }},
      {"window: expected 0, 1 or 2 entries, got 3",
       [](Options& o) { o.window.assign(3, Window::last(4)); }},
      {"window: expected left >= 1 or -1, got 0", [](Options& o) { o.window = {{0, 0}}; }},
      {"window: expected right >= 0 or -1, got -2", [](Options& o) { o.window = {{4, -2}}; }},
      {"order: expected 1 to 8, got 9", [](Options& o) { o.order = 9; }},
      {"scale: expected finite factors, got nan and 1",
       [](Options& o) { o.scale = Scale{std::nan(""), 1.0}; }},
      {"set allow_non_invariant", [](Options& o) { o.rotary = true; }},
      {"rotary: expected an even head_dim, got 3",
       [](Options& o) { o.rotary = true, o.order = 1, o.head_dim = 3; }},
      {"head_dim: expected a multiple of order + 1 = 3 for form determinant, got 8",
       [](Options& o) { o.form = Form::determinant, o.head_dim = 8; }},
      {"dropout: expected a share in [0, 1), got 1", [](Options& o) { o.dropout = 1; }},
      {"augment: expected axes 0 to 1, got 2", [](Options& o) { o.augment = {2}; }},
      {"augment: expected each axis once, got 1", [](Options& o) { o.augment = {1, 1}; }},
      {"augment: expected none with form determinant",
       [](Options& o) { o.augment = {1}, o.form = Form::determinant, o.head_dim = 6; }},
  };
  for (const auto& [expected, change] : cases) {
    Options options;
    options.dim = 24;
    options.heads = 4;
    change(options);
    const std::string text = input_error_of([&] { SimplicialAttention layer(options); });
    EXPECT_THAT(text, HasSubstr("[SimplicialAttention] ")) << expected;
    EXPECT_THAT(text, HasSubstr(expected));
  }
}

TEST(Options, SelectionsThatDoNotGoTogetherAreNamed) {
  using Options = SimplicialAttentionOptions;
  const IndexerOptions light{.heads = 2};
  const std::vector<std::pair<std::string, std::function<void(Options&)>>> cases = {
      {"orders: expected one order for each of 4 heads, got 3",
       [](Options& o) { o.orders = {1, 1, 2}; }},
      {"augment: expected axes 0 to 1, got 2",
       [](Options& o) {
         o.orders = {1, 1, 2, 2};
         o.augment = {2};
       }},
      {"orders: expected 1 to 8, got 9", [](Options& o) { o.orders = {1, 1, 1, 9}; }},
      {"orders: expected one order for the 2 heads of a key head, got 1 and 2",
       [](Options& o) { o.orders = {1, 2, 2, 2}, o.kv_heads = 2; }},
      {"context_dims: expected none beside orders, got 2",
       [](Options& o) { o.orders = {1, 1, 1, 2}, o.context_dims = {8, 8}; }},
      {"normalizer: expected softmax beside face",
       [](Options& o) { o.face = true, o.normalizer = Normalizer::relu; }},
      {"augment: expected none beside face, got 1 axes",
       [](Options& o) { o.face = true, o.augment = {1}; }},
      {"reduce: expected product, sum or mean, got mlp, which needs select TopK, Path, Neighbours",
       [](Options& o) { o.reduce = TupleReduce::mlp; }},
      {"reduce: expected product, sum or mean, got mlp_symmetric",
       [](Options& o) { o.reduce = TupleReduce::mlp_symmetric, o.select = Linear{}; }},
      {"scale: expected standard or numbers with a learned reduce, got unit",
       [](Options& o) {
         o.reduce = TupleReduce::mlp, o.select = Neighbours{}, o.scale = ScalePreset::unit;
       }},
      {"context_dims: expected none beside select Neighbours, got 2",
       [](Options& o) { o.select = Neighbours{}, o.context_dims = {8, 8}; }},
      {"face: expected false beside select Union",
       [](Options& o) { o.select = Union{{Sinks{}}}, o.face = true; }},
      {"augment: expected none beside select Neighbours, got 1 axes",
       [](Options& o) { o.select = Neighbours{}, o.augment = {1}; }},
      {"dropout: expected none beside select Linear, got 0.5",
       [](Options& o) { o.select = Linear{}, o.dropout = 0.5; }},
      {"distinct: expected none beside select Neighbours",
       [](Options& o) { o.select = Neighbours{}, o.distinct = Distinct::axes; }},
      {"form: expected product, the one that separates",
       [](Options& o) { o.select = Linear{}, o.form = Form::determinant; }},
      {"reduce: expected product, the one that separates",
       [](Options& o) { o.select = Linear{}, o.reduce = Reduce::sum; }},
      {"normalizer: expected softmax beside select Linear",
       [](Options& o) { o.select = Linear{}, o.normalizer = Normalizer::softmax_sink; }},
      {"normalizer: expected softmax or softmax_sink beside select TopK",
       [&](Options& o) { o.select = TopK{{2}, light}, o.normalizer = Normalizer::relu; }},
      {"window: expected none beside chosen keys, got 1",
       [](Options& o) { o.select = Neighbours{}, o.window = {Window::last(2)}; }},
      {"select: expected 1 or 2 numbers k of TopK, got 3",
       [&](Options& o) { o.select = TopK{{1, 2, 3}, light}; }},
      {"k: expected at least 1, got 0", [&](Options& o) { o.select = TopK{{0}, light}; }},
      {"k: expected at least 1, got 0", [&](Options& o) { o.select = Path{0, light}; }},
      {"loss: expected 0 or more, got -1", [&](Options& o) { o.select = Path{1, light, -1}; }},
      {"loss: expected 0 or more, got inf",
       [&](Options& o) { o.select = Path{1, light, INFINITY}; }},
      {"rotary_base: expected a positive number, got inf",
       [](Options& o) { o.rotary = o.allow_non_invariant = true, o.rotary_base = INFINITY; }},
      {"parts: expected selections in Union, got none", [](Options& o) { o.select = Union{}; }},
      {"parts: expected at most one Neighbours, got 2",
       [](Options& o) { o.select = Union{{Neighbours{}, Neighbours{}}}; }},
      {"parts: expected at most one TopK, got 2",
       [&](Options& o) { o.select = Union{{TopK{{1}, light}, TopK{{1}, light}}}; }},
      {"select: expected a Window with left >= 1 and right >= 0, got -1 and -1",
       [](Options& o) { o.select = Union{{Window{}}}; }},
      {"count: expected at least 1, got 0", [](Options& o) { o.select = Union{{Sinks{0}}}; }},
  };
  for (const auto& [expected, change] : cases) {
    Options options = layer_options(2);
    change(options);
    const std::string text = input_error_of([&] { SimplicialAttention layer(options); });
    EXPECT_THAT(text, HasSubstr("[SimplicialAttention] " + expected));
  }
}

TEST(Options, OnlyDenseLayersHaveAllOfThem) {
  using Options = SimplicialAttentionOptions;
  const std::vector<std::pair<std::string, std::function<void(Options&)>>> cases = {
      {"normalizer: expected softmax", [](Options& o) { o.normalizer = Normalizer::relu; }},
      {"augment: expected none beside select Linear, got 1 axes",
       [](Options& o) { o.augment = {1}; }},
      {"distinct: expected none", [](Options& o) { o.distinct = Distinct::axes; }},
      {"dropout: expected none beside select Linear, got 0.5", [](Options& o) { o.dropout = 0.5; }},
  };
  for (const auto& [expected, change] : cases) {
    Options options;
    options.dim = 24;
    options.heads = 4;
    change(options);
    EXPECT_THAT(input_error_of([&] { SeparableAttention layer(options); }),
                HasSubstr("[SeparableAttention] " + expected));
  }
}

// The operator's call with the layer's weights; `options` without what the layer has itself.
at::Tensor by_hand(SimplicialAttention& layer, const at::Tensor& x, AttentionOptions options) {
  const auto parameters = layer->named_parameters();
  std::vector<at::Tensor> parts = project(layer, x);
  const int64_t order = layer->options().order;
  if (parameters.contains("sink")) options.sink = parameters["sink"];
  const at::TensorList all(parts);
  const at::Tensor out = attention(all[0], all.slice(1, order), all.slice(1 + order), options).out;
  return at::matmul(out.transpose(1, 2).flatten(2), parameters["output.weight"].t());
}

TEST(SimplicialAttention, PassesTheOptionsOfTheOperator) {
  at::manual_seed(9);
  const at::Tensor x = at::randn({2, 7, 24}, at::kDouble);
  for (int option = 0; option < 6; ++option) {
    SimplicialAttentionOptions o = layer_options(2);
    o.causal = true;
    AttentionOptions expected{.causal = true};
    if (option == 0) o.normalizer = expected.normalizer = Normalizer::softmax_sink;
    if (option == 1) o.normalizer = expected.normalizer = Normalizer::sigmoid;
    if (option == 2) o.augment = expected.augment = {1};
    if (option == 3) o.distinct = expected.distinct = Distinct::axes;
    if (option == 4) o.dropout = expected.dropout_p = 0.5;
    if (option == 5) {
      o.normalizer = expected.normalizer = Normalizer::softmax_sink;
      o.augment = expected.augment = {0, 1};
    }
    SimplicialAttention layer(o);
    layer->to(at::kDouble);
    if (layer->named_parameters().contains("sink")) {
      const at::NoGradGuard no_grad;
      EXPECT_EQ(layer->named_parameters()["sink"].abs().max().item<double>(), 0.0);
      layer->named_parameters()["sink"].normal_();
    }
    at::manual_seed(5);
    const at::Tensor y = layer->forward(x);
    at::manual_seed(5);
    EXPECT_LT(error(y, by_hand(layer, x, expected)), 1e-12) << option;
    y.square().sum().backward();
    for (const auto& item : layer->named_parameters()) {
      EXPECT_TRUE(item.value().grad().defined()) << item.key();
    }
    layer->eval();
    expected.dropout_p = 0.0;
    EXPECT_LT(error(layer->forward(x), by_hand(layer, x, expected)), 1e-12) << option;
    const at::NoGradGuard no_grad;
    const auto cache = layer->make_cache();
    const at::Tensor first = layer->forward(x.slice(1, 0, 4), *cache);
    const at::Tensor steps = at::cat({first, layer->forward(x.slice(1, 4), *cache)}, 1);
    EXPECT_LT(error(steps, layer->forward(x)), 1e-10) << option;
  }
}

TEST(SimplicialAttention, BiasesStartAtZero) {
  SimplicialAttentionOptions o = layer_options(2);
  o.bias = true;
  SimplicialAttention layer(o);
  EXPECT_THAT(names(*layer), ElementsAre("qkv.weight", "qkv.bias", "output.weight", "output.bias"));
  SimplicialAttention plain(layer_options(2));
  const at::NoGradGuard no_grad;
  for (auto& item : plain->named_parameters()) {
    item.value().copy_(layer->named_parameters()[item.key()]);
  }
  const at::Tensor x = at::randn({2, 5, 24});
  EXPECT_LT(error(layer->forward(x), plain->forward(x)), 1e-6);
  layer->named_parameters()["output.bias"].fill_(1.0);
  EXPECT_LT(error(layer->forward(x), plain->forward(x) + 1.0), 1e-6);
  layer->named_parameters()["qkv.bias"].fill_(1.0);
  EXPECT_GT(error(layer->forward(x), plain->forward(x) + 1.0), 1e-3);
}

TEST(SimplicialAttention, PassesTheMasksOfTheOperator) {
  at::manual_seed(10);
  SimplicialAttention layer(layer_options(2));
  layer->to(at::kDouble);
  const at::Tensor x = at::randn({2, 7, 24}, at::kDouble);
  const at::Tensor kept = at::rand({2, 7}) > 0.4, bounds = at::tensor({0, 3, 7}, at::kLong);
  const at::Tensor added = at::randn({2, 1, 7, 7, 1}, at::kDouble);
  EXPECT_LT(error(layer->forward_masked(x, {.key_masks = {kept}}),
                  by_hand(layer, x, {.key_masks = {kept, kept}})),
            1e-12);
  EXPECT_LT(error(layer->forward_masked(x, {.mask = added}), by_hand(layer, x, {.mask = added})),
            1e-12);
  const at::Tensor packed = layer->forward_masked(x, {.cu_seqlens = bounds});
  EXPECT_LT(error(packed.slice(1, 0, 3), layer->forward(x.slice(1, 0, 3))), 1e-12);
  EXPECT_LT(error(packed.slice(1, 3), layer->forward(x.slice(1, 3))), 1e-12);
  SeparableAttention separable(layer_options(2));
  EXPECT_THROW(separable->forward_masked(x, {.cu_seqlens = bounds}), c10::ValueError);
}

TEST(Options, NonInvariantRotaryIsThereOnRequest) {
  SimplicialAttentionOptions options;
  options.dim = 24;
  options.heads = 4;
  options.rotary = options.allow_non_invariant = true;
  EXPECT_EQ(SimplicialAttention(options)->forward(at::randn({1, 5, 24})).size(1), 5);
}

TEST(Options, TensorsOfAWrongShapeAreNamed) {
  SimplicialAttentionOptions options;
  options.dim = 24;
  options.context_dims = {8, 8};
  SimplicialAttention layer(options);
  const auto run = [&](const at::Tensor& x, at::TensorList contexts) -> std::string {
    try {
      layer->forward(x, contexts);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "nothing was thrown";
  };
  const at::Tensor x = at::randn({2, 5, 24}), good = at::randn({2, 5, 8});
  EXPECT_THAT(run(x[0], {good, good}), HasSubstr("x: expected shape [B, T, 24], got [5, 24]"));
  EXPECT_THAT(run(x, {good}), HasSubstr("contexts: expected 2 tensors, got 1"));
  EXPECT_THAT(run(x, {good, x}),
              HasSubstr("contexts[1]: expected shape [2, T, 8], got [2, 5, 24]"));
}

TEST(Options, LanguageModelOptionsSurviveText) {
  LanguageModelOptions options;
  options.vocabulary = 1000;
  options.kv_heads = 2;
  options.order = 3;
  options.window = {{8, 0}, {-1, 2}, {64, -1}};
  options.norm = HeadNorm::qkv;
  options.scale = ScalePreset::unit;
  options.sparse = Sparsity::path;
  options.topk = 12;
  options.indexer = IndexSource::light;
  options.indexer_loss = 0.25;
  options.mlp = Activation::gelu;
  options.mlp_ratio = 8.0 / 3.0;
  options.tied = false;
  options.form = Form::determinant;
  options.rotary = true;
  options.normalizer = Normalizer::softmax_sink;
  options.augment = true;
  options.dropout = 0.1;
  const auto map = to_map(options);
  EXPECT_EQ(map.at("window"), "8:0,-1:2,64:-1");
  const LanguageModelOptions read = language_model_options(map);
  EXPECT_EQ(read.vocabulary, 1000);
  EXPECT_EQ(read.kv_heads, 2);
  EXPECT_EQ(read.order, 3);
  ASSERT_EQ(read.window.size(), 3U);
  EXPECT_EQ(read.window[1].left, -1);
  EXPECT_EQ(read.window[1].right, 2);
  EXPECT_EQ(read.norm, HeadNorm::qkv);
  EXPECT_EQ(read.scale, ScalePreset::unit);
  EXPECT_EQ(read.sparse, Sparsity::path);
  EXPECT_EQ(read.topk, 12);
  EXPECT_EQ(read.indexer, IndexSource::light);
  EXPECT_EQ(read.indexer_loss, 0.25);
  EXPECT_EQ(read.mlp, Activation::gelu);
  EXPECT_EQ(read.mlp_ratio, 8.0 / 3.0);
  EXPECT_FALSE(read.tied);
  EXPECT_EQ(read.form, Form::determinant);
  EXPECT_TRUE(read.rotary);
  EXPECT_EQ(read.normalizer, Normalizer::softmax_sink);
  EXPECT_TRUE(read.augment);
  EXPECT_EQ(read.dropout, 0.1);
  EXPECT_TRUE(read == options);
  options = {};
  options.orders = {1, 1, 2, 3};
  options.sparse = Sparsity::window_sinks_topk;
  options.softcap = 0.5;
  options.reduce = TupleReduce::mlp_symmetric;
  options.distinct = Distinct::axes;
  EXPECT_TRUE(language_model_options(to_map(options)) == options);
  EXPECT_EQ(to_map(options)["orders"], "1,1,2,3");
  EXPECT_EQ(to_map({})["softcap"], "");
  EXPECT_TRUE(language_model_options({}) == LanguageModelOptions{});
}

TEST(Options, AModelOfOptionsThatDoNotGoTogetherNamesThem) {
  using Model = LanguageModelOptions;
  const std::vector<std::pair<std::string, std::function<void(Model&)>>> cases = {
      {"[LanguageModel] rotary: expected form determinant with order 2, because",
       [](Model& o) { o.rotary = true; }},
      {"[LanguageModel] dropout: expected a share in [0, 1), got 1",
       [](Model& o) { o.dropout = 1; }},
      {"[LanguageModel] indexer_loss: expected 0 or more, got inf",
       [](Model& o) { o.indexer_loss = INFINITY; }},
      {"[LanguageModel] order: expected at most 8, got 9",
       [](Model& o) { o.order = 9, o.every = 0; }},
      {"head_dim: expected a multiple of order + 1 = 3 for form determinant, got 32",
       [](Model& o) { o.form = Form::determinant; }},
      {"augment: expected none with form determinant",
       [](Model& o) { o.form = Form::determinant, o.dim = 96, o.augment = true; }},
      {"[LanguageModel] augment: expected false with sparse topk, got true",
       [](Model& o) { o.sparse = Sparsity::topk, o.augment = true; }},
      {"[LanguageModel] dropout: expected 0 with sparse path, got 0.5",
       [](Model& o) { o.sparse = Sparsity::path, o.dropout = 0.5; }},
      {"[LanguageModel] normalizer: expected softmax or softmax_sink with sparse topk, got relu",
       [](Model& o) { o.sparse = Sparsity::topk, o.normalizer = Normalizer::relu; }},
      {"[LanguageModel] form: expected product with sparse linear, got determinant",
       [](Model& o) { o.sparse = Sparsity::linear, o.form = Form::determinant, o.dim = 96; }},
      {"[LanguageModel] normalizer: expected softmax with sparse linear, got softmax_sink",
       [](Model& o) { o.sparse = Sparsity::linear, o.normalizer = Normalizer::softmax_sink; }},
      {"[LanguageModel] orders: expected one order for each of 4 heads, got 2",
       [](Model& o) { o.orders = {1, 2}; }},
      {"[LanguageModel] order: expected none beside orders, got 3",
       [](Model& o) { o.orders = {1, 1, 2, 2}, o.order = 3; }},
      {"[LanguageModel] window: expected 0, 1 or 3 entries, got 2",
       [](Model& o) { o.orders = {1, 1, 3, 3}; }},
      {"[LanguageModel] rotary: expected form determinant with orders, because",
       [](Model& o) { o.orders = {1, 1, 2, 2}, o.rotary = true; }},
      {"[LanguageModel] window: expected one entry, for the keys of all axes, with sparse "
       "window+sinks, got 2",
       [](Model& o) { o.sparse = Sparsity::window_sinks; }},
      {"[LanguageModel] sinks: expected 1 with sparse window, got 2",
       [](Model& o) { o.sinks = 2; }},
      {"[LanguageModel] softcap: expected none with sparse topk, got 2",
       [](Model& o) { o.sparse = Sparsity::topk, o.softcap = 2.0; }},
      {"[LanguageModel] reduce: expected product, sum or mean with sparse window, got mlp",
       [](Model& o) { o.reduce = TupleReduce::mlp; }},
      {"[LanguageModel] normalizer: expected softmax beside face",
       [](Model& o) { o.face = true, o.normalizer = Normalizer::relu; }},
      {"[LanguageModel] rotary_base: expected a positive number, got 0",
       [](Model& o) { o.rotary_base = 0; }},
  };
  for (const auto& [expected, change] : cases) {
    Model options;
    change(options);
    EXPECT_THAT(input_error_of([&] { LanguageModel model(options); }), HasSubstr(expected));
  }
}

TEST(Options, TextThatCannotBeReadNamesTheKey) {
  const auto read = [](const char* key, const char* text) {
    return input_error_of([&] { language_model_options({{key, text}}); });
  };
  EXPECT_EQ(read("colour", "red"), "[LanguageModel] colour: no such option");
  EXPECT_EQ(read("layers", "four"), "[LanguageModel] layers: expected a number, got 'four'");
  EXPECT_EQ(read("layers", "4x"), "[LanguageModel] layers: expected a number, got '4x'");
  EXPECT_EQ(read("norm", "kq"), "[LanguageModel] norm: expected none or qk or qkv, got 'kq'");
  EXPECT_EQ(read("form", "dot"),
            "[LanguageModel] form: expected product or determinant, got 'dot'");
  EXPECT_EQ(read("dropout", "some"), "[LanguageModel] dropout: expected a number, got 'some'");
  EXPECT_EQ(read("window", "3:"), "[LanguageModel] window: expected a number, got ''");
  EXPECT_EQ(read("window", "3:0,4"),
            "[LanguageModel] window: expected windows as left:right,left:right, got '4'");
  EXPECT_EQ(read("order", "9"), "[LanguageModel] order: expected at most 8, got 9");
  EXPECT_THAT(input_error_of([] {
                LanguageModelOptions options;
                options.order = 3;  // and the two windows of the default
                LanguageModel model(options);
              }),
              HasSubstr("window: expected 0, 1 or 3 entries, got 2"));
}

}  // namespace
}  // namespace nsimplex
