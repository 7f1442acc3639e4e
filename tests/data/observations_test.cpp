#include "data/observations.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "input_error_of.h"
#include "temporary_folder.h"

namespace nsimplex::data {
namespace {

using test::input_error_of;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

class ObservationsTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }
  test::TemporaryFolder folder_;
};

Observations made(std::vector<double> values, int64_t rows) {
  Observations result;
  result.values = at::tensor(values, at::kDouble).view({rows, -1});
  for (int64_t c = 0; c < result.values.size(1); ++c) result.features.push_back(std::to_string(c));
  return result;
}

TEST_F(ObservationsTest, ReadsNamesAndMissingValues) {
  const Observations read = read_observations(write("t.csv", ",a,b\nx,1,2\ny,,4\n"));
  EXPECT_THAT(read.features, ElementsAre("a", "b"));
  EXPECT_THAT(read.names, ElementsAre("x", "y"));
  EXPECT_TRUE(at::isnan(read.values[1][0]).item<bool>());
  EXPECT_EQ(read.values[1][1].item<double>(), 4.0);
}

TEST_F(ObservationsTest, LabelsByNameOrByOrder) {
  const Observations table = read_observations(write("t.csv", ",a,b\nx,1,2\ny,3,4\nz,5,7\n"));
  const Labels by_name = read_labels(write("n.csv", ",kind\nz,q\nx,p\ny,q\n"), table);
  EXPECT_THAT(by_name.classes, ElementsAre("p", "q"));
  EXPECT_TRUE(at::equal(by_name.numbers, at::tensor({0, 1, 1}, at::kLong)));
  const Labels by_order = read_labels(write("o.csv", "kind\nq\np\np\n"), table);
  EXPECT_TRUE(at::equal(by_order.numbers, at::tensor({1, 0, 0}, at::kLong)));
}

TEST_F(ObservationsTest, NamesLabelsThatCannotBe) {
  const Observations table = read_observations(write("t.csv", ",a,b\nx,1,2\ny,3,4\n"));
  const auto error = [&](const std::string& text) {
    const std::string path = write("l.csv", text);
    return input_error_of([&] { read_labels(path, table); });
  };
  EXPECT_THAT(error(",kind\nx,p\nx,q\n"), HasSubstr("l.csv: line 3: a second label of"));
  EXPECT_THAT(error(",kind\nx,p\nw,q\n"), HasSubstr("no label of row \"y\""));
  EXPECT_THAT(error("kind\np\n"), HasSubstr("expected 2 labels, one per row of the table, got 1"));
  EXPECT_THAT(error("kind\np\np\n"), HasSubstr("expected two different labels, got 1"));
  EXPECT_THAT(error("a,b,c\n1,2,3\n"),
              HasSubstr("line 2: expected a label, or a name and a label"));
}

TEST(NormaliseCounts, ScalesRowsAndDropsPoorOnes) {
  Observations table = made({1, 3, 0, 0, 2, 6, 0, 0, 5, 0, 0, 0}, 3);
  table.names = {"x", "y", "z"};
  const at::Tensor rows = normalise_counts(table, 2);
  EXPECT_TRUE(at::equal(rows, at::tensor({0, 1}, at::kLong)));
  EXPECT_THAT(table.names, ElementsAre("x", "y"));
  EXPECT_TRUE(at::allclose(table.values[0], table.values[1]));
  EXPECT_TRUE(at::allclose(table.values.expm1().sum(1), at::full({2}, 1e4, at::kDouble)));
  Observations negative = made({1, -1, 1, 1}, 2);
  EXPECT_THAT(input_error_of([&] { normalise_counts(negative, 1); }), HasSubstr("not negative"));
}

TEST(ImputeMissing, TakesTheNearestRowsThatHaveTheValue) {
  // Row 0 is near rows 1 and 2, far from 3; column 2 of row 0 is missing, as in row 1.
  Observations table = made({0, 0, kMissing, 0, 0.1, kMissing, 0.2, 0, 5, 9, 9, 70}, 4);
  impute_missing(table, 0.1, 1);
  EXPECT_EQ(table.values[0][2].item<double>(), 5.0);
  Observations both = made({0, 0, kMissing, 0, 0.1, kMissing, 0.2, 0, 5, 9, 9, 70}, 4);
  impute_missing(both, 0.1, 5);
  EXPECT_EQ(both.values[0][2].item<double>(), 37.5);
}

TEST(ImputeMissing, DropsColumnsThatFewRowsHave) {
  Observations table = made({1, kMissing, 2, kMissing, 3, kMissing, 4, 8}, 4);
  impute_missing(table, 0.5);
  EXPECT_THAT(table.features, ElementsAre("0"));
  Observations nothing = made({kMissing, kMissing}, 2);
  EXPECT_THAT(input_error_of([&] { impute_missing(nothing); }), HasSubstr("expected a column"));
}

TEST(MostVariable, KeepsTheOrderOfColumns) {
  const Observations table = made({0, 5, 0, 1, 9, 1, 0, 2, 0, 7, 0, 9}, 3);
  EXPECT_TRUE(at::equal(most_variable(table.values, 2), at::tensor({0, 3}, at::kLong)));
  EXPECT_EQ(most_variable(table.values, 9).size(0), 4);
}

TEST(StratifiedSplit, CutsEveryClassAlike) {
  Labels labels{at::cat({at::zeros({10}, at::kLong), at::ones({20}, at::kLong)}), {"p", "q"}};
  const SplitRows split = stratified_split(labels, 0.3, 1);
  EXPECT_EQ(labels.numbers.index_select(0, split.first).eq(0).sum().item<int64_t>(), 3);
  EXPECT_EQ(labels.numbers.index_select(0, split.first).eq(1).sum().item<int64_t>(), 6);
  const at::Tensor all = std::get<0>(at::cat({split.first, split.second}).sort());
  EXPECT_TRUE(at::equal(all, at::arange(30, at::kLong)));
  EXPECT_TRUE(at::equal(split.first, stratified_split(labels, 0.3, 1).first));
  EXPECT_FALSE(at::equal(split.first, stratified_split(labels, 0.3, 2).first));
}

TEST(ValueBins, CutsAtQuantilesOfWhatIsNotZero) {
  const at::Tensor values = at::tensor({0, 1, 2, 3, 4, 5, 6, 7, 8}, at::kDouble).view({3, 3});
  const ValueBins bins(values, 4);
  EXPECT_TRUE(
      at::equal(bins(values).flatten(), at::tensor({0, 1, 1, 2, 2, 3, 3, 4, 4}, at::kLong)));
  const at::Tensor outside = at::tensor({-3.0, 99.0, 0.0}, at::kDouble).unsqueeze(0);
  EXPECT_TRUE(at::equal(bins(outside).flatten(), at::tensor({1, 4, 0}, at::kLong)));
  EXPECT_THAT(input_error_of([] { ValueBins(at::zeros({2, 2}, at::kDouble), 3); }),
              HasSubstr("a value that is not zero"));
}

}  // namespace
}  // namespace nsimplex::data
