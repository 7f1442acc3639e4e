#include "lab/match/match_training.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/error.h"
#include "train/training_loop.h"
#include "train/training_options.h"

namespace nsimplex::training {
namespace {

using ::testing::HasSubstr;

MatchOptions small_options() {
  MatchOptions options;
  options.dim = 16;
  options.steps = 20;
  options.batch = 32;
  options.evaluate_every = 10;
  options.held_out = 64;
  return options;
}

struct Trained {
  std::vector<MatchResult> results;
  std::vector<std::vector<MatchPoint>> curves;
};

Trained train(const MatchOptions& options, const std::vector<MatchArm>& arms, uint64_t seed = 5) {
  Trained run;
  run.curves.resize(arms.size());
  run.results = train_match(options, arms, seed, [&](size_t arm, const MatchPoint& point) {
    run.curves.at(arm).push_back(point);
  });
  return run;
}

TEST(Match, OrdersHaveEqualParametersAndTheSameDataAndRepeat) {
  const Trained run = train(small_options(), {{1}, {2}});
  EXPECT_EQ(run.results[0].parameters, run.results[1].parameters);
  EXPECT_EQ(run.results[0].majority, 0.5);
  const std::vector<MatchPoint>& curve = run.curves[1];
  ASSERT_EQ(curve.size(), 20U);
  EXPECT_TRUE(std::isnan(curve[0].accuracy));
  EXPECT_FALSE(std::isnan(curve[9].accuracy));
  EXPECT_EQ(curve.back().accuracy, run.results[1].accuracy);
  EXPECT_LT(curve.back().loss, curve.front().loss);
  EXPECT_EQ(train(small_options(), {{1}, {2}}).curves[1].back().loss, curve.back().loss);
}

TEST(Match, AnArmDoesNotDependOnTheOthers) {
  const std::vector<MatchArm> arms{{1, 2}, {2, 1, MatchTuples::topk, 3}, {2}};
  const Trained together = train(small_options(), arms);
  for (size_t i = 0; i < arms.size(); ++i) {
    const Trained alone = train(small_options(), {arms[i]});
    EXPECT_EQ(alone.curves[0].back().loss, together.curves[i].back().loss) << i;
    EXPECT_EQ(alone.results[0].accuracy, together.results[i].accuracy) << i;
  }
}

TEST(Match, ResultsSayHowLargeAndHowFastAnArmIs) {
  MatchOptions options = small_options();
  options.equal = MatchEqual::flops;
  const std::vector<MatchArm> arms{{1}, {2}, {1, 3}};
  const Trained run = train(options, arms);
  for (size_t i = 0; i < arms.size(); ++i) {
    const MatchResult& result = run.results[i];
    EXPECT_EQ(result.parameters, match_parameters(arms[i], result.size));
    EXPECT_EQ(result.flops, match_flops(arms[i], result.size));
    EXPECT_GT(result.step_seconds, 0);
    EXPECT_GE(result.seconds, result.step_seconds);
  }
  EXPECT_GT(run.results[0].parameters,
            run.results[1].parameters);  // flops that tuples did not take
}

TEST(Match, IndexersLearnFromTheirLossAndNothingElseDoes) {
  const MatchSize size{.modulus = 37, .length = 8, .heads = 4, .dim = 16, .hidden = 64};
  const at::Tensor tokens = at::arange(16, at::kLong).view({2, 8});
  for (const MatchTuples tuples : {MatchTuples::topk, MatchTuples::path}) {
    MatchModel model({2, 2, tuples, 3}, size, HeadNorm::qk,
                     at::make_generator<at::CPUGeneratorImpl>(1));
    model.forward(tokens);
    model.auxiliary_loss().backward();
    for (const auto& item : model.named_parameters()) {
      const bool learned = item.key().find("indexer") != std::string::npos;
      const at::Tensor& gradient = item.value().grad();
      EXPECT_EQ(gradient.defined() && gradient.abs().sum().item<float>() > 0, learned)
          << item.key();
    }
    const at::NoGradGuard no_grad;
    model.forward(tokens);
    EXPECT_FALSE(model.auxiliary_loss().defined());
  }
  MatchModel dense({2, 1}, size, HeadNorm::none, at::make_generator<at::CPUGeneratorImpl>(1));
  dense.forward(tokens);
  EXPECT_FALSE(dense.auxiliary_loss().defined());
}

TEST(Match, DeterminantsHaveWidthsThatTheyDivide) {
  MatchOptions options = small_options();
  options.dim = 40;  // not a multiple of 4 heads x 3 channels
  const std::vector<MatchArm> arms{{.order = 2},
                                   {.order = 2, .form = Form::determinant, .rotary = true}};
  const Trained run = train(options, arms);
  EXPECT_EQ(run.results[0].size.dim, 40);
  EXPECT_EQ(run.results[1].size.dim, 36);
  EXPECT_NEAR(run.results[0].parameters, run.results[1].parameters, 40);
  EXPECT_NE(run.curves[0][0].loss, run.curves[1][0].loss);
}

TEST(Match, WarmUpIsDenseAndThenEnds) {
  MatchOptions options = small_options();
  options.evaluate_every = 1;
  options.steps = 6;
  const std::vector<MatchArm> arms{{2, 1, MatchTuples::topk, 2}, {2, 1, MatchTuples::topk, 8}};
  options.indexer_warmup = 3;
  const Trained warmed = train(options, arms);
  options.indexer_warmup = 0;
  const Trained cold = train(options, arms);
  // With two of eight keys the first loss is another one; with all keys it is the same.
  EXPECT_NE(warmed.curves[0][0].loss, cold.curves[0][0].loss);
  EXPECT_NEAR(warmed.curves[1][0].loss, cold.curves[1][0].loss, 1e-5);
}

TEST(Match, CirclesTurnSumsIntoProducts) {
  const MatchSize size{.modulus = 13, .length = 8, .heads = 4, .dim = 16, .hidden = 64};
  MatchModel model({1}, size, HeadNorm::none, at::make_generator<at::CPUGeneratorImpl>(1));
  model.place_on_circles();
  const at::Tensor weight = model.named_parameters()["embedding.weight"].detach();
  // cos a cos b - sin a sin b = cos (a + b), for every frequency.
  const at::Tensor cos = weight.slice(1, 0, 16, 2), sin = weight.slice(1, 1, 16, 2);
  for (const auto& [a, b] : {std::pair(3, 5), std::pair(9, 11)}) {
    const at::Tensor sum = (cos[a] * cos[b] - sin[a] * sin[b]) / std::sqrt(2.0);
    EXPECT_TRUE(at::allclose(sum, cos[(a + b) % 13], 1e-4, 1e-5)) << a << " + " << b;
  }
}

TEST(Match, OrdinaryAttentionLearnsMatch2) {
  MatchOptions options;
  options.task = {.arity = 2, .modulus = 7, .length = 6};
  options.dim = 32;
  options.batch = 64;
  options.steps = 250;
  options.evaluate_every = 250;
  options.held_out = 512;
  EXPECT_GT(train(options, {{1}}).results[0].accuracy, 0.95);
}

TEST(Match, StopsWhereTheLossIsNotFinite) {
  MatchOptions options = small_options();
  options.learning_rate = 1e30;
  try {
    train(options, {{1}});
    FAIL() << "nothing was thrown";
  } catch (const Diverged& error) {
    EXPECT_THAT(error.what(), HasSubstr(" at step "));
    EXPECT_THAT(error.what(), HasSubstr("try a lower learning rate"));
  }
}

TEST(Match, WhatCannotBeTrainedIsRefused) {
  const auto message = [](const std::function<void(MatchOptions&)>& change,
                          const std::vector<MatchArm>& arms = {{1}}) -> std::string {
    MatchOptions options = small_options();
    change(options);
    try {
      train(options, arms);
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  const auto same = [](MatchOptions&) {};
  EXPECT_THAT(message(same, {}), HasSubstr("arms: expected at least one"));
  EXPECT_THAT(message(same, {{0}}), HasSubstr("order: expected at least 1, got 0"));
  EXPECT_THAT(message(same, {{1, 0}}), HasSubstr("depth: expected at least 1, got 0"));
  EXPECT_THAT(message(same, {{1, 1, MatchTuples::topk, 0}}), HasSubstr("topk: expected at least"));
  EXPECT_THAT(message(same, {{1, 60}}), HasSubstr("depth: expected layers that fit"));
  EXPECT_THAT(message([](auto& o) { o.steps = 0; }), HasSubstr("steps: expected at least 1"));
  for (const int64_t composite : {4, 9, 35, 121}) {
    EXPECT_THAT(message([&](auto& o) { o.task.modulus = composite; }),
                HasSubstr("expected a prime, got " + std::to_string(composite)));
  }
  EXPECT_THAT(message([](auto& o) { o.learning_rate = 0; }), HasSubstr("--lr: expected"));
  EXPECT_THAT(message([](auto& o) { o.dim = 18; }),
              HasSubstr("--heads: expected a divisor of --width 18, got 4"));
}

}  // namespace
}  // namespace nsimplex::training
