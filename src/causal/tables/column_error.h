// Declares the error about columns, which a caller that knows their names says by these.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/error.h"

namespace nsimplex::causal {

/// An error about columns. Its message has their numbers: "table: column 3 is constant".
class ColumnError : public InputError {
 public:
  /// `text` has {} in place of each column.
  ColumnError(std::string text, std::vector<int64_t> columns);

  /// The message with names of the columns in place of their numbers.
  std::string with_names(const std::vector<std::string>& names) const;

 private:
  std::string text_;
  std::vector<int64_t> columns_;
};

/// Runs a call, whose errors about columns have these names. Without names they have numbers.
template <class Call>
auto naming_columns(const std::vector<std::string>& names, Call&& call) {
  try {
    return call();
  } catch (const ColumnError& error) {
    if (names.empty()) throw;
    throw InputError(error.with_names(names));
  }
}

}  // namespace nsimplex::causal
