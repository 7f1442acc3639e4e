// Declares the options that describe the rows and columns of a table.

#pragma once

#include <nsimplex/causal_options.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "causal/tables/usable_table.h"
#include "cli/options.h"
#include "cli/output.h"
#include "io/table.h"

/// Columns of a table that say something about its rows, and kinds of columns: --groups, --targets,
/// --soft and --kind.
namespace nsimplex::cli {

struct CausalRowFlags {
  std::string groups, targets, blocks;
  bool soft = false;
  std::vector<std::string> kinds;
};

/// Adds --groups, --targets, --soft and --kind.
void add_row_options(CLI::App& command, CausalRowFlags& flags);

/// What the options say about the rows and columns that are kept.
struct CausalRows {
  std::vector<int64_t> groups;                ///< of each row, from 0; none without --groups
  std::vector<std::vector<int64_t>> targets;  ///< of each row; none without interventions
  std::vector<int64_t> blocks;                ///< of each row, from 0; none without --blocks
  std::vector<ColumnKind> kinds;              ///< of each column; none if all are continuous
  std::map<int64_t, std::vector<std::string>> words;  ///< by column: its values are their places
};

/// Reads these columns beside the others.
class CausalRowReader {
 public:
  /// InputError for a kind that does not exist.
  explicit CausalRowReader(const CausalRowFlags& flags);

  /// For io::TableOptions: which columns may hold words. InputError for a column that is not there.
  std::vector<bool> texts(const std::vector<std::string>& names, int64_t width);

  /// Takes the columns of --groups, --targets and --blocks out of a table, and writes numbers in place of
  /// words.
  void take(io::Table& table);

  /// InputError if a column whose values have no mean has gaps that a mean would fill.
  void check_means(const io::Table& table) const;

  /// What holds of the rows and columns that are kept. `names` are those of the kept columns, and
  /// `all_names` of all. InputError that names option and row.
  CausalRows of(const causal::UsableTable& kept, const std::vector<std::string>& names,
                const std::vector<std::string>& all_names) const;

 private:
  const CausalRowFlags& flags_;
  std::vector<std::pair<std::string, ColumnKind>> asked_;  ///< columns as written, and their kinds
  /// In the table as it is read.
  int64_t groups_at_ = -1, targets_at_ = -1, blocks_at_ = -1;
  int64_t block_rows_ = 0;                              ///< length of blocks; 0: a column has them
  std::vector<std::string> groups_, targets_, blocks_;  ///< cells of each row
  std::vector<ColumnKind> kinds_;                       ///< of each column of the table
  std::map<int64_t, std::vector<std::string>> words_;   ///< by column of the table
};

/// The options for the fit of a table.
void set_rows(CausalFitOptions& options, const CausalRows& rows, bool soft);

/// {groups, targets, kinds, words}: how many groups, how many rows set each column, and what the
/// columns hold. Null where an option was not given.
Json to_json(const CausalRows& rows, const std::vector<std::string>& names);

/// The same as lines of text.
std::string rows_text(const CausalRows& rows, bool soft, const std::vector<std::string>& names);

/// The message of a fit, "[FUNCTION] ARGUMENT: ..", with the option in place of the argument.
std::string command_line_message(const std::string& message);

}  // namespace nsimplex::cli
