#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_file.h"
#include "io/text_grid.h"

namespace nsimplex::io {

/// Pairs of nodes as a file lists them: in its order, repetitions and loops included.
struct EdgeList {
  int64_t nodes = 0;
  std::vector<int64_t> edges;      ///< pairs (from, to), one after the other
  std::vector<double> weights;     ///< one an edge; empty where the file has none
  std::vector<std::string> names;  ///< of the nodes; empty where the file numbers them
  bool roles = false;              ///< a header says which column is the source
  TextReading reading;             ///< what was decided to read it
};

/// Whether a line is the header of a list of edges: it has names for where edges begin and end,
/// such as source and target, from and to, cause and effect, node1 and node2, in capitals or not,
/// with or without underscores, blanks and "id".
bool is_edge_header(std::span<const std::string_view> words);

/// Lines "from to" or "from to weight", read as TextGrid says, between tabs, commas, semicolons or
/// blanks; lines that begin with # or % are comments. A header may name the columns of sources,
/// targets and weights, in any order and among others: see is_edge_header(). Names above numbers
/// are a header, too, whatever they are.
///
/// Where every node is a number from 0 on these are the nodes, as many as the largest says; but
/// where some stand in quotes, or the largest is more than 16 times the ends of all edges, the
/// numbers are names, in ascending order. Otherwise they are names, numbered as they come.
///
/// A GraphML file is read as parse_graphml() says.
///
/// Fails, with the line, for another number of words, weights that are no numbers, a node without a
/// name, a file without edges, and files of other formats for graphs. Takes time and memory
/// proportional to the bytes.
EdgeList parse_edge_list(const Source& source, const TextOptions& options = {});

/// parse_edge_list() of a file.
EdgeList read_edge_list(const std::string& path, const TextOptions& options = {});

}  // namespace nsimplex::io
