// What every command has in common: exit codes, one line of error, help, config files, clean pipes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "cli/every_command.h"
#include "cli/process.h"
#include "support/printable.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::vector<std::string> kShort{"bench",   "attention", "--seq",     "32",
                                      "--heads", "1",         "--repeats", "2"};

struct BadUsage {
  std::vector<std::string> arguments;
  std::string says;
};

void PrintTo(const BadUsage& usage, std::ostream* stream) {
  *stream << "nsimplex";
  for (const std::string& argument : usage.arguments) *stream << ' ' << argument;
}

class BadUsageTest : public ::testing::TestWithParam<BadUsage> {};

TEST_P(BadUsageTest, ExitsWithTwoAndOneClearLine) {
  const Finished finished = run(GetParam().arguments);
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(lines_of(finished.err).size(), 1u) << finished.err;
  EXPECT_THAT(finished.err, StartsWith("nsimplex: "));
  EXPECT_THAT(finished.err, HasSubstr(GetParam().says));
}

// In a folder that is removed when the program ends.
std::string missing(const char* name) {
  static const test::TemporaryFolder folder;
  return folder / name;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadUsageTest,
    ::testing::Values(
        BadUsage{{}, "expected a command"}, BadUsage{{"bench"}, "expected a command: attention"},
        BadUsage{{"bnch"}, "did you mean bench?"}, BadUsage{{"bench", "atention"}, "attention?"},
        BadUsage{{"zzzzzzzz"}, "unknown command 'zzzzzzzz' (see"},
        BadUsage{{"info", "--jsno"}, "unknown option --jsno; did you mean --json?"},
        BadUsage{{"info", "--thread=3"}, "did you mean --threads?"},
        BadUsage{{"info", "--qqqqqqqqqqqq"}, "unknown option --qqqqqqqqqqqq (see"},
        BadUsage{{"info", "surplus"}, "surplus"}, BadUsage{{"info", "--threads", "x"}, "--threads"},
        BadUsage{{"info", "--threads", "-1"}, "--threads"},
        BadUsage{{"info", "--threads", "99999999999999999999"}, "--threads"},
        BadUsage{{"verify", "--seed", "99999999999999999999999999"}, "--seed"},
        BadUsage{{"verify", "--seed", "-1"}, "--seed"},
        BadUsage{{"verify", "--seed=1e3"}, "--seed"},
        BadUsage{{"bench", "attention", "--seq", "9223372036854775808"}, "--seq"},
        BadUsage{{"verify", "--seed"}, "--seed"},
        BadUsage{{"info", "--device", "cpu"}, "unknown option --device"},
        BadUsage{{"info", "--seed", "1"}, "unknown option --seed"},
        BadUsage{{"report", "runs", "--threads", "1"}, "unknown option --threads"},
        BadUsage{{"lm", "sample", "runs", "--device", "abacus"}, "abacus"},
        BadUsage{{"lm", "sample", "runs", "--device", "meta"}, "meta"},
        BadUsage{{"info", "--config", missing("a.toml")}, missing("a.toml")},
        BadUsage{{"bench", "attention", "--order", "0"}, "--order"},
        BadUsage{{"bench", "attention", "--order", "two"}, "--order"},
        BadUsage{{"bench", "attention", "--window", "3,-2"}, "--window"},
        BadUsage{{"bench", "attention", "--window", "1,2,3"}, "--window: expected 1 or 2 entries"},
        BadUsage{{"bench", "attention", "--heads", "3", "--kv-heads", "2"}, "--kv-heads"},
        BadUsage{{"bench", "attention", "--width", "0"}, "--width"},
        BadUsage{{"bench", "attention", "--dtype", "int8"}, "int8"},
        BadUsage{{"bench", "attention", "--pass", "sideways"}, "sideways"},
        BadUsage{{"bench", "attention", "--keys", "0,4"}, "no admissible tuple"},
        BadUsage{{"bench", "attention", "--case", "nobody"}, "nobody"},
        BadUsage{{"bench", "sparse", "--pattern", "graph"}, "graph"},
        BadUsage{{"bench", "sparse", "--size", "0"}, "--size"},
        BadUsage{{"bench", "sparse", "--heads", "3", "--kv-heads", "2"}, "--kv-heads"},
        BadUsage{{"bench", "sparse", "--form", "determinant", "--width", "4"}, "multiple of 3"},
        BadUsage{{"lab", "match5"}, "did you mean match"},
        BadUsage{{"graph", "expressivity"}, "expected a file of graphs, or --control"},
        BadUsage{{"graph", "expressivity", missing("a.g6")}, missing("a.g6")},
        BadUsage{{"graph", "expressivity", "--control", "2", "--order", "4"}, "--order"},
        BadUsage{{"graph", "expressivity", "--control", "2", "--exact"}, "--control"},
        BadUsage{
            {"graph", "expressivity", "--control", "2", "--form", "simplicial", "--layers", "3"},
            "--layers: expected no colour refinement, which has none, got --form simplicial"},
        BadUsage{{"lm", "train", "--text", "no.txt", "--topk", "3"},
                 "--topk: expected --sparse topk, path, window+topk, sinks+topk or "
                 "window+sinks+topk with it, "
                 "got window"},
        BadUsage{{"lm", "train", "--text", "no.txt", "--sparse", "linear", "--indexer", "light"},
                 "--indexer: expected --sparse topk, path, window+topk, sinks+topk or "
                 "window+sinks+topk with "
                 "it, got linear"},
        BadUsage{{"causal", "fit", "no.csv", "--rank", "3"},
                 "--rank: expected estimator lowrank or paper-lowrank with it, got auto"},
        BadUsage{{"causal", "fit", "no.csv", "--sample-latents"},
                 "--sample-latents: expected estimator paper or paper-lowrank with it, got auto"},
        BadUsage{{"causal", "fit", "no.csv", "--sparsity", "0.1"},
                 "--sparsity: expected estimator logdet, paper, paper-lowrank, lowrank, notears or "
                 "spectral with it, got auto"},
        BadUsage{{"causal", "fit", "no.csv", "--nonlinear", "--estimator", "notears"},
                 "--nonlinear: expected estimator auto, order or logdet with it, got notears"},
        BadUsage{{"causal", "fit", "no.csv", "--screen-by", "variance"},
                 "--screen-by: expected --screen with it, got variance alone"},
        BadUsage{{"verify", "--case", "nobody"}, "nobody"}, BadUsage{{"report"}, "DIR is required"},
        BadUsage{{"report", missing("runs")}, "'" + missing("runs") + "' is not a directory"}));

TEST(Help, EveryCommandShowsAnExampleAndTheCommonOptions) {
  const std::vector<std::vector<std::string>> commands{{"info"},
                                                       {"verify"},
                                                       {"report"},
                                                       {"bench", "attention"},
                                                       {"bench", "sparse"},
                                                       {"lab", "match2"},
                                                       {"lab", "match3"},
                                                       {"lab", "match4"},
                                                       {"graph", "expressivity"}};
  for (const auto& command : commands) {
    const Finished finished = run(with(command, {"--help"}));
    EXPECT_EQ(finished.code, 0);
    EXPECT_THAT(finished.out, HasSubstr("Examples:\n  "));
    for (const char* option : {"--json", "--config"}) {
      EXPECT_THAT(finished.out, HasSubstr(option));
    }
    EXPECT_EQ(finished.err, "");
  }
}

TEST(Help, IsACommandToo) {
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  EXPECT_EQ(run({"help", "lm", "train"}).out, run({"lm", "train", "--help"}).out);
  EXPECT_EQ(run({"help", "lab", "match3"}).out, run({"lab", "match3", "--help"}).out);
  EXPECT_THAT(run({"help", "lm", "trian"}).err, HasSubstr("did you mean train?"));
  EXPECT_THAT(run({"train"}).err, HasSubstr("did you mean lm train or graph train?"));
}

TEST(Help, HasLinesOfAtMost100Characters) {
  ParsedLine line;
  for (const Words& path : line.commands()) {
    for (Words part = path;; part.pop_back()) {
      for (const std::string& text : lines_of(line.command(part).help())) {
        EXPECT_LE(text.size(), 100u) << text;
      }
      if (part.empty()) break;
    }
  }
}

TEST(Help, NamesTheChoices) {
  ParsedLine line;
  for (const Words& path : line.commands()) {
    const std::string help = line.command(path).help();
    for (const CLI::Option* option : line.command(path).get_options()) {
      for (const std::string& choice : choices_of(*option)) EXPECT_THAT(help, HasSubstr(choice));
    }
  }
  EXPECT_THAT(choices_of(*line.command({"bench", "attention"}).get_option("--pass")),
              ElementsAre("forward", "backward"));
}

TEST(Json, MayComeBeforeTheCommand) {
  const Finished before = run({"--json", "info", "--threads", "1"});
  EXPECT_EQ(before.code, 0) << before.err;
  EXPECT_EQ(before.out, run({"info", "--threads", "1", "--json"}).out);
}

TEST(Help, OffersTheCommonOptionsThatActInACommand) {
  struct Offered {
    std::vector<std::string> command, does, does_not;
  };
  const std::vector<Offered> table{
      {{"info"}, {"--threads"}, {"--out", "--seed", "--device"}},
      {{"verify"}, {"--seed", "--threads"}, {"--out", "--device"}},
      {{"report"}, {}, {"--out", "--seed", "--threads", "--device"}},
      {{"bench", "attention"}, {"--out", "--seed", "--threads"}, {"--device"}},
      {{"bench", "sparse"}, {"--out", "--seed", "--threads"}, {"--device"}},
      {{"lab", "match3"}, {"--out", "--seed", "--threads"}, {"--device"}},
      {{"lab", "chains"}, {"--out", "--seed", "--threads"}, {"--device"}},
      {{"graph", "expressivity"}, {"--out", "--seed", "--threads"}, {"--device"}},
      {{"analyze", "curvature"}, {"--out", "--threads"}, {"--seed", "--device"}},
      {{"analyze", "model"}, {"--out", "--threads"}, {"--seed", "--device"}},
      {{"analyze", "attention"}, {"--threads"}, {"--out", "--seed", "--device"}},
      {{"lab", "pays"}, {"--out", "--threads"}, {"--seed", "--device"}},
      {{"lab", "transfer"}, {"--out", "--seed", "--threads", "--device"}, {}},
      {{"causal", "fit"}, {"--out", "--seed", "--threads"}, {"--device"}},
      {{"causal", "encode"}, {"--out", "--threads"}, {"--seed", "--device"}},
      {{"lm", "train"}, {"--out", "--seed", "--threads", "--device"}, {}},
      {{"lab", "lm-compare"}, {"--out", "--seed", "--threads", "--device"}, {}},
      {{"lab", "lm-scaling"}, {"--out", "--seed", "--threads", "--device"}, {}},
      {{"lm", "sample"}, {"--seed", "--threads", "--device"}, {"--out"}},
      {{"lm", "eval"}, {"--threads", "--device"}, {"--out", "--seed"}},
  };
  for (const Offered& each : table) {
    const std::string help = run(with(each.command, {"--help"})).out;
    // As an option is listed: at the head of a line.
    const auto listed = [](const std::string& option) { return HasSubstr("\n  " + option + " "); };
    for (const std::string& option : each.does) EXPECT_THAT(help, listed(option));
    for (const std::string& option : each.does_not) {
      EXPECT_THAT(help, ::testing::Not(listed(option))) << each.command.back();
    }
  }
}

TEST(Config, NamesAreOptionsOfTheCommandAndTheCommandLineWins) {
  const test::TemporaryFolder folder;
  const std::string file = test::write_file(folder / "bench.toml",
                                            "order = 3\nseq = 16\nheads = 1\nrepeats = 1\nwindow = "
                                            "[2, 3, 4]\ncausal = true\njson = true\n");
  const Finished finished = run({"bench", "attention", "--config", file, "--seq", "24"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("\"order\":3"));
  EXPECT_THAT(finished.out, HasSubstr("\"seq\":24"));
  EXPECT_THAT(finished.out, HasSubstr("\"window\":[2,3,4]"));
}

TEST(Config, AnUnknownNameIsAnErrorWithTheNearestOne) {
  const test::TemporaryFolder folder;
  const std::string file = test::write_file(folder / "typo.toml", "ordre = 3\n");
  const Finished finished = run({"bench", "attention", "--config", file});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("'ordre' in the config file; did you mean order?"));
}

// Names and texts from a file that would write the title of a terminal, turn the writing or begin a
// line of their own.
TEST(Messages, ShowNoNameAsItStands) {
  const std::string name = "a\x1b]0;title\x07\n\xc2\x9b\xe2\x80\xae\xff";
  const test::TemporaryFolder folder;
  const std::string csv = test::write_file(folder / "t.csv", "\"a\x1b[2J\nb\",c\n1,x\n2,3\n");
  const std::string config = test::write_file(folder / "c.toml", "\"a\x1b[2J\" = 1\n");
  const std::string section =
      test::write_file(folder / "s.toml", "[a\x1b[2J" + std::string(200000, 'a') + "]\n");
  const std::vector<std::vector<std::string>> commands = {
      {"causal", "fit", csv},
      {"causal", "fit", folder / name},
      {"causal", "fit", csv, "--use-columns", name},
      {"info", "--config", config},
      {"info", "--config", section},
      {"info", "--config", folder / name},
      {"info", "--" + name},
      {name},
      {"lm", "eval", folder / name, "--text", csv}};
  for (const auto& command : commands) {
    const Finished finished = run(command);
    EXPECT_EQ(finished.code, 2) << finished.err;
    ASSERT_EQ(lines_of(finished.err).size(), 1u) << finished.err;
    EXPECT_EQ(printable(lines_of(finished.err)[0]), lines_of(finished.err)[0]);
    EXPECT_LT(finished.err.size(), 1000u);
  }
}

TEST(Pipes, NoControlCharactersReachAFile) {
  const Finished finished = run(kShort);
  ASSERT_EQ(finished.code, 0) << finished.err;
  for (const std::string& text : {finished.out, finished.err}) {
    for (const char c : text)
      EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 32) << int{c};
  }
}

TEST(Pipes, JsonKeepsStandardErrorSilent) {
  const Finished finished = run(with(kShort, {"--json"}));
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.err, "");
}

// Command lines that write to standard output: the help of every command and group, and results.
std::vector<Words> writing_lines() {
  std::vector<Words> lines{{"--help"}, {"--version"}, {"help", "lm"}};
  ParsedLine line;
  for (const Words& path : line.commands()) {
    for (Words part = path; !part.empty() && part.back() != "lab"; part.pop_back()) {
      lines.push_back(joined(part, {"--help"}));
    }
  }
  for (const Words& words : std::vector<Words>{{"info"}, {"completion", "bash"}, kShort}) {
    lines.push_back(words);
    lines.push_back(joined(words, {"--json"}));
  }
  return lines;
}

std::string text_of(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += word + " ";
  return text;
}

// The lines of standard error but for those of progress.
std::vector<std::string> complaints(const Finished& finished) {
  std::vector<std::string> lines = lines_of(finished.err);
  std::erase_if(lines, [](const std::string& each) { return !each.starts_with("nsimplex"); });
  return lines;
}

void redirect(int stream, const char* path) { dup2(open(path, O_WRONLY), stream); }

TEST(Pipes, AFullDiskIsSaidInOneLine) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  for (const Words& words : writing_lines()) {
    const Finished full = run_after([] { redirect(STDOUT_FILENO, "/dev/full"); }, words);
    EXPECT_EQ(full.code, 1) << text_of(words);
    EXPECT_THAT(complaints(full), ElementsAre("nsimplex: cannot write to standard output: No "
                                              "space left on device"))
        << text_of(words);
  }
}

TEST(Pipes, AClosedPipeEndsTheProcessQuietly) {
  const auto without_reader = [] {
    int ends[2];
    if (pipe(ends) != 0) return;
    close(ends[0]);
    dup2(ends[1], STDOUT_FILENO);
  };
  for (const Words& words : writing_lines()) {
    const Finished closed = run_after(without_reader, words);
    const bool help = words.front() == "help" || words.back().starts_with("--help") ||
                      words.back() == "--version";
    EXPECT_EQ(closed.code, help ? 0 : 1) << text_of(words);
    EXPECT_THAT(complaints(closed), ElementsAre()) << text_of(words);
  }
}

TEST(Pipes, AClosedOutputGoesIntoNoFile) {
  const test::TemporaryFolder folder;
  const std::string csv = test::write_file(folder / "t.csv", "a,b\n1,2\n2,5\n3,1\n4,4\n");
  const std::string out = folder / "run";
  const Finished closed =
      run_after([] { close(STDOUT_FILENO); }, {"causal", "fit", csv, "--out", out});
  EXPECT_EQ(closed.code, 1);
  EXPECT_THAT(closed.err,
              HasSubstr("nsimplex: cannot write to standard output: Bad file descriptor\n"));
  const std::vector<std::string> said =
      lines_of(run({"causal", "fit", csv, "--out", folder / "plain"}).out);
  ASSERT_FALSE(said.empty());
  for (const auto& entry : std::filesystem::directory_iterator(out)) {
    EXPECT_THAT(test::read_file(entry.path()), Not(HasSubstr(said.front()))) << entry.path();
  }
}

TEST(Pipes, AFullOrClosedErrorStreamStopsNothing) {
  for (const char* path : {"/dev/full", ""}) {
    const auto change = [path] {
      if (*path) return redirect(STDERR_FILENO, path);
      close(STDERR_FILENO);
    };
    const Finished finished = run_after(change, kShort);
    EXPECT_EQ(finished.code, 0);
    EXPECT_THAT(finished.out, HasSubstr("GFLOP/s"));
    EXPECT_EQ(run_after(change, {"nobody"}).code, 2);
  }
}

TEST(Interrupt, CtrlCEndsWith130AndKeepsWhatWasReached) {
  Process process({"bench", "attention", "--seq", "256", "--heads", "1", "--repeats", "100000"});
  ASSERT_TRUE(process.wait_for_error_output("round 1/"));
  process.send(SIGINT);
  const Finished finished = process.wait();
  EXPECT_EQ(finished.code, 130);
  EXPECT_THAT(finished.err, HasSubstr("stopping"));
  EXPECT_THAT(finished.out, HasSubstr("GFLOP/s"));  // the medians of the rounds so far
}

TEST(Interrupt, TheSecondCtrlCEndsAtOnce) {
  // One call of the plain version takes far longer than the two signals.
  Process process({"bench", "attention", "--seq", "2048", "--heads", "64", "--peers"});
  ASSERT_TRUE(process.wait_for_error_output("round 0/"));
  process.send(SIGINT);
  ASSERT_TRUE(process.wait_for_error_output("once more"));
  process.send(SIGINT);
  EXPECT_EQ(process.wait().signal, SIGINT);
}

}  // namespace
}  // namespace nsimplex::cli::testing
