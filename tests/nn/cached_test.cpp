#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/language_model.h>

#include <vector>

#include "support/error.h"
#include "temporary_folder.h"

namespace nsimplex {
namespace {

using at::Tensor;

LanguageModelOptions small_cached() {
  LanguageModelOptions options;
  options.vocabulary = 50;
  options.layers = 4;
  options.heads = 4;
  options.kv_heads = 2;
  options.dim = 32;
  options.context = 24;
  options.every = 2;
  options.window = {Window::last(3), Window::last(6)};
  return options;
}

LanguageModel make(const LanguageModelOptions& options) {
  at::manual_seed(1);
  LanguageModel model(options);
  model->to(at::kDouble);
  return model;
}

Tensor continued(LanguageModel& model, LayerCaches& caches, const Tensor& tokens,
                 const std::vector<int64_t>& cuts) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    parts.push_back(model->forward(tokens.slice(1, cuts[i], cuts[i + 1]), caches));
  }
  return at::cat(parts, 1);
}

std::vector<int64_t> then_tokens(std::vector<int64_t> cuts, int64_t last) {
  for (int64_t t = cuts.back() + 1; t <= last; ++t) cuts.push_back(t);
  return cuts;
}

void expect_close(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  EXPECT_LT((actual - expected).abs().max().item<double>(), 1e-9);
}

TEST(CachedLanguageModel, LogitsAreThoseOfTheWholeText) {
  const at::NoGradGuard no_grad;
  std::vector<LanguageModelOptions> shapes(16, small_cached());
  shapes[1].order = 3;
  shapes[1].window = {Window::last(2), Window::last(3), Window::last(4)};
  shapes[2].window = {Window::last(5)};
  shapes[2].norm = HeadNorm::qkv;
  shapes[2].scale = ScalePreset::unit;
  shapes[3].every = 0;
  shapes[4].sparse = Sparsity::linear;
  shapes[5].sparse = shapes[6].sparse = Sparsity::topk;
  shapes[5].topk = 5;
  shapes[6].topk = 24;
  shapes[7].sparse = Sparsity::path;
  shapes[7].topk = 3;
  shapes[7].indexer = IndexSource::light;
  shapes[8].form = Form::determinant;
  shapes[8].rotary = true;
  shapes[8].dim = 48;
  shapes[9].normalizer = Normalizer::softmax_sink;
  shapes[9].augment = true;
  shapes[10].normalizer = Normalizer::softmax_sink;
  shapes[10].sparse = Sparsity::topk;
  shapes[10].topk = 5;
  shapes[11].orders = {1, 1, 2, 2};
  shapes[11].softcap = 3.0;
  shapes[12].orders = {1, 1, 3, 3};
  shapes[12].sparse = Sparsity::path;
  shapes[12].topk = 3;
  shapes[13].sparse = Sparsity::window_sinks_topk;
  shapes[13].window = {Window::last(3)};
  shapes[13].topk = 2;
  shapes[13].reduce = TupleReduce::mlp;
  shapes[14].face = true;
  shapes[15].distinct = Distinct::with_query;
  for (const LanguageModelOptions& shape : shapes) {
    LanguageModel model = make(shape);
    const Tensor tokens = at::randint(50, {3, 24}, at::kLong);
    const Tensor expected = model->forward(tokens);
    for (const auto& cuts : {then_tokens({0}, 24), then_tokens({0, 5, 16}, 24), {0, 9, 10, 24}}) {
      LayerCaches caches = model->make_cache();
      expect_close(continued(model, caches, tokens, cuts), expected);
      EXPECT_EQ(caches.position(), 24);
    }
  }
}

TEST(CachedLanguageModel, OrdinaryLayersHoldTheContextUnlessTold) {
  const at::NoGradGuard no_grad;
  LanguageModel model = make(small_cached());
  const Tensor tokens = at::randint(50, {1, 60}, at::kLong);
  const Tensor whole = model->forward(tokens);
  LayerCaches all = model->make_cache(-1), bounded = model->make_cache(), steps = bounded;
  EXPECT_THAT(bounded[0].window(), ::testing::ElementsAre(24));
  EXPECT_THAT(bounded[1].window(), ::testing::ElementsAre(3, 6));
  expect_close(continued(model, all, tokens, then_tokens({0, 33}, 60)), whole);

  const Tensor chunk = continued(model, bounded, tokens, {0, 60});
  EXPECT_GT((chunk - whole).slice(1, 24).abs().max().item<double>(), 1e-6);
  steps.reset();
  expect_close(continued(model, steps, tokens, then_tokens({0, 7, 50}, 60)), chunk);
}

void expect_goes_on_from_a_file(const LanguageModelOptions& options) {
  const at::NoGradGuard no_grad;
  const test::TemporaryFolder folder;
  LanguageModel model = make(options);
  const Tensor tokens = at::randint(50, {3, 20}, at::kLong);
  LayerCaches caches = model->make_cache(), loaded = model->make_cache();
  continued(model, caches, tokens, {0, 11});
  const Tensor order = at::tensor({2, 2, 0}, at::kLong);
  caches.select(order);
  caches.save(folder / "caches.safetensors");
  loaded.load(folder / "caches.safetensors");
  const Tensor texts = tokens.index_select(0, order);
  expect_close(continued(model, loaded, texts, then_tokens({11, 14}, 20)),
               model->forward(texts).slice(1, 11));
}

TEST(CachedLanguageModel, GoesOnFromAFileWithReorderedTexts) {
  expect_goes_on_from_a_file(small_cached());
  LanguageModelOptions linear = small_cached();
  linear.sparse = Sparsity::linear;
  expect_goes_on_from_a_file(linear);
  LanguageModelOptions path = small_cached();
  path.sparse = Sparsity::path;
  path.topk = 4;
  expect_goes_on_from_a_file(path);
}

TEST(CachedLanguageModel, LinearLayersDoNotGrow) {
  const at::NoGradGuard no_grad;
  LanguageModelOptions options = small_cached();
  options.sparse = Sparsity::linear;
  LanguageModel model = make(options);
  LayerCaches caches = model->make_cache();
  const Tensor tokens = at::randint(50, {1, 40}, at::kLong);
  model->forward(tokens.slice(1, 0, 20), caches);
  const int64_t before = caches[1].bytes();
  model->forward(tokens.slice(1, 20), caches);
  EXPECT_EQ(caches[1].bytes(), before);
  EXPECT_EQ(caches[1].position(), 40);
}

TEST(CachedLanguageModel, RefusesWhatCannotGoOn) {
  SimplicialAttentionOptions options;
  options.dim = 8;
  SimplicialAttention layer(options);
  EXPECT_THROW(layer->make_cache(), InputError);  // not causal
  LanguageModel model = make(small_cached());
  const Tensor tokens = at::randint(50, {1, 3}, at::kLong);
  SeparableAttention linear(options);
  EXPECT_THROW(linear->make_cache(), InputError);
  options.causal = true;
  const auto other = SimplicialAttention(options)->make_cache();
  linear = SeparableAttention(options);
  EXPECT_THROW(linear->forward(at::rand({1, 1, 8}), *other), c10::Error);
  options.reduce = Reduce::sum;
  EXPECT_THROW(SeparableAttention{options}, InputError);
  LayerCaches one({KeyValueCache({4})}), caches = model->make_cache();
  EXPECT_THROW(model->forward(tokens, one), c10::Error);
  EXPECT_THROW(model->forward(tokens, caches), c10::ValueError);  // gradients are recorded
  EXPECT_EQ(caches.position(), 0);
}

}  // namespace
}  // namespace nsimplex
