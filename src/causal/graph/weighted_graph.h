#pragma once

#include <string>
#include <vector>

#include "causal/matrix.h"
#include "io/input_file.h"
#include "io/text_grid.h"

namespace nsimplex::causal {

/// A directed, weighted graph as a file has it.
struct GraphFile {
  struct Edge {
    int64_t cause, effect;
    double weight;  ///< not 0
    bool operator==(const Edge&) const = default;
  };
  int64_t nodes = 0;
  std::vector<std::string> names;  ///< of the nodes; empty where the file numbers them
  std::vector<Edge> edges;         ///< in the file's order
  bool complete = false;           ///< it names all nodes: a matrix, which may have isolated ones
  bool roles = false;              ///< a list whose header says which column has the causes
  io::TextReading reading;         ///< what was decided to read a text
};

/// A graph from an adjacency matrix (A_ij of i -> j: npy, npz, csv or tsv, with or without a line
/// of names and a first column of them) or an edge list (io/edge_list.h; weight 1 where it has
/// none). A text with as many columns as rows below its names is a matrix; one of two or three
/// columns, or with the header of a list, is a list where that does not fit. Entries and weights of
/// 0 are no edges.
///
/// Fails for a matrix that is not square or misses values.
GraphFile parse_graph(const io::Source& source, const io::TextOptions& options = {});

/// parse_graph() of a file.
GraphFile read_graph(const std::string& path, const io::TextOptions& options = {});

/// The graph over the columns of a table, by name where both have names, else by number; the
/// numbers of a list are names where each is the name of a column. Of edges that come twice the
/// last one counts. Throws InputError "cannot use NAME: WHY" for a node that is no column, and a
/// matrix of another size.
Matrix graph_over(const GraphFile& graph, const std::vector<std::string>& columns, int64_t count,
                  const std::string& name);

}  // namespace nsimplex::causal
