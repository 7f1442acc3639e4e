#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/language_model.h>

#include <cmath>
#include <string>

namespace nsimplex {
namespace {

LanguageModelOptions small_model() {
  LanguageModelOptions options;
  options.vocabulary = 50;
  options.layers = 4;
  options.heads = 2;
  options.dim = 16;
  options.every = 2;
  options.window = {Window::last(3), Window::last(5)};
  return options;
}

at::Generator generator(uint64_t seed) { return at::make_generator<at::CPUGeneratorImpl>(seed); }

TEST(LanguageModel, PositionsSeeOnlyWhatCameBefore) {
  at::manual_seed(1);
  LanguageModel model(small_model());
  const at::NoGradGuard no_grad;
  const at::Tensor tokens = at::randint(50, {2, 12}, at::kLong);
  const at::Tensor logits = model->forward(tokens);
  EXPECT_THAT(logits.sizes(), ::testing::ElementsAre(2, 12, 50));
  for (const int64_t t : {0, 1, 5, 11}) {
    at::Tensor changed = tokens.clone();
    changed.select(1, t).add_(1).remainder_(50);
    const at::Tensor difference =
        (model->forward(changed) - logits).abs().amax(at::IntArrayRef{0, 2});
    if (t > 0) {
      EXPECT_LT(difference.slice(0, 0, t).max().item<float>(), 1e-6);
    }
    EXPECT_GT(difference[t].item<float>(), 1e-4);
  }
}

TEST(LanguageModel, HiddenStatesGoFromBlockToBlock) {
  LanguageModel model(small_model());
  const at::NoGradGuard no_grad;
  const at::Tensor tokens = at::randint(50, {2, 7}, at::kLong);
  const std::vector<at::Tensor> states = model->hidden_states(tokens);
  ASSERT_EQ(states.size(), 5u);
  EXPECT_TRUE(states[0].equal(model->named_parameters()["embedding.weight"].index({tokens})));
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(model->block(i)->forward(states[i]).equal(states[i + 1])) << i;
  }
  const at::Tensor last = states[4] / states[4].square().mean(-1, true).sqrt();  // gains are ones
  const at::Tensor logits = last.matmul(model->named_parameters()["embedding.weight"].t());
  EXPECT_LT((logits - model->forward(tokens)).abs().max().item<double>(), 1e-4);
  EXPECT_THROW(model->block(4), c10::Error);
}

TEST(LanguageModel, EveryKthLayerIsSimplicial) {
  LanguageModelOptions options = small_model();
  const auto rows = [](const LanguageModel& model, int layer) {
    const std::string name = "blocks." + std::to_string(layer) + ".attention.qkv.weight";
    return model->named_parameters()[name].size(0) / 16;
  };
  LanguageModel mixed(options);
  EXPECT_EQ(rows(mixed, 0), 3);
  EXPECT_EQ(rows(mixed, 1), 5);
  EXPECT_EQ(rows(mixed, 2), 3);
  EXPECT_EQ(rows(mixed, 3), 5);
  options.every = 0;
  LanguageModel plain(options);
  for (int layer = 0; layer < 4; ++layer) EXPECT_EQ(rows(plain, layer), 3);
}

TEST(LanguageModel, OptionsReachTheSimplicialLayersAlone) {
  LanguageModelOptions options = small_model();
  options.dim = 24;
  options.form = Form::determinant;
  options.rotary = true;
  options.normalizer = Normalizer::softmax_sink;
  options.dropout = 0.5;
  LanguageModel model(options);
  EXPECT_FALSE(model->named_parameters().contains("blocks.0.attention.sink"));
  EXPECT_TRUE(model->named_parameters().contains("blocks.1.attention.sink"));
  const auto& ordinary = model->block(0)->attention()->options();
  const auto& simplicial = model->block(1)->attention()->options();
  EXPECT_EQ(ordinary.form, Form::product);
  EXPECT_TRUE(ordinary.rotary);
  EXPECT_EQ(ordinary.dropout, 0);
  EXPECT_EQ(simplicial.form, Form::determinant);
  EXPECT_TRUE(simplicial.rotary);
  EXPECT_EQ(simplicial.dropout, 0.5);
  options.form = Form::product;
  options.rotary = false;
  options.augment = true;
  const auto augmented = LanguageModel(options)->block(1)->attention()->options();
  EXPECT_THAT(augmented.augment, ::testing::ElementsAre(1));
  EXPECT_FALSE(augmented.rotary);
}

TEST(LanguageModel, DropoutActsInTrainingAlone) {
  LanguageModelOptions options = small_model();
  options.dropout = 0.5;
  LanguageModel model(options, generator(1));
  const at::NoGradGuard no_grad;
  const at::Tensor tokens = at::randint(50, {2, 12}, at::kLong);
  EXPECT_FALSE(at::equal(model->forward(tokens), model->forward(tokens)));
  model->eval();
  EXPECT_TRUE(at::equal(model->forward(tokens), model->forward(tokens)));
}

TEST(LanguageModel, LossIsTheCrossEntropyOfItsLogits) {
  at::manual_seed(2);
  LanguageModelOptions options = small_model();
  options.tied = false;
  LanguageModel model(options);
  EXPECT_TRUE(model->named_parameters().contains("head.weight"));
  const at::Tensor tokens = at::randint(50, {2, 9}, at::kLong);
  at::Tensor targets = at::randint(50, {2, 9}, at::kLong);
  const at::Tensor logp = at::log_softmax(model->forward(tokens).to(at::kDouble), -1);
  const at::Tensor nll = -logp.gather(-1, targets.unsqueeze(-1)).squeeze(-1);
  EXPECT_NEAR(model->loss(tokens, targets).item<double>(), nll.mean().item<double>(), 1e-5);
  EXPECT_NEAR(model->loss(tokens, targets).item<double>(), std::log(50.0),
              0.1);  // knows nothing yet

  targets.slice(1, 4).fill_(-100);
  EXPECT_NEAR(model->loss(tokens, targets).item<double>(), nll.slice(1, 0, 4).mean().item<double>(),
              1e-5);
}

TEST(LanguageModel, GradientsReachEveryParameter) {
  at::manual_seed(3);
  LanguageModel model(small_model());
  const at::Tensor tokens = at::randint(50, {2, 9}, at::kLong);
  model->loss(tokens, tokens.roll(-1, 1)).backward();
  for (const auto& item : model->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().max().item<float>(), 0.0F) << item.key();
  }
}

TEST(LanguageModel, TheSameSeedGivesTheSameWeightsAndLogits) {
  LanguageModel a(small_model(), generator(7)), b(small_model(), generator(7)),
      c(small_model(), generator(8));
  for (const auto& item : a->named_parameters()) {
    EXPECT_TRUE(at::equal(item.value(), b->named_parameters()[item.key()])) << item.key();
  }
  EXPECT_FALSE(at::equal(a->named_parameters()["embedding.weight"],
                         c->named_parameters()["embedding.weight"]));
  const at::Tensor tokens = at::arange(10, at::kLong).unsqueeze(0);
  EXPECT_TRUE(at::equal(a->forward(tokens), b->forward(tokens)));

  // torch's own seed serves as well.
  at::manual_seed(9);
  LanguageModel d(small_model());
  at::manual_seed(9);
  LanguageModel e(small_model());
  EXPECT_TRUE(at::equal(d->forward(tokens), e->forward(tokens)));
}

TEST(LanguageModel, StartsWithTheStatedDeviations) {
  LanguageModelOptions options = small_model();
  options.dim = 128;
  LanguageModel model(options, generator(1));
  const auto parameters = model->named_parameters();
  const auto deviation = [&](const char* name) { return parameters[name].std().item<double>(); };
  const double usual = 1.0 / std::sqrt(3.0 * 128.0);
  EXPECT_NEAR(deviation("embedding.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("blocks.0.attention.qkv.weight"), usual, 0.03 * usual);
  EXPECT_NEAR(deviation("blocks.0.attention.output.weight"), usual / std::sqrt(8.0), 0.03 * usual);
}

TEST(LanguageModel, TrainsAfterAnEvaluationInInferenceMode) {
  LanguageModel model(small_model(), generator(1));
  const at::Tensor tokens = at::randint(50, {1, 8}, at::kLong);
  {
    const c10::InferenceMode evaluating;
    model->forward(tokens);
  }
  model->loss(tokens, tokens).backward();
  EXPECT_TRUE(model->named_parameters()["blocks.0.attention.qkv.weight"].grad().defined());
}

TEST(LanguageModel, LayersThatWarmUpAreDense) {
  for (const Sparsity sparse : {Sparsity::topk, Sparsity::path}) {
    LanguageModelOptions options = small_model();
    options.sparse = sparse;
    options.topk = 2;
    options.indexer = IndexSource::light;
    options.indexer_loss = 1.0;
    LanguageModel model(options, generator(1));
    options.sparse = Sparsity::window;
    options.window = {};
    LanguageModel dense(options, generator(2));
    const at::NoGradGuard no_grad;
    for (const auto& item : dense->named_parameters()) {
      at::Tensor(item.value()).copy_(model->named_parameters()[item.key()]);
    }
    const at::Tensor tokens = at::randint(50, {2, 12}, at::kLong);
    const at::Tensor expected = dense->forward(tokens);
    EXPECT_FALSE(at::allclose(model->forward(tokens), expected));
    model->set_warm_up(true);
    EXPECT_TRUE(at::allclose(model->forward(tokens), expected, 1e-5, 1e-6));
    {
      const at::AutoGradMode recording(true);
      model->loss(tokens, tokens);
    }
    EXPECT_GT(model->auxiliary_loss().item<double>(), 0.0);
    model->set_warm_up(false);
    EXPECT_FALSE(at::allclose(model->forward(tokens), expected));
  }
}

TEST(LanguageModel, OrdersOfChosenKeysShareLossSourceAndWarmUp) {
  LanguageModelOptions options = small_model();
  options.orders = {1, 2};
  options.sparse = Sparsity::topk;
  options.topk = 3;
  options.indexer_loss = 0.5;
  LanguageModel model(options, generator(1));
  const at::Tensor tokens = at::randint(50, {2, 12}, at::kLong);
  model->loss(tokens, tokens).backward();
  EXPECT_GT(model->auxiliary_loss().item<double>(), 0.0);
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
  }
  ASSERT_EQ(model->retained_mass(tokens).size(), 2u);
  const at::NoGradGuard no_grad;
  const at::Tensor chosen = model->forward(tokens);
  model->set_warm_up(true);
  EXPECT_FALSE(at::allclose(model->forward(tokens), chosen));
}

TEST(LanguageModel, SaysWhatMassItsChoicesRetain) {
  LanguageModelOptions options = small_model();
  options.sparse = Sparsity::topk;
  const at::Tensor tokens = at::randint(50, {2, 12}, at::kLong);
  std::vector<double> masses;
  for (const int64_t keys : {1, 4, 12}) {
    options.topk = keys;
    const auto of_layers = LanguageModel(options, generator(1))->retained_mass(tokens);
    ASSERT_EQ(of_layers.size(), static_cast<size_t>(options.layers / options.every));
    masses.push_back(of_layers[0]);
  }
  EXPECT_LT(masses[0], masses[1]);
  EXPECT_LT(masses[1], masses[2]);
  EXPECT_NEAR(masses[2], 1.0, 1e-5);
  options.sparse = Sparsity::window;
  EXPECT_TRUE(LanguageModel(options)->retained_mass(tokens).empty());
}

}  // namespace
}  // namespace nsimplex
