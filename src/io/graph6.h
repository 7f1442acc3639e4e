#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/source.h"

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

}  // namespace nsimplex::io
