#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/causal.h>
#include <nsimplex/causal_pipeline.h>

#include <limits>
#include <vector>

namespace nsimplex {
namespace {

using at::Tensor;
using ::testing::ElementsAre;

std::vector<int64_t> screened(const Tensor& table, int64_t screen,
                              ScreenCriterion by = ScreenCriterion::correlation) {
  const Tensor found = screen_columns(table, screen, by);
  const int64_t* columns = found.const_data_ptr<int64_t>();
  return {columns, columns + found.numel()};
}

// Columns 3 and 1100 share a cause, and so do 700 and 701, less strongly. The others are noise.
Tensor wide_table() {
  at::manual_seed(5);
  Tensor table = at::randn({200, 1300}, at::kDouble);
  table.select(1, 1100).add_(table.select(1, 3), 2.0);
  table.select(1, 701).sub_(table.select(1, 700));
  return table;
}

TEST(ScreenColumns, KeepsTheColumnsThatCorrelateMost) {
  const Tensor table = wide_table();
  EXPECT_THAT(screened(table, 2), ElementsAre(3, 1100));
  EXPECT_THAT(screened(table, 4), ElementsAre(3, 700, 701, 1100));
  // By the definition, for any number of columns.
  const Tensor centred = table - table.mean(0);
  const Tensor unit = centred / centred.norm(2, 0, true);
  const Tensor all = at::mm(unit.t(), unit).abs_().fill_diagonal_(0);
  const Tensor scores = all.amax(0);
  const Tensor kept = screen_columns(table, 600);
  const Tensor left = at::ones({1300}, at::kBool).index_fill(0, kept, false);
  EXPECT_EQ(kept.numel(), 600);
  EXPECT_GE(scores.index_select(0, kept).min().item<double>(),
            scores.masked_select(left).max().item<double>());
  // Units and threads do not matter.
  EXPECT_TRUE(screen_columns(table * at::linspace(1e-9, 1e9, 1300, at::kDouble), 600).equal(kept));
}

TEST(ScreenColumns, KeepsTheColumnsThatVaryMost) {
  const Tensor table =
      wide_table().narrow(1, 0, 5) * at::tensor({1., 3., 1e-3, 2., 1e200}, at::kDouble);
  EXPECT_THAT(screened(table, 3, ScreenCriterion::variance), ElementsAre(1, 3, 4));
}

TEST(ScreenColumns, AGapIsNoValue) {
  Tensor table = wide_table();
  table.select(1, 3).narrow(0, 0, 10).fill_(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(screened(table, 2), ElementsAre(3, 1100));
  EXPECT_EQ(screened(table, 2, ScreenCriterion::variance)[1], 1100);
}

TEST(ScreenColumns, ConstantColumnsComeLast) {
  Tensor table = wide_table().narrow(1, 0, 4).clone();
  table.select(1, 0).fill_(7);
  for (const auto by : {ScreenCriterion::correlation, ScreenCriterion::variance}) {
    EXPECT_THAT(screened(table, 3, by), ElementsAre(1, 2, 3));
    EXPECT_THAT(screened(table, 9, by), ElementsAre(0, 1, 2, 3));
  }
}

TEST(ScreenColumns, NamesWhatCannotBe) {
  const auto error_of = [](const Tensor& table, int64_t screen) -> std::string {
    try {
      screen_columns(table, screen);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  const Tensor table = at::randn({4, 3}, at::kDouble);
  EXPECT_EQ(error_of(table, 1), "[screen_columns] screen: expected at least 2, got 1");
  EXPECT_EQ(error_of(table.narrow(0, 0, 1), 2),
            "[screen_columns] table: expected at least 2 rows and 2 columns, got 1 x 3");
  EXPECT_EQ(error_of(table / 0, 2),
            "[screen_columns] table: expected finite numbers, got -inf in row 0, column 0");
  EXPECT_EQ(error_of(table.to(at::kFloat), 2),
            "[screen_columns] table: expected float64, got Float");
}

TEST(ScreenColumns, APipelineKeepsNamesAndNumbers) {
  const Tensor table = wide_table();
  std::vector<std::string> names;
  for (int64_t column = 0; column < 1300; ++column) names.push_back("g" + std::to_string(column));
  CausalPipeline pipeline({.standardise = true, .screen = 4, .steps = 5});
  pipeline.fit(table, names);
  EXPECT_THAT(pipeline.state().columns, ElementsAre(3, 700, 701, 1100));
  EXPECT_THAT(pipeline.state().names, ElementsAre("g3", "g700", "g701", "g1100"));
  EXPECT_EQ(pipeline.transform(table).size(1), 4);
}

}  // namespace
}  // namespace nsimplex
