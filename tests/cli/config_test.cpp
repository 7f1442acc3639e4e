// config.toml of a run reads back with --config to the same options, whatever the command is and
// whatever its texts hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cli/config_file.h"
#include "cli/every_command.h"
#include "cli/process.h"
#include "cli/toml.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What options hold that are hard to write down. An argument that begins with - is one of CLI11's
// flags, a [text] in brackets is a list to it, so these come by the file alone.
const std::vector<std::string> kHostile{"a b",
                                        "",
                                        "\"",
                                        "'",
                                        "it's \"so\"",
                                        "\\",
                                        "\\n",
                                        "a\\",
                                        "a\nb",
                                        "a\tb",
                                        "\r\n",
                                        "a:b:c",
                                        "#",
                                        "a # b",
                                        "=",
                                        "a = b",
                                        "[",
                                        "]",
                                        "a[1]",
                                        "{}x",
                                        "é ü 漢字 😀",
                                        "\x01\x1B[0m\x7F",
                                        "\xFF\xFE raw",
                                        "true",
                                        "007",
                                        "1e5",
                                        "0x10",
                                        "'''",
                                        "\"\"\"",
                                        " leading",
                                        "trailing ",
                                        "%%x",
                                        "$HOME",
                                        "`x`",
                                        "\xEF\xBB\xBF"
                                        "bom",
                                        "nan",
                                        "1_000",
                                        "a.b",
                                        "../x y/z.csv"};

using Results = std::map<std::string, std::vector<std::string>>;

Results given(CLI::App& command) {
  Results results;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0) results[option->get_name()] = option->reduced_results();
  }
  return results;
}

bool is_text_list(const CLI::Option& option) {
  return option.get_items_expected_max() > 1 && option.get_items_expected_min() <= 1;
}

class EveryCommand : public ::testing::Test {
 protected:
  // Parses `words`, writes what a run of it writes, and parses that alone.
  void expect_round_trip(const Words& path, const Words& words) {
    ASSERT_EQ(line_.parse(words), "");
    CLI::App& command = line_.command(path);
    const Results first = given(command);
    const std::string text = config_text(command);
    const std::string file = test::write_file(folder_ / "config.toml", "# nsimplex\n" + text);
    ASSERT_EQ(line_.parse(joined(path, {"--config", file})), "") << text;
    const Results second = given(command);
    for (const auto& [name, results] : first) {
      if (!command.get_option(name)->get_configurable()) continue;
      ASSERT_TRUE(second.contains(name)) << name << "\n" << text;
      EXPECT_EQ(second.at(name), results) << name << "\n" << text;
    }
    EXPECT_EQ(config_text(command), text);
  }

  ParsedLine line_;
  test::TemporaryFolder folder_;
};

TEST_F(EveryCommand, IsFound) { EXPECT_GE(line_.commands().size(), 35U); }

TEST_F(EveryCommand, DefaultsComeBack) {
  for (const Words& path : line_.commands()) {
    SCOPED_TRACE(::testing::PrintToString(path));
    expect_round_trip(path, least_words(line_, path));
  }
}

// CLI11 shows six digits of a number: a default that has more would come back as another.
TEST_F(EveryCommand, DefaultsAreWhole) {
  for (const Words& path : line_.commands()) {
    for (const CLI::Option* option : line_.command(path).get_options()) {
      std::string text = option->get_default_str();
      std::ranges::replace_if(text, [](char c) { return c == '[' || c == ']' || c == ','; }, ' ');
      std::istringstream words(text);
      for (std::string word; words >> word;) {
        double number = 0;
        if (!CLI::detail::lexical_cast(word, number) || number == std::floor(number)) continue;
        std::string digits = word.substr(0, word.find('e'));
        std::erase_if(digits, [](char c) { return c < '0' || c > '9'; });
        digits.erase(0, digits.find_first_not_of('0'));
        EXPECT_NE(digits.size(), 6U) << option->get_name() << " " << word;
      }
    }
  }
}

// Each option in turn with whatever it accepts of these.
TEST_F(EveryCommand, EveryValueOfEveryOptionComesBack) {
  size_t tried = 0;
  const std::vector<std::string> kPlain{"3", "0.25", "-1", "1e-3", "relu", "csv", "x1:2.5", "a:b"};
  for (const Words& path : line_.commands()) {
    SCOPED_TRACE(::testing::PrintToString(path));
    for (const CLI::Option* option : line_.command(path).get_options()) {
      if (!option->get_configurable()) continue;
      std::vector<Words> values{{}};  // a flag
      if (option->get_expected_min() > 0) {
        values.clear();
        for (const auto& list : {kHostile, kPlain}) {
          for (const std::string& value : list) values.push_back({value});
        }
      }
      const bool positional = option->get_positional();
      Words words = positional ? path : least_words(line_, path);
      for (const Words& value : values) {
        Words all = words;
        if (positional) {
          all = joined(all, value);
        } else {
          all.push_back(option->get_name() + (value.empty() ? "" : "=" + value.front()));
        }
        if (line_.parse(all) != "") continue;  // no number, say
        ++tried;
        expect_round_trip(path, all);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(tried, 3000U);
}

// Members of lists hold what would part them on the command line.
TEST_F(EveryCommand, ListsComeBack) {
  size_t tried = 0;
  Words members = kHostile;
  members.insert(members.end(), {"a,b", "[a,b]", "[a]", "-x", "--seed", "--"});
  std::string written;
  for (const std::string& member : members) {
    written += (written.empty() ? "[" : ", ") + toml_value(member);
  }
  written += "]";
  for (const Words& path : line_.commands()) {
    SCOPED_TRACE(::testing::PrintToString(path));
    CLI::App& command = line_.command(path);
    for (CLI::Option* option : command.get_options()) {
      if (!option->get_configurable() || !is_text_list(*option)) continue;
      const std::string name = option->get_single_name();
      const std::string file =
          test::write_file(folder_ / "list.toml", name + " = " + written + "\n");
      Words words = option->get_positional() ? path : least_words(line_, path);
      if (line_.parse(joined(words, {"--config", file})) != "") continue;  // numbers or known names
      ++tried;
      EXPECT_EQ(option->results(), members) << name;
      expect_round_trip(path, joined(words, {"--config", file}));
    }
  }
  EXPECT_GT(tried, 4U);
}

TEST_F(EveryCommand, HasAUsefulLineForASectionAndReadsAByteOrderMark) {
  for (const Words& path : line_.commands()) {
    const Words words = joined(least_words(line_, path), {"--config", folder_ / "c.toml"});
    test::write_file(folder_ / "c.toml", "json = true\n[model]\nsteps = 4\n");
    EXPECT_THAT(line_.parse(words), AllOf(HasSubstr("c.toml, line 2: expected name = value"),
                                          HasSubstr("[model]"), HasSubstr("steps = 500")));
    test::write_file(folder_ / "c.toml", "\xEF\xBB\xBFjson = true\r\n");
    EXPECT_EQ(line_.parse(words), "");
    EXPECT_TRUE(line_.command(path).get_option("--json")->as<bool>());
  }
}

TEST_F(EveryCommand, SaysWhereAFileIsWrong) {
  const auto error = [&](const std::string& text) {
    const std::string file = test::write_file(folder_ / "c.toml", text);
    return line_.parse({"lab", "molecules", "--config", file});
  };
  EXPECT_THAT(error("FILE = 'x'\nepochs = \"many\"\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("epochs"), HasSubstr("many")));
  EXPECT_THAT(error("FILE = 'x'\n\nsplit_seed = 3"),
              AllOf(HasSubstr("line 3"), HasSubstr("did you mean split-seed?")));
  EXPECT_THAT(error("FILE = ['x', 'y']"), HasSubstr("FILE: expected one value, got a list"));
  EXPECT_THAT(error("FILE = 'x'\nseed = 3\nseed = 3"), HasSubstr("line 3: 'seed' is given twice"));
  EXPECT_THAT(error("FILE = 'x'\noverwrite = true"), HasSubstr("on the command line only"));
  EXPECT_THAT(error("seed = 3"), HasSubstr("FILE is required"));
}

TEST(ConfigOfARun, WithAnArgumentRunsAgain) {
  const test::TemporaryFolder folder;
  std::string table = "a b,\"c,d\"\n";
  for (int row = 0; row < 40; ++row) {
    table += std::to_string(row % 7) + ".5," + std::to_string((row * row) % 11) + "\n";
  }
  const std::string file = test::write_file(folder / "it's a [table] \xC3\xA9.csv", table);
  const Finished first = run({"causal", "fit", file, "--json", "--out", folder / "one"});
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string config = folder / "one/config.toml";
  const Finished again = run({"causal", "fit", "--config", config, "--out", folder / "two"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(test::read_file(folder / "two/graph.csv"), test::read_file(folder / "one/graph.csv"));

  // Earlier versions wrote the argument in small letters.
  std::string text = test::read_file(config);
  text.replace(text.find("TABLE="), 5, "table");
  const std::string older = test::write_file(folder / "older.toml", text);
  const Finished third = run({"causal", "fit", "--config", older, "--out", folder / "third"});
  EXPECT_EQ(third.code, 0) << third.err;

  // Another table on the command line is the one that is read.
  const Finished other =
      run({"causal", "fit", folder / "absent.csv", "--config", config, "--out", folder / "three"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("absent.csv"));

  // The folder of the run is in its file as well, and it holds a run.
  const Finished same = run({"causal", "fit", "--config", config});
  EXPECT_EQ(same.code, 2);
  EXPECT_THAT(same.err, HasSubstr("--overwrite"));
}

TEST(ConfigOfARun, StaysOneLineBelowItsComment) {
  const test::TemporaryFolder folder;
  const std::string out = folder / "one\nseed = 5";
  ASSERT_EQ(run({"causal", "simulate", "--nodes", "3", "--rows", "9", "--out", out}).code, 0);
  const std::string config = test::read_file(out + "/config.toml");
  EXPECT_THAT(lines_of(config).front(), HasSubstr("one\\x0aseed = 5"));
  EXPECT_THAT(config, HasSubstr("\nseed=1\n"));
}

TEST(ConfigOfARun, HoldsWhatAPresetSays) {
  ParsedLine line;
  const Words path{"lab", "lm-compare"};
  ASSERT_EQ(line.parse(joined(path, {"--size", "fig8", "--steps", "5"})), "");
  EXPECT_THAT(config_text(line.command(path)),
              AllOf(HasSubstr("layers=12\n"), HasSubstr("steps=5\n"), HasSubstr("ordinary:wide")));
}

}  // namespace
}  // namespace nsimplex::cli::testing
