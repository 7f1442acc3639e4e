// The loop that trains on graphs: what it minimises, how it chooses, when it ends, what it repeats.
#include "lab/graphs/graph_training.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/graph.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "input_error_of.h"
#include "train/trainer.h"

namespace nsimplex::training {
namespace {

using test::input_error_of;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;

// Sets of three points; the target of a point is 2 x - y + 1.
class LineTask : public GraphTask {
 public:
  std::vector<double> script;  // validation figures in place of the mean squared error
  bool higher = false, redraw = false;
  std::map<GraphSplit, int64_t> sizes{
      {GraphSplit::train, 10}, {GraphSplit::validation, 3}, {GraphSplit::test, 4}};
  mutable std::map<GraphSplit, int> judged;  // times that figures were asked for
  std::vector<std::vector<int64_t>> seen;    // training batches
  std::vector<std::vector<int64_t>> validated;

  int64_t size(GraphSplit split) const override { return sizes.at(split); }

  GraphBatch batch(GraphSplit split, std::span<const int64_t> examples,
                   const at::Generator&) override {
    if (split == GraphSplit::train) seen.emplace_back(examples.begin(), examples.end());
    if (split == GraphSplit::validation) validated.emplace_back(examples.begin(), examples.end());
    at::Tensor features = at::empty({3 * std::ssize(examples), 2});
    for (size_t i = 0; i < examples.size(); ++i) {
      const auto first = static_cast<double>(10 * static_cast<int64_t>(split) + examples[i]);
      features.narrow(0, 3 * static_cast<int64_t>(i), 3)
          .copy_(at::arange(first, first + 6).view({3, 2}).cos());
    }
    const TupleBatch nodes = complete_tuples(at::full({std::ssize(examples)}, 3, at::kLong), 1);
    const at::Tensor targets = 2 * features.narrow(1, 0, 1) - features.narrow(1, 1, 1) + 1;
    return {nodes, features, nodes, targets};
  }

  at::Tensor loss(const at::Tensor& outputs, const GraphBatch& batch) const override {
    return (outputs - batch.targets).square().mean();
  }

  bool higher_is_better() const override { return higher; }
  bool redraws_validation() const override { return redraw; }

  std::unique_ptr<GraphScorer> scorer() const override { return std::make_unique<Scorer>(*this); }

 private:
  struct Scorer : GraphScorer {
    explicit Scorer(const LineTask& task) : task(task) {}
    void add(const at::Tensor& outputs, const GraphBatch& batch) override {
      sum += (outputs - batch.targets).square().sum().item<double>();
      rows += outputs.size(0);
    }
    Scores scores() const override {
      // Three validation points, four test points in one batch each.
      const GraphSplit split = rows == 9 ? GraphSplit::validation : GraphSplit::test;
      const int call = task.judged[split]++;
      const double error = sum / static_cast<double>(rows);
      if (split == GraphSplit::test || task.script.empty()) return {{"error", error}};
      return {{"script", task.script.at(static_cast<size_t>(call))}, {"error", error}};
    }
    const LineTask& task;
    double sum = 0.0;
    int64_t rows = 0;
  };
};

class LineModel : public GraphModel {
 public:
  LineModel() : linear_(register_module("linear", torch::nn::Linear(2, 1))) {}
  Forward prepare(const GraphBatch& batch) override {
    ++prepared;
    return [this, features = batch.features] { return linear_->forward(features); };
  }
  at::Tensor auxiliary_loss() const override {
    return penalty > 0 ? penalty * linear_->weight.square().sum() : at::Tensor();
  }
  void redraw_features() override { ++redrawn; }
  at::Tensor weight() const { return linear_->weight.detach().clone(); }

  int prepared = 0, redrawn = 0;
  double penalty = 0.0;

 private:
  torch::nn::Linear linear_;
};

GraphTrainingOptions options_of(int64_t epochs) {
  return {.epochs = epochs, .batch = 4, .learning_rate = 0.05};
}

struct Trained {
  std::optional<GraphResult> result;
  std::vector<GraphPoint> points;
  std::shared_ptr<LineModel> model;
};

Trained train(LineTask& task, const GraphTrainingOptions& options, uint64_t seed = 7,
              GraphEvents events = {}, double penalty = 0.0) {
  Trained run;
  events.point = [&](const GraphPoint& point) { run.points.push_back(point); };
  const auto make = [&]() -> std::shared_ptr<GraphModel> {
    run.model = std::make_shared<LineModel>();
    run.model->penalty = penalty;
    return run.model;
  };
  run.result = train_graphs(task, make, options, seed, events);
  return run;
}

TEST(LinearSchedule, Values) {
  const LinearSchedule line{.peak = 1.0, .warmup = 4, .steps = 14, .decays = true};
  EXPECT_DOUBLE_EQ(line.rate(0), 0.2);
  EXPECT_DOUBLE_EQ(line.rate(3), 0.8);
  EXPECT_DOUBLE_EQ(line.rate(4), 1.0);
  EXPECT_DOUBLE_EQ(line.rate(9), 0.5);  // half way down
  EXPECT_DOUBLE_EQ(line.rate(13), 0.1);
  EXPECT_DOUBLE_EQ(line.rate(14), 0.0);
  EXPECT_DOUBLE_EQ(line.rate(100), 0.0);
  // By time where that is further.
  EXPECT_DOUBLE_EQ(line.rate(3, 0.9), 0.8);
  EXPECT_DOUBLE_EQ(line.rate(9, 0.2), 0.5);
  EXPECT_DOUBLE_EQ(line.rate(9, 0.75), 0.25);
  EXPECT_DOUBLE_EQ(line.rate(9, 1.5), 0.0);
  const LinearSchedule constant{.peak = 1.0, .warmup = 1, .steps = 14, .decays = false};
  EXPECT_DOUBLE_EQ(constant.rate(0), 0.5);
  EXPECT_DOUBLE_EQ(constant.rate(1), 1.0);
  EXPECT_DOUBLE_EQ(constant.rate(13), 1.0);
  EXPECT_DOUBLE_EQ(constant.rate(13, 0.9), 1.0);
}

TEST(GraphTraining, ALineIsLearnedAndEveryExampleIsSeenOnceAnEpoch) {
  LineTask task;
  const Trained run = train(task, options_of(120));
  ASSERT_TRUE(run.result);
  EXPECT_LT(run.result->best_test.front().second, 1e-3);
  EXPECT_EQ(run.result->parameters, 3);
  EXPECT_EQ(run.result->last.step, 120 * 3);
  EXPECT_EQ(run.model->redrawn, 120 * 3);
  EXPECT_GT(run.result->step_seconds, 0);
  EXPECT_GE(run.result->last.seconds, run.result->step_seconds);
  EXPECT_LT(run.points.back().loss, run.points.front().loss);
  ASSERT_EQ(task.seen.size(), 120U * 3);
  std::vector<int64_t> epoch;
  for (size_t i = 3; i < 6; ++i)
    epoch.insert(epoch.end(), task.seen[i].begin(), task.seen[i].end());
  EXPECT_THAT(epoch, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_NE(task.seen[0], task.seen[3]);  // another order
}

TEST(GraphTraining, FeaturesAreRedrawnInAShareOfTheSteps) {
  LineTask task;
  GraphTrainingOptions options = options_of(10);  // 30 steps
  for (const auto& [share, redrawn] :
       std::vector<std::pair<double, int>>{{0, 0}, {0.1, 3}, {1, 30}}) {
    options.redraw = share;
    EXPECT_EQ(train(task, options).model->redrawn, redrawn) << share;
  }
}

TEST(GraphTraining, ASeedRepeatsItsBitsAndAnotherDoesNot) {
  LineTask task;
  const Trained once = train(task, options_of(3)), again = train(task, options_of(3)),
                other = train(task, options_of(3), 8);
  EXPECT_TRUE(once.model->weight().equal(again.model->weight()));
  EXPECT_FALSE(once.model->weight().equal(other.model->weight()));
}

TEST(GraphTraining, PlansOfWhatIsJudgedAreMadeOnce) {
  LineTask task;
  const Trained run = train(task, options_of(20));
  // Training batches are new every time; validation and test have one batch each.
  EXPECT_EQ(run.model->prepared, 20 * 3 + 2);
}

TEST(GraphTraining, ATaskMayHaveItsValidationDrawnAnewInWholeBatches) {
  LineTask task;
  task.redraw = true;
  task.sizes[GraphSplit::validation] = 10;
  train(task, options_of(2));
  ASSERT_EQ(task.validated.size(), 4u);  // two batches of 4 for each of 2 epochs
  std::vector<std::vector<int64_t>> epochs(2);
  for (size_t batch = 0; batch < 4; ++batch) {
    ASSERT_EQ(task.validated[batch].size(), 4u);
    auto& epoch = epochs[batch / 2];
    epoch.insert(epoch.end(), task.validated[batch].begin(), task.validated[batch].end());
  }
  EXPECT_NE(epochs[0], epochs[1]);
  for (const auto& epoch : epochs) {
    EXPECT_EQ(std::set(epoch.begin(), epoch.end()).size(), 8u);
    EXPECT_THAT(epoch, Each(AllOf(Ge(0), Lt(10))));
  }

  LineTask small;
  small.redraw = true;
  train(small, options_of(1));
  EXPECT_EQ(small.validated.at(0).size(), 3u);  // less than a batch: all there are
}

TEST(GraphTraining, TheBestValidatedEpochIsChosenAndTheTestSplitReadAtTheEnd) {
  for (const bool higher : {false, true}) {
    LineTask task;
    task.higher = higher;
    task.script = {5, 9, 1, 1, 9, 4};
    const Trained run = train(task, options_of(6));
    EXPECT_EQ(run.result->best.epoch, higher ? 5 : 4);  // the later of two
    EXPECT_EQ(run.result->last.epoch, 6);
    EXPECT_EQ(task.judged[GraphSplit::test], 2);
    // What the best epoch earned on the validation split is of the weights that are left.
    LineTask same;
    const Trained shorter = train(same, options_of(run.result->best.epoch));
    EXPECT_TRUE(run.model->weight().equal(shorter.model->weight()));
    EXPECT_EQ(run.result->best_test, shorter.result->last_test);
    EXPECT_NE(run.result->best_test, run.result->last_test);
  }
}

TEST(GraphTraining, PatienceCountsEpochsSinceTheLastGain) {
  LineTask task;
  task.script = {5, 4, 4, 7, 8, 1, 1, 1};
  GraphTrainingOptions options = options_of(8);
  options.patience = 3;
  const Trained run = train(task, options);
  EXPECT_EQ(run.result->last.epoch, 5);  // three after the second, which the third only equals
  EXPECT_EQ(run.result->best.epoch, 3);
  EXPECT_FALSE(run.result->stopped);
}

TEST(GraphTraining, ValidationsAreSpacedAndTheLastEpochHasOne) {
  LineTask task;
  GraphTrainingOptions options = options_of(7);
  options.evaluate_every = 3;
  const Trained run = train(task, options);
  std::vector<int64_t> epochs;
  for (const GraphPoint& point : run.points) epochs.push_back(point.epoch);
  EXPECT_THAT(epochs, ElementsAre(3, 6, 7));
}

TEST(GraphTraining, AStoppedTrainingKeepsItsLastValidatedEpoch) {
  LineTask task;
  int steps = 0;
  GraphEvents events;
  events.step = [&](int64_t done, int64_t of, double) {
    EXPECT_EQ(done, ++steps);
    EXPECT_EQ(of, 30);
  };
  events.stop = [&] { return steps == 8; };  // in the middle of the third epoch
  const Trained run = train(task, options_of(10), 7, events);
  ASSERT_TRUE(run.result);
  EXPECT_TRUE(run.result->stopped);
  EXPECT_EQ(run.result->last.epoch, 2);
  LineTask same;
  EXPECT_EQ(run.result->last_test, train(same, options_of(2)).result->last_test);

  events.stop = [] { return true; };
  events.step = {};
  EXPECT_FALSE(train(task, options_of(10), 7, events).result);
}

TEST(GraphTraining, SecondsEndItWithAValidation) {
  LineTask task;
  GraphTrainingOptions options = options_of(50);
  options.evaluate_every = 10;
  options.seconds = 1e-9;  // less than any step takes
  const Trained run = train(task, options);
  ASSERT_TRUE(run.result);
  EXPECT_EQ(run.result->last.step, 1);
  EXPECT_EQ(run.result->last.epoch, 1);
  EXPECT_FALSE(run.result->stopped);
  EXPECT_EQ(run.points.size(), 1U);
  options.seconds = 1e9;
  EXPECT_EQ(train(task, options).result->last.step, 50 * 3);
}

TEST(GraphTraining, TheRateDecidesHowFarAStepGoes) {
  // Adam's first step is the rate for every weight, whatever the gradient.
  const auto moved = [](const GraphTrainingOptions& options) {
    LineTask task;
    task.sizes[GraphSplit::train] = 4;  // one step an epoch
    at::manual_seed(7);
    const at::Tensor before = LineModel().weight();
    return (train(task, options).model->weight() - before).abs().max().item<double>();
  };
  GraphTrainingOptions options = options_of(1);
  EXPECT_NEAR(moved(options), 0.05, 1e-6);
  options.warmup = 4;
  EXPECT_NEAR(moved(options), 0.05 / 5, 1e-6);
}

TEST(GraphTraining, AnAverageOfTheWeightsIsJudgedAndTrainingIsTheSame) {
  LineTask plain_task, task;
  GraphTrainingOptions options = options_of(6);
  options.evaluate_every = 6;
  const Trained plain = train(plain_task, options);
  options.ema = 0.6;
  options.evaluate_every = 4;
  std::shared_ptr<LineModel> model;
  at::manual_seed(7);
  at::Tensor average = LineModel().weight();
  std::vector<at::Tensor> averages, weights;  // after each step
  GraphEvents events;
  events.step = [&](int64_t done, int64_t, double) {
    const auto t = static_cast<double>(done);
    const double decay = std::min(0.6, (1 + t) / (10 + t));
    weights.push_back(model->weight());
    average = decay * average + (1 - decay) * weights.back();
    averages.push_back(average);
  };
  const auto make = [&] { return model = std::make_shared<LineModel>(); };
  const auto result = train_graphs(task, make, options, 7, events);
  // Also after a validation steps go on from the weights, not from their average.
  ASSERT_EQ(weights.size(), 6U * 3);
  EXPECT_TRUE(weights.back().equal(plain.model->weight()));
  const auto best = static_cast<size_t>(result->best.step);
  EXPECT_TRUE(model->weight().allclose(averages.at(best - 1), 1e-5, 1e-6));
  EXPECT_FALSE(model->weight().allclose(weights.at(best - 1), 1e-3, 1e-3));
}

TEST(GraphTraining, ClippingBoundsTheGradientAndAnAuxiliaryLossIsMinimised) {
  LineTask task;
  GraphTrainingOptions options = options_of(60);
  const Trained free = train(task, options);
  options.clip = 1e-7;  // so small that Adam's eps of 1e-8 shows
  const Trained clipped = train(task, options);
  EXPECT_GT(clipped.result->last_test.front().second, free.result->last_test.front().second);
  const Trained pulled = train(task, options_of(200), 7, {}, /*penalty=*/100.0);
  EXPECT_LT(pulled.model->weight().abs().max().item<double>(), 0.3);
}

TEST(GraphTraining, WhatCannotBeTrainedIsToldInOneLine) {
  const auto message = [](const std::function<void(GraphTrainingOptions&, LineTask&)>& change) {
    LineTask task;
    GraphTrainingOptions options = options_of(2);
    change(options, task);
    return input_error_of([&] { train(task, options); });
  };
  EXPECT_THAT(message([](auto& o, auto&) { o.epochs = 0; }),
              HasSubstr("epochs: expected at least 1, got 0"));
  EXPECT_THAT(message([](auto& o, auto&) { o.batch = 0; }),
              HasSubstr("batch: expected at least 1"));
  EXPECT_THAT(message([](auto& o, auto&) { o.learning_rate = std::nan(""); }),
              HasSubstr("--lr: expected"));
  EXPECT_THAT(message([](auto& o, auto&) { o.warmup = -1; }), HasSubstr("--warmup: expected"));
  EXPECT_THAT(message([](auto& o, auto&) { o.clip = -1; }), HasSubstr("--clip: expected"));
  EXPECT_THAT(message([](auto& o, auto&) { o.patience = -1; }), HasSubstr("patience"));
  EXPECT_THAT(message([](auto& o, auto&) { o.redraw = 1.5; }),
              HasSubstr("redraw: expected a share from 0 to 1, got 1.5"));
  EXPECT_THAT(message([](auto& o, auto&) { o.ema = 1; }),
              HasSubstr("ema: expected a decay from 0 to less than 1, got 1"));
  EXPECT_THAT(message([](auto&, auto& t) { t.sizes[GraphSplit::validation] = 0; }),
              HasSubstr("validation split: expected an example, got none"));
}

TEST(GraphTraining, ALossThatIsNoNumberEndsIt) {
  struct Broken : LineTask {
    at::Tensor loss(const at::Tensor& outputs, const GraphBatch&) const override {
      return outputs.sum() * std::nan("");
    }
  } task;
  try {
    train(task, options_of(2));
    FAIL() << "nothing was thrown";
  } catch (const Diverged& error) {
    EXPECT_THAT(error.what(), HasSubstr("the loss is not a number at step 1"));
  }
}

}  // namespace
}  // namespace nsimplex::training
