// --resume of the commands that train on graphs and features, as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "cli/every_command.h"
#include "cli/json_of.h"
#include "cli/process.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

Words chain_words(const std::string& epochs, const Words& more) {
  return joined(
      {"lab",          "chains",     "--threads", "1",   "--train",  "6",    "--test",       "2",
       "--validation", "2",          "--nodes",   "4",   "--epochs", epochs, "--test-nodes", "6",
       "--models",     "mlp,kernel", "--ema",     "0.9", "--seeds",  "2"},
      more);
}

// Lines without what two equal runs do not share; `stopped` lines and the summaries of a run that
// was interrupted are there as well.
std::vector<json> lines_in(const std::string& folder, bool all = false) {
  std::vector<json> lines;
  for (json line : json_of(test::read_file(folder + "/metrics.jsonl"))) {
    if (!all && line.value("stopped", false)) continue;
    line.erase("seconds");
    line.erase("step_seconds");
    line.erase("tokens_per_second");
    lines.push_back(line);
  }
  return lines;
}

std::vector<json> results_in(const std::string& folder) {
  std::vector<json> results;
  for (const json& line : lines_in(folder)) {
    if (line.contains("seed") || line.contains("trial")) results.push_back(line);
  }
  return results;
}

// The last `count` lines: what a run that has ended sums up.
std::vector<json> summary_in(const std::string& folder, size_t count) {
  const auto lines = lines_in(folder);
  return {lines.end() - static_cast<std::ptrdiff_t>(count), lines.end()};
}

TEST(GraphResume, CtrlCSavesAndARunGoesOnBitForBit) {
  const test::TemporaryFolder folder;
  const std::string whole = folder / "whole", broken = folder / "broken";
  ASSERT_EQ(run(chain_words("400", {"--out", whole})).code, 0);
  EXPECT_FALSE(std::filesystem::exists(whole + "/checkpoint.safetensors"));
  for (int round = 0; round < 3; ++round) {
    const std::string file = broken + "/metrics.jsonl";
    const auto size = [&] {
      return std::filesystem::exists(file) ? std::filesystem::file_size(file) : 0;
    };
    const auto begun = size();
    Process process(round == 0 ? chain_words("400", {"--out", broken})
                               : Words{"lab", "chains", "--resume", broken});
    wait_until([&] { return size() >= begun + 3000U; });
    if (round == 0) {  // nobody else may continue what is at work
      const Finished second = run({"lab", "chains", "--resume", broken});
      EXPECT_EQ(second.code, 2);
      EXPECT_THAT(second.err, HasSubstr("is in use by another process"));
    }
    // A kill loses the steps since the checkpoint, and the lines that they wrote are not repeated.
    process.send(round == 1 ? SIGKILL : SIGINT);
    const Finished stopped = process.wait();
    if (round == 1) continue;
    EXPECT_EQ(stopped.code, 130) << stopped.err;
    EXPECT_THAT(stopped.err, HasSubstr("continue with: nsimplex lab chains --resume " + broken));
    // Between two trials there is nothing to save but the result of the first.
    EXPECT_TRUE(std::filesystem::exists(broken + "/checkpoint.safetensors") ||
                lines_in(broken).back().contains("seed"));
  }
  const std::string before = test::read_file(broken + "/metrics.jsonl");
  const Finished resumed = run({"lab", "chains", "--resume", broken});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(test::read_file(broken + "/metrics.jsonl").starts_with(before));
  EXPECT_EQ(results_in(broken), results_in(whole));
  EXPECT_EQ(summary_in(broken, 2), summary_in(whole, 2));
  EXPECT_FALSE(std::filesystem::exists(broken + "/checkpoint.safetensors"));
  EXPECT_TRUE(test::read_file(broken + "/config.toml").starts_with("# nsimplex lab chains"));
}

TEST(GraphResume, AFinishedRunSaysSoAndChangesNothing) {
  const test::TemporaryFolder folder;
  const std::string out = folder / "run";
  const Finished first = run(chain_words("2", {"--out", out}));
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string before = test::read_file(out + "/metrics.jsonl");
  const Finished again = run({"lab", "chains", "--resume", out});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, first.out);
  EXPECT_THAT(again.err, HasSubstr("the run in " + out + " had been finished"));
  EXPECT_EQ(test::read_file(out + "/metrics.jsonl"), before);
  const Finished lines = run({"lab", "chains", "--json", "--resume", out});
  EXPECT_EQ(lines.err, "");
  EXPECT_EQ(json_of(lines.out).size(), 2U * 3 + 2);  // references and models of each seed, means
  EXPECT_EQ(test::read_file(out + "/metrics.jsonl"), before);
}

TEST(GraphResume, LinesOfVersionWithoutKindsAreNotWrittenAgain) {
  const test::TemporaryFolder folder;
  const std::string out = folder / "run", file = out + "/metrics.jsonl";
  ASSERT_EQ(run(chain_words("2", {"--out", out})).code, 0);
  std::string older;
  for (const std::string& line : lines_of(test::read_file(file))) {
    ASSERT_TRUE(line.starts_with("{\"kind\":\"graph_")) << line;
    older += "{" + line.substr(line.find("\"task\"")) + "\n";
  }
  test::write_file(file, older);
  const Finished again = run({"graph", "chains", "--resume", out});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("the run in " + out + " had been finished"));
  EXPECT_EQ(test::read_file(file), older);
}

TEST(GraphResume, TheHalfLineOfAKilledProcessGoesAndTheRestStays) {
  const test::TemporaryFolder folder;
  const std::string out = folder / "run", file = out + "/metrics.jsonl";
  ASSERT_EQ(run(chain_words("3", {"--out", out})).code, 0);
  const std::string whole = test::read_file(file);
  const auto expected = lines_in(out);
  // Within the line of a result.
  const size_t cut = whole.find("\"best_epoch\"");
  test::write_file(file, whole.substr(0, cut));
  const Finished resumed = run({"lab", "chains", "--resume", out});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(lines_in(out), expected);
  EXPECT_TRUE(test::read_file(file).starts_with(whole.substr(0, whole.rfind('\n', cut) + 1)));

  test::write_file(file, "{\"a\": 1}\nnothing\n" + whole);
  const Finished damaged = run({"lab", "chains", "--resume", out});
  EXPECT_EQ(damaged.code, 2);
  EXPECT_THAT(damaged.err, AllOf(HasSubstr("cannot continue"), HasSubstr("line 2 is not a JSON")));
}

void expect_no_resume(const Words& words, const std::string& says) {
  const Finished finished = run(words);
  EXPECT_EQ(finished.code, 2) << finished.err;
  EXPECT_EQ(lines_of(finished.err).size(), 1U) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr(says));
}

TEST(GraphResume, WhatCannotGoOnIsToldInOneLine) {
  const test::TemporaryFolder folder;
  const std::string out = folder / "run";
  ASSERT_EQ(run(chain_words("2", {"--out", out})).code, 0);
  const std::string before = test::read_file(out + "/metrics.jsonl");
  const Words resume{"lab", "chains", "--resume", out};
  expect_no_resume(joined(resume, {"--epochs", "3"}),
                   "--resume: the run began with 2 as --epochs, got 3; it continues as it began");
  expect_no_resume(joined(resume, {"--lr", "0.1"}), "the run began without it as --lr, got 0.1");
  expect_no_resume(joined(resume, {"--models", "mlp"}), "with mlp,kernel as --models, got mlp");
  expect_no_resume(joined(resume, {"--out", folder / "other"}), "--out cannot be given as well");
  expect_no_resume(joined(resume, {"--overwrite"}), "--overwrite cannot be given as well");
  expect_no_resume({"lab", "jets", "--resume", out}, "is not a run of nsimplex lab jets");
  expect_no_resume({"lab", "chains", "--resume", folder / "no"}, "No such file or directory");
  expect_no_resume({"lab", "chains", "--resume", ""}, "expected the folder of a run");
  std::filesystem::create_directories(folder / "empty");
  expect_no_resume({"lab", "chains", "--resume", folder / "empty"}, "has no config.toml");
  EXPECT_EQ(test::read_file(out + "/metrics.jsonl"), before);
  // What it has anyway, and what is of this call alone.
  EXPECT_EQ(run(joined(resume, {"--epochs", "2", "--ema", "0.90", "--threads", "2"})).code, 0);

  expect_no_resume(chain_words("3", {"--out", out}), "continue that run with --resume " + out);
  const Finished other = run({"lab", "jets", "--out", out});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, ::testing::Not(HasSubstr("--resume")));
}

TEST(FeatureResume, TrialsThatAreDoneStayAndTheRestHasTheSameBits) {
  const test::TemporaryFolder folder;
  std::string table = "a,b,c,d\n", labels = "kind\n", target = "y\n";
  for (int row = 0; row < 24; ++row) {
    const bool high = row % 2 == 1;
    table += (high ? "4." : "1.") + std::to_string(row % 7) + (high ? ",3." : ",1.") +
             std::to_string(row % 5) + ",1." + std::to_string((row * 3) % 10) + ",2." +
             std::to_string((row * 7) % 10) + "\n";
    labels += high ? "high\n" : "low\n";
  }
  test::write_file(folder / "table.csv", table);
  test::write_file(folder / "labels.csv", labels);
  const Words model{
      "--seeds",       "2", "--width",          "8", "--heads",     "2",
      "--layers",      "1", "--restore-epochs", "1", "--epochs",    "2",
      "--embed-steps", "5", "--threads",        "1", "--encodings", "none,cape,cape-random"};
  const Words studied{"--labels", folder / "labels.csv"};
  const std::vector<std::pair<std::string, Words>> commands{
      {"classify", joined({folder / "table.csv", "--splits", "2"}, studied)},
      {"cluster", joined({folder / "table.csv"}, studied)},
      {"regress", {folder / "table.csv", "--splits", "2"}},
      {"perturb",
       {"--nodes", "8", "--degree", "1", "--control-rows", "60", "--rows", "8", "--doubles", "2",
        "--asked", "2", "--most-changed", "4"}}};
  for (const auto& [name, words] : commands) {
    SCOPED_TRACE(name);
    const std::string out = folder / name, file = out + "/metrics.jsonl";
    const Finished first =
        run(joined(joined({"causal", "task", name}, words), joined(model, {"--out", out})));
    ASSERT_EQ(first.code, 0) << first.err;
    const std::string whole = test::read_file(file);
    const auto expected = lines_in(out);
    // As a run began before the command had this name.
    std::string config = test::read_file(out + "/config.toml");
    ASSERT_THAT(config, HasSubstr("# nsimplex causal task " + name));
    test::write_file(out + "/config.toml", config.erase(config.find("task "), 5));
    const Words resume{"causal", "task", name, "--resume", out};
    // Killed within the fifth line, and just before the summary.
    size_t fifth = 0;
    for (int line = 0; line < 4; ++line) fifth = whole.find('\n', fifth) + 1;
    for (const size_t cut : {fifth + 20, whole.find("\"trials\"") - 40}) {
      test::write_file(file, whole.substr(0, cut));
      const Finished resumed = run(resume);
      EXPECT_EQ(resumed.code, 0) << resumed.err;
      EXPECT_EQ(resumed.out, first.out);
      EXPECT_EQ(lines_in(out), expected);
    }
    test::write_file(file, whole);
    const Finished again = run(resume);
    EXPECT_EQ(again.out, first.out);
    EXPECT_THAT(again.err, HasSubstr("had been finished"));
    EXPECT_EQ(test::read_file(file), whole);
    expect_no_resume(joined(resume, {"--seeds", "3"}), "the run began with 2 as --seeds, got 3");
  }
}

TEST(FeatureResume, CtrlCSaysHowTheRunGoesOn) {
  const test::TemporaryFolder folder;
  const std::string out = folder / "run";
  Process process({"causal", "task",           "perturb", "--nodes",        "8", "--degree",
                   "1",      "--control-rows", "60",      "--rows",         "8", "--doubles",
                   "2",      "--asked",        "2",       "--most-changed", "4", "--epochs",
                   "100000", "--encodings",    "none",    "--out",          out});
  ASSERT_TRUE(process.wait_for_error_output("perturb none"));
  process.send(SIGINT);
  const Finished stopped = process.wait();
  EXPECT_EQ(stopped.code, 130);
  EXPECT_THAT(stopped.err,
              HasSubstr("continue with: nsimplex causal task perturb --resume " + out));
}

}  // namespace
}  // namespace nsimplex::cli::testing
