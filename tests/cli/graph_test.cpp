// The commands of `nsimplex graph` that train, as a user meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A run that takes well under a second.
std::vector<std::string> chains(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"lab",          "chains", "--threads",    "1", "--train", "6",
                                     "--test",       "2",      "--validation", "2", "--nodes", "4",
                                     "--test-nodes", "6"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
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
  EXPECT_THAT(test::read_file(folder / "run/config.toml"), StartsWith("# nsimplex lab chains"));
  const Finished again =
      run({"lab", "chains", "--config", folder / "run/config.toml", "--out", folder / "again"});
  ASSERT_EQ(again.code, 0) << again.err;
  const auto repeated = json_of(test::read_file(folder / "again/metrics.jsonl"));
  ASSERT_EQ(repeated.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const char* key : {"loss", "micro_f1", "macro_f1"}) {
      if (!rows[i].contains(key)) continue;
      EXPECT_EQ(repeated[i][key], rows[i][key]);
    }
  }
}

TEST(GraphScaling, EveryPassIsMeasuredAndSlopesAreFitted) {
  const test::TemporaryFolder folder;
  const Finished finished =
      run({"lab", "graph-scaling", "--threads", "1", "--edges", "40,80,160", "--seeds", "2",
           "--max-seconds", "1000", "--json", "--out", folder / "run"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  const auto lines = json_of(finished.out);
  const auto passes = having(lines, "forward_seconds"), fits = having(lines, "slope_forward");
  EXPECT_EQ(passes.size(), fits.size() * 3 * 2);
  for (const json& line : passes) {
    EXPECT_EQ(line["task"], "scaling");
    const int64_t nodes = line["nodes"], edges = line["edges"];
    EXPECT_EQ(edges, 5 * (nodes - 5));
    const bool dense = line["model"].get<std::string>().find("dense") != std::string::npos;
    EXPECT_EQ(line["rows"], dense ? nodes * nodes : nodes + 2 * edges);
    for (const char* name : {"plan_seconds", "forward_seconds", "backward_seconds"}) {
      EXPECT_GT(line[name], 0.0);
    }
  }
  EXPECT_EQ(json_of(test::read_file(folder / "run/metrics.jsonl")).size(), lines.size());
}

TEST(GraphScaling, ForwardPassesAloneHaveNoBackward) {
  const Finished finished = run({"lab", "graph-scaling", "--threads", "1", "--models", "kernel",
                                 "--edges", "40,80", "--seeds", "1", "--forward-only", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto lines = json_of(finished.out);
  const auto passes = having(lines, "forward_seconds"), fits = having(lines, "slope_forward");
  ASSERT_EQ(passes.size(), 2U);
  for (const json& line : passes) {
    EXPECT_GT(line["forward_seconds"], 0.0);
    EXPECT_TRUE(line["backward_seconds"].is_null()) << line;
  }
  ASSERT_EQ(fits.size(), 1U);
  EXPECT_TRUE(fits[0]["slope_backward"].is_null());
  const Finished table = run({"lab", "graph-scaling", "--threads", "1", "--models", "mlp",
                              "--edges", "40,80", "--seeds", "1", "--forward-only"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("mlp"));
}

TEST(GraphScaling, AModelEndsBeforeALimitIsPassed) {
  const Finished finished =
      run({"lab", "graph-scaling", "--threads", "1", "--models", "mlp", "--edges", "40,400000",
           "--seeds", "1", "--max-seconds", "5", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto lines = json_of(finished.out);
  EXPECT_EQ(having(lines, "forward_seconds").size(), 1U);
  EXPECT_EQ(having(lines, "largest_edges")[0]["largest_edges"], 15);
  const Finished falling = run({"lab", "graph-scaling", "--edges", "80,40"});
  EXPECT_EQ(falling.code, 2);
  EXPECT_THAT(falling.err, HasSubstr("--edges: expected ascending numbers"));
}

TEST(GraphDelaunay, ModelsAreShownBesideThePapersFigures) {
  const Finished finished =
      run({"lab", "delaunay", "--threads", "1", "--train", "6", "--validation", "2", "--test", "2",
           "--epochs", "1", "--models", "s2g,gnn5,softmax", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto lines = json_of(finished.out);
  EXPECT_EQ(having(lines, "best_epoch").size(), 3U);
  for (const json& line : having(lines, "best_epoch")) {
    EXPECT_GE(line["accuracy_with_loops"], line["accuracy"]);
    EXPECT_TRUE(line.contains("precision") && line.contains("last_recall"));
  }
  for (const json& line : having(lines, "f1_mean")) EXPECT_GT(line["published_f1"], 0.4);
  EXPECT_THAT(finished.out, HasSubstr("siam-3"));
  // Figures of the paper are of other sizes.
  const Finished smaller =
      run({"lab", "delaunay", "--threads", "1", "--train", "2", "--validation", "1", "--test", "1",
           "--least", "5", "--most", "8", "--epochs", "1", "--models", "s2g-plus", "--json"});
  ASSERT_EQ(smaller.code, 0) << smaller.err;
  EXPECT_TRUE(having(json_of(smaller.out), "published_f1").empty());
  const Finished crossed = run({"lab", "delaunay", "--least", "9", "--most", "8"});
  EXPECT_EQ(crossed.code, 2);
  EXPECT_THAT(crossed.err, HasSubstr("--least: expected at most --most 8, got 9"));
  const Finished alone = run({"lab", "delaunay", "--least", "1", "--most", "1"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("--most: expected a whole number from 2 to "));
}

TEST(GraphDelaunay, FullLeavesSizesThatAreGiven) {
  const test::TemporaryFolder folder;
  const Finished finished = run(
      {"lab", "delaunay", "--full", "--threads",    "1",    "--least", "5",     "--most",
       "5",   "--train",  "3",      "--validation", "1",    "--test",  "1",     "--batch",
       "1",   "--epochs", "1",      "--models",     "gnn5", "--json",  "--out", folder / "run"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto epochs = having(json_of(test::read_file(folder / "run/metrics.jsonl")), "step");
  ASSERT_EQ(epochs.size(), 1U);
  EXPECT_EQ(epochs[0]["step"], 3);
}

TEST(GraphDelaunay, KernelModelsHaveTheFeaturesAskedFor) {
  const test::TemporaryFolder folder;
  const auto trained = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"lab",
                                       "delaunay",
                                       "--threads",
                                       "1",
                                       "--least",
                                       "5",
                                       "--most",
                                       "5",
                                       "--train",
                                       "8",
                                       "--validation",
                                       "2",
                                       "--test",
                                       "2",
                                       "--epochs",
                                       "2",
                                       "--models",
                                       "kernel",
                                       "--json",
                                       "--width",
                                       "8",
                                       "--layers",
                                       "1",
                                       "--overwrite",
                                       "--out",
                                       folder / "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return having(json_of(test::read_file(folder / "run/metrics.jsonl")), "step").back()["loss"];
  };
  const json plain = trained({});
  EXPECT_EQ(plain, trained({}));
  EXPECT_NE(plain, trained({"--redraw", "0"}));
  EXPECT_NE(plain, trained({"--features", "9"}));
  const json exponential = trained({"--feature-map", "exponential"});
  EXPECT_NE(plain, exponential);
  EXPECT_EQ(exponential, trained({"--config", folder / "run/config.toml"}));
  const Finished uneven = run({"lab", "delaunay", "--width", "6"});
  EXPECT_EQ(uneven.code, 2);
  EXPECT_THAT(uneven.err, HasSubstr("--width: expected a multiple of 4 heads, got 6"));
}

TEST(GraphJets, FiguresAreToldApartByKind) {
  const Finished finished = run({"lab", "jets", "--threads", "1", "--sets", "40", "--epochs", "1",
                                 "--models", "s2g,gnn0,kernel", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto results = having(json_of(finished.out), "best_epoch");
  ASSERT_EQ(results.size(), 3U);
  for (const json& line : results) {
    EXPECT_TRUE(line.contains("f1") && line.contains("adjusted_rand_index"));
    for (const char* kind : {"light", "charm", "bottom"}) {
      EXPECT_TRUE(line.contains(std::string(kind) + "_rand_index")) << kind;
    }
  }
  const test::TemporaryFolder folder;
  const Finished missing = run({"lab", "jets", "--file", folder / "nowhere.npz"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_EQ(lines_of(missing.err).size(), 1U) << missing.err;
  EXPECT_EQ(run({"lab", "jets", "--sets", "4"}).code, 2);
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
      {{"--epochs", "0"}, "--epochs: expected at least 1, got 0"},
      {{"--batch", "many"}, "--batch"},
      {{"--lr", "-1"}, "--lr: expected a positive number"},
      {{"--redraw", "2"}, "--redraw: expected a share from 0 to 1, got 2"},
      {{"--warmup", "-1"}, "--warmup: expected"},
      {{"--clip", "-1"}, "--clip: expected"},
      {{"--nodes", "0"}, "--nodes"},
      {{"--device", "cpu"}, "unknown option --device"}};
  for (const auto& [more, says] : cases) {
    std::vector<std::string> arguments{"lab", "chains"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refused(arguments, folder / "run", says);
  }
}

}  // namespace
}  // namespace nsimplex::cli::testing
