// Declares the readers of graph6 and GraphML.

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
  /// pairs (i, j) with i < j, one after the other, without repetitions
  std::vector<int64_t> edges;
};

/// Parses one graph in graph6, with or without the header ">>graph6<<": a size of 1, 4 or 8
/// characters, then six pairs of nodes per character. Fails for sparse6 and digraph6, for
/// characters out of range and for a length that does not match the size.
/// Format: https://users.cecs.anu.edu.au/~bdm/data/formats.txt
SimpleGraph parse_graph6(const Source& code);

/// Parses the graphs of a file: lines of graph6, or an npy array of graph6 strings (in C order, so
/// that pairs in two columns are neighbours).
std::vector<SimpleGraph> parse_graphs(const Source& source);

/// parse_graphs() of a file.
std::vector<SimpleGraph> read_graphs(const std::string& path);

/// Whether a text is XML, as GraphML is.
bool is_xml(std::string_view text);

/// Parses nodes, edges and weights of a GraphML file. The name of a node is its data for the key
/// with the name "name" or "label", otherwise its id. Nodes, including those without edges, are in
/// the order of the file. The weight of an edge is its data for the key with the name "weight".
/// `roles`: edges are directed.
///
/// It reads the elements graphml, key, graph, node, edge and data at any depth and skips all
/// others. Entities are the five of XML and numbers of characters; others cannot be defined. It
/// fails, with the line, if these elements are not well-formed, if two nodes have the same id or
/// name, if an edge has an unknown node, if only some edges have weights, and for XML without a
/// graphml element. The time is proportional to the bytes, and nesting needs no memory. Format:
/// http://graphml.graphdrawing.org/specification.html
EdgeList parse_graphml(const Source& source);

}  // namespace nsimplex::io
