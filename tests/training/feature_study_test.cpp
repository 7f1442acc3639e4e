#include "training/feature_study.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "input_error_of.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

FeatureStudyOptions small() {
  return {.model = {.dim = 16, .heads = 2, .layers = 1},
          .restoring = {.epochs = 1},
          .answering = {.epochs = 20, .learning_rate = 5e-3},
          .making = {.structure = {}, .embedding = {.steps = 20}},
          .columns = 4};
}

// A chain x0 -> x1 -> x2 -> x3 and a column of noise that varies little; classes by the sign of x3.
Tensor chain(int64_t rows) {
  at::manual_seed(3);
  const Tensor noise = at::randn({rows, 5}, at::kDouble);
  const Tensor table = noise.clone();
  for (int64_t j = 1; j < 4; ++j) table.select(1, j).add_(table.select(1, j - 1));
  table.select(1, 4).mul_(0.01);
  return table;
}

TEST(FeatureStudy, ClassifiesWithEveryEncoding) {
  const Tensor table = chain(160), classes = table.select(1, 3).gt(0).to(at::kLong);
  FeatureStudy study(table.narrow(0, 0, 80), table.narrow(0, 80, 80), small());
  EXPECT_EQ(study.columns(), 4);
  for (const std::string& name : encoding_names()) {
    const Scores scores =
        study.classify(name, classes.narrow(0, 0, 80), classes.narrow(0, 80, 80), 2, 1);
    EXPECT_EQ(scores.front().first, "accuracy");
    EXPECT_GT(scores.front().second, 55.0) << name;
    EXPECT_EQ(study.edges() >= 0, name.starts_with("cape")) << name;
  }
}

TEST(FeatureStudy, RegressesAndEmbeds) {
  const Tensor table = chain(160), target = 3 + 2 * table.select(1, 3);
  FeatureStudyOptions options = small();
  options.model.values = FeatureValues::linear;
  options.model.aggregate = FeatureAggregate::mean;
  options.answering.epochs = 60;
  FeatureStudy study(table.narrow(0, 0, 120), table.narrow(0, 120, 40), options);
  const Scores scores =
      study.regress("learned", target.narrow(0, 0, 120), target.narrow(0, 120, 40), 1);
  const Tensor guess = (target.narrow(0, 120, 40) - target.narrow(0, 0, 120).median()).abs();
  EXPECT_LT(scores[0].second, 0.6 * guess.median().item<double>());
  EXPECT_GT(scores[1].second, 0.5);
  EXPECT_EQ(study.embed("cape", 1).sizes(), at::IntArrayRef({120, 16}));
}

TEST(FeatureStudy, NamesATargetThatCannotBeLearned) {
  const Tensor table = chain(40);
  FeatureStudy study(table.narrow(0, 0, 30), table.narrow(0, 30, 10), small());
  const auto error = [&](const Tensor& target) {
    return test::input_error_of(
        [&] { study.regress("none", target, at::zeros({10}, at::kDouble), 1); });
  };
  const Tensor ones = at::ones({30}, at::kDouble);
  EXPECT_EQ(error(5 * ones).rfind("the target is constant: it is 5 in all of the 30 rows", 0), 0U);
  EXPECT_EQ(error(0.1 * ones + 1e-17).rfind("the target is constant", 0), 0U);
  EXPECT_EQ(error(0 * ones).rfind("the target is constant: it is 0", 0), 0U);
  EXPECT_EQ(error(1e200 * table.narrow(0, 0, 30).select(1, 0)).rfind("the target is too large", 0),
            0U);
}

TEST(FeatureStudy, GeneralValuesAreThoseOfATransformerThatWasTrainedBefore) {
  const Tensor table = chain(80);
  FeatureStudyOptions options = small();
  options.model.values = FeatureValues::general;
  FeatureStudy study(table, table, options);
  EXPECT_EQ(study.embed("cape", 1).sizes(), at::IntArrayRef({80, 16}));
}

// What judges is never looked at: another table there leaves the columns and the scale alone.
TEST(FeatureInputs, AreMadeFromTheRowsToLearnFrom) {
  const Tensor table = chain(40);
  const FeatureTransformerOptions bins{.bins = 4};
  FeatureTransformerOptions linear;
  linear.values = FeatureValues::linear;
  for (const FeatureTransformerOptions& model : {bins, linear}) {
    const FeatureInputs one = feature_inputs(table, table, model);
    const FeatureInputs other = feature_inputs(table, 100 * table, model);
    EXPECT_TRUE(at::equal(one.learn, other.learn));
    EXPECT_TRUE(at::equal(one.learn, one.judge));
  }
}

TEST(FeatureStudy, NamesTablesThatCannotBe) {
  const Tensor table = at::ones({6, 3}, at::kDouble);
  table.select(1, 0).copy_(at::arange(6));
  EXPECT_THAT(test::input_error_of([&] { FeatureStudy(table, table, small()); }),
              testing::HasSubstr("expected two columns that vary among the 6 rows to learn from, "
                                 "got 1"));
}

TEST(EncodingMaker, NamesAnEncodingThatIsNot) {
  EncodingMaker maker(chain(40), {});
  EXPECT_THAT(test::input_error_of([&] { maker.make("rope", small().model); }),
              testing::HasSubstr("encoding: expected one of none, sinusoidal"));
}

// Along a chain the correlation graph joins what the causal graph does not.
TEST(EncodingMaker, GraphsOfCorrelationsHaveNoDirection) {
  EncodingMaker maker(chain(400).narrow(1, 0, 4), {});
  FeatureTransformerOptions model = small().model;
  model.features = 4;
  const MadeEncoding causal = maker.make("cape", model);
  const MadeEncoding correlated = maker.make("cape-correlation", model);
  EXPECT_EQ(causal.edges, 3);
  EXPECT_EQ(correlated.edges, 12);
  EXPECT_EQ(causal.table.sizes(), at::IntArrayRef({4, 2, 4}));
  EXPECT_EQ(maker.make("cape-additive", model).table.sizes(), at::IntArrayRef({4, 16}));
  EXPECT_LT(causal.table.abs().max().item<double>(), 0.7853982);
}

}  // namespace
}  // namespace nsimplex::training
