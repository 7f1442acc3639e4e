// Declares lists of edges, and how they are read.

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_file.h"
#include "io/text_grid.h"

namespace nsimplex::io {

/// Pairs of nodes as a file lists them, in its order, with repetitions and loops.
struct EdgeList {
  int64_t nodes = 0;
  std::vector<int64_t> edges;      ///< pairs (from, to), one after the other
  std::vector<double> weights;     ///< one per edge; empty if the file has none
  std::vector<std::string> names;  ///< of the nodes; empty if the file numbers them
  bool roles = false;              ///< a header says which column is the source
  TextReading reading;             ///< decisions made while reading
};

/// Whether a line is the header of a list of edges. Such a header has names for the two ends of
/// edges, such as source and target, from and to, cause and effect, node1 and node2, in any case,
/// with or without underscores, blanks and "id".
bool is_edge_header(std::span<const std::string_view> words);

/// Whether a name of a column says that it has weights: weight, score, .. but not w, which may be a
/// node beside u and v.
bool names_weights(std::string_view name);

/// Reads lines "from to" or "from to weight" by the rules of TextGrid, separated by tabs, commas,
/// semicolons or blanks. Lines that begin with # or % are comments. A header may name the columns
/// of sources, targets and weights, in any order and among others: see is_edge_header(). Any names
/// above numbers are also a header.
///
/// If every node is a number from 0 on, these are the nodes, and the largest one gives their count.
/// But if some are in quotes, or the largest is more than 16 times the number of edge ends, the
/// numbers are names in ascending order. Otherwise nodes are names, numbered in the order in which
/// they appear.
///
/// A GraphML file is read as parse_graphml() says.
///
/// Fails, with the line, for another number of words, weights that are not numbers, a node without
/// a name, a file without edges, and files of other formats for graphs. Time and memory are
/// proportional to the bytes.
EdgeList parse_edge_list(const Source& source, const TextOptions& options = {});

/// parse_edge_list() of a file.
EdgeList read_edge_list(const std::string& path, const TextOptions& options = {});

}  // namespace nsimplex::io
