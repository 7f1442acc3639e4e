// Declares a weighted graph with names as text in several formats.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// Text for use between the tags of an XML 1.0 file, well-formed for any bytes. Marks of the syntax
/// are escaped, control characters that XML does not allow become their pictures (U+2400 and on),
/// and bytes that are not UTF-8 become U+FFFD.
std::string xml_text(std::string_view text);

/// A weighted graph with names for output; A_ij belongs to i -> j, 0 means no edge. Numbers are
/// written so that reading them gives the same bits.
struct NamedGraph {
  std::vector<std::string> names;  ///< one per node
  Matrix weights;                  ///< [M, M]
  /// [M, M] or empty: not 0 at edges of open direction. So is a pair with two weights.
  Matrix open = {};
};

/// A line of names, then the comma-separated matrix, as parse_graph() reads it. Rows also have
/// names if the names of the columns could be the header of a list of edges.
std::string adjacency_csv(const NamedGraph& graph);

/// source, target, weight, tab separated, one edge per line, sorted by source and target.
/// parse_graph() reads it, but isolated nodes are missing from it.
std::string edge_list_tsv(const NamedGraph& graph);

/// http://graphml.graphdrawing.org/specification.html, names as attribute `name`, weights as
/// `weight`. Edges of open direction are not directed.
std::string graphml(const NamedGraph& graph);

/// https://graphviz.org/doc/info/lang.html. Line widths show |weight|; negative edges are dashed, and
/// those of open direction have no head.
std::string dot(const NamedGraph& graph);

/// GML (Himsolt, 1997), as dowhy reads it: a directed graph, in which edges of open direction have
/// `open 1`.
std::string gml(const NamedGraph& graph);

/// A name as a cell of csv or tsv, in quotes if a reader would take it for anything else.
std::string text_cell(const std::string& name);

/// Rows of numbers below a line of names (without it if `names` is empty).
std::string table_csv(const std::vector<std::string>& names, TableView table);

}  // namespace nsimplex::causal
