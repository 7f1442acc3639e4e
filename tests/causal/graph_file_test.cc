#include "causal/graphs/graph_file.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "causal/graphs/graph_text.h"
#include "input_error_of.h"
#include "io/npy.h"
#include "io/table.h"

namespace nsimplex::causal {
namespace {

using Edge = GraphFile::Edge;

io::Source source_of(const std::string& text) {
  return {"g", std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size())};
}

GraphFile parse(const std::string& text) { return parse_graph(source_of(text)); }

const std::vector<Edge> kChain{{0, 1, 1.0}, {1, 2, -0.5}};

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
  EXPECT_EQ(parse("0 1\n1 2\n").edges, (std::vector<Edge>{{0, 1, 1.0}, {1, 2, 1.0}}));
  // Three columns and three lines, but with the header of a list.
  EXPECT_EQ(parse("from,to,weight\n0,1,1\n1,2,-0.5\n2,3,2\n").nodes, 4);
  EXPECT_EQ(parse("a,b,1\nb,c,2\nc,d,2\n").nodes, 4);
  EXPECT_EQ(parse("\"a b\",\"c,d\"\n").names, (std::vector<std::string>{"a b", "c,d"}));
}

TEST(GraphFile, SaysWhatIsWrong) {
  const auto error = [](const std::string& text) {
    return test::input_error_of([&] { parse(text); });
  };
  EXPECT_EQ(error("a,b,c,d\n0,0,0,0\n0,0,0,0\n"),
            "cannot read g: expected a square matrix, got 2 x 4");
  EXPECT_EQ(error("a,b,c,d\n0,0,0,0\n0,0,x,0\n0,0,0,0\n0,0,0,0\n"),
            "cannot read g: line 3, column c: expected a number, got \"x\"");
  EXPECT_EQ(error("0,0,0,0\n0,0,0,\n0,0,0,0\n0,0,0,0\n"),
            "cannot read g: line 2, column 4: expected a number, got a missing value");
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

TEST(GraphOver, SaysWhatDoesNotFit) {
  const auto error = [](const std::string& text, const std::vector<std::string>& columns) {
    return test::input_error_of([&] { graph_over(parse(text), columns, 2, "truth g"); });
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
  const std::vector<Edge> edges{{0, 1, 0.1}, {1, 2, -2e-7}};
  const GraphFile matrix = parse(adjacency_csv(graph));
  EXPECT_EQ(matrix.edges, edges);
  EXPECT_EQ(matrix.names, graph.names);
  EXPECT_EQ(parse(edge_list_tsv(graph)).edges, edges);
  EXPECT_EQ(parse(edge_list_tsv(graph)).names[0], "a b");
  const io::Table table = io::parse_table(
      source_of(table_csv({"x"}, TableView(edges.size() ? &edges[0].weight : nullptr, 1, 1))));
  EXPECT_EQ(table.at(0, 0), 0.1);
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
