// `nsimplex lab lipschitz` and `analyze sensitivity` as a user meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/json_of.h"
#include "cli/process.h"
#include "lab/lipschitz/lipschitz_command.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::vector<std::string> lipschitz(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"lab", "lipschitz", "--threads", "1",       "--widths",
                                     "2",   "--draws",   "2",         "--steps", "8"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::map<std::string, json> by_statement(const std::string& out) {
  std::map<std::string, json> found;
  for (const json& line : json_of(out)) found[line["statement"].get<std::string>()] = line;
  return found;
}

TEST(AnalyzeLipschitz, EveryBoundIsAStatement) {
  const test::TemporaryFolder folder;
  const Finished finished = run(lipschitz({"--orders", "1,2", "--tokens", "2,3", "--radii",
                                           "0.01,0.02,1", "--json", "--out", folder / "run"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto found = by_statement(finished.out);
  for (const std::string bound : {"printed", "proof", "all_factors"}) {
    for (const std::string order : {"1", "2"}) {
      const json& line = found.at("constant <= bound " + bound + ", order " + order);
      EXPECT_EQ(line["draws"], 12);
      EXPECT_EQ(line["violations"], 0);
      EXPECT_TRUE(line["holds"].get<bool>());
      EXPECT_GT(line["median_slack"], 1.0);
      EXPECT_TRUE(line.at("counterexample").is_null());
    }
  }
  EXPECT_EQ(found.at("constant <= bound pairs, order 1")["violations"], 0);
  EXPECT_FALSE(found.contains("constant <= bound pairs, order 2"));
  EXPECT_NEAR(found.at("vanishes with the radius as R^1, order 2")["exponent"], 1, 0.1);
  EXPECT_NEAR(found.at("does not vanish with the radius, order 1")["exponent"], 0, 0.1);
  EXPECT_TRUE(std::filesystem::exists(folder / "run/metrics.jsonl"));
}

TEST(AnalyzeLipschitz, CountsPointsWithTooManyTuplesOut) {
  const Finished finished = run(
      lipschitz({"--orders", "2", "--tokens", "2,4", "--radii", "1", "--tuples", "8", "--json"}));
  EXPECT_EQ(by_statement(finished.out).at("constant <= bound proof, order 2")["draws"], 2);
}

// order, exponent in the tokens.
std::vector<LipschitzPoint> made_up(int64_t order, double in_tokens) {
  std::vector<LipschitzPoint> points;
  for (const int64_t tokens : {2, 4, 8}) {
    for (const int64_t dim : {2, 4}) {
      for (const double radius : {0.1, 0.2, 4.0}) {
        points.push_back({order, tokens, dim, radius,
                          std::pow(tokens, in_tokens) * std::pow(radius, order - 1) *
                              std::pow(dim, 0.75) * (radius > 1 ? 2 : 1)});
      }
    }
  }
  return points;
}

TEST(AnalyzeLipschitz, GrowthOfMadeUpConstants) {
  std::vector<LipschitzPoint> points = made_up(2, 2);
  const std::vector<LipschitzPoint> pairs = made_up(1, 1);
  points.insert(points.end(), pairs.begin(), pairs.end());
  const auto growth = lipschitz_growth(points, 2);
  ASSERT_EQ(growth.size(), 5u);
  for (const size_t violated : {0, 1, 2}) {
    EXPECT_EQ(growth[violated].statement.violations(), growth[violated].statement.draws());
  }
  EXPECT_EQ(growth[0].statement.draws(), 6);  // two widths, three radii
  EXPECT_NEAR(growth[0].figures["exponent"], 2, 1e-9);
  EXPECT_NEAR(growth[1].figures["difference"], 1, 1e-9);
  EXPECT_NEAR(growth[2].figures["exponent"], 0.75, 1e-9);
  for (const size_t held : {3, 4}) {
    EXPECT_EQ(growth[held].statement.draws(), 6);  // three lengths, two widths
    EXPECT_EQ(growth[held].statement.violations(), 0);
  }
  EXPECT_NEAR(growth[3].figures["exponent"], 1, 1e-9);
  EXPECT_EQ(lipschitz_growth(points, 1)[1].statement.draws(), 0);
  EXPECT_EQ(lipschitz_growth(points, 3)[0].statement.draws(), 0);
}

std::vector<std::string> sensitivity(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"lab",      "sensitivity", "--threads", "1",
                                     "--widths", "3",           "--starts",  "2",
                                     "--steps",  "16",          "--draws",   "20"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(AnalyzeSensitivity, BoundsHoldAndTheSlipsShow) {
  const Finished finished = run(sensitivity({"--orders", "1,2", "--scales", "unit", "--json"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  for (const auto& [text, line] : by_statement(finished.out)) {
    const bool slip = text.find("as printed") != std::string::npos && line["order"] == 2;
    EXPECT_EQ(line["holds"].get<bool>(), !slip) << text;
    EXPECT_GT(line["draws"], 0) << text;
  }
  const auto found = by_statement(finished.out);
  EXPECT_EQ(found.at("d2A as printed, order 2")["violations"], 20);
  EXPECT_EQ(found.at("sensitivity <= 1: order 2, D 3, unit scales")["violations"], 0);
  EXPECT_EQ(found.at("sharpness <= 3: order 2, D 3, unit scales")["violations"], 0);
  const json layer = found.at("layer sensitivity <= 5: order 2, D 3, unit scales");
  EXPECT_EQ(layer["draws"], 4);
  EXPECT_GT(layer["largest"], 1.5);  // more than each of its inputs alone
  EXPECT_TRUE(found.contains("layer sharpness <= 75: order 2, D 3, unit scales"));
  for (const auto& [text, line] : found) {
    if (!line.contains("single_violations")) continue;
    EXPECT_EQ(line["single_violations"], 0) << text;
  }
}

TEST(AnalyzeSensitivity, DefaultsFindTheLargestSharpnessKnown) {
  const Finished finished = run({"lab", "sensitivity", "--threads", "1", "--orders", "2",
                                 "--widths", "4", "--scales", "unit", "--draws", "1", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json line = by_statement(finished.out).at("sharpness <= 3: order 2, D 4, unit scales");
  EXPECT_NEAR(line["largest"], 2, 1e-6);
}

TEST(AnalyzeSensitivity, TablesForPeople) {
  const Finished finished =
      run(sensitivity({"--orders", "1", "--scales", "standard", "--skip-sharpness"}));
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(finished.out, HasSubstr("Lemma 6"));
  EXPECT_THAT(finished.out, HasSubstr("sensitivity <= 1.732"));
}

// c1 = 0.5 * 3^(2/2), c2 = 2: the sensitivity to v is c2, that to q and k is c1 c2.
TEST(AnalyzeSensitivity, AnyScales) {
  const Finished finished =
      run(sensitivity({"--orders", "1", "--scales", "0.5:2", "--skip-sharpness", "--json"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json line = by_statement(finished.out).at("sensitivity <= 3: order 1, D 3, 0.5:2 scales");
  EXPECT_EQ(line["violations"], 0);
  EXPECT_NEAR(line["bound"], 3, 1e-12);
  EXPECT_GT(line["largest"], 2.7);
}

// c1 = c2 = 1: c1 K V = 1.5 for q, c1 Q V = 6 for k and 1 for v.
TEST(AnalyzeSensitivity, AnyInputNorms) {
  const Finished finished =
      run(sensitivity({"--orders", "1", "--scales", "unit", "--norms", "1:1:1,2:0.5:3", "--json"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto found = by_statement(finished.out);
  const json line = found.at("sensitivity <= 6: order 1, D 3, unit scales, norms 2:0.5:3");
  EXPECT_EQ(line["violations"], 0);
  EXPECT_EQ(line["norms"], json({2, 0.5, 3}));
  EXPECT_GT(line["largest"], 4);
  // With c1 Q K = 1 and c2 V = 3, divided by the squares of norms.
  const json second = found.at("sharpness <= 24: order 1, D 3, unit scales, norms 2:0.5:3");
  EXPECT_EQ(second["violations"], 0);
  EXPECT_TRUE(found.contains("layer sensitivity <= 3: order 1, D 3, unit scales"));
  EXPECT_FALSE(found.contains("layer sensitivity <= 3: order 1, D 3, unit scales, norms 2:0.5:3"));
}

TEST(AnalyzeSensitivity, UsageIsChecked) {
  EXPECT_EQ(run(sensitivity({"--norms", "1:1"})).code, 2);
  EXPECT_EQ(run(sensitivity({"--scales", "other"})).code, 2);
  EXPECT_EQ(run(sensitivity({"--scales", "1:-2"})).code, 2);
  EXPECT_EQ(run(lipschitz({"--radii", "0"})).code, 2);
}

}  // namespace
}  // namespace nsimplex::cli::testing
