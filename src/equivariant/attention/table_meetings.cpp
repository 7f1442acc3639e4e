// Finds the columns and tables that several rows of an attention plan can share.

#include "equivariant/attention/table_meetings.h"

#include <algorithm>

#include "equivariant/classes/partitions.h"
#include "kernels/common/equivariant_problems.h"

namespace nsimplex::equivariant {
namespace {

// A column is shared from this number of rows per input tuple on. Looking a product up costs a
// fraction of computing it.
constexpr int64_t kShared = 2;

// The result of a look-up for the rows: different input tuples, and the number of each row's tuple
// among them.
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
    // A light class has one look-up, which no other class has.
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

// The blocks of a side's rows on which a relation's groups agree.
Blocks MeetingMaker::blocks_of(int64_t relation, Side side) const {
  Blocks blocks = side == Side::queries ? matches_[relation].images : matches_[relation].kept;
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

std::vector<TableMeeting> MeetingMaker::meetings(const AttentionTerm& term, Side side) {
  std::map<Blocks, std::vector<TableMeeting::Member>> by_blocks;
  const auto add = [&](int64_t relation, int64_t sign) {
    by_blocks[blocks_of(relation, side)].push_back({relation, sign});
  };
  add(term.relation, 1);
  for (const auto& [relation, sign] : term.extensions) add(relation, sign);
  const PatternRows& tuples = pattern_of(term.relation, side);
  const auto whole = static_cast<size_t>(block_count(tuples.pattern));
  // The table of a whole graph is made once, so that other tables can be obtained from it by an
  // addition.
  const auto graphs = by_blocks.find({});
  const auto host = std::ranges::find_if(by_blocks, [&](const auto& each) {
    return !each.first.empty() && each.first.size() < whole;
  });
  if (graphs != by_blocks.end() && host != by_blocks.end() &&
      std::ranges::all_of(graphs->second, [&](const TableMeeting::Member& member) {
        return all_large(plan_.relations[member.relation], side);
      })) {
    host->second.insert(host->second.end(), graphs->second.begin(), graphs->second.end());
    by_blocks.erase(graphs);
  }
  std::vector<TableMeeting> result;
  for (auto& [blocks, members] : by_blocks) {
    if (members.size() > 1 && blocks.size() < whole) {
      const int64_t rows = row_groups(term.relation, side, blocks);
      for (auto& member : members) member.groups = group_map(member.relation, side, rows);
      result.push_back({rows, std::move(members)});
      continue;
    }
    for (const auto& member : members) result.push_back({-1, {member}});
  }
  return result;
}

const PatternRows& MeetingMaker::pattern_of(int64_t relation, Side side) const {
  const RelationMatch& match = matches_[relation];
  return side == Side::queries ? join_.outputs()[match.output] : join_.inputs()[match.input];
}

// All rows of the pattern of a relation's side, grouped by some blocks.
int64_t MeetingMaker::row_groups(int64_t relation, Side side, const Blocks& blocks) {
  const RelationMatch& match = matches_[relation];
  const size_t pattern = side == Side::queries ? match.output : match.input;
  const auto [known, is_new] =
      row_groups_.try_emplace({side, pattern, blocks}, std::ssize(plan_.row_groups));
  if (is_new) {
    const TupleGroups& groups = side == Side::queries ? join_.output_groups(pattern, blocks)
                                                      : join_.groups(pattern, blocks);
    plan_.row_groups.push_back({{groups.offsets.begin(), groups.offsets.end()},
                                {groups.members.begin(), groups.members.end()}});
  }
  return known->second;
}

// For each of the row groups, the group of a relation that contains its rows.
int64_t MeetingMaker::group_map(int64_t relation, Side side, int64_t rows) {
  const auto [known, is_new] =
      group_maps_.try_emplace({relation, side, rows}, std::ssize(plan_.group_maps));
  if (!is_new) return known->second;
  const AttentionRelation& own = plan_.relations[relation];
  const auto& offsets = side == Side::queries ? own.query_offsets : own.key_offsets;
  const auto& members = side == Side::queries ? own.queries : own.keys;
  std::vector<int32_t> group_of(pattern_of(relation, side).size(), -1);
  for (size_t g = 1; g < offsets.size(); ++g) {
    for (int32_t e = offsets[g - 1]; e < offsets[g]; ++e) {
      group_of[members[e]] = static_cast<int32_t>(g - 1);
    }
  }
  const RowGroups& groups = plan_.row_groups[rows];
  std::vector<int32_t> map;
  for (size_t g = 1; g < groups.offsets.size(); ++g) {
    map.push_back(group_of[groups.rows[groups.offsets[g - 1]]]);
  }
  plan_.group_maps.push_back(std::move(map));
  return known->second;
}

// Whether all tables that a side reads are computed beforehand.
bool MeetingMaker::all_large(const AttentionRelation& relation, Side side) {
  const auto& own = side == Side::queries ? relation.query_offsets : relation.key_offsets;
  const auto& others = side == Side::queries ? relation.key_offsets : relation.query_offsets;
  for (size_t g = 1; g < others.size(); ++g) {
    if (!kernels::is_large_table(others[g] - others[g - 1], own[g] - own[g - 1])) return false;
  }
  return true;
}

}  // namespace nsimplex::equivariant
