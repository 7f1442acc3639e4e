// Equivariant layers in exact integers: the layer against its definition, networks on graphs of
// which the theory says what they can tell apart.

#include "equivariant/expressivity/field_network.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "equivariant/expressivity/colour_refinement.h"
#include "equivariant/known_graphs.h"

namespace nsimplex::equivariant {
namespace {

TEST(PrimeField, Arithmetic) {
  using field::kPrime;
  EXPECT_EQ(field::add(kPrime - 1, 1), 0u);
  EXPECT_EQ(field::add(kPrime - 1, kPrime - 1), kPrime - 2);
  EXPECT_EQ(field::multiply(kPrime - 1, kPrime - 1), 1u);
  EXPECT_EQ(field::multiply(kPrime - 1, 2), kPrime - 2);
  EXPECT_EQ(field::multiply(uint64_t{1} << 60, 2), 1u);  // 2^61 = 1
  EXPECT_EQ(field::reduce(~uint64_t{0}), 7u);            // 2^64 - 1 = 8 - 1
  EXPECT_LT(field::mix(1, 2), kPrime);
  EXPECT_NE(field::mix(1, 2), field::mix(2, 2));
}

// All indices of an order-r tensor, as numbers of the positions.
std::vector<std::vector<int64_t>> all_tuples(int64_t nodes, int64_t order) {
  std::vector<std::vector<int64_t>> tuples{{}};
  for (int64_t p = 0; p < order; ++p) {
    std::vector<std::vector<int64_t>> longer;
    for (const auto& tuple : tuples) {
      for (int64_t i = 0; i < nodes; ++i) {
        longer.push_back(tuple);
        longer.back().push_back(i);
      }
    }
    tuples = std::move(longer);
  }
  return tuples;
}

// Whether positions of one block have one node.
bool in_diagram(const Partition& diagram, const std::vector<int64_t>& i,
                const std::vector<int64_t>& j) {
  std::vector<int64_t> both(i);
  both.insert(both.end(), j.begin(), j.end());
  for (size_t p = 0; p < both.size(); ++p) {
    for (size_t q = 0; q < p; ++q) {
      if (diagram[p] == diagram[q] && both[p] != both[q]) return false;
    }
  }
  return true;
}

TEST(FieldLayer, IsTheSumOverDiagramsOfItsDefinition) {
  for (int64_t k = 0; k <= 3; ++k) {
    for (int64_t l = 0; l <= 3; ++l) {
      const FieldLayer layer(k, l);
      const auto weights = layer.weights(11);
      const int64_t nodes = 3;
      const auto inputs = all_tuples(nodes, k), outputs = all_tuples(nodes, l);
      FieldTensor x{k, nodes, {}};
      for (size_t i = 0; i < inputs.size(); ++i) {
        x.values.push_back(field::reduce(random_bits(5, i)));
      }
      const FieldTensor y = layer(x, weights);
      ASSERT_EQ(y.values.size(), outputs.size());
      for (size_t j = 0; j < outputs.size(); ++j) {
        uint64_t expected = 0;
        for (size_t d = 0; d < weights.size(); ++d) {
          for (size_t i = 0; i < inputs.size(); ++i) {
            if (!in_diagram(layer.diagrams()[d], inputs[i], outputs[j])) continue;
            expected = field::add(expected, field::multiply(weights[d], x.values[i]));
          }
        }
        ASSERT_EQ(y.values[j], expected) << k << " -> " << l << ", row " << j;
      }
    }
  }
}

bool network_tells_apart(const io::SimpleGraph& a, const io::SimpleGraph& b,
                         FieldNetworkOptions options) {
  const FieldNetwork network(options);
  return network(a) != network(b);
}

TEST(FieldNetwork, TwoTrianglesAndAHexagonNeedTriples) {
  EXPECT_FALSE(network_tells_apart(two_triangles(), cycle(6), {.order = 2}));
  EXPECT_TRUE(network_tells_apart(two_triangles(), cycle(6), {.order = 3}));
}

TEST(FieldNetwork, StronglyRegularGraphsOfEqualParametersAreEqualToTriples) {
  EXPECT_FALSE(network_tells_apart(shrikhande(), rook(), {.order = 2}));
  EXPECT_FALSE(network_tells_apart(shrikhande(), rook(), {.order = 3}));
}

TEST(FieldNetwork, ProductsOfPairsAreAsStrongAsTriples) {
  const FieldNetworkOptions ppgn{.order = 2, .products = true};
  EXPECT_TRUE(network_tells_apart(two_triangles(), cycle(6), ppgn));
  EXPECT_FALSE(network_tells_apart(shrikhande(), rook(), ppgn));
  EXPECT_TRUE(network_tells_apart({0, {}}, {1, {}}, ppgn));
  const auto pairs = control_pairs(5, 3);
  const FieldNetwork products(ppgn);
  for (size_t g = 0; g < pairs.size(); g += 2) {
    EXPECT_EQ(products(pairs[g]), products(relabeled(pairs[g], 7)));
    EXPECT_NE(products(pairs[g]), products(pairs[g + 1]));
  }
  // More nodes than products that are added at a time.
  EXPECT_EQ(products(cycle(70)), products(relabeled(cycle(70), 1)));
  EXPECT_EQ(products(cycle(70)).distinct, 36);  // distances on the cycle
}

TEST(FieldNetwork, RelabeledGraphsAndSizes) {
  for (const int64_t order : {2, 3}) {
    const auto pairs = control_pairs(5, 3);
    for (const io::SimpleGraph& graph : pairs) {
      EXPECT_FALSE(network_tells_apart(graph, relabeled(graph, 7), {.order = order}));
    }
    EXPECT_TRUE(network_tells_apart(cycle(6), cycle(7), {.order = order}));
    EXPECT_TRUE(network_tells_apart({0, {}}, {1, {}}, {.order = order}));
    EXPECT_FALSE(network_tells_apart({0, {}}, {0, {}}, {.order = order}));
  }
}

TEST(FieldNetwork, LayersFollowUntilNothingNewIsSeen) {
  // Along a path every layer of order 2 moves one step: 20 nodes know their place after 9.
  io::SimpleGraph path{20, {}};
  for (int64_t i = 0; i + 1 < path.nodes; ++i) path.edges.insert(path.edges.end(), {i, i + 1});
  const Fingerprint few = FieldNetwork({.order = 2, .min_layers = 1})(path);
  EXPECT_GT(few.layers, 5);
  // There are 10 kinds of nodes, mirror images being one: 100 kinds of pairs of kinds, of which 10
  // come equal or not and 18 as neighbours or not.
  EXPECT_EQ(few.distinct, 128);
  EXPECT_EQ(FieldNetwork({.order = 2, .min_layers = 30})(path).layers, 30);
  // Nothing is to be seen in a graph where all nodes are alike.
  EXPECT_EQ(FieldNetwork({.order = 2})(cycle(6)).layers, 5);
}

TEST(FieldNetwork, StopsByAnException) {
  EXPECT_THROW(FieldNetwork({})(cycle(6), [] { throw std::runtime_error("stop"); }),
               std::runtime_error);
}

TEST(ControlPairs, HaveEqualDegreesAndBothOrdersTellThemApart) {
  const auto graphs = control_pairs(100, 1);
  ASSERT_EQ(graphs.size(), 200u);
  const FieldNetwork pairs({.order = 2}), triples({.order = 3});
  for (size_t g = 0; g < graphs.size(); g += 2) {
    std::vector<std::vector<int64_t>> degrees(2, std::vector<int64_t>(graphs[g].nodes, 0));
    for (const size_t side : {0, 1}) {
      for (const int64_t node : graphs[g + side].edges) ++degrees[side][node];
    }
    EXPECT_EQ(degrees[0], degrees[1]);
    EXPECT_NE(pairs(graphs[g]), pairs(graphs[g + 1])) << g;
    EXPECT_NE(triples(graphs[g]), triples(graphs[g + 1])) << g;
  }
}

// What 3-WL tells apart of files that others wrote, below the folder NSIMPLEX_DATA; 1-WL tells
// none of these pairs apart.
struct Published {
  const char* file;
  int64_t pairs, distinguished;
};

void PrintTo(const Published& published, std::ostream* stream) { *stream << published.file; }

class PublishedPairs : public testing::TestWithParam<Published> {};

TEST_P(PublishedPairs, AreToldApartAsByColourRefinement) {
  const auto [file, pairs, distinguished] = GetParam();
  const char* folder = std::getenv("NSIMPLEX_DATA");
  const auto path = std::filesystem::path(folder ? folder : "") / "graphs" / file;
  if (folder == nullptr || !std::filesystem::exists(path)) {
    GTEST_SKIP() << "no graphs/" << file << " below NSIMPLEX_DATA";
  }
  const auto graphs = io::read_graphs(path);
  ASSERT_EQ(std::ssize(graphs), 2 * pairs);
  for (const int64_t order : {2, 3}) {
    const FieldNetwork network({.order = order});
    const FieldNetwork products({.order = 2, .products = true});
    int64_t refined = 0, layered = 0, multiplied = 0;
    for (int64_t g = 0; g < 2 * pairs; g += 2) {
      const auto kinds = refine_colours(std::span(graphs).subspan(g, 2), order);
      refined += kinds[0] != kinds[1];
      layered += network(graphs[g]) != network(graphs[g + 1]);
      if (order == 3) multiplied += products(graphs[g]) != products(graphs[g + 1]);
    }
    EXPECT_EQ(refined, order == 2 ? 0 : distinguished) << "order " << order;
    EXPECT_EQ(layered, order == 2 ? 0 : distinguished) << "order " << order;
    EXPECT_EQ(multiplied, order == 2 ? 0 : distinguished) << "order " << order;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Brec, PublishedPairs,
    testing::Values(Published{"brec/basic.npy", 60, 60}, Published{"brec/regular.npy", 50, 50},
                    Published{"brec/extension.npy", 100, 100}, Published{"brec/str.npy", 50, 0},
                    Published{"brec/4vtx.npy", 20, 0}, Published{"brec/dr.npy", 20, 0}));

TEST(PublishedFamily, StronglyRegularGraphsAreOneKind) {
  const char* folder = std::getenv("NSIMPLEX_DATA");
  const auto path = std::filesystem::path(folder ? folder : "") / "graphs/sr/sr261034.g6";
  if (folder == nullptr || !std::filesystem::exists(path)) {
    GTEST_SKIP() << "no graphs/sr/sr261034.g6 below NSIMPLEX_DATA";
  }
  const auto graphs = io::read_graphs(path);
  EXPECT_EQ(refine_colours(graphs, 3), std::vector<int64_t>(10, 0));
  const FieldNetwork network({.order = 3});
  for (const io::SimpleGraph& graph : graphs) EXPECT_EQ(network(graph), network(graphs[0]));
}

}  // namespace
}  // namespace nsimplex::equivariant
