// Encodings, line ends and the numbers that people write.

#include "io/text.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cmath>

#include "input_error_of.h"
#include "io/edge_list.h"
#include "io/graph_formats.h"
#include "io/samples.h"
#include "io/table.h"
#include "io/tuples.h"

namespace nsimplex::io {
namespace {

using test::input_error_of;
using testing::ElementsAre;

// ASCII text as UTF-16.
std::string utf16(const std::string& text, bool little) {
  std::string bytes = little ? "\xff\xfe" : "\xfe\xff";
  for (const char c : text) {
    const char zero = '\0';
    bytes += little ? c : zero;
    bytes += little ? zero : c;
  }
  return bytes;
}

// The same text as programs of other systems save it.
std::vector<std::string> encodings(const std::string& text) {
  const auto with_ends = [&](const std::string& end) {
    std::string result;
    for (const char c : text) result += c == '\n' ? end : std::string(1, c);
    return result;
  };
  return {text,
          "\xef\xbb\xbf" + text,
          utf16(text, true),
          utf16(text, false),
          with_ends("\r\n"),
          with_ends("\r"),
          utf16(with_ends("\r\n"), true)};
}

TEST(Text, EveryReaderTakesEveryEncodingAndLineEnd) {
  for (const std::string& file : encodings("a,b\n1,2\n3,4\n")) {
    const Table table = parse_table(source_of(file));
    EXPECT_THAT(table.columns, ElementsAre("a", "b"));
    EXPECT_THAT(table.values, ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(parse_tuples(source_of(file)).values, ElementsAre(1, 2, 3, 4));
  }
  for (const std::string& file : encodings("0 1\n1 2\n2 0\n")) {
    EXPECT_THAT(parse_edge_list(source_of(file)).edges, ElementsAre(0, 1, 1, 2, 2, 0));
  }
  for (const std::string& file : encodings("# made\nSource,Target\nx,y\n")) {
    EXPECT_THAT(parse_edge_list(source_of(file)).names, ElementsAre("x", "y"));
  }
  for (const std::string& file : encodings("DQc\n\n>>graph6<<A_\n")) {
    EXPECT_EQ(parse_graphs(source_of(file)).size(), 2u);
  }
}

TEST(Text, WhatIsNotValidIsRefusedWithTheLine) {
  const auto error = [](const std::string& file) {
    return input_error_of([&] { parse_table(source_of(file)); });
  };
  const std::string advice = "; save the file as UTF-8";
  EXPECT_EQ(error("temp\xe9rature,b\n1,2\n"),
            "cannot read f: line 1: not UTF-8: byte 0xe9" + advice);
  EXPECT_EQ(error("a\r1\r\xff"), "cannot read f: line 3: not UTF-8: byte 0xff" + advice);
  EXPECT_EQ(error("a\r\n1\r\n\xc3"), "cannot read f: line 3: not UTF-8: byte 0xc3" + advice);
  for (const char* bytes : {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80"}) {
    EXPECT_EQ(error(bytes).substr(0, 36), "cannot read f: line 1: not UTF-8: by") << bytes;
  }
  EXPECT_EQ(error(std::string("\xff\xfe", 2) + "a"),
            "cannot read f: truncated: UTF-16 of an odd number of bytes");
  EXPECT_EQ(error(std::string("\xff\xfe\x0a\x00\x00\xd8", 6)),
            "cannot read f: line 2: not UTF-16: half of a pair of surrogates");
  EXPECT_EQ(error(std::string("\xff\xfe\0\0a\0\0\0", 8)),
            "cannot read f: UTF-32 is not supported" + advice);
  EXPECT_EQ(input_error_of([] { parse_edge_list(source_of("0 1\n\xff 2\n")); }),
            "cannot read f: line 2: not UTF-8: byte 0xff" + advice);
}

TEST(Text, Utf16HasAllCharacters) {
  // U+20AC and, as a pair of surrogates, U+1F600.
  const std::string file("\xff\xfe\xac\x20,\0\x3d\xd8\x00\xde\n\0\x31\0,\0\x32\0", 18);
  EXPECT_THAT(parse_table(source_of(file)).columns,
              ElementsAre("\xe2\x82\xac", "\xf0\x9f\x98\x80"));
}

TEST(Numbers, UnderflowIsZeroAndOverflowIsNone) {
  for (const std::string text :
       {"1e-400", "-1e-99999999999999999999", "0.00001e-330", "123456789e-400"}) {
    EXPECT_EQ(parse_number(text), 0.0) << text;
    EXPECT_FALSE(is_too_large(text)) << text;
  }
  EXPECT_TRUE(std::signbit(*parse_number("-1e-400")));
  EXPECT_EQ(parse_number("0." + std::string(400, '0') + "1"), 0.0);
  EXPECT_EQ(parse_number("0e99999"), 0.0);
  EXPECT_EQ(parse_number("5e-324"), 5e-324);
  EXPECT_EQ(parse_number("2.5e-310"), 2.5e-310);
  EXPECT_EQ(parse_number("0." + std::string(400, '0') + "1e401"), 1.0);
  for (const std::string text : {"1e400", "-1e99999999999999999999", "0.001e320"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
    EXPECT_TRUE(is_too_large(text)) << text;
  }
  EXPECT_TRUE(is_too_large(std::string(400, '9')));
  for (const char* text : {"inf", "nan", "0x10", "1 ", "1_000", "", "-", "e5", "1e"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
    EXPECT_FALSE(is_too_large(text)) << text;
  }
}

TEST(Numbers, WhatIsWrittenIsRead) {
  rc::check([](double value) {
    char text[40];
    std::snprintf(text, sizeof(text), "%.17g", value);
    RC_ASSERT(parse_number(text) == value);
  });
}

TEST(Cells, TakeTimeProportionalToTheBytes) {
  // One column, and one row: a reader that looks for the next comma and the next line end from each
  // cell on would go through the whole file for every cell, and this test would take hours.
  std::string column = "v\n", row;
  for (int i = 0; i < 500000; ++i) {
    column += "123456789\n";
    row += "1,";
  }
  EXPECT_EQ(parse_table(source_of(column)).rows, 500000);
  row += "1\n";
  EXPECT_EQ(parse_table(source_of(row)).width, 500001);
}

}  // namespace
}  // namespace nsimplex::io
