#include "lab/language/comparison.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>

#include "train/small_run.h"

namespace nsimplex::training {
namespace {

Corpus small_corpus() {
  Corpus corpus{test::small_tokens(), {}};
  corpus.split = data::split(corpus.tokens);
  return corpus;
}

TEST(RateTrial, LearnsAsTheComparisonDoes) {
  const Corpus corpus = small_corpus();
  TrainingOptions training = test::small_training();
  training.eval_every = 1;  // 12 steps: a tenth is the first
  std::vector<std::pair<int64_t, double>> steps;
  int early = 0;
  RateTrialEvents events;
  events.step = [&](int64_t step, double loss) { steps.emplace_back(step, loss); };
  events.early = [&](LanguageModel& model) {  // a look in double changes nothing
    EXPECT_EQ(steps.size(), 1u);
    model->to(at::kDouble);
    model->to(at::kFloat);
    ++early;
  };
  const RateTrial trial = train_at_rate(test::small_model(), training, corpus, c10::kCPU, events);
  const ArmResult arm = train_arms({{"arm", test::small_model()}}, training, corpus, c10::kCPU)[0];
  EXPECT_FALSE(trial.diverged);
  EXPECT_TRUE(trial.stable());
  EXPECT_DOUBLE_EQ(trial.early_loss, arm.curve.front().loss);
  EXPECT_DOUBLE_EQ(trial.val_loss, arm.curve.back().loss);
  ASSERT_EQ(steps.size(), 12u);
  EXPECT_EQ(steps.back().first, 12);
  EXPECT_EQ(early, 1);
  EXPECT_GT(trial.gradient.peak, 1);
}

TEST(RateTrial, DivergingIsAResult) {
  TrainingOptions training = test::small_training();
  training.lr = 1e38;
  training.clip = 0;
  const RateTrial trial = train_at_rate(test::small_model(), training, small_corpus(), c10::kCPU);
  EXPECT_TRUE(trial.diverged);
  EXPECT_FALSE(trial.stable());
  EXPECT_TRUE(std::isnan(trial.val_loss));
}

TEST(RateTrial, SpikesAreFarAboveTheMedianBefore) {
  std::vector<double> norms(20, 1.0);
  norms[3] = 100;  // not settled
  norms[12] = 5.1;
  norms[15] = 4.9;
  EXPECT_EQ(count_spikes(norms), 1);
  EXPECT_EQ(count_spikes({}), 0);
}

TEST(RateTrial, GradientShapeInClosedForm) {
  LanguageModel model(test::small_model());
  for (at::Tensor& parameter : model->parameters()) {
    parameter.mutable_grad() = at::ones_like(parameter);
  }
  const GradientShape flat = gradient_shape(*model);
  EXPECT_NEAR(flat.peak, 1, 1e-12);
  EXPECT_NEAR(flat.kurtosis, 1, 1e-12);
  EXPECT_NEAR(flat.int8_error, 0, 1e-12);

  // One entry of n is 127, the others 0.25, which rounding to steps of 1 loses.
  at::Tensor gradient =
      model->named_parameters()["blocks.0.attention.output.weight"].mutable_grad();
  const double n = static_cast<double>(gradient.numel());
  gradient.fill_(0.25).view(-1)[0].fill_(127.0);
  const double square = (127.0 * 127 + (n - 1) / 16) / n;
  const double fourth = (std::pow(127.0, 4) + (n - 1) / 256) / n;
  const GradientShape spiky = gradient_shape(*model);
  EXPECT_NEAR(spiky.peak, 127 / std::sqrt(square), 1e-9);
  EXPECT_NEAR(spiky.kurtosis, fourth / (square * square), 1e-9);
  EXPECT_NEAR(spiky.int8_error, std::sqrt((n - 1) / 16 / n / square), 1e-9);
}

}  // namespace
}  // namespace nsimplex::training
