// Declares the search for shared columns and tables of an attention plan.

#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "equivariant/attention/equivariant_attention_classes.h"

namespace nsimplex::equivariant {

/// Writes the columns of a source, from the plan `all` of its light sums: the columns that few
/// input tuples make, and the others, which include that of the map `own_map` (-1: of none).
/// Returns the map of each column in that order.
std::vector<int64_t> split_columns(const SumPlan& all, int64_t own_map, AttentionSource& source);

/// The blocks of an output pattern and of an input pattern that a relation matches.
struct RelationMatch {
  size_t output;
  Blocks images;
  size_t input;
  Blocks kept;
};

/// Finds the tables of a plan's terms that the same rows read (docs/equivariant/plan.md).
class MeetingMaker {
 public:
  /// Both must outlive it.
  MeetingMaker(TupleJoin& join, AttentionPlan& plan) : join_(join), plan_(plan) {}

  /// Adds the plan's next relation.
  void add_relation(RelationMatch match) { matches_.push_back(std::move(match)); }

  /// Adds the meetings of a term after its relations are added.
  void add_to(AttentionTerm& term) {
    term.queries_meet = meetings(term, Side::queries);
    term.keys_meet = meetings(term, Side::keys);
  }

 private:
  enum class Side { queries, keys };

  static bool all_large(const AttentionRelation& relation, Side side);
  Blocks blocks_of(int64_t relation, Side side) const;
  const PatternRows& pattern_of(int64_t relation, Side side) const;
  std::vector<TableMeeting> meetings(const AttentionTerm& term, Side side);
  int64_t row_groups(int64_t relation, Side side, const Blocks& blocks);
  int64_t group_map(int64_t relation, Side side, int64_t rows);

  TupleJoin& join_;
  AttentionPlan& plan_;
  std::vector<RelationMatch> matches_;  // per relation
  std::map<std::tuple<Side, size_t, Blocks>, int64_t> row_groups_;
  std::map<std::tuple<int64_t, Side, int64_t>, int64_t> group_maps_;
};

}  // namespace nsimplex::equivariant
