// Converts the tensors of an attention plan to problems of the kernels.

#pragma once

#include <vector>

#include "equivariant/attention/class_attention.h"
#include "kernels/cpu/equivariant/tuple_attention.h"

// Conversion of the tensors of a plan to the problems of the kernels.

namespace nsimplex::equivariant {

inline kernels::TupleRelation tuple_relation(const RelationTensors& tensors) {
  return {tensors.key_offsets.size(0) - 1, tensors.key_offsets.const_data_ptr<int32_t>(),
          tensors.keys.const_data_ptr<int32_t>(), tensors.query_offsets.const_data_ptr<int32_t>(),
          tensors.queries.const_data_ptr<int32_t>()};
}

inline std::vector<kernels::TableMember> table_members(const PlanTensors& plan,
                                                       const TableMeeting& meeting) {
  std::vector<kernels::TableMember> members;
  for (const TableMeeting::Member& each : meeting.members) {
    kernels::TableMember& member = members.emplace_back();
    member.relation = tuple_relation(plan.relations[each.relation]);
    member.sign = static_cast<double>(each.sign);
    if (each.groups >= 0) member.groups = plan.group_maps[each.groups].const_data_ptr<int32_t>();
  }
  return members;
}

/// Calls visit(problem) with the groups and members of every meeting of a term's `side`.
template <class T, class Visit>
void for_each_meeting(const ClassCall& call, const AttentionTerm& term, kernels::TupleSide side,
                      kernels::TableAttention<T> problem, Visit&& visit) {
  const bool queries = side == kernels::TupleSide::queries;
  const auto visit_one = [&](const TableMeeting& meeting) {
    const std::vector<kernels::TableMember> members = table_members(call.plan, meeting);
    problem.members = members;
    if (meeting.rows >= 0) {
      const auto& groups = call.plan.row_groups[meeting.rows];
      problem.groups = groups.offsets.size(0) - 1;
      problem.offsets = groups.offsets.const_data_ptr<int32_t>();
      problem.rows = groups.rows.const_data_ptr<int32_t>();
    } else {
      const kernels::TupleRelation& own = members.front().relation;
      problem.groups = own.groups;
      problem.offsets = queries ? own.query_offsets : own.key_offsets;
      problem.rows = queries ? own.queries : own.keys;
    }
    visit(problem);
  };
  // The decoupled form has no terms of inclusion-exclusion.
  if (call.form == AttentionForm::decoupled) return visit_one({-1, {{term.relation, 1}}});
  for (const auto& meeting : queries ? term.queries_meet : term.keys_meet) visit_one(meeting);
}

}  // namespace nsimplex::equivariant
