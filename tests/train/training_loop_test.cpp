#include "train/training_loop.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace nsimplex::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Writes down what the loop asks of it.
struct Recorded : Trainee {
  Recorded(std::vector<std::string>& log, int64_t steps, double seconds = 0.0,
           std::string name = "")
      : Trainee(steps, seconds), log_(log), name_(std::move(name)) {}

  double update(int64_t step) override {
    log_.push_back(name_ + "update " + std::to_string(step));
    if (step == broken) throw Diverged("broken");
    return static_cast<double>(step);
  }
  bool is_evaluated_at(int64_t step) const override { return every > 0 && step % every == 0; }
  bool evaluate(int64_t step) override {
    log_.push_back(name_ + "evaluate " + std::to_string(step));
    return step != unpromising;
  }
  void save() override { log_.push_back(name_ + "save " + std::to_string(done())); }
  void start_after(std::vector<double> times) { continue_after(std::ssize(times), times); }

  int64_t every = 0, unpromising = 0, broken = 0;

 private:
  std::vector<std::string>& log_;
  std::string name_;
};

TEST(TrainingLoop, EvaluatesWhereItIsDueAndAfterTheLastStep) {
  std::vector<std::string> log;
  Recorded model(log, 3);
  model.every = 2;
  std::vector<double> losses;
  const LoopEvents events{
      .stop = {},
      .prepare = [&](int64_t step) { log.push_back("prepare " + std::to_string(step)); },
      .step = [&](size_t, int64_t, double loss) { losses.push_back(loss); }};
  EXPECT_EQ(train(model, {}, events), TrainingEnd::finished);
  EXPECT_THAT(log, ElementsAre("prepare 1", "update 1", "prepare 2", "update 2", "evaluate 2",
                               "prepare 3", "update 3", "evaluate 3"));
  EXPECT_THAT(losses, ElementsAre(1, 2, 3));
  EXPECT_EQ(model.times().size(), 3u);
  EXPECT_EQ(train(model, {}, events), TrainingEnd::finished);  // nothing is left to do
  EXPECT_EQ(log.size(), 8u);
}

TEST(TrainingLoop, SavesBetweenStepsAndWhereItStops) {
  std::vector<std::string> log;
  Recorded model(log, 9);
  int64_t asked = 0;
  const LoopEvents events{.stop = [&] { return ++asked > 5; }, .prepare = {}, .step = {}};
  EXPECT_EQ(train(model, {.save_every = 2}, events), TrainingEnd::stopped);
  EXPECT_THAT(log, ElementsAre("update 1", "update 2", "save 2", "update 3", "update 4", "save 4",
                               "update 5", "save 5"));
  log.clear();
  EXPECT_EQ(train(model, {.save_every = 2}, events), TrainingEnd::stopped);
  EXPECT_TRUE(log.empty());  // nothing was done since the last time
  asked = -100;
  train(model, {.save_seconds = 0.0}, events);
  EXPECT_THAT(log, ElementsAre("update 6", "save 6", "update 7", "save 7", "update 8", "save 8",
                               "update 9", "evaluate 9"));
}

TEST(TrainingLoop, EndsByTimeAndByPatienceWithAnEvaluation) {
  std::vector<std::string> log;
  Recorded hasty(log, 9, 1e-12), patient(log, 9);
  EXPECT_EQ(train(hasty, {}, {}), TrainingEnd::finished);
  EXPECT_THAT(log, ElementsAre("update 1", "evaluate 1"));
  log.clear();
  patient.every = 2;
  patient.unpromising = 4;
  EXPECT_EQ(train(patient, {}, {}), TrainingEnd::finished);
  EXPECT_THAT(
      log, ElementsAre("update 1", "update 2", "evaluate 2", "update 3", "update 4", "evaluate 4"));
}

TEST(TrainingLoop, ContinuesWithTheTimesBefore) {
  std::vector<std::string> log;
  Recorded model(log, 5, 100.0);
  model.start_after({1.0, 30.0, 19.0});
  EXPECT_EQ(model.seconds(), 50.0);
  EXPECT_EQ(model.spent(), 0.5);
  EXPECT_EQ(model.median_seconds(), 19.0);
  train(model, {}, {});
  EXPECT_THAT(log, ElementsAre("update 4", "update 5", "evaluate 5"));
  EXPECT_EQ(model.times().size(), 5u);
}

TEST(TrainingLoop, ModelsTakeTurnsWhichMayRotate) {
  const auto order = [](bool rotates) {
    std::vector<std::string> log;
    Recorded a(log, 3, 0.0, "a "), b(log, 1, 0.0, "b ");
    Trainee* const models[] = {&a, &b};
    std::vector<size_t> told;
    train(models, {.rotates = rotates},
          {.stop = {}, .prepare = {}, .step = [&](size_t which, int64_t, double) {
             told.push_back(which);
           }});
    EXPECT_EQ(told.size(), 4u);
    return log;
  };
  EXPECT_THAT(order(false), ElementsAre("a update 1", "b update 1", "b evaluate 1", "a update 2",
                                        "a update 3", "a evaluate 3"));
  EXPECT_THAT(order(true), ElementsAre("b update 1", "b evaluate 1", "a update 1", "a update 2",
                                       "a update 3", "a evaluate 3"));
}

TEST(TrainingLoop, AnUpdateThatDivergesIsNotCounted) {
  std::vector<std::string> log;
  Recorded model(log, 3);
  model.broken = 2;
  EXPECT_THROW(train(model, {}, {}), Diverged);
  EXPECT_EQ(model.done(), 1);
  EXPECT_EQ(model.times().size(), 1u);
}

TEST(FinishUpdate, RefusesWhatIsNotFiniteBeforeAnyWeightChanges) {
  const at::Tensor weight = at::ones({2, 2}).set_requires_grad(true);
  AdamW optimizer({{"weight", weight}}, {});
  const auto message = [&](double loss, double gradient) -> std::string {
    weight.mutable_grad() = at::full({2, 2}, gradient);
    try {
      finish_update(optimizer, 7, loss, 0.1);
    } catch (const Diverged& error) {
      return error.what();
    }
    return "";
  };
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(message(nan, 1.0), HasSubstr("the loss is not a number at step 7"));
  EXPECT_THAT(message(1.0, infinity), HasSubstr("the gradient norm is inf at step 7"));
  EXPECT_TRUE(at::equal(weight, at::ones({2, 2})));
  EXPECT_EQ(message(1.0, 1.0), "");
  EXPECT_FALSE(at::equal(weight, at::ones({2, 2})));
}

TEST(FinishUpdate, ClipsTheNormThatItReturns) {
  // Gradients that differ by a factor leave the same weights once they are clipped to one norm.
  const auto weight_after = [](double gradient) {
    const at::Tensor weight = at::ones({2, 2}).set_requires_grad(true);
    AdamW optimizer({{"weight", weight}}, {.eps = 1.0});
    weight.mutable_grad() = at::full({2, 2}, gradient);
    EXPECT_NEAR(finish_update(optimizer, 1, 0.0, 0.1, /*clip=*/0.5), 2 * gradient, 1e-6);
    return weight.detach().clone();
  };
  EXPECT_TRUE(at::allclose(weight_after(3.0), weight_after(30.0)));
  EXPECT_FALSE(at::allclose(weight_after(3.0), weight_after(0.1)));  // below the limit
}

}  // namespace
}  // namespace nsimplex::training
