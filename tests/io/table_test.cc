#include "io/table.h"

#include <gmock/gmock.h>

#include <cmath>

#include "input_error_of.h"
#include "io/npy.h"
#include "io/samples.h"
#include "temporary_folder.h"

namespace nsimplex::io {
namespace {

using test::input_error_of;
using testing::ElementsAre;
using testing::IsNan;

Table table_of(const std::string& text, const TableOptions& options = {}) {
  return parse_table(source_of(text), options);
}

std::string table_error(const std::string& text, const TableOptions& options = {}) {
  return input_error_of([&] { table_of(text, options); });
}

TEST(Table, ReadsNumbersAndNames) {
  const Table table = table_of("a, b ,c\r\n1,-2.5e1,+3\r\n\r\n4,.5,6");
  EXPECT_THAT(table.columns, ElementsAre("a", "b", "c"));
  EXPECT_THAT(table.values, ElementsAre(1, -25, 3, 4, 0.5, 6));
  EXPECT_EQ(table.rows, 2);
  EXPECT_EQ(table.width, 3);
  EXPECT_EQ(table.at(1, 2), 6);
  EXPECT_TRUE(table.labels.empty());
}

TEST(Table, FindsItsSeparator) {
  EXPECT_THAT(table_of("a\tb\n1\t2\n").values, ElementsAre(1, 2));
  EXPECT_THAT(table_of("a;b\n1;2\n").values, ElementsAre(1, 2));
  EXPECT_THAT(table_of("\n1,2\n").values, ElementsAre(1, 2));
  EXPECT_THAT(table_of("1\n2\n").values, ElementsAre(1, 2));
}

TEST(Table, UnderstandsQuotes) {
  const Table table = table_of("\xef\xbb\xbf\"a \"\"x\"\"\",\"b,\nc\" , d\n\"1\",2,3\n");
  EXPECT_THAT(table.columns, ElementsAre("a \"x\"", "b,\nc", "d"));
  EXPECT_THAT(table.values, ElementsAre(1, 2, 3));
  EXPECT_EQ(table_error("a\n\"1\n2\n"), "cannot read f: line 2: a quote without its end");
  EXPECT_EQ(table_error("a,b\n\"1\"2,3\n"),
            "cannot read f: line 2: expected the end of the cell behind \"1\"");
}

TEST(Table, KeepsTheTextsOfColumnsThatMayHoldWords) {
  TableOptions options{.texts = [](const std::vector<std::string>& names, int64_t width) {
    EXPECT_THAT(names, ElementsAre("a", "b", "c"));
    std::vector<bool> chosen(static_cast<size_t>(width), false);
    chosen[1] = true;
    return chosen;
  }};
  options.text.missing_words = {"none at all"};
  const Table table = table_of("a,b,c\n1,yes,2\n3,,4\n5,7e0,6\n8,none at all,9\n", options);
  ASSERT_EQ(table.texts.size(), 1U);
  EXPECT_THAT(table.texts.at(1), ElementsAre("yes", "", "7e0", ""));
  EXPECT_THAT(table.values, ElementsAre(1, IsNan(), 2, 3, IsNan(), 4, 5, 7, 6, 8, IsNan(), 9));
  EXPECT_EQ(table.missing, 2);
  EXPECT_EQ(table_error("a,b,c\n1,yes,no\n", options),
            "cannot read f: line 2, column c: expected a number, got \"no\"");
  // An array has numbers.
  options.texts = [](const std::vector<std::string>& names, int64_t width) {
    EXPECT_TRUE(names.empty());
    return std::vector<bool>(static_cast<size_t>(width), true);
  };
  const std::vector<double> values{3, 0.1, std::nan(""), -1};
  const Table array = table_of(npy_bytes(values, std::vector<int64_t>{2, 2}), options);
  EXPECT_THAT(array.texts.at(0), ElementsAre("3", ""));
  EXPECT_THAT(array.texts.at(1), ElementsAre("0.1", "-1"));
}

TEST(Table, TakesColumnsOfTrueAndFalseAsNumbers) {
  const Table table = table_of("a,sick,left\n1,True,FALSE\n2,,false\n3,False,true\n");
  EXPECT_THAT(table.columns, ElementsAre("a", "sick", "left"));
  EXPECT_TRUE(table.labels.empty());
  EXPECT_THAT(table.values, ElementsAre(1, 1, 0, 2, IsNan(), 0, 3, 0, 1));
  EXPECT_EQ(table.missing, 1);
  EXPECT_THAT(table_of("sick,a\nTrue,1\nFalse,2\n").values, ElementsAre(1, 1, 0, 2));
  EXPECT_THAT(table_of("TRUE,2\nFALSE,4\n").values, ElementsAre(1, 2, 0, 4));
  EXPECT_EQ(table_error("a,b\nTrue,1\n,2\n", {.allow_missing = false}),
            "cannot read f: line 3, column a: expected a number, got a missing value");
  // Numbers and other words do not belong to them.
  EXPECT_EQ(table_error("a,b\n1,True\n2,1\n"),
            "cannot read f: line 2, column b: expected a number, got \"True\"");
  EXPECT_EQ(table_error("a,b\n1,True\n2,maybe\n"),
            "cannot read f: line 2, column b: expected a number, got \"True\"");
  EXPECT_EQ(table_error("a,b\n1,0\n2,False\n"),
            "cannot read f: line 3, column b: expected a number, got \"False\"");
  EXPECT_THAT(table_of("a,b\n1,True\n2,False\n", {.text = {.missing_words = {"False"}}}).values,
              ElementsAre(1, 1, 2, IsNan()));
  // Where a column may hold words, these are words.
  const auto second = [](const std::vector<std::string>&, int64_t) {
    return std::vector<bool>{false, true};
  };
  EXPECT_THAT(table_of("a,b\n1,True\n2,\n", {.texts = second}).texts.at(1),
              ElementsAre("True", ""));
}

TEST(Table, CountsMissingValues) {
  const Table table = table_of("a,b,c\n1,,NA\nnan,N/A,2\n");
  EXPECT_EQ(table.missing, 4);
  EXPECT_THAT(table.values, ElementsAre(1, IsNan(), IsNan(), IsNan(), IsNan(), 2));
  EXPECT_EQ(table_error("a,b\n1,\n", {.allow_missing = false}),
            "cannot read f: line 2, column b: expected a number, got a missing value");
}

TEST(Table, TakesLabels) {
  const Table pandas = table_of(",a,b\nr1,1,2\nr2,3,4\n");
  EXPECT_THAT(pandas.labels, ElementsAre("r1", "r2"));
  EXPECT_THAT(pandas.columns, ElementsAre("a", "b"));
  EXPECT_THAT(pandas.values, ElementsAre(1, 2, 3, 4));
  const Table r = table_of("a\tb\nr1\t1\t2\nr2\t3\t4\n");
  EXPECT_THAT(r.labels, ElementsAre("r1", "r2"));
  EXPECT_THAT(r.columns, ElementsAre("a", "b"));
  EXPECT_THAT(r.values, ElementsAre(1, 2, 3, 4));
}

TEST(Table, ReadsAHeaderOfNumbersWhenAsked) {
  EXPECT_EQ(table_of("4,8\n1,2\n").rows, 2);
  const Table table = table_of("4,8\n1,2\n", {.text = {.header = HeaderLine::present}});
  EXPECT_THAT(table.columns, ElementsAre("4", "8"));
  EXPECT_EQ(table.rows, 1);
  EXPECT_EQ(table_error("a,b\n1,2\n", {.text = {.header = HeaderLine::absent}}),
            "cannot read f: line 1, column x0: expected a number, got \"a\" "
            "(--header yes takes the first row as names)");
}

TEST(Table, NamesLineAndColumn) {
  EXPECT_EQ(table_error("a,b\n1,2\n\n3,x\n"),
            "cannot read f: line 4, column b: expected a number, got \"x\"");
  EXPECT_EQ(table_error("a,b\n1,inf\n"),
            "cannot read f: line 2, column b: expected a number, got \"inf\"");
  EXPECT_EQ(
      table_error("a,b\n1,1e999\n"),
      "cannot read f: line 2, column b: expected a number, got \"1e999\", which is too large: "
      "a double holds up to 1.8e308");
  EXPECT_EQ(table_error("a,b\n1,0x10\n"),
            "cannot read f: line 2, column b: expected a number, got \"0x10\"");
  EXPECT_EQ(table_error("cell,b\nx,1\nx,2\n"),
            "cannot read f: line 2, column cell: expected a number, got \"x\"");
  EXPECT_EQ(table_error("a;b\n1;2,5\n"),
            "cannot read f: line 2, column b: expected a number, got \"2,5\" "
            "(decimals are written with a point; a command has --decimal)");
  EXPECT_EQ(table_error("a;b\n1;2,500,000\n"),
            "cannot read f: line 2, column b: expected a number, got \"2,500,000\" "
            "(digits are written without marks of groups; a command has --thousands)");
  EXPECT_EQ(table_error("a,b\n1,2\n3\n"),
            "cannot read f: line 3: expected 2 cells as in line 2, got 1");
  EXPECT_EQ(table_error("a,b,c,d\n1,2\n"),
            "cannot read f: line 2: expected 4 cells as in line 1, got 2");
  EXPECT_EQ(table_error(""), "cannot read f: a table without rows");
  EXPECT_EQ(table_error("a,b\n"), "cannot read f: a table without rows");
  EXPECT_EQ(table_error("\x1f\x8b\x08"),
            "cannot read f: gzip: its compressed data are damaged or truncated");
  EXPECT_EQ(table_error(std::string("\x89HDF\0", 5)),
            "cannot read f: HDF5: python -m nsimplex.causal.cells turns an h5ad file into a table");
}

TEST(Table, ReadsNumbersAsOtherCountriesWriteThem) {
  const auto read = [](const std::string& text, NumberFormat numbers) {
    return parse_table(source_of(text), {.text = {.numbers = numbers}});
  };
  const Table commas = read("a;b\n1,5;-2,25e1\n1234;0,5\n", {.decimal = ','});
  EXPECT_THAT(commas.columns, ElementsAre("a", "b"));
  EXPECT_THAT(commas.values, ElementsAre(1.5, -22.5, 1234, 0.5));
  const Table german = read("1.234,5;2\n-12.345.678;0,5\n", {.decimal = ',', .thousands = '.'});
  EXPECT_TRUE(german.columns.empty());
  EXPECT_THAT(german.values, ElementsAre(1234.5, 2, -12345678, 0.5));
  const Table french = read(
      "a;b\n1\xc2\xa0"
      "234,5;1 000\n",
      {.decimal = ',', .thousands = ' '});
  EXPECT_THAT(french.values, ElementsAre(1234.5, 1000));
  const Table english = read("a,b\n\"1,234.5\",2\n", {.thousands = ','});
  EXPECT_THAT(english.values, ElementsAre(1234.5, 2));
  const auto error = [&](const std::string& text, NumberFormat numbers) {
    return input_error_of([&] { read(text, numbers); });
  };
  EXPECT_EQ(error("a;b\n1.5;2\n", {.decimal = ','}),
            "cannot read f: line 2, column a: expected a number, got \"1.5\" "
            "(decimals are written with a comma, as --decimal says)");
  for (const char* wrong : {"1,23", "12345,678", ",123", "1,234,56", "1,,234"}) {
    EXPECT_NE(error("a;b\n" + std::string(wrong) + ";2\n", {.thousands = ','}), "") << wrong;
  }
}

TEST(Table, ReadsNamedEncodings) {
  const auto name_of = [](const std::string& bytes, Encoding encoding) {
    return parse_table(source_of("name" + bytes + ",b\n1,2\n"), {.text = {.encoding = encoding}})
        .columns[0];
  };
  EXPECT_EQ(name_of("\xe9", Encoding::latin1), "name\xc3\xa9");
  EXPECT_EQ(name_of("\x80", Encoding::windows1252), "name\xe2\x82\xac");
  EXPECT_EQ(input_error_of([&] { name_of("\x81", Encoding::windows1252); }),
            "cannot read f: line 1: a byte that Windows-1252 does not have");
}

TEST(Table, ReadsWhatGzipPacked) {
  // printf 'a,b\n1,2\n' | gzip -n9
  const std::string packed(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\xd4\x49\xe2\x32\xd4\x31\xe2\x02\x00"
      "\x7b\x07\x97\x0a\x08\x00\x00\x00",
      28);
  EXPECT_THAT(table_of(packed).values, ElementsAre(1, 2));
  // printf '3,4\n' | gzip -n9, behind it
  const std::string more(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x33\xd6\x31\xe1\x02\x00"
      "\x3e\x2d\x72\xa9\x04\x00\x00\x00",
      24);
  EXPECT_THAT(table_of(packed + more).values, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(table_error(packed.substr(0, 20)),
            "cannot read f: gzip: its compressed data are damaged or truncated");
}

TEST(Table, ReadsArrays) {
  const std::string file = npy_file("<f4", "(2, 3)", raw<float>({1, 2, 3, 4, NAN, 6}));
  const Table table = table_of(file);
  EXPECT_EQ(table.rows, 2);
  EXPECT_EQ(table.width, 3);
  EXPECT_EQ(table.missing, 1);
  EXPECT_EQ(table_error(file, {.allow_missing = false}),
            "cannot read f: row 2, column x1: expected a number, got a missing value");
  EXPECT_EQ(table_of(npy_file("<i4", "(3,)", raw<int32_t>({1, 2, 3}))).width, 1);
  EXPECT_EQ(table_error(npy_file("<f4", "(1, 1, 1)", "1234")),
            "cannot read f: expected a table of two dimensions, got shape [1, 1, 1]");
  EXPECT_EQ(table_error(npy_file("<f4", "(2, 0)", "")), "cannot read f: a table without columns");
  EXPECT_EQ(table_error(npy_file("<f4", "(1, 1)", raw<float>({INFINITY}))),
            "cannot read f: row 1, column x0: expected a number, got infinity");

  const std::string npz =
      zip_file({{"x.npy", file}, {"y.npy", npy_file("|i1", "(1, 1)", "\x07")}}, true);
  EXPECT_THAT(table_of(npz, {.key = "y"}).values, ElementsAre(7));
  EXPECT_EQ(table_error(npz),
            "cannot read f: expected one array of two dimensions, got 2 among x, y: name one");
}

TEST(Table, ReadsAFile) {
  const test::TemporaryFolder folder;
  const std::string path = test::write_file(folder / "t.csv", "a\n7\n");
  EXPECT_THAT(read_table(path).values, ElementsAre(7));
  EXPECT_EQ(input_error_of([&] { read_table(folder / "none"); }),
            "cannot read " + (folder / "none") + ": No such file or directory");
}

// What stands in quotes is no delimiter, and the end of a line in them none of a row.
TEST(Table, TheDelimiterIsGuessedOutsideQuotes) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"\"q,r\";b\n1;2\n3;4\n", {"q,r", "b"}},
      {"\"q,r,s,t\";\"b,c\"\r\n1;2\r\n", {"q,r,s,t", "b,c"}},
      {"\"q\nr\",b\n1,2\n3,4\n", {"q\nr", "b"}},
      {"\"q;\n;;r\",b\n1,2\n", {"q;\n;;r", "b"}},
      {"\"say \"\"a;b\"\"\",c\n1,2\n", {"say \"a;b\"", "c"}}};
  for (const auto& [file, columns] : cases) {
    const Table table = parse_table(source_of(file));
    EXPECT_EQ(table.columns, columns) << file;
    EXPECT_EQ(table.at(0, 1), 2) << file;
  }
}

TEST(Table, NamesInMessagesArePrintable) {
  const std::string file = "\"a\x1b]0;x\x07\nb\u202e\",c\nx,1\n1,2\n";
  EXPECT_EQ(
      input_error_of([&] { parse_table(source_of(file)); }),
      "cannot read f: line 3, column a\\x1b]0;x\\x07\\nb\\u202e: expected a number, got \"x\"");
}

}  // namespace
}  // namespace nsimplex::io
