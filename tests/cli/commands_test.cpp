// What the commands print for machines and for people, and that `verify` holds on this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/attention_case.h"
#include "cli/process.h"
#include "cli/verify_command.h"
#include "io/input_file.h"
#include "support/error.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

// Every line must be one JSON object.
std::vector<json> json_lines(const Finished& finished) {
  std::vector<json> objects;
  for (const std::string& line : lines_of(finished.out)) {
    objects.push_back(json::parse(line, nullptr, false));
    EXPECT_TRUE(objects.back().is_object()) << line;
  }
  return objects;
}

TEST(Info, JsonNamesTheMachine) {
  const Finished finished = run({"info", "--json", "--threads", "1"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto objects = json_lines(finished);
  ASSERT_EQ(objects.size(), 1u);
  const json& info = objects.front();
  EXPECT_EQ(info["threads"], 1);
  EXPECT_THAT(info["simd_levels"].get<std::vector<std::string>>(), Contains(info["simd"]));
  EXPECT_THAT(info["devices"].get<std::vector<std::string>>(), Contains("cpu"));
  EXPECT_THAT(info["operators"].get<std::vector<std::string>>(), Contains("nsimplex::attention"));
  EXPECT_THAT(info["version"].get<std::string>(), HasSubstr("."));
  EXPECT_THAT(info["compiler"].get<std::string>(), MatchesRegex("[A-Za-z]+ [0-9.]+"));
  EXPECT_TRUE(info["processor"].is_string());
  EXPECT_FALSE(info["family"].get<std::string>().empty());
  EXPECT_THAT(info["commit"].get<std::string>(), MatchesRegex("[0-9a-f]+(-dirty)?|unknown"));
}

TEST(Info, TheTableFitsATerminalAndNamesEveryOperator) {
  const Finished finished = run({"info", "--operators"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, StartsWith(run({"info"}).out));
  EXPECT_THAT(run({"info"}).out, Not(HasSubstr("operators")));
  for (const std::string& line : lines_of(finished.out)) EXPECT_LE(line.size(), 100u) << line;
  const auto operators = json_lines(run({"info", "--json"})).front()["operators"];
  for (const std::string name : operators) {
    EXPECT_THAT(finished.out, HasSubstr(name.substr(name.rfind(':') + 1)));
  }
}

TEST(BenchAttention, JsonHasTheDocumentedFields) {
  const Finished finished =
      run({"bench",     "attention",  "--order",   "2",      "--batch",  "1",       "--heads",
           "2",         "--kv-heads", "1",         "--seq",  "48",       "--width", "16",
           "--window",  "8,16",       "--causal",  "--pass", "backward", "--dtype", "float32",
           "--threads", "1",          "--repeats", "2",      "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto objects = json_lines(finished);
  ASSERT_EQ(objects.size(), 1u);
  const json& line = objects.front();
  EXPECT_EQ(line["operator"], "attention");
  EXPECT_EQ(line["order"], 2);
  EXPECT_EQ(line["pass"], "backward");
  EXPECT_EQ(line["dtype"], "float32");
  EXPECT_EQ(line["threads"], 1);
  EXPECT_GE(line["workspace_bytes"], 0);
  for (const char* field : {"milliseconds", "gflops", "sgemm_gflops", "ratio"}) {
    EXPECT_GT(line[field].get<double>(), 0) << field;
  }
  EXPECT_NEAR(line["ratio"].get<double>(),
              line["gflops"].get<double>() / line["sgemm_gflops"].get<double>(), 1e-9);
  EXPECT_FALSE(line["family"].get<std::string>().empty());
  EXPECT_TRUE(line["processor"].is_string());
  EXPECT_EQ(line["simd"], json_lines(run({"info", "--json"})).front()["simd"]);
}

TEST(BenchAttention, ScalingReportsOneThreadAndAll) {
  const Finished finished = run({"bench", "attention", "--seq", "32", "--heads", "1", "--threads",
                                 "2", "--scaling", "--repeats", "1", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto objects = json_lines(finished);
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_EQ(objects[0]["threads"], 1);
  EXPECT_EQ(objects[1]["threads"], 2);
}

TEST(BenchAttention, FlagsReplaceThoseOfTheCase) {
  const Finished finished =
      run({"bench", "attention", "--case", "order2-gqa", "--heads", "2", "--dtype", "bf16", "--seq",
           "32", "--no-causal", "--threads", "1", "--repeats", "1", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json line = json_lines(finished).front();
  EXPECT_EQ(line["heads"], 2);
  EXPECT_EQ(line["dtype"], "bfloat16");
  EXPECT_EQ(line["seq"], 32);
  EXPECT_EQ(line["causal"], false);
  EXPECT_EQ(line["kv_heads"], 2);
  EXPECT_EQ(line["dim"], 128);
  EXPECT_EQ(line["window"], json({16, 128}));
}

TEST(BenchAttention, ACaseIsCausalOnlyIfItSaysSo) {
  const auto is_causal = [](const std::vector<std::string>& words) {
    const Finished finished = run(
        with({"bench", "attention", "--seq", "16", "--repeats", "1", "--threads", "1", "--json"},
             words));
    return json_lines(finished).front()["causal"].get<bool>();
  };
  EXPECT_TRUE(is_causal({}));
  EXPECT_TRUE(is_causal({"--case", "order2-gqa"}));
  EXPECT_FALSE(is_causal({"--case", "order2-all-256"}));
  EXPECT_TRUE(is_causal({"--case", "order2-all-256", "--causal"}));
}

TEST(Bench, WritesTheRunFolderAndRepeatsIt) {
  const test::TemporaryFolder folder;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"attention", "--case", "order2-short", "--seq", "32"},
        {"sparse", "--seq", "32", "--size", "4", "--heads", "2"}}) {
    const std::string first = (folder.path() / words[0]).string(), second = first + "_again";
    const std::vector<std::string> once{"--repeats", "1", "--threads", "1"};
    ASSERT_EQ(run(with(with({"bench"}, words), with(once, {"--out", first}))).code, 0);
    const Finished again =
        run({"bench", words[0], "--config", first + "/config.toml", "--out", second});
    ASSERT_EQ(again.code, 0) << again.err;
    const json line = json::parse(io::read_text(first + "/metrics.jsonl"));
    const json same = json::parse(io::read_text(second + "/metrics.jsonl"));
    EXPECT_EQ(line["kind"], "bench");
    for (const char* field : {"pass", "heads", "kv_heads", "seq", "dim", "order", "dtype"}) {
      EXPECT_EQ(line[field], same[field]) << field;
    }
    EXPECT_EQ(line["seq"], 32);
    // A run is never overwritten.
    EXPECT_EQ(run(with(with({"bench"}, words), with(once, {"--out", first}))).code, 2);
  }
}

TEST(BenchLevels, EveryLevelHasEveryMeasurementAndOneIsInUse) {
  const Finished finished = run({"bench", "attention", "--levels", "--seq", "8", "--repeats", "1",
                                 "--threads", "1", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto levels = json_lines(run({"info", "--json"})).front()["simd_levels"];
  const std::string in_use = json_lines(run({"info", "--json"})).front()["simd"];
  std::map<std::string, std::set<std::string>> measured;
  for (const json& line : json_lines(finished)) {
    EXPECT_EQ(line["kind"], "bench_level");
    const std::string level = line["level"];
    EXPECT_EQ(line["chosen"], level == in_use);
    EXPECT_EQ(line["reason"].get<std::string>().empty(), level != in_use);
    EXPECT_FALSE(line["family"].get<std::string>().empty());
    EXPECT_GT(line["gflops"].get<double>(), 0);
    EXPECT_GT(line["sgemm_gflops"].get<double>(), 0);
    measured[level].insert(line["dtype"].dump() + line["pass"].dump() + line["dim"].dump());
  }
  EXPECT_EQ(measured.size(), levels.size());
  for (const std::string level : levels) EXPECT_EQ(measured[level].size(), 8u) << level;
}

TEST(BenchLevels, TheTableMarksTheLevelInUse) {
  const Finished finished =
      run({"bench", "attention", "--levels", "--seq", "8", "--repeats", "1", "--threads", "1"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const std::string in_use = json_lines(run({"info", "--json"})).front()["simd"];
  EXPECT_THAT(finished.out, HasSubstr("processor: "));
  EXPECT_THAT(finished.out, HasSubstr(in_use + " *"));
  EXPECT_THAT(finished.out, HasSubstr("* " + in_use + " is in use: "));
}

TEST(BenchLevels, RefusesOptionsOfOtherCases) {
  const Finished finished = run({"bench", "attention", "--levels", "--order", "3"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("--levels: expected no other options than --seq, --repeats, "
                                      "--threads, --seed, --json, got --order"));
}

TEST(BenchSparse, CountsTheTuplesOfEveryPattern) {
  for (const std::string pattern : {"list", "product", "path"}) {
    for (const char* pass : {"forward", "backward"}) {
      const Finished finished =
          run({"bench", "sparse", "--pattern", pattern, "--seq", "32", "--size", "4", "--heads",
               "2", "--width", "12", "--pass", pass, "--repeats", "1", "--threads", "1", "--json"});
      ASSERT_EQ(finished.code, 0) << finished.err;
      const auto objects = json_lines(finished);
      ASSERT_EQ(objects.size(), 1u);
      const json& line = objects.front();
      EXPECT_EQ(line["operator"], "sparse_attention");
      EXPECT_EQ(line["pattern"], pattern);
      EXPECT_EQ(line["pass"], pass);
      EXPECT_GT(line["ratio"].get<double>(), 0);
      // A set of query i has min(i + 1, 4) keys; chains are at most as many as their pairs.
      const double tuples = line["tuples"].get<double>(), pairs = 2 * (1 + 4 + 9 + 29 * 16);
      if (pattern == "path") {
        EXPECT_TRUE(tuples > 0 && tuples <= pairs) << tuples;
      } else {
        EXPECT_EQ(tuples, pattern == "list" ? 2 * 32 * 4 : pairs);
      }
    }
  }
}

TEST(Verify, EveryCaseHoldsOnThisMachine) {
  const Finished finished = run({"verify", "--json"});
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  const auto objects = json_lines(finished);
  EXPECT_EQ(objects.size(), verification_cases().size());
  for (const json& object : objects) {
    EXPECT_TRUE(object["passed"].get<bool>()) << object["command"];
    EXPECT_THAT(object["command"].get<std::string>(), HasSubstr(object["case"].get<std::string>()));
  }
}

TEST(Verify, PrintsATableOfTheChosenCase) {
  const Finished finished = run({"verify", "--case", "order2-window", "--seed", "3"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(finished.out, HasSubstr("order2-window"));
  EXPECT_THAT(finished.out, HasSubstr("1 of 1 cases passed"));
}

TEST(Verify, AnErrorAboveItsLimitOrNotANumberFails) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE((Deviation{"out", 1e-7, 1e-6}.passed()));
  EXPECT_FALSE((Deviation{"out", 2e-6, 1e-6}.passed()));
  EXPECT_FALSE((Deviation{"out", nan, 1e-6}.passed()));
  CaseResult result{{"out", 0, 1}, {"query", 0, 1}};
  EXPECT_TRUE(result.passed());
  result.same_bits = false;
  EXPECT_FALSE(result.passed());
}

TEST(Report, SaysInOneLineWhatIsMissing) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "metrics.jsonl", "{\"step\":1,\"train_loss\":2.0}\n");
  // Stands for a Python without the package: it fails where the import would.
  const std::string python = test::write_file(folder / "python", "#!/bin/sh\nexit 1\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  setenv("NSIMPLEX_PYTHON", python.c_str(), 1);
  EXPECT_EQ(run({"report", folder.path().string()}).code, 1);
  setenv("NSIMPLEX_PYTHON", (folder / "none").c_str(), 1);
  const Finished finished = run({"report", folder.path().string()});
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, HasSubstr("NSIMPLEX_PYTHON"));
  EXPECT_EQ(lines_of(finished.err).size(), 1u);
  unsetenv("NSIMPLEX_PYTHON");
}

TEST(Cases, NamesAreFoundInBothTables) {
  EXPECT_EQ(find_case("order2-window").shape.order, 2);
  EXPECT_EQ(find_case("order1-4096").shape.seq, 4096);
  EXPECT_THROW(find_case("nobody"), InputError);
}

TEST(Cases, NoNameStandsForTwo) {
  std::set<std::string> names;
  for (const auto& cases : {verification_cases(), speed_cases()}) {
    for (const NamedCase& named : cases) EXPECT_TRUE(names.insert(named.name).second) << named.name;
  }
}

}  // namespace
}  // namespace nsimplex::cli::testing
