#pragma once

#include "kernels/common/dense_problem.h"

// Plain description of attention over lists of tuples, shared by every device: a dense problem
// without windows and masks, and the lists that say which of its tuples there are.

namespace nsimplex::kernels {

enum class ListPattern {
  list,     ///< any tuples
  product,  ///< the combinations of a set of keys with itself
  path      ///< chains: the next key is one of the set of the key before
};

/// The lists of a call, checked (tuple_list.h). A list is for a batch entry, or all, and a group of
/// neighbouring key heads.
struct TupleLists {
  ListPattern pattern = ListPattern::list;
  const int64_t* indices = nullptr;  ///< list: [tuples, size]; else [entries, groups, rows, size]
  const int64_t* offsets = nullptr;  ///< list: [entries, groups, queries + 1]
  int64_t entries = 1, groups = 1;   ///< entries: 1 or the batch
  int64_t rows = 0;                  ///< sets of a list: of the queries, or of all positions (path)
  int64_t size = 0;                  ///< list: the order; else the most keys of a set

  /// The list of a batch entry and a key head.
  int64_t number(int64_t batch, int64_t head, int64_t kv_heads) const {
    return (entries == 1 ? 0 : batch) * groups + head / (kv_heads / groups);
  }
  const int64_t* set(int64_t list, int64_t row) const {
    return indices + (list * rows + row) * size;
  }
};

/// `dense` has no windows, lengths, masks, sink or dropout, and softmax; its axes' lengths are T_m.
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

}  // namespace nsimplex::kernels
