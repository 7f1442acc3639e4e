#include "train/feature_study.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

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

// Columns 0 and 1 are high together, 2 and 3 as well, and the pairs take turns.
TEST(EncodingMaker, CooccurrenceVectorsAreAlikeWhereFeaturesAre) {
  const Tensor turn = at::arange(40).remainder(2).to(at::kDouble), other = 1 - turn;
  const Tensor table = at::stack({turn, 3 * turn, other, 5 * other, at::zeros(40, at::kDouble)}, 1);
  const Tensor vectors = cooccurrence_vectors(table, 8);
  ASSERT_EQ(vectors.sizes(), at::IntArrayRef({5, 8}));
  const Tensor products = at::matmul(vectors, vectors.t());
  EXPECT_NEAR(vectors.square().sum(1).mean().item<double>(), 1, 1e-12);
  EXPECT_GT(products[0][1].item<double>(), 1);
  EXPECT_GT(products[2][3].item<double>(), 1);
  EXPECT_NEAR(products[0][2].item<double>(), 0, 1e-12);
  EXPECT_NEAR(products[4].abs().sum().item<double>(), 0, 1e-12);  // of a column that never is high
  EXPECT_TRUE(at::equal(cooccurrence_vectors(table, 8), vectors));
  FeatureTransformerOptions model = small().model;
  model.features = 5;
  const MadeEncoding made = EncodingMaker(table, {}).make("cooccurrence", model);
  EXPECT_EQ(made.table.sizes(), at::IntArrayRef({5, 16}));
  EXPECT_EQ(made.edges, -1);
}

// Each control leaves something of cape's points and takes the rest away.
TEST(EncodingMaker, ControlsMoveThePointsOfCape) {
  EncodingMaker maker(chain(400).narrow(1, 0, 4), {});
  FeatureTransformerOptions model = small().model;
  model.features = 4;
  const Tensor own = maker.make("cape", model).table.flatten(1);
  const auto rows_of = [](const Tensor& table) {
    std::vector<std::vector<double>> rows;
    for (const Tensor& row : table.unbind(0)) {
      rows.emplace_back(row.data_ptr<double>(), row.data_ptr<double>() + row.numel());
    }
    return rows;
  };
  const auto shuffled = [&](uint64_t seed) {
    return maker.make("cape-shuffled", model, seed).table.flatten(1).contiguous().to(at::kDouble);
  };
  const auto random = [&](uint64_t seed) {
    return maker.make("cape-random", model, seed).table.flatten(1).contiguous().to(at::kDouble);
  };
  const auto points = rows_of(own.contiguous().to(at::kDouble));
  std::set<std::vector<std::vector<double>>> orders;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const auto moved = rows_of(shuffled(seed));
    EXPECT_THAT(moved, testing::UnorderedElementsAreArray(points)) << seed;
    orders.insert(moved);
  }
  EXPECT_GT(orders.size(), 2U);
  EXPECT_TRUE(shuffled(1).equal(shuffled(1)));
  const Tensor radii = own.to(at::kDouble).norm(2, {1});
  EXPECT_TRUE(random(1).norm(2, {1}).allclose(radii, 1e-5, 1e-6));
  EXPECT_FALSE(random(1).allclose(own.to(at::kDouble), 1e-3, 1e-3));
  EXPECT_FALSE(random(1).equal(random(2)));
  EXPECT_EQ(maker.make("cape-random", model).edges, 3);
}

TEST(FeatureStudy, LinearModelsSeeTheSameRowsAndColumns) {
  const Tensor table = chain(160), classes = table.select(1, 3).gt(0).to(at::kLong);
  FeatureStudy study(table.narrow(0, 0, 80), table.narrow(0, 80, 80), small());
  const Scores found =
      study.classify_linearly(classes.narrow(0, 0, 80), classes.narrow(0, 80, 80), 2);
  EXPECT_EQ(found[0].first, "accuracy");
  EXPECT_EQ(found[1].first, "f1");
  EXPECT_GT(found[0].second, 90.0);
  EXPECT_EQ(found[2].first, "strength");
  const Tensor target = 3 + 2 * table.select(1, 3);
  const Scores fitted = study.regress_linearly(target.narrow(0, 0, 80), target.narrow(0, 80, 80));
  EXPECT_LT(fitted[0].second, 0.01);
  EXPECT_GT(fitted[1].second, 0.999);
  const Tensor ones = at::ones({80}, at::kDouble);
  EXPECT_THAT(test::input_error_of([&] { study.regress_linearly(ones, ones); }),
              testing::HasSubstr("the target is constant"));
}

}  // namespace
}  // namespace nsimplex::training
