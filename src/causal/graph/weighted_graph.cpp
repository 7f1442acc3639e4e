// Reads a weighted directed graph from a matrix or a list of edges.

#include "causal/graph/weighted_graph.h"

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "io/cells.h"
#include "io/edge_list.h"
#include "io/graph_formats.h"
#include "io/gzip.h"
#include "io/input_file.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/table.h"
#include "io/text.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

constexpr size_t kMostListColumns = 3;  // from, to, weight

GraphFile graph_of_matrix(const io::Source& source, io::Table table) {
  if (table.rows != table.width) {
    source.fail(std::string("expected a square matrix, got ")
                    .append(std::to_string(table.rows))
                    .append(" x ")
                    .append(std::to_string(table.width)));
  }
  GraphFile graph{.nodes = table.width,
                  .names = std::move(table.columns),
                  .edges = {},
                  .complete = true,
                  .reading = std::move(table.reading)};
  for (int64_t cause = 0; cause < table.rows; ++cause) {
    for (int64_t effect = 0; effect < table.width; ++effect) {
      const double weight = table.at(cause, effect);
      if (weight != 0.0) graph.edges.push_back({cause, effect, weight});
    }
  }
  return graph;
}

GraphFile graph_of_list(io::EdgeList list) {
  GraphFile graph{.nodes = list.nodes,
                  .names = std::move(list.names),
                  .edges = {},
                  .roles = list.roles,
                  .reading = std::move(list.reading)};
  for (size_t edge = 0; 2 * edge < list.edges.size(); ++edge) {
    const double weight = list.weights.empty() ? 1.0 : list.weights[edge];
    if (weight != 0.0) {
      graph.edges.push_back({list.edges[2 * edge], list.edges[2 * edge + 1], weight});
    }
  }
  return graph;
}

// Whether a text has as many columns as rows, and if so whether its first line has their names.
// Returns nothing if it is not square.
std::optional<io::HeaderLine> square(const io::Cells& cells) {
  const auto rows = static_cast<size_t>(cells.rows());
  if (rows < 2) return std::nullopt;
  const auto first = cells.row(0);
  const size_t width = cells.row(1).size();
  const bool labelled = first.size() + 1 == width || first[0].empty();
  if (rows == width + 1 || (rows == width && labelled)) return io::HeaderLine::present;
  if (rows == width) return io::HeaderLine::absent;
  return std::nullopt;
}

// Whether the first column repeats the names of the first line, which never happens in lists of
// edges.
bool has_row_names(const io::Cells& cells) {
  const auto names = cells.row(0);
  if (static_cast<size_t>(cells.rows()) != names.size() || !names[0].empty()) return false;
  for (size_t node = 1; node < names.size(); ++node) {
    if (cells.row(static_cast<int64_t>(node))[0] != names[node]) return false;
  }
  return true;
}

std::optional<GraphFile> matrix_of_text(const io::Source& source, const io::TextOptions& options) {
  const io::Cells cells(source, {.delimiter = options.delimiter,
                                 .comments = options.comment.value_or("#%"),
                                 .comments_anywhere = true});
  if (cells.rows() == 0) return std::nullopt;
  if (io::is_edge_header(cells.row(0)) && !has_row_names(cells)) return std::nullopt;
  const bool may_be_list = cells.row(0).size() <= kMostListColumns;
  // "0 1" above "1 2" are edges, although they form a square.
  if (may_be_list && cells.delimiter() == io::Delimiter::space) return std::nullopt;
  const std::optional<io::HeaderLine> header = square(cells);
  if (!header && may_be_list) return std::nullopt;
  io::TableOptions table{.text = options, .allow_missing = false};
  if (header && options.header == io::HeaderLine::detect) table.text.header = *header;
  try {
    GraphFile graph = graph_of_matrix(source, io::parse_table(source, table));
    for (io::TextReading::Decision& decision : graph.reading.decisions) decision.guessed = false;
    return graph;
  } catch (const InputError&) {
    if (may_be_list) return std::nullopt;
    throw;
  }
}

}  // namespace

GraphFile parse_graph(const io::Source& source, const io::TextOptions& options) {
  if (source.starts_with(io::kNpyMagic) || source.starts_with(io::kZipMagic)) {
    return graph_of_matrix(source, io::parse_table(source, {.allow_missing = false}));
  }
  if (io::is_gzip(source)) {
    const std::vector<uint8_t> bytes = io::gunzipped(source);
    return parse_graph({source.name, bytes}, options);
  }
  if (io::is_xml(io::Text(source).view())) return graph_of_list(io::parse_graphml(source));
  if (std::optional<GraphFile> graph = matrix_of_text(source, options)) return *std::move(graph);
  return graph_of_list(io::parse_edge_list(source, options));
}

GraphFile read_graph(const std::string& path, const io::TextOptions& options) {
  const io::FileBytes file(path);
  return parse_graph({path, file.bytes()}, options);
}

namespace {

// The names of the nodes of a list of numbers, if every number is the name of a column. Otherwise
// nothing.
std::vector<std::string> numbers_as_names(const GraphFile& graph,
                                          const std::vector<std::string>& columns) {
  std::vector<std::string> names(static_cast<size_t>(graph.nodes));
  const std::unordered_set<std::string_view> known(columns.begin(), columns.end());
  for (const GraphFile::Edge& edge : graph.edges) {
    for (const int64_t node : {edge.cause, edge.effect}) {
      std::string name = std::to_string(node);
      if (!known.contains(name)) return {};
      names[static_cast<size_t>(node)] = std::move(name);
    }
  }
  return names;
}

}  // namespace

Matrix graph_over(const GraphFile& graph, const std::vector<std::string>& columns, int64_t count,
                  const std::string& name) {
  const auto fail = [&](const std::string& why) {
    throw InputError(std::string("cannot use ").append(name).append(": ").append(why));
  };
  const std::vector<std::string> names =
      graph.complete || !graph.names.empty() ? graph.names : numbers_as_names(graph, columns);
  if (graph.complete ? graph.nodes != count : names.empty() && graph.nodes > count) {
    fail(std::string("expected a graph over the ")
             .append(std::to_string(count))
             .append(" columns of the table, got one of ")
             .append(std::to_string(graph.nodes))
             .append(" nodes"));
  }
  if (!graph.complete && !names.empty() && columns.empty()) {
    fail("it names its nodes, but the table has no names");
  }
  std::vector<int64_t> column_of;
  const bool by_name = !names.empty() && !columns.empty();
  std::unordered_map<std::string_view, int64_t> numbers;
  for (const std::string& column : columns) numbers.emplace(column, std::ssize(numbers));
  for (int64_t node = 0; node < graph.nodes; ++node) {
    if (!by_name) {
      column_of.push_back(node);
      continue;
    }
    const std::string& node_name = names[static_cast<size_t>(node)];
    const auto found = numbers.find(node_name);
    // A number between those of a list is not a node and has no name.
    if (found == numbers.end() && (graph.complete || !graph.names.empty())) {
      fail(quoted_name(node_name).append(" is no column of the table"));
    }
    column_of.push_back(found == numbers.end() ? -1 : found->second);
  }
  Matrix matrix = Matrix::Zero(count, count);
  for (const GraphFile::Edge& edge : graph.edges) {
    matrix(column_of[static_cast<size_t>(edge.cause)],
           column_of[static_cast<size_t>(edge.effect)]) = edge.weight;
  }
  return matrix;
}

}  // namespace nsimplex::causal
