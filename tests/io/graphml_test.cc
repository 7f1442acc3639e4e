#include "io/graph_formats.h"

#include <gmock/gmock.h>

#include "input_error_of.h"
#include "io/samples.h"

namespace nsimplex::io {
namespace {

using test::input_error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

EdgeList graphml(const std::string& text) { return parse_edge_list(source_of(text)); }

std::string graphml_error(const std::string& text) {
  return input_error_of([&] { graphml(text); });
}

// As networkx.write_graphml() writes a graph.
TEST(GraphMl, ReadsNodesEdgesAndWeights) {
  const EdgeList list = graphml(
      "<?xml version='1.0' encoding='utf-8'?>\n"
      "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
      "  <key id=\"d0\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>\n"
      "  <!-- <node id=\"no\"/> -->\n"
      "  <graph edgedefault=\"undirected\"><node id=\"b\"/><node id=\"a &amp; &#xe9;\"/><node "
      "id='c'/>\n"
      "    <edge source=\"b\" target=\"a &amp; &#233;\"><data key=\"d0\">0.5</data></edge>\n"
      "  </graph>\n</graphml>\n");
  EXPECT_THAT(list.names, ElementsAre("b", "a & \xc3\xa9", "c"));
  EXPECT_THAT(list.edges, ElementsAre(0, 1));
  EXPECT_THAT(list.weights, ElementsAre(0.5));
  EXPECT_FALSE(list.roles);
}

TEST(GraphMl, NamesOfNodesAreDataOrIds) {
  const EdgeList list = graphml(
      "<graphml><key id=\"k\" attr.name=\"name\"/><graph edgedefault=\"directed\">"
      "<node id=\"n0\"><data key=\"k\"><![CDATA[x < y]]></data></node><node id=\"n1\"></node>"
      "<edge source=\"n1\" target=\"n0\"/></graph></graphml>");
  EXPECT_THAT(list.names, ElementsAre("x < y", "n1"));
  EXPECT_THAT(list.edges, ElementsAre(1, 0));
  EXPECT_THAT(list.weights, IsEmpty());
  EXPECT_TRUE(list.roles);
}

TEST(GraphMl, SaysWhatIsWrong) {
  const auto graph = [](const std::string& inner) {
    return graphml_error("<graphml>\n<graph>" + inner + "</graph></graphml>");
  };
  EXPECT_THAT(graphml_error("<?xml version=\"1.0\"?><html></html>"),
              HasSubstr("without a graphml element"));
  EXPECT_THAT(graph("<node id=\"a\"/>"), HasSubstr("holds no edges"));
  EXPECT_THAT(graph("<node id=\"a\"/><node id=\"a\"/>"), HasSubstr("line 2: a second node \"a\""));
  EXPECT_THAT(graph("<edge source=\"a\" target=\"b\"/>"),
              HasSubstr("node \"a\", which is not there"));
  EXPECT_THAT(graph("<node id=a/>"), HasSubstr("expected a value in quotes"));
  EXPECT_THAT(graph("<node id=\"&bomb;\"/>"), HasSubstr("an entity that is not known"));
  EXPECT_THAT(graph("<node id=\"a"), HasSubstr("a quote without its end"));
  EXPECT_THAT(graphml_error("digraph {\n a -> b;\n}\n"), HasSubstr("a DOT file"));
  EXPECT_THAT(graphml_error("graph [\n node [ id 0 ]\n]\n"), HasSubstr("a GML file"));
  EXPECT_THAT(graphml_error("{\"nodes\": []}"), HasSubstr("JSON"));
}

TEST(GraphMl, NestingTakesNoMemory) {
  std::string deep = "<graphml>";
  for (int i = 0; i < 1000000; ++i) deep += "<a>";
  EXPECT_THAT(graphml_error(deep), HasSubstr("holds no edges"));
}

}  // namespace
}  // namespace nsimplex::io
