// Writes a weighted graph as CSV, TSV, GraphML or DOT text.

#include "causal/graph/graph_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "io/edge_list.h"
#include "io/text.h"
#include "support/printable.h"

namespace nsimplex::causal {
namespace {

// The number of bytes of the character at the front of `text`, or 0 if it is not a character of
// XML.
size_t character(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(text[at]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  uint32_t code = lead & (0xFF >> (size + 1));
  for (size_t at = 1; at < size; ++at) {
    if ((byte(at) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(at) & 0x3F);
  }
  constexpr uint32_t kFirst[] = {0, 0, 0x80, 0x800, 0x10000};  // of each size
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool none = code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF;
  return code < kFirst[size] || surrogate || none ? 0 : size;
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const char c = text.front();
    const size_t size = character(text);
    if (size == 0) {
      result += "\xEF\xBF\xBD";
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (c == '\r') {
      result += "&#13;";  // readers would convert it to a line feed
    } else if (size == 1 && static_cast<uint8_t>(c) < 0x20 && c != '\t' && c != '\n') {
      result += {'\xE2', '\x90', static_cast<char>(0x80 + c)};
    } else {
      result += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return result;
}

namespace {

std::string shortest(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  return std::string(buffer, end);
}

// The text with every character of `special` replaced by its escape.
std::string escaped(const std::string& text, std::string_view special,
                    const std::vector<std::string>& replacements) {
  std::string result;
  for (const char c : text) {
    const size_t at = special.find(c);
    if (at == std::string_view::npos) {
      result.push_back(c);
    } else {
      result.append(replacements[at]);
    }
  }
  return result;
}

// Calls visit(source, target, weight) for every edge.
template <class Visit>
void each_edge(const NamedGraph& graph, Visit&& visit) {
  for (Eigen::Index source = 0; source < graph.weights.rows(); ++source) {
    for (Eigen::Index target = 0; target < graph.weights.cols(); ++target) {
      const double weight = graph.weights(source, target);
      if (weight != 0.0) visit(static_cast<size_t>(source), static_cast<size_t>(target), weight);
    }
  }
}

bool is_open(const NamedGraph& graph, size_t source, size_t target) {
  const auto i = static_cast<Eigen::Index>(source), j = static_cast<Eigen::Index>(target);
  return graph.weights(j, i) != 0 || (graph.open.size() > 0 && graph.open(i, j) != 0);
}

// each_edge() with a pair of two weights once: visit(source, target, weight, open).
template <class Visit>
void each_pair(const NamedGraph& graph, Visit&& visit) {
  each_edge(graph, [&](size_t source, size_t target, double weight) {
    const auto i = static_cast<Eigen::Index>(source), j = static_cast<Eigen::Index>(target);
    if (graph.weights(j, i) != 0 && target < source) return;
    visit(source, target, weight, is_open(graph, source, target));
  });
}

}  // namespace

std::string text_cell(const std::string& name) {
  // Names that a reader would not take as names need quotes: parts of the syntax, a comment, the
  // mark that may begin UTF-8, and words for values.
  const bool plain = !name.empty() && name.front() != '#' && name.front() != '%' &&
                     !name.starts_with("\xef\xbb\xbf") && !name.starts_with("sep=") &&
                     name.find_first_of(" ,;|\t\r\n\"") == std::string::npos &&
                     !io::is_missing(name) && !io::is_like_value(name);
  if (plain) return name;
  return std::string("\"").append(escaped(name, "\"", {"\"\""})).append("\"");
}

namespace {

// `row_names`: below an empty cell of the header, in a first column.
std::string named_rows_csv(const std::vector<std::string>& names, TableView table, bool row_names) {
  std::string text;
  for (size_t column = 0; column < names.size(); ++column) {
    text.append(column == 0 && !row_names ? "" : ",").append(text_cell(names[column]));
  }
  if (!names.empty()) text.push_back('\n');
  for (Eigen::Index row = 0; row < table.rows(); ++row) {
    if (row_names) text.append(text_cell(names[static_cast<size_t>(row)]));
    for (Eigen::Index column = 0; column < table.cols(); ++column) {
      text.append(column == 0 && !row_names ? "" : ",").append(shortest(table(row, column)));
    }
    text.push_back('\n');
  }
  return text;
}

}  // namespace

std::string table_csv(const std::vector<std::string>& names, TableView table) {
  return named_rows_csv(names, table, false);
}

std::string adjacency_csv(const NamedGraph& graph) {
  const Matrix& weights = graph.weights;
  const std::vector<std::string_view> names(graph.names.begin(), graph.names.end());
  // Otherwise columns called source and target would make it a list of edges.
  return named_rows_csv(graph.names, TableView(weights.data(), weights.rows(), weights.cols()),
                        io::is_edge_header(names));
}

std::string edge_list_tsv(const NamedGraph& graph) {
  std::string text = "source\ttarget\tweight\n";
  each_edge(graph, [&](size_t source, size_t target, double weight) {
    text.append(text_cell(graph.names[source])).append("\t");
    text.append(text_cell(graph.names[target])).append("\t");
    text.append(shortest(weight)).append("\n");
  });
  return text;
}

std::string graphml(const NamedGraph& graph) {
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
      "  <key id=\"name\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\n"
      "  <key id=\"weight\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>\n"
      "  <graph edgedefault=\"directed\">\n";
  for (size_t node = 0; node < graph.names.size(); ++node) {
    text.append("    <node id=\"n").append(std::to_string(node)).append("\"><data key=\"name\">");
    text.append(xml_text(graph.names[node])).append("</data></node>\n");
  }
  each_pair(graph, [&](size_t source, size_t target, double weight, bool open) {
    text.append("    <edge source=\"n").append(std::to_string(source));
    text.append("\" target=\"n").append(std::to_string(target));
    text.append(open ? "\" directed=\"false\"><data" : "\"><data")
        .append(" key=\"weight\">")
        .append(shortest(weight))
        .append("</data></edge>\n");
  });
  return text.append("  </graph>\n</graphml>\n");
}

std::string dot(const NamedGraph& graph) {
  const auto id = [&](size_t node) {
    return std::string("\"")
        .append(escaped(graph.names[node], "\"\\", {"\\\"", "\\\\"}))
        .append("\"");
  };
  const double largest = graph.weights.size() == 0 ? 0.0 : graph.weights.cwiseAbs().maxCoeff();
  std::string text = "digraph {\n";
  for (size_t node = 0; node < graph.names.size(); ++node)
    text.append("  ").append(id(node)).append(";\n");
  each_pair(graph, [&](size_t source, size_t target, double weight, bool open) {
    text.append("  ").append(id(source)).append(" -> ").append(id(target));
    text.append(" [weight=").append(shortest(std::abs(weight)));
    text.append(", label=").append(std::string("\"").append(shortest(weight)).append("\""));
    text.append(", penwidth=").append(shortest(0.5 + 2.5 * std::abs(weight) / largest));
    text.append(weight < 0 ? ", style=dashed" : "");
    text.append(open ? ", dir=none];\n" : "];\n");
  });
  return text.append("}\n");
}

namespace {

// A name between the quotes of GML, which are of ASCII: other characters are numbers.
std::string gml_text(std::string_view name) {
  std::string text;
  while (!name.empty()) {
    const char c = name.front();
    const size_t size = utf8_length(name);
    const bool plain = size == 1 && static_cast<uint8_t>(c) >= 0x20 && c != '"' && c != '&';
    const uint32_t code = size == 0 ? 0xFFFD : utf8_character(name);
    text.append(plain ? std::string(1, c) : "&#" + std::to_string(code) + ";");
    name.remove_prefix(std::max<size_t>(size, 1));
  }
  return text;
}

// A number that readers of GML take as a real one: with a point.
std::string gml_number(double value) {
  std::string text = shortest(value);
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

}  // namespace

std::string gml(const NamedGraph& graph) {
  std::string text = "graph [\n  directed 1\n";
  for (size_t node = 0; node < graph.names.size(); ++node) {
    text.append("  node [ id ").append(std::to_string(node)).append(" label \"");
    text.append(gml_text(graph.names[node])).append("\" ]\n");
  }
  each_pair(graph, [&](size_t source, size_t target, double weight, bool open) {
    text.append("  edge [ source ").append(std::to_string(source));
    text.append(" target ").append(std::to_string(target));
    text.append(" weight ").append(gml_number(weight)).append(open ? " open 1 ]\n" : " ]\n");
  });
  return text.append("]\n");
}

}  // namespace nsimplex::causal
