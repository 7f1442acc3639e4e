#include "causal/graph/weighted_graph.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <span>
#include <string>
#include <vector>

#include "causal/graph/graph_text.h"
#include "input_error_of.h"
#include "io/npy.h"
#include "io/table.h"

namespace nsimplex::causal {
namespace {

using FileEdge = GraphFile::Edge;

io::Source source_of(const std::string& text) {
  return {"g", std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size())};
}

GraphFile parse(const std::string& text) { return parse_graph(source_of(text)); }

const std::vector<FileEdge> kChain{{0, 1, 1.0}, {1, 2, -0.5}};

TEST(GraphFile, MatricesWithNamesWithoutAndWithLabels) {
  for (const char* text :
       {"a,b,c\n0,1,0\n0,0,-0.5\n0,0,0\n", "0,1,0\n0,0,-0.5\n0,0,0\n",
        "4,8,13\n0,1,0\n0,0,-0.5\n0,0,0\n", ",a,b,c\na,0,1,0\nb,0,0,-0.5\nc,0,0,0\n",
        "a\tb\tc\na\t0\t1\t0\nb\t0\t0\t-0.5\nc\t0\t0\t0\n"}) {
    const GraphFile graph = parse(text);
    EXPECT_EQ(graph.nodes, 3) << text;
    EXPECT_EQ(graph.edges, kChain) << text;
    EXPECT_TRUE(graph.complete);
  }
  EXPECT_EQ(parse("4,8\n0,1\n0,0\n").names, (std::vector<std::string>{"4", "8"}));
  const std::vector<double> values{0, 1, 0, 0, 0, -0.5, 0, 0, 0};
  const std::vector<int64_t> shape{3, 3};
  EXPECT_EQ(parse(io::npy_bytes(values, shape)).edges, kChain);
}

TEST(GraphFile, ListsOfEdges) {
  const GraphFile named = parse("source\ttarget\tweight\na\tb\t1\nb\tc\t-0.5\nc\ta\t0\n");
  EXPECT_EQ(named.names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(named.edges, kChain);
  EXPECT_FALSE(named.complete);
  EXPECT_EQ(parse("0 1\n1 2\n").edges, (std::vector<FileEdge>{{0, 1, 1.0}, {1, 2, 1.0}}));
  // Three columns and three lines, but with the header of a list.
  EXPECT_EQ(parse("from,to,weight\n0,1,1\n1,2,-0.5\n2,3,2\n").nodes, 4);
  EXPECT_EQ(parse("a,b,1\nb,c,2\nc,d,2\n").nodes, 4);
  EXPECT_EQ(parse("\"a b\",\"c,d\"\n").names, (std::vector<std::string>{"a b", "c,d"}));
}

TEST(GraphFile, SaysWhatIsWrong) {
  const auto error = [](const std::string& text) {
    return nsimplex::test::input_error_of([&] { parse(text); });
  };
  EXPECT_EQ(error("a,b,c,d\n0,0,0,0\n0,0,0,0\n"),
            "cannot read g: expected a square matrix, got 2 x 4");
  EXPECT_EQ(error("a,b,c,d\n0,0,0,0\n0,0,x,0\n0,0,0,0\n0,0,0,0\n"),
            "cannot read g: line 3, column c: expected a number, got \"x\"");
  EXPECT_EQ(error("0,0,0,0\n0,0,0,\n0,0,0,0\n0,0,0,0\n"),
            "cannot read g: line 2, column x3: expected a number, got a missing value");
  EXPECT_EQ(error(""), "cannot read g: holds no edges");
}

TEST(GraphOver, FindsColumnsByName) {
  const std::vector<std::string> columns{"c", "a", "b", "d"};
  const Matrix matrix = graph_over(parse("a b 2\nb c 3\n"), columns, 4, "g");
  EXPECT_EQ(matrix(1, 2), 2.0);
  EXPECT_EQ(matrix(2, 0), 3.0);
  EXPECT_EQ(matrix.cwiseAbs().sum(), 5.0);
  EXPECT_EQ(graph_over(parse("0 1 2\n"), columns, 4, "g")(0, 1), 2.0);
  EXPECT_EQ(graph_over(parse("a,b\n0,1\n0,0\n"), {"b", "a"}, 2, "g")(1, 0), 1.0);
  EXPECT_EQ(graph_over(parse("a,b\n0,1\n0,0\n"), {}, 2, "g")(0, 1), 1.0);
}

TEST(GraphOver, NumbersAreNamesWhereColumnsAreCalledSo) {
  const std::vector<std::string> columns{"2018", "2019", "2020", "1"};
  EXPECT_EQ(graph_over(parse("source,target\n2018,2019\n2019,2020\n"), columns, 4, "g")(1, 2), 1.0);
  EXPECT_EQ(graph_over(parse("1 2018\n"), columns, 4, "g")(3, 0), 1.0);
  EXPECT_EQ(graph_over(parse("1 2\n"), columns, 4, "g")(1, 2), 1.0);
  EXPECT_EQ(graph_over(parse("1 2\n"), {"3", "2", "1", "0"}, 4, "g")(2, 1), 1.0);
}

TEST(GraphOver, SaysWhatDoesNotFit) {
  const auto error = [](const std::string& text, const std::vector<std::string>& columns) {
    return nsimplex::test::input_error_of([&] { graph_over(parse(text), columns, 2, "truth g"); });
  };
  EXPECT_EQ(error("a x\n", {"a", "b"}), "cannot use truth g: \"x\" is no column of the table");
  EXPECT_EQ(
      error("0 5\n", {"a", "b"}),
      "cannot use truth g: expected a graph over the 2 columns of the table, got one of 6 nodes");
  EXPECT_EQ(error("a b\n", {}),
            "cannot use truth g: it names its nodes, but the table has no names");
  EXPECT_EQ(
      error("0,1,0\n0,0,0\n0,0,0\n", {"a", "b"}),
      "cannot use truth g: expected a graph over the 2 columns of the table, got one of 3 nodes");
}

NamedGraph odd_names() {
  NamedGraph graph{{"a b", "c,\"d\"", "<e>"}, Matrix::Zero(3, 3)};
  graph.weights(0, 1) = 0.1;
  graph.weights(1, 2) = -2e-7;
  return graph;
}

TEST(GraphText, WhatIsWrittenIsRead) {
  const NamedGraph graph = odd_names();
  const std::vector<FileEdge> edges{{0, 1, 0.1}, {1, 2, -2e-7}};
  const GraphFile matrix = parse(adjacency_csv(graph));
  EXPECT_EQ(matrix.edges, edges);
  EXPECT_EQ(matrix.names, graph.names);
  EXPECT_EQ(parse(edge_list_tsv(graph)).edges, edges);
  EXPECT_EQ(parse(edge_list_tsv(graph)).names[0], "a b");
  const io::Table table = io::parse_table(
      source_of(table_csv({"x"}, TableView(edges.size() ? &edges[0].weight : nullptr, 1, 1))));
  EXPECT_EQ(table.at(0, 0), 0.1);
}

// Names that mean something to one of the formats, and their pieces put together.
std::vector<std::string> hostile_names() {
  const auto piece = rc::gen::elementOf(std::vector<std::string>{"a",        "b",
                                                                 "\"",       ",",
                                                                 ";",        "|",
                                                                 "\t",       "\n",
                                                                 "\r",       " ",
                                                                 ":",        "#",
                                                                 "%",        "0",
                                                                 "1",        "7",
                                                                 "-",        ".",
                                                                 "NA",       "inf",
                                                                 "TRUE",     "1e400",
                                                                 "?",        "\xef\xbb\xbf",
                                                                 "\xc3\xa9", "\xf0\x9f\x98\x80",
                                                                 "source",   "target",
                                                                 "weight",   "from",
                                                                 "to",       "sep=;"});
  const auto name = rc::gen::map(rc::gen::container<std::vector<std::string>>(piece),
                                 [](const std::vector<std::string>& pieces) {
                                   std::string whole;
                                   for (const std::string& each : pieces) whole += each;
                                   return whole.empty() ? std::string("e") : whole;
                                 });
  const auto set = *rc::gen::container<std::set<std::string>>(name);
  std::vector<std::string> names(set.begin(), set.end());
  while (names.size() < 2) names.push_back(names.empty() ? "source" : names[0] + "'");
  return names;
}

TEST(GraphText, WhateverTheNamesAreWhatIsWrittenIsRead) {
  rc::check([] {
    NamedGraph graph{hostile_names(), {}};
    const auto count = std::ssize(graph.names);
    graph.weights = Matrix::Zero(count, count);
    for (Eigen::Index i = 0; i < count; ++i) {
      for (Eigen::Index j = i + 1; j < count; ++j)
        graph.weights(i, j) = *rc::gen::element(0.0, 0.5, 1.0);
    }
    const GraphFile matrix = parse(adjacency_csv(graph));
    RC_ASSERT(matrix.names == graph.names);
    RC_ASSERT(matrix.complete);
    RC_ASSERT(graph_over(matrix, graph.names, count, "g") == graph.weights);
    if ((graph.weights.array() != 0.0).any()) {
      const GraphFile list = parse(edge_list_tsv(graph));
      RC_ASSERT(list.roles);
      RC_ASSERT(graph_over(list, graph.names, count, "g") == graph.weights);
    }
    if ((graph.weights.array() != 0.0).any()) {
      const GraphFile xml = parse(graphml(graph));
      RC_ASSERT(xml.names == graph.names);
      RC_ASSERT(graph_over(xml, graph.names, count, "g") == graph.weights);
    }
    const std::string text = table_csv(graph.names, TableView(graph.weights.data(), count, count));
    const io::Table table = io::parse_table(source_of(text));
    RC_ASSERT(table.columns == graph.names);
    RC_ASSERT(table.rows == count);
  });
}

TEST(GraphText, OtherPrograms) {
  const NamedGraph graph = odd_names();
  EXPECT_EQ(graphml(graph),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
            "  <key id=\"name\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\n"
            "  <key id=\"weight\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>\n"
            "  <graph edgedefault=\"directed\">\n"
            "    <node id=\"n0\"><data key=\"name\">a b</data></node>\n"
            "    <node id=\"n1\"><data key=\"name\">c,&quot;d&quot;</data></node>\n"
            "    <node id=\"n2\"><data key=\"name\">&lt;e&gt;</data></node>\n"
            "    <edge source=\"n0\" target=\"n1\"><data key=\"weight\">0.1</data></edge>\n"
            "    <edge source=\"n1\" target=\"n2\"><data key=\"weight\">-2e-07</data></edge>\n"
            "  </graph>\n</graphml>\n");
  const std::string text = dot(graph);
  EXPECT_NE(text.find("\"a b\" -> \"c,\\\"d\\\"\" [weight=0.1, label=\"0.1\", penwidth=3];"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("style=dashed"), std::string::npos);
  EXPECT_EQ(dot({{"a"}, Matrix::Zero(1, 1)}), "digraph {\n  \"a\";\n}\n");
}

TEST(Npy, BytesThatAreRead) {
  const std::vector<double> values{1, -2.5, 3e300, 4, 5, 6};
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{6}, std::vector<int64_t>{2, 3}}) {
    const std::string bytes = io::npy_bytes(values, shape);
    EXPECT_EQ((bytes.size() - 48) % 64, 0u);
    const io::Array array = io::parse_npy(source_of(bytes));
    EXPECT_EQ(array.shape, shape);
    EXPECT_EQ(array.doubles(), values);
  }
}

}  // namespace
}  // namespace nsimplex::causal
