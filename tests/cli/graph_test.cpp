// The commands of `nsimplex graph` that train, as a user meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/process.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A run that takes well under a second.
std::vector<std::string> chains(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"graph",        "chains", "--threads",    "1", "--train", "6",
                                     "--test",       "2",      "--validation", "2", "--nodes", "4",
                                     "--test-nodes", "6"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<json> json_of(const std::string& text) {
  std::vector<json> objects;
  for (const std::string& line : lines_of(text)) objects.push_back(json::parse(line));
  return objects;
}

std::vector<json> having(const std::vector<json>& lines, const std::string& key) {
  std::vector<json> found;
  for (const json& line : lines) {
    if (line.contains(key)) found.push_back(line);
  }
  return found;
}

TEST(GraphChains, EveryModelIsTrainedForEverySeedAndSummedUp) {
  const Finished finished = run(chains({"--epochs", "2", "--seeds", "2", "--json"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  const auto lines = json_of(finished.out);
  const auto results = having(lines, "best_epoch"), means = having(lines, "micro_f1_mean");
  ASSERT_FALSE(means.empty());
  EXPECT_EQ(results.size(), 2 * means.size());
  for (const json& line : results) {
    EXPECT_EQ(line["task"], "chains");
    EXPECT_EQ(line["epochs"], 2);
    EXPECT_LE(line["best_epoch"], 2);
    EXPECT_GT(line["parameters"], 0);
    EXPECT_GT(line["seconds"], 0.0);
    EXPECT_FALSE(line["stopped"].get<bool>());
    for (const char* name : {"micro_f1", "macro_f1", "last_micro_f1", "validation_micro_f1"}) {
      EXPECT_GE(line[name], 0.0);
      EXPECT_LE(line[name], 1.0);
    }
  }
  for (const json& mean : means) {
    double sum = 0;
    for (const json& line : results) {
      if (line["model"] == mean["model"]) sum += line["micro_f1"].get<double>();
    }
    EXPECT_DOUBLE_EQ(mean["micro_f1_mean"], sum / 2);
    EXPECT_EQ(mean["seeds"], 2);
  }
  EXPECT_EQ(having(lines, "published_micro_f1").size(), means.size());
}

TEST(GraphChains, ARunDirectoryHoldsPointsResultsAndTheCommand) {
  const test::TemporaryFolder folder;
  const Finished finished = run(
      chains({"--models", "mlp,gcn", "--epochs", "3", "--seeds", "1", "--out", folder / "run"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  // Header, majority, two models.
  EXPECT_EQ(lines_of(finished.out).size(), 4U);
  EXPECT_THAT(finished.out, HasSubstr("paper macro_f1"));
  const auto rows = json_of(test::read_file(folder / "run/metrics.jsonl"));
  EXPECT_EQ(having(rows, "epoch").size(), 2U * 3);
  EXPECT_EQ(having(rows, "best_epoch").size(), 2U);
  EXPECT_THAT(test::read_file(folder / "run/config.toml"), StartsWith("# nsimplex graph chains"));
  const Finished again =
      run({"graph", "chains", "--config", folder / "run/config.toml", "--out", folder / "again"});
  ASSERT_EQ(again.code, 0) << again.err;
  const auto repeated = json_of(test::read_file(folder / "again/metrics.jsonl"));
  ASSERT_EQ(repeated.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const char* key : {"loss", "micro_f1", "macro_f1"}) {
      if (rows[i].contains(key)) EXPECT_EQ(repeated[i][key], rows[i][key]);
    }
  }
}

TEST(GraphChains, CtrlCKeepsWhatWasReached) {
  const test::TemporaryFolder folder;
  Process process(chains({"--models", "mlp", "--epochs", "100000", "--out", folder / "run"}));
  ASSERT_TRUE(process.wait_for_error_output("validation"));
  process.send(SIGINT);
  const Finished finished = process.wait();
  EXPECT_EQ(finished.code, 130);
  EXPECT_THAT(finished.out, HasSubstr("mlp"));
  const auto results = having(json_of(test::read_file(folder / "run/metrics.jsonl")), "best_epoch");
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0]["stopped"].get<bool>());
  EXPECT_GE(results[0]["epochs"], 1);
}

TEST(GraphChains, WhatCannotBeTrainedIsToldInOneLineAndNothingIsWritten) {
  const test::TemporaryFolder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--models", "cnn"}, "--models"},
      {{"--epochs", "0"}, "--epochs"},
      {{"--lr", "-1"}, "learning rate: expected a positive number"},
      {{"--warmup", "-1"}, "warm-up"},
      {{"--clip", "-1"}, "clip"},
      {{"--nodes", "0"}, "--nodes"},
      {{"--device", "meta"}, "meta"}};
  for (const auto& [more, says] : cases) {
    std::vector<std::string> arguments{"graph", "chains"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"--out", folder / "run"});
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.code, 2) << more.front();
    EXPECT_EQ(lines_of(finished.err).size(), 1U) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(says));
    EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  }
}

}  // namespace
}  // namespace nsimplex::cli::testing
