#include <gmock/gmock.h>

#include "input_error_of.h"
#include "io/edge_list.h"
#include "io/graph_formats.h"
#include "io/samples.h"
#include "io/tuples.h"

namespace nsimplex::io {
namespace {

using test::input_error_of;
using testing::ElementsAre;
using testing::IsEmpty;

SimpleGraph graph6(const std::string& code) { return parse_graph6(source_of(code)); }

std::string graph6_error(const std::string& code) {
  return input_error_of([&] { graph6(code); });
}

// Codes from the format's own description and from networkx.to_graph6_bytes.
TEST(Graph6, ReadsKnownGraphs) {
  EXPECT_EQ(graph6("DQc").nodes, 5);
  EXPECT_THAT(graph6("DQc").edges, ElementsAre(0, 2, 1, 3, 0, 4, 3, 4));
  EXPECT_THAT(graph6(">>graph6<<A_").edges, ElementsAre(0, 1));
  EXPECT_EQ(graph6("?").nodes, 0);
  EXPECT_EQ(graph6("@").nodes, 1);
  EXPECT_THAT(graph6("@").edges, IsEmpty());
}

// The code of a graph whose only edge is between its last two nodes.
std::string last_edge(const std::string& size, int64_t nodes) {
  const int64_t pairs = nodes * (nodes - 1) / 2;
  std::string code = size + std::string((pairs + 5) / 6, '?');
  code.back() = static_cast<char>(63 + (1 << ((6 - pairs % 6) % 6)));
  return code;
}

TEST(Graph6, ReadsEveryFormOfTheSize) {
  EXPECT_THAT(graph6(last_edge("}", 62)).edges, ElementsAre(60, 61));
  EXPECT_THAT(graph6(last_edge("~??~", 63)).edges, ElementsAre(61, 62));
  EXPECT_THAT(graph6(last_edge("~?A?", 128)).edges, ElementsAre(126, 127));
  EXPECT_THAT(graph6(last_edge("~~????A?", 128)).edges, ElementsAre(126, 127));
}

TEST(Graph6, NamesWhatIsWrong) {
  EXPECT_EQ(graph6_error(""), "cannot read f: an empty graph6 code");
  EXPECT_EQ(graph6_error("DQ"),
            "cannot read f: graph6 of 5 nodes: expected 2 characters behind the size, got 1");
  EXPECT_EQ(graph6_error("DQcc"),
            "cannot read f: graph6 of 5 nodes: expected 2 characters behind the size, got 3");
  EXPECT_EQ(graph6_error("DQ c"), "cannot read f: not graph6: it holds \" \"");
  EXPECT_EQ(graph6_error("DQd"),
            "cannot read f: not graph6: bits are set behind the last pair of nodes");
  EXPECT_EQ(graph6_error(":Fa"), "cannot read f: sparse6 is not supported, only graph6");
  EXPECT_EQ(graph6_error("&C"), "cannot read f: digraph6 is not supported, only graph6");
  EXPECT_EQ(graph6_error(">>sparse6<<:Fa"), "cannot read f: sparse6 is not supported, only graph6");
  EXPECT_EQ(graph6_error(">>digraph6<<&C"),
            "cannot read f: digraph6 is not supported, only graph6");
  EXPECT_EQ(graph6_error("~~~~~~~~"), "cannot read f: graph6 of 68719476735 nodes is truncated");
  EXPECT_EQ(graph6_error("~?"),
            "cannot read f: truncated: 3 bytes expected from byte 1 on, there are 2 in all");
}

TEST(Graph6, ReadsFilesOfGraphs) {
  const auto graphs = parse_graphs(source_of("DQc\r\n\n>>graph6<<A_\n"));
  ASSERT_EQ(graphs.size(), 2u);
  EXPECT_EQ(graphs[1].nodes, 2);
  EXPECT_EQ(parse_graphs(source_of(npy_file("|S3", "(1, 2)", std::string("DQcA_\0", 6)))).size(),
            2u);
  EXPECT_EQ(
      input_error_of([] { parse_graphs(source_of("DQc\nDQ\n")); }),
      "cannot read f, line 2: graph6 of 5 nodes: expected 2 characters behind the size, got 1");
  EXPECT_EQ(input_error_of([] { parse_graphs(source_of(npy_file("|S2", "(1,)", "DQ"))); }),
            "cannot read f, element 0: graph6 of 5 nodes: expected 2 characters behind the size, "
            "got 1");
  EXPECT_EQ(input_error_of([] { parse_graphs(source_of("\n")); }), "cannot read f: holds no graph");
}

EdgeList edges(const std::string& text) { return parse_edge_list(source_of(text)); }

TEST(EdgeList, ReadsNumbers) {
  const EdgeList list = edges("# a comment\n3 1\n\n% another\n0\t1\r\n1,1\n");
  EXPECT_THAT(list.edges, ElementsAre(3, 1, 0, 1, 1, 1));
  EXPECT_EQ(list.nodes, 4);
  EXPECT_THAT(list.weights, IsEmpty());
  EXPECT_THAT(list.names, IsEmpty());
}

TEST(EdgeList, NumbersNamesAsTheyCome) {
  const EdgeList list = edges("Source,Target,weight\n\"G2\",G91,1\nG91,7,-0.5\n");
  EXPECT_THAT(list.names, ElementsAre("G2", "G91", "7"));
  EXPECT_THAT(list.edges, ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(list.weights, ElementsAre(1, -0.5));
  EXPECT_EQ(list.nodes, 3);
}

TEST(EdgeList, NamesTheLine) {
  const auto error = [](const std::string& text) { return input_error_of([&] { edges(text); }); };
  EXPECT_EQ(error("# nothing\n"), "cannot read f: holds no edges");
  EXPECT_EQ(error("1 2\n1\n"), "cannot read f: line 2: expected 2 cells as in line 1, got 1");
  EXPECT_EQ(error("1 2 3\n1 2\n"), "cannot read f: line 2: expected 3 cells as in line 1, got 2");
  EXPECT_EQ(error("1 2 3 4\n"),
            "cannot read f: line 1: expected two nodes and perhaps a weight, got 4 words");
  EXPECT_EQ(error("1 2 x\n"), "cannot read f: line 1, column x2: expected a weight, got \"x\"");
}

std::string tuples_npz(const std::string& name, int64_t last_of_second_type) {
  return zip_file(
      {{name + ".npy", npy_file("<f8", "(2, 2)", raw<double>({0, 3, 2, 0}))},
       {"labels.npy", npy_file("|O", "(1,)", "(dp0\n.")},
       {"nums_type.npy", npy_file("<i8", "(2,)", raw<int64_t>({3, last_of_second_type + 1}))}},
      false);
}

TEST(Tuples, NumberTypedNodesThrough) {
  for (const char* name : {"train_data", "test_data", "other"}) {
    const std::string file = tuples_npz(name, 3);
    const Tuples tuples = parse_tuples(source_of(file));
    EXPECT_EQ(tuples.width, 2);
    EXPECT_THAT(tuples.values, ElementsAre(0, 6, 2, 3));
    EXPECT_THAT(tuples.type_sizes, ElementsAre(3, 4));
    EXPECT_EQ(tuples.nodes(), 7);
  }
  const std::string file = tuples_npz("train_data", 2);
  EXPECT_EQ(input_error_of([&] { parse_tuples(source_of(file)); }),
            "cannot read f, array train_data: row 0, column 1: expected nodes 0 to 2, got 3");
}

TEST(Tuples, ComeFromArraysAndText) {
  const Tuples array =
      parse_tuples(source_of(npy_file("|u1", "(2, 3)", raw<uint8_t>({0, 1, 2, 3, 4, 5}))));
  EXPECT_EQ(array.width, 3);
  EXPECT_EQ(array.count(), 2);
  EXPECT_EQ(array.nodes(), 6);
  const Tuples text = parse_tuples(source_of("user,item\n0,4\n1,2.0\n"));
  EXPECT_THAT(text.values, ElementsAre(0, 4, 1, 2));
  EXPECT_EQ(text.nodes(), 5);
}

TEST(Tuples, NameWhatIsWrong) {
  const auto error = [](const std::string& file, const TuplesOptions& options = {}) {
    return input_error_of([&] { parse_tuples(source_of(file), options); });
  };
  EXPECT_EQ(error("0,1\n", {.width = 3}), "cannot read f: expected tuples of 3 nodes, got 2");
  EXPECT_EQ(error("0,-1\n"), "cannot read f: row 0: expected nodes from 0 on, got -1");
  EXPECT_EQ(error("0,1\n0,1.5\n"),
            "cannot read f: line 2, column x1: expected an integer, got \"1.5\"");
  EXPECT_EQ(error("0,\n"),
            "cannot read f: line 1, column x1: expected a number, got a missing value");
  EXPECT_EQ(error(npy_file("<i4", "(1,)", "1234")),
            "cannot read f: expected tuples of shape [rows, nodes], got shape [1]");
  EXPECT_EQ(error(npy_file("<i4", "(4611686018427387904, 0)", "")),
            "cannot read f: tuples without nodes");
  const std::string both = zip_file({{"train_data.npy", npy_file("|u1", "(1, 1)", "a")},
                                     {"test_data.npy", npy_file("|u1", "(1, 1)", "b")}},
                                    false);
  EXPECT_EQ(error(both), "cannot read f: holds train_data and test_data: name one");
  EXPECT_EQ(parse_tuples(source_of(both), {.key = "test_data"}).values[0], 'b');
  const std::string sizes = zip_file({{"train_data.npy", npy_file("|u1", "(1, 2)", "ab")},
                                      {"nums_type.npy", npy_file("|u1", "(1,)", "b")}},
                                     false);
  EXPECT_EQ(error(sizes),
            "cannot read f, array nums_type: expected one number for each of 2 columns, got shape "
            "[1]");
}

}  // namespace
}  // namespace nsimplex::io
