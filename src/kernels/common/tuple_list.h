#pragma once

#include <algorithm>
#include <cstdint>

// Which lists of tuples may be read: everything that a kernel trusts of a list is checked here
// first, in one pass, without Torch. Index is int32_t or int64_t.

namespace nsimplex::kernels {

/// The first thing that is wrong with a list.
struct ListFault {
  enum class Kind {
    none,
    first_offset,     ///< offsets[at] = value is below 0
    offset_order,     ///< offsets[at] = value is below its predecessor of the same row of offsets
    offset_range,     ///< offsets[at] = value is above the number of tuples, `limit`
    index_range,      ///< indices[at] = value is outside [0, limit)
    index_behind_gap  ///< indices[at] = value stands behind a -1 of the same set
  };
  Kind kind = Kind::none;
  int64_t at = 0;  ///< element, counted through the flat array
  int64_t value = 0, limit = 0;

  explicit operator bool() const { return kind != Kind::none; }
};

/// Offsets [rows, queries + 1] into a list of `tuples` tuples: every row starts at 0 or more, never
/// falls and ends at `tuples` or less.
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

/// Tuples [tuples, order] of keys: entry m lies in [0, lengths[m]).
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

/// Sets [sets, size] of keys in [0, length), each filled up with -1 behind its keys.
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

/// Keys of a checked set: those before its first -1.
inline int64_t set_size(const int64_t* set, int64_t size) {
  return std::find(set, set + size, int64_t{-1}) - set;
}

}  // namespace nsimplex::kernels
