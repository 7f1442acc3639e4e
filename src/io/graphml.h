#pragma once

#include <string_view>

#include "io/edge_list.h"

namespace nsimplex::io {

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
