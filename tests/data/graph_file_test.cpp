#include "data/simple_graph.h"

#include <gmock/gmock.h>

#include "data/molecule_file.h"
#include "input_error_of.h"

namespace nsimplex::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class GraphFile : public testing::Test {
 protected:
  std::vector<io::SimpleGraph> read(const std::string& contents) {
    return read_simple_graphs(test::write_file(folder_ / "graphs", contents)).graphs;
  }

  test::TemporaryFolder folder_;
};

TEST_F(GraphFile, OfMolecules) {
  const auto graphs = read(io::zip_file(test::molecule_arrays(), true));
  ASSERT_THAT(graphs, SizeIs(3));
  EXPECT_EQ(graphs[0].nodes, 3);
  EXPECT_THAT(graphs[0].edges, ElementsAre(0, 1, 1, 2));
  EXPECT_EQ(graphs[1].nodes, 1);
  EXPECT_THAT(graphs[1].edges, SizeIs(0));
  EXPECT_THAT(graphs[2].edges, ElementsAre(0, 1));
}

TEST_F(GraphFile, OfGraph6) {
  const auto graphs = read("Bw\nBg\n");  // a triangle, a path of three nodes
  ASSERT_THAT(graphs, SizeIs(2));
  EXPECT_THAT(graphs[0].edges, SizeIs(6));
  EXPECT_THAT(graphs[1].edges, SizeIs(4));
  EXPECT_EQ(graphs[1].nodes, 3);
}

TEST_F(GraphFile, OfEdges) {
  for (const std::string comment : {"", "# edges\n", "\n"}) {
    const auto graphs = read(comment + "1 0\n0 1\n2 2\n1,3\n");
    ASSERT_THAT(graphs, SizeIs(1));
    EXPECT_EQ(graphs[0].nodes, 4);
    EXPECT_THAT(graphs[0].edges, ElementsAre(0, 1, 1, 3));
  }
}

TEST_F(GraphFile, OfNoneOfThese) {
  for (const std::string contents : {"", "E!\n", "0 1 2 3\n"}) {
    EXPECT_THAT(test::input_error_of([&] { read(contents); }), HasSubstr("cannot read"));
  }
}

}  // namespace
}  // namespace nsimplex::data
