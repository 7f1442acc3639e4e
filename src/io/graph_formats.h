#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/edge_list.h"
#include "io/input_file.h"

namespace nsimplex::io {

/// An undirected graph without loops.
struct SimpleGraph {
  int64_t nodes = 0;
  std::vector<int64_t> edges;  ///< pairs (i, j) with i < j, one after the other, each once
};

/// One graph in graph6, with or without the header ">>graph6<<": a size of 1, 4 or 8 characters and
/// six pairs of nodes a character. Fails for sparse6 and digraph6, for characters out of range and
/// for another length than the size asks for.
/// Format: https://users.cecs.anu.edu.au/~bdm/data/formats.txt
SimpleGraph parse_graph6(const Source& code);

/// Graphs of a file: lines of graph6, or an npy array of graph6 strings (in C order, so that pairs
/// in two columns are neighbours).
std::vector<SimpleGraph> parse_graphs(const Source& source);

/// parse_graphs() of a file.
std::vector<SimpleGraph> read_graphs(const std::string& path);

/// Whether a text is XML, as GraphML is.
bool is_xml(std::string_view text);

/// Nodes, edges and weights of a GraphML file. A node is called by its data of the key with the
/// name "name" or "label", or else by its id; nodes come in the order of the file, those without
/// edges, too. A weight is the edge's data of the key with the name "weight". `roles`: edges are
/// directed.
///
/// Reads the elements graphml, key, graph, node, edge and data, wherever they stand, and passes
/// over all others; entities are the five of XML and numbers of characters, none is ever defined.
/// Fails, with the line, for what is not well-formed in these, two nodes of one id or one name, an
/// edge of a node that is not there, weights of some edges only, and XML without a graphml element.
/// Takes time proportional to the bytes, and the memory of no nesting. Format:
/// http://graphml.graphdrawing.org/specification.html
EdgeList parse_graphml(const Source& source);

}  // namespace nsimplex::io
