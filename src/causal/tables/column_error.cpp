// The error about columns, by their numbers and by their names.

#include "causal/tables/column_error.h"

#include <utility>

namespace nsimplex::causal {
namespace {

template <class NameOf>
std::string filled(const std::string& text, const std::vector<int64_t>& columns,
                   const NameOf& name_of_column) {
  std::string result;
  size_t begin = 0;
  for (const int64_t column : columns) {
    const size_t place = text.find("{}", begin);
    result.append(text, begin, place - begin).append(name_of_column(column));
    begin = place + 2;
  }
  return result.append(text, begin);
}

std::string numbered(const std::string& text, const std::vector<int64_t>& columns) {
  return filled(text, columns, [](int64_t column) { return std::to_string(column); });
}

}  // namespace

ColumnError::ColumnError(std::string text, std::vector<int64_t> columns)
    : InputError(numbered(text, columns)), text_(std::move(text)), columns_(std::move(columns)) {}

std::string ColumnError::with_names(const std::vector<std::string>& names) const {
  return filled(text_, columns_,
                [&](int64_t column) { return names.at(static_cast<size_t>(column)); });
}

}  // namespace nsimplex::causal
