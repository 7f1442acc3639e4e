#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// Text as it stands between the tags of an XML 1.0 file, well-formed whatever the bytes are: marks
/// of the syntax are escaped, control characters that XML has no place for become their pictures
/// (U+2400 and on), and what is no character in UTF-8 becomes U+FFFD.
std::string xml_text(std::string_view text);

/// A weighted graph with names, to be written; A_ij of i -> j, 0: no edge. Numbers are written so
/// that reading them gives the same bits.
struct NamedGraph {
  std::vector<std::string> names;  ///< one a node
  Matrix weights;                  ///< [M, M]
};

/// A line of names, then the matrix, comma separated: what parse_graph() reads. Rows have names,
/// too, where the names of the columns could be the header of a list of edges.
std::string adjacency_csv(const NamedGraph& graph);

/// source, target, weight, tab separated, one edge a line by source and target; what parse_graph()
/// reads, except that isolated nodes are not in it.
std::string edge_list_tsv(const NamedGraph& graph);

/// http://graphml.graphdrawing.org/specification.html, names as attribute `name`, weights as
/// `weight`.
std::string graphml(const NamedGraph& graph);

/// https://graphviz.org/doc/info/lang.html, widths of edges by |weight|, negative ones dashed.
std::string dot(const NamedGraph& graph);

/// A name as a cell of csv or tsv: in quotes where a reader would take it for anything else.
std::string text_cell(const std::string& name);

/// Rows of numbers below a line of names (none where `names` is empty).
std::string table_csv(const std::vector<std::string>& names, TableView table);

}  // namespace nsimplex::causal
