// `nsimplex lab match2 | match3 | match4` as a user meets them: which models are compared, what is
// printed and written, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/json_of.h"
#include "cli/process.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A run that takes well under a second, unless `more` says otherwise.
std::vector<std::string> task(const std::string& name, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"lab", name, "--threads", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  for (const auto& [option, value] : std::vector<std::pair<std::string, std::string>>{
           {"--width", "16"}, {"--steps", "3"}, {"--batch", "8"}, {"--test", "16"}}) {
    if (std::find(more.begin(), more.end(), option) != more.end()) continue;
    arguments.insert(arguments.end(), {option, value});
  }
  return arguments;
}

std::vector<json> run_json(const std::string& name, std::vector<std::string> more) {
  more.push_back("--json");
  const Finished finished = run(task(name, more));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  return json_of(finished.out);
}

// "order x depth tuples" of each line.
std::vector<std::string> arms_of(const std::vector<json>& lines) {
  std::vector<std::string> arms;
  for (const json& line : lines) {
    std::string arm = line["order"].dump() + "x" + line["depth"].dump() + " ";
    arm += line["sparse"].get<std::string>();
    if (!line["topk"].is_null()) arm += line["topk"].dump();
    arms.push_back(arm);
  }
  return arms;
}

TEST(TaskMatch, EveryArityTrainsItsUsualOrders) {
  for (const std::string name : {"match2", "match3", "match4"}) {
    const auto lines = run_json(name, {});
    ASSERT_EQ(lines.size(), name == "match4" ? 3U : 2U);
    for (const json& line : lines) {
      EXPECT_EQ(line["task"], name);
      EXPECT_EQ(line["majority"], 0.5);
      EXPECT_EQ(line["parameters"], lines[0]["parameters"]);
      EXPECT_GT(line["flops"], 0.0);
      EXPECT_GT(line["step_seconds"], 0.0);
      EXPECT_GE(line["seconds"], line["step_seconds"]);
    }
  }
}

TEST(TaskMatch, ListsAreCombinedAndNothingIsTrainedTwice) {
  const auto lines = run_json("match3", {"--order", "1,2", "--depth", "1,2", "--sparse",
                                         "dense,topk,path", "--topk", "3", "--beside", "3,2"});
  EXPECT_THAT(arms_of(lines), ElementsAre("3x1 dense", "2x1 dense", "1x1 dense", "1x1 topk3",
                                          "1x2 dense", "1x2 topk3", "2x1 topk3", "2x1 path3",
                                          "2x2 dense", "2x2 topk3", "2x2 path3"));
}

TEST(TaskMatch, EqualFlopsAreEqualToHalfAHiddenUnit) {
  const auto lines = run_json("match3", {"--order", "1", "--depth", "1,2,3", "--beside", "2",
                                         "--width", "48", "--equal", "flops"});
  ASSERT_EQ(lines.size(), 4U);
  for (const json& line : lines) {
    const double units = 6 * line["dim"].get<double>() * line["depth"].get<double>();
    EXPECT_NEAR(line["flops"].get<double>(), lines[0]["flops"].get<double>(), units);
    EXPECT_EQ(line["equal"], "flops");
  }
  EXPECT_NE(lines[1]["parameters"], lines[0]["parameters"]);
}

TEST(TaskMatch, ARunDirectoryHoldsPointsResultsAndTheCommand) {
  const test::TemporaryFolder folder;
  const Finished finished =
      run(task("match3", {"--seeds", "2", "--eval-every", "2", "--out", folder / "run"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("width x hidden"));
  EXPECT_THAT(finished.out, HasSubstr("±"));         // of two seeds
  EXPECT_EQ(lines_of(finished.out).size(), 1U + 2);  // a row per model
  const auto rows = json_of(test::read_file(folder / "run/metrics.jsonl"));
  size_t points = 0, results = 0;
  for (const json& row : rows) {
    points += row.contains("step");
    results += row.contains("majority");
    EXPECT_TRUE(row.contains("accuracy") && row.contains("depth") && row.contains("seed"));
  }
  EXPECT_EQ(points, 2U * 2 * 2);  // steps 2 and 3, two orders, two seeds
  EXPECT_EQ(results, 2U * 2);
  const std::string config = test::read_file(folder / "run/config.toml");
  EXPECT_THAT(config, StartsWith("# nsimplex lab match3 --threads 1 --seeds 2"));
  // It repeats the run.
  const Finished again =
      run({"lab", "match3", "--config", folder / "run/config.toml", "--out", folder / "again"});
  ASSERT_EQ(again.code, 0) << again.err;
  const auto repeated = json_of(test::read_file(folder / "again/metrics.jsonl"));
  ASSERT_EQ(repeated.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(repeated[i]["accuracy"], rows[i]["accuracy"]);
}

TEST(TaskMatch, CtrlCKeepsWholeSeedsAndThePointsSoFar) {
  const test::TemporaryFolder folder;
  Process process(task("match2", {"--steps", "400", "--seeds", "1000", "--eval-every", "50",
                                  "--out", folder / "run"}));
  ASSERT_TRUE(process.wait_for_error_output("match2 seed 2"));
  process.send(SIGINT);
  const Finished finished = process.wait();
  EXPECT_EQ(finished.code, 130);
  EXPECT_GE(lines_of(finished.out).size(), 1U + 2);  // both orders of the first seed
  EXPECT_GE(json_of(test::read_file(folder / "run/metrics.jsonl")).size(), 2U * 9);
}

TEST(TaskMatch, WhatCannotBeTrainedIsToldInOneLineAndNothingIsWritten) {
  const test::TemporaryFolder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--sparse", "window"}, "--sparse"},
      {{"--topk", "0"}, "--topk"},
      {{"--depth", "0"}, "--depth"},
      {{"--order", "5"}, "--order"},
      {{"--beside", "5"}, "--beside"},
      {{"--equal", "time"}, "--equal"},
      {{"--modulus", "1000000000000"}, "--modulus"},
      {{"--modulus", "1000000"}, "rarely have balanced labels"},
      {{"--modulus", "4"}, "expected a prime, got 4"},
      {{"--length", "1"}, "length: expected at least 2, got 1"},
      {{"--heads", "3"}, "--heads: expected a divisor of --width 16, got 3"},
      {{"--depth", "64"}, "--depth: expected layers that fit"},
      {{"--lr", "-1"}, "--lr: expected a positive number"},
      {{"--device", "cpu"}, "unknown option --device"}};
  for (const auto& [more, says] : cases) {
    auto arguments = task("match3", more);
    expect_refused(arguments, folder / "run", says);
  }
}

}  // namespace
}  // namespace nsimplex::cli::testing
