// A sparse attention call as plain structs, and the checks of its lists of tuples.

#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/attention_problem.h"

// Checks that lists of tuples are safe to read: everything that a kernel relies on is checked here
// first, in one pass, without Torch. Index is int32_t or int64_t.

namespace nsimplex::kernels {

/// The first fault of a list.
struct ListFault {
  enum class Kind {
    none,
    first_offset,     ///< offsets[at] = value is below 0
    offset_order,     ///< offsets[at] = value is below its predecessor of the same row of offsets
    offset_range,     ///< offsets[at] = value is above the number of tuples, `limit`
    index_range,      ///< indices[at] = value is outside [0, limit)
    index_behind_gap  ///< indices[at] = value comes after a -1 of the same set
  };
  Kind kind = Kind::none;
  int64_t at = 0;  ///< element, counted through the flat array
  int64_t value = 0, limit = 0;

  explicit operator bool() const { return kind != Kind::none; }
};

/// Checks offsets [rows, queries + 1] into a list of `tuples` tuples: every row starts at 0 or
/// more, never decreases and ends at `tuples` or less.
inline ListFault find_offset_fault(const int64_t* offsets, int64_t rows, int64_t queries,
                                   int64_t tuples) {
  using Kind = ListFault::Kind;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = row * (queries + 1);
    if (offsets[first] < 0) return {Kind::first_offset, first, offsets[first], 0};
    for (int64_t i = first + 1; i <= first + queries; ++i) {
      if (offsets[i] < offsets[i - 1]) return {Kind::offset_order, i, offsets[i], offsets[i - 1]};
    }
    const int64_t last = first + queries;
    if (offsets[last] > tuples) return {Kind::offset_range, last, offsets[last], tuples};
  }
  return {};
}

/// Checks tuples [tuples, order] of keys: entry m is in [0, lengths[m]).
template <class Index>
ListFault find_tuple_fault(const Index* indices, int64_t tuples, int order,
                           const int64_t* lengths) {
  for (int64_t t = 0; t < tuples; ++t) {
    for (int m = 0; m < order; ++m) {
      const int64_t index = indices[t * order + m];
      if (index < 0 || index >= lengths[m]) {
        return {ListFault::Kind::index_range, t * order + m, index, lengths[m]};
      }
    }
  }
  return {};
}

/// Checks sets [sets, size] of keys in [0, length), each padded with -1 after its keys.
template <class Index>
ListFault find_set_fault(const Index* indices, int64_t sets, int64_t size, int64_t length) {
  for (int64_t set = 0; set < sets; ++set) {
    bool gap = false;
    for (int64_t i = set * size; i < (set + 1) * size; ++i) {
      const int64_t index = indices[i];
      if (index < -1 || index >= length) {
        return {ListFault::Kind::index_range, i, index, length};
      }
      if (gap && index >= 0) return {ListFault::Kind::index_behind_gap, i, index, length};
      gap = index < 0;
    }
  }
  return {};
}

/// The keys of a checked set: those before its first -1.
inline int64_t set_size(const int64_t* set, int64_t size) {
  return std::find(set, set + size, int64_t{-1}) - set;
}

}  // namespace nsimplex::kernels

// Plain description of attention over lists of tuples, shared by every device: a dense problem
// without windows and masks, and the lists of its tuples.

namespace nsimplex::kernels {

enum class ListPattern {
  list,     ///< any tuples
  product,  ///< the combinations of a set of keys with itself
  path      ///< chains: the next key is in the set of the previous key
};

/// The checked lists of a call. A list belongs to one batch entry, or all, and to a group of
/// neighbouring key heads.
struct TupleLists {
  ListPattern pattern = ListPattern::list;
  const int64_t* indices = nullptr;  ///< list: [tuples, size]; else [entries, groups, rows, size]
  const int64_t* offsets = nullptr;  ///< list: [entries, groups, queries + 1]
  int64_t entries = 1, groups = 1;   ///< entries: 1 or the batch
  int64_t rows = 0;                  ///< sets of a list: of the queries, or of all positions (path)
  int64_t size = 0;  ///< list: the order; otherwise the largest number of keys in a set

  /// The list of a batch entry and a key head.
  int64_t number(int64_t batch, int64_t head, int64_t kv_heads) const {
    return (entries == 1 ? 0 : batch) * groups + head / (kv_heads / groups);
  }
  const int64_t* set(int64_t list, int64_t row) const {
    return indices + (list * rows + row) * size;
  }
};

/// `dense` has no windows, lengths, masks, sink or dropout, and uses softmax; its axes have length
/// T_m.
template <class T>
struct SparseForward {
  DenseForward<T> dense;
  TupleLists lists;
};

template <class T>
struct SparseBackward {
  DenseBackward<T> dense;
  TupleLists lists;
};

/// Consecutive tuples of a list that differ only in their last key.
struct TupleRun {
  const int64_t* leading;  ///< keys of axes 1 .. N-1
  int changed;             ///< first axis whose key differs from the previous run; 0 for the first
  const int64_t* last;     ///< keys of axis N, `stride` apart
  int64_t stride, count;   ///< count >= 1
};

/// The runs of an explicit list: consecutive tuples with equal leading keys.
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

/// The runs of products and paths. The keys of every axis come from a set; for paths it is the set
/// of the previous key. Levels are opened one by one, so a run knows which keys it shares with the
/// previous one.
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

/// Calls visit(run) for all tuples of a query, in the order of its list.
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
