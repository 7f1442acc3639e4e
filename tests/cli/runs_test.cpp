// A run never destroys a run: --out is refused where it holds one, before anything is computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "cli/every_command.h"
#include "cli/process.h"
#include "input_error_of.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path()] = test::read_file(entry.path());
  }
  return files;
}

class EveryRun : public ::testing::Test {
 protected:
  // Commands that write a run, which are those whose --out is a folder.
  std::vector<Words> commands() {
    std::vector<Words> commands;
    for (const Words& path : line_.commands()) {
      const CLI::Option* out = line_.command(path).get_option_no_throw("--out");
      if (out != nullptr && out->get_type_name() == "DIR") commands.push_back(path);
    }
    EXPECT_GE(commands.size(), 25U);
    return commands;
  }

  // The error of `words`, of a run that must be refused.
  std::string refusal(const Words& words) {
    EXPECT_EQ(line_.parse(words), "");
    return test::input_error_of([&] { line_.session().action(); });
  }

  ParsedLine line_;
  test::TemporaryFolder folder_;
};

TEST_F(EveryRun, RefusesTheFolderOfAnother) {
  const std::string out = folder_ / "run";
  for (const Words& path : commands()) {
    SCOPED_TRACE(::testing::PrintToString(path));
    const Words words = joined(least_words(line_, path), {"--out", out});
    for (const char* name : {"metrics.jsonl", "config.toml", "checkpoint.safetensors"}) {
      test::write_file(out + "/" + name, "{\"figure\": 1}\n");
      const auto before = contents(out);
      EXPECT_THAT(refusal(words), AllOf(HasSubstr("--out: " + out + " is not empty: " + name),
                                        HasSubstr("--overwrite")));
      EXPECT_EQ(contents(out), before);
      std::filesystem::remove_all(out);
    }
  }
}

TEST_F(EveryRun, HasTheOptionToOverwriteAndKeepsItOutOfItsFile) {
  for (const Words& path : commands()) {
    ASSERT_EQ(line_.parse(joined(least_words(line_, path), {"--overwrite"})), "");
    EXPECT_EQ(config_text(line_.command(path)).find("overwrite"), std::string::npos);
  }
}

struct Repeated {
  Words words;
  Words files;  // beside config.toml, info.json and metrics.jsonl
};

// Short runs of commands that write files of their own.
TEST_F(EveryRun, RefusesEachFileThatItWouldWrite) {
  const std::string made = folder_ / "made", ball = folder_ / "ball";
  const Words simulate{"causal", "simulate", "--nodes", "4", "--rows", "50"};
  const std::vector<Repeated> commands{
      {simulate,
       {"table.csv", "truth.csv", "truth.tsv", "truth.graphml", "truth.dot", "truth.gml"}},
      {{"causal", "fit", made + "/table.csv", "--truth", made + "/truth.csv"},
       {"graph.csv", "graph.tsv", "graph.graphml", "graph.dot", "graph.gml", "scores.csv",
        "truth.csv", "truth.tsv", "truth.graphml", "truth.dot", "truth.gml"}},
      {{"causal", "embed", made + "/truth.csv", "--steps", "5"},
       {"embedding.safetensors", "ball.csv", "edges.tsv"}},
      {{"causal", "encode", ball + "/embedding.safetensors", "--heads", "1"},
       {"angles.safetensors"}},
      {{"lab", "synthetic", "--seeds", "1", "--nodes", "4", "--rows", "50", "--steps", "3",
        "--all-hops", "1", "--generalities", "1", "--hops", "1"},
       {"embedding.safetensors", "ball.csv", "edges.tsv"}},
      {{"analyze", "curvature", made + "/truth.tsv"}, {"curvatures.safetensors"}}};
  ASSERT_EQ(run(joined(simulate, {"--out", made})).code, 0);
  ASSERT_EQ(run({"causal", "embed", made + "/truth.csv", "--dimension", "4", "--out", ball}).code,
            0);
  for (const Repeated& each : commands) {
    SCOPED_TRACE(each.words[1]);
    const std::string out = folder_ / ("of-" + each.words[1]);
    const Words words = joined(each.words, {"--threads", "1", "--out", out});
    const Finished first = run(words);
    ASSERT_LE(first.code, 1) << first.err;  // statements may fail
    Words expected = joined(each.files, {"config.toml", "info.json", "metrics.jsonl"});
    Words found;
    for (const auto& entry : std::filesystem::directory_iterator(out)) {
      found.push_back(entry.path().filename());
    }
    EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(expected));
    const auto before = contents(out);
    EXPECT_THAT(refusal(words), HasSubstr("metrics.jsonl"));
    EXPECT_EQ(contents(out), before);
    for (const std::string& file : each.files) {
      const std::string alone = folder_ / "alone";
      std::filesystem::remove_all(alone);
      test::write_file(alone + "/" + file, "mine");
      EXPECT_THAT(refusal(joined(each.words, {"--out", alone})), HasSubstr(file));
    }
    const Finished again = run(joined(words, {"--overwrite"}));
    EXPECT_EQ(again.code, first.code) << again.err;
    EXPECT_EQ(contents(out).size(), before.size());
  }
}

TEST_F(EveryRun, BeginsWhereNothingWouldBeLost) {
  const std::string out = folder_ / "run";
  const Words words{"lab", "attenuation", "--planes", "3", "--draws", "50", "--json", "--out", out};
  test::write_file(out + "/notes.txt", "mine");
  test::write_file(out + "/metrics.jsonl", "");  // a run that was ended before its first line
  EXPECT_LE(run(words).code, 1);
  EXPECT_GT(test::read_file(out + "/metrics.jsonl").size(), 0U);
  EXPECT_EQ(test::read_file(out + "/notes.txt"), "mine");
  const Finished again = run(words);
  EXPECT_EQ(again.code, 2);
  EXPECT_EQ(again.out, "");
  EXPECT_EQ(lines_of(again.err).size(), 1U);
}

}  // namespace
}  // namespace nsimplex::cli::testing
