#include "train/feature_training.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "input_error_of.h"
#include "train/trainer.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

FeatureTransformer small(int64_t outputs, FeatureValues values = FeatureValues::bins) {
  return FeatureTransformer(FeatureTransformerOptions{.features = 4,
                                                      .dim = 16,
                                                      .heads = 2,
                                                      .layers = 1,
                                                      .values = values,
                                                      .bins = 3,
                                                      .encoding = FeatureEncoding::learned,
                                                      .outputs = outputs},
                            at::make_generator<at::CPUGeneratorImpl>(1));
}

// Columns 0 and 1 are equal, 2 and 3 as well: what is masked stands elsewhere.
Tensor pairs_of_columns() {
  const Tensor one = at::randint(1, 4, {128, 2}, at::make_generator<at::CPUGeneratorImpl>(5),
                                 at::TensorOptions(at::kLong));
  return one.repeat_interleave(2, 1);
}

TEST(RestoreValues, LearnsWhichColumnsBelongTogether) {
  FeatureTransformer model = small(0);
  const Tensor x = pairs_of_columns();
  std::vector<double> losses;
  restore_values(model, x, {.epochs = 60, .learning_rate = 5e-3}, 1,
                 {.step = [&](int64_t, int64_t, double loss) { losses.push_back(loss); }});
  EXPECT_EQ(losses.size(), 240u);
  const Tensor masked = at::zeros(x.sizes(), at::kBool);
  masked.select(1, 2).fill_(true);
  const Tensor guess = model->reconstruct(model->forward(x, masked)).select(1, 2).argmax(-1);
  EXPECT_GT(guess.eq(x.select(1, 2)).to(at::kDouble).mean().item<double>(), 0.95);
}

TEST(LearnAnswers, ClassesAndNumbers) {
  const Tensor x = pairs_of_columns();
  FeatureTransformer classes = small(3);
  const Tensor truth = x.select(1, 1) - 1;
  learn_answers(classes, x, truth, {.epochs = 30, .learning_rate = 5e-3}, 1);
  const Tensor guess = predict_all(classes, x, 50).argmax(1);
  EXPECT_GT(guess.eq(truth).to(at::kDouble).mean().item<double>(), 0.95);
  EXPECT_EQ(embed_all(classes, x, 50).sizes(), at::IntArrayRef({128, 16}));

  FeatureTransformer numbers = small(1, FeatureValues::linear);
  const Tensor values = x.to(at::kFloat) - 2,
               sum = (values.select(1, 0) + values.select(1, 2)).unsqueeze(1);
  learn_answers(numbers, values, sum, {.epochs = 60, .learning_rate = 5e-3}, 1);
  const Tensor error = (predict_all(numbers, values) - sum).square().mean();
  EXPECT_LT(error.item<double>(), 0.1 * sum.var().item<double>());
}

TEST(TrainExamples, TheSameSeedGivesTheSameWeights) {
  const auto trained = [](uint64_t seed) {
    FeatureTransformer model = small(0);
    restore_values(model, pairs_of_columns(), {.epochs = 2}, seed);
    return model->named_parameters()["value.weight"].detach().clone();
  };
  EXPECT_TRUE(at::equal(trained(1), trained(1)));
  EXPECT_FALSE(at::equal(trained(1), trained(2)));
}

TEST(TrainExamples, StopsWhereItIsToldToAndWhereItDiverges) {
  FeatureTransformer model = small(0);
  struct Stop {};
  int64_t steps = 0;
  EXPECT_THROW(restore_values(model, pairs_of_columns(), {.epochs = 2}, 1,
                              {.step = [&](int64_t done, int64_t, double) { steps = done; },
                               .checkpoint =
                                   [&] {
                                     if (steps == 3) throw Stop();
                                   }}),
               Stop);
  EXPECT_EQ(steps, 3);
  FeatureTransformer numbers = small(1, FeatureValues::linear);
  const Tensor x = at::ones({8, 4}), answers = at::full({8, 1}, 1e30);
  EXPECT_THROW(learn_answers(numbers, x, answers, {.epochs = 1}, 1), Diverged);
}

TEST(FeatureTrainingOptions, NamesWhatCannotBe) {
  const auto error = [](FeatureTrainingOptions options) {
    return test::input_error_of([&] { check(options); });
  };
  EXPECT_EQ(error({.batch = 0}), "--batch: expected at least 1, got 0");
  EXPECT_EQ(error({.learning_rate = -1}), "--lr: expected a positive number, got -1");
  EXPECT_EQ(error({.mask = 0}), "--mask: expected a share above 0 and at most 1, got 0");
}

}  // namespace
}  // namespace nsimplex::training
