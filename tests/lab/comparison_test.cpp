#include "lab/language/comparison.h"

#include <gmock/gmock.h>

#include "train/optimizer.h"
#include "train/small_run.h"

namespace nsimplex::training {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

Corpus corpus() {
  data::Tokens tokens = test::small_tokens();
  const data::Split split = data::split(tokens);
  return {std::move(tokens), split};
}

TrainingOptions training() {
  TrainingOptions options = test::small_training();
  options.eval_every = 5;
  return options;
}

Arm arm(const std::string& name, Sparsity sparse, int64_t every = 2) {
  Arm made{name, test::small_model()};
  made.model.sparse = sparse;
  made.model.every = every;
  made.model.topk = 3;
  return made;
}

std::vector<double> losses(const ArmResult& result) {
  std::vector<double> values;
  for (const CurvePoint& point : result.curve) values.push_back(point.loss);
  return values;
}

TEST(TrainArms, AnArmLearnsAsItDoesAlone) {
  // Turns do not mix: the first arm's curve is the one it has without the second.
  const std::vector<Arm> both = {arm("ordinary", Sparsity::window, 0), arm("topk", Sparsity::topk)};
  const auto together = train_arms(both, training(), corpus(), c10::kCPU);
  const auto alone = train_arms({both[0]}, training(), corpus(), c10::kCPU);
  ASSERT_THAT(together, SizeIs(2));
  EXPECT_EQ(losses(together[0]), losses(alone[0]));
  EXPECT_EQ(together[0].steps, 12);
  std::vector<int64_t> steps;
  for (const CurvePoint& point : together[1].curve) steps.push_back(point.step);
  EXPECT_THAT(steps, ElementsAre(5, 10, 12));
  EXPECT_LT(together[1].curve.back().loss, together[1].curve.front().loss);
}

TEST(TrainArms, ALossThatIsNotFiniteAfterTheLastStepEndsIt) {
  TrainingOptions options = training();
  options.steps = 1;
  options.warmup = 0;
  options.lr = 1e40;  // beyond single precision
  try {
    train_arms({arm("ordinary", Sparsity::window)}, options, corpus(), c10::kCPU);
    FAIL() << "nothing was thrown";
  } catch (const Diverged& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("at step 1"));
  }
}

TEST(TrainArms, EqualArmsStayEqual) {
  // Same batches and, since names and shapes agree, same first weights.
  const auto results = train_arms({arm("a", Sparsity::window), arm("b", Sparsity::window)},
                                  training(), corpus(), c10::kCPU);
  EXPECT_EQ(losses(results[0]), losses(results[1]));
  EXPECT_EQ(results[0].parameters, results[1].parameters);
}

TEST(TrainArms, SharesTheWeightsThatFit) {
  // The two-simplicial layer's projections have another shape, all else starts equal: with a rate
  // of almost nothing the models differ by that layer alone, and topk's extra indexer by itself.
  TrainingOptions still = training();
  still.lr = 1e-12;
  still.steps = 1;
  Arm light = arm("light", Sparsity::topk);
  light.model.indexer = IndexSource::light;
  Arm all = light;
  all.name = "all";
  light.model.topk = all.model.topk = all.model.context;
  Arm window = arm("dense", Sparsity::window);
  window.model.window = {};
  const auto results = train_arms({window, light, all}, still, corpus(), c10::kCPU);
  // All keys chosen are all keys attended to, if the projections are the window arm's.
  EXPECT_NEAR(results[1].curve.back().loss, results[0].curve.back().loss, 1e-5);
  EXPECT_EQ(losses(results[1]), losses(results[2]));
  EXPECT_NEAR(*results[1].retained_mass, 1.0, 1e-5);
  EXPECT_FALSE(results[0].retained_mass.has_value());
}

TEST(TrainArms, ArmsMayHaveStepsOfTheirOwn) {
  std::vector<Arm> arms = {arm("a", Sparsity::window), arm("b", Sparsity::window)};
  arms[1].steps = 7;
  int64_t updates = 0;
  std::vector<std::pair<size_t, int64_t>> points;
  ComparisonEvents events;
  events.step = [&](int64_t done, double) { updates = done; };
  events.point = [&](const ArmPoint& point) { points.emplace_back(point.arm, point.step); };
  const auto results = train_arms(arms, training(), corpus(), c10::kCPU, events);
  EXPECT_EQ(updates, 12 + 7);
  EXPECT_EQ(results[1].steps, 7);
  EXPECT_EQ(results[1].curve.back().step, 7);
  EXPECT_THAT(points, testing::Contains(std::pair<size_t, int64_t>(1, 7)));
}

TEST(TimeSteps, GivesSecondsOfEveryArm) {
  const auto seconds = time_steps({arm("a", Sparsity::window, 0), arm("b", Sparsity::path)},
                                  training(), corpus(), c10::kCPU, 3);
  ASSERT_THAT(seconds, SizeIs(2));
  EXPECT_GT(seconds[0], 0.0);
  EXPECT_GT(seconds[1], 0.0);
}

TEST(ParameterCount, OfThePublishedModel) {
  // nanoGPT of 124 million: 123.6 without its table of positions; three 2-simplicial layers add
  // three times a key and a value projection.
  LanguageModelOptions model;
  model.vocabulary = 50304;
  model.layers = model.heads = 12;
  model.dim = 768;
  model.context = 512;
  model.mlp = Activation::gelu;
  model.every = 0;
  const int64_t ordinary = parameter_count(*LanguageModel(model));
  EXPECT_NEAR(static_cast<double>(ordinary), 123.6e6, 0.05e6);
  model.every = 4;
  EXPECT_EQ(parameter_count(*LanguageModel(model)) - ordinary, 3 * 2 * 768 * 768);
}

}  // namespace
}  // namespace nsimplex::training
