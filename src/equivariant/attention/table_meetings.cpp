#include "equivariant/attention/table_meetings.h"

#include <algorithm>

#include "equivariant/classes/partitions.h"
#include "kernels/common/tuple_attention_problem.h"

namespace nsimplex::equivariant {

// The blocks of a side's rows that a relation's groups agree on.
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
  // A table of a whole graph is made once, so that others may have it for an addition.
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

// All rows of the pattern of a relation's side, by some blocks.
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

// Of each of the row groups the group of a relation in which its rows are.
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

// Whether the tables that a side meets are made ahead, all of them.
bool MeetingMaker::all_large(const AttentionRelation& relation, Side side) {
  const auto& own = side == Side::queries ? relation.query_offsets : relation.key_offsets;
  const auto& others = side == Side::queries ? relation.key_offsets : relation.query_offsets;
  for (size_t g = 1; g < others.size(); ++g) {
    if (!kernels::is_large_table(others[g] - others[g - 1], own[g] - own[g - 1])) return false;
  }
  return true;
}

}  // namespace nsimplex::equivariant
