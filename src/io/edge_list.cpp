// Reads a list of edges from a text and finds its header, weights and node names.

#include "io/edge_list.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "io/graph_formats.h"
#include "io/input_file.h"
#include "io/text.h"

namespace nsimplex::io {
namespace {

// Names that programs use for the ends of edges, in lower case, without signs and without "id" at
// the end: Gephi, Cytoscape, SNAP, igraph, the karate club data sets, causal tools.
constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kEnds = {
    {{"source", "target"},
     {"src", "dst"},
     {"src", "tgt"},
     {"src", "dest"},
     {"source", "destination"},
     {"sourcenode", "targetnode"},
     {"from", "to"},
     {"fromnode", "tonode"},
     {"start", "end"},
     {"startnode", "endnode"},
     {"tail", "head"},
     {"node1", "node2"},
     {"nodea", "nodeb"},
     {"cause", "effect"},
     {"parent", "child"},
     {"regulator", "target"},
     {"gene1", "gene2"},
     {"protein1", "protein2"}}};
constexpr std::array<std::string_view, 7> kWeights = {"weight", "weights",  "w",          "score",
                                                      "value",  "strength", "coefficient"};
// node numbers above this multiple of the number of edge ends are names
constexpr int64_t kSparse = 16;

std::string plain(std::string_view word) {
  std::string result;
  for (const char c : word) {
    if (c >= 'A' && c <= 'Z')
      result += static_cast<char>(c | 0x20);
    else if (c != '_' && c != '-' && c != ' ' && c != '.')
      result += c;
  }
  if (result.size() > 2 && result.ends_with("id")) result.resize(result.size() - 2);
  return result;
}

// Refuses formats for graphs whose lines would pass for edges or give a confusing message.
void refuse_other_formats(const Source& source, std::string_view text) {
  const size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const std::string_view begin = text.substr(first, 256);
  const bool braces = begin.substr(0, begin.find('\n')).find('{') != std::string_view::npos;
  const bool dot = braces && (begin.starts_with("digraph") || begin.starts_with("graph") ||
                              begin.starts_with("strict"));
  if (begin.starts_with("%%MatrixMarket")) {
    source.fail("a Matrix Market file, which is not supported; scipy.io.mmread reads it");
  }
  if (dot) source.fail("a DOT file, which is not supported; GraphML and lists of edges are");
  if (begin.starts_with("graph [") || begin.starts_with("Creator ")) {
    source.fail("a GML file, which is not supported; GraphML and lists of edges are");
  }
  if (begin.starts_with('{') || begin.starts_with('[')) {
    source.fail("JSON, which is not supported; GraphML and lists of edges are");
  }
}

struct Columns {
  int64_t from = 0, to = 1;
  std::optional<int64_t> weight;
};

// The columns that a header names. Returns nothing if it names no pair of ends.
template <class Words>
std::optional<Columns> named_columns(const Words& words) {
  std::vector<std::string> names;
  names.reserve(words.size());
  for (const auto& word : words) names.push_back(plain(word));
  const auto find = [&](std::string_view name) -> std::optional<int64_t> {
    const auto found = std::ranges::find(names, name);
    return found == names.end() ? std::nullopt : std::optional<int64_t>(found - names.begin());
  };
  // "id1" and "id2" keep their "id", which is at their beginning.
  const auto pair = [&](std::string_view from, std::string_view to) -> std::optional<Columns> {
    const auto first = find(from), second = find(to);
    if (!first || !second) return std::nullopt;
    Columns columns{*first, *second, std::nullopt};
    for (const std::string_view weight : kWeights) {
      if (!columns.weight) columns.weight = find(weight);
    }
    return columns;
  };
  for (const auto& [from, to] : kEnds) {
    if (const auto columns = pair(from, to)) return columns;
  }
  return pair("id1", "id2");
}

// Whether there is a header that names the ends, or any two names above nodes that are all numbers.
bool has_header(const Cells& cells) {
  const auto names = cells.row(0);
  if (is_edge_header(names)) return true;
  if (cells.rows() < 2 || names.size() < 2 || parse_integer(names[0]) || parse_integer(names[1])) {
    return false;
  }
  for (int64_t row = 1; row < cells.rows(); ++row) {
    const auto cell = cells.row(row);
    if (cell.size() < 2 || !parse_integer(cell[0]) || !parse_integer(cell[1])) return false;
  }
  return true;
}

Columns columns_of(const Source& source, const TextGrid& grid, bool& roles) {
  if (!grid.names().empty()) {
    const auto named = named_columns(grid.names());
    roles = named.has_value();
    if (named) return *named;
  }
  if (grid.width() < 2 || grid.width() > 3) {
    source.fail("line " + std::to_string(grid.line(0)) +
                ": expected two nodes and perhaps a weight, got " + std::to_string(grid.width()) +
                (grid.width() == 1 ? " word" : " words"));
  }
  Columns columns;
  if (grid.width() == 3) columns.weight = 2;
  return columns;
}

// Refuses "1 2" in one cell: a line with blanks and another delimiter.
void refuse_mixed_delimiters(const TextGrid& grid, int64_t row, int64_t column) {
  const std::string_view cell = grid.at(row, column);
  const size_t blank = cell.find(' ');
  if (blank == std::string_view::npos || grid.is_quoted(row, column)) return;
  if (parse_number(cell.substr(0, blank)) && parse_number(cell.substr(cell.rfind(' ') + 1))) {
    grid.fail_at(row, column, "expected one node, got " + quoted_name(cell));
  }
}

// The numbers of all ends. Returns nothing if one is a name.
bool number_nodes(const std::vector<std::string_view>& ends, bool quoted, EdgeList& list) {
  int64_t largest = 0;
  for (const std::string_view end : ends) {
    const auto node = parse_integer(end);
    if (!node || *node < 0 || *node == INT64_MAX) return false;
    if (quoted && std::to_string(*node) != end) return false;  // "007" is not "7"
    list.edges.push_back(*node);
    largest = std::max(largest, *node);
  }
  list.nodes = largest + 1;
  if (!quoted && largest / kSparse <= std::ssize(ends)) return true;

  std::vector<int64_t> numbers = list.edges;
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  for (int64_t& node : list.edges) {
    node = std::ranges::lower_bound(numbers, node) - numbers.begin();
  }
  for (const int64_t number : numbers) list.names.push_back(std::to_string(number));
  list.nodes = std::ssize(numbers);
  if (!quoted) {
    list.reading.decisions.push_back({"node numbers up to " + std::to_string(largest) +
                                          " taken as names of " + std::to_string(list.nodes) +
                                          " nodes",
                                      "", false, "", true});
  }
  return true;
}

void name_nodes(const std::vector<std::string_view>& ends, EdgeList& list) {
  std::unordered_map<std::string_view, int64_t> numbers;
  list.edges.clear();
  for (const std::string_view end : ends) {
    const auto [place, added] = numbers.emplace(end, std::ssize(list.names));
    if (added) list.names.emplace_back(end);
    list.edges.push_back(place->second);
  }
  list.nodes = std::ssize(list.names);
}

}  // namespace

bool names_weights(std::string_view name) {
  const std::string own = plain(name);
  return own != "w" && std::ranges::find(kWeights, own) != kWeights.end();
}

bool is_edge_header(std::span<const std::string_view> words) {
  return named_columns(words).has_value();
}

EdgeList parse_edge_list(const Source& source, const TextOptions& options) {
  const Text text(source);
  refuse_other_formats(source, text.view());
  if (is_xml(text.view())) return parse_graphml(source);
  const TextGrid::Rules rules{.numeric_names = false,
                              .named_rows = false,
                              .cells = {.loose = true, .comments = "#%"},
                              .is_header = has_header,
                              .nothing = "holds no edges"};
  const TextGrid grid(source, options, rules);
  EdgeList list;
  list.reading = grid.reading();
  const Columns columns = columns_of(source, grid, list.roles);
  std::vector<std::string_view> ends;
  bool in_quotes = false;
  for (int64_t row = 0; row < grid.rows(); ++row) {
    for (const int64_t column : {columns.from, columns.to}) {
      if (grid.at(row, column).empty()) grid.fail_at(row, column, "expected a node, got nothing");
      refuse_mixed_delimiters(grid, row, column);
      ends.push_back(grid.at(row, column));
      in_quotes = in_quotes || grid.is_quoted(row, column);
    }
    // networkx.write_edgelist() ends each line with the data of the edge, or {} if it has none.
    if (!columns.weight || grid.at(row, *columns.weight) == "{}") continue;
    const auto weight = parse_number(grid.at(row, *columns.weight));
    if (!weight) {
      grid.fail_at(row, *columns.weight,
                   "expected a weight, got " + quoted_name(grid.at(row, *columns.weight)));
    }
    list.weights.push_back(*weight);
  }
  if (!list.weights.empty() && 2 * list.weights.size() != ends.size()) {
    source.fail("expected a weight of every edge, or of none");
  }
  if (!number_nodes(ends, in_quotes, list)) name_nodes(ends, list);
  return list;
}

EdgeList read_edge_list(const std::string& path, const TextOptions& options) {
  const FileBytes file(path);
  return parse_edge_list({path, file.bytes()}, options);
}

}  // namespace nsimplex::io
