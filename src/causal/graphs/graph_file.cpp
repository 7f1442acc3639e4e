#include "causal/graphs/graph_file.h"

#include <optional>
#include <unordered_map>

#include "io/cells.h"
#include "io/edge_list.h"
#include "io/mapped_file.h"
#include "io/npy.h"
#include "io/table.h"
#include "io/zip.h"
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
  GraphFile graph{table.width, std::move(table.columns), {}, true};
  for (int64_t cause = 0; cause < table.rows; ++cause) {
    for (int64_t effect = 0; effect < table.width; ++effect) {
      const double weight = table.at(cause, effect);
      if (weight != 0.0) graph.edges.push_back({cause, effect, weight});
    }
  }
  return graph;
}

GraphFile graph_of_list(io::EdgeList list) {
  GraphFile graph{list.nodes, std::move(list.names), {}, false};
  for (size_t edge = 0; 2 * edge < list.edges.size(); ++edge) {
    const double weight = list.weights.empty() ? 1.0 : list.weights[edge];
    if (weight != 0.0) {
      graph.edges.push_back({list.edges[2 * edge], list.edges[2 * edge + 1], weight});
    }
  }
  return graph;
}

// Whether a text has as many columns as rows, and whether its first line has their names; nothing
// where it is no square.
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

std::optional<GraphFile> matrix_of_text(const io::Source& source) {
  const io::Cells cells(source);
  if (cells.rows() == 0 || io::is_edge_header(cells.row(0))) return std::nullopt;
  const bool may_be_list = cells.row(0).size() <= kMostListColumns;
  const std::optional<io::HeaderLine> header = square(cells);
  if (!header && may_be_list) return std::nullopt;
  const io::TableOptions options{header.value_or(io::HeaderLine::detect), false, ""};
  try {
    return graph_of_matrix(source, io::parse_table(source, options));
  } catch (const InputError&) {
    if (may_be_list) return std::nullopt;
    throw;
  }
}

}  // namespace

GraphFile parse_graph(const io::Source& source) {
  if (source.starts_with(io::kNpyMagic) || source.starts_with(io::kZipMagic)) {
    return graph_of_matrix(source, io::parse_table(source, {io::HeaderLine::detect, false, ""}));
  }
  if (std::optional<GraphFile> graph = matrix_of_text(source)) return *std::move(graph);
  return graph_of_list(io::parse_edge_list(source));
}

GraphFile read_graph(const std::string& path) {
  const io::MappedFile file(path);
  return parse_graph({path, file.bytes()});
}

Matrix graph_over(const GraphFile& graph, const std::vector<std::string>& columns, int64_t count,
                  const std::string& name) {
  const auto fail = [&](const std::string& why) {
    throw InputError(std::string("cannot use ").append(name).append(": ").append(why));
  };
  if (graph.complete ? graph.nodes != count : graph.names.empty() && graph.nodes > count) {
    fail(std::string("expected a graph over the ")
             .append(std::to_string(count))
             .append(" columns of the table, got one of ")
             .append(std::to_string(graph.nodes))
             .append(" nodes"));
  }
  std::vector<int64_t> column_of;
  const bool by_name = !graph.names.empty() && !columns.empty();
  if (!graph.complete && !graph.names.empty() && columns.empty()) {
    fail("it names its nodes, but the table has no names");
  }
  std::unordered_map<std::string_view, int64_t> numbers;
  for (const std::string& column : columns) numbers.emplace(column, std::ssize(numbers));
  for (int64_t node = 0; node < graph.nodes; ++node) {
    if (!by_name) {
      column_of.push_back(node);
      continue;
    }
    const std::string& node_name = graph.names[static_cast<size_t>(node)];
    const auto found = numbers.find(node_name);
    if (found == numbers.end()) fail(io::quoted(node_name).append(" is no column of the table"));
    column_of.push_back(found->second);
  }
  Matrix matrix = Matrix::Zero(count, count);
  for (const GraphFile::Edge& edge : graph.edges) {
    matrix(column_of[static_cast<size_t>(edge.cause)],
           column_of[static_cast<size_t>(edge.effect)]) = edge.weight;
  }
  return matrix;
}

}  // namespace nsimplex::causal
