// Former names of options, and what a wrong value is answered with, over the options of all commands.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/config_file.h"
#include "cli/every_command.h"
#include "cli/former_options.h"
#include "cli/process.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class EveryOption : public ::testing::Test {
 protected:
  // Calls `visit(path, option)` for the options of all commands.
  template <class Visit>
  void for_each_option(const Visit& visit) {
    for (const Words& path : line_.commands()) {
      SCOPED_TRACE(::testing::PrintToString(path));
      for (const CLI::Option* option : line_.command(path).get_options()) visit(path, *option);
    }
  }

  // The least words of a command, and one more.
  Words with_option(const Words& path, const std::string& word) {
    return joined(least_words(line_, path), {word});
  }

  std::string config_after(const Words& path, const Words& words) {
    EXPECT_EQ(line_.parse(words), "") << ::testing::PrintToString(words);
    return config_text(line_.command(path));
  }

  ParsedLine line_;
  test::TemporaryFolder folder_;
};

std::string value_for(const CLI::Option& option) {
  const std::vector<std::string> choices = choices_of(option);
  if (!choices.empty()) return choices.back();
  return option_value(option).starts_with("X") ? "0.5" : "7";
}

TEST_F(EveryOption, HasTheSameEffectByItsFormerName) {
  size_t tried = 0;
  for_each_option([&](const Words& path, const CLI::Option& option) {
    const std::string now = option.get_single_name();
    const std::string before = saved_option(line_.command(path), now);
    if (before == now) return;
    ++tried;
    const std::string value = option.get_expected_min() == 0 ? "" : "=" + value_for(option);
    const std::string config = config_after(path, with_option(path, "--" + now + value));
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(config_after(path, with_option(path, "--" + before + value)), config);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              fmt::format("nsimplex: --{} is now --{}; the old name works until version 0.4\n",
                          before, now));
    EXPECT_THAT(config, HasSubstr("\n" + before + "="));
    EXPECT_THAT(line_.parse(joined(with_option(path, "--" + now + value), {"--" + before + value})),
                StartsWith(fmt::format("--{}: expected once, got its former name --{} as well", now,
                                       before)));
    EXPECT_THAT(line_.command(path).help(), Not(HasSubstr("--" + before + " ")));

    // Files of both names are read.
    std::string renamed = config;
    renamed.replace(renamed.find("\n" + before + "=") + 1, before.size(), now);
    for (const std::string& text : {config, renamed}) {
      const std::string file = test::write_file(folder_ / "config.toml", "# nsimplex\n" + text);
      EXPECT_EQ(config_after(path, joined(path, {"--config", file})), config);
    }
  });
  EXPECT_GT(tried, 35U);
}

TEST_F(EveryOption, FormerNamesAreNoValuesAndNoOtherCommandHasThem) {
  // The text to continue is --dim, and everything after -- is an argument.
  EXPECT_EQ(line_.parse({"lm", "sample", "run", "--prompt", "--dim"}), "");
  EXPECT_THAT(line_.parse({"causal", "fit", "--", "--dim"}), "");
  EXPECT_THAT(line_.parse({"causal", "fit", "a.csv", "--learning-rate", "3"}),
              HasSubstr("unknown option --learning-rate"));
  EXPECT_THAT(line_.parse({"causal", "task", "classify", "a.csv", "--learning-rate", "3"}),
              HasSubstr("did you mean --lr?"));
  EXPECT_THAT(line_.parse({"causal", "simulate", "--observations", "30"}),
              HasSubstr("did you mean --rows?"));
}

TEST_F(EveryOption, AnswersAWrongValueWithWhatItExpects) {
  const std::vector<std::string> values{"x",
                                        "1.5",
                                        "-7",
                                        "nan",
                                        "1e999",
                                        "",
                                        "inf",
                                        "{}",
                                        "3000000000",
                                        "[x]",
                                        "99999999999999999999"};
  size_t refused = 0;
  for_each_option([&](const Words& path, const CLI::Option& option) {
    if (option.get_positional() || option.get_name() == "--config" || option.get_name() == "--help")
      return;
    for (const std::string& value : values) {
      const std::string error = line_.parse(with_option(path, option.get_name() + "=" + value));
      // It passes every comparison with the ends of a range. Python reads the numbers of pays.
      EXPECT_FALSE(path.back() != "pays" && error.empty() && value == "nan" &&
                   option_value(option).starts_with("X"))
          << option.get_name();
      if (error.empty() || option.get_name() == "--resume") continue;
      if (value.empty() && option.get_expected_min() > 0) continue;  // takes the next word
      ++refused;
      EXPECT_THAT(error, StartsWith(option.get_name() + ": expected "));
      EXPECT_THAT(error, HasSubstr(", got "));
    }
    const std::string error = line_.parse(joined(least_words(line_, path), {option.get_name()}));
    if (option.get_expected_min() == 0) return;
    EXPECT_THAT(error, AllOf(StartsWith(option.get_name() + ": expected "),
                             ContainsRegex("got (nothing|it 2 times) \\(see")));
  });
  EXPECT_GT(refused, 2000U);
}

TEST_F(EveryOption, ShowsItsValueByLettersThatSayWhatItIs) {
  for_each_option([&](const Words&, const CLI::Option& option) {
    const std::string shown = option_value(option);
    EXPECT_THAT(shown, Not(ContainsRegex("INT|FLOAT|BOOLEAN"))) << option.get_name();
    if (!choices_of(option).empty()) {
      EXPECT_THAT(shown, Not(HasSubstr("TEXT"))) << option.get_name();
    }
  });
  const auto shown = [&](const Words& path, const char* option) {
    return option_value(*line_.command(path).get_option(option));
  };
  EXPECT_EQ(shown({"lm", "train"}, "--device"), "cpu|cuda");
  EXPECT_EQ(shown({"lm", "train"}, "--width"), "N");
  EXPECT_EQ(shown({"lm", "train"}, "--lr"), "X");
  EXPECT_EQ(shown({"lm", "train"}, "--window"), "N,...");
  EXPECT_EQ(shown({"causal", "fit"}, "--estimator"), "NAME");
}

struct Answer {
  Words words;
  std::string says;
};

TEST_F(EveryOption, SaysItsLimitsAndChoices) {
  const std::vector<Answer> table{
      {{"causal", "simulate", "--degree", "1.5"},
       "--degree: expected a whole number from 0 to 65536, got 1.5 (see"},
      {{"lm", "train", "--steps", "x"}, "--steps: expected a whole number, got 'x' (see"},
      {{"lm", "train", "--steps"}, "--steps: expected a whole number, got nothing (see"},
      {{"lm", "train", "--lr", "nan"}, "--lr: expected a number, got nan (see"},
      {{"lm", "train", "--window", "3,y"}, "--window: expected a whole number, got 'y' (see"},
      {{"lm", "train", "--steps", "1", "--steps", "2"}, "--steps: expected once, got it 2 times"},
      {{"lm", "train", "--json=perhaps"}, "--json: expected true or false, got 'perhaps' (see"},
      {{"lm", "train", "--seed", "-1"},
       "--seed: expected a whole number from 0 to 18446744073709551615, got -1 (see"},
      {{"causal", "simulate", "--graph", "tree"}, "--graph: expected one of er, sf, got 'tree'"},
      {{"causal", "simulate", "--weights", "1"}, "--weights: expected 2 values, got 1 (see"},
      {{"causal", "simulate", "--weights", "1,2,3"}, "--weights: expected 2 values, got 3 (see"},
      {{"causal", "fit", "a.csv", "--comment", "no"},
       "--comment: expected one character, got 'no'"},
      {{"lm", "train", "--out"}, "--out: expected a folder, got nothing (see"}};
  for (const Answer& each : table) EXPECT_THAT(line_.parse(each.words), StartsWith(each.says));
}

TEST_F(EveryOption, IsAListInOneWordUnlessOfFilesOrAnArgument) {
  for_each_option([&](const Words&, const CLI::Option& option) {
    const bool of_words = option.get_positional() || option_value(option).ends_with("FILE...");
    EXPECT_TRUE(!is_list(option) || option.get_allow_extra_args() == of_words) << option.get_name();
  });
  EXPECT_EQ(line_.parse({"graph", "expressivity", "a.g6", "b.g6"}), "");
  const Words perturb{"causal", "task", "perturb"};
  for (const Words& words : std::vector<Words>{{"--use-columns", "a,b"},
                                               {"--leave-out", "a", "--leave-out", "b,c"},
                                               {"--encodings", "none,cape"},
                                               {"--na-values", "none"}}) {
    EXPECT_THAT(config_after(perturb, joined(joined(perturb, words), {"t.csv"})),
                HasSubstr("TABLE=\"t.csv\"\n"));
  }
  EXPECT_THAT(config_after({"lm", "train"}, {"lm", "train", "--text", "a", "b"}),
              HasSubstr("text=[\"a\", \"b\"]"));
  EXPECT_THAT(line_.parse({"lm", "train", "--window", "4", "16"}),
              HasSubstr("unexpected argument"));
}

TEST(Version, IsAnOptionAndACommand) {
  const std::string version = run({"--version"}).out;
  EXPECT_THAT(version, ContainsRegex("^nsimplex [0-9.]+\n$"));
  EXPECT_EQ(run({"-V"}).out, version);
  EXPECT_EQ(run({"version"}).out, version);
  EXPECT_EQ(run({"-h"}).out, run({"--help"}).out);
}

}  // namespace
}  // namespace nsimplex::cli::testing
