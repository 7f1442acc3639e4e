#include "equivariant/attention/light_columns.h"

namespace nsimplex::equivariant {
namespace {

// Rows to an input tuple from which on a column is shared: looking a product up costs as much as a
// fraction of making it.
constexpr int64_t kShared = 2;

// What a look-up finds at the rows: different input tuples, and where each row's is among them.
struct InputColumn {
  std::vector<int32_t> inputs, places;
};

InputColumn input_column(const SumPlan& plan, int64_t lookup) {
  InputColumn column;
  const PatternPart& part = plan.parts.front();
  std::vector<int32_t> numbers(plan.sources, -1);
  column.places.reserve(part.rows);
  for (int64_t row = 0; row < part.rows; ++row) {
    const int32_t input = plan.lookups[row * part.lookups + lookup];
    if (input >= 0 && numbers[input] < 0) {
      numbers[input] = static_cast<int32_t>(column.inputs.size());
      column.inputs.push_back(input);
    }
    column.places.push_back(input < 0 ? -1 : numbers[input]);
  }
  return column;
}

SharedColumns shared_columns(const std::vector<InputColumn>& columns, int64_t rows,
                             int64_t input_rows) {
  SharedColumns result;
  std::vector<int32_t> inputs, first;
  for (const InputColumn& column : columns) {
    first.push_back(static_cast<int32_t>(inputs.size()));
    inputs.insert(inputs.end(), column.inputs.begin(), column.inputs.end());
    result.counts.push_back(std::ssize(column.inputs));
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (size_t c = 0; c < columns.size(); ++c) {
      const int32_t place = columns[c].places[row];
      result.places.push_back(place < 0 ? -1 : first[c] + place);
    }
  }
  Transposed transposed = transpose(result.places, std::ssize(inputs));
  result.offsets = std::move(transposed.offsets);
  result.rows = std::move(transposed.places);
  for (int32_t& row : result.rows) row /= static_cast<int32_t>(columns.size());
  result.gather = make_gather_plan(std::move(inputs), 1, input_rows);
  return result;
}

}  // namespace

std::vector<int64_t> split_columns(const SumPlan& all, int64_t own_map, AttentionSource& source) {
  const PatternPart part = all.parts.empty() ? PatternPart{} : all.parts.front();
  const int64_t columns = std::ssize(part.classes);
  std::vector<InputColumn> shared;
  std::vector<int64_t> own, maps, shared_maps;
  for (int64_t c = 0; c < columns; ++c) {
    // A light class has one look-up and no other class has the same.
    InputColumn column = input_column(all, all.terms[3 * c + 1]);
    if (kShared * std::ssize(column.inputs) > part.rows || part.classes[c] == own_map) {
      own.push_back(c);
      maps.push_back(part.classes[c]);
    } else {
      shared.push_back(std::move(column));
      shared_maps.push_back(part.classes[c]);
    }
  }
  maps.insert(maps.end(), shared_maps.begin(), shared_maps.end());
  source.columns = std::ssize(own);
  source.shared = shared_columns(shared, part.rows, all.sources);
  std::vector<int32_t> lookups;
  lookups.reserve(part.rows * own.size());
  for (int64_t row = 0; row < part.rows; ++row) {
    for (const int64_t c : own) {
      lookups.push_back(all.lookups[row * part.lookups + all.terms[3 * c + 1]]);
    }
  }
  source.gather = make_gather_plan(std::move(lookups), source.columns, all.sources);
  return maps;
}

}  // namespace nsimplex::equivariant
