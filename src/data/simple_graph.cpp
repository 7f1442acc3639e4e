// Reads simple graphs from molecules, graph6 and lists of edges.

#include "data/simple_graph.h"

#include <algorithm>
#include <set>

#include "data/molecules.h"
#include "io/edge_list.h"
#include "io/input_file.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/text.h"

namespace nsimplex::data {
namespace {

std::vector<io::SimpleGraph> bonds_of(const Molecules& molecules) {
  const int64_t* bonds = molecules.bonds.const_data_ptr<int64_t>();
  const int64_t* first_atom = molecules.atom_offsets.const_data_ptr<int64_t>();
  const int64_t* first_bond = molecules.bond_offsets.const_data_ptr<int64_t>();
  std::vector<io::SimpleGraph> graphs(molecules.size());
  for (int64_t b = 0; b < molecules.size(); ++b) {
    graphs[b].nodes = first_atom[b + 1] - first_atom[b];
    graphs[b].edges.assign(bonds + 2 * first_bond[b], bonds + 2 * first_bond[b + 1]);
  }
  return graphs;
}

io::SimpleGraph graph_of(const io::EdgeList& list) {
  std::set<std::pair<int64_t, int64_t>> edges;
  for (size_t i = 0; i < list.edges.size(); i += 2) {
    const auto [low, high] = std::minmax(list.edges[i], list.edges[i + 1]);
    if (low != high) edges.emplace(low, high);
  }
  io::SimpleGraph graph{list.nodes, {}};
  for (const auto& [low, high] : edges) graph.edges.insert(graph.edges.end(), {low, high});
  return graph;
}

// A line of graph6 never has two words; only lists of edges have comments and blank lines first.
bool lists_edges(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = io::take_line(text);
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) continue;
    if (line[begin] == '#' || line[begin] == '%' || line[begin] == '<') return true;
    const size_t end = line.find_last_not_of(" \t");
    return line.substr(begin, end - begin).find_first_of(" \t,;\"") != std::string_view::npos;
  }
  return false;
}

}  // namespace

SimpleGraphs read_simple_graphs(const std::string& path, const io::TextOptions& options) {
  const io::FileBytes file(path);
  const io::Source source{path, file.bytes()};
  if (source.starts_with(io::kZipMagic)) return {bonds_of(read_molecules(path)), {}};
  if (source.starts_with(io::kNpyMagic)) return {io::parse_graphs(source), {}};
  if (!lists_edges(io::Text(source).view())) return {io::parse_graphs(source), {}};
  io::EdgeList list = io::parse_edge_list(source, options);
  return {{graph_of(list)}, std::move(list.reading)};
}

}  // namespace nsimplex::data
