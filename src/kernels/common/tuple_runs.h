#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/sparse_problem.h"
#include "kernels/common/tuple_list.h"

namespace nsimplex::kernels {

/// Tuples that follow each other in a list and differ in their last key only.
struct TupleRun {
  const int64_t* leading;  ///< keys of axes 1 .. N-1
  int changed;             ///< first axis whose key differs from the run before; 0 for the first
  const int64_t* last;     ///< keys of axis N, `stride` apart
  int64_t stride, count;   ///< count >= 1
};

/// The runs of an explicit list: neighbours with equal leading keys.
template <class Visit>
void for_each_listed_run(const TupleLists& lists, int64_t list, int64_t queries, int64_t query,
                         Visit&& visit) {
  const int64_t order = lists.size, leading = order - 1;
  const int64_t* const offset = lists.offsets + list * (queries + 1) + query;
  const int64_t* const end = lists.indices + offset[1] * order;
  const int64_t* before = nullptr;
  for (const int64_t* tuple = lists.indices + offset[0] * order; tuple != end;) {
    const int64_t* next = tuple + order;
    while (next != end && std::equal(tuple, tuple + leading, next)) next += order;
    const auto changed = before ? std::mismatch(before, before + leading, tuple).first - before : 0;
    visit(
        TupleRun{tuple, static_cast<int>(changed), tuple + leading, order, (next - tuple) / order});
    before = tuple;
    tuple = next;
  }
}

/// The runs of products and paths: the keys of every axis come from a set, which for paths is that
/// of the key before. Levels are opened one by one, so that a run knows what it shares with the one
/// before.
template <class Visit>
void for_each_set_run(const TupleLists& lists, int order, int64_t list, int64_t row,
                      Visit&& visit) {
  struct Level {
    const int64_t* set;
    int64_t count, at;
  };
  Level levels[kMaxOrder];
  int64_t leading[kMaxOrder];
  const auto open = [&](int level) {
    const bool next = level > 0 && lists.pattern == ListPattern::path;
    const int64_t* const set = lists.set(list, next ? leading[level - 1] : row);
    levels[level] = {set, set_size(set, lists.size), 0};
  };
  int level = 0, changed = 0;
  open(0);
  while (level >= 0) {
    Level& own = levels[level];
    if (level == order - 1) {
      if (own.count > 0) {
        visit(TupleRun{leading, changed, own.set, 1, own.count});
        changed = level;
      }
      --level;
    } else if (own.at < own.count) {
      leading[level] = own.set[own.at++];
      changed = std::min(changed, level);
      open(++level);
    } else {
      --level;
    }
  }
}

/// visit(run) for all tuples of a query, in the order of its list.
template <class Visit>
void for_each_run(const TupleLists& lists, int order, int64_t list, int64_t queries, int64_t query,
                  Visit&& visit) {
  switch (lists.pattern) {
    case ListPattern::list:
      return for_each_listed_run(lists, list, queries, query, visit);
    case ListPattern::product:
      return for_each_set_run(lists, order, list, query, visit);
    case ListPattern::path:  // queries are the last positions
      return for_each_set_run(lists, order, list, query + lists.rows - queries, visit);
  }
}

}  // namespace nsimplex::kernels
