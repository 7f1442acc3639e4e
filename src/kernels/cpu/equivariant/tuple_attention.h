// Declares the kernels of equivariant attention, by pairs and by tables, and their tasks.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/common/equivariant_problems.h"

namespace nsimplex::kernels {

/// The rows [row_begin, row_end) of one large group, or all rows of several small ones.
struct GroupTask {
  int64_t group_begin = 0, group_end = 0;
  int64_t row_begin = 0, row_end = 0;  ///< of a single group; 0, 0: all
};

/// The side of a relation that a pass writes: it goes through these rows, and for each through the
/// other side's rows of the group.
enum class TupleSide { queries, keys };

/// Tasks with about equal numbers of pairs, which depend only on the relation.
std::vector<GroupTask> cut_pairs(const TupleRelation& relation, TupleSide side,
                                 int64_t largest_group);

/// Bytes of scratch of a task of PairAttention, 64-byte aligned.
template <class T>
size_t pair_scratch_bytes(const PairAttention<T>& problem);

/// The sums of the queries of a task of cut_pairs(queries).
void run_pairs_forward(const PairAttention<float>& problem, const GroupTask& task, void* scratch);
void run_pairs_forward(const PairAttention<double>& problem, const GroupTask& task, void* scratch);

/// The gradients of the rows of a task of cut_pairs(side).
void run_pairs_backward(const PairAttention<float>& problem, TupleSide side, const GroupTask& task,
                        void* scratch);
void run_pairs_backward(const PairAttention<double>& problem, TupleSide side, const GroupTask& task,
                        void* scratch);

/// The split of tables into tasks. Tables of small groups are made and met in one task. Those of
/// large ones (of the other side) are summed over blocks of rows first.
struct TablePlan {
  TupleSide side = TupleSide::queries;  ///< the written side
  struct Block {
    int64_t member = 0, group = 0, begin = 0, end = 0;  ///< rows of the other side
  };
  std::vector<Block> blocks;  ///< phase 0: each block leaves a table in the workspace
  /// phase 1: adds up the blocks of each large group, in order; one entry more
  std::vector<int64_t> first_block;
  std::vector<GroupTask> tasks;             ///< phase 2
  std::vector<std::vector<int64_t>> large;  ///< per member and group: its number or -1
  int64_t table_size = 0;         ///< doubles of a table of one head, rounded up to vectors
  int64_t workspace_doubles = 0;  ///< shared
  int64_t scratch_doubles = 0;    ///< of a task

  int64_t tasks_of(int phase) const;
  static constexpr int kPhases = 3;
};

/// The plan of a pass that writes `side`: sums of queries, or gradients of keys and values.
template <class T>
TablePlan plan_tables(const TableAttention<T>& problem, TupleSide side);

void run_tables(const TableAttention<float>& problem, const TablePlan& plan, int phase,
                int64_t task, double* workspace, double* scratch);
void run_tables(const TableAttention<double>& problem, const TablePlan& plan, int phase,
                int64_t task, double* workspace, double* scratch);

}  // namespace nsimplex::kernels
