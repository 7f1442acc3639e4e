#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/source.h"

namespace nsimplex::io {

/// Pairs of nodes as a file lists them: in its order, repetitions and loops included.
struct EdgeList {
  int64_t nodes = 0;
  std::vector<int64_t> edges;      ///< pairs (from, to), one after the other
  std::vector<double> weights;     ///< one an edge; empty where the file has none
  std::vector<std::string> names;  ///< of the nodes; empty where the file numbers them
};

/// Whether the words of a line are the names of columns: source, from or node1, then target, to or
/// node2.
bool is_edge_header(std::span<const std::string_view> words);

/// Lines "from to" or "from to weight", between spaces, tabs, commas or semicolons; a word in
/// double quotes may hold these. Blank lines, lines that begin with # or %, and a first line of the
/// words source, from or node1 and target, to or node2 are passed over. Where every node is a
/// number from 0 on these are the nodes, as many as the largest says; otherwise they are names,
/// numbered as they come.
///
/// Fails, with the line, for another number of words, weights that are no numbers, weights on some
/// lines only, and a file without edges.
EdgeList parse_edge_list(const Source& source);

/// parse_edge_list() of a file.
EdgeList read_edge_list(const std::string& path);

}  // namespace nsimplex::io
