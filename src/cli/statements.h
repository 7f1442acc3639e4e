#pragma once

#include <vector>

#include "analysis/statement.h"
#include "cli/output.h"

namespace nsimplex::cli {

/// {statement, draws, holds, violations, median_slack}: what every `analyze` command says of a
/// statement; commands add to it. A slack that is no number becomes null.
Json to_json(const analysis::Statement& statement);

/// The same as a table, one row a statement.
std::string statements_table(const std::vector<analysis::Statement>& statements);

}  // namespace nsimplex::cli
