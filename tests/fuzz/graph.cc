#include <optional>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "graph/adjacency.h"
#include "graph/curvature.h"
#include "graph/laplacian.h"
#include "graph/tuple_lists.h"

using namespace nsimplex;
using namespace nsimplex::graph;

// A number of nodes, a symmetry, and edges or triples of nodes, a byte each; what is no batch of
// tuples is left out, as at the doors of the operators.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMostRows = 200;
  if (size < 3) return 0;
  const int64_t nodes = data[0] % 64 + 1, width = data[1] % 3 + 1;
  const auto symmetry = data[2] % 2 == 0 ? Symmetry::undirected : Symmetry::ordered;
  const size_t rows = std::min((size - 3) / width, kMostRows);
  TupleList list{width, {}, {}};
  for (size_t row = 0; row < rows; ++row) {
    std::vector<int64_t> tuple;
    for (int64_t i = 0; i < width; ++i) tuple.push_back(data[3 + row * width + i] % nodes);
    list.add(tuple, -1);
  }
  const TupleList sorted = sorted_unique(list, nodes);
  const std::vector<int64_t> tuple_offsets = {0, sorted.count()}, node_offsets = {0, nodes};
  const TupleView batch{sorted.rows(), tuple_offsets, node_offsets, symmetry};
  const Adjacency neighbours = adjacency_of(batch);
  components_of(batch);
  cliques_of(neighbours, 4);
  laplacian_spectrum(neighbours, 0, nodes, std::min<int64_t>(nodes, 4));
  if (find_tuple_fault(batch)) return 0;
  all_orders(batch);
  with_loops(batch);
  for (int64_t order = 1; order <= width; ++order) project(batch, order, symmetry);
  bool simple = width == 2 && symmetry == Symmetry::undirected;
  for (int64_t row = 0; row < sorted.count() && simple; ++row) {
    simple = sorted.values[2 * row] != sorted.values[2 * row + 1];
  }
  if (!simple) return 0;
  line_graph_of(sorted.rows(), nodes);
  compare_with_line_graph(sorted.rows(), nodes);
  return 0;
}
