// Which row has names, which column those of the rows, and what stands between cells: what other
// programs write is read as they mean it, and every decision is said.

#include "io/text_grid.h"

#include <gmock/gmock.h>

#include "input_error_of.h"
#include "io/edge_list.h"
#include "io/samples.h"
#include "io/table.h"
#include "io/tuples.h"

namespace nsimplex::io {
namespace {

using test::input_error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Table read_grid(const std::string& text, const TextOptions& options = {}) {
  return parse_table(source_of(text), {.text = options});
}

std::string grid_error(const std::string& text, const TextOptions& options = {}) {
  return input_error_of([&] { read_grid(text, options); });
}

TEST(TextGrid, ReadsWhatPandasWrites) {
  // DataFrame(array).to_csv(), with index=False, with names, with an index name.
  Table table = read_grid(",0,1,2\n0,0.5,1.5,2.5\n1,3.5,4.5,5.5\n");
  EXPECT_THAT(table.columns, ElementsAre("0", "1", "2"));
  EXPECT_THAT(table.labels, ElementsAre("0", "1"));
  EXPECT_THAT(table.values, ElementsAre(0.5, 1.5, 2.5, 3.5, 4.5, 5.5));
  EXPECT_THAT(read_grid("0,1\n0.5,1.5\n2.5,3.5\n").columns, ElementsAre("0", "1"));
  table = read_grid("0,1,2\n5,15,7\n25,35,7\n");
  EXPECT_THAT(table.columns, ElementsAre("0", "1", "2"));
  EXPECT_EQ(table.rows, 2);
  EXPECT_THAT(command_line_notice(table.reading),
              HasSubstr("first row taken as names, since its numbers are consecutive (--header no "
                        "to read it as data)"));
  EXPECT_THAT(read_grid("2018,2019,2020\n0.5,1.5,1\n2.5,3.5,1\n").columns,
              ElementsAre("2018", "2019", "2020"));
  EXPECT_THAT(read_grid("2010,2015,2030\n0.5,1.5,0.1\n2.5,3,4\n").columns,
              ElementsAre("2010", "2015", "2030"));
  table = read_grid("cell,a,b\nc1,1,2\nc2,3,4\n");
  EXPECT_THAT(table.columns, ElementsAre("a", "b"));
  EXPECT_THAT(table.labels, ElementsAre("c1", "c2"));
  EXPECT_THAT(command_line_notice(table.reading),
              HasSubstr("first column taken as row names (--index no to read it as data)"));
}

TEST(TextGrid, ReadsWhatRWrites) {
  // write.table(x), with quote=FALSE, with col.names=FALSE, write.csv(x).
  for (const char* text : {"\"a\" \"b\"\n\"1\" 0.5 1\n\"2\" 2.5 3\n", "a b\n1 0.5 1\n2 2.5 3\n",
                           "\"\",\"a\",\"b\"\n\"1\",0.5,1\n\"2\",2.5,3\n"}) {
    const Table table = read_grid(text);
    EXPECT_THAT(table.columns, ElementsAre("a", "b")) << text;
    EXPECT_THAT(table.labels, ElementsAre("1", "2")) << text;
    EXPECT_THAT(table.values, ElementsAre(0.5, 1, 2.5, 3)) << text;
  }
  const Table numbered = read_grid("\"1\" \"7\"\n\"r1\" 5 1\n\"r2\" 2 3\n");
  EXPECT_THAT(numbered.columns, ElementsAre("1", "7"));
  EXPECT_THAT(numbered.labels, ElementsAre("r1", "r2"));
  const Table quoted = read_grid("\"4\",\"9\"\n5,1\n2,3\n");
  EXPECT_THAT(quoted.columns, ElementsAre("4", "9"));
  const Table without = read_grid("\"r1\" 0.5 1\n\"r2\" 2.5 3\n");
  EXPECT_THAT(without.columns, IsEmpty());
  EXPECT_THAT(without.labels, ElementsAre("r1", "r2"));
}

TEST(TextGrid, ReadsWhatNumpyAndExcelWrite) {
  // savetxt(x), with header="a b", with delimiter=","; a sheet of a German Excel.
  EXPECT_THAT(read_grid("1.0e+00 2.5e+00\n3.0e+00 4.0e+00\n").values, ElementsAre(1, 2.5, 3, 4));
  EXPECT_THAT(read_grid("  1.5   2\n -3.5  10\n").values, ElementsAre(1.5, 2, -3.5, 10));
  const Table named = read_grid("# a b\n1.5 2.5\n3.5 4.5\n");
  EXPECT_THAT(named.columns, ElementsAre("a", "b"));
  EXPECT_THAT(python_notice(named.reading),
              HasSubstr("names taken from the comment above the first row (header=False"));
  EXPECT_THAT(read_grid("# made by a program of that name\n1.5 2.5\n3.5 4.5\n").columns, IsEmpty());
  EXPECT_THAT(read_grid("X1 X2\n1 2\n3 4\n").columns, ElementsAre("X1", "X2"));
  EXPECT_THAT(read_grid("sep=;\na;b\n1;2\n").columns, ElementsAre("a", "b"));
  EXPECT_THAT(read_grid("a,b;c\n1;2\n3;4\n").columns, ElementsAre("a,b", "c"));
  EXPECT_THAT(read_grid("\"q,r\";b\n1;2\n").columns, ElementsAre("q,r", "b"));
  EXPECT_THAT(read_grid("\"two\nlines\",b\n1,2\n").columns, ElementsAre("two\nlines", "b"));
  EXPECT_THAT(read_grid("a|b\n1|2\n").columns, ElementsAre("a", "b"));
}

TEST(TextGrid, NumbersAreDataElsewhere) {
  EXPECT_EQ(read_grid("4,8\n1,2\n3,5\n").rows, 3);
  EXPECT_EQ(read_grid("0.5,1.5\n2.5,3.5\n").rows, 2);
  EXPECT_EQ(read_grid("3\n0.5\n0.25\n").rows, 3);
  EXPECT_EQ(read_grid("1,2\n3,4\n").rows, 2);
  EXPECT_THAT(read_grid("1,2,3\n7,8,8\n").columns, ElementsAre("1", "2", "3"));
  EXPECT_EQ(read_grid("0,0\n0.5,0.25\n").rows, 2);  // names would differ
  EXPECT_THAT(command_line_notice(read_grid("4,8\n1,2\n").reading),
              HasSubstr("first row taken as data (--header yes to take it as names)"));
  EXPECT_EQ(read_grid("0,1\n2.5,3.5\n", {.header = HeaderLine::absent}).rows, 2);
}

TEST(TextGrid, WordsOfValuesMakeNoHeader) {
  for (const char* word : {"inf", "-Infinity", "TRUE", "False", "1e400", "1o2", "0x10", "12%"}) {
    EXPECT_THAT(grid_error(std::string(word) + ",2\n3,4\n5,6\n"),
                HasSubstr("line 1, column x0: expected a number, got \"" + std::string(word)))
        << word;
  }
  for (const char* word : {"nan", "NA", "?", "n/a", "", "#N/A", "<NA>", "-"}) {
    const Table table = read_grid(std::string(word) + ",2.5\n3,4\n5,6\n");
    EXPECT_EQ(table.rows, 3) << word;
    EXPECT_EQ(table.missing, 1) << word;
  }
  EXPECT_THAT(grid_error("x,0.5,1.25\n0.25,1,2\n"), HasSubstr("line 1, column x0"));
  EXPECT_THAT(read_grid("5S,7SK\n1,2\n").columns, ElementsAre("5S", "7SK"));
  EXPECT_THAT(read_grid("a,2001\n1,2\n").columns, ElementsAre("a", "2001"));
}

TEST(TextGrid, LeavesOutAnEmptyLastField) {
  for (const char* text : {"a,b\n1,2,\n3,4,\n", "a,b,\n1,2,\n3,4,\n"}) {
    const Table table = read_grid(text);
    EXPECT_THAT(table.columns, ElementsAre("a", "b")) << text;
    EXPECT_THAT(table.values, ElementsAre(1, 2, 3, 4)) << text;
    EXPECT_THAT(table.labels, IsEmpty()) << text;
    EXPECT_THAT(python_notice(table.reading), HasSubstr("last field of every row is empty"))
        << text;
  }
  EXPECT_EQ(grid_error("a,b\n1,2,\n3,4,5\n"),
            "cannot read f: line 2: expected 2 cells as in line 1, got 3");
  EXPECT_EQ(grid_error("a,b\n1,2\n3,4,\n"),
            "cannot read f: line 3: expected 2 cells as in line 2, got 3");
  EXPECT_EQ(grid_error("a,b,c\n1,2\n"),
            "cannot read f: line 2: expected 3 cells as in line 1, got 2");
  EXPECT_EQ(grid_error("a,b\n1,2,3\n1,4,5\n"),
            "cannot read f: line 2: expected 2 cells as in line 1, got 3");
}

TEST(TextGrid, DoesWhatItIsAsked) {
  const std::string text = "x,1,5\ny,3,4\n";
  EXPECT_THAT(read_grid(text, {.header = HeaderLine::present}).columns, ElementsAre("1", "5"));
  EXPECT_THAT(read_grid("1,0.5\n2,0.25\n", {.index = IndexColumn::present}).labels,
              ElementsAre("1", "2"));
  EXPECT_THAT(grid_error(text, {.index = IndexColumn::absent}),
              HasSubstr("expected a number, got \"x\""));
  EXPECT_EQ(read_grid("1;2\n3;4\n", {.delimiter = Delimiter::semicolon}).width, 2);
  EXPECT_THAT(grid_error("a;b\n3;4\n", {.delimiter = Delimiter::comma}), HasSubstr("got \"3;4\""));
  EXPECT_EQ(read_grid("1,2\n! no\n3,4\n", {.comment = "!"}).rows, 2);
  EXPECT_THAT(grid_error("1,2\n# no\n3,4\n"),
              HasSubstr("line 2: expected 2 cells as in line 1, got 1 "
                        "(is this a comment? see --comment)"));
  EXPECT_EQ(read_grid("a,b\n1,-999\n3,4\n", {.missing_words = {"-999", "x"}}).missing, 0);
  EXPECT_EQ(read_grid("a,b\n1,unknown\n3,4\n", {.missing_words = {"unknown"}}).missing, 1);
}

TEST(TextGrid, ReadsTheColumnsThatAreAskedFor) {
  const std::string text = "cell,day,a,b\nc1,2020-01-01,1,2\nc2,2020-01-02,3,4\n";
  EXPECT_THAT(grid_error(text), HasSubstr("column day: expected a number, got \"2020-01-01\""));
  EXPECT_THAT(read_grid(text, {.leave_out = {"day"}}).values, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(read_grid(text, {.use = {"b"}}).columns, ElementsAre("b"));
  EXPECT_THAT(
      read_grid("1,2,3\n4,6,7\n", {.header = HeaderLine::absent, .use = {"x0", "x2"}}).values,
      ElementsAre(1, 3, 4, 7));
  EXPECT_EQ(grid_error(text, {.use = {"c"}}),
            "cannot read f: --use-columns: no column is called \"c\"");
}

TEST(Tuples, AreNodesAndNeverNames) {
  const auto tuples = [](const std::string& text) { return parse_tuples(source_of(text)).values; };
  EXPECT_THAT(tuples("0,1\n1,2\n"), ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(tuples(",a,b\n0,5,6\n"), ElementsAre(5, 6));
  EXPECT_THAT(tuples("9007199254740993,9223372036854775806\n"),
              ElementsAre(9007199254740993, 9223372036854775806));
  EXPECT_THAT(input_error_of([&] { tuples("0,9007199254740993.5\n"); }), HasSubstr("an integer"));
  EXPECT_THAT(input_error_of([&] { tuples("0,99999999999999999999\n"); }), HasSubstr("an integer"));
}

EdgeList list_of(const std::string& text, const TextOptions& options = {}) {
  return parse_edge_list(source_of(text), options);
}

TEST(EdgeList, KnowsTheHeadersOfOtherPrograms) {
  for (const char* header :
       {"source,target", "Source,Target", "SOURCE,TARGET", "from,to", "node1,node2",
        "node_1,node_2", "u,v", "src,dst", "start,end", "id_1,id_2", "id1,id2", "cause,effect",
        "Cause,Effect", "FromNodeId,ToNodeId", "\"from\",\"to\"", "Node A,Node B"}) {
    const EdgeList list = list_of(std::string(header) + "\n0,1\n1,2\n2,0\n");
    EXPECT_EQ(list.nodes, 3) << header;
    EXPECT_THAT(list.edges, ElementsAre(0, 1, 1, 2, 2, 0)) << header;
  }
  for (const char* header : {"Source,Target", "id_1,id_2", "cause,effect", "from_id,to_id"}) {
    EXPECT_THAT(list_of(std::string(header) + "\na,b\nb,c\n").names, ElementsAre("a", "b", "c"))
        << header;
  }
  EXPECT_THAT(list_of("a,b\nb,c\n").names, ElementsAre("a", "b", "c"));
  EXPECT_FALSE(list_of("a,b\nb,c\n").roles);
  EXPECT_TRUE(list_of("cause\teffect\tweight\na\tb\t0.5\n").roles);
}

TEST(EdgeList, FindsItsColumnsByName) {
  const EdgeList gephi = list_of("Id,Source,Target,Type,Weight\n7,a,b,Directed,0.5\n");
  EXPECT_THAT(gephi.names, ElementsAre("a", "b"));
  EXPECT_THAT(gephi.weights, ElementsAre(0.5));
  const EdgeList turned = list_of("effect,cause\nx,y\n");
  EXPECT_THAT(turned.names, ElementsAre("y", "x"));
  EXPECT_THAT(turned.edges, ElementsAre(0, 1));
  EXPECT_THAT(list_of(",source,target\n0,a,b\n").names, ElementsAre("a", "b"));
  EXPECT_THAT(list_of("\"from\" \"to\"\n\"1\" \"a\" \"b\"\n\"2\" \"b\" \"a\"\n").names,
              ElementsAre("a", "b"));
  EXPECT_THAT(list_of("0 1 {}\n1 2 {}\n").edges, ElementsAre(0, 1, 1, 2));
  EXPECT_EQ(
      input_error_of([] { list_of("%%MatrixMarket matrix coordinate real general\n1 1 1\n"); }),
      "cannot read f: a Matrix Market file, which is not supported; scipy.io.mmread reads it");
}

TEST(EdgeList, HugeNumbersAreNames) {
  const EdgeList list = list_of("45670945678 12345678901\n12345678901 45670945679\n");
  EXPECT_EQ(list.nodes, 3);
  EXPECT_THAT(list.names, ElementsAre("12345678901", "45670945678", "45670945679"));
  EXPECT_THAT(list.edges, ElementsAre(1, 0, 0, 2));
  EXPECT_THAT(python_notice(list.reading), HasSubstr("taken as names of 3 nodes"));
  EXPECT_EQ(list_of("0 10\n").nodes, 11);  // isolated nodes
  EXPECT_THAT(list_of("\"3\" \"1\"\n").names, ElementsAre("1", "3"));
  EXPECT_THAT(list_of("\"007\" \"7\"\n").names, ElementsAre("007", "7"));
}

TEST(EdgeList, TakesNoNodeWithoutAName) {
  EXPECT_EQ(input_error_of([] { list_of("a,b\na,\n"); }),
            "cannot read f: line 2, column x1: expected a node, got nothing");
  EXPECT_EQ(input_error_of([] { list_of("0 1,0.5\n1 2,0.5\n"); }),
            "cannot read f: line 1, column x0: expected one node, got \"0 1\"");
}

}  // namespace
}  // namespace nsimplex::io
