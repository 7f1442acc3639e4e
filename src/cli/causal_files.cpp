#include "cli/causal_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "io/atomic_file.h"
#include "io/numbers.h"
#include "support/error.h"
#include "support/printable.h"

namespace nsimplex::cli {

std::vector<std::string> column_names(int64_t count) {
  std::vector<std::string> names;
  for (int64_t column = 0; column < count; ++column) names.push_back(fmt::format("x{}", column));
  return names;
}

std::string size_of_graph(const causal::GraphFile& graph) {
  const auto edges = std::ssize(graph.edges);
  return fmt::format("{} node{} and {} edge{}", graph.nodes, graph.nodes == 1 ? "" : "s", edges,
                     edges == 1 ? "" : "s");
}

int64_t find_column(const std::string& option, const std::string& column,
                    const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), column);
  if (found != names.end()) return found - names.begin();
  const std::optional<int64_t> number = io::parse_integer(column);
  if (number && *number >= 0 && *number < std::ssize(names)) return *number;
  throw InputError(fmt::format("{}: expected one of the {} columns, {} to {}, got {}", option,
                               names.size(), printable(names.front()), printable(names.back()),
                               quoted_name(column)));
}

void write_graph(const std::string& folder, const std::string& stem,
                 const causal::NamedGraph& graph) {
  const std::string path = fmt::format("{}/{}", folder, stem);
  io::write_text(path + ".csv", causal::adjacency_csv(graph));
  io::write_text(path + ".tsv", causal::edge_list_tsv(graph));
  io::write_text(path + ".graphml", causal::graphml(graph));
  io::write_text(path + ".dot", causal::dot(graph));
}

}  // namespace nsimplex::cli
