// Declares the reader of a weighted directed graph.

#pragma once

#include <string>
#include <vector>

#include "causal/matrix.h"
#include "io/input_file.h"
#include "io/text_grid.h"

namespace nsimplex::causal {

/// A directed, weighted graph as read from a file.
struct GraphFile {
  struct Edge {
    int64_t cause, effect;
    double weight;  ///< not 0
    bool operator==(const Edge&) const = default;
  };
  int64_t nodes = 0;
  std::vector<std::string> names;  ///< of the nodes; empty if the file numbers them
  std::vector<Edge> edges;         ///< in the file's order
  bool complete = false;           ///< it names all nodes: a matrix, which may have isolated ones
  bool roles = false;              ///< a list whose header says which column has the causes
  io::TextReading reading;         ///< decisions made while reading a text
};

/// Reads a graph from an adjacency matrix (A_ij of i -> j: npy, npz, csv or tsv, with or without a
/// line of names and a first column of them) or an edge list (io/edge_list.h; weight 1 if it has
/// none). A text with as many columns as rows below its names is a matrix. Otherwise one with two
/// or three columns, or with the header of a list, is a list. Entries and weights of 0 are not
/// edges.
///
/// Fails for a matrix that is not square or has missing values.
GraphFile parse_graph(const io::Source& source, const io::TextOptions& options = {});

/// parse_graph() of a file.
GraphFile read_graph(const std::string& path, const io::TextOptions& options = {});

/// The graph over the columns of a table, by name if both have names, otherwise by number. The
/// numbers of a list are names if each is the name of a column. If an edge occurs twice, the last
/// one counts. Throws InputError "cannot use NAME: WHY" for a node that is not a column, and for a
/// matrix of another size.
Matrix graph_over(const GraphFile& graph, const std::vector<std::string>& columns, int64_t count,
                  const std::string& name);

}  // namespace nsimplex::causal
