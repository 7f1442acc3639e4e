#include "support/printable.h"

#include <gtest/gtest.h>

#include "support/error.h"

namespace nsimplex {
namespace {

TEST(Printable, LeavesTextsOfEveryScript) {
  for (const char* text : {"", "plain 1.5e-3 \"a\\b\" {}~", "na\u00efve \u0433\u0435\u043d \u4e2d",
                           "\u0928\u094d\u200d\u0928", "\U0001f600", "\u00a0\u2010"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, EscapesWhatActsOnATerminal) {
  using namespace std::string_view_literals;
  EXPECT_EQ(printable("\x1b]0;title\a"sv), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable("a\nb\r\tc\0d\x7f"sv), "a\\nb\\r\\tc\\x00d\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m \u0080\u009f"sv),
            "\\u009b31m \\u0080\\u009f");
  EXPECT_EQ(printable("a\u202eb\u2066\u2069\u200f\u061c\u2028\ufeff"sv),
            "a\\u202eb\\u2066\\u2069\\u200f\\u061c\\u2028\\ufeff");
}

TEST(Printable, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("caf\xe9, \xc0\x8a \xed\xa0\x80 \xf5 \xe2\x82"),
            "caf\\xe9, \\xc0\\x8a \\xed\\xa0\\x80 \\xf5 \\xe2\\x82");
}

TEST(Printable, ChangesNothingTheSecondTime) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string once = printable(all);
  EXPECT_EQ(printable(once), once);
}

TEST(Printable, QuotesShorten) {
  EXPECT_EQ(quoted_name("a\x1b"), "\"a\\x1b\"");
  EXPECT_EQ(quoted_name(std::string(41, 'x')), "\"" + std::string(40, 'x') + "..\"");
  EXPECT_EQ(quoted_name(std::string(39, 'x') + "\u00e9"), "\"" + std::string(39, 'x') + "..\"");
  EXPECT_TRUE(quoted_name(std::string(50, '\x80')).starts_with("\"\\x80"));
}

TEST(InputError, IsOnePrintableLine) {
  EXPECT_STREQ(InputError("cannot read a\x1b[2J\nb\u202e: no").what(),
               "cannot read a\\x1b[2J\\nb\\u202e: no");
}

}  // namespace
}  // namespace nsimplex
