// The operator that reads a file with a table, columns of words and columns that describe its rows.

#include <ATen/ATen.h>
#include <torch/library.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "causal/tables/usable_table.h"
#include "io/table.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

using at::Tensor;
using Words = std::vector<std::string>;

// Looked up once per column; a file may have many columns.
using Set = std::unordered_set<std::string>;

Set set_of(const Words& words) { return {words.begin(), words.end()}; }

// What becomes of the columns of a file.
struct ColumnRoles {
  Words beside;                         // names of columns that describe the rows, ..
  Set skip;                             // .. and of those that are left out; both may hold anything
  Set words;                            // names of other columns that may hold words, ..
  std::unordered_set<int64_t> numbers;  // .. and their numbers among the columns of the table
  Set only;                             // names of the columns that are needed; none: all

  Words names = {};              // of all columns of the file
  std::vector<bool> table = {};  // which columns are those of the table
  bool known = true;             // whether each of `beside` is there once

  // For io::TableOptions: which columns may hold words. All may unless `beside` is known, so that
  // the caller can say so before a cell is at fault.
  std::vector<bool> texts(const Words& own, int64_t width) {
    names = own.empty() ? column_names(width) : own;
    known = std::ranges::all_of(
        beside, [&](const std::string& name) { return std::ranges::count(names, name) == 1; });
    std::vector<bool> result;
    int64_t number = 0;
    for (const std::string& name : names) {
      const bool aside = skip.contains(name) || std::ranges::find(beside, name) != beside.end();
      const bool needed = only.empty() || own.empty() || only.contains(name);
      const bool word = words.contains(name) || numbers.contains(number);
      table.push_back(needed && !aside);
      result.push_back(!known || !table.back() || word);
      number += table.back() ? 1 : 0;
    }
    return result;
  }
};

// The numbers and names of the table, the names of all columns, the columns of the table that may
// hold words with the cells of one after another, and so the cells of `beside`. Cells are empty where
// missing. The last value says what was guessed.
using Columns = std::tuple<Tensor, Words, Words, std::vector<int64_t>, Words, Words, std::string>;

Columns columns_of(const io::Table& table, const ColumnRoles& roles) {
  std::vector<int64_t> kept, texts;
  Words names, cells, beside;
  const auto append = [&](Words& to, int64_t column) {
    const Words& own = table.texts.at(column);
    to.insert(to.end(), own.begin(), own.end());
  };
  for (int64_t column = 0; column < table.width; ++column) {
    if (!roles.table[static_cast<size_t>(column)]) continue;
    if (table.texts.contains(column)) {
      texts.push_back(std::ssize(kept));
      append(cells, column);
    }
    if (!table.columns.empty()) names.push_back(table.columns[static_cast<size_t>(column)]);
    kept.push_back(column);
  }
  for (const std::string& name : roles.beside) {
    append(beside, std::ranges::find(roles.names, name) - roles.names.begin());
  }
  const Tensor values = at::tensor(table.values, at::kDouble).view({table.rows, table.width});
  return {values.index_select(1, at::tensor(kept, at::kLong)),
          std::move(names),
          roles.names,
          std::move(texts),
          std::move(cells),
          std::move(beside),
          io::python_notice(table.reading)};
}

Columns read_columns(std::string_view path, const Words& beside, const Words& skip,
                     const Words& words, at::IntArrayRef numbers, const Words& only) {
  ColumnRoles roles{
      beside, set_of(skip), set_of(words), {numbers.begin(), numbers.end()}, set_of(only)};
  try {
    const io::Table table = io::read_table(
        std::string(path),
        {.texts = [&](const Words& names, int64_t width) { return roles.texts(names, width); }});
    if (!roles.known) return {at::empty({0, 0}, at::kDouble), {}, roles.names, {}, {}, {}, ""};
    return columns_of(table, roles);
  } catch (const InputError& error) {
    C10_THROW_ERROR(ValueError, error.what());
  }
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "causal_read_columns(str path, str[] beside, str[] skip, str[] words, int[] numbers, str[] "
      "only) -> (Tensor, str[], str[], int[], str[], str[], str)",
      TORCH_FN(read_columns));
}

}  // namespace
}  // namespace nsimplex::causal
