#pragma once

#include <string>
#include <vector>

#include "causal/graphs/graph_file.h"
#include "causal/graphs/graph_text.h"

namespace nsimplex::cli {

/// Names of columns that have none: x0, x1, ..
std::vector<std::string> column_names(int64_t count);

/// "3 nodes and 2 edges".
std::string size_of_graph(const causal::GraphFile& graph);

/// The number of a column, by its name or, where none is called so, by its number; InputError
/// "OPTION: .." otherwise.
int64_t find_column(const std::string& option, const std::string& column,
                    const std::vector<std::string>& names);

/// Writes STEM.csv (the matrix), STEM.tsv (the edges), STEM.graphml and STEM.dot into a folder,
/// each of them whole or not at all.
void write_graph(const std::string& folder, const std::string& stem,
                 const causal::NamedGraph& graph);

}  // namespace nsimplex::cli
