#include "cli/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "input_error_of.h"

namespace nsimplex::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> values(const std::string& value) {
  const auto entries = parse_toml("x = " + value);
  EXPECT_EQ(entries.size(), 1U);
  return entries.empty() ? std::vector<std::string>{} : entries.front().values;
}

TEST(Toml, ReadsNumbersWordsTextsAndLists) {
  const auto entries = parse_toml(
      "\xEF\xBB\xBF# nsimplex\r\nsteps = 1_000 # many\n\n\"lr\" = -1e-3\rcausal=true\nform = word\n"
      "window = [16,\n  # the second\n  256 ,\n]\nempty = []\nkeys = 3, 4\nfile = 'a # b'");
  ASSERT_EQ(entries.size(), 8U);
  const std::vector<std::vector<std::string>> expected{
      {"1000"}, {"-1e-3"}, {"true"}, {"word"}, {"16", "256"}, {}, {"3", "4"}, {"a # b"}};
  const std::vector<std::string> names{"steps",  "lr",    "causal", "form",
                                       "window", "empty", "keys",   "file"};
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].name, names[i]);
    EXPECT_EQ(entries[i].values, expected[i]);
    EXPECT_EQ(entries[i].list, names[i] == "window" || names[i] == "empty" || names[i] == "keys");
  }
  EXPECT_EQ(entries[0].line, 2);
  EXPECT_EQ(entries[2].line, 5);
  EXPECT_EQ(entries[7].line, 13);
  EXPECT_THAT(parse_toml(""), IsEmpty());
}

TEST(Toml, ReadsEveryKindOfText) {
  EXPECT_THAT(values(R"("a\tb\\\"\u00e9\U0001F600")"),
              ElementsAre("a\tb\\\"\xC3\xA9\xF0\x9F\x98\x80"));
  EXPECT_THAT(values(R"('a\tb"')"), ElementsAre("a\\tb\""));
  EXPECT_THAT(values("\"\"\"\none\n\"two\" \\\n   three\"\"\"\""),
              ElementsAre("one\n\"two\" three\""));
  EXPECT_THAT(values("'''\none\\\n'two''''"), ElementsAre("one\\\n'two'"));
  EXPECT_THAT(values("[\"\", 'b,c', \"]\"]"), ElementsAre("", "b,c", "]"));
}

TEST(Toml, ErrorsNameTheLine) {
  const auto error = [](const std::string& text) {
    return test::input_error_of([&] { parse_toml(text); });
  };
  EXPECT_THAT(error("a = 1\n\n[model]\nb = 2"),
              HasSubstr("line 3: expected name = value, got the section \"[model]\""));
  EXPECT_THAT(error("[[model]]"), HasSubstr("line 1: expected name = value, got the section"));
  EXPECT_THAT(error("model.steps = 3"), HasSubstr("expected a name without a point"));
  EXPECT_THAT(error("steps"), HasSubstr("line 1: expected name = value"));
  EXPECT_THAT(error("= 3"), HasSubstr("expected name = value"));
  EXPECT_THAT(error("a ="), HasSubstr("expected a value"));
  EXPECT_THAT(error("a = two words"), HasSubstr("quotation marks, got \"two words\""));
  EXPECT_THAT(error("a = \"x\" y"), HasSubstr("expected the end of the line, got \"y\""));
  EXPECT_THAT(error("a = \"x\nb = 1"), HasSubstr("line 1: expected a \" to the text of line 1"));
  EXPECT_THAT(error("a = '''x\n\n"), HasSubstr("to the text of line 1"));
  EXPECT_THAT(error("a = [1,\n2"), HasSubstr("expected a ] to the list of line 1"));
  EXPECT_THAT(error("a = [1 2]"), HasSubstr("got \"1 2\""));
  EXPECT_THAT(error("a = [[1]]"), HasSubstr("no list inside a list"));
  EXPECT_THAT(error("a = {b = 1}"), HasSubstr("got a table"));
  EXPECT_THAT(error("a = \"\\q\""), HasSubstr("got \"\\q\""));
  EXPECT_THAT(error("a = \"\\ud800\""), HasSubstr("expected the number of a character"));
  EXPECT_THAT(error("a = \"\\u00\""), HasSubstr("expected hexadecimal digits"));
  EXPECT_THAT(error("\xFF\xFE"
                    "a"),
              HasSubstr("UTF-16"));
}

// Nesting is refused where it begins, and no text is shown whole.
TEST(Toml, RefusesWhatIsDeepOrLong) {
  std::string points = "[a", brackets = "a = ";
  for (int i = 0; i < 100'000; ++i) {
    points += ".a";
    brackets += "[";
  }
  for (const std::string& text : {points + "]\nb = 1\n", brackets, std::string(200'000, 'a'),
                                  "a = \"" + std::string(200'000, 'a')}) {
    try {
      parse_toml(text);
      ADD_FAILURE() << text.substr(0, 20);
    } catch (const InputError& error) {
      EXPECT_LT(std::string_view(error.what()).size(), 300u) << error.what();
    }
  }
}

TEST(Toml, QuotesWhatIsNoNumber) {
  for (const char* number : {"0", "-12", "0.5", "1e-08", "true", "inf", "18446744073709551615"}) {
    EXPECT_EQ(toml_value(number), number);
  }
  for (const char* text : {"", "007", ".5", "5.", "0x1F", "1_0", "+", "truth", "1 2", "-"}) {
    EXPECT_EQ(toml_value(text), "\"" + std::string(text) + "\"");
  }
  EXPECT_EQ(toml_value("a\"\\\n\x01"), "\"a\\\"\\\\\\n\\u0001\"");
}

TEST(Toml, EveryTextComesBack) {
  const std::string special = "\"'\\[]{},=#\n\r\t .eE+-0_u";
  const auto byte = rc::gen::oneOf(
      rc::gen::elementOf(special),
      rc::gen::map(rc::gen::inRange(1, 256), [](int value) { return static_cast<char>(value); }));
  const auto any_text = rc::gen::container<std::string>(byte);
  EXPECT_TRUE(rc::check([&] {
    const std::string text = *any_text;
    const auto list = *rc::gen::container<std::vector<std::string>>(any_text);
    std::string written = "a = " + toml_value(text) + "\nb = [";
    for (const std::string& member : list) written += toml_value(member) + ", ";
    const auto entries = parse_toml(written + "]\n");
    RC_ASSERT(entries.size() == 2U);
    RC_ASSERT(entries[0].values == std::vector<std::string>{text});
    RC_ASSERT(entries[1].values == list);
  }));
}

// Damage is an error or another text, never a crash.
TEST(Toml, AnyBytesAreReadOrRefused) {
  const std::vector<std::string> pieces{"a",      " = ", "\"",  "'",    "[",    "]",  ",",
                                        "\n",     "\\",  "\\u", "0041", "#",    "\r", "'''",
                                        "\"\"\"", "1",   ".",   "{",    "\xFF", "\t"};
  const auto any_pieces = rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces));
  EXPECT_TRUE(rc::check([&] {
    std::string text;
    for (const std::string& piece : *any_pieces) text += piece;
    try {
      parse_toml(text);
    } catch (const InputError& error) {
      RC_ASSERT(std::string(error.what()).starts_with("line "));
    }
  }));
}

}  // namespace
}  // namespace nsimplex::cli
