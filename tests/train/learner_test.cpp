#include "train/trainer.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>

#include <limits>

#include "train/small_run.h"

namespace nsimplex::training {
namespace {

LanguageModelOptions choosing_model(double loss_weight) {
  LanguageModelOptions model = test::small_model();
  model.sparse = Sparsity::topk;
  model.topk = 3;
  model.indexer = IndexSource::light;
  model.indexer_loss = loss_weight;
  return model;
}

std::vector<data::Batch> batches(int64_t count) {
  static const data::Tokens tokens = test::small_tokens();
  data::BatchSampler sampler(tokens, data::split(tokens).train, 3, 8, 1);
  std::vector<data::Batch> drawn;
  for (int64_t i = 0; i < count; ++i) drawn.push_back(sampler.next());
  return drawn;
}

at::Generator generator() { return at::make_generator<at::CPUGeneratorImpl>(4); }

TEST(Learner, ReportsTheCrossEntropyApartFromTheIndexersLoss) {
  Learner learner(choosing_model(0.5), test::small_training(), c10::kCPU, generator());
  const auto two = batches(2);
  double expected = 0.0;
  {
    const at::NoGradGuard no_grad;
    for (const auto& b : two) expected += learner.model()->loss(b.inputs, b.targets).item<double>();
  }
  const StepLoss loss = learner.update(1, two);
  EXPECT_NEAR(loss.cross_entropy, expected / 2, 1e-5);
  ASSERT_TRUE(loss.auxiliary.has_value());
  EXPECT_GT(*loss.auxiliary, 0.0);

  Learner plain(choosing_model(0.0), test::small_training(), c10::kCPU, generator());
  EXPECT_FALSE(plain.update(1, two).auxiliary.has_value());
}

TEST(Learner, WarmsUpWithDenseLayers) {
  // While they warm up, models that choose one key and all keys compute the same.
  TrainingOptions training = test::small_training();
  training.indexer_warmup = 2;
  LanguageModelOptions few = choosing_model(0.5), all = few;
  few.topk = 1;
  all.topk = few.context;
  Learner one(few, training, c10::kCPU, generator()), dense(all, training, c10::kCPU, generator());
  const auto drawn = batches(1);
  for (int64_t step = 1; step <= 2; ++step) {
    const StepLoss a = one.update(step, drawn), b = dense.update(step, drawn);
    EXPECT_EQ(a.cross_entropy, b.cross_entropy) << step;
    EXPECT_EQ(*a.auxiliary, *b.auxiliary) << step;
  }
  EXPECT_NE(one.update(3, drawn).cross_entropy, dense.update(3, drawn).cross_entropy);
}

TEST(Learner, KeepsItsWeightsWhereTheLossIsNoNumber) {
  Learner learner(test::small_model(), test::small_training(), c10::kCPU, generator());
  const at::Tensor head = learner.model()->named_parameters()["norm.weight"];
  {
    const at::NoGradGuard no_grad;
    head.fill_(std::numeric_limits<float>::infinity());
  }
  const at::Tensor before = learner.model()->named_parameters()["embedding.weight"].clone();
  EXPECT_THROW(learner.update(7, batches(1)), Diverged);
  EXPECT_TRUE(at::equal(learner.model()->named_parameters()["embedding.weight"], before));
}

}  // namespace
}  // namespace nsimplex::training
