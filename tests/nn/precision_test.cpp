// The C++ modules under autocast and with parameters of 16 bits.

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <nsimplex/equivariant_layers.h>
#include <nsimplex/feature_transformer.h>
#include <nsimplex/graph.h>
#include <nsimplex/language_model.h>
#include <nsimplex/sparse_layers.h>

#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace nsimplex {
namespace {

using at::Tensor;

class Autocast {
 public:
  explicit Autocast(at::ScalarType dtype) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, dtype);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
};

// A module, and a loss of it at inputs of the dtype of its parameters.
struct Step {
  std::shared_ptr<torch::nn::Module> module;
  std::function<Tensor(at::ScalarType)> loss;
};

Tensor tokens(at::ScalarType type) {
  return at::linspace(-1, 1, 96, at::kDouble).sin().mul(3).cos().view({2, 6, 8}).to(type);
}

template <class Holder>
Step of_tokens(Holder holder) {
  return {holder.ptr(), [holder](at::ScalarType type) mutable {
            return holder->forward(tokens(type)).to(at::kFloat).square().mean();
          }};
}

SimplicialAttentionOptions layer(int64_t order = 2) {
  return {.dim = 8, .heads = 2, .order = order};
}

Step sparse(IndexScores scores, TuplePattern pattern) {
  SimplicialAttentionOptions options = layer();
  options.causal = true;
  SelectionOptions selection;
  selection.pattern = pattern;
  selection.keys = 3;
  selection.indexer = {.heads = 2, .index_dim = 4, .scores = scores};
  selection.loss_weight = 1;
  const auto module = std::make_shared<SparseAttentionImpl>(options, selection);
  return {module, [module](at::ScalarType type) {
            const Tensor out = module->forward(tokens(type));  // first: it leaves the other loss
            return out.to(at::kFloat).square().mean() + module->auxiliary_loss().to(at::kFloat);
          }};
}

Step language_model(Sparsity sparsity, IndexSource source) {
  LanguageModelOptions options;
  options.vocabulary = 11;
  options.layers = options.heads = options.every = 2;
  options.dim = 8;
  options.sparse = sparsity;
  options.topk = 3;
  options.indexer = source;
  options.indexer_loss = 1;
  LanguageModel model(options);
  return {model.ptr(), [model](at::ScalarType) mutable {
            const Tensor text = at::arange(12).view({2, 6}).remainder(11);
            return model->loss(text, text);
          }};
}

Step performer() {
  FeatureTransformerOptions options;
  options.features = 5;
  options.dim = 8;
  options.heads = 2;
  options.layers = 1;
  options.backbone = FeatureBackbone::performer;
  FeatureTransformer model(options);
  return {model.ptr(), [model](at::ScalarType) mutable {
            const Tensor bins = at::arange(10).view({2, 5}).remainder(6);
            return model->forward(bins).to(at::kFloat).square().mean();
          }};
}

Step encoder() {
  EquivariantEncoderOptions options;
  options.attention.input = {2};
  options.attention.output = {1};
  options.attention.in_channels = options.attention.out_channels = 8;
  options.attention.heads = 2;
  options.attention.form = AttentionForm::kernel;
  const TupleBatch pairs =
      edge_tuples(at::tensor({0, 1, 1, 2}, at::kLong).view({2, 2}), 3, {.loops = true}).batch;
  const EquivariantEncoderPlan plan =
      equivariant_encoder_plan(pairs, project_tuples(pairs, 1), options);
  EquivariantEncoder module(options);
  return {module.ptr(), [module, plan, rows = pairs.size()](at::ScalarType type) mutable {
            const Tensor x = tokens(type).flatten(0, 1).narrow(0, 0, rows);
            return module->forward(x, plan).to(at::kFloat).square().mean();
          }};
}

std::vector<std::pair<const char*, std::function<Step()>>> steps() {
  return {
      {"ExpertChoice",
       [] { return of_tokens(ExpertChoice(ExpertChoiceOptions{layer(), /*tokens=*/0.5})); }},
      {"SimplicialAttention", [] { return of_tokens(SimplicialAttention(layer())); }},
      {"SeparableAttention, elu", [] { return of_tokens(SeparableAttention(layer())); }},
      {"SeparableAttention, random",
       [] {
         return of_tokens(SeparableAttention(layer(1), FeatureOptions{.kind = Feature::random}));
       }},
      {"SparseAttention, relu", [] { return sparse(IndexScores::relu, TuplePattern::product); }},
      {"SparseAttention, softmax", [] { return sparse(IndexScores::softmax, TuplePattern::path); }},
      {"LanguageModel, window",
       [] { return language_model(Sparsity::window, IndexSource::light); }},
      {"LanguageModel, topk", [] { return language_model(Sparsity::topk, IndexSource::light); }},
      {"LanguageModel, path", [] { return language_model(Sparsity::path, IndexSource::reuse); }},
      {"LanguageModel, linear",
       [] { return language_model(Sparsity::linear, IndexSource::light); }},
      {"FeatureTransformer, performer", performer},
      {"EquivariantEncoder, kernel", encoder},
  };
}

void expect_finite_gradients(const torch::nn::Module& module) {
  for (const auto& parameter : module.named_parameters()) {
    const Tensor& grad = parameter->grad();
    if (!grad.defined()) continue;
    EXPECT_EQ(grad.scalar_type(), parameter->scalar_type()) << parameter.key();
    EXPECT_TRUE(grad.isfinite().all().item<bool>()) << parameter.key();
  }
}

TEST(Precision, ModulesTrainUnderAutocast) {
  for (const auto& [name, make] : steps()) {
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
      SCOPED_TRACE(name);
      at::manual_seed(1);
      const Step step = make();
      const double exact = step.loss(at::kFloat).item<double>();
      Tensor loss;
      {
        const Autocast autocast(type);
        loss = step.loss(at::kFloat);
      }
      EXPECT_NEAR(loss.item<double>(), exact, 0.1 * (1 + std::abs(exact)));
      loss.backward();
      expect_finite_gradients(*step.module);
    }
  }
}

TEST(Precision, ModulesTrainWithParametersOfSixteenBits) {
  for (const auto& [name, make] : steps()) {
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
      SCOPED_TRACE(name);
      at::manual_seed(1);
      const Step step = make();
      const double exact = step.loss(at::kFloat).item<double>();
      step.module->to(type);
      const Tensor loss = step.loss(type);
      EXPECT_NEAR(loss.item<double>(), exact, 0.1 * (1 + std::abs(exact)));
      loss.backward();
      expect_finite_gradients(*step.module);
    }
  }
}

}  // namespace
}  // namespace nsimplex
